"""Ranks, and the interval that a rank deserves: one definition, for the leaderboard and for `analyze`.

    rank       by the mean over the datasets; 1 is best, equals share the better rank; none for a line with a gap
    interval   low = 1 + how many are surely ahead,  high = all - how many are surely behind
    tier       1 where nobody is surely ahead; else one below the last tier that holds somebody who is

Who is *surely* ahead or behind: for each line, the paired differences to every other line over the datasets are tested
by Student's t, and Holm's procedure corrects for the number of others. So the chance that anything is wrongly put
before or behind the line is at most 5 %, and the interval holds the rank by the means over all the datasets that one
could have taken, of which these are a sample, with at least 95 %. Errors of the scores themselves are part of the
differences.

With fewer than three datasets nothing can be said of others that one could have taken. Then the datasets are fixed and
the differences are tested by the scores' own intervals, where both lines have one; a line without has no interval, and
as it may be ahead of anybody or behind, it widens those of others. These errors are what authors state. So that nobody
is lifted by a wide one of his own, a line has no tier there where it would have a better one than a line whose mean is
as good or better: its interval says how little is known, and it is told neither to be level with the best nor behind.

The interval is of each rank by itself, not of all ranks at once. So the line that is truly the best is in tier 1 with
at least 95 %, and whoever is in a later tier is surely behind somebody of the tier before. Why it is this one, with its
coverage by simulation, stands in `docs/decisions/0012-one-rank.md`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.prowl import win_rates
from earmark.errors import UsageError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Source = Literal["datasets", "errors", ""]

LEVEL = 0.95
FEWEST_DATASETS = 3
"""Below this number the datasets say nothing of others; only the errors of the scores count."""
DEVIATIONS = 1.959963984540054
"""Half the width of a 95 % interval in standard deviations."""
_TIE = 1e-9
_AT_ONCE = 100_000  # pairs: what the cache of a processor holds
_FEW_OF = 100
"""So many pairs in doubt for each line are few; with more of them it is faster to look at all."""


class RankIntervals(NamedTuple):
    """Ranks [lines]; 0 is no rank, a `low` and `high` of 0 no interval, and a `tier` of 0 none: not told.

    `source` says what the intervals rest on: the datasets, the errors of the scores, or nothing. `told_apart` is the
    share of pairs of ranked lines of which one is surely ahead.
    """

    rank: Whole
    low: Whole
    high: Whole
    tier: Whole
    source: Source
    told_apart: float


class _Verdicts(NamedTuple):
    """Of each line: how many others are surely ahead, how many surely behind, and its tier."""

    ahead: Whole
    behind: Whole
    tier: Whole


def rank_intervals(values: Floats, error: Floats | None = None, *, level: float = LEVEL) -> RankIntervals:
    """Ranks by the mean of `values` [lines, datasets], of which more is better; NaN is a gap. A line with an infinite
    value is ranked by it, without an interval.

    error  the standard error of each line's mean [lines], NaN where it is not known; only for fewer than three datasets
    """
    count, datasets = values.shape
    rank, low, high, tier = (np.zeros(count, np.int64) for _ in range(4))
    whole = np.flatnonzero(~np.isnan(values).any(axis=1)) if datasets else np.zeros(0, np.int64)
    mine = values[whole]
    if not whole.size:
        return RankIntervals(rank, low, high, tier, "", 0.0)
    means = np.round(mine.mean(axis=1) / _TIE)
    rank[whole] = len(whole) + 1 - np.searchsorted(np.sort(means), means, side="right")
    known = np.flatnonzero(np.isfinite(mine).all(axis=1))
    if datasets >= FEWEST_DATASETS:
        source: Source = "datasets" if known.size else ""
        surely = _surely(mine[known], None, level)
    else:
        errors = np.full(len(whole), np.nan) if error is None else np.asarray(error, np.float64)[whole]
        known = known[np.isfinite(errors[known]) & (errors[known] > 0)]
        source = "errors" if known.size else ""
        surely = _surely(mine[known], errors[known], level)
    # Of a line without an error, or with an infinite value, nothing is known: it may be ahead of anybody, or behind.
    low[whole[known]] = 1 + surely.ahead
    high[whole[known]] = len(whole) - surely.behind
    tier[whole[known]] = surely.tier
    if source == "errors":
        tier[whole[known]] = np.where(surely.tier < _worst_above(surely.tier, means[known]), 0, surely.tier)
    pairs = len(known) * (len(known) - 1)
    apart = float((surely.ahead.sum() + surely.behind.sum()) / pairs) if pairs else 0.0
    return RankIntervals(rank, low, high, tier, source, apart)


def _worst_above(tier: Whole, means: Floats) -> Whole:
    """The last tier among the lines whose mean is as good as a line's or better, itself one of them."""
    order = np.argsort(-means, kind="stable")
    so_far = np.maximum.accumulate(tier[order])
    return so_far[np.searchsorted(-means[order], -means, side="right") - 1]


@lru_cache(64)
def _limits(others: int, freedom: int, level: float) -> Floats:
    """Holm's limits, squared: of the clearest difference against all `others`, of the second, and so on; of a normal
    distribution where `freedom` is 0."""
    from scipy import stats

    tails = (1 - level) / 2 / np.arange(others, 0, -1)
    return np.asarray(stats.t.isf(tails, freedom) if freedom else stats.norm.isf(tails), np.float64) ** 2


def _surely(values: Floats, error: Floats | None, level: float) -> _Verdicts:
    """Who of the others is surely ahead of each line, and who surely behind."""
    lines, datasets = values.shape
    ahead, behind, tier = np.zeros(lines, np.int64), np.zeros(lines, np.int64), np.ones(lines, np.int64)
    if lines < 2:
        return _Verdicts(ahead, behind, tier)
    limits = _limits(lines - 1, 0 if error is not None else datasets - 1, level)
    order = np.argsort(-values.mean(axis=1), kind="stable")  # whoever is ahead has its tier before
    back = np.argsort(order)
    values, error = values[order], error if error is None else error[order]
    means = values.mean(axis=1)
    mean = np.round(means / _TIE) * _TIE  # so that equals differ by nothing
    if error is not None and (few := _by_few_pairs(mean, error**2, limits)) is not None:
        return _Verdicts(*(part[back] for part in few))
    centred = values - means[:, None]
    across, spread = np.ascontiguousarray(centred.T), (centred**2).sum(axis=1)
    freedom = max(1, datasets * (datasets - 1))
    less = (1 - _TIE) / freedom
    for first in range(0, lines, step := max(1, _AT_ONCE // lines)):
        rows = slice(first, first + step)
        if error is not None:
            squared = error[rows, None] ** 2 + error[None] ** 2
        else:
            # No matrix product: its threads wait for each other on a busy machine longer than one of them works.
            squared = np.einsum("ik,kj->ij", -2 / freedom * centred[rows], across)
            squared += less * (spread[rows, None] + spread[None])
            np.maximum(squared, 0.0, out=squared)  # what rounding leaves of equal lines is nothing
        clear = mean[None] - mean[rows, None]
        clear *= clear
        with np.errstate(divide="ignore", invalid="ignore"):
            clear /= squared  # of equals nothing or NaN, which is above no limit
        sure, passed = _holm(clear, limits)
        for line, those in enumerate(sure, start=first):
            before = those[:line]
            ahead[line] = number = np.count_nonzero(before)
            if number:
                tier[line] = 1 + (tier[:line] * before).max()
        behind[rows] = passed - ahead[rows]
    return _Verdicts(ahead[back], behind[back], tier[back])


class _Reach(NamedTuple):
    """Of some lines: how many others are so far above that they are surely ahead, how many may be, and the same of
    those below, counted from the top."""

    far_above: Whole
    near_above: Whole
    near_below: Whole
    far_below: Whole


def _by_few_pairs(mean: Floats, squared: Floats, limits: Floats) -> _Verdicts | None:
    """The same verdicts for lines in the order of their means with known squared errors, of which only those pairs are
    looked at that neither the least nor the largest error decides; None where these are not few."""
    lines, last, passed = len(mean), len(limits) - 1, np.zeros(len(mean), np.int64)
    going = np.arange(lines)
    while going.size:
        limit = limits[np.minimum(passed[going], last)]
        pairs = _open_pairs(mean, squared, limit, going)
        if pairs is None:
            return None
        reach, above, below = pairs
        count = reach.far_above + lines - reach.far_below
        for row, _ in (above, below):
            count += np.bincount(row, minlength=len(going))
        grown = count > passed[going]
        going, count = going[grown], count[grown]
        passed[going] = count
        going = going[count <= last]
    pairs = _open_pairs(mean, squared, limits[np.minimum(passed, last)], np.arange(lines))
    if pairs is None:
        return None
    reach, (row, column), _ = pairs
    ahead = reach.far_above + np.bincount(row, minlength=lines)
    return _Verdicts(ahead, passed - ahead, _tiers(reach.far_above, row, column))


_Pairs = tuple[Whole, Whole]


def _open_pairs(
    mean: Floats, squared: Floats, limit: Floats, lines: Whole
) -> tuple[_Reach, _Pairs, _Pairs] | None:  # fmt: skip
    """Who is out of doubt, and of the pairs in doubt those that pass the limit of their line, above and below."""
    downwards, own = -mean, mean[lines]
    far, near = (
        np.sqrt(limit * (squared[lines] + end) * room)
        for end, room in ((squared.max(), 1 + _TIE), (squared.min(), 1 - _TIE))
    )
    reach = _Reach(
        np.searchsorted(downwards, -(own + far), side="left"), np.searchsorted(downwards, -(own + near), side="right"),
        np.searchsorted(downwards, -(own - near), side="left"), np.searchsorted(downwards, -(own - far), side="right"),
    )  # fmt: skip
    passing = []
    for first, end in ((reach.far_above, reach.near_above), (reach.near_below, reach.far_below)):
        lengths = np.maximum(end - first, 0)
        if lengths.sum() > _FEW_OF * len(mean):
            return None
        row = np.repeat(np.arange(len(lines)), lengths)
        column = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)
        clear = (mean[column] - own[row]) ** 2 / (squared[lines][row] + squared[column]) > limit[row]
        passing.append((row[clear], column[clear]))
    return reach, passing[0], passing[1]


def _tiers(far_above: Whole, row: Whole, column: Whole) -> Whole:
    """The tiers of lines of which the first `far_above` are ahead, and beside them those in the pairs."""
    others: dict[int, list[int]] = {}
    for line, other in zip(row.tolist(), column.tolist(), strict=True):
        others.setdefault(line, []).append(other)
    tier: list[int] = []
    best = [0]  # the last tier among the first lines
    for line, count in enumerate(far_above.tolist()):
        tier.append(1 + max([best[count], *(tier[other] for other in others.get(line, ()))]))
        best.append(max(best[-1], tier[-1]))
    return np.array(tier, np.int64)


def _holm(clear: Floats, limits: Floats) -> tuple[NDArray[np.bool_], Whole]:
    """Which of `clear` [rows, others and itself] pass Holm's procedure, and how many of each row.

    The clearest must pass the first limit, the second clearest the next, lower one, and so on until one fails. All that
    pass a limit pass the lower ones, so that counting goes on from as many as have passed, and nothing is sorted.
    """
    last = len(limits) - 1
    sure = clear > limits[0]
    passed = _counts(sure)
    going = np.flatnonzero(passed)
    while going.size:
        more = clear[going] > limits[np.minimum(passed[going], last), None]
        count = _counts(more)
        grown = count > passed[going]
        going, more, count = going[grown], more[grown], count[grown]
        sure[going], passed[going] = more, count
        going = going[count <= last]
    return sure, passed


def _counts(flags: NDArray[np.bool_]) -> Whole:
    """How many are true in each row: row by row, which is faster than numpy's sum over an axis."""
    return np.fromiter(map(np.count_nonzero, flags), np.int64, len(flags))


def _put_into_tiers(tier: Whole, ahead: NDArray[np.bool_]) -> None:
    """The tiers of lines in the order of their means: one below the last that is `ahead`."""
    for line, those in enumerate(ahead):
        tier[line] = 1 + (tier[:line] * those[:line]).max(initial=0)


class PairedMean(NamedTuple):
    """The mean of paired differences with its interval and p-value, None where nothing can be said; the interval leaves
    out 0 where the p-value is below 1 - level."""

    mean: float
    low: float | None = None
    high: float | None = None
    p: float | None = None


def paired_mean(apart: Floats, error: float = np.nan, *, pairs: int = 1, level: float = LEVEL) -> PairedMean:
    """The mean of the differences of two lines over datasets, tested as ranks are: by Student's t over the datasets, or
    with fewer than three by the standard `error` of the mean, where it is known.

    Of `pairs` comparisons the chance that any of their intervals misses is at most 1 - level (Bonferroni): interval and
    p-value are wider for their number, and the same whoever else is compared.
    """
    from scipy import special

    mean, freedom = float(apart.mean()), float(len(apart) - 1)
    if len(apart) >= FEWEST_DATASETS:
        width = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    elif np.isfinite(error) and error > 0:
        width, freedom = float(error), np.inf
    else:
        return PairedMean(mean)
    if width <= _TIE * float(np.abs(apart).max()):  # the same difference on every dataset
        return PairedMean(mean, mean, mean, 0.0 if mean else 1.0)
    reach = -float(special.stdtrit(freedom, (1 - level) / 2 / pairs)) * width
    p = min(1.0, 2 * pairs * float(special.stdtr(freedom, -abs(mean) / width)))
    return PairedMean(mean, mean - reach, mean + reach, p)


def ranks_from_verdicts(values: Floats, apart: NDArray[np.bool_]) -> RankIntervals:
    """Ranks of `values` [lines], of which more is better, where every pair was tested before: who is told `apart`.

    Where the verdicts on all pairs hold at once with 95 %, as after a correction for the number of pairs, so do the
    intervals of all ranks. A line with a NaN value has no rank.
    """
    rank, low, high, tier = (np.zeros(len(values), np.int64) for _ in range(4))
    whole = np.flatnonzero(np.isfinite(values))
    mine, sure = np.round(values[whole] / _TIE), apart[np.ix_(whole, whole)]
    rank[whole] = len(whole) + 1 - np.searchsorted(np.sort(mine), mine, side="right")
    ahead, behind = sure & (mine[None] > mine[:, None]), sure & (mine[None] < mine[:, None])
    low[whole] = 1 + ahead.sum(axis=1)
    high[whole] = len(whole) - behind.sum(axis=1)
    order, own = np.argsort(-mine, kind="stable"), np.ones(len(whole), np.int64)
    _put_into_tiers(own, ahead[np.ix_(order, order)])
    tier[whole[order]] = own
    pairs = len(whole) * (len(whole) - 1)
    return RankIntervals(rank, low, high, tier, "errors", float((ahead | behind).sum() / pairs) if pairs else 0.0)


# --- models of a matrix -------------------------------------------------------------------------------------------


class RankRow(NamedTuple):
    """A model's score, its rank, the interval of its rank and its tier (None with too few datasets), and how often it
    leads when the datasets are drawn again with replacement (which describes these datasets, and is no interval)."""

    model: str
    score: float
    rank: int
    low: int | None
    high: int | None
    leads: float
    tier: int | None


class Ranks(NamedTuple):
    """Best first. `by` is what was ranked by; `left_out` are models with a missing score, which have no rank;
    `source` and `told_apart` are those of `RankIntervals`."""

    by: str
    rows: tuple[RankRow, ...]
    left_out: tuple[str, ...]
    told_apart: float
    source: Source


def rank_models(
    matrix: Matrix,
    *,
    by: Literal["mean", "normalised_mean", "win_rate"] = "mean",
    resamples: int = 1000,
    level: float = LEVEL,
    seed: int = 0,
) -> Ranks:
    """Ranks of the models of a matrix with their intervals.

    by  "mean": of the scores as they are, as a leaderboard prints them; "normalised_mean": of scores between chance and
        the best possible value, for datasets that are measured differently; "win_rate": of the share of models beaten
    """
    if by not in ("mean", "normalised_mean", "win_rate"):
        raise UsageError(f'Ranks are by "mean", "normalised_mean" or "win_rate", not {by!r}.')
    if resamples < 1:
        raise UsageError(f"resamples must be at least 1, not {resamples}.")
    left = usable(matrix, models=2)
    whole = np.isfinite(left.values).all(axis=1)
    kept = usable(left.take(models=np.flatnonzero(whole)), models=2)
    turned = np.where(kept.higher_is_better, kept.values, -kept.values)
    values = turned if by == "mean" else kept.normalised()
    if by == "win_rate":
        values = win_rates(values)
    m, d = values.shape
    found = rank_intervals(values, level=level)
    scores = kept.values.mean(axis=1) if by == "mean" else values.mean(axis=1)
    draws = np.random.default_rng(seed).multinomial(d, np.full(d, 1 / d), size=resamples) / d
    drawn = draws @ values.T  # [resamples, m]
    leads = (drawn >= drawn.max(axis=1, keepdims=True) - _TIE).mean(axis=0)
    order = np.lexsort((np.arange(m), found.rank))
    low, high, tier = ([int(end) or None for end in ends] for ends in (found.low, found.high, found.tier))
    rows = tuple(
        RankRow(kept.models[i], float(scores[i]), int(found.rank[i]), low[i], high[i], float(leads[i]), tier[i])
        for i in order.tolist()
    )
    absent = tuple(name for name in matrix.models if name not in set(kept.models))
    return Ranks(by, rows, absent, found.told_apart, found.source)
