"""Searches on the CPU: BLAS products in tiles of rows by strips of columns, read by compiled kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.geometry import neighbour_kernels
from earmark.geometry._candidates import (
    Floats,
    Folded,
    Ints,
    Lists,
    Pairs,
    Precision,
    ball_limits,
    fold,
    left_operand,
    settle,
)
from earmark.geometry.kernels import BLOCK
from earmark.geometry.spaces import product
from earmark.geometry.sweep import ROWS, VALUE_COLUMNS, Neighbours, blocks, strip_width
from earmark.workers import Workers

Array = NDArray[Any]


class Cpu:
    """The backend of `candidates.Backend` that is always there."""

    def __init__(self, pairs: Pairs, threads: int, memory: int) -> None:
        self.pairs, self.threads, self.memory = pairs, threads, memory

    def keep_lists(self, length: int) -> Lists:
        return Lists.empty(self.pairs.rows.n, length)

    def find(
        self, workers: Workers, under: Floats, weights: Floats, dtype: Precision, rows: Ints, length: int, k: int,
        out: Neighbours, *, keep: Lists | None = None, ordered: bool = True,
    ) -> Iterator[tuple[int, Ints]]:  # fmt: skip
        folded = fold(self.pairs, under, dtype)
        width = strip_width(dtype, self.memory, self.threads)

        def work(block: Ints) -> tuple[int, Ints]:
            lists = self._lists(block, folded, under, dtype, length, width)
            found, certified = settle(self.pairs, block, lists, weights, k, ordered=ordered)
            out.places[block], out.distances[block] = found
            if keep is not None:
                keep.store(block, lists)
            return len(block), block[~certified]

        return workers.map(work, blocks(rows, ROWS))

    def settle(
        self, workers: Workers, lists: Lists, rows: Ints | None, weights: Floats, k: int, out: Neighbours
    ) -> None:
        everyone = np.arange(self.pairs.rows.n)

        def work(block: Ints | slice) -> None:
            part = lists.part(block)
            out.places[block], out.distances[block] = settle(self.pairs, everyone[block], part, weights, k)[0]
            if not isinstance(block, slice):  # of a slice the part is a view
                lists.store(block, part)

        parts: Iterable[Ints | slice] = (slice(start, start + ROWS) for start in range(0, len(everyone), ROWS))
        for _ in workers.map(work, parts if rows is None else blocks(rows, ROWS)):
            pass

    def _lists(self, rows: Ints, folded: Folded, weights: Floats, dtype: Precision, length: int, width: int) -> Lists:
        pairs, own = self.pairs, self.pairs.own(rows)
        room = (len(rows), 2 * length + BLOCK)
        keys, places = np.empty(room, dtype), np.empty(room, np.int32)
        counts, limits = np.zeros(len(rows), np.int64), np.full(len(rows), np.inf, dtype)
        for c0, tile in _strips(pairs, rows, folded, dtype, width):
            neighbour_kernels.gather(tile, c0, own, limits, length, keys, places, counts)
        lists = Lists.empty(len(rows), length)._replace(counts=counts)
        neighbour_kernels.close_lists(
            keys, limits, counts, places, folded.errors[rows], weights, pairs.form, pairs.scale, folded.key_scale,
            lists.distances, lists.known, lists.places, lists.floors,
        )  # fmt: skip
        return lists

    def visit(
        self, workers: Workers, weights: Floats, rows: Ints, columns: Ints, reaches: Floats, lists: Lists
    ) -> Iterator[tuple[Ints, NDArray[np.int8]]]:
        pairs = self.pairs
        folded = fold(pairs, weights, np.float32, columns)
        _, limits = ball_limits(pairs, folded, reaches)
        width = strip_width(np.float32, self.memory, self.threads)

        def work(block: Ints) -> tuple[Ints, NDArray[np.int8]]:
            part, changed = lists.part(block), np.zeros(len(block), np.int8)
            own = pairs.own(block)
            for c0, tile in _strips(pairs, block, folded, np.float32, width, columns):
                neighbour_kernels.visit(
                    tile, c0, columns, own, limits[block], part.places, part.distances, part.known, part.counts, changed
                )
            touched = changed > 0
            lists.store(block[touched], part.part(touched))
            return block, changed

        return workers.map(work, blocks(rows, ROWS))

    def balls(
        self, workers: Workers, radii: Floats, row_weights: Floats, weights: Floats, present: NDArray[np.bool_],
        strict: bool,
    ) -> Iterator[tuple[Ints, Ints, Ints]]:  # fmt: skip
        pairs = self.pairs
        columns = np.flatnonzero(present)
        folded = fold(pairs, weights, np.float32, columns)
        kept = weights[columns]
        lows, highs = ball_limits(pairs, folded, radii / row_weights)
        width = strip_width(np.float32, self.memory, self.threads)
        at = np.full(pairs.columns.n + 1, -1)  # where a column stands among those present; -1 for column -1
        at[columns] = np.arange(len(columns))

        def work(rows: Ints) -> tuple[Ints, Ints, Ints]:
            per_kept, per_row = np.zeros(len(columns), np.int64), np.zeros(len(rows), np.int64)
            for c0, tile in _strips(pairs, rows, folded, np.float32, width, columns):
                neighbour_kernels.count_inside(
                    tile, c0, at[pairs.own(rows)], rows, lows[rows], highs[rows], *pairs.decided_by, pairs.form,
                    pairs.scale, radii[rows], row_weights[rows], columns, kept, strict, per_kept, per_row,
                )  # fmt: skip
            per_column = np.zeros(pairs.columns.n, np.int64)
            per_column[columns] = per_kept
            return rows, per_column, per_row

        return workers.map(work, blocks(np.arange(pairs.rows.n), ROWS))

    def logs(self, workers: Workers, rows: Ints, reaches: Floats, weights: Floats) -> Iterator[tuple[Ints, Floats]]:
        pairs = self.pairs
        folded = fold(pairs, weights, np.float64)
        with np.errstate(over="ignore", under="ignore"):
            limits = pairs.key_of(reaches, folded.key_scale)

        def work(block: Ints) -> tuple[Ints, Floats]:
            totals = np.zeros(len(block))
            # Values enter sums here: strips of one fixed width.
            for c0, tile in _strips(pairs, block, folded, np.float64, VALUE_COLUMNS):
                neighbour_kernels.add_logs(
                    tile, c0, pairs.own(block), block, limits[block], folded.errors[block], pairs.rows.squares[block],
                    pairs.columns.squares, *pairs.decided_by, pairs.form, pairs.scale, folded.key_scale,
                    reaches[block], weights, totals,
                )  # fmt: skip
            return block, totals

        return workers.map(work, blocks(rows, ROWS))


def _strips(
    pairs: Pairs, rows: Ints, folded: Folded, dtype: Precision, width: int, columns: Ints | None = None
) -> Iterator[tuple[int, Array]]:
    """The keys of a block of rows with some columns or all, a strip at a time; a strip is soon overwritten."""
    right = folded.right
    left = rows if pairs.given else left_operand(pairs, rows, dtype)
    full = np.empty((len(rows), min(width, len(right))), dtype)
    for c0 in range(0, len(right), width):
        part = right[c0 : c0 + width]
        # The last strip is narrower: it needs memory of its own, because kernels want contiguous rows.
        out = full if len(part) == full.shape[1] else np.empty((len(rows), len(part)), dtype)
        if pairs.given:
            stop = c0 + len(part)
            chosen = np.arange(c0, stop) if columns is None else columns[c0:stop]
            out[:] = pairs.rows.raw[np.ix_(left, chosen)] * part
        else:
            product(left, part, out)
        yield c0, out
    pairs.rows.release()
