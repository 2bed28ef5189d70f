"""Has a model heard these sounds before? Its card against a corpus's card.

    confirmed     the corpus, or a collection known to hold it, is among what the weights were trained on
    likely        the weights saw a large collection of that kind of sound without a list of its recordings
    no evidence   neither
    unknown       one of the two cards does not say

A verdict is about what is written down, not about recordings compared with one another: "no evidence" is not "no".
A corpus states `drawn_from` (names of public corpora, separated by ";") and `domain`; a model states `pretraining`.

VocSim's Table 5 prints verdicts of its own. They are kept as data (`vocsim_table5_overlap`) and change none of these:
where the two differ, the sentence says what is printed and why it is not followed. `differences` lists them all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from earmark.corpora import vocsim
from earmark.corpora.clips import CorpusCard
from earmark.extractors.contract import ExtractorCard
from earmark.published import read

Verdict = Literal["confirmed", "likely", "no evidence", "unknown"]

SPEECH = ("speech",)
EVENTS = ("environmental", "audio", "imitation")
BIRDS = ("bird",)


class Collection(NamedTuple):
    """What is known of something models are trained on: corpora it holds, and kinds of sound it has without a list."""

    holds: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()  # words of a domain
    why: str = ""


COLLECTIONS: dict[str, Collection] = {
    "Libri-Light": Collection(("LibriSpeech",), why="made from the same LibriVox readings"),
    "LibriVox": Collection(("LibriSpeech",), why="LibriSpeech is made from it"),
    "DNS Challenge": Collection(("VCTK",), EVENTS, "its clean speech includes VCTK, its noises AudioSet and Freesound"),
    "AudioSet": Collection((), EVENTS, "two million clips of YouTube"),
    "Freesound": Collection((), EVENTS, "where many public sets of sound events come from"),
    "LAION-Audio-630K": Collection((), EVENTS, "collected from Freesound and other public sites"),
    "WavCaps": Collection((), EVENTS, "collected from Freesound and AudioSet"),
    "FSD50K": Collection((), EVENTS, "clips of Freesound"),
    "VGGSound": Collection((), EVENTS, "clips of YouTube"),
    "web": Collection((), (*SPEECH,), "collected from the web without a list"),
    "YouTube": Collection((), (*SPEECH, *EVENTS), "collected without a list"),
    "xeno-canto": Collection((), BIRDS, "an open collection of bird recordings"),
    "iNaturalist": Collection((), BIRDS, "an open collection of recordings of animals"),
    "Animal Sound Archive": Collection((), BIRDS, "a large collection of recordings of animals"),
    "Macaulay": Collection((), BIRDS, "a large collection of bird recordings"),
}


class Overlap(NamedTuple):
    """A verdict and the sentence it rests on."""

    verdict: Verdict
    why: str


PRINTED_COLUMNS: dict[str, str] = {
    "whisper": "Whisper",
    "wav2vec2": "Wav2Vec 2.0",
    "wavlm": "WavLM",
    "clap": "CLAP",
    "audiomae": "AudioMAE",
    "beats": "BEATs and EAT",
    "eat": "BEATs and EAT",
    "encodec": "EnCodec",
}
"""Models of the catalogue: the column of Table 5 that is about them."""

_WHY_NOT: dict[str, str] = {
    "whisper ES1": "the paper's own text speaks of human speech alone",
    "ES1": "the paper's own text calls it likely, and no list of the collection names clips of ESC-50",
    "HS1": "the paper counts HS1 with vocal imitations, but draws it from AMI in its Table 1",
    "HS2": "the paper calls it AudioSet-like, and no list of AudioSet names the imitations' recordings",
    "HU1": "the paper does not count the clean speech of the DNS Challenge, which includes VCTK",
}
"""Why a printed verdict on a subset, or on a model and a subset, is not followed."""


def _why_not(model: str, subset: str) -> str:
    return _WHY_NOT.get(f"{model} {subset}") or _WHY_NOT.get(subset, "the paper gives no reason")


class Difference(NamedTuple):
    """A verdict on a model and a subset of VocSim that is not the printed one, and why."""

    model: str
    subset: str
    verdict: Verdict
    printed: Verdict
    why: str


def differences(models: Mapping[str, ExtractorCard]) -> list[Difference]:
    """Where the verdicts on these models, by name, differ from VocSim's Table 5."""
    rows = []
    for name, card in models.items():
        for subset, corpus in vocsim.CARDS.items():
            printed, ours = _printed_verdict(name, corpus), _judge(card, corpus)
            if printed is not None and printed != ours.verdict:
                rows.append(Difference(name, subset, ours.verdict, printed, _why_not(name, subset)))
    return rows


def compared(models: Mapping[str, ExtractorCard]) -> int:
    """On how many pairs of these models and VocSim's subsets a verdict is printed."""
    return sum(_printed_verdict(name, corpus) is not None for name in models for corpus in vocsim.CARDS.values())


@cache
def _table5() -> dict[tuple[str, str], Verdict]:
    return {(row["model"], row["subset"]): row["verdict"] for row in read("vocsim_table5_overlap")}  # type: ignore[misc]


def _printed_verdict(model: str, corpus: CorpusCard) -> Verdict | None:
    """What Table 5 prints about a model of the catalogue and one of VocSim's own subsets."""
    subset = corpus.name.removeprefix("vocsim:")
    known = vocsim.CARDS.get(subset)
    if known is None or known.drawn_from != corpus.drawn_from or model not in PRINTED_COLUMNS:
        return None
    return _table5().get((PRINTED_COLUMNS[model], subset))


def audit(model: ExtractorCard, corpus: CorpusCard) -> Overlap:
    """Judge whether the weights of `model` may have been trained on the sounds of `corpus`."""
    ours, printed = _judge(model, corpus), _printed_verdict(model.name, corpus)
    if printed is None or printed == ours.verdict:
        return ours
    why = _why_not(model.name, corpus.name.removeprefix("vocsim:"))
    return Overlap(ours.verdict, f"{ours.why} (VocSim's Table 5 prints {printed}: {why})")


def _judge(model: ExtractorCard, corpus: CorpusCard) -> Overlap:
    if model.learns_here:
        return Overlap("confirmed", "it learns from these very sounds, never from their labels")
    if corpus.status == "synthetic":
        return Overlap("no evidence", "the sounds are computed here")
    if not model.pretraining:
        if model.parameters == 0:
            return Overlap("no evidence", "nothing was trained")
        return Overlap("unknown", "the model's card does not state what it was trained on")
    sources = [name.strip() for name in corpus.drawn_from.split(";") if name.strip()]
    for seen in model.pretraining:
        for source in sources:
            if _names(source, seen):
                return Overlap("confirmed", f"trained on {seen}")
            for name, collection in COLLECTIONS.items():
                if _names(name, seen) and any(_names(source, held) for held in collection.holds):
                    return Overlap("confirmed", f"trained on {seen}: {collection.why}")
    if not corpus.domain:
        return Overlap("unknown", "the corpus's card states neither a domain nor where its sounds come from")
    if corpus.status == "blind":
        return Overlap("no evidence", "the recordings were never public")
    # What a subset is drawn from tells its kind as well: the imitations of VocSim are in the domain of speech.
    kind = f"{corpus.domain} {corpus.drawn_from}".lower()
    for seen in model.pretraining:
        for name, collection in COLLECTIONS.items():
            if _names(name, seen) and any(word in kind for word in collection.covers):
                return Overlap("likely", f"trained on {seen}: {collection.why}")
    return Overlap("no evidence", f"trained on {', '.join(model.pretraining)}")


def _names(name: str, text: str) -> bool:
    """Whether a text mentions a name as words of its own, whatever the case and the marks between them."""
    words = [re.escape(word) for word in re.findall(r"[a-z0-9]+", name.lower())]
    return re.search(r"\b" + r"[\W_]*".join(words) + r"\b", text.lower().replace("_", " ")) is not None
