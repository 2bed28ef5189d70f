"""Tables of groups and of classes: of a run, which keeps what every clip reached."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from earmark.analysis.sources import PREFIX
from earmark.errors import InputError, UsageError
from earmark.places import locate
from earmark.report.content import CloseUp
from earmark.report.gallery import Wishes
from earmark.report.parts import By, parts_of
from earmark.report.score_index import ScoreIndex, ranked, representation
from earmark.report.tabulation.choice import Choice, pick
from earmark.report.tabulation.sources import TableSource
from earmark.scores import Row
from earmark.tables import Table


def group_tables(source: TableSource, choice: Choice) -> list[Table]:
    """Every group of each subset that has groups, under the best representation or those that were asked for."""
    return _tables(source, choice, "group")


def class_tables(source: TableSource, choice: Choice) -> list[Table]:
    """Every class of each subset, likewise."""
    return _tables(source, choice, "class")


def _tables(source: TableSource, choice: Choice, by: By) -> list[Table]:
    material = _material(source, by)
    tables, lacking = [], []
    for row in _chosen_rows(ScoreIndex(material.ranked), choice, source.name):
        close_up: CloseUp = material.close_up(row)
        try:
            parts = parts_of(
                close_up.per_point, close_up.labels, close_up.groups, by, title=close_up.heading,
                protocol=close_up.protocol,
            )  # fmt: skip
        except InputError as error:
            lacking.append(f"{row.subset}: {error}")
            continue
        tables.append(parts.table(told=True))
    if not tables:
        raise InputError(lacking[0] if lacking else f"{source.name} has no values of single clips.")
    return tables


def _material(source: TableSource, by: By) -> Any:
    path = locate(source.name)
    if source.name.startswith(PREFIX) or source.codecs or not (path / "run.json").exists():
        kind = "groups" if by == "group" else "classes"
        raise UsageError(f"--kind {kind} needs what single clips reached: give a folder of `earmark run`.")
    runs = import_module("earmark.representations.figures")  # a room above this one
    return runs.material_of_run(path, source.name, Wishes(), ())


def _chosen_rows(index: ScoreIndex, choice: Choice, name: str) -> Iterator[Row]:
    """The best row of each subset; with systems, distances, corrections or protocols chosen, all that fit."""
    kept = [row for row in index.rows if row.status == "ok" and row.value is not None]
    asked = {"subset": choice.subsets, "distance": choice.distances, "correction": choice.corrections}
    asked |= {"protocol": choice.protocols, "system": () if "all" in choice.systems else choice.systems}
    for column, wanted in asked.items():
        if wanted:
            names = pick(wanted, list(dict.fromkeys(getattr(row, column) for row in kept)), column, name)
            kept = [row for row in kept if getattr(row, column) in names]
    for place in dict.fromkeys((row.suite, row.subset) for row in kept):
        own = [row for row in kept if (row.suite, row.subset) == place]
        metric = next((name for name in (index.headline, "P@1", "GSR") if any(row.metric == name for row in own)), "")
        rows = [row for row in own if row.metric == metric]
        across = [row for row in rows if row.protocol == index.main_protocol]
        rows = rows if choice.protocols else across or rows
        if choice.systems or choice.distances or choice.corrections:
            yield from rows
        elif rows:
            yield ranked({representation(row): row for row in rows})[0][1]
