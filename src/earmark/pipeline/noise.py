"""Label noise, an ablation: a share of the labels is exchanged for others, and everything is measured again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def flip_labels(labels: Sequence[str | None], share: float, seed: int) -> list[str | None]:
    """Give `share` of the labelled clips (rounded to whole clips) another class's label, drawn uniformly.

    The classes are those present. The same labels, share and seed give the same flips; a larger share keeps the
    clips that a smaller one chose. With fewer than two classes nothing can be flipped.
    """
    classes = sorted({label for label in labels if label})
    labelled = [row for row, label in enumerate(labels) if label]
    flipped = list(labels)
    if len(classes) < 2:
        return flipped
    numbers = {label: number for number, label in enumerate(classes)}
    generator = np.random.default_rng(seed)
    order = generator.permutation(labelled)
    steps = generator.integers(1, len(classes), len(labelled))
    for row, step in list(zip(order, steps, strict=True))[: round(share * len(labelled))]:
        own = numbers[labels[row] or ""]
        flipped[row] = classes[(own + int(step)) % len(classes)]
    return flipped
