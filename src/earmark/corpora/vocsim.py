"""VocSim: 19 subsets of single-source clips, 15 public and 4 blind, with a card and the published numbers of each.

    vocsim            the 15 public subsets
    vocsim:BS1,BS2    some of them
    vocsim:BS1?from=copies/vocsim    from a local copy: a saved dataset, Parquet files, a manifest, a folder

The default source is the public dataset on the Hugging Face hub; the variable EARMARK_VOCSIM names another once
and for all. A source needs a subset column that holds the names below.

Numbers, sources and licences are those that the paper states. Where a source states another licence itself, the
stricter one stands here and the note says so.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

from earmark.corpora.clips import Corpus, CorpusCard
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.scores import VOCSIM_SUBSETS

HUB_ID = "vocsim/public-benchmark"
VARIABLE = "EARMARK_VOCSIM"
_PAPER = "VocSim: a training-free benchmark for content identity in single-source audio embeddings"


class BlindSubset(InputError):
    """The subset exists, and nobody outside may have its sounds."""


class Published(NamedTuple):
    """A row of the paper's Table 1: counts, seconds, and the dynamic range index in dB."""

    clips: int
    classes: int
    per_class: float
    smallest: int
    largest: int
    seconds: float
    shortest: float
    longest: float
    dri: int


PUBLISHED: dict[str, Published] = {
    "BC": Published(3321, 28, 118.6, 6, 605, 0.33, 0.03, 2.99, 15),
    "BS1": Published(473, 6, 78.8, 78, 79, 0.08, 0.03, 0.17, 20),
    "BS2": Published(10001, 36, 277.8, 6, 1209, 0.13, 0.03, 0.26, 15),
    "BS3": Published(9988, 46, 217.1, 2, 1374, 0.07, 0.03, 0.20, 20),
    "BS4": Published(7035, 64, 109.9, 9, 129, 0.13, 0.03, 0.83, 31),
    "BS5": Published(8244, 30, 274.8, 42, 333, 0.70, 0.03, 4.99, 26),
    "ES1": Published(2000, 50, 40.0, 40, 40, 5.00, 5.00, 5.00, 35),
    "HP": Published(10687, 68, 157.2, 8, 176, 0.09, 0.03, 0.49, 18),
    "HS1": Published(1670, 14, 119.3, 6, 713, 0.88, 0.04, 2.98, 26),
    "HS2": Published(8918, 236, 37.8, 9, 93, 2.88, 0.04, 6.00, 28),
    "HU1": Published(14463, 1245, 11.6, 6, 50, 3.21, 1.24, 6.10, 34),
    "HU2": Published(17041, 1366, 12.5, 6, 130, 0.64, 0.03, 1.49, 22),
    "HU3": Published(1703, 183, 9.3, 6, 24, 1.40, 0.40, 3.00, 20),
    "HU4": Published(1001, 80, 12.5, 6, 44, 0.99, 0.47, 1.98, 15),
    "HW1": Published(11532, 754, 15.3, 6, 100, 0.40, 0.07, 1.10, 20),
    "HW2": Published(8827, 1324, 6.7, 6, 7, 0.39, 0.08, 1.00, 19),
    "HW3": Published(4540, 368, 12.3, 6, 24, 1.01, 0.32, 2.00, 20),
    "HW4": Published(3497, 215, 16.3, 6, 46, 0.97, 0.46, 2.00, 15),
    "OC1": Published(441, 21, 21.0, 9, 32, 0.87, 0.28, 5.32, 23),
}


class _Source(NamedTuple):
    """Where the recordings of one or more subsets come from."""

    subsets: tuple[str, ...]
    source: str
    licence: str
    citation: str
    notes: str = ""
    drawn_from: str = ""


_NOT_PUBLIC = "not public: held by the communities recorded"
_SOURCES = (
    _Source(("BC",), "https://doi.org/10.6084/m9.figshare.11905533.v1", "CC BY 4.0",
            "Elie & Theunissen 2020; Elie & Theunissen 2015", "Calls of the domesticated zebra finch, 50 birds."),
    _Source(("BS1",), "https://doi.org/10.25625/ZXJJJY", "CC0 1.0",
            "Clemens 2021; Steinfath et al. 2021", "Song of one zebra finch, from the Deep Audio Segmenter's data."),
    _Source(("BS2",), "http://hdl.handle.net/20.500.11850/673918", "CC BY 4.0",
            "Tomka et al. 2024", "Clustered vocalisations of four zebra finches."),
    _Source(("BS3",), "https://doi.org/10.6084/m9.figshare.4805749", "CC BY 4.0",
            "Nicholson et al. 2017; Cohen et al. 2022",
            "Bengalese finch song repository, four birds. The paper's two versions give two figshare records "
            "(6025748 and 4805749)."),
    _Source(("BS4",), "https://doi.org/10.7554/eLife.63853", "CC BY 4.0",
            "Cohen et al. 2022", "Bengalese finch syllables published with TweetyNet."),
    _Source(("BS5",), "https://doi.org/10.5281/zenodo.6521932", "CC BY 4.0",
            "Giraudon et al. 2021", "Labelled songs of one domestic canary, spring 2016."),
    _Source(("ES1",), "https://doi.org/10.1145/2733373.2806390", "CC BY-NC 3.0",
            "Piczak 2015", "ESC-50. The paper states CC BY 4.0; the dataset itself is CC BY-NC 3.0.",
            "ESC-50; Freesound"),
    _Source(("HP", "HW1"), "https://huggingface.co/datasets/gilkeyio/librispeech-alignments", "CC BY 4.0",
            "Panayotov et al. 2015; McAuliffe et al. 2017",
            "Read English, LibriSpeech, cut at forced alignments (phones, words).", "LibriSpeech"),
    _Source(("HU1",), "https://huggingface.co/datasets/CSTR-Edinburgh/vctk", "CC BY 4.0",
            "Yamagishi et al. 2019", "Read English sentences in many accents.", "VCTK"),
    _Source(("HS2",), "https://doi.org/10.5281/zenodo.1251982; https://doi.org/10.5281/zenodo.1340763",
            "open (Vocal Sketch); CC BY 4.0 (Vocal Imitation Set)",
            "Cartwright & Pardo 2015; Kim & Pardo 2018", "People imitating sounds with their voices.",
            "Vocal Imitation Set; VocalSketch"),
    _Source(("HS1", "HW2", "HU2"), "https://groups.inf.ed.ac.uk/ami/corpus/", "CC BY 4.0",
            "Carletta et al. 2005", "Meetings: sounds that are not words, words, utterances.", "AMI"),
    _Source(("HW3", "HU3"), "https://www.acqdiv.uzh.ch/en/resources.html", _NOT_PUBLIC,
            "Stoll & Bickel 2013", "Shipibo-Conibo, words and utterances."),
    _Source(("HW4", "HU4"), "https://www.acqdiv.uzh.ch/en/resources.html", _NOT_PUBLIC,
            "Stoll & Bickel 2013", "Chintang, words and utterances, from 90 sessions."),
    _Source(("OC1",), "https://doi.org/10.1371/journal.pone.0112562", "CC BY 4.0",
            "Mumm & Knörnschild 2014", "Calls of giant otters, adult and newborn."),
)  # fmt: skip


CARDS: dict[str, CorpusCard] = {
    subset.name: CorpusCard(
        name=f"vocsim:{subset.name}",
        title=subset.title,
        source=recordings.source,
        licence=recordings.licence,
        citation=f"{recordings.citation}; in {_PAPER}",
        domain=subset.domain,
        drawn_from=recordings.drawn_from,
        status="blind" if subset.status == "blind" else "public",
        notes=recordings.notes,
    )
    for subset in VOCSIM_SUBSETS
    for recordings in _SOURCES
    if subset.name in recordings.subsets
}
PUBLIC = tuple(name for name, card in CARDS.items() if card.status == "public")


def open_vocsim(subsets: str = "", *, source: str | None = None) -> Corpus:
    """Open public subsets of VocSim from the hub or from a copy.

    `subsets` is a list such as "BS1,BS2" (empty: every public one), with `?from=PLACE` behind it if wanted.
    Raises BlindSubset for the four subsets that are not public.
    """
    text, _, option = subsets.partition("?")
    names = _wanted(text)
    if option:
        key, _, place = option.partition("=")
        if key != "from" or not place:
            raise UsageError(f"vocsim has no option {option!r}: write vocsim:{text}?from=PLACE.")
        source = place
    source = source or os.environ.get(VARIABLE) or f"hub:{HUB_ID}"
    from earmark.corpora.source import open_corpus

    try:
        corpus = open_corpus(source)
    except InputError as error:
        if source != f"hub:{HUB_ID}":
            raise
        raise InputError(f"{str(error).rstrip('.')}; for VocSim, the variable {VARIABLE} can name a copy.") from error
    by_subset = corpus.subsets()
    missing = [name for name in names if name not in by_subset]
    if missing:
        others = ", ".join(sorted(by_subset.keys() - {""})[:20]) or "none"
        raise InputError(
            f"{source} has no clips of {', '.join(missing)} (subsets there: {others}): "
            "a copy of VocSim has a subset column with the published names."
        )
    # Where a copy does not have the published size, the scores are not comparable, and the reader should know.
    notes = [
        f"{name} has {len(by_subset[name])} clips here and {PUBLISHED[name].clips} in the paper."
        for name in names
        if len(by_subset[name]) != PUBLISHED[name].clips
    ]
    clips = [clip for name in names for clip in by_subset[name]]
    cards = {name: CARDS[name] for name in names}
    if len(names) == 1:
        card = replace(cards[names[0]], revision=source)
    else:
        card = CorpusCard(
            name="vocsim",
            title=f"VocSim, {len(names)} public subsets",
            source=source,
            licence="; ".join(dict.fromkeys(card.licence for card in cards.values())),
            citation=_PAPER,
            domain="; ".join(dict.fromkeys(card.domain for card in cards.values())),
            status="public",
        )
    return Corpus(card, clips, (*corpus.notes, *notes), cards)


def _wanted(text: str) -> list[str]:
    names = [name.strip().upper() for name in text.split(",") if name.strip()] or list(PUBLIC)
    for name in names:
        if name not in CARDS:
            raise UsageError(f"VocSim has no subset {name!r}.{did_you_mean(name, CARDS)} Known: {', '.join(CARDS)}.")
        if CARDS[name].status == "blind":
            raise BlindSubset(
                f"VocSim's subset {name} ({CARDS[name].title}) cannot be loaded: its recordings are of a low-resource "
                "language, stay with the community that was recorded, and are evaluated only on the server that holds "
                "them; use a public subset, or submit a model for blind evaluation."
            )
    return list(dict.fromkeys(names))
