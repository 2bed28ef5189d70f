"""The columns of scores of a table in one view."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.field import Field
from earmark.board.boards.groups import Group
from earmark.board.boards.panels import Means
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.view import BoardView
from earmark.definitions import BLIND
from earmark.wording import first_of

Whole = NDArray[np.int64]

_NAMED = 100  # subsets in a help text
_BLIND_METRICS = ("P@1", "P@5", "GSR")
"""What stands side by side where a board is ranked by its blind subsets and its definition does not say."""


class Column(NamedTuple):
    """A column of scores. `key` sorts by it; `kind` is blind (the mean over blind subsets), mean, subset or metric."""

    key: str
    title: str
    kind: str
    metric: str
    help: str = ""
    subset: str = ""
    averaged: int = 1  # over how many subsets


def columns_of_view(snapshot: Snapshot, view: BoardView, most: int | None) -> tuple[Column, ...]:
    """The columns of a view, with at most so many subsets."""
    metric = view.metric
    group = snapshot.group(metric, view.over)
    groups = [group]
    if "domains" in view.show and not group.narrow:
        groups += [
            other for other in snapshot.groups(metric) if other.key != group.key and not other.single and other.column
        ]
    elif group.key == BLIND and snapshot.public_group(metric).key != BLIND:
        groups.append(snapshot.public_group(metric))
    columns = [
        Column(f"mean:{each.key}", each.short, "mean", metric, _help(each), averaged=len(each.subsets))
        for each in groups
    ]
    if group.key == BLIND:
        columns[:1] = [Column(f"mean:{BLIND}", metric, BLIND, metric, f"{metric}. {_help(group)}")]
        columns[1:1] = [
            Column(f"{BLIND}:{name}", name, BLIND, name, f"{name}. {_help(group)}")
            for name in _side_by_side(snapshot, view) or _BLIND_METRICS
            if name != metric and name in snapshot.metrics and snapshot.group_beside(name, BLIND).key == BLIND
        ]
    elif "metrics" not in view.show:
        columns += [_metric_column(snapshot, view, name) for name in _side_by_side(snapshot, view)]
    if "subsets" in view.show and len(snapshot.subsets(metric)) > 1:
        names = [] if group.single else [*group.subsets]
        if not group.narrow:
            shown = frozenset(group.subsets)
            names += [name for name in snapshot.subsets(metric) if name not in shown]
        names = names[:most]
        notes = {name: snapshot.definition.subset(name).note for name in names}
        columns += [Column(f"subset:{name}", name, "subset", metric, notes[name], name) for name in names]
    if "metrics" in view.show:
        columns += [
            _metric_column(snapshot, view, name)
            for name in snapshot.metrics
            if name not in {metric, *(column.metric for column in columns if column.kind == BLIND)}
        ]
    return tuple(columns)


def _metric_column(snapshot: Snapshot, view: BoardView, name: str) -> Column:
    title = snapshot.definition.metric_title(name) or name
    return Column(f"metric:{name}", title, "metric", name, f"{name}: {snapshot.group_beside(name, view.over).words}")


def _side_by_side(snapshot: Snapshot, view: BoardView) -> list[str]:
    """The other metrics that the definition shows beside one over a group."""
    stated = [column.metric for column in snapshot.definition.columns if column.group == view.over]
    return [name for name in dict.fromkeys(stated) if name != view.metric and name in snapshot.metrics]


def _help(group: Group) -> str:
    named = len(group.subsets) > 1 or group.key == BLIND
    return f"{group.title}: {first_of(group.subsets, _NAMED)}" if named else group.title


def means_beside(
    snapshot: Snapshot, field: Field, metric: str, over: str, *, shown: bool = False, places: Whole | None = None
) -> Means:
    """The means of another metric beside a view over a group, for the lines of a field or for some of them: of the same
    line, or where that is the best of a system, of its best line under that metric."""
    group = snapshot.group_beside(metric, over)
    mine: Whole | slice = slice(None) if places is None else places
    if field.best:
        rows = snapshot.rows_of_systems(metric, field.best)[field.systems[mine]]
    else:
        rows = snapshot.rows_of_lines(metric)[field.panel.lines[field.rows[mine]]]
    every = snapshot.means_shown if shown else snapshot.means
    return every(metric, group, field.best).take(rows)
