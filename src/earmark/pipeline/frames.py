"""Frames kept for comparisons of sequences: every n-th frame, each scaled to length 1, beside the pooled parts.

Only DTW re-ranking asks for them. A clip's frames [T, D] are two parts: `frames/3`, the kept frames one after
another, and `frames/3/width`, D.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earmark.extractors.contract import Frames

_PREFIX = "frames/"
_WIDTH = "/width"


def parts(stride: int) -> tuple[str, str]:
    return f"{_PREFIX}{stride}", f"{_PREFIX}{stride}{_WIDTH}"


def is_raw(part: str) -> bool:
    return part.startswith(_PREFIX)


def take(frames: Frames, part: str) -> NDArray[np.float32]:
    """The vector of a raw part from a clip's valid frames. A frame of zeros stays zero."""
    if part.endswith(_WIDTH):
        return np.array([frames.values.shape[1]], np.float32)
    kept = np.asarray(frames.values[: frames.valid : int(part.removeprefix(_PREFIX))], np.float32)
    norms = np.linalg.norm(kept.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(kept / np.where(norms > 0, norms, 1.0), np.float32).ravel()
