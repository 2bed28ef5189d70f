"""Two or more embeddings of the same clips: which differences would another set of clips show again?"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from earmark._version import __version__
from earmark.calibrate import jackknife
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.evaluation._joined_frames import joined_frames
from earmark.evaluation._verbs import evaluate
from earmark.evaluation.data import check_vectors, kept_for_reading
from earmark.evaluation.options import GIVEN, as_names
from earmark.geometry import spaces
from earmark.geometry.corrections import parse_all
from earmark.metrics.catalogue import COMPARED, LABELS
from earmark.scores import Row, Scores, metric_facts
from earmark.scores.spelling import paired, refuse_reserved
from earmark.vectors import Distances


def compare(
    a: Any, b: Any = None, labels: Any = None, *, distance: str | Sequence[str] = "cosine",
    metrics: str | Sequence[str] | None = None, k: int | Sequence[int] = (1, 5), groups: Any = None,
    queries: int = 0, across_groups: bool = False, reference: str | None = None, min_class_size: int = 2,
    label_separator: str = "", background: str = "",
    ties: spaces.Ties = "average",
    correct: str = "none", device: str = "auto", memory: str | int = "2GB", threads: int | None = None,
    names: tuple[str, str] = ("A", "B"), distance_name: str = GIVEN, subset: str = "", suite: str = "",
    progress: bool = False, bootstrap: int | None = None, permutations: int | None = None, seed: int = 0,
    ids: str | None = None,
) -> Scores:  # fmt: skip
    """Compare embeddings of the same clips: rows "P@1:difference" (the first minus the second) and so on.

    Interval and two-sided p-value come from leaving out each clip (each group, when `groups` are given) of both systems
    at once, as query and as candidate. With m comparisons both are corrected for m, metric by metric (Bonferroni), so
    an interval excludes 0 exactly when p < 0.05.

    Args:
        a: Vectors of the first system; or a mapping of names to vectors, of which every pair is compared. Distances
            computed elsewhere, as `earmark.read_distances` returns them, may stand in for the vectors of a system.
        b: Vectors of the second system; of a mapping, the labels may stand here.
        labels: One for each row; of data frames, the name of a column that all of them have.
        distance: One or several of cosine, euclidean, spearman.
        metrics: Names, in a list or with commas; None or all is P@k and the separation of classes, or, of clips with
            several labels, P@k and the metrics of labels.
        k: The k of P@k, one or several.
        groups: The speaker, bird or recording of each row, or the name of a column: the unit of intervals and tests.
        queries: For large collections: how many clips, drawn at random and the same of all systems, ask for their
            neighbours among all of them. 0: all ask.
        across_groups: Also leave out all pairs of one group, as protocol "across_groups".
        reference: The system that every other one is compared with, instead of all pairs.
        min_class_size: Smaller classes are dropped.
        label_separator: What stands between the labels of a clip that has several, as in `evaluate`.
        background: The label of clips that hold none of the classes.
        ties: Ranks of equal values under spearman: "average", or "ordinal" as in published numbers.
        correct: One hubness correction, which applies to all systems.
        device: Where distances are computed: cpu, cuda, cuda:1, or auto (a GPU if torch sees one and it pays). No score
            depends on it.
        memory: Budget for tiles and batches, beside the vectors: "2GB", or a number of bytes.
        threads: Threads at work; None is one for each core. No result depends on it.
        names: What the two systems are called, where they are not a mapping.
        distance_name: What distances that were computed elsewhere are called in the column `distance`.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.
        bootstrap: Accepted and does nothing: nothing is resampled.
        permutations: Accepted and does nothing.
        seed: Seed of the draw of queries.
        ids: Of data frames, the column that names the clip: rows are joined by it, and clips that not all frames have
            are left out. Without it, row n of every frame is the same clip.

    Returns:
        Scores whose metrics are called `P@1:difference` and so on, a row for each pair of systems and each
        protocol.

    >>> compare(X, Y, labels, groups=speakers).row("P@1:difference").p_value
    >>> compare({"wavlm": X, "logmel": Y, "mfcc": Z}, labels, reference="logmel")
    """
    refuse_reserved(subset, "subset")
    if isinstance(a, Mapping):
        systems, labels = dict(a), b if labels is None else labels
    else:
        systems = {names[0]: a, names[1]: b}
        if len(systems) < 2:
            raise UsageError(f"Both systems are called {names[0]!r}: give them different names.")
    systems, labels, groups, lacking = joined_frames(systems, labels, groups, ids)
    if labels is None:
        raise UsageError("compare needs the labels of the clips: compare(a, b, labels) or compare({...}, labels).")
    if len(systems) < 2:
        raise UsageError("There is nothing to compare: give at least two systems.")
    labels, groups = kept_for_reading(labels), kept_for_reading(groups)
    corrections = parse_all(correct)
    if len(corrections) > 1:
        raise UsageError(f"compare takes one correction at a time, not {', '.join(map(str, corrections))}.")
    pairs = _pairs(list(systems), reference)
    checked = {
        name: points if isinstance(points, Distances) else check_vectors(points, name)
        for name, points in systems.items()
    }
    given = [name for name, points in checked.items() if isinstance(points, Distances)]
    if len(given) < len(checked) and given and len(as_names(distance, "distance")) > 1:
        raise UsageError(f"{given[0]} holds distances: compare it with one distance of the vectors, not with several.")
    first, size = next((name, len(vectors)) for name, vectors in checked.items())
    for name, vectors in checked.items():
        if len(vectors) != size:
            raise InputError(
                f"{first} has {size} vectors and {name} has {len(vectors)}: compare embeddings of the same clips."
            )
    chosen = compared_metrics(metrics, label_sets=bool(label_separator or background))
    started = time.perf_counter()
    scored = {
        name: evaluate(
            vectors, labels, distance="cosine" if name in given else distance, distance_name=distance_name,
            metrics=chosen, k=k, groups=groups, queries=queries,
            seed=seed if queries else 0,
            across_groups=across_groups, min_class_size=min_class_size, label_separator=label_separator,
            background=background, ties=ties, correct=correct, device=device,
            intervals="jackknife", per_unit=True, memory=memory, threads=threads, progress=progress, system=name,
        )
        for name, vectors in checked.items()
    }  # fmt: skip
    seconds = time.perf_counter() - started
    unit = "clip" if groups is None else "group"
    rows = [row for a, b in pairs for row in differences(scored[a], scored[b], len(pairs), seconds, unit)]
    order = {key: place for place, key in enumerate(dict.fromkeys(_setting(row) for row in rows))}
    rows.sort(key=lambda row: order[_setting(row)])
    labelled = tuple(replace(row, suite=suite, subset=subset) for row in rows)
    return Scores(rows=labelled, notes=(*next(iter(scored.values())).notes, *lacking))


def compared_metrics(asked: str | Sequence[str] | None, *, label_sets: bool = False) -> str | Sequence[str]:
    """The metrics that were asked for; none, or `all`: those that have a value without each clip."""
    if asked is None or "all" in as_names(asked, "metrics"):
        return ("P@k", *LABELS) if label_sets else COMPARED
    return asked


def differences(
    a: Scores, b: Scores, comparisons: int = 1, seconds: float | None = None, unit: str = "clip"
) -> list[Row]:
    """The rows of one system minus another from two evaluations of the same clips that kept `per_unit`.

    `unit` is what those left out: "clip", or "group" where they were given groups. A row tells it itself only where it
    has an interval.
    """
    rows = []
    of_b = [dict.fromkeys(row.distance for row in b), dict.fromkeys(row.correction for row in b)]
    for row_a in a.rows:
        # Distances that were given have a name of their own: they are compared with the only distance of the other.
        # So are representations that differ in their distance, or in its correction.
        other, corrected = (
            own if own in known else next(iter(known))
            for own, known in zip((row_a.distance, row_a.correction), of_b, strict=True)
        )
        row_b = b.row(row_a.metric, distance=other, correction=corrected, protocol=row_a.protocol)
        inputs = hashlib.sha256(f"{row_a.inputs} {row_b.inputs} {comparisons}".encode()).hexdigest()
        cells: dict[str, Any] = {
            "system": f"{row_a.system} - {row_b.system}", "correction": paired(row_a.correction, corrected),
            "distance": paired(row_a.distance, other),
            "protocol": row_a.protocol, "metric": f"{row_a.metric}:difference", "seconds": seconds,
            "version": __version__, "inputs": inputs,
        }  # fmt: skip
        if row_a.value is None or row_b.value is None:
            worse = row_a if row_a.value is None else row_b
            rows.append(Row(status=worse.status, reason=worse.reason, **cells))
            continue
        key = (row_a.distance, row_a.correction, row_a.protocol, row_a.metric)
        key_b = (other, corrected, *key[2:])
        if key not in a.per_unit or key_b not in b.per_unit:
            value = row_a.value - row_b.value
            rows.append(Row(value=value, n=_least(row_a.n, row_b.n), reason=row_a.reason or row_b.reason, **cells))
            continue
        left_out = row_a.unit or row_b.unit or unit
        outcome = jackknife.difference(
            row_a.value, row_b.value, a.per_unit[key], b.per_unit[key_b], metric_facts(row_a.metric).range,
            unit=left_out, comparisons=comparisons, units=_least(row_a.units, row_b.units),
        )  # fmt: skip
        if outcome.p_value is not None:
            cells |= {"unit": left_out, "units": outcome.units, "comparisons": comparisons}
            cells["interval"] = "jackknife" if outcome.low is not None else ""
        rows.append(
            Row(
                value=outcome.value, low=outcome.low, high=outcome.high, p_value=outcome.p_value,
                n=_least(row_a.n, row_b.n), reason="; ".join(filter(None, [remarks_of(row_a, row_b), outcome.reason])),
                **cells,
            )
        )  # fmt: skip
    return rows


def _pairs(names: list[str], reference: str | None) -> list[tuple[str, str]]:
    if reference is None:
        return list(combinations(names, 2))
    if reference not in names:
        hint = did_you_mean(reference, names) or f" There are {', '.join(names)}."
        raise UsageError(f"There is no system {reference!r} to compare with.{hint}")
    return [(name, reference) for name in names if name != reference]


def _setting(row: Row) -> tuple[str, ...]:
    return row.distance, row.correction, row.protocol, row.metric


def _least(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return min(known) if known else None


def remarks_of(a: Row, b: Row) -> str:
    """What is said of the first row, and of the second where it is something else; intervals of their own apart."""
    remarks = dict.fromkeys(
        part for row in (a, b) for part in row.reason.split("; ") if not part.startswith("no interval")
    )
    return "; ".join(filter(None, remarks))
