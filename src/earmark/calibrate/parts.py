"""Parts of a data set, such as speakers or classes: what each reaches, and which of them stand out beyond chance.

    interval     of a share of hits: Clopper and Pearson's. Means of other values have none: all clips have their
                 neighbours among the same clips, and what these few clips share is more than their spread tells.
    elsewhere    the mean of the same strata in the other parts: of a speaker, the words it says, by other speakers
    p-value      two-sided and exact: if the values of each stratum were dealt out to the parts at random, how often
                 would a part of this size get as few hits, or as many? Twice the smaller tail, corrected for the
                 number of parts that can be judged (Holm), so that among all of them a false alarm comes in at most 5 %
                 of data sets in which parts make no difference.

Only values that are all 0 or 1 are hits. A part whose strata no other part has cannot be judged.

Clopper & Pearson, Biometrika 26(4), 1934; Holm, Scandinavian Journal of Statistics 6(2), 1979.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from earmark.calibrate.binomial import exact_interval
from earmark.calibrate.jackknife import LEVEL

Floats = NDArray[np.float64]
_Table = dict[Hashable, tuple[int, float]]
"""By stratum: how many values, and their sum."""


class Part(NamedTuple):
    """The mean of a part's values with its 95 % interval, that of the same strata elsewhere, and the p-value.

    `noticed` is the highest share of hits with which a part of this size and these strata would stand out as low, where
    there is one: what the test can see.
    """

    n: int
    value: float
    low: float | None
    high: float | None
    elsewhere: float | None
    p_value: float | None
    noticed: float | None = None


def measure_parts(
    values: Floats, parts: Sequence[Hashable], strata: Sequence[Hashable] | None = None
) -> dict[Hashable, Part]:
    """Every part that has a value, in the order of first appearance.

    Args:
        values: One for each clip, from 0 to 1; NaN where a clip has none.
        parts: The part of each clip; None where it is in none.
        strata: What the parts are compared within, such as the label of each clip; none: everything is one stratum.
    """
    values = np.asarray(values, np.float64)
    rows = [row for row, part in enumerate(parts) if part is not None and not np.isnan(values[row])]
    counts = _Counts(values, parts, strata, rows)
    tests = {name: counts.test(own) for name, own in counts.by_part.items()}
    adjusted = dict(zip(tests, holm([test and test.p_value for test in tests.values()]), strict=True))
    judged = sum(p_value is not None for p_value in adjusted.values())
    return {
        name: counts.part(name)._replace(
            p_value=adjusted[name],
            noticed=test and test.noticed((1.0 - LEVEL) / judged, len(counts.values[name])),
        )
        for name, test in tests.items()
    }


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction for the number of p-values; None stays, and counts for nothing."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[place] = largest
    return adjusted


class _Counts:
    """By stratum, how many values there are and their sum, of all parts and of each; and the values of each part."""

    def __init__(
        self, values: Floats, parts: Sequence[Hashable], strata: Sequence[Hashable] | None, rows: Sequence[int]
    ) -> None:
        self.whole: _Table = {}
        self.by_part: dict[Hashable, _Table] = {}
        self.values: dict[Hashable, list[float]] = {}
        for row in rows:
            stratum = None if strata is None else strata[row]
            for table in (self.whole, self.by_part.setdefault(parts[row], {})):
                n, total = table.get(stratum, (0, 0.0))
                table[stratum] = n + 1, total + float(values[row])
            self.values.setdefault(parts[row], []).append(float(values[row]))
        self.hits = bool(np.isin(values[list(rows)], (0.0, 1.0)).all())

    def part(self, name: Hashable) -> Part:
        """A part as it is, before it is tested."""
        values = np.array(self.values[name])
        low, high = exact_interval(float(values.sum()), len(values)) if self.hits else (None, None)
        return Part(len(values), float(values.mean()), low, high, self._elsewhere(self.by_part[name]), None)

    def _shared(self, own: _Table) -> list[Hashable]:
        return [stratum for stratum, (count, _) in own.items() if self.whole[stratum][0] > count]

    def _elsewhere(self, own: _Table) -> float | None:
        shared = self._shared(own)
        if not shared:
            return None
        means = [(self.whole[at][1] - own[at][1]) / (self.whole[at][0] - own[at][0]) for at in shared]
        return float(np.average(means, weights=[own[at][0] for at in shared]))

    def test(self, own: _Table) -> _Test | None:
        """None where the values are no hits, or where every deal gives the part the same."""
        open_ = [at for at in self._shared(own) if 0 < self.whole[at][1] < self.whole[at][0]]
        if not self.hits or not open_:
            return None
        chances = np.ones(1)
        for at in open_:
            size, hits = self.whole[at]
            chances = np.convolve(chances, hit_chances(size, round(hits), own[at][0]))
        fixed = round(sum(total for at, (_, total) in own.items() if at not in open_))
        return _Test(chances, round(sum(own[at][1] for at in open_)), fixed)


class _Test(NamedTuple):
    """How likely each number of hits is, the number there is, and those that every deal gives."""

    chances: Floats
    hits: int
    fixed: int

    @property
    def p_value(self) -> float:
        tails = self.chances[: self.hits + 1].sum(), self.chances[self.hits :].sum()
        return float(min(1.0, 2.0 * min(tails)))

    def noticed(self, level: float, size: int) -> float | None:
        below = np.flatnonzero(2.0 * np.cumsum(self.chances) < level)
        return (int(below[-1]) + self.fixed) / size if len(below) else None


def hit_chances(size: int, hits: int, drawn: int) -> Floats:
    """How likely 0, 1, … `drawn` hits are when so many are drawn of `size`, `hits` of which are hits."""
    count = np.arange(drawn + 1)
    possible = (count <= hits) & (drawn - count <= size - hits)
    inside = count[possible]
    logs = _log_ways(hits, inside) + _log_ways(size - hits, drawn - inside) - _log_ways(size, np.array([drawn]))
    chances = np.zeros(drawn + 1)
    chances[possible] = np.exp(logs)
    return chances


def _log_ways(n: int, k: NDArray[np.int64]) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
