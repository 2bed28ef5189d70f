"""The score table: an ordered table of rows, how to choose from it, and how to put tables together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from earmark.displayed import Displayed
from earmark.errors import InputError, UsageError, did_you_mean, require
from earmark.places import locate
from earmark.scores._files import json_array, read_rows, write_rows
from earmark.scores.rows import COLUMNS, COUNTS, DEFAULTS, KEY, NUMBERS, Row, distinct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


PointKey: TypeAlias = tuple[str, str, str, str]
"""(distance, correction, protocol, metric)"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scores(Displayed):
    """An ordered table of rows, with per-point values when they were asked for.

    `per_point` maps (distance, correction, protocol, metric) to one float64 value for each point, NaN where
    the point was excluded; `point_ids` names the points, and `point_labels` and `point_groups` are theirs. `per_unit`
    maps the same keys to the metric's value without each unit: each clip, in the order given, or each group, in the
    order of their names. All of these stay in memory: files hold the rows. Two tables are equal when their rows are.

    >>> scores: Scores = earmark.evaluate(vectors, labels)
    >>> scores.row("P@1").low
    """

    rows: tuple[Row, ...] = ()
    per_point: Mapping[PointKey, NDArray[np.float64]] = field(default_factory=dict)
    point_ids: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    per_unit: Mapping[PointKey, NDArray[np.float64]] = field(default_factory=dict)
    point_labels: tuple[str | None, ...] | None = None
    point_groups: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        object.__setattr__(self, "notes", tuple(self.notes))
        object.__setattr__(self, "per_point", dict(self.per_point))
        if self.point_ids is not None:
            object.__setattr__(self, "point_ids", tuple(self.point_ids))
        sizes = {len(values) for values in self.per_point.values()}
        if self.per_point and self.point_ids is not None:
            sizes.add(len(self.point_ids))
        if len(sizes) > 1:
            lengths = ", ".join(str(size) for size in sorted(sizes))
            raise InputError(
                f"Per-point values and ids have different lengths ({lengths}); give one value for each point."
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        return self.rows == other.rows if isinstance(other, Scores) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.rows)

    def __add__(self, other: Scores) -> Scores:
        return merge(self, other) if isinstance(other, Scores) else NotImplemented

    def select(self, **filters: object) -> Scores:
        """The rows whose columns equal the given values; a list, tuple or set of values means any of them."""
        for name in filters:
            if name not in DEFAULTS:
                raise UsageError(f'A score row has no column "{name}".{did_you_mean(name, COLUMNS)}')
        rows = tuple(row for row in self.rows if _matches(row, filters))
        kept = {(row.distance, row.correction, row.protocol, row.metric) for row in rows}
        per_point = {key: values for key, values in self.per_point.items() if key in kept}
        per_unit = {key: values for key, values in self.per_unit.items() if key in kept}
        return replace(self, rows=rows, per_point=per_point, per_unit=per_unit)

    def row(self, metric: str | None = None, **filters: object) -> Row:
        """The one row that matches; UsageError when there is none, or several, saying what they differ in."""
        if metric is not None:
            filters = {"metric": metric, **filters}
        matching = self.select(**filters).rows
        if len(matching) == 1:
            return matching[0]
        raise UsageError(_several(matching, filters) if matching else _none(self.rows, filters))

    def value(self, metric: str, **filters: object) -> float:
        """The value of the one matching row; InputError with the row's reason when it has none."""
        row = self.row(metric, **filters)
        if row.status != "ok" or row.value is None:
            why = row.reason or "no reason was given"
            raise InputError(f"{metric} has no value here: {row.status.replace('_', ' ')} ({why}).")
        return row.value

    def by_group(self, **setting: str) -> Any:
        """Every group (speaker, bird, recording), the lowest first: clips, P@1 with its interval, GSR and P@5, P@1 of
        the same classes elsewhere, and a p-value of standing out; in `.lines`, `.table()` and `.sentences()`.

        Args:
            setting: distance, correction and protocol, where there are several: the first ones, and across groups,
                unless they say otherwise.

        >>> evaluate(X, labels, groups=speakers, across_groups=True, per_point=True).by_group()
        """
        return import_module("earmark.report.parts").parts_of_scores(self, "group", **setting)

    def by_class(self, **setting: str) -> Any:
        """The same for every class, compared with all others."""
        return import_module("earmark.report.parts").parts_of_scores(self, "class", **setting)

    def to_json(self) -> str:
        """A JSON array of rows, one to a line."""
        return json_array(self.rows)

    def to_pandas(self) -> Any:
        """A data frame of pandas: a line for each row, all columns; a missing number is NaN, a missing count <NA>."""
        pandas = require("pandas", "A data frame", "notebook")
        columns = {name: [getattr(row, name) for row in self.rows] for name in COLUMNS}
        types = {name: "Int64" if name in COUNTS else "float64" for name in NUMBERS}
        return pandas.DataFrame(columns).astype(types)

    def to_polars(self) -> Any:
        """The same as a data frame of polars; what is missing is null."""
        polars = require("polars", "A data frame of polars", "notebook")
        kinds = {name: polars.Int64 if name in COUNTS else polars.Float64 for name in NUMBERS}
        columns = {name: [getattr(row, name) for row in self.rows] for name in COLUMNS}
        return polars.DataFrame(columns, schema={name: kinds.get(name, polars.String) for name in COLUMNS})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as .csv, .jsonl, .json or .parquet, by suffix.

        Another process sees the old file or the whole new one, never a part.
        """
        write_rows(self.rows, locate(path))


def read_scores(path: str | os.PathLike[str]) -> Scores:
    """Read a score table.

    Columns that an older version did not write take their defaults. An unknown column, a cell that is not a number
    where one belongs, and NaN or infinity are errors that say where.

    Args:
        path: A file that ends in .csv, .jsonl, .json or .parquet.

    Returns:
        The table. Files of older versions are read as they were meant.

    >>> earmark.load_scores("run/scores.csv").to_pandas()
    """
    return Scores(tuple(read_rows(path)))


load_scores = read_scores


def _matches(row: Row, filters: Mapping[str, object]) -> bool:
    for name, wanted in filters.items():
        cell = getattr(row, name)
        if not (cell in wanted if isinstance(wanted, list | tuple | set | frozenset) else cell == wanted):
            return False
    return True


def _none(rows: Sequence[Row], filters: Mapping[str, object]) -> str:
    """Name the first filter that leaves nothing, and what the table has in that column."""
    if not rows:
        return "The score table is empty."
    for name, wanted in filters.items():
        left = [row for row in rows if _matches(row, {name: wanted})]
        if not left:
            present = distinct(rows, name)
            hint = did_you_mean(wanted, present) if isinstance(wanted, str) else ""
            return f"No row has {name} {_quoted(wanted)}; the table has {_listed(present)}.{hint}"
        rows = left
    return "No row matches."


def _several(rows: Sequence[Row], filters: Mapping[str, object]) -> str:
    filter_words = ", ".join(f"{name} {_quoted(wanted)}" for name, wanted in filters.items()) or "no filter"
    differing = {name: distinct(rows, name) for name in KEY if len(distinct(rows, name)) > 1}
    if not differing:
        return f"{len(rows)} rows with {filter_words} have the same key; keep one with merge(…, on_conflict='last')."
    what = " and ".join(f"{name} ({_listed(present)})" for name, present in differing.items())
    name, present = next(iter(differing.items()))
    return f"{len(rows)} rows match {filter_words}; they differ in {what}: add for example {name}={present[0]!r}."


def _quoted(wanted: object) -> str:
    return f'"{wanted}"' if isinstance(wanted, str) else repr(wanted)


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(name or '""' for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def merge(*scores: Scores, on_conflict: Literal["error", "last"] = "error") -> Scores:
    """Put tables together, in order. Rows that agree in all but `seconds` are one measurement, kept once.

    Two different rows with one key are an error; with on_conflict="last" the later replaces the earlier in
    its place. Per-point values are kept when the tables that have them describe the same points under
    different keys.
    """
    if on_conflict not in ("error", "last"):
        raise UsageError(f'on_conflict is "error" or "last", not {on_conflict!r}.')
    rows: dict[tuple[str, ...], Row] = {}
    for row in (row for table in scores for row in table.rows):
        earlier = rows.setdefault(row.key, row)
        if earlier is row or replace(earlier, seconds=row.seconds) == row:
            continue
        if on_conflict == "error":
            names = ", ".join(f"{name} {cell}" for name, cell in zip(KEY, row.key, strict=True) if cell)
            what = next(name for name in COLUMNS if name != "seconds" and getattr(earlier, name) != getattr(row, name))
            raise InputError(
                f"Two rows for {names} differ in {what} ({getattr(earlier, what)} and {getattr(row, what)}); "
                "remove one, or merge with on_conflict='last'."
            )
        rows[row.key] = row
    notes = dict.fromkeys(note for table in scores for note in table.notes)
    carrying = [table for table in scores if table.per_point]
    per_point = {key: values for table in carrying for key, values in table.per_point.items()}
    alike = len({_described(table) for table in carrying}) <= 1
    if not alike or len(per_point) != sum(len(table.per_point) for table in carrying):
        per_point = {}
        notes["Per-point values were left out of the merge: the tables describe different points."] = None
    first = carrying[0] if per_point else Scores()
    return Scores(
        tuple(rows.values()), per_point, first.point_ids, tuple(notes),
        point_labels=first.point_labels, point_groups=first.point_groups,
    )  # fmt: skip


def _described(table: Scores) -> tuple[object, ...]:
    """Which points the per-point values of a table belong to: the keys of `per_point` do not say it."""
    about = frozenset((row.suite, row.subset, row.system) for row in table.rows)
    return about, table.point_ids, table.point_labels, table.point_groups, len(next(iter(table.per_point.values())))
