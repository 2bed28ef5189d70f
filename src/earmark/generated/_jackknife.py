"""Intervals of fidelity metrics: the delete-d jackknife, both sets at once, with everything found anew.

    a round       the units of each set (points, or groups) are dealt into g parts; part b leaves all sets together,
                  b = 1..g, and the metric is measured on what stays: balls, GICDM factors, thresholds, references
    error         se^2 = (g - 1) * variance of the values over all rounds and parts
    interval      all t that |theta - t| <= q se sqrt(v(t) / v(theta)) does not exclude, q from Student's t

What a draw of either set changes is in it, since both lose units. They may lose them together: the two sets are drawn
independently, so the variances of their effects add up. Where a unit is in both sets (one speaker, one clip and its
coded copy) it leaves both. g is 2, or 4 where a set has fewer than FEW points; 24 smaller sets in all, which cost 7 to
13 evaluations of the whole (a half costs a quarter of the searches, GICDM somewhat more).

Why not delete one: balls and GICDM's thresholds change by jumps, and the delete-one error was 1.1 to 3.4 times the true
one in simulations; that of halves 0.9 to 1.3 times. The bootstrap would put copies at distance 0.

v(t) = (t - a)(b - t) for a metric between a and b (Wilson's interval), t for one that is at least 0, 1 for any other.
Where a share lies within a few points of its end, the interval is Clopper and Pearson's, of no more draws than units.
A metric that is cut at 1 has the interval of its uncut value, taken through the mean of a cut normal variable: the
target is the mean of cut values, which lies below the cut mean. How often the intervals hold: docs/sanity.md.

Shao and Wu, Annals of Statistics 17(3), 1989; Wilson, JASA 22(158), 1927.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from earmark.calibrate.binomial import exact_interval
from earmark.calibrate.jackknife import wilson
from earmark.errors import InputError
from earmark.vectors.texts import column_texts
from earmark.wording import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SETS = 24  # smaller pairs of sets in all
FEW = 200  # points under which a quarter leaves and not a half
LEAST_UNITS = 12
LEVEL = 0.95
EQUAL = 1e-12
FEW_MISSES = 5  # points: a share this near to its end varies less on smaller sets than it should


class Ends(NamedTuple):
    """An interval, or the reason why there is none."""

    low: float | None
    high: float | None
    reason: str = ""


@dataclass(frozen=True)
class Deal:
    """Which units there are in each set, and into how many parts they are dealt; `reason` when they are too few.

    The first set is the real one. With several generated sets all lose units at once, and each is compared with the
    same smaller real sets: differences between them are then paired.
    """

    codes: tuple[Ints, ...]  # the unit of every point of every set; a unit of several sets has one code
    parts: int
    seed: int

    def of(self, generated: int) -> Deal:
        """The deal as one of the generated sets sees it, counted from 1: what its interval rests on."""
        return Deal((self.codes[0], self.codes[generated]), self.parts, self.seed)

    @property
    def unit(self) -> str:
        return "clip" if all(len(np.unique(codes)) == len(codes) for codes in self.codes) else "group"

    @property
    def units(self) -> int:
        """Units of the smaller set: what the interval rests on."""
        return min(len(np.unique(codes)) for codes in self.codes)

    @property
    def points(self) -> int:
        """Points of the smaller set."""
        return min(map(len, self.codes))

    @property
    def reason(self) -> str:
        if self.units >= LEAST_UNITS:
            return ""
        return f"no interval: {counted(self.units, self.unit)} are too few, {LEAST_UNITS} are needed"

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the error."""
        return min(SETS // self.parts * (self.parts - 1), self.units - 1)

    def smaller(self) -> Iterator[tuple[Ints, ...]]:
        """Rows of the real and of the generated points that stay, the sets together, one smaller collection at a time.

        Units are dealt by the sets they are in, so that every set loses as equal a part as can be.
        """
        rng = np.random.default_rng([self.seed, 0x7AC])
        for dealt in dealt_parts(self.codes, self.parts, SETS // self.parts, rng):
            for part in range(self.parts):
                yield tuple(np.flatnonzero(of_points != part) for of_points in dealt)


def dealt_parts(codes: Sequence[Ints], parts: int, rounds: int, rng: np.random.Generator) -> Iterator[tuple[Ints, ...]]:
    """Units dealt into parts, round by round: the part of every point of every set.

    A unit of several sets is in the same part of all of them. Units are dealt by the sets they are in.
    """
    part_of = np.zeros(1 + max(int(each.max()) for each in codes), np.int64)
    owners = np.zeros(len(part_of), object)  # a bit for each set: whole numbers of any length
    for which, each in enumerate(codes):
        owners[np.unique(each)] += 1 << which
    alone = [1 << which for which in range(len(codes))]
    everywhere = (1 << len(codes)) - 1
    several = sorted({int(owner) for owner in owners} - {0, everywhere, *alone}, reverse=True)
    strata = [np.flatnonzero(owners == owner) for owner in (everywhere, *several, *alone)]
    for _ in range(rounds):
        for units in strata:
            # Parts of a stratum are as equal as can be, and it is chance which of them has one more.
            part_of[rng.permutation(units)] = (np.arange(len(units)) + rng.integers(parts)) % parts
        yield tuple(part_of[each] for each in codes)


Groups = Sequence[Any] | NDArray[Any] | None


def deal(sizes: Sequence[int], groups: Sequence[Groups] | None = None, seed: int = 0) -> Deal:
    """The units of the real points and of each generated set: every point, or every group where groups are given.

    A group's name means the same in every set.
    """
    codes: list[Ints] = []
    known: dict[Any, int] = {}
    for which, size in enumerate(sizes):
        given = None if groups is None else groups[which]
        labels = None if given is None else column_texts(given)
        if labels is not None and len(labels) != size:
            name = "generated" if which else "real"
            raise InputError(f"There are {size} {name} vectors and {len(labels)} groups: they must pair up one to one.")
        # A point without a group is a unit by itself, of its own set.
        names = [
            (which, row) if labels is None or (label := labels[row]) is None else ("group", label)
            for row in range(size)
        ]
        codes.append(np.array([known.setdefault(name, len(known)) for name in names], np.int64))
    return Deal(tuple(codes), 4 if min(sizes) < FEW else 2, seed)


def interval(
    value: float, smaller: Floats, deal: Deal, ends: tuple[float, float], *, uncut: float | None = None
) -> Ends:
    """The interval of `value`, a metric with range `ends`, from its values on smaller sets.

    `uncut` is given for a metric that is cut at 1: the value before the cut, as are then `smaller`.
    """
    if deal.reason:
        return Ends(None, None, deal.reason)
    if not np.isfinite(smaller).all():
        left = "half" if deal.parts == 2 else "three quarters"
        return Ends(None, None, f"no interval: on {left} of the points it cannot always be measured")
    error = error_of(smaller, deal.parts)
    q = float(stdtrit(deal.freedom, 0.5 + LEVEL / 2.0))
    if uncut is not None:
        return _cut(value, uncut, error, q, deal)
    if error == 0.0 and not _near_end(value, deal, ends):
        return Ends(None, None, f"no interval: no {deal.unit} changes the value")
    return Ends(*_bounds(value, error, deal, ends, q))


def error_of(smaller: Floats, parts: int) -> float:
    if float(np.ptp(smaller)) <= EQUAL:
        return 0.0
    return math.sqrt((parts - 1) * float(smaller.var(ddof=1)))


def _cut(value: float, uncut: float, error: float, q: float, deal: Deal) -> Ends:
    if uncut <= EQUAL or error == 0.0:
        if not _near_end(value, deal, (0.0, 1.0)):
            return Ends(None, None, f"no interval: no {deal.unit} changes the value")
        return Ends(*_bounds(value, error, deal, (0.0, 1.0), q))
    low, high = (_mean_of_cut(end, error) for end in _bounds(uncut, error, deal, (0.0, math.inf), q))
    return Ends(max(min(low, value), 0.0), max(high, value))


def _mean_of_cut(mean: float, error: float) -> float:
    """The mean of min(x, 1) for normal x."""
    z = (1.0 - mean) / error
    return 1.0 - ((1.0 - mean) * float(ndtr(z)) + error * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi))


def _near_end(value: float, deal: Deal, ends: tuple[float, float]) -> bool:
    """Whether so few points keep a share from its end that smaller sets may not show them."""
    width = ends[1] - ends[0]
    return math.isfinite(width) and min(value - ends[0], ends[1] - value) / width * deal.points < FEW_MISSES


def _bounds(value: float, error: float, deal: Deal, ends: tuple[float, float], q: float) -> tuple[float, float]:
    low, high = ends
    if math.isinf(low):
        return value - q * error, value + q * error
    if math.isinf(high):
        return _bounds_above(value - low, error, q, low)
    width, units = high - low, deal.units
    share, error = min(max((value - low) / width, 0.0), 1.0), error / width
    inside = min(max(share, 1.0 / (units + 2.0)), 1.0 - 1.0 / (units + 2.0))
    draws = inside * (1.0 - inside) / error**2 if error > 0.0 else math.inf
    if _near_end(value, deal, ends):
        trials = min(draws, float(units))
        shares = exact_interval(share * trials, trials)
        return low + width * shares[0], low + width * shares[1]
    shares = wilson(share, draws, q)
    return low + width * shares[0], low + width * shares[1]


def _bounds_above(value: float, error: float, q: float, low: float) -> tuple[float, float]:
    """Of a metric that is `low` or more: its variance is taken to grow with its height."""
    if value <= EQUAL:
        return low, low + q * error
    bend = (q * error) ** 2 / value
    half = math.sqrt(bend * value + bend * bend / 4.0)
    return low + max(value + bend / 2.0 - half, 0.0), low + value + bend / 2.0 + half


Key = tuple[str, str]
Measure = Callable[[tuple[Ints, ...]], Sequence[dict[Key, float]]]


def values_on_smaller(deal: Deal, keys: Sequence[Sequence[Key]], measure: Measure) -> list[dict[Key, Floats]]:
    """For each generated set, what `measure` gives on every smaller collection, by (correction, metric).

    NaN where it gives nothing. `keys` are those of each set; `measure` is called with the rows that stay in each set,
    the real one first, and returns the values of each generated set.
    """
    found: list[dict[Key, list[float]]] = [{key: [] for key in of_set} for of_set in keys]
    if not deal.reason:
        for rows in deal.smaller():
            for kept, values in zip(found, measure(rows), strict=True):
                for key, column in kept.items():
                    column.append(values.get(key, math.nan))
    return [{key: np.asarray(column, np.float64) for key, column in kept.items()} for kept in found]
