"""Systems of a run against each other, on the clips they share.

    scores.csv        every system on the clips it has
    comparisons.csv   where systems of a subset differ in their clips: each of them on the clips that all have;
                      and the differences between the best representation and each other one

A system that lost more than half of its clips is left out, and where the others share fewer than half of them nothing
is measured again: `earmark.report.ranking` has the rule, and makes the ranking from both files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from earmark.pipeline.cache import Cache
from earmark.pipeline.models import System
from earmark.pipeline.prepare import Subset
from earmark.report.answer import lead
from earmark.report.ranking import ClipCount, Ranking, SharedClips, lost_said, rank
from earmark.scores import Row, Scores, load_scores

FILE = "comparisons.csv"

Measure = Callable[[Subset, System, tuple[int, ...]], list[Row]]
"""Rows of a system over some clips of a subset, given by their places."""


def rows_on_shared_clips(
    subset: Subset, systems: Mapping[str, tuple[System, tuple[int, ...]]], measure: Measure
) -> list[Row]:
    """The rows of every ranked system on the clips that all have; none where the ranked ones have the same clips.

    `systems` gives each system and the places of its clips.
    """
    counts = {name: ClipCount(subset.suite, subset.name, name, len(rows), len(subset.clips))
              for name, (_, rows) in systems.items()}  # fmt: skip
    ranked = [found for name, found in systems.items() if not counts[name].lost_most]
    if len({rows for _, rows in ranked}) < 2:
        return []
    shared = tuple(sorted(set.intersection(*(set(rows) for _, rows in ranked))))
    if not SharedClips(subset.suite, subset.name, len(shared), len(subset.clips), len(ranked)).enough:
        return []
    return [row for system, _ in ranked for row in measure(subset, system, shared)]


def differences(ranking: Ranking, evaluations: Sequence[Mapping[str, Any]], cache: Cache) -> list[Row]:
    """The best representation of each subset and protocol against each other one, on the same clips.

    Rows `P@1:difference` stand under the other representation's name (system, distance, correction): the value of the
    best minus its own, with low, high, p_value, unit, units, and comparisons, which they are corrected for. They are
    paired by what each evaluation holds per unit; `evaluations` says under which key each lies in the cache, those of
    shared clips before those of all. Where there are none, the report decides by the intervals of the two values.
    """
    return []


# --- what a run folder says -----------------------------------------------------------------------------------------


def clip_counts(record: Mapping[str, Any]) -> list[ClipCount]:
    """On how many clips of each subset each system was scored; empty when the record knows no vectors."""
    vectors = {(one["suite"], one["subset"], one["system"]): one for one in record["vectors"]}
    if not vectors:
        return []
    found = []
    for subset in record["subsets"]:
        for system in record["systems"]:
            key = subset["suite"], subset["subset"], system["system"]
            scored = vectors[key]["clips"] if key in vectors else 0
            found.append(ClipCount(*key, scored, subset["clips"]))
    return found


def shared_clips(record: Mapping[str, Any]) -> list[SharedClips]:
    """How many clips the ranked systems share, of every subset where they differ in their clips."""
    ranked = {count[:3]: count for count in clip_counts(record) if not count.lost_most}
    found = []
    for subset in record["subsets"]:
        place = subset["suite"], subset["subset"]
        left_out = [
            frozenset(one["left_out"])
            for one in record["vectors"]
            if (one["suite"], one["subset"]) == place and (*place, one["system"]) in ranked
        ]
        if len(set(left_out)) > 1:
            copies = subset.get("copies", {}).get("left_out", 0)
            shared = subset["clips"] + copies - len(frozenset().union(*left_out))
            found.append(SharedClips(*place, shared, subset["clips"], len(left_out)))
    return found


def ranking_of(record: Mapping[str, Any], scores: Scores, compared: Scores) -> Ranking:
    """The ranking of a run, from what its folder holds."""
    return rank(scores, compared, clip_counts(record), shared_clips(record))


def told(record: Mapping[str, Any], scores: Scores, place: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The answer of a run in sentences, and those about systems that lost most of their clips."""
    ranking = ranking_of(record, scores, read_comparisons(place))
    return tuple(lead(ranking)), tuple(lost_said(ranking.counts))


def read_comparisons(folder: Path) -> Scores:
    """RUN/comparisons.csv; an empty table when the run has none."""
    path = folder / FILE
    return load_scores(path) if path.exists() else Scores()


def write_comparisons(folder: Path, rows: Sequence[Row]) -> None:
    """RUN/comparisons.csv; a file of an earlier run goes when there is nothing to compare."""
    if rows:
        Scores(tuple(rows)).write(folder / FILE)
    else:
        (folder / FILE).unlink(missing_ok=True)
