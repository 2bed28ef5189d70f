"""The definition of a board whose host wrote none, made of the scores that are there: once, and then kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from earmark.definitions.board import MOST, BoardMetric, BoardSubset, Definition, SubsetGroup
from earmark.scores import Row
from earmark.scores.spelling import is_single

MEAN = "mean"
"""The key of the one group of such a board."""
LEADING = ("P@1", "overall", "GSR", "clipped_density", "precision")
"""Metrics that lead a board that has them."""
_HALF = 0.5
VALUED = ("ok", "incomplete")
"""Of a row that measured something."""


class Measured(NamedTuple):
    """That a system has a value."""

    system: object
    subset: str
    protocol: str
    metric: str


def measured_in(rows: Iterable[Row]) -> list[Measured]:
    """What the rows of a score table measure."""
    return [
        Measured(row.system, row.subset, row.protocol, row.metric)
        for row in rows
        if row.value is not None and row.status in VALUED
    ]


def derived_definition(board: str, measured: Iterable[Measured], blind: Collection[str] = ()) -> Definition:
    """A board of these measurements: ranked by the mean over the subsets that systems share.

    A subset belongs to the mean of a metric if more than half as many systems have it as have the most common one.
    Values at single sampling rates count only where a metric has no others. Of `blind` subsets there is a mean of its
    own, as soon as a host announces them.
    """
    counts: dict[str, dict[str, set[object]]] = {}
    at_rates: dict[str, dict[str, set[object]]] = {}
    size: dict[str, int] = {}
    for system, subset, protocol, metric in measured:
        if is_single(subset):
            size[metric] = size.get(metric, 0) + 1
            kept = at_rates if "@" in protocol else counts
            kept.setdefault(metric, {}).setdefault(subset, set()).add(system)
    metrics = in_order(size)[: MOST["metrics"]]
    shared: dict[tuple[str, ...], list[str]] = {}
    for metric in metrics:
        with_systems = counts.get(metric) or at_rates[metric]
        public = {name: len(systems) for name, systems in with_systems.items() if name not in blind}
        if public:
            shared.setdefault(tuple(sorted(shared_by_most(public))), []).append(metric)
    named = {subset: None for subsets in shared for subset in subsets}
    named |= dict.fromkeys(sorted({name for each in (*counts.values(), *at_rates.values()) for name in each}))
    names = sorted([*named][: MOST["subsets"]])
    groups = [
        SubsetGroup(MEAN, *_titles(subsets), subsets, metrics=tuple(of) if len(shared) > 1 else ())
        for subsets, of in shared.items()
        if set(subsets) <= set(names)
    ]
    return Definition(
        board,
        metrics=tuple(map(BoardMetric, metrics)),
        subsets=tuple(BoardSubset(name, blind=name in blind) for name in names),
        groups=tuple(groups),
        rank_by=(MEAN,) if groups else (),
        derived=True,
    )


def in_order(size: Mapping[str, int]) -> tuple[str, ...]:
    """Metrics, the leading ones first, then by how many values they have."""
    leading = [name for name in LEADING if size.get(name)]
    return (*leading, *sorted((name for name in size if name not in leading), key=lambda name: (-size[name], name)))


def shared_by_most(systems_with: Mapping[str, int]) -> tuple[str, ...]:
    """The subsets that more than half as many systems have as have the most common one."""
    most = max(systems_with.values(), default=0)
    return tuple(name for name, count in systems_with.items() if count > _HALF * most)


def _titles(subsets: Sequence[str]) -> tuple[str, str]:
    title = "Value" if len(subsets) == 1 else "Mean"
    return title, title
