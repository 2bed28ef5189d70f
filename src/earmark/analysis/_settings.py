"""The settings of SimBA's paper, and how sizes of noise are spelled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

from earmark.errors import UsageError

Unit = Literal["variance", "sigma"]


class _Paper(NamedTuple):
    """What the paper did; the training mean, which it does not have, is the bar.

    folds: 5 for HELM, which has 29 models, and 10 for MMLU and BigBenchLite, which have 79 and 45
    """

    regressors: tuple[str, ...] = ("ridge", "knn", "mlp12", "mlp12_12", "mean")
    noise: tuple[float, ...] = (0.05, 0.1)
    beams: tuple[int, ...] = (1, 5, 10, 20)

    def folds(self, models: int) -> int:
        return 5 if models < 40 else 10


PAPER = _Paper()


def noise_variances(noise: float | Iterable[float], unit: Unit = "variance") -> tuple[float, ...]:
    """Sizes of noise as variances, each once; "sigma" says that they are given as standard deviations."""
    if unit not in ("variance", "sigma"):
        raise UsageError(f'noise_unit is "variance" or "sigma", not {unit!r}.')
    given = [noise] if isinstance(noise, int | float) else list(noise)
    for size in given:
        if not (math.isfinite(size) and size >= 0):
            raise UsageError(f"noise is a finite number of 0 or more, not {size:g}.")
    return tuple(dict.fromkeys(float(size) ** 2 if unit == "sigma" else float(size) for size in given))
