"""Vectors and labels as text: .csv and .txt."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from earmark.errors import InputError, quoted
from earmark.vectors.dimensions import Asked, choose_columns
from earmark.vectors.headings import has_heading, refuse_other_separators
from earmark.vectors.roles import NamelessColumns, is_index_name, pick_columns, refuse_columns, role_of
from earmark.vectors.tables import Labels, Vectors, labels_of, vectors_of
from earmark.vectors.texts import as_text, is_number

_OPENING = 65  # rows that are looked at before the first is taken for a heading or a vector


def csv_vectors(source: Path, _key: str | None, asked: Asked) -> Vectors:
    rows = _csv_rows(source)
    opening = list(itertools.islice(rows, _OPENING))
    if not opening:
        raise InputError(f"{source} is empty; write it again.")
    first = [cell.strip() for cell in opening[0][1]]
    header = has_heading([cells for _, cells in opening], source, asked)
    if not header and (asked.label or asked.groups or asked.dimensions):
        raise NamelessColumns(f"{source} has no names above its columns to choose from; add a first line with names.")
    names = first if header else [f"{place}" for place in range(1, len(first) + 1)]
    columns = choose_columns(names if header else [f"column {name}" for name in names], asked, source)
    places, numbers, left_out = dict(columns.roles), columns.dimensions, columns.left_out
    if header and len(opening) > 1 and "id" not in places and _names_rows(names, opening[1][1], left_out):
        places["id"] = 0
        left_out = left_out[1:]
    body = itertools.chain(opening[header:], rows)
    texts: dict[str, list[str]] = {role: [] for role in places}
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for line, cells in body:
            if len(cells) != len(names):
                raise InputError(f"{source}, line {line} has {len(cells)} cells, not {len(names)}; check its commas.")
            for role, place in places.items():
                texts[role].append(cells[place])
            count += 1
            yield ",".join([cells[place] for place in numbers] if len(numbers) < len(cells) else cells)

    if not numbers:
        raise InputError(f"{source} has no number columns ({', '.join(names)}); add the vectors.")
    if header and len(opening) == 1:
        raise InputError(f"{source} has a heading but no rows; write it again.")
    # csv splits the rows, which keeps quoted text safe; NumPy's C parser reads the numbers, which is fast.
    try:
        values = np.loadtxt(lines(), delimiter=",", comments=None, dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise _bad_cell(source, names, numbers, header) or error from None
    if values.shape != (count, len(numbers)):
        raise _bad_cell(source, names, numbers, header) or InputError(f"{source} has rows of unequal length.")
    return vectors_of(
        values,
        {role: [as_text(cell) for cell in cells] for role, cells in texts.items()},
        source,
        names=[names[place] for place in numbers] if header else None,
        roles={role: names[place].strip() or "(unnamed)" for role, place in places.items()},
        left_out=[names[place] for place in left_out],
        chosen=bool(asked.dimensions),
    )


def _names_rows(names: list[str], row: list[str], left_out: list[int]) -> bool:
    """Whether the first column is an index of pandas that holds names, not numbers: as good as an `id`."""
    return left_out[:1] == [0] and is_index_name(names[0]) and bool(row[0].strip()) and not is_number(row[0])


def _bad_cell(source: Path, names: list[str], numbers: list[int], header: bool) -> InputError | None:
    """Look for the first cell that is not a number. Slow, and only called when there is one."""
    for line, cells in itertools.islice(_csv_rows(source), int(header), None):
        for place in numbers:
            if not is_number(cells[place]):
                cell = cells[place]
                held = f"holds {quoted(cell)}, which is not a number" if cell.strip() else "is empty"
                column = quoted(names[place]) if header else names[place]
                remedy = ", or choose the others with --dimensions" if header else ""
                return InputError(
                    f"{source}, line {line}, column {column} {held}; only `id`, `label` and `group` "
                    f"columns may hold text{remedy}."
                )
    return None


def csv_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    rows = list(_csv_rows(source))
    if not rows:
        raise InputError(f"{source} is empty; write it again.")
    refuse_other_separators(rows[0][1], source)
    first = [cell.strip() for cell in rows[0][1]]
    # One column under a number is a list of class numbers without a heading.
    header = len(first) > 1 or not is_number(first[0]) or column == first[0]
    names = first if header else ["label"]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(f'{source} has the column "{repeated[0]}" more than once; rename one.')
    roles = pick_columns(names, column, groups, source)
    body = rows[header:]
    for line, cells in body:
        if len(cells) != len(names):
            raise InputError(f"{source}, line {line} has {len(cells)} cells, not {len(names)}; check its commas.")
    if header and body and "id" not in roles and _names_rows(names, body[0][1], [0] if len(names) > 1 else []):
        roles["id"] = names[0]
    texts = {role: [as_text(cells[names.index(name)]) for _, cells in body] for role, name in roles.items()}
    heading = roles["label"] if header and role_of(roles["label"]) != "label" else None
    return labels_of(texts, source, heading, roles if header else None)


def txt_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    refuse_columns(source, column, groups)
    with source.open(encoding="utf-8-sig") as stream:  # universal newlines: Windows files count the same
        lines = stream.read().split("\n")
    if lines[-1] == "":
        lines.pop()  # the end of the last line, not a label
    return labels_of({"label": [as_text(line) for line in lines]}, source)


def _csv_rows(source: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row that is not blank."""
    with source.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        line = 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{source}, line {line} is not readable as CSV ({error}); check its quotes.") from error
