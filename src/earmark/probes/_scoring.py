"""What the scores of tasks are made of: pairs of clips, draws of clips, and rows of the score table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.bootstrap import interval, resample
from earmark.calibrate.permutation import Null
from earmark.corpora.clips import Clip, groups_of
from earmark.probes._contract import Responses
from earmark.scores import Row
from earmark.wording import counted

RESAMPLES = 300  # bootstrap draws behind every interval

Share = TypeVar("Share")
Floats = NDArray[np.float64]
Interval = tuple[float, float] | tuple[None, None]


def measured(
    metric: str, protocol: str, value: float, between: tuple[float | None, float | None], luck: Null | None = None,
    **cells: Any,
) -> Row:  # fmt: skip
    """The row of a value with its interval and, where that was computed, what shuffled labels reach.

    Suite, subset, system, version and inputs are the run's. `n` counts clips; the reason says what else a reader
    should know (trials, clips left out).
    """
    if luck is not None:
        cells |= {"baseline": luck.baseline, "baseline_low": luck.low, "baseline_high": luck.high}
        cells |= {"lift": luck.lift, "p_value": luck.p_value}
    return Row(metric=metric, protocol=protocol, value=value, low=between[0], high=between[1], **cells)


def rests_on(low: float | None, unit: str, units: int) -> dict[str, Any]:
    """Cells that say what a jackknife interval rests on; none where there is no interval."""
    return {} if low is None else {"interval": "jackknife", "unit": unit, "units": units}


def not_applicable(metric: str, protocol: str, reason: str, **cells: Any) -> Row:
    """The row of a score that there is not, and why."""
    return Row(metric=metric, protocol=protocol, n=0, status="not_applicable", reason=reason, **cells)


class PairedClips(NamedTuple):
    """Clips heard both clean and coded, with their rows in the two, and a sentence on those left out."""

    clips: list[Clip]
    clean: NDArray[np.int64]
    coded: NDArray[np.int64]
    left_out: str


def pair_clips(clips: Sequence[Clip], clean: Responses, coded: Responses) -> PairedClips:
    """The clips that both have heard, in the order of `clips`; coded clips bear the ids of the clean ones."""
    before, after = clean.rows(), coded.rows()
    kept = [clip for clip in clips if clip.id in before and clip.id in after]
    missing = [clip.id for clip in clips if clip.id not in before or clip.id not in after]
    left_out = ""
    if missing:
        first = missing[0]
        why = coded.failures.get(first) or clean.failures.get(first) or "it was not heard"
        left_out = f"{counted(len(missing), 'clip')} left out, first {first}: {why}"
    rows = [np.array([side[clip.id] for clip in kept], np.int64) for side in (before, after)]
    return PairedClips(kept, rows[0], rows[1], left_out)


class CleanShare(Generic[Share]):
    """What the clean clips alone decide, computed for the first codec and kept for the next ones."""

    def __init__(self) -> None:
        self._known: tuple[Responses, NDArray[np.int64], int, Share] | None = None

    def of(self, clean: Responses, pairs: PairedClips, seed: int, make: Callable[[], Share]) -> Share:
        """What `make` gives; kept as long as the same clean answers, the same clips of them and the seed come."""
        known = self._known
        if known is None or known[0] is not clean or known[2] != seed or not np.array_equal(known[1], pairs.clean):
            known = self._known = (clean, pairs.clean, seed, make())
        return known[3]


def join_notes(*notes: str) -> str:
    """Notes on a score as one reason, the empty ones left out."""
    return "; ".join(note for note in notes if note)


def group_codes(clips: Sequence[Clip]) -> NDArray[np.int64] | None:
    """A number for each clip's group; None when no clip has one. Clips without a group are groups of their own."""
    groups = groups_of(clips)
    if groups is None:
        return None
    names = [f"clip {number}" if group is None else f"group {group}" for number, group in enumerate(groups)]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def draw_clips(clips: Sequence[Clip], resamples: int, seed: int) -> NDArray[Any]:
    """How often each clip is drawn, [resamples, clips]; whole groups are drawn where there are two groups or more."""
    groups = group_codes(clips)
    if groups is not None and groups.max() == 0:
        groups = None
    return resample(np.arange(len(clips)), groups, resamples, seed)


def ratio_interval(above: Floats, below: Floats, draws: NDArray[Any]) -> Interval:
    """The interval of sum(above) / sum(below) when clips are drawn: errors over words, say."""
    weights = draws.astype(np.float64)
    totals = weights @ below
    with np.errstate(invalid="ignore", divide="ignore"):
        return interval(np.where(totals > 0, (weights @ above) / totals, np.nan))


def mean_interval(values: Floats, draws: NDArray[Any]) -> Interval:
    """The interval of a mean over clips."""
    return ratio_interval(values, np.ones(len(values)), draws)
