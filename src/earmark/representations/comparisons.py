"""Systems of a run against each other, on the clips they share.

    scores.csv        every system on the clips it has
    comparisons.csv   where systems of a subset differ in their clips: each of them on the clips that all have;
                      and the differences between the best representation and each other one, and of all pairs

A system that lost more than half of its clips is left out, and where the others share fewer than half of them nothing
is measured again: `earmark.report.ranking` has the rule, and makes the ranking from both files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.corpora.subsets import PreparedSubset
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.evaluation import evaluate
from earmark.evaluation.comparison import compared_metrics
from earmark.evaluation.comparison import differences as difference_rows
from earmark.evaluation.options import as_names
from earmark.places import locate
from earmark.report.answer import lead
from earmark.report.ranking import ClipCount, Ranking, SharedClips, lost_said, pair_key, rank
from earmark.report.score_index import Representation, ranked
from earmark.report.score_index import subset as subset_of
from earmark.representations import _evaluate as measuring
from earmark.representations._folder import load_vectors
from earmark.representations._sequences import SUFFIX
from earmark.representations._systems import System
from earmark.representations.config import RunConfig
from earmark.runs.folder import clips_of_subset, read_clips, read_record
from earmark.runs.store import Cache
from earmark.scores import KEY, Row, Scores, load_scores, metric_facts
from earmark.scores.spelling import without_sample
from earmark.wording import counted, listed

FILE = "comparisons.csv"
MOST_PAIRED = 50
"""Representations of a subset of which all pairs are compared unasked; 1,225 pairs."""

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
    """The representations of each subset and protocol against each other, on the same clips, by the leading metric.

    Rows `P@1:difference` under another representation's name (system, distance, correction) are the best minus that
    one; rows under two names, `one - other`, are of all pairs, as `earmark compare RUN` has them; of more than
    `MOST_PAIRED` representations these are left out. `evaluations` says under which key each measurement lies in the
    cache, those of shared clips first; one that holds no values without each unit has no row, and the report then
    decides by intervals. Interval and p-value are corrected for the number of all pairs.
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
            unit = units.get(subset) or "clip"
            without = {name: without_each(row) for name, row in by_representation.items()}
            rows += _against_best(by_representation, without, unit)
            if len(by_representation) <= MOST_PAIRED:
                rows += _all_pairs(by_representation, without, unit)
    return rows


_Without = Mapping[Representation, NDArray[np.float64] | None]


def _comparable(first: NDArray[np.float64] | None, second: NDArray[np.float64] | None) -> bool:
    return first is not None and second is not None and len(first) == len(second)


def _against_best(rows: Mapping[Representation, Row], without: _Without, unit: str) -> list[Row]:
    (best, first), *others = ranked(rows)
    return [
        difference_row(
            first, row, without[best], without[other], comb(len(rows), 2), unit, names={},
            said=f"{best.label} minus {other.label}",
        )
        for other, row in others
        if _comparable(without[best], without[other])
    ]  # fmt: skip


def _all_pairs(rows: Mapping[Representation, Row], without: _Without, unit: str) -> list[Row]:
    made = []
    for (one, first), (other, second) in combinations(rows.items(), 2):
        if _comparable(without[one], without[other]):
            names = dict(zip(KEY[:6], pair_key(first, second)[:6], strict=True))
            made.append(
                difference_row(first, second, without[one], without[other], comb(len(rows), 2), unit, names=names)
            )
    return made


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

SETTINGS = ("ties", "min_class_size", "k", "queries", "seed", "label_separator", "background")
"""What of a run's settings changes its values, and must be the same for all systems that are compared."""


@dataclass(frozen=True)
class Compared:
    """A system of a run: where its vectors lie, and the distances and corrections that it was measured under."""

    folder: Path
    place: tuple[str, str]  # suite and subset in that run
    system: str
    ways: tuple[tuple[str, str], ...]


def compare_runs(
    folders: Sequence[str | Path],
    *,
    subset: str | None = None,
    systems: Sequence[str] = (),
    distance: str | Sequence[str] | None = None,
    correct: str | Sequence[str] | None = None,
    metrics: str | Sequence[str] | None = None,
    across_groups: bool | None = None,
    reference: str | None = None,
    **options: Any,
) -> Scores:
    """Compare the systems of one run folder, or of several, subset by subset on the clips that all of them have.

    Every pair of representations (a system under a distance and a correction) is compared, as the report does, with
    the settings of the runs; interval and p-value are corrected for the number of pairs.

    Args:
        folders: Run folders.
        subset: Only this subset.
        systems: Only these systems; where two runs have one of the same name, the folder's name goes in front.
        distance: Distances, in place of those that each run measured.
        correct: Corrections, likewise.
        metrics: Metrics; None or all is P@k and the separation of classes.
        across_groups: Whether to compare across groups too; None: where one of the runs measured so.
        reference: Compare every other system with this one, under the same distance and correction.
        options: Other options of `earmark.evaluate`, in place of the runs' settings.

    Clips are the same when they have the same id, label, group and sound. Subsets are the same by name, or where each
    run has one subset and they share clips.
    """
    places = [locate(folder) for folder in folders]
    if len(set(places)) < len(places):
        raise UsageError("The same run was given twice: it does not differ from itself.")
    if across_groups is None:
        across_groups = any(_measured_across(place) for place in places)
    records = {place: read_record(place) for place in places}
    options = _settings_of(places, options)
    label_sets = bool(options["label_separator"] or options["background"])
    options["metrics"] = compared_metrics(metrics, label_sets=label_sets)
    wanted = {"distance": distance, "correct": correct}
    ways = {name: as_names(given, name) for name, given in wanted.items() if given is not None}
    tables: list[Scores] = []
    refused: list[str] = []
    found, joined = _one_subset(_systems_by_subset(records, ways), places)
    _refuse_unknown(systems, reference, found)
    for place, known in found.items():
        if subset not in (None, place[1], without_sample(place[1])):
            continue
        try:
            chosen = {name: of for name, of in known.items() if not systems or name in (*systems, reference)}
            tables.append(_compare_subset(place, chosen, reference, across_groups, options))
        except InputError as error:  # one subset that cannot be compared costs no other one
            refused.append(f"{place[1]} was not compared: {error}{_elsewhere(place, found) if len(chosen) < 2 else ''}")
    if not tables:
        names = list(dict.fromkeys(name for _, name in found))
        nothing = f"No run has a subset {subset!r}.{did_you_mean(subset, names)}" if subset else _NOTHING
        raise InputError(refused[0] if refused else nothing)
    heard = dict.fromkeys(note for table in tables for note in table.notes)
    notes = (*heard, *joined, *refused, *_aligned_note(records))
    return Scores(tuple(row for table in tables for row in table.rows), notes=notes)


def _aligned_note(records: Mapping[Path, Mapping[str, Any]]) -> list[str]:
    """What is said where runs measured distances between frames."""
    names = {job["distance"] for record in records.values() for job in record["evaluations"]}
    aligned = sorted(name for name in names if name.endswith(SUFFIX))
    if not aligned:
        return []
    return [f"{', '.join(aligned)} left out: frames were aligned, and are compared in the report and comparisons.csv"]


_NOTHING = "These runs hold no vectors to compare."


def _settings_of(folders: Sequence[Path], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings under which the runs were measured, where they are the same or somebody chose one."""
    configs = {folder: RunConfig.load(folder / "config.yaml") for folder in folders}
    settled = dict(given)
    for name in SETTINGS:
        values = {folder: getattr(config, name) for folder, config in configs.items()}
        first = next(iter(values.values()))
        other = next((folder for folder, value in values.items() if value != first), None)
        if name in given:
            continue
        if other is not None:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{folders[0]} was measured with {name} {_said(first)} and {other} with {_said(values[other])}: choose "
                f"one with {flag}."
            )
        settled[name] = first
    return settled


def _said(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _measured_across(folder: Path) -> bool:
    path = folder / "scores.csv"
    return path.exists() and any(row.protocol == "across_groups" for row in load_scores(path))


def _systems_by_subset(records: Mapping[Path, Mapping[str, Any]], ways: Mapping[str, Sequence[str]]) -> _BySubset:
    """Every system of every subset, by the name it has among those of all runs."""
    found: dict[tuple[str, str], dict[str, Compared]] = {}
    names = [name for record in records.values() for name in dict.fromkeys(of["system"] for of in record["vectors"])]
    for folder, record in records.items():
        measured: dict[tuple[str, ...], dict[tuple[str, str], None]] = {}
        for job in record["evaluations"]:
            if not job["distance"].endswith(SUFFIX):  # frames that were aligned have no vectors to compare anew
                key = job["suite"], job["subset"], job["system"]
                measured.setdefault(key, {})[job["distance"], job.get("correction", "none")] = None
        for of in record["vectors"]:
            own = measured.get((of["suite"], of["subset"], of["system"])) or {("cosine", "none"): None}
            distances = ways.get("distance") or dict.fromkeys(distance for distance, _ in own)
            corrections = ways.get("correct") or dict.fromkeys(correction for _, correction in own)
            name = of["system"] if names.count(of["system"]) == 1 else f"{folder.name}/{of['system']}"
            of_subset = found.setdefault((of["suite"], of["subset"]), {})
            if name in of_subset:
                raise UsageError(f"Two of the runs are in a folder called {folder.name}: rename one of them.")
            place = of["suite"], of["subset"]
            of_subset[name] = Compared(folder, place, of["system"], tuple(product(distances, corrections)))
    return found


_BySubset = dict[tuple[str, str], dict[str, Compared]]


def _one_subset(found: _BySubset, folders: Sequence[Path]) -> tuple[_BySubset, list[str]]:
    """The subsets of runs that measured one each, as one where they share clips under another name; and that said."""
    of_run = {folder: {of.place for known in found.values() for of in known.values() if of.folder == folder}
              for folder in folders}  # fmt: skip
    if len(found) < 2 or len(folders) < 2 or any(len(places) != 1 for places in of_run.values()):
        return found, []
    clips = [{(line["id"], line["digest"]) for line in read_clips(folder)} for folder in folders]
    if not set.intersection(*clips):
        return found, []
    first, *others = found
    systems = {name: of for known in found.values() for name, of in known.items()}
    names = listed([place[1] for place in others])
    return {first: systems}, [f"{first[1]} was compared with {names}: the runs share clips under these names"]


def _elsewhere(place: tuple[str, str], found: _BySubset) -> str:
    """Which other subsets there are, where a single system was measured on one."""
    others = [other[1] for other in found if other != place]
    return f" There is {listed(others)} too; runs are compared on subsets of the same name." if others else ""


def _refuse_unknown(
    systems: Sequence[str], reference: str | None, found: Mapping[tuple[str, str], Mapping[str, Compared]]
) -> None:
    known = list(dict.fromkeys(name for of_subset in found.values() for name in of_subset))
    for name in (*systems, *filter(None, [reference])):
        if name not in known:
            hint = did_you_mean(name, known) or f" There are {', '.join(known)}."
            raise UsageError(f"There is no system {name!r}.{hint}")


class _SharedVectors(NamedTuple):
    """The vectors of several systems on the clips that all of them have, and how many clips the largest has."""

    values: dict[str, NDArray[np.float32]]
    labels: list[str | None]
    groups: list[str | None] | None
    most: int


def _compare_subset(
    place: tuple[str, str],
    chosen: Mapping[str, Compared],
    reference: str | None,
    across_groups: bool,
    options: Mapping[str, Any],
) -> Scores:
    suite, subset = place
    if len(chosen) < 2 and sum(len(of.ways) for of in chosen.values()) < 2:
        names = ", ".join(chosen) or "No system"
        raise InputError(f"{names} alone was measured on {subset}: there is nothing to compare it with.")
    if reference is not None and reference not in chosen:
        raise InputError(f"{reference} was not measured on {subset}.")
    shared = _shared_vectors(place, chosen)
    measured = {
        name: evaluate(
            shared.values[name], shared.labels, distance=tuple(dict.fromkeys(way[0] for way in of.ways)),
            correct=tuple(dict.fromkeys(way[1] for way in of.ways)), groups=shared.groups,
            across_groups=across_groups and shared.groups is not None, intervals="jackknife", per_unit=True,
            system=name, **options,
        )
        for name, of in chosen.items()
    }  # fmt: skip
    scored = {
        (name, *way): measured[name].select(distance=way[0], correction=way[1])
        for name, of in chosen.items()
        for way in of.ways
    }
    pairs = [
        pair for pair in combinations(scored, 2) if reference is None or _has_reference(reference, *pair)
    ]  # fmt: skip
    unit = "clip" if shared.groups is None else "group"
    turned = [(other, one) if one[0] == reference else (one, other) for one, other in pairs]
    rows = [
        replace(row, suite=suite, subset=subset)
        for one, other in turned
        for row in difference_rows(scored[one], scored[other], len(pairs), unit=unit)
    ]
    notes = list(next(iter(measured.values())).notes)
    if len(shared.labels) < shared.most:
        notes.append(f"{subset}: compared on the {len(shared.labels)} clips, of {shared.most}, that all systems have")
    return Scores(tuple(rows), notes=tuple(notes))


def _has_reference(reference: str, one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one of two representations is of the reference, and the other of another system measured likewise."""
    return (one[0] == reference) != (other[0] == reference) and one[1:] == other[1:]


def _why_none(first: Mapping[str, tuple[Any, ...]], others: Sequence[Mapping[str, tuple[Any, ...]]]) -> str:
    """What tells apart the clips of systems that have none in common: their ids, or what is known of them."""
    named = [clip for clip in first if all(clip in other for other in others)]
    if not named:
        return "no id is the same"
    differ = [
        what
        for place, what in enumerate(("label", "group", "sound"))
        if any(other[clip][place] != first[clip][place] for clip in named for other in others)
    ]
    return f"{counted(len(named), 'id')} are the same, and differ in {listed(differ)}; run them with the same settings"


def _shared_vectors(place: tuple[str, str], chosen: Mapping[str, Compared]) -> _SharedVectors:
    subset = place[1]
    loaded = {name: load_vectors(of.folder, of.place[1], of.system, of.place[0]) for name, of in chosen.items()}
    lines = {of.folder: clips_of_subset(of.folder, *of.place) for of in chosen.values()}
    about = {
        name: {
            clip: (label, group, lines[chosen[name].folder][clip]["digest"])
            for clip, label, group in zip(of.ids, of.labels, of.groups, strict=True)
        }
        for name, of in loaded.items()
    }
    first, *others = about.values()
    shared = [clip for clip, known in first.items() if all(other.get(clip) == known for other in others)]
    if not shared:
        raise InputError(f"{', '.join(chosen)} have no clip of {subset} in common: {_why_none(first, others)}.")
    values = {name: of.of_clips(shared) for name, of in loaded.items()}
    labels, groups = [first[clip][0] for clip in shared], [first[clip][1] for clip in shared]
    known_groups = groups if any(group is not None for group in groups) else None
    return _SharedVectors(values, labels, known_groups, max(len(of.ids) for of in loaded.values()))
