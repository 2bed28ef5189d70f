"""One tiled pass over all pairs that feeds every quantity asked for.

      workers ->  tile of 128 rows x all columns, a strip of columns at a time
                  strip: one matrix product -> kernels.propose   (order: any strip width, float32 if it will do)
                                            -> kernels.add_class_sums (values: float64, one fixed strip width)
                  after the last strip: kernels.decide, class sums reduced, tile forgotten

Under a hubness correction a float64 strip of the fixed width becomes distances, then order keys (which propose), then
corrected distances (which enter sums): see pair_kernels.py.

The N x N matrix is never built: a worker holds one strip, the candidate lists of 128 rows and their class sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.geometry import devices, kernels, pair_kernels, tile_kernels
from earmark.geometry.factors import Factors, order_keys, spelled_out
from earmark.geometry.layout import Layout
from earmark.geometry.pair_kernels import GIVEN
from earmark.geometry.spaces import DEPTH, Space
from earmark.workers import Workers

Array = NDArray[Any]
Floats = NDArray[np.float64]
Progress = Callable[[int], None]  # called with the number of rows just finished
ClassVisitor = Callable[[str, int, Floats], None]  # (protocol, class, mean distances [1 + B, C])

ROWS = 128  # fixed: sums are reduced tile by tile, so the height is part of the result's last digit
VALUE_COLUMNS = 512  # fixed for the same reason, where the tile's values enter sums
ORDER_COLUMNS = (128, 2048)  # a strip that only orders may have any width: the budget picks it
SET_POINTS = 1024
SPARE = 11  # candidates kept beyond those needed, so that nearly every row is certified at once
FAR = 8


class Neighbours(NamedTuple):
    """The K nearest places of each place, ordered by (distance, original row); -1 and NaN past the last."""

    places: NDArray[np.int64]
    distances: Floats


@dataclass(frozen=True)
class Wanted:
    """What a sweep is to find. `weights` [B, N] (resampling counts per place) add B rows to class means.

    With `units` (one per place, 0..U-1) it also finds what would be the nearest point of another class if the unit of
    the nearest one were left out; `keep_sums` keeps the class sums of every place that asks, [queries, C] for each
    protocol.
    """

    neighbours: int
    farthest: bool = False
    class_sums: bool = False
    across_groups: bool = False
    weights: NDArray[np.uint16] | None = None
    visit_class: ClassVisitor | None = None
    units: NDArray[np.int64] | None = None
    keep_sums: bool = False


@dataclass(frozen=True)
class Swept:
    """What a sweep found under one protocol, per place; NaN where there is nothing to measure."""

    neighbours: Neighbours
    nearest_other: Floats
    farthest_same: Floats
    own_mean: Floats
    own_count: Floats
    other_mean: Floats
    nearest_unit: NDArray[np.int64]  # of the nearest point of another class; -1 where there is none
    second_other: Floats  # the distance of the nearest point of another class that is of another unit than that one
    class_sums: Floats  # [queries, C] in the order of the places, or [0, C] when they were not to be kept


@dataclass
class Lists:
    """Candidate lists of one tile of rows, under one protocol: see `kernels.propose`."""

    keys: Array
    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    near: int

    @classmethod
    def empty(cls, rows: int, near: int, far: int, dtype: type[np.floating[Any]]) -> Lists:
        width = 2 * near + far
        return cls(
            np.empty((rows, width), dtype),
            np.empty((rows, width), np.int64),
            np.zeros((rows, 3), np.int64),
            near,
        )


@dataclass
class _Pending:
    """Class means of a class whose rows lie in more than one tile."""

    code: int = -1
    sums: Floats = field(default_factory=lambda: np.empty(0))
    counts: Floats = field(default_factory=lambda: np.empty(0))


_Parts = list[tuple[str, _Pending]]
Propose = Callable[[], tuple[dict[str, Lists], Floats]]


def sweep(
    space: Space,
    layout: Layout,
    wanted: Wanted,
    *,
    factors: Factors | None = None,
    threads: int = 1,
    memory: int = 2 << 30,
    device: str = "cpu",
    rows: NDArray[np.int64] | None = None,
    progress: Progress | None = None,
) -> dict[str, Swept]:
    """Sweep all pairs once; the result maps "all" and, when wanted, "across_groups" to what was found.

    With `factors` (of the places of `layout`) every distance is the corrected one. `memory` bounds the strips in
    flight, in bytes. Results do not depend on it, nor on `threads`. `device` says where the products are made (see
    devices.py): it changes no neighbour and no distance, and of sums at most the last digits.

    `rows` are the places that ask (None: all of them); every place stays a candidate. What was found of a place that
    does not ask is NaN and -1; a class none of whose places ask is not visited, and the others are with the mean
    distances of those that do. Blocks of rows that begin at multiples of 128 give what a sweep of all gives, to the
    last bit; other rows may differ from it in the last digit of sums.
    """
    if wanted.across_groups and layout.groups is None:
        raise UsageError("across_groups needs the group of each row.")
    if factors is not None and factors.signed and (wanted.class_sums or wanted.farthest):
        raise UsageError("Differences have no meaningful sums: only neighbours can be found under this correction.")
    queries = np.arange(layout.n) if rows is None else _askers(rows, layout.n)
    run = _run_on(device, len(queries), space, layout, wanted, factors, threads, memory)
    run.search(queries, progress)
    run.settle_open_seconds()
    return run.found


class Without(NamedTuple):
    """What some places find when a unit is left out: their K nearest, and the distance of the nearest other class."""

    neighbours: Neighbours
    nearest_other: Floats


def search_without(
    space: Space,
    layout: Layout,
    rows: NDArray[np.int64],
    left_out: NDArray[np.int64],
    units: NDArray[np.int64],
    neighbours: int,
    *,
    across_groups: bool = False,
    factors: Factors | None = None,
    threads: int = 1,
    memory: int = 2 << 30,
    device: str = "cpu",
) -> Without:
    """Search the candidates of `rows` again, each without the points of one unit (`left_out`, one for each row)."""
    wanted = Wanted(neighbours, across_groups=across_groups, units=units)
    run = _run_on(device, len(rows), space, layout, wanted, factors, threads, memory)
    run.protocols = ("across_groups",) if across_groups else ("all",)
    run.left_out = np.full(layout.n, -1)
    run.left_out[rows] = left_out
    run.seconds = False
    run.search(rows, None)
    swept = run.found[run.protocols[0]]
    return Without(
        Neighbours(swept.neighbours.places[rows], swept.neighbours.distances[rows]), swept.nearest_other[rows]
    )


def _run_on(
    device: str, asking: int, space: Space, layout: Layout, wanted: Wanted, factors: Factors | None, threads: int,
    memory: int,
) -> Run:  # fmt: skip
    """The sweep of so many rows on a device; distances that were given are read, and no product is made of them."""
    kept = asking if wanted.keep_sums else 0
    if space.form != GIVEN:
        device = devices.resolve(device, asking * layout.n * space.points.shape[1])
        if device != "cpu":
            from earmark.geometry.torch_sweep import TorchRun

            return TorchRun(space, layout, wanted, factors, threads, memory, kept, device)
    return Run(space, layout, wanted, factors, threads, memory, kept)


class Run:
    """The state of one sweep: inputs, outputs, and the work on one tile."""

    device = "cpu"

    def __init__(
        self,
        space: Space,
        layout: Layout,
        wanted: Wanted,
        factors: Factors | None,
        threads: int,
        memory: int,
        kept: int = 0,
    ) -> None:
        self.space, self.layout, self.wanted, self.factors = space, layout, wanted, factors
        self.fix = spelled_out(factors)
        self.doubt = space.doubt if factors is None else factors.doubt(space)
        self.threads, self.memory = threads, memory
        self.k = max(1, min(wanted.neighbours, layout.n - 1))
        self.near, self.far = self.k + SPARE, FAR if wanted.farthest else 1
        self.first, self.last = layout.first, layout.last
        self.groups = layout.groups if layout.groups is not None else np.zeros(1, np.int64)
        self.units = wanted.units if wanted.units is not None else _own_units(layout)
        self.seconds = wanted.units is not None and not (factors is not None and factors.signed)
        self.left_out: NDArray[np.int64] | None = None
        self.protocols = ("all", "across_groups") if wanted.across_groups else ("all",)
        self.found = {name: _nothing(layout, self.k, kept) for name in self.protocols}
        self.open_seconds = {name: np.zeros(layout.n, bool) for name in self.protocols}
        self.sizes = layout.sizes.astype(np.float64)
        self.rooms = local()
        self.workers: Workers | None = None
        self.closed_form = space.halved and factors is None
        if wanted.class_sums and self.closed_form:
            self.class_operand, self.class_squares = summed_operand(space, layout.starts, threads=threads)

    def search(self, rows: NDArray[np.int64], progress: Progress | None) -> None:
        """Find everything wanted of `rows`."""
        space, wanted = self.space, self.wanted
        self.queries, self.asked = rows, np.bincount(self.layout.codes[rows], minlength=self.layout.classes)
        # Sums of square roots have no closed form: euclidean values come from a float64 product, and so do corrected
        # ones; given ones are what they are.
        wide = self.factors is not None or space.form == GIVEN or (wanted.class_sums and not space.halved)
        self.pass_twice(rows, [np.float64] if wide else [np.float32, np.float64], progress)

    def pass_twice(
        self, rows: NDArray[np.int64], precisions: list[type[np.floating[Any]]], progress: Progress | None
    ) -> None:
        """Sweep with products of one precision after the other; what none of them certifies is decided pair by pair."""
        with Workers(self.threads) as workers:
            self.workers = workers
            for step, dtype in enumerate(precisions):
                rows = self.pass_over(workers, rows, dtype, sums=step == 0, progress=progress)
                progress = None
                if not len(rows):
                    break
            for _ in workers.map(self.decide_by_every_pair, blocks(rows, 16)):
                pass

    def settle_open_seconds(self) -> None:
        """Search again where every candidate that was kept of the other classes is of one unit."""
        for name in self.protocols:
            rows = np.flatnonzero(self.open_seconds[name])
            if len(rows):
                out = self.found[name]
                out.second_other[rows] = search_without(
                    self.space, self.layout, rows, out.nearest_unit[rows], self.units, 1,
                    across_groups=name != "all", factors=self.factors, threads=self.threads, memory=self.memory,
                    device=self.device,
                ).nearest_other  # fmt: skip

    def banned(self, protocol: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The units whose points are no candidates of each row, -1 for none."""
        units = np.full((len(rows), 2), -1)
        if protocol != "all":
            units[:, 0] = self.units[rows]
        if self.left_out is not None:
            units[:, 1] = self.left_out[rows]
        return units

    def pass_over(
        self,
        workers: Workers,
        rows: NDArray[np.int64],
        dtype: type[np.floating[Any]],
        *,
        sums: bool,
        progress: Progress | None,
    ) -> NDArray[np.int64]:
        """Sweep the given rows with products of `dtype`; return the rows it could not certify."""
        bounds = self.bounds(dtype)
        sums = sums and self.wanted.class_sums
        failed: list[NDArray[np.int64]] = []

        def work(tile: tuple[NDArray[np.int64], Propose]) -> tuple[NDArray[np.int64], NDArray[np.bool_], _Parts]:
            tile_rows, propose = tile
            lists, class_sums = propose()
            certified = self._settle(tile_rows, lists, bounds)
            return tile_rows, certified, self.reduce_sums(tile_rows, class_sums) if sums else []

        def reduced() -> Iterator[tuple[int, _Parts]]:
            for tile_rows, certified, parts in workers.map(work, self.tiles(rows, dtype, sums)):
                failed.append(tile_rows[~certified])
                yield len(tile_rows), parts

        self.merge(reduced(), progress)
        return np.concatenate(failed) if failed else rows[:0]

    def merge(self, reduced: Iterable[tuple[int, _Parts]], progress: Progress | None) -> None:
        """Put together the classes that reach over several tiles; tiles come in order."""
        pending = {name: _Pending() for name in self.protocols}
        for done, parts in reduced:
            for name, part in parts:
                pending[name] = self._merge(name, pending[name], part)
            if progress is not None:
                progress(done)
        for name, last in pending.items():
            self._finish_class(name, last)

    def bounds(self, dtype: type[np.floating[Any]]) -> Floats:
        """How far the keys of each place can be from the truth."""
        return self.space.error_bound(dtype) if self.factors is None else np.zeros(self.layout.n)

    def tiles(
        self, rows: NDArray[np.int64], dtype: type[np.floating[Any]], sums: bool
    ) -> Iterator[tuple[NDArray[np.int64], Propose]]:
        """Tiles of rows, each with what gives its candidate lists and class sums."""
        columns = self.space.columns(dtype, self.memory, self.workers)
        values = sums and not self.closed_form
        width = VALUE_COLUMNS if values or self.factors is not None else strip_width(dtype, self.memory, self.threads)

        def propose(tile_rows: NDArray[np.int64]) -> tuple[dict[str, Lists], Floats]:
            lists, class_sums = self._tile(tile_rows, dtype, columns, width, values)
            return lists, self._closed_form_sums(tile_rows) if sums and self.closed_form else class_sums

        for tile_rows in blocks(rows, ROWS):
            yield tile_rows, partial(propose, tile_rows)

    def decide_by_every_pair(self, rows: NDArray[np.int64]) -> None:
        space, layout = self.space, self.layout
        for name in self.protocols:
            outputs = RowOutputs.empty(len(rows), self.k)
            kernels.exact_rows(
                space.raw, space.flat, space.form, space.scale, *self.fix, layout.order, rows,
                self.first, self.last, self.units, self.banned(name, rows), *outputs,
            )  # fmt: skip
            self._store(name, rows, outputs)
        space.release(8 * len(rows) * layout.n, whole=False)

    def _store(self, protocol: str, rows: NDArray[np.int64], outputs: RowOutputs) -> None:
        places, distances, other, far, unit, second, undecided = outputs
        if self.factors is not None:
            distances, other, far, second = (
                self.factors.distances(keys, rows) for keys in (distances, other, far, second)
            )
        out, there = self.found[protocol], _span(rows)
        out.neighbours.places[there] = places
        out.neighbours.distances[there] = distances
        out.nearest_other[there] = other
        out.farthest_same[there] = far
        out.nearest_unit[there] = unit
        out.second_other[there] = second
        self.open_seconds[protocol][there] = undecided

    def _tile(
        self,
        rows: NDArray[np.int64],
        dtype: type[np.floating[Any]],
        columns: Array,
        width: int,
        values: bool,
    ) -> tuple[dict[str, Lists], Floats]:
        space, layout = self.space, self.layout
        left = space.operands(dtype, rows)
        lists = {name: Lists.empty(len(rows), self.near, self.far, dtype) for name in self.protocols}
        banned = {name: self.banned(name, rows) for name in self.protocols}
        class_sums = np.zeros((len(rows), layout.classes if values else 0))
        if self.factors is None and isinstance(columns, np.ndarray) and left.ndim == 2 and left.shape[1] <= DEPTH:
            self._strips_at_once(rows, left, columns, width, lists, banned, class_sums, values)
        else:
            self._strips_in_turn(rows, left, columns, width, lists, banned, class_sums, values)
        return lists, class_sums

    def _strips_at_once(
        self,
        rows: NDArray[np.int64],
        left: Array,
        columns: Array,
        width: int,
        lists: dict[str, Lists],
        banned: dict[str, NDArray[np.int64]],
        class_sums: Floats,
        values: bool,
    ) -> None:
        space, layout = self.space, self.layout
        strip = self._room(ROWS * min(width, layout.n), left.dtype)
        feeds: list[Array] = []
        for name in self.protocols:
            feeds += [banned[name], lists[name].keys, lists[name].places, lists[name].counts]
        if len(self.protocols) < 2:
            feeds += [array[:0] for array in feeds]
        given: Any = (
            left, columns, width, strip, rows, self.first, self.last, self.units, self.near, self.wanted.farthest,
            *feeds,
        )  # fmt: skip
        if values:
            given += (
                layout.codes, layout.starts, space.squares, space.raw, space.flat, space.form, space.scale, class_sums,
            )  # fmt: skip
            tile_kernels.value_strips(*given)
        else:
            tile_kernels.order_strips(*given)

    def _room(self, size: int, dtype: np.dtype[Any]) -> Array:
        """Memory of this thread for a strip: sixteen threads that ask the system for some in every tile wait for it."""
        held: Array | None = getattr(self.rooms, dtype.name, None)
        if held is None or len(held) < size:
            held = np.empty(size, dtype)
            setattr(self.rooms, dtype.name, held)
        return held

    def _strips_in_turn(
        self,
        rows: NDArray[np.int64],
        left: Array,
        columns: Array,
        width: int,
        lists: dict[str, Lists],
        banned: dict[str, NDArray[np.int64]],
        class_sums: Floats,
        values: bool,
    ) -> None:
        space, layout, n = self.space, self.layout, self.layout.n
        dtype = lists["all"].keys.dtype if "all" in lists else lists["across_groups"].keys.dtype
        strip = np.empty((len(rows), min(width, n)), dtype)
        for c0 in range(0, n, width):
            c1 = min(c0 + width, n)
            # The last strip is narrower: it needs memory of its own, because kernels want contiguous rows.
            out = strip if c1 - c0 == strip.shape[1] else np.empty((len(rows), c1 - c0), dtype)
            tile = space.tile(left, columns, c0, c1, out)
            if self.factors is not None:
                order_keys(tile, c0, rows, space, self.factors)
                if self.factors.signed:
                    pair_kernels.lower_bounds(tile, c0, self.factors.first, self.doubt)
            for name, found in lists.items():
                kernels.propose(
                    tile, c0, rows, self.first, self.last, self.units, banned[name], self.near,
                    found.keys, found.places, found.counts, self.wanted.farthest,
                )  # fmt: skip
            if values:
                if self.factors is not None:
                    pair_kernels.corrected_from_keys(tile, c0, rows, self.factors.code)
                else:
                    kernels.distances_from_keys(
                        tile, c0, rows, space.squares, space.raw, space.flat, space.form, space.scale
                    )
                kernels.add_class_sums(tile, c0, layout.codes, layout.starts, class_sums)

    def _settle(self, rows: NDArray[np.int64], lists: dict[str, Lists], bounds: Floats) -> NDArray[np.bool_]:
        """Decide the candidates of a tile in float64; say which rows are certain."""
        space = self.space
        certified = np.ones(len(rows), bool)
        for name, found in lists.items():
            sure = np.empty(len(rows), bool)
            outputs = RowOutputs.empty(len(rows), self.k)
            kernels.decide(
                space.raw, space.flat, space.form, space.scale, *self.fix, self.layout.order, rows, bounds, self.doubt,
                found.keys, found.places, found.counts, found.near, self.wanted.farthest, self.k,
                self.units, self.seconds, *outputs, sure,
            )  # fmt: skip
            certified &= sure
            self._store(name, rows, outputs)
        return certified

    def reduce_sums(self, rows: NDArray[np.int64], sums: Floats) -> _Parts:
        """Reduce one tile's class sums to what is kept; hand back classes that reach into another tile."""
        layout = self.layout
        parts: _Parts = []
        for name in self.protocols:
            counts: Floats | None = None
            if name == "across_groups":
                sums, counts = self._leave_out_groups(rows, sums)
            own_mean, own_count, other_mean = (np.empty(len(rows)) for _ in range(3))
            kernels.summarise_sums(
                sums, self.sizes[None, :] if counts is None else counts, counts is None, layout.codes[rows],
                own_mean, own_count, other_mean,
            )  # fmt: skip
            out, there = self.found[name], _span(rows)
            out.own_mean[there], out.own_count[there], out.other_mean[there] = own_mean, own_count, other_mean
            if self.wanted.keep_sums:
                slot = int(np.searchsorted(self.queries, rows[0]))
                out.class_sums[slot : slot + len(rows)] = sums
            if self.wanted.visit_class is not None:
                parts += self._class_parts(name, rows, sums, counts)
        return parts

    def _leave_out_groups(self, rows: NDArray[np.int64], sums: Floats) -> tuple[Floats, Floats]:
        """Class sums and pair counts without the pairs inside a group."""
        space, layout = self.space, self.layout
        excluded, shared = np.zeros_like(sums), np.zeros_like(sums)
        kernels.same_group_sums(
            rows, self.groups, layout.group_starts, layout.group_members, layout.codes,
            space.raw, space.flat, space.form, space.scale, *self.fix, excluded, shared,
        )  # fmt: skip
        counts = self.sizes - shared
        counts[np.arange(len(rows)), layout.codes[rows]] -= 1.0
        left = np.where(counts > 0, np.maximum(sums - excluded, 0.0), 0.0)
        kernels.mend_remainders(
            sums, left, counts, rows, layout.starts, self.groups,
            space.raw, space.flat, space.form, space.scale, *self.fix,
        )  # fmt: skip
        return left, counts

    def _closed_form_sums(self, rows: NDArray[np.int64]) -> Floats:
        return closed_form_sums(self.space, self.layout, rows, self.class_operand, self.class_squares)

    def _class_parts(self, name: str, rows: NDArray[np.int64], sums: Floats, counts: Floats | None) -> _Parts:
        """Sums over the rows of each class in the tile; a class that is complete is visited at once."""
        parts: _Parts = []
        codes = self.layout.codes[rows]
        edges = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
        for start, stop in pairwise(edges):
            code = int(codes[start])
            weights = np.ones((1, stop - start))
            if self.wanted.weights is not None:
                weights = np.vstack([weights, self.wanted.weights[:, rows[start:stop]]])
            if counts is None and len(weights) == 1:
                pairs = (stop - start) * self.sizes[None, :]
                pairs[0, code] -= stop - start
            elif counts is None:
                pairs = np.outer(weights.sum(axis=1), self.sizes)
                pairs[:, code] -= weights.sum(axis=1)
            else:
                pairs = weights @ counts[start:stop]
            part = _Pending(code, weights @ sums[start:stop], pairs)
            if stop - start == self.asked[code]:
                self._finish_class(name, part)
            else:
                parts.append((name, part))
        return parts

    def _merge(self, name: str, held: _Pending, part: _Pending) -> _Pending:
        if held.code != part.code:
            self._finish_class(name, held)
            return part
        return _Pending(part.code, held.sums + part.sums, held.counts + part.counts)

    def _finish_class(self, name: str, part: _Pending) -> None:
        if part.code >= 0 and self.wanted.visit_class is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                means = np.where(part.counts > 0, part.sums / part.counts, np.nan)
            self.wanted.visit_class(name, part.code, means)


def _askers(rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The places that ask, each once and in order: classes are reduced as they come."""
    rows = np.unique(np.asarray(rows, np.int64))
    if len(rows) and (rows[0] < 0 or rows[-1] >= n):
        raise UsageError(f"Queries must be places from 0 to {n - 1}.")
    return rows


def _span(rows: NDArray[np.int64]) -> Any:
    """Rows as an index: a slice where they follow one another, which is copied without the interpreter's lock."""
    whole = len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1
    return slice(int(rows[0]), int(rows[-1]) + 1) if whole else rows


def strip_width(dtype: type[np.floating[Any]], memory: int, threads: int) -> int:
    """Columns of a strip that only orders, as the budget allows."""
    strip = ROWS * np.dtype(dtype).itemsize * threads
    return int(np.clip(memory // 8 // strip, *ORDER_COLUMNS))


def blocks(rows: NDArray[np.int64], height: int) -> Iterator[NDArray[np.int64]]:
    return (rows[start : start + height] for start in range(0, len(rows), height))


class RowOutputs(NamedTuple):
    """What the kernels fill in for each row of a tile."""

    places: NDArray[np.int64]
    distances: Floats
    other: Floats
    far: Floats
    unit: NDArray[np.int64]
    second: Floats
    undecided: NDArray[np.bool_]

    @classmethod
    def empty(cls, rows: int, k: int) -> RowOutputs:
        other, far, second = (np.full(rows, np.nan) for _ in range(3))
        unit, undecided = np.full(rows, -1), np.zeros(rows, bool)
        return cls(np.full((rows, k), -1), np.full((rows, k), np.nan), other, far, unit, second, undecided)


def _nothing(layout: Layout, k: int, kept: int) -> Swept:
    places, distances, other, far, unit, second, _ = RowOutputs.empty(layout.n, k)
    own_mean, own_count, other_mean = (np.full(layout.n, np.nan) for _ in range(3))
    return Swept(
        Neighbours(places, distances), other, far, own_mean, own_count, other_mean, unit, second,
        np.zeros((kept, layout.classes)),
    )  # fmt: skip


def _own_units(layout: Layout) -> NDArray[np.int64]:
    """The unit of each place: its group, where there are groups."""
    return np.arange(layout.n) if layout.groups is None else layout.groups


def closed_form_sums(
    space: Space, layout: Layout, rows: NDArray[np.int64], operand: Floats, class_squares: Floats
) -> Floats:
    """Sum of q / 2 of `rows` over each class, from the classes' own sums (`summed_operand`): one product."""
    left = np.column_stack([space.points[rows], space.squares[rows], np.ones(len(rows))])
    return mend_closed_form(np.maximum(left @ operand.T, 0.0), space, layout, rows, class_squares)


def mend_closed_form(
    sums: Floats, space: Space, layout: Layout, rows: NDArray[np.int64], class_squares: Floats
) -> Floats:
    """Put right, in place, what a closed form cannot know: collapsed classes, vectors without direction."""
    kernels.mend_collapsed_sums(sums, rows, space.squares, class_squares, layout.starts, space.raw, space.flat)
    for r in np.flatnonzero(space.flat[rows]):
        sums[r] = layout.sizes
        sums[r, layout.codes[rows[r]]] -= 1.0
    return sums


def summed_operand(
    space: Space, starts: NDArray[np.int64], order: NDArray[np.int64] | None = None, threads: int = 1
) -> tuple[Floats, Floats]:
    """Right operand of closed-form sums over sets of points, and each set's mean squared norm.

    Set c holds the places (of `order`, where it is given) from starts[c] to starts[c + 1]. With m directed points, sum
    of squares Q, sum vector S and f flat ones, the sum over the set of q / 2 = m |z|^2 / 2 + Q / 2 - z . S, plus 1 for
    each flat point.
    """
    norms, no_direction = space.squares, space.flat
    if order is not None:
        norms, no_direction = norms[order], no_direction[order]
    flat = np.add.reduceat(no_direction.astype(np.float64), starts[:-1])
    squares = np.add.reduceat(norms, starts[:-1])
    directed = np.diff(starts) - flat
    totals = np.empty((len(starts) - 1, space.points.shape[1]))

    def add_up(sets: slice) -> None:
        begin, end = starts[sets.start], starts[sets.stop]
        points = space.points[begin:end] if order is None else space.points[order[begin:end]]
        np.add.reduceat(points, starts[sets] - begin, axis=0, out=totals[sets])

    with Workers(threads) as workers:
        for _ in workers.map(add_up, _set_blocks(starts)):
            pass
    operand = np.column_stack([-totals, directed / 2, squares / 2 + flat])
    return operand, squares / np.maximum(directed, 1.0)


def _set_blocks(starts: NDArray[np.int64]) -> Iterator[slice]:
    """Sets put together until they hold SET_POINTS points."""
    first = 0
    for last in range(1, len(starts)):
        if starts[last] - starts[first] >= SET_POINTS or last == len(starts) - 1:
            yield slice(first, last)
            first = last


def pair_distances(
    space: Space, factors: Factors | None, rows: NDArray[np.int64], left: Floats, columns: Floats, c0: int, c1: int
) -> Floats:
    """The distances of `rows` to the places c0 to c1, corrected where there are factors, from a float64 product.

    `left` and `columns` are the float64 operands of the space. One block is one product: its last digits are the same
    whenever rows and bounds are.
    """
    tile = space.tile(left, columns, c0, c1, np.empty((len(rows), c1 - c0)))
    if factors is None:
        kernels.distances_from_keys(tile, c0, rows, space.squares, space.raw, space.flat, space.form, space.scale)
    else:
        order_keys(tile, c0, rows, space, factors)
        pair_kernels.corrected_from_keys(tile, c0, rows, factors.code)
    return tile
