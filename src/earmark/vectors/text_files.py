"""Vectors and labels as text: .csv and .txt."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from earmark.errors import InputError, quoted
from earmark.vectors.tables import (
    Labels,
    Texts,
    Vectors,
    as_text,
    labels_of,
    pick_columns,
    refuse_columns,
    role_of,
    roles_of,
    vectors_of,
)


def csv_vectors(source: Path, _key: str | None) -> Vectors:
    rows = _csv_rows(source)
    opening = list(itertools.islice(rows, 2))
    if not opening:
        raise InputError(f"{source} is empty; write it again.")
    first = opening[0][1]
    header = _csv_header(first, opening[-1][1], source)
    names = [cell.strip() for cell in first] if header else [f"{place}" for place in range(1, len(first) + 1)]
    roles = roles_of(names, source) if header else {}
    for place, name in enumerate(names, start=1):
        if not name or name.lower().startswith("unnamed:"):
            raise InputError(f"{source}: column {place} has no name; name it `id`, or write it without an index.")
    places = {role: names.index(name) for role, name in roles.items()}
    numbers = [place for place in range(len(names)) if place not in places.values()]
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
            yield ",".join([cells[place] for place in numbers] if places else cells)

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
    words = {role: _words(cells, role) for role, cells in texts.items()}
    return vectors_of(values, words, source)


def _bad_cell(source: Path, names: list[str], numbers: list[int], header: bool) -> InputError | None:
    """Look for the first cell that is not a number. Slow, and only called when there is one."""
    for line, cells in itertools.islice(_csv_rows(source), int(header), None):
        for place in numbers:
            if not _is_number(cells[place]):
                cell = cells[place]
                held = f"holds {quoted(cell)}, which is not a number" if cell.strip() else "is empty"
                column = quoted(names[place]) if header else names[place]
                return InputError(
                    f"{source}, line {line}, column {column} {held}; only `id`, `label` and `group` "
                    "columns may hold text."
                )
    return None


def csv_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    rows = list(_csv_rows(source))
    if not rows:
        raise InputError(f"{source} is empty; write it again.")
    _refuse_other_separators(rows[0][1], source)
    first = [cell.strip() for cell in rows[0][1]]
    # One column under a number is a list of class numbers without a heading.
    header = len(first) > 1 or not _is_number(first[0]) or column == first[0]
    names = first if header else ["label"]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(f'{source} has the column "{repeated[0]}" more than once; rename one.')
    roles = pick_columns(names, column, groups, source)
    body = rows[header:]
    for line, cells in body:
        if len(cells) != len(names):
            raise InputError(f"{source}, line {line} has {len(cells)} cells, not {len(names)}; check its commas.")
    texts = {role: _words((cells[names.index(name)] for _, cells in body), role) for role, name in roles.items()}
    heading = roles["label"] if header and role_of(roles["label"]) != "label" else None
    return labels_of(texts, source, heading)


def txt_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    refuse_columns(source, column, groups)
    with source.open(encoding="utf-8-sig") as stream:  # universal newlines: Windows files count the same
        lines = stream.read().split("\n")
    if lines[-1] == "":
        lines.pop()  # the end of the last line, not a label
    return Labels(_words(lines), source=str(source))


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


def _refuse_other_separators(first: list[str], source: Path) -> None:
    """A file saved with semicolons or tabs would be one column of long labels."""
    if len(first) == 1 and len(re.split(r"[;\t]", first[0])) > 1:
        raise InputError(f"{source} is not separated by commas; save it as comma-separated values.")


def _csv_header(first: list[str], second: list[str], source: Path) -> bool:
    """Whether the first row holds names: one with a meaning, or no number at all, or pandas' 0, 1, 2, …"""
    _refuse_other_separators(first, source)
    if any(role_of(cell) for cell in first) or not any(_is_number(cell) for cell in first):
        return True
    if not first[0].strip() and all(_is_number(cell) for cell in first[1:]):
        return True
    counting = first == [str(place) for place in range(len(first))] and len(first) > 1
    return counting and any("." in cell for cell in second)


def _words(cells: Iterable[str], role: str = "label") -> Texts:
    """Cells of a text file, where a missing label or group may have been written as a word."""
    if role == "id":
        return [as_text(cell) for cell in cells]
    texts = [None if text == "NaN" else text for text in map(as_text, cells)]
    if "nan" in texts and all(_is_number(text) for text in texts if text is not None):
        return [None if text == "nan" else text for text in texts]
    return texts


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()  # Python accepts 1_000 and Arabic digits, NumPy does not
