"""Whether the first row of a CSV file holds names or a vector: pandas heads nameless columns 0, 1, 2, …"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from earmark.errors import InputError, quoted
from earmark.vectors.dimensions import Asked
from earmark.vectors.roles import is_index_name, role_of, telling
from earmark.vectors.texts import is_number

__all__ = ["has_heading", "refuse_other_separators"]


def refuse_other_separators(first: Sequence[str], source: Path) -> None:
    """A file saved with semicolons or tabs would be one column of long texts."""
    if len(first) == 1 and len(re.split(r"[;\t]", first[0])) > 1:
        raise InputError(f"{source} is not separated by commas; save it as comma-separated values.")


def has_heading(rows: Sequence[Sequence[str]], source: Path, asked: Asked) -> bool:
    """Whether the first of the opening rows holds names.

    It does when a name has a meaning or was asked for, and when no cell is a number. Else its numbers must be whole:
    0, 1, 2, …, or rising over four or more columns that hold nothing but fractions. 0, 1, 2, … over whole numbers is a
    heading from four columns on; with fewer, or where every row holds these numbers in some order, it is refused.
    """
    first = [cell.strip() for cell in rows[0]]
    refuse_other_separators(first, source)
    places = [place for place, cell in enumerate(first) if is_number(cell)]
    words = [(place, cell) for place, cell in enumerate(first) if place not in places]
    wanted = {asked.label, asked.groups, *asked.apart, *asked.dimensions}
    if not places or any(role_of(cell) or cell in wanted for cell in first):
        return True
    numbers = [first[place] for place in places]
    body = [[cell.strip() for cell in cells] for cells in rows[1:] if len(cells) == len(first)]
    if not body or not _rising(numbers) or not all(_heads(cell, place, body) for place, cell in words):
        return False
    values = [[cells[place] for place in places] for cells in body]
    if numbers != [str(place) for place in range(len(numbers))]:
        return len(numbers) > 3 and len(body) > 2 and not any(_is_whole(cell) for cells in values for cell in cells)
    if words or not all(_is_whole(cell) for cells in values for cell in cells):
        return bool(words) or len(numbers) > 1
    return _counts_columns(numbers, values, source)


def _rising(numbers: Sequence[str]) -> bool:
    return all(map(_is_whole, numbers)) and all(int(low) < int(high) for low, high in pairwise(numbers))


def _heads(word: str, place: int, body: Sequence[Sequence[str]]) -> bool:
    """Whether a word, or a blank at the start, can only be the name of its column."""
    if not word:
        return place == 0
    return is_index_name(word) or telling(word) or all(is_number(cells[place]) for cells in body)


def _counts_columns(numbers: list[str], body: list[list[str]], source: Path) -> bool:
    """Settle 0, 1, 2, … over whole numbers, or refuse the file."""
    width = len(numbers)
    same = all(sorted(cells) == sorted(numbers) for cells in body)
    if width < 2 or (width == 2 and all(cell in ("0", "1") for cells in body for cell in cells)):
        return False
    if width > 3 and not same:
        return True
    shown = quoted(",".join(numbers))
    raise InputError(
        f"{source}: its first line {shown} may be a heading or a vector; put names above the columns (x0,x1,…)."
    )


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None
