"""The map of a run: its clips and vectors as it measured them, to click through and listen to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from earmark.errors import EarmarkError, InputError, UsageError, absent
from earmark.evaluation.options import Options, as_names, byte_count, whole
from earmark.geometry.corrections import parse_all
from earmark.places import locate
from earmark.report.maps import BUDGET, ClipMap, ClipTable, Representation, build_map, projections_of
from earmark.report.maps._building import MOST, NEIGHBOURS
from earmark.representations import _sequences as sequences
from earmark.representations._folder import RunVectors, load_points, load_vectors, open_clips
from earmark.representations.config import RunConfig
from earmark.runs import folder
from earmark.scores import Row, Scores, load_scores
from earmark.scores.rows import distinct
from earmark.scores.spelling import is_single
from earmark.vectors.several_labels import spelled
from earmark.wording import counted, listed
from earmark.workers import thread_count

ALL = "all"


class _Setting(NamedTuple):
    system: str
    distance: str
    correction: str


def map_run(
    path: str | Path, *, subset: str | None = None, system: str | Sequence[str] | None = None,
    distance: str | Sequence[str] | None = None, correct: str | Sequence[str] | None = None, k: int = NEIGHBOURS,
    projection: str | Sequence[str] = "auto", sounds: str = BUDGET, most: int = MOST, seed: int | None = None,
    title: str = "", threads: int | None = None, progress: bool = False,
) -> ClipMap:  # fmt: skip
    """The map of one subset of a run; vectors come from its cache, values of clips from what it measured.

    Args:
        path: The run folder.
        subset: The subset, as the scores name it; None: the first.
        system: One or several systems, or "all"; None: the one with the highest P@1.
        distance: Distances to show of each system; None: the one with its highest P@1.
        correct: Hubness corrections to show; None: none, where that was measured.
        k: How many neighbours of each clip.
        projection: As in `earmark.map_clips`.
        sounds: A budget ("5MB"), "link" or "none".
        most: More clips than this are drawn at random.
        seed: Seed of the projection and of the draw; None: that of the run.
        title: Heading of the page; "": the subset.
        threads: How many at once; None: as many as there are cores.
        progress: Show bars on stderr.
    """
    path = locate(path)
    record = folder.read_record(path)
    if not (path / "scores.csv").exists():
        raise InputError(f"{path} has no scores.csv yet: let `earmark run` finish the step evaluate first.")
    config = RunConfig.load(path / "config.yaml")
    scores = Scores(tuple(row for row in load_scores(path / "scores.csv") if row.metric == "P@1" and _drawable(row)))
    chosen, notes = _subset(scores, subset, path)
    settings = _settings(chosen, system, distance, correct, path)
    first = chosen.rows[0]
    loaded = {item.system: load_vectors(path, first.subset, item.system, first.suite) for item in settings}
    ids = _shared(list(loaded.values()))
    lost = max(len(own.ids) for own in loaded.values()) - len(ids)
    if lost:
        notes.append(f"{counted(lost, 'clip')} that not all of these systems could embed left out.")
    matrices = {name: own.of_clips(ids) for name, own in loaded.items()}
    whole_set = {name: len(own.ids) == len(ids) for name, own in loaded.items()}
    given = [
        Representation(
            vectors=matrices[item.system],
            distance=item.distance,
            correction=item.correction,
            system=item.system,
            values=_values(path, first, item) if whole_set[item.system] else {},
        )
        for item in settings
    ]
    any_vectors = next(iter(loaded.values()))
    places = {name: row for row, name in enumerate(any_vectors.ids)}
    order = [places[name] for name in ids]
    labels, groups = ([column[row] for row in order] for column in (any_vectors.labels, any_vectors.groups))
    labels = [spelled(label, config.label_separator) for label in labels]
    clips = _table(path, first, ids, labels, groups)
    options = Options(
        distance=tuple(dict.fromkeys(item.distance for item in settings)), ties=config.ties,
        across_groups=config.across_groups and clips.groups is not None, min_class_size=config.min_class_size,
        label_separator=config.label_separator, background=config.background,
        seed=config.seed if seed is None else seed, memory=byte_count(config.memory), threads=thread_count(threads),
        device=config.device, progress=progress,
    )  # fmt: skip
    fetch, remark = _fetcher(path, first, ids, wanted=sounds)
    content = build_map(
        clips, given, options, title=title or first.subset or first.suite or "Map of clips", k=whole("k", k, 1),
        projection=projections_of(projection), most=whole("most", most, 1), fetch=fetch, notes=[*notes, *remark],
        synthetic=any(
            subset["status"] == "synthetic" for subset in record["subsets"] if subset["subset"] == first.subset
        ),
    )  # fmt: skip
    return ClipMap(content, sounds, progress=progress)


def _drawable(row: Row) -> bool:
    """Whether a row has a value, no label was changed for it, and it is of distances between vectors."""
    plain = not row.distance.endswith(sequences.SUFFIX) and is_single(row.subset)
    return row.value is not None and plain and row.protocol in ("all", "across_groups")


def _subset(scores: Scores, wanted: str | None, path: Path) -> tuple[Scores, list[str]]:
    """The rows of the subset that is wanted, or of the first, with a word about the others."""
    names = distinct(scores.rows, "subset")
    if not names:
        raise InputError(f"{path} holds no P@1 of vectors: there is nothing to map.")
    if wanted is not None and wanted not in names:
        raise UsageError(absent(wanted, names, "subset", path))
    name = names[0] if wanted is None else wanted
    rows = [row for row in scores if row.subset == name]
    rows = [row for row in rows if row.suite == rows[0].suite]
    others = [other for other in names if other != name]
    notes = [f"The run also has {listed(others)}: --subset chooses."] if others and wanted is None else []
    return Scores(tuple(rows)), notes


def _settings(scores: Scores, systems: Any, distances: Any, corrections: Any, path: Path) -> list[_Setting]:
    """What is shown: of each system that is wanted the best setting, or those that were asked for."""
    best = sorted(scores, key=lambda row: (row.correction != "none", -(row.value or 0.0)))
    known = distinct(scores.rows, "system")
    wanted = [best[0].system] if systems is None else list(as_names(systems, "system"))
    wanted = known if wanted == [ALL] else wanted
    chosen: list[_Setting] = []
    for name in wanted:
        if name not in known:
            raise UsageError(absent(name, known, "system", path))
        own = [row for row in best if row.system == name]
        own = _asked(own, "distance", distances, path)
        own = _asked(own, "correction", None if corrections is None else [str(c) for c in parse_all(corrections)], path)
        every = [_Setting(row.system, row.distance, row.correction) for row in own]
        chosen += every[:1] if distances is None and corrections is None else _each(every, distances, corrections)
    return list(dict.fromkeys(chosen))


def _asked(rows: list[Row], what: str, names: Any, path: Path) -> list[Row]:
    """The rows of the distances or corrections that were asked for; all where nobody asked."""
    if names is None:
        return rows
    wanted = as_names(names, what)
    known = list(dict.fromkeys(getattr(row, what) for row in rows))
    for name in wanted:
        if name not in known:
            raise UsageError(absent(name, known, what, f"{rows[0].system} in {path}"))
    return [row for row in rows if getattr(row, what) in wanted]


def _each(settings: list[_Setting], distances: Any, corrections: Any) -> list[_Setting]:
    """One setting for each distance and correction asked for; the best of what nobody asked about."""
    kept: dict[tuple[str, ...], _Setting] = {}
    for item in settings:
        asked = (item.distance if distances is not None else "", item.correction if corrections is not None else "")
        kept.setdefault(asked, item)
    return list(kept.values())


def _shared(loaded: Sequence[RunVectors]) -> list[str]:
    """The ids that all have, in the order of the first."""
    common = set(loaded[0].ids).intersection(*(own.ids for own in loaded[1:]))
    return [name for name in loaded[0].ids if name in common]


def _values(path: Path, first: Row, item: _Setting) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
    """What the run measured of each clip; nothing where its cache has lost it, and it is then measured again."""
    try:
        return load_points(path, first.subset, item.system, item.distance, first.suite, item.correction)
    except EarmarkError:
        return {}


def _table(path: Path, first: Row, ids: Sequence[str], labels: list[str | None], groups: list[str | None]) -> ClipTable:
    """What clips.csv tells of the clips."""
    lines = folder.clips_of_subset(path, first.suite, first.subset)

    def times(name: str) -> np.ndarray[Any, Any]:
        return np.array([float(lines[own][name]) if lines[own][name] else np.nan for own in ids])

    return ClipTable(
        ids=list(ids), labels=labels, groups=groups if any(groups) else None,
        paths=[lines[own]["path"] or None for own in ids], starts=times("start"), ends=times("end"),
        seconds=times("seconds"),
    )  # fmt: skip


def _fetcher(path: Path, first: Row, ids: Sequence[str], wanted: str) -> tuple[Any, list[str]]:
    """How the clips of a run are read again, or why they cannot be."""
    if wanted.strip().lower() in ("none", "link"):
        return None, []
    try:
        clips = open_clips(path).get((first.suite, first.subset), {})
    except EarmarkError as error:
        return None, [f"There are no sounds: {error}"]
    return lambda row: clips[ids[row]].read(), []
