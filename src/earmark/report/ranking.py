"""Which rows may be ranked against each other: those of systems that were scored on the same clips.

A system that failed on clips is compared with the others on the clips that all of them have. One that lost more than
half of its clips is not compared at all: what is left of them is not the corpus. Where the systems that remain share
fewer than half of the clips, none of them is called the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from earmark.report import reading
from earmark.report.reading import Subset, listed
from earmark.scores import Row, Scores
from earmark.wording import counted

_NAMED = 3  # systems that are named in a sentence


class ClipCount(NamedTuple):
    """On how many of a subset's clips a system was scored."""

    suite: str
    subset: str
    system: str
    scored: int
    clips: int

    @property
    def lost_most(self) -> bool:
        """Whether more than half of the clips failed: the system is not ranked."""
        return 2 * self.scored < self.clips


class SharedClips(NamedTuple):
    """How many clips of a subset all its ranked systems have, where they differ in their clips."""

    suite: str
    subset: str
    shared: int
    clips: int
    systems: int

    @property
    def enough(self) -> bool:
        return 2 * self.shared >= self.clips


@dataclass(frozen=True, eq=False)
class Ranking:
    """The rows that are ranked, and what a reader must know of them.

    `scores` holds one row for each measurement: of the shared clips where systems differ in theirs. `differences` are
    rows `<metric>:difference` of the best representation against each other one, on the same clips.
    """

    scores: Scores
    differences: Scores = field(default_factory=Scores)
    counts: tuple[ClipCount, ...] = ()
    shared: tuple[SharedClips, ...] = ()

    @cached_property
    def _failing(self) -> dict[tuple[str, str, str], ClipCount]:
        failing = (count for count in self.counts if count.scored < count.clips)
        return {(count.suite, count.subset, count.system): count for count in failing}

    @cached_property
    def _tested(self) -> dict[tuple[str, ...], Row]:
        return {row.key: row for row in self.differences}

    def count(self, row: Row) -> ClipCount | None:
        """On how many clips the row's system was scored, where some of them failed."""
        return self._failing.get((row.suite, row.subset, row.system))

    def difference(self, row: Row) -> Row | None:
        """The best of the row's subset against the row."""
        return self._tested.get((*row.key[:-1], f"{row.metric}:difference"))

    @cached_property
    def unranked(self) -> frozenset[Subset]:
        """Subsets that have no best, whatever the metric."""
        return frozenset(Subset(found.suite, found.subset) for found in self.shared if not found.enough)

    def hindrance(self, place: Subset, rows: Sequence[Row]) -> str:
        """Why none of some rows of a subset may be called the best; nothing where one may."""
        for found in self.shared:
            if (found.suite, found.subset) == place and not found.enough:
                return f"its {found.systems} systems share only {found.shared} of {found.clips} clips"
        if reading.same_clips(rows):
            return ""
        counts = [row.n for row in rows if row.n is not None]
        return f"its systems were scored on different clips (n = {min(counts)} to {max(counts)})"


def rank(
    scores: Scores,
    compared: Scores | None = None,
    counts: Sequence[ClipCount] = (),
    shared: Sequence[SharedClips] = (),
) -> Ranking:
    """The ranking of a score table; `compared` are the rows on shared clips and the differences between systems."""
    found = compared or Scores()
    again: dict[Subset, list[Row]] = {}
    for row in reading.single_subsets(found):
        again.setdefault(reading.subset(row), []).append(row)
    lost = {(count.suite, count.subset, count.system) for count in counts if count.lost_most}
    rows: list[Row] = []
    for row in scores:
        place = reading.subset(row)
        if place in again:
            rows += again[place]
            again[place] = []
        elif (row.suite, row.subset, row.system) not in lost:
            rows.append(row)
    differences = Scores(tuple(row for row in found if row.statistic == "difference"))
    kept = Scores(tuple(rows), notes=scores.notes)
    return Ranking(kept, differences, tuple(counts), tuple(shared))


# --- in words -----------------------------------------------------------------------------------------------------


def clips_said(ranking: Ranking) -> list[str]:
    """Sentences about systems that failed on clips; none where every system has every clip."""
    groups: dict[tuple[str, str, int, int], list[str]] = {}
    for count in ranking.counts:
        if count.scored < count.clips:
            key = count.suite, count.subset, count.scored, count.clips
            groups.setdefault(key, []).append(count.system)
    several = len({count.subset for count in ranking.counts}) > 1
    said = []
    for (_, subset, scored, clips), systems in groups.items():
        where = f" of {subset}" if several else ""
        if 2 * scored < clips:
            lost = f"{clips - scored} of {clips} clips{where}"
            said.append(f"{_named(systems)} failed on {lost}, more than half, and {_is(systems)} not ranked.")
        else:
            said.append(f"{_named(systems)} {_was(systems)} scored on {scored} of {clips} clips{where}.")
    for found in ranking.shared:
        if found.enough:
            where = f" of {found.subset}" if several else ""
            said.append(
                f"Systems are compared on the {found.shared} clips{where} that all {found.systems} of them have."
            )
    return said


def lost_said(counts: Sequence[ClipCount]) -> list[str]:
    """A sentence for each system and subset that lost most of its clips."""
    return [
        f"{count.system} failed on {count.clips - count.scored} of {counted(count.clips, 'clip')} of "
        f"{count.subset or count.suite}: more than half, so it is not ranked"
        for count in counts
        if count.lost_most
    ]


def beside_value(ranking: Ranking, row: Row) -> str:
    """290 of 300 clips, for the cell of a system that failed on clips."""
    count = ranking.count(row)
    return f"{count.scored} of {count.clips} clips" if count else ""


def _named(systems: Sequence[str]) -> str:
    names = [system or "the vectors" for system in systems]
    rest = len(names) - _NAMED
    return listed(names) if rest <= 1 else f"{', '.join(names[:_NAMED])} and {rest} more systems"


def _is(systems: Sequence[str]) -> str:
    return "is" if len(systems) == 1 else "are"


def _was(systems: Sequence[str]) -> str:
    return "was" if len(systems) == 1 else "were"
