"""From clips to a codec: means with intervals, counts of what has no value and why, and the worst clips by name.

per clip: Measured ──┬── summarise ── Summary(value, low, high, n, counts, reason)
                     ├── first_percentile ── Summary of `<metric>:p1`, with the clips that make it
                     └── compare (two codecs, same clips) ── difference with interval and p-value
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.calibrate.bootstrap import Counts, interval, resample, resampled_means
from earmark.codecs.contract import Measured
from earmark.errors import UsageError
from earmark.scores import metric_facts
from earmark.wording import counted, first_of

Floats = NDArray[np.float64]

RESAMPLES = 1000
NAMED = 5  # clips


class Summary(NamedTuple):
    """One cell of a score table: the mean of a metric over clips, or why there is none.

    `n` clips have a value; `reason` tells how many others there are and why. Where some of the others failed the value
    is `incomplete`: a mean without the hard clips, which ranks nowhere.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    n_not_applicable: int
    n_failed: int
    status: str
    reason: str
    clips: tuple[str, ...] = ()  # the worst, of a first percentile


def summarise(
    measured: Sequence[Measured], *, resamples: int = RESAMPLES, seed: int = 0, groups: Sequence[Any] | None = None,
) -> Summary:  # fmt: skip
    """Mean over the clips that have a value, with its 95 % bootstrap interval over clips, or over whole groups.

    One value, or values of one group, have no interval: nothing was seen of how clips differ. Without any value the
    summary is `failed` where a clip failed, else `not_applicable`. Clips without a value are left out of the mean; with
    a clip that failed among them it is `incomplete`, since a codec would seem better by failing on hard clips.
    `compare` shows two codecs on the clips that both have.
    """
    points = points_of(measured)
    if not np.isfinite(points).any():
        return _without(measured)
    low, high = _interval(lambda counts: resampled_means(points, counts), points, resamples, seed, groups)
    return _with(measured, float(np.nanmean(points)), low, high)


def first_percentile(
    clips: Sequence[str], measured: Sequence[Measured], metric: str, *, resamples: int = RESAMPLES, seed: int = 0,
) -> Summary:  # fmt: skip
    """The value that one clip in a hundred does not reach (passes, where lower is better), and who those clips are.

    Among fewer than a hundred clips that lies between the worst and the next one.
    """
    if len(clips) != len(measured):
        raise UsageError(f"There are {len(clips)} names for {len(measured)} clips.")
    points = points_of(measured)
    valid = np.isfinite(points)
    if not valid.any():
        return _without(measured)
    higher = metric_facts(metric).higher_is_better
    percent = 1.0 if higher else 99.0
    value = float(np.percentile(points[valid], percent))

    low, high = _interval(lambda counts: _resampled_percentiles(points, counts, percent), points, resamples, seed, None)
    order = np.argsort(np.where(valid, points if higher else -points, np.inf), kind="stable")
    beyond = points <= value if higher else points >= value
    worst = [clips[place] for place in order if valid[place] and beyond[place]]
    summary = _with(measured, value, low, high)
    reason = "; ".join(part for part in (f"worst: {first_of(worst, NAMED)}", summary.reason) if part)
    return summary._replace(reason=reason, clips=tuple(worst))


class Compared(NamedTuple):
    """One codec minus another over the clips that both have: interval and two-sided p-value agree."""

    value: float
    low: float | None
    high: float | None
    p_value: float | None
    n: int


def compare(a: Sequence[Measured], b: Sequence[Measured], *, groups: Sequence[Any] | None = None) -> Compared | None:
    """Mean of a - b over the clips on which both codecs have a value, without each clip or group; None without any.

    Clips do not see each other here, so this is Student's paired test; with fewer than five units there is no verdict.
    """
    if len(a) != len(b):
        raise UsageError(f"One codec has {len(a)} clips and the other {len(b)}; compare them on the same clips.")
    codes = _codes(groups, len(a))
    difference = points_of(a) - points_of(b)
    kept = np.isfinite(difference)
    if not kept.any():
        return None
    units = np.arange(len(a))[kept] if codes is None else codes[kept]
    _, units = np.unique(units, return_inverse=True)
    sums, sizes = np.bincount(units, difference[kept]), np.bincount(units)
    left = sizes.sum() - sizes
    without = np.where(left > 0, (sums.sum() - sums) / np.maximum(left, 1), np.nan)
    value = float(difference[kept].mean())
    outcome = jackknife.difference(value, 0.0, without, np.zeros_like(without), (-np.inf, np.inf))
    return Compared(value, outcome.low, outcome.high, outcome.p_value, int(kept.sum()))


def points_of(measured: Sequence[Measured]) -> Floats:
    """Values of the clips, NaN where there is none: for arithmetic only, never a result."""
    return np.array([np.nan if found.value is None else found.value for found in measured], np.float64)


def _interval(
    statistic: Callable[[Counts], Floats], points: Floats, resamples: int, seed: int, groups: Sequence[Any] | None
) -> tuple[float, float] | tuple[None, None]:
    codes = _codes(groups, len(points))
    valid = np.isfinite(points)
    apart = np.count_nonzero(valid) if codes is None else len(np.unique(codes[valid]))
    if apart < 2 or resamples < 1:
        return None, None
    return interval(statistic(_counts(len(points), resamples, seed, None if codes is None else tuple(codes.tolist()))))


@lru_cache(maxsize=4)
def _counts(n: int, resamples: int, seed: int, codes: tuple[int, ...] | None) -> Counts:
    """How often each clip is drawn. Every metric and codec of a dataset asks for the same draws."""
    return resample(np.arange(n), None if codes is None else np.array(codes), resamples, seed)


def _resampled_percentiles(points: Floats, counts: Counts, percent: float) -> Floats:
    """`np.percentile` of each resample, from one sorting: a draw repeats a value, and so moves its places."""
    valid = np.flatnonzero(np.isfinite(points))
    order = valid[np.argsort(points[valid])]
    ends = np.cumsum(counts[:, order], axis=1, dtype=np.int64)
    place = np.maximum(ends[:, -1] - 1, 0) * (percent / 100.0)
    below, above = (
        points[order[np.argmax(ends > rank[:, None], axis=1)]] for rank in (np.floor(place), np.ceil(place))
    )
    values = below + (place - np.floor(place)) * (above - below)
    return np.where(ends[:, -1] > 0, values, np.nan)


def _codes(groups: Sequence[Any] | None, n: int) -> NDArray[Any] | None:
    if groups is None:
        return None
    if len(groups) != n:
        raise UsageError(f"There are {len(groups)} groups for {n} clips.")
    return np.unique(np.asarray(groups), return_inverse=True)[1]


def _with(measured: Sequence[Measured], value: float, low: float | None, high: float | None) -> Summary:
    counts = Counter(found.status for found in measured)
    status = "incomplete" if counts["failed"] else "ok"
    return Summary(
        value, low, high, counts["ok"], counts["not_applicable"], counts["failed"], status, _missing(measured)
    )  # fmt: skip


def _without(measured: Sequence[Measured]) -> Summary:
    counts = Counter(found.status for found in measured)
    status = "failed" if counts["failed"] else "not_applicable"
    reason = _missing(measured) or "there are no clips"
    return Summary(None, None, None, 0, counts["not_applicable"], counts["failed"], status, reason)


def _missing(measured: Sequence[Measured]) -> str:
    """How many clips have no value, and why: "3 of 20 clips not applicable (the reference is silent), 1 failed (…)"."""
    parts = []
    for status in ("not_applicable", "failed"):
        reasons = Counter(found.reason for found in measured if found.status == status)
        if reasons:
            often = ", ".join(
                reason if len(reasons) == 1 else f"{reason}: {number}" for reason, number in reasons.most_common(3)
            )
            more = f" and {counted(len(reasons) - 3, 'other reason')}" if len(reasons) > 3 else ""
            parts.append(f"{reasons.total()} of {len(measured)} {status.replace('_', ' ')} ({often}{more})")
    return "; ".join(parts)
