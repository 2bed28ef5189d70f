"""Each clip's true nearest neighbours: in all dimensions, under the distance and correction that were measured.

The candidates are the clips that an evaluation ranks: labelled, of classes that are large enough, with a group where
pairs of a group are left out. Where labels allow no evaluation (none, or one class), every clip is a candidate. A clip
that is no candidate still asks for its neighbours among those that are, under distances without a correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.evaluation.data import check, check_vectors, group_codes
from earmark.evaluation.options import Options
from earmark.geometry import spaces
from earmark.geometry.corrections import Correction, Neighbourhoods, factors_of, on_sphere
from earmark.geometry.layout import lay_out
from earmark.geometry.neighbours import nearest
from earmark.geometry.sweep import Wanted, sweep
from earmark.progress import progress_bar

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Texts = Sequence[str | None]


class Lists(NamedTuple):
    """The k nearest rows of each row, nearest first, and their distances; -1 and NaN past the last.

    `ranked` are the rows that are candidates.
    """

    rows: Ints
    distances: Floats
    ranked: NDArray[np.bool_]


def ranked_rows(vectors: NDArray[Any], labels: Texts, groups: Texts | None, options: Options) -> Ints | None:
    """The rows that an evaluation ranks; None where labels and groups allow none.

    Vectors are checked already, so whatever is refused here is that there is nothing to compare.
    """
    try:
        return check(vectors, labels, groups, options, None).kept
    except InputError:
        return None


def neighbour_lists(
    vectors: Any, ranked: Ints, groups: Texts | None, distance: str, correction: Correction, k: int, options: Options
) -> dict[str, Lists]:
    """Lists by protocol: `all` and, where the options ask for it, `across_groups`."""
    values = check_vectors(vectors)
    if correction.name == "sphere":
        values = on_sphere(values)
    codes = None if groups is None else group_codes([groups[row] for row in ranked.tolist()], len(ranked))
    layout = lay_out(np.zeros(len(ranked), np.int64), codes)
    taking_part = np.zeros(len(values), bool)
    taking_part[ranked] = True
    across = options.across_groups and groups is not None
    protocols = ("all", "across_groups") if across else ("all",)
    empty = np.full((len(values), k), -1), np.full((len(values), k), np.nan)
    if len(ranked) < 2:
        return {name: Lists(*empty, taking_part) for name in protocols}
    space = spaces.prepare(values, distance, order=ranked, ties=options.ties, threads=options.threads)
    work: dict[str, Any] = {"threads": options.threads, "memory": options.memory, "device": options.device}
    factors = None
    if not correction.keeps_points:
        factors = factors_of(correction, Neighbourhoods(space, layout, [correction], **work))
    with progress_bar(options.progress, layout.n, f"{distance}: neighbours", "row") as tick:
        swept = sweep(
            space, layout, Wanted(neighbours=k, across_groups=across), factors=factors, progress=tick, **work
        )  # fmt: skip
    lists = {}
    for name in protocols:
        rows, distances = (array.copy() for array in empty)
        places, found = swept[name].neighbours
        rows[ranked, : places.shape[1]] = np.where(places >= 0, ranked[places], -1)
        distances[ranked, : places.shape[1]] = found
        lists[name] = Lists(rows, distances, taking_part)
    if factors is None and not taking_part.all():
        _ask_among(values, lists["all"], distance, min(k, len(ranked)), options, work)
    return lists


def _ask_among(
    values: NDArray[Any], lists: Lists, distance: str, k: int, options: Options, work: dict[str, Any]
) -> None:
    """Fill in the neighbours of the clips that are no candidates themselves."""
    ranked, others = np.flatnonzero(lists.ranked), np.flatnonzero(~lists.ranked)
    base, queries = spaces.prepare_pair(
        values[ranked], values[others], distance, ties=options.ties, threads=options.threads
    )
    found = nearest(base, k, queries=queries, **work)
    lists.rows[others, :k] = np.where(found.places >= 0, ranked[found.places], -1)
    lists.distances[others, :k] = found.distances
