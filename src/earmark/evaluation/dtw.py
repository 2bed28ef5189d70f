"""DTW re-ranking: does the order of frames say what a pooled vector does not?

    frames of each clip     valid ones only, each scaled to norm 1
      PCA to 64, every 3rd  fitted on all frames of the set, without labels
    the 200 nearest clips   of the pooled vectors, as the caller found them
      DTW distance          reorders them, by (distance, row)

The distance of two sequences is the cost of the cheapest alignment divided by the number of its steps:

    C(i, j) = |a_i - b_j| + min(C(i-1, j-1), C(i-1, j), C(i, j-1)),    d = C(n-1, m-1) / steps

Conventions. Local cost is Euclidean. Of equally cheap alignments the shortest counts. Range [0, inf), lower
is nearer, 0 for equal sequences, and d(a, b) = d(b, a). The Sakoe-Chiba
band lies around the line from the first frames to the last, in relative time: cell (i, j) is open when
|i/(n-1) - j/(m-1)| <= radius, widened to half a frame of the shorter sequence where nothing else would connect.
A sequence of one frame is aligned with every frame of the other.

Sakoe & Chiba, IEEE TASSP 26(1), 1978. Used as in VocSim's sequence ablation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from earmark.embedding.pca import Moments
from earmark.errors import InputError, UsageError
from earmark.progress import Progress, progress_bar
from earmark.workers import Workers, thread_count

COMPONENTS = 64
STRIDE = 3
RADIUS = 0.1
PAIRS = 1 << 22  # pairs in hand at a time

Array = NDArray[Any]
Floats = NDArray[np.float32]
Places = NDArray[np.int64]

compiled = njit(cache=True, nogil=True)


@dataclass(frozen=True, eq=False)
class Sequences:
    """All sequences end to end: sequence i is `values[offsets[i] : offsets[i + 1]]`."""

    values: Floats
    offsets: Places

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Floats:
        return self.values[self.offsets[index] : self.offsets[index + 1]]


class Reranked(NamedTuple):
    """Rows of the candidates of each query, nearest first, and their DTW distances; both [N, M]."""

    indices: Places
    distances: NDArray[np.float64]


def prepare(
    frames: Iterable[Array], *, components: int | None = COMPONENTS, stride: int = STRIDE, pca_frames: int = 1_000_000
) -> Sequences:
    """Sequences from the valid frames [T, D] of each clip, ready to be compared.

    `frames` is gone through twice (PCA, then projection) unless `components` is None, so it must be a list or
    something else that can be iterated again. The PCA sees every frame up to about `pca_frames` in total, taken
    clip by clip. Where D or the number of frames is smaller than `components`, fewer remain.
    """
    if stride < 1:
        raise UsageError(f"The stride must be at least 1, not {stride}.")
    if components is not None and iter(frames) is frames:
        raise UsageError("DTW frames are gone through twice: give a list, not a generator.")
    project = None
    if components is not None:
        moments = Moments().extend(_first(pca_frames, map(_unit, frames)))
        project = moments.fit(components).transform if moments.count > 1 else None
    parts: list[Floats] = []
    for clip in frames:
        unit = _unit(clip)[::stride]
        parts.append(unit if project is None else project(unit))
    if not parts:
        raise InputError("There are no frames to align.")
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Sequences(np.ascontiguousarray(np.concatenate(parts)), offsets)


def rerank(
    candidates: Places,
    sequences: Sequences,
    *,
    queries: Places | None = None,
    radius: float = RADIUS,
    threads: int | None = None,
) -> Reranked:
    """Reorder the candidates [N, M] of every query by DTW distance; equal distances by row.

    Row q of `candidates` holds the rows nearest to q in the pooled space, q itself left out; with `queries` its first
    row belongs to queries[0], and so on. Lists are taken PAIRS pairs at a time, each pair of which is aligned once,
    whichever of the two asks for it: work and memory grow with the number of lists, not with its square.
    """
    _check_radius(radius)
    asking = np.arange(len(sequences)) if queries is None else np.asarray(queries, np.int64)
    if len(candidates) != len(asking):
        raise InputError(f"There are {len(candidates)} lists of candidates and {len(asking)} sequences.")
    count = len(sequences)
    for rows in (candidates, asking):
        if rows.size and not 0 <= rows.min() <= rows.max() < count:
            raise InputError(f"Candidates must be rows from 0 to {count - 1}.")
    indices, distances = np.empty(candidates.shape, np.int64), np.empty(candidates.shape)
    step = max(1, PAIRS // max(1, candidates.shape[1]))
    for start in range(0, len(candidates), step):
        part = slice(start, start + step)
        found = _distances_of_lists(asking[part], candidates[part], sequences, radius, threads)
        order = np.lexsort((candidates[part], found), axis=1)
        indices[part] = np.take_along_axis(candidates[part], order, axis=1)
        distances[part] = np.take_along_axis(found, order, axis=1)
    return Reranked(indices, distances)


def _distances_of_lists(
    queries: Places, candidates: Places, sequences: Sequences, radius: float, threads: int | None
) -> NDArray[np.float64]:
    count, (lists, width) = len(sequences), candidates.shape
    mine, others = np.repeat(queries, width), candidates.astype(np.int64).ravel()
    keys = np.minimum(mine, others) * count + np.maximum(mine, others)
    pairs, back = np.unique(keys, return_inverse=True)
    return _pair_distances(pairs // count, pairs % count, sequences, radius, threads)[back].reshape(lists, width)


def all_distances(
    sequences: Sequences, *, radius: float = RADIUS, threads: int | None = None, progress: Progress = False
) -> NDArray[np.float64]:
    """The DTW distances of all pairs, condensed: (0,1) (0,2) … (1,2) …, as `earmark.read_distances` takes them."""
    _check_radius(radius)
    count = len(sequences)
    distances = np.empty(count * (count - 1) // 2)
    done = row = 0
    with progress_bar(progress, len(distances), "dtw", "pair") as tick:
        while row < count - 1:
            rows = np.arange(row, min(count - 1, row + max(1, PAIRS // (count - 1 - row))))
            lengths = count - 1 - rows
            first = np.repeat(rows, lengths)
            ends = np.cumsum(lengths)
            second = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths) + first + 1
            distances[done : done + len(first)] = _pair_distances(first, second, sequences, radius, threads, tick)
            done, row = done + len(first), row + len(rows)
    return distances


def _pair_distances(
    first: Places,
    second: Places,
    sequences: Sequences,
    radius: float,
    threads: int | None,
    tick: Callable[[int], object] = lambda _: None,
) -> NDArray[np.float64]:
    out = np.empty(len(first))
    longest = int(np.diff(sequences.offsets).max())
    step = 2048

    def work(start: int) -> None:
        part = slice(start, start + step)
        _align_pairs(
            sequences.values, sequences.offsets, first[part], second[part], radius, out[part], *_workspace(longest)
        )

    with Workers(thread_count(threads)) as workers:
        for start, _ in enumerate(workers.map(work, range(0, len(first), step))):
            tick(min(step, len(first) - start * step))
    return out


def _unit(frames: Array) -> Floats:
    """Frames scaled to norm 1; a frame of zeros stays one."""
    wide = np.asarray(frames, dtype=np.float64)
    if wide.ndim != 2 or 0 in wide.shape:
        raise InputError(f"DTW needs frames [T, D] of every clip; one has the shape {wide.shape}.")
    norms = np.sqrt(np.einsum("td,td->t", wide, wide))[:, None]
    return (wide / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def _first(limit: int, blocks: Iterable[Floats]) -> Iterator[Floats]:
    """Blocks until `limit` rows have gone by."""
    seen = 0
    for block in blocks:
        yield block
        seen += len(block)
        if seen >= limit:
            return


def _check_radius(radius: float) -> None:
    if not 0 <= radius <= 1 or math.isnan(radius):
        raise UsageError(f"The band's radius is a share of the length from 0 to 1, not {radius}.")


def _workspace(longest: int) -> tuple[Array, Array]:
    """Two rows of costs and two of path lengths."""
    return np.empty((2, longest), np.float64), np.empty((2, longest), np.int64)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _local_cost(x: Any, i: Any, y: Any, j: Any) -> Any:
    # The sum may be reordered to fill vector registers: the only place where it is allowed.
    total = np.float32(0.0)
    for d in range(x.shape[1]):
        difference = x[i, d] - y[j, d]
        total += difference * difference
    return math.sqrt(total)


@compiled
def _align(x: Any, y: Any, radius: Any, costs: Any, steps: Any) -> Any:
    """Cost of the cheapest alignment over its number of steps. Rows run along the longer sequence."""
    if x.shape[0] < y.shape[0]:
        x, y = y, x
    n, m = x.shape[0], y.shape[0]
    across, along = n - 1, m - 1
    # |i/(n-1) - j/(m-1)| <= radius, in whole cells: |i*along - j*across| <= reach
    reach = max(radius * across * along, 0.5 * across) + 1e-9
    low_before, high_before = 0, -1
    for i in range(n):
        now, before = i % 2, 1 - i % 2
        low, high = 0, along
        if along > 0:
            low = max(0, math.ceil((i * along - reach) / across))
            high = min(along, math.floor((i * along + reach) / across))
        for j in range(low, high + 1):
            best, length = np.inf, 0
            if i == 0 and j == 0:
                best = 0.0
            if low_before < j <= high_before + 1:
                best, length = costs[before, j - 1], steps[before, j - 1]
            if low_before <= j <= high_before:
                other, other_length = costs[before, j], steps[before, j]
                if other < best or (other == best and other_length < length):
                    best, length = other, other_length
            if j > low:
                other, other_length = costs[now, j - 1], steps[now, j - 1]
                if other < best or (other == best and other_length < length):
                    best, length = other, other_length
            costs[now, j] = best + _local_cost(x, i, y, j)
            steps[now, j] = length + 1
        low_before, high_before = low, high
    last = (n - 1) % 2
    return costs[last, along] / steps[last, along]


@compiled
def _align_pairs(
    values: Any, offsets: Any, first: Any, second: Any, radius: Any, out: Any, costs: Any, steps: Any
) -> None:
    for p in range(first.shape[0]):
        x = values[offsets[first[p]] : offsets[first[p] + 1]]
        y = values[offsets[second[p]] : offsets[second[p] + 1]]
        out[p] = _align(x, y, radius, costs, steps)
