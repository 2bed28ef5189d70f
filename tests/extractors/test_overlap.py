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
