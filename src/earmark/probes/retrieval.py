"""Coded clips look for their own kind among clean ones: the nearest, the ranking, and how far kinds keep apart.

Query i is a coded clip, the index are the clean clips without clip i itself: its own clean version would answer every
question. Distances are cosine (1 - cos; 1 where a vector has no direction), ties go to the lower row.

    hit       1 if the nearest clean clip has the query's label                     mean: P@1       [0, 1], higher
    ap        mean over the query's own kind, in order of nearness, of the share of its kind among the clips up to
              there                                                                 mean: mAP       [0, 1], higher
    gsr       ((NID - AvgID) / (NID + AvgID + eps) + 1) / 2: NID to the nearest of another kind, AvgID the mean to its
              own (see `earmark.metrics.separation`)                                mean: GSR       [0, 1], higher

A query whose label no other clip has cannot be answered: NaN, left out of every mean. With coded and clean vectors
alike these are P@1 and GSR of `earmark.evaluate`, to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.permutation import Null, against_null
from earmark.corpora.clips import Clip
from earmark.extractors.contract import Extractor
from earmark.metrics.separation import gsr
from earmark.probes._encoding import EncoderTask, codes_of, unit_vectors

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

QUANTITIES = ("hit", "ap", "gsr")
BLOCK = 256  # queries at once
PERMUTATIONS = 200  # shuffles behind a baseline


class RetrievalTask(EncoderTask):
    """A task whose baseline comes from so many shuffles of the labels; the rest is `EncoderTask`'s."""

    def __init__(self, model: str | Extractor = "", *, permutations: int = PERMUTATIONS, **options: Any) -> None:
        super().__init__(model, **options)
        self.permutations = permutations


def label_codes(clips: Sequence[Clip]) -> Codes:
    """A number for each label; -1 for a clip without one."""
    return codes_of([clip.label or None for clip in clips])


def answers(queries: Floats, index: Floats, labels: Codes, wanted: Sequence[str] = QUANTITIES) -> dict[str, Floats]:
    """What coded `queries` [N, D] find among clean vectors `index` [N, D] of the same clips: a value for each query.

    `labels` are codes [N]; -1 is a clip without label, which is in no one's way and asks nothing. A row of codes for
    each shuffle, [P, N], gives values [P, N].
    """
    queries, index = unit_vectors(queries), unit_vectors(index)
    many = np.atleast_2d(labels)
    values = {name: np.full(many.shape, np.nan) for name in wanted}
    for start in range(0, many.shape[1], BLOCK):
        rows = np.arange(start, min(start + BLOCK, many.shape[1]))
        distances = _cosine_rows(queries, index, rows, many[0] >= 0)
        order = np.argsort(distances, axis=1, kind="stable") if {"hit", "ap"} & set(wanted) else None
        ranks = _ranks(order) if order is not None and "ap" in wanted else None
        for shuffle, codes in enumerate(many):
            for name, block in _block(distances, order, ranks, codes, rows, wanted).items():
                values[name][shuffle, rows] = block
    return values if np.ndim(labels) == 2 else {name: rows[0] for name, rows in values.items()}


def answers_without(queries: Floats, index: Floats, labels: Codes, units: Codes) -> dict[str, Floats]:
    """The means of `hit` and `gsr` without each unit: its clips neither ask, coded, nor answer, clean.

    `units` [N] numbers the clip or the group of each clip, 0..U-1. NaN where no question is left.
    """
    queries, index = unit_vectors(queries), unit_vectors(index)
    size, n = int(units.max()) + 1, len(labels)
    clips = size == n
    member = np.eye(0) if clips else np.equal.outer(units, np.arange(size)).astype(np.float64)
    totals = {name: np.zeros(size) for name in ("hit", "gsr")}
    counts = {name: np.zeros(size) for name in ("hit", "gsr")}
    for start in range(0, n, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n))
        distances = _cosine_rows(queries, index, rows, labels >= 0)
        same = (labels[rows, None] == labels[None, :]) & np.isfinite(distances)
        own = np.where(same, distances, 0.0)
        # Of the query's own kind, how many and how far in each unit.
        shared, sums = (own_part[:, np.argsort(units)] for own_part in (same, own)) if clips else (
            same @ member, own @ member
        )  # fmt: skip
        left = same.sum(axis=1, keepdims=True) - shared
        answerable = (left > 0) & (labels[rows] >= 0)[:, None] & (units[rows, None] != np.arange(size))
        _add(totals, counts, "hit", _nearest_without(distances, same, units, size, False), answerable)
        others = np.where(same, np.inf, distances)
        nearest = _nearest_without(others, others, units, size, np.inf)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.maximum(own.sum(axis=1, keepdims=True) - sums, 0.0) / left
            values = gsr(nearest, means)
        _add(totals, counts, "gsr", values, answerable & np.isfinite(nearest))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {name: np.where(counts[name] > 0, totals[name] / counts[name], np.nan) for name in totals}


def _nearest_without(
    distances: Floats, values: NDArray[Any], units: Codes, size: int, none: float | bool
) -> NDArray[Any]:
    """For each query and each unit [Q, U], the value of the nearest clip when the unit is left out.

    That is the nearest of all or, where it belongs to the unit, the nearest of the other units.
    """
    queries = np.arange(len(distances))
    first = distances.argmin(axis=1)
    unit = np.where(np.isfinite(distances[queries, first]), units[first], -1)
    rest = np.where(units[None, :] == unit[:, None], np.inf, distances)
    second = rest.argmin(axis=1)
    best = np.where(unit >= 0, values[queries, first], none)
    other = np.where(np.isfinite(rest[queries, second]), values[queries, second], none)
    return np.where(unit[:, None] == np.arange(size), other[:, None], best[:, None])


def _add(
    totals: dict[str, Floats], counts: dict[str, Floats], name: str, values: Floats, valid: NDArray[np.bool_]
) -> None:
    totals[name] += np.where(valid, values, 0.0).sum(axis=0)
    counts[name] += valid.sum(axis=0)


def chance(
    queries: Floats, index: Floats, labels: Codes, scores: Mapping[str, float], permutations: int, seed: int
) -> dict[str, Null]:
    """What chance reaches for each of the means in `scores`: labels move over clips, coded and clean together."""
    known = np.flatnonzero(labels >= 0)
    mixed = np.tile(labels, (permutations, 1))
    for number in range(permutations):
        mixed[number, known] = np.random.default_rng([seed, 7, number]).permutation(labels[known])
    shuffled = answers(queries, index, mixed, tuple(scores))
    return {name: against_null(scores[name], np.nanmean(values, axis=1)) for name, values in shuffled.items()}


def _cosine_rows(queries: Floats, index: Floats, rows: Codes, labelled: NDArray[np.bool_]) -> Floats:
    """Distances of some queries to every clean clip; infinite to the clip itself and to those without a label."""
    distances = 1.0 - queries[rows] @ index.T
    distances[:, ~labelled] = np.inf
    distances[np.arange(len(rows)), rows] = np.inf
    return np.asarray(distances)


def _block(
    distances: Floats, order: Codes | None, ranks: Codes | None, codes: Codes, rows: Codes, wanted: Sequence[str]
) -> dict[str, Floats]:
    own = codes[rows]
    known = own >= 0
    answerable = known & (np.bincount(codes[codes >= 0], minlength=1)[np.where(known, own, 0)] > 1)
    values: dict[str, Floats] = {}
    if order is not None:
        values["hit"] = (codes[order[:, 0]] == own).astype(np.float64)
    if ranks is not None:
        values["ap"] = _average_precision(ranks, codes, rows)
    if "gsr" in wanted:
        values["gsr"] = _gsr(distances, (own[:, None] == codes[None, :]) & np.isfinite(distances))
    return {name: np.where(answerable, values[name], np.nan) for name in wanted}


def _ranks(order: Codes) -> Codes:
    """The rank of every clean clip for each query, from 1."""
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, order.shape[1] + 1)[None, :], axis=1)
    return ranks


def _average_precision(ranks: Codes, codes: Codes, rows: Codes) -> Floats:
    """Where a query's own kind stands at ranks r_1 < r_2 < …, the mean of k / r_k: work for its kind alone."""
    kinds = _members(codes)
    own = kinds[np.maximum(codes[rows], 0)]  # -1 where a kind has fewer clips than the largest
    counted = (own >= 0) & (own != rows[:, None])
    places = np.where(counted, np.take_along_axis(ranks, np.maximum(own, 0), axis=1), np.iinfo(np.int64).max)
    places.sort(axis=1)
    held = np.arange(1, places.shape[1] + 1)
    count = counted.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(held <= count[:, None], held / places, 0.0).sum(axis=1) / count)


def _members(codes: Codes) -> Codes:
    """The clips of each kind, [kinds, size of the largest], filled up with -1."""
    sizes = np.bincount(codes[codes >= 0], minlength=1)
    members = np.full((len(sizes), max(1, int(sizes.max()))), -1, np.int64)
    order = np.argsort(codes, kind="stable")[(codes < 0).sum() :]
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    members[codes[order], np.arange(len(order)) - starts] = order
    return members


def _gsr(distances: Floats, same: NDArray[np.bool_]) -> Floats:
    nearest_other = np.where(same, np.inf, distances).min(axis=1)
    own = np.where(same, distances, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isfinite(nearest_other), gsr(nearest_other, own / same.sum(axis=1)), np.nan)
