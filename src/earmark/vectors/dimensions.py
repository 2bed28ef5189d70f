"""Which columns of a table are dimensions of the vectors, and which say what a row is.

A column is no dimension when
- it is the label, the group or the id, by its name or because the caller says so;
- it is an index: without a name, named by pandas, or counting the rows under any name;
- its name says that it tells rows apart, or cuts them out (class, speaker_id, fold, file_name, start, …).

Columns of whole numbers among columns of fractions are suspicious. Where all others share one name with running numbers
(f0 … f127) such a column is refused until the caller decides with `dimensions`; elsewhere it is noted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.vectors.roles import MissingColumn, family, is_index_name, named, role_of, shortened, telling

__all__ = ["Asked", "Columns", "Numbered", "choose_columns", "without_index"]

_FEW_ROWS = 8
"""Below so many rows a column may count them, or hold whole numbers, by chance."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller says of the columns: those of the label and of the groups, which must be there; names that are
    no dimensions where they are there; and, as patterns (`f*`), the dimensions."""

    label: str | None = None
    groups: str | None = None
    apart: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()


class Columns(NamedTuple):
    """Places of the dimensions, the place of each meaning (`id`, `label`, `group`), and places of neither."""

    dimensions: list[int]
    roles: dict[str, int]
    left_out: list[int]


def choose_columns(names: Sequence[str], asked: Asked, source: Path, index: Collection[str] = ()) -> Columns:
    """What each column of a table is, by its name. `index` names columns that the file itself calls an index."""
    roles = {role: names.index(name) for role, name in named(names, asked.label, asked.groups, source).items()}
    if asked.dimensions:
        wanted = _matching(names, asked.dimensions, set(roles.values()), source)
    else:
        apart = {name.strip().lower() for name in asked.apart}
        wanted = [
            place
            for place, name in enumerate(names)
            if place not in roles.values()
            and name.strip().lower() not in apart
            and name not in index
            and not (role_of(name) or is_index_name(name) or telling(name))
        ]
    left_out = [place for place in range(len(names)) if place not in wanted and place not in roles.values()]
    return Columns(wanted, roles, left_out)


def _matching(names: Sequence[str], patterns: Sequence[str], taken: Collection[int], source: Path) -> list[int]:
    chosen: set[int] = set()
    for pattern in patterns:
        matching = {place for place, name in enumerate(names) if fnmatchcase(name, pattern)}
        if not matching:
            raise MissingColumn(source, pattern, names)
        if matching <= set(taken):
            raise UsageError(f'{source}: "{pattern}" is the label, the group or the id, and so no dimension.')
        chosen |= matching - set(taken)
    return sorted(chosen)


# --- what the numbers say -----------------------------------------------------------------------------------


class Numbered(NamedTuple):
    """The places of the dimensions that stay, those of an index, those that may be labels by what they hold, and what
    a reader should know."""

    kept: list[int]
    counting: list[int]
    doubtful: list[int]
    notes: tuple[str, ...]


def without_index(values: NDArray[Any], names: Sequence[str] | None, source: Path) -> Numbered:
    """Find the columns that count the rows, and say which others may be labels or ids by what they hold."""
    width = values.shape[1]
    everything = list(range(width))
    if len(values) < _FEW_ROWS or width < 2:
        return Numbered(everything, [], [], ())
    index = _counting(values)
    kept = [place for place in everything if place not in index]
    if not kept:  # all of them: a pattern, not an index beside vectors
        return Numbered(everything, [], [], ())
    whole = _whole_among_fractions(values, kept)
    if not whole:
        return Numbered(kept, index, [], ())
    shown = ", ".join(f'"{names[place]}"' if names else f"{place + 1}" for place in whole)
    holds = f"column {shown} holds" if len(whole) == 1 else f"columns {shown} hold"
    others = [place for place in kept if place not in whole]
    stem = None if names is None else family([names[place] for place in others])
    odd = names is not None and family([names[others[0]], *(names[place] for place in whole)]) is None
    if names is not None and stem is not None and odd:
        pattern = f"{stem}*" if stem else "[0-9]*"
        both = ",".join([pattern, *(names[place] for place in whole)])
        raise InputError(
            f"{source}: {holds} whole numbers beside {len(others)} dimensions {shortened([names[p] for p in others])}, "
            f'as a label or an id would; say what counts with --dimensions "{pattern}", or "{both}" to keep it.'
        )
    remedy = "leave it out with --dimensions" if names else "write it to a file of its own"
    note = f"{source}: {holds} whole numbers among fractions; if that is a label or an id, {remedy}."
    return Numbered(kept, index, whole, (note,))


def _counting(values: NDArray[Any]) -> list[int]:
    """Columns that are 0 … N-1 or 1 … N: in order, or in any order if there is only one (several are ranks)."""
    count = len(values)
    low, high = values.min(axis=0), values.max(axis=0)
    ordered: list[int] = []
    shuffled: list[int] = []
    for place in np.flatnonzero(((low == 0) & (high == count - 1)) | ((low == 1) & (high == count))):
        column = values[:, place]
        numbers = np.arange(count) + low[place]
        if np.array_equal(column, numbers):
            ordered.append(int(place))
        elif np.array_equal(np.sort(column), numbers):
            shuffled.append(int(place))
    return sorted(ordered + (shuffled if len(shuffled) == 1 else []))


def _whole_among_fractions(values: NDArray[Any], places: Sequence[int]) -> list[int]:
    """One or two columns of whole numbers, not all the same, where all others (four or more) hold fractions."""
    if values.dtype.kind != "f":
        return []
    opening = values[:64, places]
    likely = np.flatnonzero((opening == np.rint(opening)).all(axis=0))
    if len(likely) > max(2, len(places) // 8):  # many: nothing is special about them
        return []
    whole = []
    for place in (places[int(number)] for number in likely):
        column = values[:, place]
        if (column == np.rint(column)).all():
            whole.append(place)
    varied = [place for place in whole if (values[:, place] != values[0, place]).any()]
    return varied if len(varied) <= 2 and len(places) - len(whole) >= 4 else []
