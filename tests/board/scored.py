"""Score tables for tests of the reading side: a few systems on a board of their own, with every kind of cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from earmark.board.boards.snapshot import Snapshot
from earmark.scores import Row, Scores
from earmark.submissions import SystemCard

SUBSETS = ("birds", "cats", "dogs", "doors", "rain")
NASTY = '<script>alert("x")</script> & Søn'


def scores(
    count: int = 6, *, seed: int = 0, metrics: tuple[str, ...] = ("P@1", "CS"), intervals: bool = True
) -> Scores:
    """Random scores of some systems under two distances; the last system lacks a subset, and one cell each failed and
    was predicted."""
    rng = np.random.default_rng(seed)
    rows = []
    for system in range(count):
        for distance in ("cosine", "euclidean"):
            for metric in metrics:
                for subset in SUBSETS:
                    value = float(np.round(rng.uniform(0.1, 0.9), 4))
                    row: dict[str, Any] = {"value": value, "n": 100}
                    if intervals:
                        row |= {"low": value - 0.02, "high": value + 0.03, "baseline": 0.1, "lift": value - 0.1}
                    if system == count - 1 and subset == "rain":
                        continue
                    if (system, distance, metric, subset) == (0, "euclidean", "P@1", "cats"):
                        row = {"status": "failed", "reason": "the run broke"}
                    if (system, distance, metric, subset) == (1, "euclidean", "P@1", "cats"):
                        row |= {"low": value - 0.1, "high": value + 0.1, "status": "predicted", "reason": "from dogs"}
                    rows.append(
                        Row(
                            suite="mine",
                            subset=subset,
                            system=f"model {system}",
                            distance=distance,
                            metric=metric,
                            **row,
                        )
                    )
    return Scores(tuple(rows))


def cards(count: int = 6) -> dict[str, SystemCard]:
    return {
        f"model {number}": SystemCard(
            f"model {number}",
            family="even" if number % 2 == 0 else "odd",
            licence="MIT" if number < 2 else "",
            training_free=[True, False, None][number % 3],
            parameters_m=None if number == 3 else 10.0 * (number + 1),
            authors=("Ada",) if number == 4 else (),
        )
        for number in range(count)
    }


def snapshot(count: int = 6, **options: Any) -> Snapshot:
    return Snapshot.of_scores("mine", scores(count, **options), cards(count))
