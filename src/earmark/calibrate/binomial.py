"""Exact intervals and tests of a share of independent trials, and of two shares of the same trials.

    interval     Clopper and Pearson's: every share under which so few, or so many, successes are no surprise
    test         two-sided, against one half: twice the smaller tail, at most 1
    difference   McNemar's exact test of the trials in which two systems differ

Both systems of a difference are right or wrong in each trial. With b trials that the first alone has right and c that
the second alone has, the difference is (b - c) / n = discordant share * (2 * share of b among the discordant - 1). The
interval takes the extremes of both shares, each inside its own exact interval: it excludes 0 exactly when p < 0.05, and
errs on the wide side.

Clopper & Pearson, Biometrika 26(4), 1934; McNemar, Psychometrika 12(2), 1947.
"""

from __future__ import annotations

from scipy.special import bdtr, betaincinv

from earmark.calibrate.jackknife import EQUAL, LEVEL, SMALLEST_P, Difference


def exact_interval(hits: float, draws: float, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's interval of the share hits / draws; neither needs to be a whole number."""
    misses, tail = draws - hits, (1.0 - level) / 2.0
    low = float(betaincinv(hits, misses + 1.0, tail)) if hits > EQUAL else 0.0
    high = float(betaincinv(hits + 1.0, misses, 1.0 - tail)) if misses > EQUAL else 1.0
    return low, high


def against_half(hits: int, draws: int) -> float:
    """The two-sided exact p-value of so many hits where a hit is as likely as a miss; 1 without any draw."""
    if draws == 0:
        return 1.0
    return max(SMALLEST_P, min(1.0, 2.0 * float(bdtr(min(hits, draws - hits), draws, 0.5))))


def paired_difference(first_alone: int, second_alone: int, draws: int, *, comparisons: int = 1) -> Difference:
    """The share of the first system minus that of the second, from the trials that one of them alone has right.

    Interval and p-value are corrected for the number of comparisons (Bonferroni).
    """
    discordant = first_alone + second_alone
    p_value = min(1.0, comparisons * against_half(first_alone, discordant))
    level = 1.0 - (1.0 - LEVEL) / comparisons
    share_low, share_high = exact_interval(first_alone, discordant, level) if discordant else (0.0, 1.0)
    rate_low, rate_high = exact_interval(discordant, draws, level)
    ends = [rate * (2.0 * share - 1.0) for rate in (rate_low, rate_high) for share in (share_low, share_high)]
    value = (first_alone - second_alone) / draws
    return Difference(value, min(*ends, value), max(*ends, value), p_value, draws)
