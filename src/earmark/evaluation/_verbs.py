"""Evaluate vectors with labels, and hubness of vectors without; distances may stand in for vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.evaluation._label_sets import label_texts
from earmark.evaluation._measure import KeepLists, measure
from earmark.evaluation.data import Data, check, kept_for_reading, unlabelled
from earmark.evaluation.options import GIVEN, HUB_K, Options, as_counts, as_names, byte_count, kind_of_intervals, whole
from earmark.geometry import spaces
from earmark.geometry.corrections import Correction, parse_all
from earmark.metrics.catalogue import HUBNESS
from earmark.scores import Scores
from earmark.scores.spelling import refuse_reserved, with_sample
from earmark.vectors import Distances, given_distances
from earmark.vectors.class_samples import parse_sample
from earmark.vectors.frames import columns_taken
from earmark.vectors.texts import column_texts
from earmark.workers import thread_count


def evaluate(
    vectors: Any = None, labels: Any = None, *, distances: Any = None, distance_name: str = GIVEN,
    distance: str | Sequence[str] = "cosine",
    metrics: str | Sequence[str] | None = None, k: int | Sequence[int] = (1, 5), sample: str = "", queries: int = 0,
    permutations: int = 0, shuffle: str = "auto", intervals: str | None = None, bootstrap: int = 0, groups: Any = None,
    across_groups: bool = False, min_class_size: int = 2, label_separator: str = "", background: str = "",
    ties: spaces.Ties = "average", hub_k: int = HUB_K,
    seed: int = 0, per_point: bool = False, per_unit: bool = False, ids: Sequence[str] | str | None = None,
    correct: str | Sequence[str] = "none", device: str = "auto", memory: str | int = "2GB",
    threads: int | None = None, system: str = "", subset: str = "", suite: str = "", progress: bool = False,
) -> Scores:  # fmt: skip
    """Measure how well `vectors` [N, D] keep clips of one label together; returns Scores.

    Args:
        vectors: One row for each clip: an array, a tensor, or a data frame of pandas or polars.
        labels: One for each row, or a set or list of several, an empty one for background; or a table of 0 and 1 with a
            column for each label. None, NaN, pandas.NA, a masked entry or "" is unlabelled: dropped and counted. Of a
            data frame, the name of a column.
        distances: Distances that were computed elsewhere, instead of vectors: a square matrix, condensed distances, or
            what `earmark.read_distances` returns (which may also stand in the place of the vectors).
        distance_name: What such distances are called in the column `distance`.
        distance: One or several of cosine, euclidean, spearman.
        metrics: Names, in a list or with commas, or "all"; None is all but clustering (k-means, UMAP + HDBSCAN).
        k: The k of P@k, one or several.
        sample: Some clips of some classes, drawn with `seed`: "50x5" is 5 clips of each of the 50 most frequent
            classes, "50x5:random" of 50 classes at random; "all" stands for every one. Rows are then of the subset
            `<subset>~50x5`, or `<subset>~50x5:seed3`, and drawn by their `ids`, where there are some. "": everything.
        queries: For large collections: how many clips, drawn at random, ask for their neighbours among all of them.
            Values are estimates of what all clips would give, with intervals that know it. 0: all ask.
        permutations: Shuffles of the labels, as groups allow: each score gets a chance baseline, a lift and a p-value.
        shuffle: Which labels change places: "auto", as groups allow, or "clips", each with any other whatever their
            group, as in papers that know no groups. The column `shuffle` then says `clips_ignoring_groups`, for p is
            too small where clips of a group are alike. Under protocol across_groups it is always as groups allow.
        intervals: "jackknife" (the default: each clip, or each group, is left out as query and as candidate),
            "bootstrap" (queries are drawn and the candidates stay as they are: the interval is about other queries in
            this collection, and too narrow for another collection) or "none".
        bootstrap: Resamples of the queries; a number chooses that kind of interval.
        groups: The speaker, bird or recording of each row: the unit of intervals and tests. Of a data frame, the name
            of a column.
        across_groups: Also leave out all pairs of one group, as protocol "across_groups".
        min_class_size: Smaller classes are dropped, from queries and candidates alike.
        label_separator: What stands between the labels of a clip that has several, as in "wren;owl". A neighbour is
            then right where it shares a label; metrics that need one class for each clip are not applicable.
        background: The label of clips that hold none of the classes: candidates of all, queries never.
        ties: Ranks of equal values under spearman: "average", or "ordinal" as in published numbers.
        hub_k: Neighbours that the measures of hubness count.
        seed: Seed of shuffles, resamples and k-means.
        per_point: Keep the value of every point in `Scores.per_point`; `Scores.by_group` and `by_class` rest on them.
        per_unit: Keep the value without each clip, or group, in `Scores.per_unit`.
        ids: Names of the rows; of a data frame, the name of a column.
        correct: One or several hubness corrections: none, sphere, ls, nicdm, icdm, csls, mp, dsl, with parameters as in
            "icdm:k=20,iterations=5". Each gives rows of its own, from distances corrected on the fly.
        device: Where distances are computed: cpu, cuda, cuda:1, or auto (a GPU if torch sees one and it pays). No score
            depends on it.
        memory: Budget for tiles and batches, beside the vectors: "2GB", or a number of bytes.
        threads: Threads at work; None is one for each core. No result depends on it.
        system: Name of the model, for the column `system`.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.

    Returns:
        A row for each metric, distance, correction and protocol, each with its interval.

    >>> evaluate(X, labels, distance=["cosine", "euclidean"], permutations=1000).value("P@1", distance="cosine")
    >>> evaluate(distances=D, labels=labels, distance_name="dtw").value("P@1")
    >>> evaluate(frame, "species", groups="recording").plot()
    """
    refuse_reserved(subset, "subset")
    vectors, labels, groups, ids, remarks = columns_taken(vectors, labels, groups, ids)
    vectors, given = points_of(vectors, distances, distance, distance_name)
    if labels is None:
        raise UsageError("evaluate needs the labels of the clips: evaluate(vectors, labels).")
    kind, resamples = kind_of_intervals(intervals, bootstrap)
    options = Options(
        distance=as_names(distance, "distance"), correct=parse_all(correct), k=as_counts(k, "k"), hub_k=hub_k,
        metrics=None if metrics is None else as_names(metrics, "metrics"), sample=sample, queries=queries,
        permutations=permutations, shuffle=shuffle, intervals=kind, bootstrap=resamples, across_groups=across_groups,
        min_class_size=min_class_size, label_separator=label_separator, background=background, ties=ties, seed=seed,
        memory=byte_count(memory), threads=thread_count(threads),
        device=device, per_point=per_point, per_unit=per_unit, progress=progress,
    )  # fmt: skip
    labels, groups = kept_for_reading(labels), kept_for_reading(groups)
    data = check(vectors, labels, groups, options, ids)
    drawn = parse_sample(sample).drawn_with(seed) if sample else ""
    where = {"suite": suite, "subset": with_sample(subset, drawn), "system": system}
    scores = _scores(data, options, where, notes=(*remarks, *data.notes), given=given)
    if not per_point:
        return scores
    point_groups = None if groups is None else tuple(column_texts(groups))
    return replace(scores, point_labels=tuple(label_texts(labels, options)), point_groups=point_groups)


def points_of(vectors: Any, distances: Any, distance: str | Sequence[str], name: str) -> tuple[Any, str]:
    """What is measured, vectors or `Distances`, and the name of distances that were given ("": none were)."""
    if distances is not None and vectors is not None:
        raise UsageError("Both vectors and distances were given: give one of them.")
    if distances is None and not isinstance(vectors, Distances):
        if vectors is None:
            raise InputError("There is nothing to measure: give vectors as numbers [clips, dimensions], or distances.")
        return vectors, ""
    if distance != "cosine":
        raise UsageError(f"Distances were given, so there are none to compute: leave out distance={distance!r}.")
    if not isinstance(name, str) or not name.strip() or "," in name:
        raise UsageError(f"distance_name must be a word for the column `distance`, not {name!r}.")
    return given_distances(vectors if distances is None else distances), name.strip()


def hubness(vectors: Any = None, *, k: int = HUB_K, correct: str | Sequence[str] = "none", **options: Any) -> Scores:
    """Measure how unevenly `vectors` [N, D] appear among each other's k nearest neighbours; no labels needed.

    Args:
        vectors: One row for each clip.
        k: Length of the lists of neighbours.
        correct: One or several hubness corrections; `("none", "icdm")` gives the measures before and after one.
        options: Those of `evaluate` that need no labels: distances, distance_name, distance, ties, ids, device, memory,
            threads, system, subset, suite, progress; and per_point, which keeps how many lists each point is in, in
            `Scores.per_point` under the metric "hub_ratio".

    Returns:
        The four measures of hubness, for each distance and correction.

    >>> earmark.hubness(X, correct=("none", "icdm")).value("hub_ratio", correction="icdm")
    """
    return study_hubness(vectors, k=k, correct=correct, **options).scores


class HubStudy(NamedTuple):
    """`lists` maps (distance, correction) to the k nearest rows of every row, nearest first."""

    scores: Scores
    lists: dict[tuple[str, str], NDArray[np.int64]]


def study_hubness(
    vectors: Any = None, *, k: int = HUB_K, distances: Any = None, distance_name: str = GIVEN,
    ids: Sequence[str] | None = None, distance: str | Sequence[str] = "cosine",
    correct: str | Iterable[str | Correction] = "none", device: str = "auto", memory: str | int = "2GB",
    threads: int | None = None, system: str = "", subset: str = "", suite: str = "", **options: Any,
) -> HubStudy:  # fmt: skip
    """`hubness` with its neighbour lists: who lists whom, before and after a correction. Arguments as in `evaluate`."""
    refuse_reserved(subset, "subset")
    vectors, given = points_of(vectors, distances, distance, distance_name)
    k = whole("k", k, 1)  # before Options, which has another name for it
    if unknown := set(options) - {"ties", "per_point", "progress"}:
        raise TypeError(f"hubness has no parameter {', '.join(sorted(unknown))}")
    chosen = Options(
        distance=as_names(distance, "distance"), correct=parse_all(correct), metrics=HUBNESS, hub_k=k, device=device,
        memory=byte_count(memory), threads=thread_count(threads), **options,
    )  # fmt: skip
    data = unlabelled(vectors, ids)
    if data.rows < 3:
        raise InputError(f"Hubness needs at least 3 vectors; there are {data.rows}.")
    lists: dict[tuple[str, str], NDArray[np.int64]] = {}

    def keep(distance: str, correction: str, rows: NDArray[np.int64]) -> None:
        if rows.shape[1] >= k:  # a set of k points or fewer has no lists of k
            lists[distance, correction] = rows[:, :k].copy()

    where = {"suite": suite, "subset": subset, "system": system}
    return HubStudy(_scores(data, chosen, where, keep, given=given), lists)


def _scores(
    data: Data, options: Options, where: dict[str, str], keep_lists: KeepLists | None = None,
    notes: tuple[str, ...] = (), given: str = "",
) -> Scores:  # fmt: skip
    """The tables of all distances and corrections as one."""
    names = (given,) if given else options.distance
    parts = [part for name in names for part in measure(data, name, options, where, keep_lists)]
    notes = (*(data.distances.notes if data.distances is not None else ()), *notes)
    return Scores(
        rows=tuple(row for part in parts for row in part.rows),
        per_point={key: values for part in parts for key, values in part.per_point.items()},
        point_ids=data.ids if options.per_point else None,
        notes=notes,
        per_unit={key: values for part in parts for key, values in part.per_unit.items()},
    )
