"""Ranks, and the interval that a rank deserves: one definition, for the leaderboard and for `analyze`.

    rank       by the mean over the datasets; 1 is best, equals share the better rank; none for a line with a gap
    interval   low = 1 + how many are surely ahead,  high = all - how many are surely behind

Who is *surely* ahead or behind: for each line, the paired differences to every other line over the datasets are tested
by Student's t, and Holm's procedure corrects for the number of others. So the chance that anything is wrongly put
before or behind the line is at most 5 %, and the interval holds the rank by the means over all the datasets that one
could have taken, of which these are a sample, with at least 95 %. Errors of the scores themselves are part of the
differences.

With fewer than three datasets nothing can be said of others that one could have taken. Then the datasets are fixed and
the differences are tested by the scores' own intervals, where both lines have one; a line without has no interval.

The interval is of each rank by itself, not of all ranks at once. `docs/decisions/0012-one-rank.md` says why it is this
one, with its coverage by simulation.
"""

from __future__ import annotations

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
_AT_ONCE = 4_000_000  # pairs


class RankIntervals(NamedTuple):
    """Ranks [lines]; 0 is no rank, and a `low` and `high` of 0 no interval.

    `source` says what the intervals rest on: the datasets, the errors of the scores, or nothing. `told_apart` is the
    share of pairs of ranked lines of which one is surely ahead.
    """

    rank: Whole
    low: Whole
    high: Whole
    source: Source
    told_apart: float


def rank_intervals(values: Floats, error: Floats | None = None, *, level: float = LEVEL) -> RankIntervals:
    """Ranks by the mean of `values` [lines, datasets], of which more is better; NaN is a gap.

    error  the standard error of each line's mean [lines], NaN where it is not known; only for fewer than three datasets
    """
    count, datasets = values.shape
    rank, low, high = (np.zeros(count, np.int64) for _ in range(3))
    whole = np.flatnonzero(np.isfinite(values).all(axis=1)) if datasets else np.zeros(0, np.int64)
    mine = values[whole]
    if not whole.size:
        return RankIntervals(rank, low, high, "", 0.0)
    means = np.round(mine.mean(axis=1) / _TIE)
    rank[whole] = len(whole) + 1 - np.searchsorted(np.sort(means), means, side="right")
    if datasets >= FEWEST_DATASETS:
        source: Source = "datasets"
        known = np.arange(len(whole))
        ahead, behind = _surely(mine, None, level)
    else:
        errors = np.full(len(whole), np.nan) if error is None else np.asarray(error, np.float64)[whole]
        known = np.flatnonzero(np.isfinite(errors) & (errors > 0))
        source = "errors" if known.size else ""
        ahead, behind = _surely(mine[known], errors[known], level)
    # Of a line without an error nothing is known: it may be ahead of anybody, or behind.
    low[whole[known]] = 1 + ahead
    high[whole[known]] = len(whole) - behind
    pairs = len(known) * (len(known) - 1)
    return RankIntervals(rank, low, high, source, float((ahead.sum() + behind.sum()) / pairs) if pairs else 0.0)


def _surely(values: Floats, error: Floats | None, level: float) -> tuple[Whole, Whole]:
    """How many of the others are surely ahead of each line, and how many surely behind."""
    from scipy import stats

    lines, datasets = values.shape
    ahead, behind = np.zeros(lines, np.int64), np.zeros(lines, np.int64)
    if lines < 2:
        return ahead, behind
    tails = (1 - level) / 2 / np.arange(lines - 1, 0, -1)  # Holm: the clearest difference against all others, and so on
    limits = stats.norm.isf(tails) if error is not None else stats.t.isf(tails, datasets - 1)
    mean = values.mean(axis=1)
    centred = values - mean[:, None]
    spread = (centred**2).sum(axis=1)
    for first in range(0, lines, step := max(1, _AT_ONCE // lines)):
        rows = slice(first, first + step)
        difference = mean[None] - mean[rows, None]
        if error is not None:
            squared = error[rows, None] ** 2 + error[None] ** 2
        else:
            apart = spread[rows, None] + spread[None] - 2 * centred[rows] @ centred.T
            apart[apart < _TIE * (spread[rows, None] + spread[None])] = 0.0  # what rounding leaves of equal lines
            squared = apart / (datasets * (datasets - 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(np.abs(difference) < _TIE, 0.0, np.abs(difference) / np.sqrt(squared))
        ratio[np.arange(len(ratio)), np.arange(first, first + len(ratio))] = -1.0
        clearest = -np.sort(-ratio, axis=1)[:, : lines - 1]
        passed = np.logical_and.accumulate(clearest > limits, axis=1).sum(axis=1)
        least = np.where(passed > 0, clearest[np.arange(len(ratio)), np.maximum(passed - 1, 0)], np.inf)
        sure = ratio >= least[:, None]
        ahead[rows] = (sure & (difference > 0)).sum(axis=1)
        behind[rows] = (sure & (difference < 0)).sum(axis=1)
    return ahead, behind


def ranks_from_verdicts(values: Floats, apart: NDArray[np.bool_]) -> RankIntervals:
    """Ranks of `values` [lines], of which more is better, where every pair was tested before: who is told `apart`.

    Where the verdicts on all pairs hold at once with 95 %, as after a correction for the number of pairs, so do the
    intervals of all ranks. A line with a NaN value has no rank.
    """
    rank, low, high = (np.zeros(len(values), np.int64) for _ in range(3))
    whole = np.flatnonzero(np.isfinite(values))
    mine, sure = np.round(values[whole] / _TIE), apart[np.ix_(whole, whole)]
    rank[whole] = len(whole) + 1 - np.searchsorted(np.sort(mine), mine, side="right")
    ahead, behind = sure & (mine[None] > mine[:, None]), sure & (mine[None] < mine[:, None])
    low[whole] = 1 + ahead.sum(axis=1)
    high[whole] = len(whole) - behind.sum(axis=1)
    pairs = len(whole) * (len(whole) - 1)
    return RankIntervals(rank, low, high, "errors", float((ahead | behind).sum() / pairs) if pairs else 0.0)


# --- models of a matrix -------------------------------------------------------------------------------------------


class RankRow(NamedTuple):
    """A model's score, its rank, the interval of its rank (None with too few datasets), and how often it leads when the
    datasets are drawn again with replacement (which describes these datasets, and is no interval)."""

    model: str
    score: float
    rank: int
    low: int | None
    high: int | None
    leads: float


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
    low, high = ([int(end) or None for end in ends] for ends in (found.low, found.high))
    rows = tuple(
        RankRow(kept.models[i], float(scores[i]), int(found.rank[i]), low[i], high[i], float(leads[i]))
        for i in order.tolist()
    )
    absent = tuple(name for name in matrix.models if name not in set(kept.models))
    return Ranks(by, rows, absent, found.told_apart, found.source)
