"""Verdicts of the overlap audit, from cards made by hand and from those that ship."""

from __future__ import annotations

import pytest

from earmark.corpora.clips import CorpusCard
from earmark.corpora.vocsim import CARDS
from earmark.extractors.contract import ExtractorCard
from earmark.extractors.overlap import audit


def model(*pretraining: str, parameters: int | None = 10) -> ExtractorCard:
    return ExtractorCard(name="m", pretraining=pretraining, parameters=parameters)


@pytest.mark.parametrize(
    ("pretraining", "subset", "verdict"),
    [
        (("LibriSpeech 960 h",), "HP", "confirmed"),
        (("Libri-Light, 53,200 h",), "HW1", "confirmed"),
        (("libri light",), "HW1", "confirmed"),
        (("LibriSpeech 960 h",), "HU1", "no evidence"),
        (("AudioSet-2M",), "ES1", "likely"),
        (("AudioSet-2M",), "HU2", "no evidence"),
        (("680,000 h of speech from the web",), "HU2", "likely"),
        (("680,000 h of speech from the web",), "HU3", "no evidence"),  # never public
        (("680,000 h of speech from the web",), "BC", "no evidence"),
        (("DNS Challenge",), "HU1", "confirmed"),
        (("xeno-canto",), "BS2", "likely"),
        (("ESC-50",), "ES1", "confirmed"),
        ((), "ES1", "unknown"),
    ],
)
def test_verdicts_on_vocsim(pretraining: tuple[str, ...], subset: str, verdict: str) -> None:
    assert audit(model(*pretraining), CARDS[subset]).verdict == verdict


def test_names_are_whole_words() -> None:
    corpus = CorpusCard(name="c", drawn_from="AMI", domain="meetings")
    assert audit(model("Miami recordings"), corpus).verdict == "no evidence"
    assert audit(model("AMI Meeting Corpus"), corpus).verdict == "confirmed"


def test_silence_of_a_card_is_not_innocence() -> None:
    assert audit(model("AudioSet"), CorpusCard(name="folder")).verdict == "unknown"
    assert audit(model(parameters=0), CARDS["HP"]).verdict == "no evidence"
    synthetic = CorpusCard(name="s", status="synthetic", domain="speech")
    assert audit(model("web"), synthetic).verdict == "no evidence"


@pytest.mark.parametrize("name", ["vae", "ae"])
def test_a_model_that_learns_from_the_subset_has_heard_it(name: str) -> None:
    from earmark.extractors.catalogue import CARDS as MODELS

    for corpus in (CARDS["BS1"], CorpusCard(name="made", status="synthetic")):
        assert audit(MODELS[name], corpus).verdict == "confirmed"
    assert "never from their labels" in audit(MODELS[name], CARDS["BS1"]).why


def test_imitations_of_sounds_are_of_the_kind_that_collections_of_events_cover() -> None:
    """Their domain is human speech: what they are drawn from tells more."""
    assert audit(model("AudioSet-2M"), CARDS["HS2"]).verdict == "likely"
    assert audit(model("FSD50K"), CorpusCard(name="x", domain="voices", drawn_from="Imitations")).verdict == "likely"
    assert audit(model("AudioSet-2M"), CARDS["HU1"]).verdict == "no evidence"


def test_table_5_is_there_for_every_public_subset() -> None:
    from earmark import published

    rows = published.read("vocsim_table5_overlap")
    public = {name for name, card in CARDS.items() if card.status == "public"}
    assert {row["subset"] for row in rows} == public
    assert len(rows) == len(public) * 7 == 105
    assert {row["verdict"] for row in rows} == {"confirmed", "likely", "no evidence"}
    verdict = {(row["subset"], row["model"]): row["verdict"] for row in rows}
    assert verdict["HP", "WavLM"] == verdict["ES1", "EnCodec"] == "confirmed"
    assert verdict["HU2", "Whisper"] == "likely"


def test_the_audit_says_where_it_differs_from_the_paper_and_why() -> None:
    from earmark.extractors.catalogue import CARDS as MODELS
    from earmark.extractors.overlap import PRINTED_COLUMNS, differences

    found = differences({name: MODELS[name] for name in PRINTED_COLUMNS})
    places = {(one.model, one.subset): (one.verdict, one.printed) for one in found}
    assert places["eat", "ES1"] == ("likely", "confirmed")
    assert places["encodec", "HU1"] == ("confirmed", "no evidence")
    assert {subset for _, subset in places} == {"ES1", "HS1", "HS2", "HU1"}
    assert all("no reason" not in one.why for one in found)
    told = audit(MODELS["audiomae"], CARDS["HS2"])
    assert told.verdict == "likely"
    assert "VocSim's Table 5 prints confirmed" in told.why
    assert "Table 5" not in audit(MODELS["wav2vec2"], CARDS["HP"]).why
    # Another corpus of that name is not the paper's.
    assert "Table 5" not in audit(MODELS["eat"], CorpusCard(name="ES1", domain="environmental", drawn_from="Mine")).why
