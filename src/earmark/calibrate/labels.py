"""What a neighbour counts by its labels, and the null of that: label sets are shuffled, neighbours stay.

P@k            1 where it shares a label with the query
label_jaccard  shared labels over all labels of the two
label_P@1      of each label of the query, 1 where the nearest neighbour has it; averaged label by label
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate._null_job import Draws, spans
from earmark.geometry.label_sets import LabelSets, partners_of, singletons
from earmark.geometry.layout import Layout
from earmark.geometry.sweep import Swept
from earmark.metrics import retrieval
from earmark.workers import Workers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LABEL_METRICS = frozenset({"label_P@1", "label_jaccard"})


def label_sets_of(layout: Layout) -> LabelSets:
    """The label sets of a layout; of classes, sets of one."""
    return singletons(layout.classes) if layout.sets is None else layout.sets


def worth_of(layout: Layout, metric: str, rows: Ints, places: Ints) -> Floats:
    """What each neighbour (-1: none) of some places counts; `places` are [rows, K]."""
    theirs, own = np.where(places >= 0, layout.codes[places], -1), layout.codes[rows][:, None]
    if layout.sets is None:
        return np.asarray(theirs == own, np.float64)
    return _worth(layout.sets, metric, own, theirs)


def _worth(sets: LabelSets, metric: str, own: Ints, theirs: Ints) -> Floats:
    shared = sets.shared(own, theirs)
    if metric == "P@k":
        return np.asarray(shared > 0, np.float64)
    return retrieval.label_jaccard(shared, sets.sizes[own], np.where(theirs >= 0, sets.sizes[theirs], 0))


def label_values(
    layout: Layout, swept: Swept, protocol: str, metrics: Iterable[str], ks: tuple[int, ...], codes: Ints | None = None
) -> dict[str, float]:
    """P@k of every k and the metrics of labels, under other label sets of the places (None: their own); NaN: none."""
    sets, across = label_sets_of(layout), protocol != "all"
    codes = layout.codes if codes is None else codes
    units = layout.groups if layout.groups is not None else np.arange(layout.n)
    depth = max((*ks, 1))
    places = swept.neighbours.places[:, :depth]
    theirs = np.where(places >= 0, codes[places], -1)
    answerable = partners_of(sets, codes, units, across=across).answerable
    values: dict[str, float] = {}
    if ks:
        shared = _worth(sets, "P@k", codes[:, None], theirs)
        for k in ks:
            asking = answerable & (places[:, k - 1] >= 0)
            values[f"P@{k}"] = float(shared[asking, :k].mean()) if asking.any() else np.nan
    if "label_jaccard" in metrics:
        asking = answerable & (places[:, 0] >= 0)
        alike = _worth(sets, "label_jaccard", codes, theirs[:, 0])[asking]
        values["label_jaccard"] = float(alike.mean()) if len(alike) else np.nan
    if "label_P@1" in metrics:
        by_label = partners_of(sets, codes, units, across=across, by_label=True)
        found = theirs[:, 0][by_label.entries.places]
        held = sets.holds(found, by_label.entries.labels).astype(np.float64)
        counted = by_label.answerable & (found >= 0)
        values["label_P@1"] = retrieval.label_precision(held[counted], by_label.entries.labels[counted])
    return values


def label_null(
    layout: Layout, draws: Draws, swept: Swept, protocol: str, metrics: frozenset[str], ks: tuple[int, ...],
    workers: Workers, progress: Callable[[float], None],
) -> dict[str, Floats]:  # fmt: skip
    """The same values under every shuffle of whole label sets."""

    def measure(span: tuple[int, int]) -> list[dict[str, float]]:
        return [
            label_values(layout, swept, protocol, metrics, ks, draws.labels(number)[draws.units].astype(np.int64))
            for number in range(*span)
        ]

    rows: list[dict[str, float]] = []
    for values in workers.map(measure, spans(draws.count, 8)):
        rows += values
        progress(len(values) / draws.count)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
