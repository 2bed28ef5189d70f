"""What distances must be: finite, not negative, the same in both directions; checked a tile at a time.

Rounding is told from error by the size of the distances around a pair: half of an item's distances are larger than its
scale, so one item far from all others hides no mistake of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.progress import progress_bar
from earmark.vectors._condensed import count_of_condensed, pair_at
from earmark.wording import counted

Array = NDArray[Any]
Floats = NDArray[np.float64]
PairName = Callable[[int, int], str]

TILE = 512
CHUNK = 1 << 18
SAMPLED = 256  # rows from which the scale of an item's distances is taken
ROUNDING = 1e-5  # of the distances nearby: no more is lost to float32
SMALLEST, LARGEST = 1e-100, 1e100
SIMILARITIES = "are these similarities? give 1 - similarity"

SYMMETRISE: dict[str, Callable[[Floats, Floats], Floats]] = {
    "mean": lambda one, other: (one + other) / 2,
    "min": np.minimum,
    "max": np.maximum,
}


@dataclass(frozen=True)
class Checked:
    """How two directions become one (None: they are the same), whether some values are below 0 by rounding, and what a
    reader should know."""

    symmetrise: str | None
    rounded: bool
    notes: tuple[str, ...]


@dataclass
class Tally:
    """How many pairs have a fault, the first of them, and the largest extent."""

    count: int = 0
    first: tuple[int, int] | None = None
    most: float = 0.0

    def add(self, where: NDArray[np.bool_], extent: Floats, place: Callable[[int], tuple[int, int]]) -> None:
        """Count the marked entries; `place` is the pair of a flat index."""
        flat = np.flatnonzero(where)
        if not len(flat):
            return
        self.count += len(flat)
        first = place(int(flat[0]))
        if self.first is None or first < self.first:
            self.first = first
        self.most = max(self.most, float(extent.ravel()[flat].max()))


@dataclass
class _Faults:
    endless: Tally = field(default_factory=Tally)
    negative: Tally = field(default_factory=Tally)
    rounded: Tally = field(default_factory=Tally)  # below 0 by rounding
    uneven: Tally = field(default_factory=Tally)
    nearly: Tally = field(default_factory=Tally)  # uneven by rounding


def names_of_pairs(names: Sequence[str] | None) -> PairName:
    """What a pair is called in a message: by names, or by rows counted from 1."""
    if names is None:
        return lambda i, j: f"rows {i + 1} and {j + 1}"
    return lambda i, j: f'"{names[i]}" and "{names[j]}"'


def check_square(
    values: Array, name: PairName, source: str, symmetrise: str | None, *, release: Callable[[], None], progress: bool
) -> Checked:
    """Check a square matrix in tiles, each beside its mirror image; `release` lets go of what was read."""
    n = len(values)
    scale = _scales(values, release)
    diagonal = np.empty(n)
    largest = np.full(n, -np.inf)
    faults = _Faults()
    with progress_bar(progress and n > 4 * TILE, n, "distances: checks", "row") as tick:
        for i0 in range(0, n, TILE):
            rows = slice(i0, min(i0 + TILE, n))
            for j0 in range(i0, n, TILE):
                columns = slice(j0, min(j0 + TILE, n))
                _check_tile(values, rows, columns, scale, diagonal, largest, faults)
                release()
            tick(rows.stop - rows.start)
    refuse_similarities(diagonal, largest, source)
    notes = _refusals(faults, name, source)
    refuse_scale(float(np.max(largest)), source)
    if faults.uneven.count and symmetrise is None:
        assert faults.uneven.first is not None
        i, j = faults.uneven.first
        one, other = float(values[i, j]), float(values[j, i])
        raise InputError(
            f"{source} is not symmetric: {counted(faults.uneven.count, 'pair')} of {n * (n - 1) // 2}, first "
            f"{name(i, j)} ({one:.6g} and {other:.6g}); say what counts with --symmetrise mean, min or max."
        )
    how = None
    if faults.uneven.count:
        how = symmetrise
        notes.append(
            f"{source} is not symmetric: the {how} of both directions is taken, which differ for "
            f"{counted(faults.uneven.count, 'pair')}"
        )
    elif faults.nearly.count:
        how = symmetrise or "mean"
        notes.append(
            f"{source}: the two directions of {counted(faults.nearly.count, 'pair')} differ by rounding (at most "
            f"{faults.nearly.most:.2g}); their {how} is taken"
        )
    notes += own_notes(diagonal, scale, source)
    return Checked(how, bool(faults.rounded.count), tuple(notes))


def check_condensed(values: Array, name: PairName, source: str, *, complete: bool, progress: bool) -> Checked:
    """Check condensed distances in chunks; NaN stands for a pair that is not there unless they are `complete`."""
    n = count_of_condensed(len(values))
    sample = np.asarray(values[:: max(1, len(values) // CHUNK)], np.float64)
    scale = _median(np.abs(sample)[None, :].T)[0]
    faults = _Faults()
    largest = 0.0
    with progress_bar(progress and len(values) > 64 * CHUNK, len(values), "distances: checks", "pair") as tick:
        for start in range(0, len(values), CHUNK):
            part = np.asarray(values[start : start + CHUNK], np.float64)

            def place(index: int, start: int = start) -> tuple[int, int]:
                return pair_at(start + index, n)

            endless = ~np.isfinite(part)
            if not complete:
                endless &= ~np.isnan(part)
            faults.endless.add(endless, np.zeros(len(part)), place)
            below = part < 0
            if below.any():
                rounding = part >= -ROUNDING * scale
                faults.negative.add(below & ~rounding & np.isfinite(part), -part, place)
                faults.rounded.add(below & rounding, -part, place)
            largest = max(largest, float(np.max(np.abs(part), where=np.isfinite(part), initial=0.0)))
            tick(len(part))
    notes = _refusals(faults, name, source)
    refuse_scale(largest, source)
    return Checked(None, bool(faults.rounded.count), tuple(notes))


def own_notes(own: Floats, scale: Floats | float, source: str) -> list[str]:
    """What is said where items are not at distance 0 from themselves by more than rounding."""
    with np.errstate(invalid="ignore"):
        apart = int((~(np.abs(own) <= ROUNDING * scale)).sum())
    if not apart:
        return []
    return [f"{source}: {apart} of {len(own)} items are not at distance 0 from themselves, which is never used"]


def refuse_similarities(own: Floats, largest: Floats, source: str) -> None:
    """Refuse what looks like similarities: most items have a larger value with themselves than with any other.

    Where some items are copies, these reach that value too: it is enough that no item has a larger value elsewhere.
    """
    known = np.isfinite(own)
    with np.errstate(invalid="ignore"):
        over = int((known & (own > largest)).sum())
        level = known & (own >= largest) & (own != 0)
    if known.any() and bool((level == known).all()):
        over = int(level.sum())
    if over and 2 * over >= len(own):
        raise InputError(
            f"{source}: {over} of {len(own)} items have their largest value with themselves, which no distance has; "
            f"{SIMILARITIES}."
        )


def refuse_scale(largest: float, source: str) -> None:
    """Refuse distances whose products leave the range of numbers: corrections multiply and divide by them."""
    if largest and not SMALLEST <= largest <= LARGEST:
        raise InputError(
            f"{source}: the largest distance is {largest:.3g}, too {'small' if largest < 1 else 'large'} to compute "
            "with; divide all distances by one of their size."
        )


def _refusals(faults: _Faults, name: PairName, source: str) -> list[str]:
    """Refuse what no distance is; what is left to say of rounding."""
    if faults.endless.first is not None:
        raise InputError(
            f"{source}: {counted(faults.endless.count, 'value')} missing or infinite, first of "
            f"{name(*faults.endless.first)}; fill the gaps, or leave these items out."
        )
    below = faults.negative
    if below.first is not None:
        raise InputError(
            f"{source}: {counted(below.count, 'value')} below 0 (down to {-below.most:.6g}), first of "
            f"{name(*below.first)}; {SIMILARITIES}."
        )
    if faults.rounded.count:
        values = counted(faults.rounded.count, "value")
        return [f"{source}: {values} below 0 by rounding (at most {faults.rounded.most:.2g}) taken as 0"]
    return []


def _check_tile(
    values: Array, rows: slice, columns: slice, scale: Floats, diagonal: Floats, largest: Floats, faults: _Faults
) -> None:
    i0, j0 = rows.start, columns.start
    one = np.array(values[rows, columns], np.float64)
    width = one.shape[1]
    if i0 == j0:
        diagonal[rows] = one.diagonal()
        np.fill_diagonal(one, 0.0)
        mirrored = one.T
    else:
        mirrored = np.array(values[columns, rows].T, np.float64)

    def place(index: int) -> tuple[int, int]:
        return i0 + index // width, j0 + index % width

    def swapped(index: int) -> tuple[int, int]:
        i, j = place(index)
        return j, i

    both = ((one, place),) if i0 == j0 else ((one, place), (mirrored, swapped))
    nearby = np.minimum(scale[rows, None], scale[None, columns])
    for part, where in both:
        finite = np.isfinite(part)
        if not finite.all():
            faults.endless.add(~finite, np.zeros(part.shape), where)
        below = (part < 0) & finite
        if below.any():
            rounding = part >= -ROUNDING * nearby
            faults.negative.add(below & ~rounding, -part, where)
            faults.rounded.add(below & rounding, -part, where)
    if i0 == j0:
        inside = np.where(np.eye(len(one), dtype=bool), -np.inf, one)
        largest[rows] = np.maximum(largest[rows], inside.max(axis=1))
    else:
        largest[rows] = np.maximum(largest[rows], one.max(axis=1))
        largest[columns] = np.maximum(largest[columns], mirrored.max(axis=0))
    with np.errstate(invalid="ignore"):
        gap = np.abs(one - mirrored)
    if not gap.any():
        return
    uneven = gap > 0
    if i0 == j0:
        uneven &= np.triu(np.ones(gap.shape, bool))
    rounding = gap <= ROUNDING * np.maximum(np.maximum(np.abs(one), np.abs(mirrored)), nearby)
    faults.uneven.add(uneven & ~rounding, gap, place)
    faults.nearly.add(uneven & rounding, gap, place)


def _scales(values: Array, release: Callable[[], None]) -> Floats:
    """The median distance of each item to a sample of the others."""
    n = len(values)
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLED)).astype(np.int64))
    sample = np.empty((len(rows), n))
    for place, row in enumerate(rows):
        sample[place] = np.abs(np.asarray(values[row], np.float64))
        sample[place, row] = np.nan
        if place % 16 == 0:
            release()
    release()
    return _median(sample)


def _median(sample: Floats) -> Floats:
    """The median of the finite values of each column; 0 where there are none."""
    sample = np.sort(np.where(np.isfinite(sample), sample, np.inf), axis=0)  # inf goes last
    counts = np.isfinite(sample).sum(axis=0)
    middle = sample[np.maximum(counts - 1, 0) // 2, np.arange(sample.shape[1])]
    return np.where(counts > 0, middle, 0.0)
