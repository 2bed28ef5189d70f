"""Tables of models and datasets as people keep them: wide, long, and the results of mteb; all are read as wide ones.

    model,BIRDS,BATS           wide: a line for each model, a column for each dataset
    model,dataset,metric,value long: a line for each value; a column metric is not needed where there is one metric
    results/MODEL/…/TASK.json  what mteb saves

A cell is kept as text until `numbers` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from earmark.analysis import _mteb
from earmark.errors import InputError, UsageError, absent, quoted
from earmark.scores.rows import COLUMNS
from earmark.tables import CsvLine, read_csv, read_text
from earmark.vectors.table_files import read_parquet

MISSING = frozenset({"", "-", "–", "—", "na", "n/a", "nan", "none", "null", "?"})
"""What people write where there is no score, in any case."""
FAMILY_COLUMN = "family"
_NAMES_OF_MODELS = frozenset({"model", "models", "system", "systems", "method", "name", "id", "checkpoint", "run"})
"""Names of a first column whose numbers are taken for the names of models."""
_ROLES = {
    "model": ("model", "system", "method"),
    "dataset": ("dataset", "subset", "task", "benchmark", "corpus"),
    "value": ("value", "score", "result"),
}
"""What the columns of a long table are called, by what they hold."""


def is_plain_table(path: Path) -> bool:
    """Whether a file or folder is a table of models and datasets, of whatever layout.

    A score table has a column `metric`, if others are perhaps misspelt.
    """
    if path.is_dir() or path.suffix.lower() == ".json":
        return _mteb.is_results(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        return False
    names = read_cells(path)[0]
    return not (names and set(names) <= set(COLUMNS)) and ("metric" not in names or _is_long(names))


def named_by_itself(path: Path) -> bool:
    """Whether the table says itself which metrics it holds, as a long one or mteb's does."""
    return path.is_dir() or path.suffix.lower() == ".json" or bool(metrics_of(path))


def metrics_of(path: Path) -> list[str]:
    """The metrics that a long table names, in their order; none for other tables."""
    if path.is_dir() or path.suffix.lower() == ".json":
        return []
    header, lines = read_cells(path)
    if not _is_long(header) or "metric" not in _lowered(header):
        return []
    place = _lowered(header).index("metric")
    return list(dict.fromkeys(row[place].strip() for row in lines))


def read_wide(path: Path, metric: str | None) -> tuple[list[str], Iterator[list[str]]]:
    """Header and lines of a wide table with the values of a metric; of a table without metrics, all values."""
    if path.is_dir() or path.suffix.lower() == ".json":
        values = _mteb.read_values(path, metric)
        return _widened({key: "" if value is None else repr(value) for key, value in values.items()}, {})
    header, lines = read_cells(path)
    return _pivoted(path, header, list(lines), metric) if _is_long(header) else (header, lines)


def _lowered(header: Sequence[str]) -> list[str]:
    return [name.lower() for name in header]


def _is_long(header: Sequence[str]) -> bool:
    names = _lowered(header)
    return all(any(name in names for name in spellings) for spellings in _ROLES.values())


def _column(path: Path, header: Sequence[str], role: str) -> int:
    fitting = [place for place, name in enumerate(_lowered(header)) if name in _ROLES[role]]
    if len(fitting) > 1:
        both = " and ".join(quoted(header[place]) for place in fitting)
        raise InputError(f"{path}: the columns {both} could each hold the {role}; rename all but one.")
    return fitting[0]


def _pivoted(
    path: Path, header: Sequence[str], rows: list[list[str]], metric: str | None
) -> tuple[list[str], Iterator[list[str]]]:
    """A long table as a wide one."""
    model, dataset, value = (_column(path, header, role) for role in _ROLES)
    if rows and all(_is_number(row[dataset]) for row in rows):
        raise InputError(
            f"{path}: the column {quoted(header[dataset])} has only numbers. If it names datasets, give them names; if "
            f"it is a dataset, and the table has a line for each model, rename {quoted(header[value])}."
        )
    rows = _of_metric(path, header, rows, metric)
    cells: dict[tuple[str, str], str] = {}
    for row in rows:
        key = row[model].strip(), row[dataset].strip()
        if key in cells:
            raise InputError(f"{path} has two values of {quoted(key[0])} on {quoted(key[1])}; keep one of them.")
        cells[key] = row[value]
    family = _lowered(header).index(FAMILY_COLUMN) if FAMILY_COLUMN in _lowered(header) else None
    return _widened(cells, {} if family is None else {row[model].strip(): row[family] for row in rows})


def _of_metric(path: Path, header: Sequence[str], rows: list[list[str]], metric: str | None) -> list[list[str]]:
    if "metric" not in _lowered(header):
        return rows
    place = _lowered(header).index("metric")
    present = list(dict.fromkeys(row[place].strip() for row in rows))
    if metric is None and len(present) > 1:
        raise UsageError(f"{path} has {len(present)} metrics ({', '.join(present)}); choose one with --metric.")
    if metric is not None and metric not in present:
        raise UsageError(absent(metric, present, "metric", path))
    return [row for row in rows if metric in (None, row[place].strip())]


def _widened(cells: dict[tuple[str, str], str], families: dict[str, str]) -> tuple[list[str], Iterator[list[str]]]:
    """Values by model and dataset as header and lines."""
    models = list(dict.fromkeys(model for model, _ in cells))
    datasets = list(dict.fromkeys(dataset for _, dataset in cells))
    header = ["model", *([FAMILY_COLUMN] if families else []), *datasets]
    lines = (
        [model, *([families[model]] if families else []), *(cells.get((model, dataset), "") for dataset in datasets)]
        for model in models
    )
    return header, lines


def read_cells(path: Path) -> tuple[list[str], Iterator[list[str]]]:
    """The header and the lines, every cell as text; lines have as many cells as the header."""
    if path.suffix.lower() == ".parquet":
        columns = read_parquet(path).to_pydict()
        rows = zip(*columns.values(), strict=True)
        return [str(name) for name in columns], (["" if cell is None else str(cell) for cell in row] for row in rows)
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path} is empty; a table has a header and a line for each model.")
    lines = (line for line in read_csv(text, path) if any(cell.strip() for cell in line.cells))
    header = [name.strip() for name in next(lines).cells]
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise InputError(f"{path} is not separated by commas; save it as comma-separated values.")
    return header, _whole_lines(path, lines, len(header))


def _whole_lines(path: Path, lines: Iterable[CsvLine], width: int) -> Iterator[list[str]]:
    for line, cells in lines:
        if len(cells) != width:
            raise InputError(f"{path}, line {line} has {len(cells)} cells, the header {width}; check its commas.")
        yield cells


def numbers(
    path: Path, header: Sequence[str], lines: Iterable[Sequence[str]], dropped: Sequence[str] = ()
) -> tuple[list[str], list[list[float]], list[str] | None]:
    """Models, their scores, and the column `family` where there is one."""
    rows = list(lines)
    if len(header) < 2:
        raise InputError(f"{path} has one column; a table has a column of models and one for each dataset.")
    if not rows:
        raise InputError(f"{path} has a header and no lines; a table has a line for each model.")
    if "" in header[1:]:
        raise InputError(f"{path} has a column without a name; name the dataset, or remove the column.")
    if header[0].lower() not in _NAMES_OF_MODELS and all(_is_number(row[0]) for row in rows):
        raise InputError(
            f"{path}: the first column, {quoted(header[0])}, has only numbers, and it should name the models; add a "
            "column of names, or call the column model if these are the names."
        )
    family = next((place for place, name in enumerate(header) if place and name.lower() == FAMILY_COLUMN), None)
    scored = [place for place, name in enumerate(header) if place and name not in dropped and place != family]
    values = [[_number(path, header, row, place) for place in scored] for row in rows]
    for column, place in enumerate(scored):
        _refuse_two_scales(path, header[place], [row[place].strip() for row in rows], [row[column] for row in values])
    return [row[0].strip() for row in rows], values, None if family is None else [row[family].strip() for row in rows]


def _refuse_two_scales(path: Path, name: str, cells: Sequence[str], values: Sequence[float]) -> None:
    """85% is 0.85, and 90 below it would be a hundred times as good as it."""
    signed = next((cell for cell in cells if cell.endswith("%")), None)
    bare = next((cell for cell, value in zip(cells, values, strict=True) if cell[-1:] != "%" and abs(value) > 1), None)
    if signed is not None and bare is not None:
        raise InputError(
            f"{path}: the column {quoted(name)} has {quoted(signed)} and {quoted(bare)}; write all of its scores with "
            "% or none."
        )


def _is_number(cell: str) -> bool:
    """Whether a cell is a score, or a mark for a missing one."""
    try:
        float(cell.strip().removesuffix("%"))
    except ValueError:
        return cell.strip().lower() in MISSING
    return True


def _number(path: Path, header: Sequence[str], row: Sequence[str], place: int) -> float:
    cell = row[place].strip()
    if cell.lower() in MISSING:
        return float("nan")
    try:
        if "_" in cell or not cell.isascii():
            raise ValueError
        return float(cell[:-1]) / 100 if cell.endswith("%") else float(cell)
    except ValueError:
        raise InputError(
            f"{path}: {quoted(row[0].strip())} has {quoted(cell)} in the column {quoted(header[place])}, which is not "
            "a number; correct it, leave it empty if it is missing, or leave the column out with --without."
        ) from None
