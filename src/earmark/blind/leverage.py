"""How much of GSR hangs on the label of a single clip.

GSR compares a clip's distance to the nearest clip of another class with its mean distance to its own. A clip that lies
far from all others moves the mean of every clip of its class: GSR then tells how large that class is. Models of sounds
have clips that lie apart, but none that outweighs a whole class; vectors made to ask about one clip do.

It is asked with made-up classes, as large as the largest real one and drawn by chance: what GSR is without each clip.
Real labels have no say in it, so that a figure which is withheld tells nothing about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.blind.release import OUTWEIGHED
from earmark.scores import Scores

__all__ = ["MOST_CLIPS", "clips_worth", "without_outweighed"]

MOST_CLIPS = 5
"""So many clips' worth of GSR may hang on one clip: half of what moves a figure by a step, at the least."""
_METRIC = "GSR"


def clips_worth(
    vectors: NDArray[Any], largest: int, *, distance: str, correction: str = "none", seed: int = 0
) -> float:
    """By how much the weightiest clip moves GSR, counted in clips: 1 is what a clip moves by being there.

    Args:
        vectors: Of the clips that are scored.
        largest: How many clips the largest class has.
        distance: What the package declares.
        correction: What the package declares.
        seed: Of the made-up classes.
    """
    from earmark.evaluation import evaluate

    count = len(vectors)
    size = max(2, min(largest, count // 2))
    codes = np.minimum(np.arange(count) // size, count // size - 1)
    made_up = np.random.default_rng(seed).permutation(codes)
    scores = evaluate(
        vectors, [str(code) for code in made_up], distance=distance, correct=correction, metrics=_METRIC, per_unit=True
    )
    value = scores.row(_METRIC).value
    without = scores.per_unit.get((distance, correction, "all", _METRIC))
    if value is None or without is None:
        return 0.0
    return float(np.abs(np.asarray(without) - value).max() * count)


def without_outweighed(
    scores: Scores, vectors: NDArray[Any], sizes: Iterable[int], *, distance: str, correction: str, seed: int
) -> Scores:  # fmt: skip
    """The exact scores, without GSR where more than MOST_CLIPS clips' worth of it hang on one clip.

    `sizes` are those of the classes.
    """
    if not any(row.metric == _METRIC and row.value is not None for row in scores.rows):
        return scores
    if clips_worth(vectors, max(sizes), distance=distance, correction=correction, seed=seed) <= MOST_CLIPS:
        return scores
    rows = [
        replace(
            row, value=None, low=None, high=None, baseline=None, lift=None, p_value=None, baseline_low=None,
            baseline_high=None, baseline_error=None, interval="", status="not_applicable", reason=OUTWEIGHED,
        )
        if row.metric == _METRIC
        else row
        for row in scores.rows
    ]  # fmt: skip
    return replace(scores, rows=tuple(rows))
