"""How sure a model's place is: ranks when the subsets had been others.

A benchmark's subsets are a sample of the sounds one could have taken. Resampling them with replacement shows which
places in the ranking stand and which are an accident of the choice. The score of a model is its mean over the datasets,
in normalised units, or its mean win rate.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.prowl import win_rates
from earmark.errors import UsageError

Floats = NDArray[np.float64]


class RankRow(NamedTuple):
    """A model's score, its rank (1 is best, equals share the better one), the interval of its ranks, and how often it
    leads when the datasets are resampled."""

    model: str
    score: float
    rank: int
    low: int
    high: int
    leads: float


class Ranks(NamedTuple):
    """Best first. `left_out` are models with a missing score, which have no place; `told_apart` is the share of pairs
    of models whose order holds in 95 % of the resamples."""

    by: str
    rows: tuple[RankRow, ...]
    left_out: tuple[str, ...]
    told_apart: float
    resamples: int


def rank_intervals(
    matrix: Matrix,
    *,
    by: Literal["mean", "win_rate"] = "mean",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Ranks:
    """Ranks of the models with their intervals, from `resamples` draws of the datasets with replacement."""
    if by not in ("mean", "win_rate"):
        raise UsageError(f'Ranks are by "mean" or by "win_rate", not {by!r}.')
    if resamples < 1:
        raise UsageError(f"resamples must be at least 1, not {resamples}.")
    left = usable(matrix, models=2)
    whole = np.isfinite(left.values).all(axis=1)
    kept = usable(left.take(models=np.flatnonzero(whole)), models=2)
    values = kept.normalised()
    if by == "win_rate":
        values = win_rates(values)
    m, d = values.shape
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(d, np.full(d, 1 / d), size=resamples) / d
    scores = values.mean(axis=1)
    drawn = draws @ values.T  # [resamples, m]
    places = _ranks(drawn)
    tail = (1 - level) / 2
    low, high = np.quantile(places, [tail, 1 - tail], axis=0, method="inverted_cdf")
    rank = _ranks(scores[None])[0]
    leads = (drawn >= drawn.max(axis=1, keepdims=True) - _TIE).mean(axis=0)
    order = np.lexsort((np.arange(m), rank))
    rows = tuple(
        RankRow(kept.models[i], float(scores[i]), int(rank[i]), int(low[i]), int(high[i]), float(leads[i]))
        for i in order
    )
    absent = tuple(name for name in matrix.models if name not in set(kept.models))
    return Ranks(by, rows, absent, _told_apart(drawn, level), resamples)


_TIE = 1e-12
_MOST_COMPARISONS = 300_000_000


def _ranks(scores: Floats) -> NDArray[np.int64]:
    """[k, m]: 1 for the best; equals share the better place."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-np.round(scores / _TIE) * _TIE, method="min", axis=1), np.int64)


def _told_apart(drawn: Floats, level: float) -> float:
    """The share of pairs of which one is ahead in at least `level` of the draws."""
    m = drawn.shape[1]
    if m < 2:
        return 0.0
    drawn = drawn[:: 1 + drawn.size * m // _MOST_COMPARISONS]  # fewer draws do for a share of many pairs
    sure = 0
    for i in range(m - 1):
        ahead = (drawn[:, i : i + 1] > drawn[:, i + 1 :] + _TIE).mean(axis=0)
        behind = (drawn[:, i : i + 1] < drawn[:, i + 1 :] - _TIE).mean(axis=0)
        sure += int((np.maximum(ahead, behind) >= level).sum())
    return float(sure / (m * (m - 1) / 2))
