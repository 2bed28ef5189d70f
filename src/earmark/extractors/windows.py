"""Clips cut into the windows that a model of fixed input length hears.

    clip      |..............|              n samples
    covered  0|..............|0             zeros on both sides, up to a whole number of windows
              |------|
                  |------|                  one every `hop`
                      |------|

Nothing of a clip is left out, and a clip shorter than a window lies in the middle of one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SHORTEST", "cover", "windows"]

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
