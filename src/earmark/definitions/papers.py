"""The boards of the VocSim and Codec-SUPERB papers, defined by what the papers print."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from earmark import published
from earmark.definitions.board import BLIND, BoardMetric, BoardSubset, Definition, MainColumn, Reference, SubsetGroup
from earmark.published import PAPERS
from earmark.scores import RULES, VOCSIM_SUBSETS
from earmark.scores.metrics import family

_LITE = ("BS4", "HS1", "HW2")
_VOCSIM_TEXT = """
VocSim asks whether the vectors of a model that nobody trains on it put recordings of the same thing together: the
same syllable of a finch, the same word, the same phone. Every clip looks for its nearest neighbours among all clips of
its subset; no classifier is trained.

Fifteen subsets are public. Four are blind: words and utterances of two languages of few speakers, which nobody but the
host of the benchmark may listen to. The paper ranks by the blind ones first, because nobody can have tuned to them.
"""
_CODEC_TEXT = """
Codec-SUPERB resynthesises recordings of speech, sounds and music with a codec and measures what is lost: several
measures of the signal are joined to one overall score of a dataset, and the datasets of a category to one score by
their harmonic mean. Beside these, it runs applications (speech recognition, speaker verification and others) on the
resynthesised sound.

The three categories stand side by side in the paper, which has no score over all of them. This board ranks by speech
first, where the paper begins.
"""


@cache
def paper_boards() -> Mapping[str, Definition]:
    """The definitions of the papers' boards by name."""
    return {board.name: board for board in (_vocsim(), _codec_superb())}


@cache
def _vocsim() -> Definition:
    paper = PAPERS["VocSim"]
    everything = tuple(subset.name for subset in VOCSIM_SUBSETS)
    groups = (
        _rule_group(BLIND, "Blind mean", "Blind"),
        _rule_group("public", "Public mean", "Public"),
        SubsetGroup("mean", f"Mean of all {len(everything)} subsets", f"All {len(everything)}", everything),
        _rule_group("domain:birdsong", "Birdsong", "Birds", narrow=True),
        _rule_group("domain:otter_calls", "Otter calls", "Otters", narrow=True),
        _rule_group("domain:human_speech", "Human speech", "Speech", narrow=True),
        _rule_group("domain:environmental_sounds", "Environmental sounds", "Env.", narrow=True),
        SubsetGroup("lite", "VocSim lite", "Lite", _LITE, column=False),
    )
    printed = ("P@1", "P@5", "GSR", "CSR", "CS", "CSCF", "purity")
    others = (*family("retrieval"), *family("separation"), *family("clustering"), *family("hubness"))
    metrics = dict.fromkeys((*printed, *others))
    blind = [MainColumn(metric, BLIND) for metric in ("P@1", "P@5", "GSR")]
    return Definition(
        "vocsim",
        "VocSim",
        "Whether the vectors of frozen audio models put recordings of the same thing together, without any training.",
        _VOCSIM_TEXT.strip(),
        Reference(f"{paper.title}. {paper.citation}"),
        metrics=tuple(map(BoardMetric, metrics)),
        subsets=_vocsim_subsets(),
        groups=groups,
        columns=(*blind, MainColumn("P@1", "public")),
        rank_by=(BLIND, "public"),
        other_subsets=False,
    )


def _rule_group(key: str, title: str, short: str, *, narrow: bool = False) -> SubsetGroup:
    return SubsetGroup(key, title, short, RULES[key].required(), narrow=narrow)


def _vocsim_subsets() -> tuple[BoardSubset, ...]:
    printed = {cell["subset"]: cell for cell in published.read("vocsim_table1_subsets")}
    found = []
    for subset in VOCSIM_SUBSETS:
        cell = printed[subset.name]
        clips, mean = int(cell["n_samples"]), float(cell["avg_dur_s"])
        found.append(
            BoardSubset(
                subset.name,
                subset.title,
                clips,
                int(cell["n_classes"]),
                round(clips * mean, 1),
                (int(cell["min_samples_per_class"]), int(cell["max_samples_per_class"])),
                (float(cell["min_dur_s"]), mean, float(cell["max_dur_s"])),
                subset.domain,
                subset.status == "blind",
            )
        )
    return tuple(found)


@cache
def _codec_superb() -> Definition:
    paper = PAPERS["Codec-SUPERB"]
    scores = published.load("codec-superb")
    category = {cell["dataset"]: cell["category"] for cell in published.read("codec_superb_scores")}
    datasets = [BoardSubset(name, domain=category[name]) for name in category]
    tasks = dict.fromkeys(row.subset for row in scores if row.subset not in category and ":" not in row.subset)
    others = [BoardSubset("NSynth", domain="music"), *(BoardSubset(name, task=True) for name in tasks)]
    groups = [_category(name, [each.name for each in datasets if each.domain == name]) for name in _CATEGORIES]
    groups.append(SubsetGroup("mean", "Mean of all datasets", "All", tuple(category), column=False))
    metrics = dict.fromkeys(
        (*family("overall"), *family("signal"), *(row.metric for row in scores), *family("reported"))
    )
    return Definition(
        "codec-superb",
        "Codec-SUPERB",
        "What is left of speech, sounds and music after a codec, and of the applications that listen to it.",
        _CODEC_TEXT.strip(),
        Reference(f"{paper.title}. {paper.citation}"),
        metrics=tuple(map(BoardMetric, metrics)),
        subsets=(*datasets, *others),
        groups=tuple(groups),
        columns=tuple(MainColumn("overall", name) for name in _CATEGORIES),
        rank_by=_CATEGORIES[:1],
        other_subsets=False,
    )


_CATEGORIES = ("speech", "audio", "music")


def _category(name: str, members: list[str]) -> SubsetGroup:
    title = name.capitalize()
    return SubsetGroup(name, title, title, tuple(members), harmonic=family("overall"))
