"""Clips one by one, over threads, and cut into the windows that a model of fixed input length hears.

    clip      |..............|              n samples
    covered  0|..............|0             zeros on both sides, up to a whole number of windows
              |------|
                  |------|                  one every `hop`
                      |------|

Nothing of a clip is left out, and a clip shorter than a window lies in the middle of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.extractors.contract import ExtractorCard, Frames
from earmark.workers import Workers

SHORTEST = 0.05
"""Seconds that models of others are given at least: most fail on a few samples."""

Floats = NDArray[np.float32]


def cover(samples: Floats, size: int, hop: int) -> Floats:
    """The samples with zeros on both sides, so that windows of `size` every `hop` end where it ends."""
    count = 1 + max(0, -(-(len(samples) - size) // hop))
    missing = size + (count - 1) * hop - len(samples)
    return np.pad(np.asarray(samples, np.float32), (missing // 2, missing - missing // 2))


def windows(samples: Floats, size: int, hop: int) -> Floats:
    """All windows [T, size] of a clip, T at least 1: a view of its covered samples."""
    return np.lib.stride_tricks.sliding_window_view(cover(samples, size, hop), size)[::hop]


def trial_noise(samples: int) -> Floats:
    """What a model of others hears first: the same soft noise whenever it is asked."""
    return (0.1 * np.random.default_rng(0).standard_normal(samples)).astype(np.float32)


def hop_samples(hop: float, longest: float, card: ExtractorCard) -> int:
    """A hop in samples; every sample must be heard."""
    if isinstance(hop, bool) or not 0 < hop <= longest:
        bound = "" if math.isinf(longest) else f" and at most {longest:g}"
        raise UsageError(f"The hop of {card.name} must be above 0{bound} s, not {hop}.")
    return max(1, round(hop * card.rate))


def map_clips(work: Callable[[Any], Any], clips: Sequence[Any], threads: int) -> list[Any]:
    """`work` on every clip, over threads when there is more than one of both; results in order."""
    threads = min(threads, len(clips))
    if threads <= 1:
        return [work(clip) for clip in clips]
    with Workers(threads) as workers:
        return list(workers.map(work, clips))


def clip_by_clip(work: Callable[[Any], Floats], waveforms: Sequence[Any], threads: int = 1) -> list[Frames]:
    """What `work` makes of every clip, [T, D], all of it valid."""
    return [Frames(values, len(values)) for values in map_clips(work, waveforms, threads)]
