"""Systems of a run against each other, on the clips they share.

    scores.csv        every system on the clips it has
    comparisons.csv   where systems of a subset differ in their clips: each of them on the clips that all have;
                      and the differences between the best representation and each other one

A system that lost more than half of its clips is left out, and where the others share fewer than half of them nothing
is measured again: `earmark.report.ranking` has the rule, and makes the ranking from both files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.corpora.subsets import PreparedSubset
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.evaluation import compare
from earmark.places import locate
from earmark.report.answer import lead
from earmark.report.ranking import ClipCount, Ranking, SharedClips, lost_said, rank
from earmark.report.score_index import ranked
from earmark.report.score_index import subset as subset_of
from earmark.representations import _evaluate as measuring
from earmark.representations._folder import load_vectors
from earmark.representations._systems import System
from earmark.representations.config import RunConfig
from earmark.runs.folder import read_clips, read_record
from earmark.runs.store import Cache
from earmark.scores import KEY, Row, Scores, load_scores, metric_facts
from earmark.scores.spelling import without_sample

FILE = "comparisons.csv"

Measure = Callable[[PreparedSubset, System, tuple[int, ...]], list[Row]]
"""Rows of a system over some clips of a subset, given by their places."""


def rows_on_shared_clips(
    subset: PreparedSubset, systems: Mapping[str, tuple[System, tuple[int, ...]]], measure: Measure
) -> list[Row]:
    """The rows of every ranked system on the clips that all have; none where the ranked ones have the same clips.

    `systems` gives each system and the places of its clips.
    """
    counts = {name: ClipCount(subset.suite, subset.name, name, len(rows), len(subset.clips))
              for name, (_, rows) in systems.items()}  # fmt: skip
    ranked = [pair for name, pair in systems.items() if not counts[name].lost_most]
    if len({rows for _, rows in ranked}) < 2:
        return []
    shared = tuple(sorted(set.intersection(*(set(rows) for _, rows in ranked))))
    if not SharedClips(subset.suite, subset.name, len(shared), len(subset.clips), len(ranked)).enough:
        return []
    return [row for system, _ in ranked for row in measure(subset, system, shared)]


def differences(ranking: Ranking, evaluations: Sequence[Mapping[str, Any]], cache: Cache) -> list[Row]:
    """The best representation of each subset and protocol against each other one, on the same clips.

    Rows `P@1:difference` stand under the other representation's name (system, distance, correction): the value of the
    best minus its own, paired unit by unit. `evaluations` says under which key each measurement lies in the cache,
    those of shared clips first; one that holds no values without each unit has no row, and the report then decides by
    intervals. The best was picked among all, so interval and p-value are corrected for the number of all pairs.
    """
    metric = ranking.index.headline
    keys: dict[tuple[str, ...], str] = {}
    for job in evaluations:
        keys.setdefault(tuple(job[name] for name in KEY[:5]), job["key"])

    def without_each(row: Row) -> NDArray[np.float64] | None:
        """The value of a row without each unit, as its evaluation left it in the cache."""
        key = keys.get(row.key[:5])
        entry = cache.get(measuring.SCORES_KIND, key) if key else None
        values = None if entry is None else entry.arrays.get(measuring.without_each(row.protocol, row.metric))
        return None if values is None else np.asarray(values, np.float64)

    # A row names its unit only where it has an interval; all rows of a subset have the same.
    units = {subset_of(row): row.unit for row in ranking.scores if row.unit}
    rows: list[Row] = []
    for protocol in ranking.index.protocols:
        for subset, by_representation in ranking.index.values(metric, protocol).items():
            if len(by_representation) < 2 or ranking.hindrance(subset, by_representation.values()):
                continue
            (best, first), *others = ranked(by_representation)
            without = without_each(first)
            pairs = comb(len(by_representation), 2)
            for representation, row in others if without is not None else []:
                own = without_each(row)
                if without is None or own is None or len(own) != len(without):
                    continue
                rows.append(
                    difference_row(
                        first, row, without, own, pairs, units.get(subset) or "clip", names={},
                        said=f"{best.label} minus {representation.label}",
                    )
                )  # fmt: skip
    return rows


def difference_row(
    first: Row,
    second: Row,
    without_first: NDArray[np.float64] | None,
    without_second: NDArray[np.float64] | None,
    comparisons: int,
    unit: str,
    *,
    names: Mapping[str, str],
    said: str = "",
) -> Row:
    """One row minus another on the same clips: `P@1:difference`, paired where values without each unit are known.

    `names` are the columns in which the row differs from the second, `said` stands first in its reason.
    """
    columns = ("suite", "subset", "system", "distance", "correction", "protocol", "n", "seconds", "version", "inputs")
    row = Row(
        **{**{column: getattr(second, column) for column in columns}, **names}, metric=f"{second.metric}:difference"
    )
    if first.value is None or second.value is None:
        missing = first if first.value is None else second
        return replace(row, status=missing.status, reason=missing.reason, n=None)
    value = first.value - second.value
    if without_first is None or without_second is None:
        why = f"no interval: there are no values of {second.metric} without each {unit} for both"
        return replace(row, value=value, reason="; ".join(filter(None, [said, why])))
    if len(without_first) != len(without_second):
        why = "no interval: the two rest on different clips"
        return replace(row, value=value, reason="; ".join(filter(None, [said, why])))
    difference = jackknife.difference(
        first.value, second.value, without_first, without_second, metric_facts(second.metric).range, unit=unit,
        comparisons=comparisons, units=min((of.units for of in (first, second) if of.units), default=None),
    )  # fmt: skip
    row = replace(
        row,
        value=difference.value,
        low=difference.low,
        high=difference.high,
        p_value=difference.p_value,
        reason="; ".join(filter(None, [said, difference.reason])),
    )
    if difference.p_value is None:
        return row
    return replace(row, interval="jackknife", unit=unit, units=difference.units, comparisons=comparisons)


# --- what a run folder says -----------------------------------------------------------------------------------------


def clip_counts(record: Mapping[str, Any]) -> list[ClipCount]:
    """On how many clips of each subset each system was scored; empty when the record knows no vectors."""
    clips = {(item["suite"], item["subset"], item["system"]): item["clips"] for item in record["vectors"]}
    keys = [
        ((subset["suite"], subset["subset"], system["system"]), subset["clips"])
        for subset in record["subsets"]
        for system in record["systems"]
    ]
    return [ClipCount(*key, clips.get(key, 0), total) for key, total in keys] if clips else []


def shared_clips(record: Mapping[str, Any]) -> list[SharedClips]:
    """How many clips the ranked systems share, of every subset where they differ in their clips."""
    ranked = {count[:3] for count in clip_counts(record) if not count.lost_most}
    shared = []
    for subset in record["subsets"]:
        key = subset["suite"], subset["subset"]
        left_out = [
            frozenset(item["left_out"])
            for item in record["vectors"]
            if (item["suite"], item["subset"]) == key and (*key, item["system"]) in ranked
        ]
        if len(set(left_out)) > 1:
            copies = subset.get("copies", {}).get("left_out", 0)
            common = subset["clips"] + copies - len(frozenset().union(*left_out))
            shared.append(SharedClips(*key, common, subset["clips"], len(left_out)))
    return shared


def ranking_of(record: Mapping[str, Any], scores: Scores, compared: Scores) -> Ranking:
    """The ranking of a run, from what its folder holds."""
    return rank(scores, compared, clip_counts(record), shared_clips(record))


def answer_of(record: Mapping[str, Any], scores: Scores, compared: Scores) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The answer of a run in sentences, and those about systems that lost most of their clips."""
    ranking = ranking_of(record, scores, compared)
    return tuple(lead(ranking)), tuple(lost_said(ranking.counts))


def read_comparisons(folder: Path) -> Scores:
    """RUN/comparisons.csv; an empty table when the run has none."""
    path = folder / FILE
    return load_scores(path) if path.exists() else Scores()


def write_comparisons(folder: Path, compared: Scores) -> None:
    """RUN/comparisons.csv; a file of an earlier run goes when there is nothing to compare."""
    if compared.rows:
        compared.write(folder / FILE)
    else:
        (folder / FILE).unlink(missing_ok=True)


# --- any systems of one run, or of several --------------------------------------------------------------------------


def compare_runs(
    folders: Sequence[str | Path],
    *,
    subset: str | None = None,
    systems: Sequence[str] = (),
    across_groups: bool | None = None,
    **options: Any,
) -> Scores:
    """Compare the systems of one run folder, or of several, subset by subset on the clips that all of them have.

    `systems` chooses some by name; `options` are those of `earmark.compare`. Both protocols are compared where one of
    the runs measured across groups, unless `across_groups` says otherwise. Where two runs have a system of one name,
    the folder's name goes in front. Clips are the same when they have the same id, label, group and sound.
    """
    if across_groups is None:
        across_groups = any(_measured_across(locate(folder)) for folder in folders)
    options = {**_label_sets(folders), **options}
    tables: list[Scores] = []
    refused: list[str] = []
    for place, found in _vectors_by_subset(folders).items():
        if subset not in (None, place[1], without_sample(place[1])):
            continue
        try:
            tables.append(_compare_subset(place, found, systems, across_groups, options))
        except InputError as error:  # one subset that cannot be compared costs no other one
            refused.append(f"{place[1]} was not compared: {error}")
    if not tables:
        nothing = f"No run has a subset {subset!r}." if subset else "These runs hold no vectors to compare."
        raise InputError(refused[0] if refused else nothing)
    notes = (*dict.fromkeys(note for table in tables for note in table.notes), *refused)
    return Scores(tuple(row for table in tables for row in table.rows), notes=notes)


def _label_sets(folders: Sequence[str | Path]) -> dict[str, str]:
    """How the runs tell of clips with several labels or none; UsageError where they do not agree."""
    asked: dict[str, set[str]] = {"label_separator": set(), "background": set()}
    for file in (locate(folder) / "config.yaml" for folder in folders):
        config = RunConfig.load(file) if file.exists() else None
        for name, values in asked.items():
            values.add(getattr(config, name, ""))
    for name, values in asked.items():
        if len(values) > 1:
            said = " and ".join(sorted(map(repr, values)))
            raise UsageError(f"The runs have different values of {name} ({said}): compare runs that have the same.")
    return {name: value for name, (value,) in asked.items() if value}


def _measured_across(folder: Path) -> bool:
    path = folder / "scores.csv"
    return path.exists() and any(row.protocol == "across_groups" for row in load_scores(path))


def _vectors_by_subset(folders: Sequence[str | Path]) -> dict[tuple[str, str], dict[str, tuple[Path, str]]]:
    """Where the vectors of every system lie: {(suite, subset): {name: (folder, system)}}."""
    found: dict[tuple[str, str], dict[str, tuple[Path, str]]] = {}
    everything = [(locate(folder), read_record(folder)["vectors"]) for folder in folders]
    names = [one["system"] for _, vectors in everything for one in {one["system"]: one for one in vectors}.values()]
    for folder, vectors in everything:
        for one in vectors:
            name = one["system"] if names.count(one["system"]) == 1 else f"{folder.name}/{one['system']}"
            of_subset = found.setdefault((one["suite"], one["subset"]), {})
            if name in of_subset:
                raise UsageError(f"Two of the runs are in a folder called {folder.name}: rename one of them.")
            of_subset[name] = folder, one["system"]
    return found


def _compare_subset(
    place: tuple[str, str],
    found: Mapping[str, tuple[Path, str]],
    systems: Sequence[str],
    across_groups: bool,
    options: Mapping[str, Any],
) -> Scores:
    suite, subset = place
    for name in systems:
        if name not in found:
            raise UsageError(f"There is no system {name!r} on {subset}.{did_you_mean(name, found)}")
    chosen = {name: where for name, where in found.items() if not systems or name in systems}
    if len(chosen) < 2:
        raise InputError(f"Only {', '.join(chosen)} was measured on {subset}: there is nothing to compare it with.")
    loaded = {name: load_vectors(folder, subset, system, suite) for name, (folder, system) in chosen.items()}
    digests = {folder: {line["id"]: line["digest"] for line in read_clips(folder)
                        if (line["suite"], line["subset"]) == place} for folder, _ in chosen.values()}  # fmt: skip
    about = {
        name: {
            clip: (label, group, digests[chosen[name][0]][clip])
            for clip, label, group in zip(of.ids, of.labels, of.groups, strict=True)
        }
        for name, of in loaded.items()
    }
    first, *others = about.values()
    shared = [clip for clip, known in first.items() if all(other.get(clip) == known for other in others)]
    if not shared:
        raise InputError(f"{', '.join(chosen)} have no clip of {subset} in common: same id, label, group and sound.")
    vectors = {}
    for name, of in loaded.items():
        rows = {clip: row for row, clip in enumerate(of.ids)}
        vectors[name] = of.values[[rows[clip] for clip in shared]]
    labels, groups = [first[clip][0] for clip in shared], [first[clip][1] for clip in shared]
    known_groups = groups if any(group is not None for group in groups) else None
    across = across_groups and known_groups is not None
    table = compare(
        vectors, labels, groups=known_groups, across_groups=across, suite=suite, subset=subset, **options
    )  # fmt: skip
    most = max(len(of.ids) for of in loaded.values())
    note = f"{subset}: compared on the {len(shared)} clips, of {most}, that all systems have"
    return replace(table, notes=(*table.notes, note)) if len(shared) < most else table
