"""What a report is about, as plain values: fill a `ReportData` from any source and hand it to `write_report`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.corpora.clips import CorpusCard
from earmark.errors import InputError
from earmark.report.ranking import ClipCount, Ranking, SharedClips, rank
from earmark.report.score_index import ScoreIndex
from earmark.scores import Scores
from earmark.vectors.several_labels import labels_agree

FileKind = Literal["failed", "dropped", "truncated", "converted"]


class Durations(NamedTuple):
    """Seconds: the shortest, middle, mean and longest clip, and all of them together; NaN where nobody says."""

    shortest: float
    median: float
    mean: float
    longest: float
    total: float


@dataclass(frozen=True, kw_only=True)
class SubsetFacts:
    """What is known of a subset before it is scored. `per_class` is the fewest and the most clips of a class, `dri`
    the dynamic range index in dB, where somebody measured it."""

    subset: str
    suite: str = ""
    title: str = ""
    domain: str = ""
    status: str = "local"
    clips: int
    classes: int
    per_class: tuple[int, int] | None = None
    groups: int | None = None
    durations: Durations | None = None
    dri: float | None = None


@dataclass(frozen=True, kw_only=True)
class FileNote:
    """What happened to one clip that was not simply used: `reason` says why, `outcome` what was done instead."""

    clip: str
    kind: FileKind
    reason: str
    outcome: str = ""
    subset: str = ""
    label: str = ""
    path: str = ""
    system: str = ""


@dataclass(frozen=True, kw_only=True)
class OverlapNote:
    """Whether a model may have been trained on a subset's sounds: confirmed, likely, no evidence or unknown."""

    model: str
    subset: str
    verdict: str
    why: str


@dataclass(frozen=True, kw_only=True)
class CopyNote:
    """Clips of a subset that are one sound: how many, what was done with them (drop or keep), and some of the sets."""

    subset: str
    policy: str
    sounds: int
    clips: int
    left_out: int
    under_several_labels: int
    examples: Sequence[tuple[Sequence[str], Sequence[str]]] = ()
    """Ids and labels of some sets."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long a stage took."""

    stage: str
    seconds: float
    detail: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class CloseUp:
    """One representation of one subset, clip by clip. Rows of every field are the same clips in the same order.

    vectors    [N, D]; without them there is no map, and no distances beside the worst retrievals.
    nearest    the row of each clip's nearest neighbour, NaN or -1 where it has none (`nearest_row` of an
               evaluation with per_point=True).
    per_point  values by metric, NaN where a clip was excluded ("P@1", "GSR", "hub_ratio" …).
    fetch      a clip's samples and rate from its row; it may raise, and that clip is then shown without sound.
    hub_k      the k of the k-occurrences in per_point["hub_ratio"].
    separator  between the labels of a clip that has several; and the label of clips that hold none of the classes.
    """

    subset: str
    system: str
    distance: str
    labels: Sequence[str | None]
    ids: Sequence[str]
    nearest: ArrayLike
    suite: str = ""
    protocol: str = "all"
    correction: str = "none"
    ties: Literal["average", "ordinal"] = "average"
    vectors: NDArray[Any] | None = None
    groups: Sequence[str | None] | None = None
    per_point: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    fetch: Callable[[int], tuple[NDArray[Any], int]] | None = None
    hub_k: int = 5
    separator: str = ""
    background: str = ""

    def agree(self, query: int, row: int) -> bool:
        """Whether a neighbour is right: it has the query's label, or shares one; of background none is wrong."""
        return labels_agree(self.labels[query], self.labels[row], self.separator, self.background)

    def __post_init__(self) -> None:
        lengths = {"labels": len(self.labels), "ids": len(self.ids), "nearest": len(np.asarray(self.nearest))}
        lengths |= {} if self.vectors is None else {"vectors": len(self.vectors)}
        lengths |= {} if self.groups is None else {"groups": len(self.groups)}
        lengths |= {f"per_point[{name!r}]": len(found) for name, found in self.per_point.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise InputError(f"A close-up of {self.subset} has fields of different lengths: {said}.")

    @property
    def label(self) -> str:
        measure = self.distance if self.correction in ("", "none") else f"{self.distance} {self.correction}"
        return f"{self.subset or self.suite or 'all clips'}: {self.system or 'vectors'} · {measure}"

    @property
    def heading(self) -> str:
        """The label, with the protocol where that is across groups."""
        return self.label + (" (across groups)" if self.protocol == "across_groups" else "")


class OtherLook(NamedTuple):
    """A representation that is not the best: its heading, and its close-up, opened when it is drawn."""

    heading: str
    open: Callable[[], CloseUp]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportData:
    """Everything a report says. Only `title` and `scores` are needed; a section without data says so or is left out.

    settings  name and value of what a reader would ask for: permutations, intervals, seed, min_class_size …
    versions  of Earmark's companions: Python, NumPy, the models.
    methods   a paragraph that a paper may take over.
    inputs    what was hashed and its hash: corpora, files, models.
    others    representations to look at beside those of the close-ups, in short; `unseen` names those left out.
    tables    title and relative address of files beside the report.
    compared  rows of the clips that all systems of a subset have, where they differ in theirs, and differences.
    counts    on how many clips of each subset each system was scored; without them nothing failed.
    shared    how many clips are shared, of the subsets whose systems differ in their clips.
    """

    title: str
    scores: Scores
    generated: str = ""
    version: str = ""
    cards: Sequence[CorpusCard] = ()
    subsets: Sequence[SubsetFacts] = ()
    files: Sequence[FileNote] = ()
    notes: Sequence[str] = ()
    unsteady: Sequence[str] = ()  # models that did not repeat themselves, and how far they were off
    timings: Sequence[Timing] = ()
    config: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    methods: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    close_ups: Sequence[CloseUp] = ()
    others: Sequence[OtherLook] = ()
    unseen: Sequence[str] = ()
    overlaps: Sequence[OverlapNote] = ()
    compared: Scores = field(default_factory=Scores)
    counts: Sequence[ClipCount] = ()
    shared: Sequence[SharedClips] = ()
    copies: Sequence[CopyNote] = ()
    seed: int = 0
    sound_budget: int = 4_500_000
    """Characters of the file that sounds may take, all together."""

    @cached_property
    def ranking(self) -> Ranking:
        """The rows that are ranked: everything that names a best rests on them."""
        return rank(self.scores, self.compared, self.counts, self.shared)

    @cached_property
    def index(self) -> ScoreIndex:
        """Every row, sorted; those of `ranking` have their own."""
        return ScoreIndex(self.scores)

    @property
    def synthetic(self) -> bool:
        return "synthetic" in {*(card.status for card in self.cards), *(item.status for item in self.subsets)}
