"""Has a model heard these sounds before? Its card against a corpus's card.

    confirmed     the corpus, or a collection known to hold it, is among what the weights were trained on
    likely        the weights saw a large collection of that kind of sound without a list of its recordings
    no evidence   neither
    unknown       one of the two cards does not say

A verdict is about what is written down, not about recordings compared with one another: "no evidence" is not "no".
A corpus states `drawn_from` (names of public corpora, separated by ";") and `domain`; a model states `pretraining`.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from earmark.corpora.clips import CorpusCard
from earmark.extractors.contract import ExtractorCard

__all__ = ["COLLECTIONS", "Collection", "Overlap", "audit"]

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
    "web": Collection((), (*SPEECH,), "collected from the web without a list"),
    "YouTube": Collection((), (*SPEECH, *EVENTS), "collected without a list"),
    "xeno-canto": Collection((), BIRDS, "an open collection of bird recordings"),
    "Macaulay": Collection((), BIRDS, "a large collection of bird recordings"),
}


class Overlap(NamedTuple):
    """A verdict and the sentence it rests on."""

    verdict: Verdict
    why: str


def audit(model: ExtractorCard, corpus: CorpusCard) -> Overlap:
    """Judge whether the weights of `model` may have been trained on the sounds of `corpus`."""
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
    for seen in model.pretraining:
        for name, collection in COLLECTIONS.items():
            if _names(name, seen) and any(word in corpus.domain.lower() for word in collection.covers):
                return Overlap("likely", f"trained on {seen}: {collection.why}")
    return Overlap("no evidence", f"trained on {', '.join(model.pretraining)}")


def _names(name: str, text: str) -> bool:
    """Whether a text mentions a name as words of its own, whatever the case and the marks between them."""
    words = [re.escape(word) for word in re.findall(r"[a-z0-9]+", name.lower())]
    return re.search(r"\b" + r"[\W_]*".join(words) + r"\b", text.lower().replace("_", " ")) is not None
