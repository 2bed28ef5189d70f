"""What nearest neighbours tell about single classes and clips: confusions, hubs, the worst retrievals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.geometry import spaces
from earmark.report.content import CloseUp

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_BLOCK = 1 << 24  # values in a block of vectors


class Confusions(NamedTuple):
    """`clips[p]` clips of class `true[p]` have a nearest neighbour of class `taken[p]`; classes in alphabetical order.

    Pairs of classes that do not occur are not kept: there are no more than clips, where all pairs of many classes would
    fill the memory.
    """

    classes: list[str]
    true: Ints
    taken: Ints
    clips: Ints

    @property
    def sizes(self) -> Ints:
        return np.bincount(self.true, self.clips, len(self.classes)).astype(np.int64)

    @property
    def wrong(self) -> int:
        """Clips whose nearest neighbour is of another class."""
        return int(self.clips[self.true != self.taken].sum())

    @property
    def counts(self) -> Ints:
        """All pairs as a matrix: for few classes."""
        counts = np.zeros((len(self.classes), len(self.classes)), np.int64)
        counts[self.true, self.taken] = self.clips
        return counts

    def among(self, chosen: Ints) -> Confusions:
        """Some of the classes, in this order, and the pairs inside them."""
        place = np.full(len(self.classes), -1)
        place[chosen] = np.arange(len(chosen))
        inside = (place[self.true] >= 0) & (place[self.taken] >= 0)
        return Confusions(
            [self.classes[i] for i in chosen], place[self.true[inside]], place[self.taken[inside]], self.clips[inside]
        )


class Confusion(NamedTuple):
    """`clips` of the `size` clips of class `true` have a nearest neighbour of class `taken_for`."""

    true: str
    taken_for: str
    clips: int
    size: int


class Hub(NamedTuple):
    """A clip that is the nearest neighbour of `times` clips, `wrong` of them of another class.

    `occurrences` counts the clips that have it among their k nearest, where that was measured.
    """

    row: int
    times: int
    wrong: int
    occurrences: int | None


class Neighbour(NamedTuple):
    row: int
    distance: float | None
    same: bool


class Retrieval(NamedTuple):
    """A query, its nearest neighbours, and the nearest clip of its own class with its rank among all."""

    row: int
    neighbours: list[Neighbour]
    own: Neighbour | None
    own_rank: int | None
    candidates: int | None


def nearest_rows(nearest: ArrayLike) -> Ints:
    """Rows as integers, -1 where there is no neighbour."""
    given = np.asarray(nearest, np.float64)
    return np.where(np.isfinite(given) & (given >= 0), given, -1).astype(np.int64)


def confusions_of(close_up: CloseUp) -> Confusions:
    """The confusions of a close-up: of clips with several labels, a neighbour that shares one confuses nothing."""
    labels, rows = close_up.labels, nearest_rows(close_up.nearest)
    if not (close_up.separator or close_up.background):
        return confusions(labels, rows)
    asking = [query for query, _ in _pairs(rows) if labels[query] != close_up.background]
    taken = [labels[query] if close_up.agree(query, int(rows[query])) else labels[rows[query]] for query in asking]
    count = len(asking)
    return confusions([*(labels[query] for query in asking), *taken], [*range(count, 2 * count), *[-1] * count])


def confusions(labels: Sequence[str | None], nearest: ArrayLike) -> Confusions:
    """Count, for every class, the classes of its clips' nearest neighbours; clips without one do not count."""
    rows = nearest_rows(nearest)
    pairs = [(str(labels[query]), str(labels[row])) for query, row in _pairs(rows) if labels[query] and labels[row]]
    classes = sorted({label for pair in pairs for label in pair})
    place = {name: number for number, name in enumerate(classes)}
    keys = np.array([place[true] * len(classes) + place[taken] for true, taken in pairs], np.int64)
    present, clips = np.unique(keys, return_counts=True)
    true, taken = np.divmod(present, max(1, len(classes)))
    return Confusions(classes, true, taken, clips.astype(np.int64))


def _pairs(rows: Ints) -> list[tuple[int, int]]:
    """Every clip that has a nearest neighbour, and that neighbour."""
    queries = np.flatnonzero(rows >= 0)
    return list(zip(queries.tolist(), rows[queries].tolist(), strict=True))


def top_confusions(found: Confusions, most: int = 10) -> list[Confusion]:
    """The most frequent confusions, by count and then by share of the class."""
    sizes = found.sizes
    pairs = [
        Confusion(found.classes[i], found.classes[j], int(clips), int(sizes[i]))
        for i, j, clips in zip(found.true, found.taken, found.clips, strict=True)
        if i != j
    ]
    return sorted(pairs, key=lambda pair: (-pair.clips, -pair.clips / pair.size, pair.true, pair.taken_for))[:most]


def most_confused(found: Confusions, most: int) -> Confusions:
    """The `most` most confused classes, ordered so that classes that are taken for each other are near."""
    off, count = found.true != found.taken, len(found.classes)
    wrong = sum(np.bincount(side[off], found.clips[off], count) for side in (found.true, found.taken))
    order = np.sort(np.argsort(-np.asarray(wrong), kind="stable")[:most])
    kept = found.among(order)
    return kept.among(_seriated(kept))


def _seriated(found: Confusions) -> Ints:
    """An order of the classes in which classes that are taken for each other stand side by side."""
    n = len(found.classes)
    if n < 3:
        return np.arange(n)
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    share = found.counts / np.maximum(found.sizes, 1)[:, None]
    close = (share + share.T) / 2
    apart = 1.0 - close / max(float(close.max()), 1e-12)
    np.fill_diagonal(apart, 0.0)
    return np.asarray(leaves_list(linkage(squareform(apart, checks=False), "average", optimal_ordering=True)), np.int64)


def hubs(close_up: CloseUp, most: int = 5) -> list[Hub]:
    """The clips that are nearest to the most others, those that are nearest to at least four."""
    rows = nearest_rows(close_up.nearest)
    times, wrong = np.zeros((2, len(rows)), np.int64)
    for query, row in _pairs(rows):
        times[row] += 1
        wrong[row] += not close_up.agree(query, row)
    lists = close_up.per_point.get("hub_ratio", np.full(len(rows), np.nan))
    order = np.lexsort((np.arange(len(rows)), -wrong, -times))[:most].tolist()
    counts = {row: int(lists[row]) if np.isfinite(lists[row]) else None for row in order}
    return [Hub(row, int(times[row]), int(wrong[row]), counts[row]) for row in order if times[row] >= 4]


def worst_queries(close_up: CloseUp, most: int = 4) -> list[int]:
    """Queries whose nearest neighbour is wrong, the most wrong first, one for each pair of classes while there are any.

    Most wrong is the lowest GSR (its nearest stranger is closest against its own class), then the lowest P@5.
    """
    labels = close_up.labels
    wrong = {
        query: (labels[query], labels[row])
        for query, row in _pairs(nearest_rows(close_up.nearest))
        if not close_up.agree(query, row)
    }
    unknown = np.full(len(labels), np.inf)
    values = [np.asarray(close_up.per_point.get(metric, unknown)) for metric in ("GSR", "P@5")]
    keys = [np.where(np.isfinite(own), own, np.inf) for own in values]
    order = sorted(wrong, key=lambda query: (*(key[query] for key in keys), query))
    first = {wrong[query]: query for query in reversed(order)}
    chosen = set(first.values())
    return sorted(order, key=lambda query: query not in chosen)[:most]


def retrieve(close_up: CloseUp, queries: list[int], most: int = 3) -> list[Retrieval]:
    """Neighbours of the queries with their distances; without vectors only the nearest, without a distance."""
    rows = nearest_rows(close_up.nearest)
    if close_up.vectors is None or not queries:
        return [
            Retrieval(row, [Neighbour(int(rows[row]), None, close_up.agree(row, int(rows[row])))], None, None, None)
            for row in queries
        ]
    found = []
    everyone = _evaluated(close_up, rows)
    for row, distances in zip(queries, _distances(close_up, queries), strict=True):
        allowed = everyone.copy()
        allowed[row] = False
        if close_up.protocol == "across_groups" and close_up.groups is not None and close_up.groups[row]:
            allowed &= np.array([group != close_up.groups[row] for group in close_up.groups])
        order = np.flatnonzero(allowed)
        order = order[np.argsort(distances[order], kind="stable")]
        if rows[row] in order:  # rounding may not contradict the evaluation about who is first
            order = np.concatenate([[rows[row]], order[order != rows[row]]])
        near = [
            Neighbour(other, float(distances[other]), close_up.agree(row, other)) for other in order[:most].tolist()
        ]
        own = next((place for place, other in enumerate(order.tolist()) if close_up.agree(row, other)), None)
        mate = None if own is None else Neighbour(int(order[own]), float(distances[order[own]]), True)
        found.append(Retrieval(row, near, mate, None if own is None else own + 1, len(order)))
    return found


def _evaluated(close_up: CloseUp, rows: Ints) -> NDArray[np.bool_]:
    """The clips that took part: who asked or was found and, where not all asked, the others of their classes."""
    labels, groups = close_up.labels, close_up.groups
    took = np.array([bool(label) for label in labels]) & (rows >= 0)
    took[rows[rows >= 0]] = True
    classes = {labels[row] for row in np.flatnonzero(took).tolist()} - {None, ""}
    known = np.array([label in classes for label in labels])
    if close_up.protocol == "across_groups" and groups is not None:
        known &= np.array([bool(group) for group in groups])
    return np.asarray(took | known)


def _distances(close_up: CloseUp, queries: list[int]) -> Floats:
    """Distances [Q, N] of a few queries to everyone, a block of vectors at a time."""
    vectors = np.asarray(close_up.vectors)
    asked = vectors[queries]
    step = max(1, _BLOCK // vectors.shape[1])
    count = len(queries)
    found = np.empty((count, len(vectors)))
    for start in range(0, len(vectors), step):
        block = vectors[start : start + step]
        space = spaces.prepare(np.concatenate([asked, block]), close_up.distance, ties=close_up.ties)
        squares = (
            space.squares[:count, None] + space.squares[count:] - 2.0 * space.points[:count] @ space.points[count:].T
        )
        flat = space.flat[:count, None] | space.flat[count:]
        squares = np.maximum(np.where(flat, spaces.FLAT_SQUARE, squares), 0.0)
        found[:, start : start + len(block)] = squares / 2 if space.halved else np.sqrt(squares) * space.scale
    return found
