"""Distances that were computed elsewhere: from files and arrays, checked, and looked up by pairs or by blocks.

    square     [n, n], .npy (memory-mapped), .npz, or a table with the names above and beside it
    condensed  n (n - 1) / 2 values, .npy or .npz: (0,1) (0,2) … (0,n-1) (1,2) …, as scipy's `pdist` gives them
    pairs      a table with two columns of names and one of distances

Nothing but distances passes: similarities, negative values, NaN and gaps are refused. Where the two directions of a
pair differ by more than rounding, the caller says what counts. A matrix is checked in tiles, never copied as a whole.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, absent
from earmark.places import locate
from earmark.vectors import _array_files, _distance_tables
from earmark.vectors._condensed import condensed_places, count_of_condensed
from earmark.vectors._distance_checks import (
    SYMMETRISE,
    Checked,
    check_condensed,
    check_square,
    names_of_pairs,
)
from earmark.vectors._matching import some_names
from earmark.vectors._pair_lists import condense
from earmark.vectors._reading import read_labels, readable, reader_for
from earmark.vectors.columns import names_items, role_of
from earmark.vectors.table_files import column_names
from earmark.vectors.texts import as_array, as_text

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows: TypeAlias = Ints | slice

BLOCK_ROWS = 128
_SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".txt", ".parquet")


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """Distances of n items, square or condensed, as they were given; `pairs` and `block` say what they mean.

    `values` stays where it is, on disk where it is memory-mapped. `symmetrise` says how the two directions of a pair
    became or become one: mean, min or max, or None where they are the same. `notes` says what a reader should know.
    """

    values: Array
    ids: tuple[str, ...] | None = None
    source: str = "The distances"
    notes: tuple[str, ...] = ()
    symmetrise: str | None = None
    rounded: bool = False  # whether some values lie below 0 by rounding
    ordered: bool = True  # whether the items have an order of their own; pairs have names alone

    @property
    def n(self) -> int:
        """The number of items."""
        return len(self.values) if self.values.ndim == 2 else count_of_condensed(len(self.values))

    def __len__(self) -> int:
        return self.n

    @property
    def ready(self) -> bool:
        """Whether the values are the distances as they are: a matrix, nothing to make even, nothing below 0."""
        values, plain = self.values, self.symmetrise is None and not self.rounded
        native = values.dtype in (np.float32, np.float64) and values.dtype.isnative
        return plain and native and values.ndim == 2 and values.flags.c_contiguous and values.flags.writeable

    def pairs(self, rows_a: Any, rows_b: Any) -> Floats:
        """The distance of each of `rows_a` to the item at the same place of `rows_b`; an item's to itself is 0."""
        a, b = np.broadcast_arrays(np.asarray(rows_a, np.int64), np.asarray(rows_b, np.int64))
        if self.values.ndim == 1:
            low, high = np.minimum(a, b), np.maximum(a, b)
            found = np.asarray(self.values[np.where(low < high, condensed_places(low, high, self.n), 0)], np.float64)
        else:
            found = np.asarray(self.values[a, b], np.float64)
            if self.symmetrise is not None:
                found = SYMMETRISE[self.symmetrise](found, np.asarray(self.values[b, a], np.float64))
        return np.where(a == b, 0.0, np.maximum(found, 0.0))

    def block(self, rows: Rows, columns: Rows) -> Floats:
        """The distances of `rows` to `columns`, [rows, columns]; an item's to itself is 0."""
        chosen = np.arange(self.n)
        a, b = chosen[rows], chosen[columns]
        if self.values.ndim == 1:
            return self.pairs(a[:, None], b[None, :])
        found = np.asarray(_submatrix(self.values, rows, columns), np.float64)
        if self.symmetrise is not None:
            mirrored = self.values[b[:, None], a[None, :]].T
            found = SYMMETRISE[self.symmetrise](found, np.asarray(mirrored, np.float64))
        found = np.maximum(found, 0.0)
        found[a[:, None] == b[None, :]] = 0.0
        return found

    def in_order(self, order: Ints, memory: int) -> Distances:
        """The same distances with the items in another order, in a temporary file where memory (bytes) is short."""
        from earmark.vectors._arranging import arranged

        names = None if self.ids is None else tuple(self.ids[row] for row in order)
        return replace(self, values=arranged(self, order, memory)[0], ids=names, symmetrise=None, rounded=False)

    def digest(self) -> str:
        """A hash of the distances as they are used, whatever form and type they were given in."""
        total = hashlib.sha256(f"distances {self.n}".encode())
        for start in range(0, self.n, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, self.n))
            block = self.block(rows, slice(start, self.n))
            for r in range(len(block)):
                total.update(block[r, r + 1 :].tobytes())
            self.release()
        return total.hexdigest()

    def release(self) -> None:
        """Let go of the pages of a memory-mapped file that were read: they are read again when needed."""
        release_pages(self.values)


def release_pages(array: Array) -> None:
    """Take the pages of a memory-mapped array out of memory; any other array stays as it is."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _submatrix(values: Array, rows: Rows, columns: Rows) -> Array:
    # Whole rows first: in a file they lie together.
    part: Array = values[rows]
    return part[:, columns]


# --- distances from arrays and from files -----------------------------------------------------------------------


def given_distances(
    values: Any,
    *,
    ids: Sequence[str] | None = None,
    symmetrise: str | None = None,
    source: str = "The distances",
    progress: bool = False,
) -> Distances:
    """Distances from an array, square [n, n] or condensed, checked as those of a file are.

    Args:
        values: The array. Of `Distances` the two directions are made one anew where `symmetrise` asks for another way.
        ids: A name for each item.
        symmetrise: What counts where the two directions of a pair differ: mean, min or max.
        source: What the distances are called in messages.
        progress: Whether a bar on stderr shows how far the checks are.
    """
    _check_symmetrise(symmetrise)
    if isinstance(values, Distances):
        again = symmetrise is not None and values.symmetrise not in (None, symmetrise)
        if again and values.values.ndim == 1:
            raise UsageError(
                f"{values.source}: the two directions of each pair are one already, by their {values.symmetrise}; read "
                f"the file with symmetrise={symmetrise!r}."
            )
        if not again:
            return values if ids is None else replace(values, ids=_unique(ids, values.n, source))
        ids, source, values = values.ids if ids is None else ids, values.source, values.values
    array = as_array(values)
    if hasattr(array, "columns") and hasattr(array, "to_numpy"):  # a frame, whose index may have names
        above, beside = list(array.columns), list(getattr(array, "index", ()))
        if ids is None and above == beside and above != list(range(len(above))):
            ids = above
        array = array.to_numpy()
    if np.ma.isMaskedArray(array):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    if not isinstance(array, np.ndarray):  # which np.asarray would read into memory where it is mapped
        array = np.asarray(array)
    n = _size(array, source)
    names = None if ids is None else _unique(ids, n, source)
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    checked = _checks(array, names, source, symmetrise, progress=progress)
    release_pages(array)
    return Distances(array, names, source, checked.notes, checked.symmetrise, checked.rounded)


def read_distances(
    path: str | os.PathLike[str],
    *,
    ids: str | os.PathLike[str] | Sequence[str] | None = None,
    key: str | None = None,
    columns: str | Sequence[str] | None = None,
    symmetrise: str | None = None,
    complete: bool = True,
    progress: bool = False,
) -> Distances:
    """Read distances that were computed elsewhere, by the suffix of the file and what it holds.

        .npy             a square matrix, which stays on disk, or condensed distances
        .npz             the array `distances`, or the only one besides `ids`; square or condensed
        .csv .tsv .txt   pairs (two columns of names, one of distances), or a square table with names above and beside
        .parquet         the same

    Args:
        path: The file.
        ids: The names of the items in the order of the matrix: a list, or a file (.txt, one in a line; or a table with
            a column `id`, `path`, `file` …). Where the file itself has names, these say which must be there.
        key: The array of an .npz file.
        columns: The two columns of names and the column of distances of a table of pairs: "a,b,distance".
        symmetrise: What counts where the two directions of a pair differ: mean, min or max.
        complete: Whether every pair must be there; otherwise a pair that a table does not list has the distance NaN.
        progress: Whether a bar on stderr shows how far the checks are.

    Returns:
        The matrix with the names of its items, checked.

    >>> earmark.evaluate(labels=labels, distances=earmark.read_distances("dtw.csv"))
    """
    source = locate(path)
    _check_symmetrise(symmetrise)
    chosen = _chosen_columns(columns)
    wanted = read_ids(ids) if isinstance(ids, str | os.PathLike) else None if ids is None else list(ids)
    with readable(source):
        kind = reader_for(source, dict.fromkeys(_SUFFIXES, source.suffix.lower()), "distances")
        if kind in (".npy", ".npz"):
            if chosen is not None:
                raise UsageError(f"{source} is no table; columns choose among those of a .csv, .tsv or .parquet file.")
            values, inside = _arrays(source, key)
        else:
            if key is not None:
                raise UsageError(f"{source} is a table; a key chooses an array of an .npz file.")
            table = _distance_tables.read_table(source, chosen, progress=progress)
            if isinstance(table, _distance_tables.PairList):
                names = None if wanted is None else _unique(wanted, len(wanted), source)
                pairs = condense(table, names, symmetrise, str(source), complete=complete)
                checked = _checks(
                    pairs.values, pairs.names, str(source), symmetrise, complete=complete, progress=progress
                )
                notes = (*table.notes, *pairs.notes, *checked.notes)
                return Distances(
                    pairs.values, pairs.names, str(source), notes, pairs.symmetrise, checked.rounded,
                    ordered=wanted is not None,
                )  # fmt: skip
            values, inside = table.values, table.names
    n = _size(values, str(source))
    given = inside if inside is not None else wanted
    found = None if given is None else _unique(given, n, source)
    if found is not None and wanted is not None:
        _refuse_other_names(found, wanted, source)
    return given_distances(values, ids=found, symmetrise=symmetrise, source=str(source), progress=progress)


def read_ids(path: str | os.PathLike[str]) -> list[str]:
    """Names of items from a file: one in a line, or a table's column `id`, or `path`, `file` and the like."""
    source = locate(path)
    column, npz = None, source.suffix.lower() == ".npz"
    if npz or source.suffix.lower() in (".csv", ".parquet"):
        with readable(source):
            columns = list(_array_files.npz_arrays(source)) if npz else column_names(source)
        named = [name for name in columns if role_of(name) == "id"]
        likely = [name for name in columns if names_items(name)]
        named = named or (likely if len(likely) == 1 else [])
        if len(columns) > 1 and not named:
            raise InputError(f"{source} has the columns {', '.join(columns)}; name the one with the ids `id`.")
        column = named[0] if named else None
    texts = read_labels(source, column=column).values
    missing = [row for row, text in enumerate(texts, start=1) if text is None]
    if missing:
        raise InputError(f"{source}: row {missing[0]} has no id; give every item one.")
    return [text for text in texts if text is not None]


def _arrays(source: Path, key: str | None) -> tuple[Array, list[str] | None]:
    """The array of a file, and the ids beside it."""
    if source.suffix.lower() == ".npy":
        if key is not None:
            raise UsageError(f"{source} holds one array; a key chooses an array of an .npz file.")
        return _array_files.map_npy(source), None
    arrays = _array_files.npz_arrays(source)
    held = [name for name in arrays if role_of(name) != "id"]
    if key is None:
        key = next((name for name in held if name.lower() == "distances"), held[0] if len(held) == 1 else None)
        if key is None:
            raise InputError(f"{source} has the arrays {', '.join(held) or 'none'}; name the distances `distances`.")
    elif key not in arrays:
        raise InputError(absent(key, arrays, "array", source))
    names = next((name for name in arrays if role_of(name) == "id"), None)
    ids = None if names is None else [as_text(item) or "" for item in np.ravel(arrays[names]).tolist()]
    return arrays[key], ids


def _checks(
    array: Array, names: tuple[str, ...] | None, source: str, symmetrise: str | None, *,
    complete: bool = True, progress: bool = False,
) -> Checked:  # fmt: skip
    name = names_of_pairs(names)
    if array.ndim == 1:
        return check_condensed(array, name, source, complete=complete, progress=progress)
    return check_square(array, name, source, symmetrise, release=lambda: release_pages(array), progress=progress)


def _size(array: Array, source: str) -> int:
    """The number of items of a square or condensed array of real numbers."""
    if array.dtype.kind not in "fiub":
        raise InputError(f"{source} hold values of type {array.dtype}, not numbers; save distances as float64.")
    if array.ndim == 2 and array.shape[0] != array.shape[1]:
        raise InputError(
            f"{source}: the shape {array.shape} is not square; a matrix of distances has a row and a column for each "
            "item (vectors are given without --distances)."
        )
    if array.ndim not in (1, 2):
        raise InputError(f"{source} has {array.ndim} dimensions; save a square matrix or condensed distances.")
    n = len(array) if array.ndim == 2 else count_of_condensed(len(array))
    if array.ndim == 1 and n * (n - 1) // 2 != len(array):
        raise InputError(
            f"{source} has {len(array)} values, which is n (n - 1) / 2 for no whole n; save a square matrix or "
            "condensed distances as scipy's pdist gives them."
        )
    if n < 2:
        raise InputError(f"{source} has distances of {n} items; at least two are needed.")
    return n


def _unique(ids: Sequence[Any], n: int, source: object) -> tuple[str, ...]:
    if isinstance(ids, str):
        raise InputError(f"Ids must be a list with one entry for each item, not {ids!r}.")
    names = tuple(as_text(name) or "" for name in ids)
    if len(names) != n:
        raise InputError(f"{source} has distances of {n} items but there are {len(names)} ids; give one for each item.")
    if "" in names:
        raise InputError(f"{source}: item {names.index('') + 1} has no id; give every item one, or none of them.")
    seen: set[str] = set()
    repeated = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if repeated:
        raise InputError(f"{source} has {some_names(repeated, 'id')} more than once; ids must be unique.")
    return names


def _refuse_other_names(inside: Sequence[str], wanted: Sequence[str], source: object) -> None:
    listed, there = set(wanted), set(inside)
    unknown = [name for name in inside if name not in listed]
    missing = [name for name in wanted if name not in there]
    if unknown:
        raise InputError(f"{source} names {some_names(unknown, 'item')} not among the {len(listed)} ids; check both.")
    if missing:
        raise InputError(f"{source} lacks {some_names(missing, 'item')} of the {len(listed)} ids; check both.")


def _check_symmetrise(symmetrise: str | None) -> None:
    if symmetrise is not None and symmetrise not in SYMMETRISE:
        raise UsageError(f"Unknown way to symmetrise {symmetrise!r}: choose {', '.join(SYMMETRISE)}.")


def _chosen_columns(columns: str | Sequence[str] | None) -> tuple[str, str, str] | None:
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")] if isinstance(columns, str) else list(columns)
    if len(names) != 3 or len(set(names)) != 3:
        raise UsageError(f"Pairs have three columns, as in a,b,distance; {', '.join(names) or 'none'} was given.")
    return names[0], names[1], names[2]
