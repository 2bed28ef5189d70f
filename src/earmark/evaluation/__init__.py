"""From vectors and labels to scores: the three verbs a user calls."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from earmark._version import __version__
from earmark.calibrate import bootstrap as resampling
from earmark.calibrate import paired
from earmark.errors import InputError, UsageError
from earmark.evaluation.data import check, check_vectors, group_codes
from earmark.evaluation.hub_study import study_hubness
from earmark.evaluation.measure import measure
from earmark.evaluation.options import HUB_K, Options, as_counts, as_names, byte_count, whole
from earmark.geometry import spaces
from earmark.geometry.corrections import parse_all
from earmark.metrics import catalogue
from earmark.scores import Row, Scores
from earmark.workers import thread_count

__all__ = ["compare", "evaluate", "hubness"]


def evaluate(
    vectors: Any,
    labels: Any,
    *,
    distance: str | Sequence[str] = "cosine",
    metrics: str | Sequence[str] | None = None,
    k: int | Sequence[int] = (1, 5),
    permutations: int = 0,
    bootstrap: int = 0,
    groups: Any = None,
    across_groups: bool = False,
    min_class_size: int = 2,
    ties: spaces.Ties = "average",
    hub_k: int = HUB_K,
    seed: int = 0,
    per_point: bool = False,
    ids: Sequence[str] | None = None,
    correct: str | Sequence[str] = "none",
    device: str = "auto",
    memory: str | int = "2GB",
    threads: int | None = None,
    system: str = "",
    subset: str = "",
    suite: str = "",
    progress: bool = False,
) -> Scores:
    """Measure how well `vectors` [N, D] keep clips of one label together; returns Scores.

    labels: one per row; None, NaN or "" means unlabelled (dropped and counted). Classes under `min_class_size`
    are dropped from queries and candidates alike. `distance` is one or several of cosine, euclidean, spearman.
    `metrics` defaults to all but clustering (k-means, UMAP + HDBSCAN). `permutations` shuffles of the labels, as groups
    allow, give each score a chance baseline, a lift and a p-value; `bootstrap` resamples of the queries (of the groups,
    when given) give an interval. With `groups` and `across_groups`, every metric is also computed with same-group pairs
    left out, as protocol "across_groups". `per_point` keeps the value of every point in `Scores.per_point`.

    `correct` is one or several hubness corrections: none, sphere, ls, nicdm, icdm, csls, mp, dsl, with parameters as
    in "icdm:k=20,iterations=5". Each gives rows of its own, from distances corrected on the fly. `device` is where the
    neighbours that a correction rests on are searched: cpu, cuda, or auto (a GPU if there is one and it pays).

    >>> evaluate(X, labels, distance=["cosine", "euclidean"], permutations=1000).value("P@1", distance="cosine")
    """
    options = Options(
        distance=as_names(distance, "distance"),
        correct=parse_all(correct),
        metrics=None if metrics is None else as_names(metrics, "metrics"),
        k=as_counts(k, "k"),
        hub_k=hub_k,
        permutations=permutations,
        bootstrap=bootstrap,
        across_groups=across_groups,
        min_class_size=min_class_size,
        ties=ties,
        seed=seed,
        memory=byte_count(memory),
        threads=thread_count(threads),
        device=device,
        per_point=per_point,
        progress=progress,
    )
    data = check(vectors, labels, groups, options, ids)
    where = {"suite": suite, "subset": subset, "system": system}
    parts = [part for name in options.distance for part in measure(data, name, options, where)]
    per_point_values = {key: values for part in parts for key, values in part.per_point.items()}
    return Scores(
        rows=tuple(row for part in parts for row in part.rows),
        per_point=per_point_values,
        point_ids=data.ids if per_point else None,
        notes=data.notes,
    )


def hubness(
    vectors: Any,
    *,
    distance: str | Sequence[str] = "cosine",
    k: int = HUB_K,
    ties: spaces.Ties = "average",
    per_point: bool = False,
    ids: Sequence[str] | None = None,
    correct: str | Sequence[str] = "none",
    device: str = "auto",
    memory: str | int = "2GB",
    threads: int | None = None,
    system: str = "",
    subset: str = "",
    suite: str = "",
    progress: bool = False,
) -> Scores:
    """Measure how unevenly `vectors` [N, D] appear among each other's k nearest neighbours; no labels needed.

    With `per_point`, `Scores.per_point` holds each point's k-occurrence under the metric name "hub_ratio". `correct`
    and `device` as in `evaluate`: `correct=("none", "icdm")` gives the measures before and after a correction.
    """
    return study_hubness(
        vectors, distance=distance, k=k, ties=ties, per_point=per_point, ids=ids, correct=correct, device=device,
        memory=memory, threads=threads, system=system, subset=subset, suite=suite, progress=progress,
    ).scores  # fmt: skip


def compare(
    a: Any,
    b: Any,
    labels: Any,
    *,
    distance: str | Sequence[str] = "cosine",
    k: int | Sequence[int] = (1, 5),
    groups: Any = None,
    across_groups: bool = False,
    bootstrap: int = 300,
    permutations: int = 1000,
    min_class_size: int = 2,
    ties: spaces.Ties = "average",
    seed: int = 0,
    correct: str = "none",
    device: str = "auto",
    memory: str | int = "2GB",
    threads: int | None = None,
    names: tuple[str, str] = ("A", "B"),
    subset: str = "",
    suite: str = "",
    progress: bool = False,
) -> Scores:
    """Compare two embeddings of the same clips, query by query: rows "P@1:difference" (a minus b) and so on.

    Only metrics that are means over queries can be paired: P@k, GSR, CSR_pointwise, silhouette. The interval is
    a bootstrap over queries (over groups, when given); the p-value is two-sided, from swapping the embeddings. One
    hubness correction may be asked for; it applies to both.
    """
    corrections = parse_all(correct)
    if len(corrections) > 1:
        raise UsageError(f"compare takes one correction at a time, not {', '.join(map(str, corrections))}.")
    bootstrap, permutations = whole("bootstrap", bootstrap, 1), whole("permutations", permutations, 1)
    options = Options(
        distance=as_names(distance, "distance"), k=as_counts(k, "k"), across_groups=across_groups,
        min_class_size=min_class_size, ties=ties, seed=seed, bootstrap=bootstrap, permutations=permutations,
        correct=corrections, device=device,
    )  # fmt: skip
    common: dict[str, Any] = {
        "distance": options.distance,
        "metrics": ["P@k", *catalogue.POINT_MEANS],
        "k": options.k,
        "groups": groups,
        "across_groups": across_groups,
        "min_class_size": min_class_size,
        "ties": ties,
        "seed": seed,
        "correct": corrections,
        "device": device,
        "per_point": True,
        "memory": memory,
        "threads": threads,
        "progress": progress,
    }
    first, second = check_vectors(a, names[0]), check_vectors(b, names[1])
    if len(first) != len(second):
        raise InputError(
            f"{names[0]} has {len(first)} vectors and {names[1]} has {len(second)}: "
            "compare embeddings of the same clips."
        )
    started = time.perf_counter()
    scores_a = evaluate(first, labels, **common)
    scores_b = evaluate(second, labels, **common)
    seconds = time.perf_counter() - started
    codes = None if groups is None else group_codes(groups, len(first))
    counts = resampling.resample(np.arange(len(first)), codes, bootstrap, seed)
    inputs = hashlib.sha256(f"{scores_a.rows[0].inputs} {scores_b.rows[0].inputs} {options}".encode()).hexdigest()
    rows = []
    for row_a in scores_a.rows:
        row_b = scores_b.row(row_a.metric, distance=row_a.distance, protocol=row_a.protocol)
        common_fields: dict[str, Any] = {
            "suite": suite, "subset": subset, "system": f"{names[0]} - {names[1]}",
            "distance": row_a.distance, "correction": row_a.correction, "protocol": row_a.protocol,
            "metric": f"{row_a.metric}:difference",
            "seconds": seconds, "version": __version__, "inputs": inputs,
        }  # fmt: skip
        if row_a.status != "ok" or row_b.status != "ok":
            worse = row_a if row_a.status != "ok" else row_b
            rows.append(Row(status=worse.status, reason=worse.reason, **common_fields))
            continue
        key = (row_a.distance, row_a.correction, row_a.protocol, row_a.metric)
        found = paired.paired_difference(
            scores_a.per_point[key], scores_b.per_point[key], counts, codes, permutations, seed
        )
        if found is None:
            rows.append(Row(status="not_applicable", reason="no query is measured in both", **common_fields))
            continue
        rows.append(
            Row(
                value=found.value,
                low=found.low,
                high=found.high,
                p_value=found.p_value,
                n=found.n,
                reason=row_a.reason,
                **common_fields,
            )
        )
    return Scores(rows=tuple(rows), notes=scores_a.notes)
