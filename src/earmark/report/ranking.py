"""Which rows may be ranked against each other: those of systems that were scored on the same clips.

A system that failed on clips is compared with the others on the clips that all of them have. One that lost more than
half of its clips is not compared at all: what is left of them is not the corpus. Where the systems that remain share
fewer than half of the clips, none of them is called the best.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from earmark.report.score_index import ScoreIndex, Subset, different_clips, subset
from earmark.scores import Row, Scores
from earmark.scores.spelling import paired
from earmark.wording import all_of, counted, listed

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
    rows `<metric>:difference` on the same clips: of the best representation against each other one, and of all pairs.
    """

    scores: Scores
    differences: Scores = field(default_factory=Scores)
    counts: tuple[ClipCount, ...] = ()
    shared: tuple[SharedClips, ...] = ()

    @cached_property
    def index(self) -> ScoreIndex:
        return ScoreIndex(self.scores)

    @cached_property
    def _failing(self) -> dict[tuple[str, str, str], ClipCount]:
        return {count[:3]: count for count in self.counts if count.scored < count.clips}

    @cached_property
    def _tested(self) -> dict[tuple[str, ...], Row]:
        return {row.key: row for row in self.differences}

    @cached_property
    def _too_few(self) -> dict[Subset, SharedClips]:
        return {Subset(item.suite, item.subset): item for item in self.shared if not item.enough}

    def clips_beside(self, row: Row) -> str:
        """`290 of 300 clips`, for the cell of a system that failed on clips."""
        count = self._failing.get((row.suite, row.subset, row.system))
        return f"{count.scored} of {counted(count.clips, 'clip')}" if count else ""

    def difference(self, row: Row) -> Row | None:
        """The best of the row's subset against the row."""
        return self._tested.get((*row.key[:-1], f"{row.metric}:difference"))

    def pair(self, first: Row, second: Row) -> Row | None:
        """The first row minus the second, where all pairs were compared."""
        known = self._tested.get(pair_key(first, second))
        if known is not None:
            return known
        turned = self._tested.get(pair_key(second, first))
        if turned is None or turned.value is None:
            return turned
        ends = [None if end is None else -end for end in (turned.high, turned.low)]
        return replace(turned, value=-turned.value, low=ends[0], high=ends[1])

    @property
    def unranked(self) -> Collection[Subset]:
        """Subsets that have no best, whatever the metric."""
        return self._too_few.keys()

    def hindrance(self, place: Subset, rows: Collection[Row]) -> str:
        """Why none of some rows of a subset may be called the best; nothing where one may."""
        if shared := self._too_few.get(place):
            clips = f"{shared.shared} of {counted(shared.clips, 'clip')}"
            return f"its {counted(shared.systems, 'system')} share only {clips}"
        how = different_clips(rows)
        return f"its systems were scored on different clips ({how})" if how else ""


def pair_key(first: Row, second: Row) -> tuple[str, ...]:
    """The key of the row that holds the first minus the second."""
    return (
        second.suite, second.subset, f"{first.system} - {second.system}", paired(first.distance, second.distance),
        paired(first.correction, second.correction), second.protocol, f"{second.metric}:difference",
    )  # fmt: skip


def rank(
    scores: Scores,
    compared: Scores | None = None,
    counts: Sequence[ClipCount] = (),
    shared: Sequence[SharedClips] = (),
) -> Ranking:
    """The ranking of a score table; `compared` are the rows on shared clips and the differences between systems."""
    compared = compared or Scores()
    again = ScoreIndex(compared).by_subset
    lost = {count[:3] for count in counts if count.lost_most}
    rows: list[Row] = []
    for row in scores:
        place = subset(row)
        if place in again:
            rows += again[place]
            again[place] = []
        elif (row.suite, row.subset, row.system) not in lost:
            rows.append(row)
    differences = Scores(tuple(row for row in compared if row.statistic == "difference"))
    return Ranking(Scores(tuple(rows), notes=scores.notes), differences, tuple(counts), tuple(shared))


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
    for (_, name, scored, clips), systems in groups.items():
        where = f" of {name}" if several else ""
        names = [system or "the vectors" for system in systems]
        more = len(names) - _NAMED
        who = listed(names) if more <= 1 else f"{', '.join(names[:_NAMED])} and {more} more systems"
        is_, was = ("is", "was") if len(names) == 1 else ("are", "were")
        if 2 * scored < clips:
            lost = f"{clips - scored} of {counted(clips, 'clip')}{where}"
            said.append(f"{who} failed on {lost}, more than half, and {is_} not ranked.")
        else:
            said.append(f"{who} {was} scored on {scored} of {counted(clips, 'clip')}{where}.")
    for shared in ranking.shared:
        if shared.enough:
            where = f" of {shared.subset}" if several else ""
            said.append(
                f"Systems are compared on the {counted(shared.shared, 'clip')}{where} that {all_of(shared.systems)} of "
                "them have."
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
