"""Vectors and labels from files, and the join of the two.

Vectors: .npy, .npz, .csv, .parquet, .pt. Labels: .csv, .txt, .npy, .npz, .parquet. A file that holds both may
be given twice. Names with a meaning, in any case, singular or plural: `id`, `label`, `group`.

Every failure is an InputError that names the file and the remedy. Whether the numbers are finite is not
looked at here: the evaluation does, and can then say which clips are affected.
"""

from __future__ import annotations

import csv
import itertools
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean, quoted, require

__all__ = ["Joined", "Labels", "Matrix", "Vectors", "join", "read_labels", "read_vectors"]

Matrix: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Texts: TypeAlias = list[str | None]

_PARQUET = ("Parquet files", "parquet")
_LIST_COLUMNS = ("vector", "vectors", "embedding", "embeddings")


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A matrix with a row for each clip, float32 or float64, and what the file says of each row."""

    ids: tuple[str, ...] | None
    values: Matrix
    labels: tuple[str | None, ...] | None = None
    groups: tuple[str | None, ...] | None = None
    source: str = "The vectors"


@dataclass(frozen=True, slots=True)
class Labels:
    """A label for each clip; None is unlabelled. `header` is the heading they stood under, if not `label`."""

    values: Texts
    ids: tuple[str, ...] | None = None
    groups: Texts | None = None
    source: str = "The labels"
    header: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Vectors and labels row by row, in the order of the vectors. `notes` says what a reader should know."""

    values: Matrix
    labels: Texts
    groups: Texts | None
    ids: tuple[str, ...] | None
    notes: tuple[str, ...]


# --- the three verbs ------------------------------------------------------------------------------


def read_vectors(path: str | os.PathLike[str], *, key: str | None = None) -> Vectors:
    """Read a matrix of vectors, one row for each clip, by the suffix of the file.

    .npy      a 2-D array
    .npz      the array `vectors`, or the only 2-D array; with `ids`, `labels`, `groups` if there
    .csv      number columns, with or without a header; with `id`, `label`, `group` columns if there
    .parquet  number columns, or one list column `vector` or `embedding`; with `id`, `label`, `group` if there
    .pt       a 2-D tensor, or a dictionary as in .npz

    `key` names the array, list column or dictionary entry to take. float32 and float64 stay as they are,
    float16 becomes float32, and whole numbers become float64.
    """
    source = Path(path)
    if key is not None and source.suffix.lower() in (".npy", ".csv"):
        raise UsageError(f"{source} holds one matrix; a key chooses an array of .npz, .parquet or .pt files.")
    with _readable(source):
        found = _reader(source, _VECTOR_READERS, "vectors")(source, key)
    beside = {"ids": found.ids, "labels": found.labels, "groups": found.groups}
    _same_length(len(found.values), "vectors", beside, source)
    return found


def read_labels(
    path: str | os.PathLike[str], *, column: str | None = None, groups: str | None = None
) -> Labels:
    """Read one label for each clip. An empty text, a NaN number and None mean unlabelled.

    .csv .parquet  the column `label`, or the only one besides `id` and `group`, or the one named by `column`
    .npz           the array `labels`, or the only 1-D array besides `ids` and `groups`, or the one named
    .txt .npy      one label a line; a 1-D array

    `groups` names the column of groups; without it a column `group` is taken if there. Surrounding spaces are
    dropped, and whole numbers lose their fraction, so that 3 and 3.0 are one label. In text files the word
    NaN means unlabelled, and so does nan where all other labels are numbers; elsewhere nan is a word.
    """
    source = Path(path)
    with _readable(source):
        labels = _reader(source, _LABEL_READERS, "labels")(source, column, groups)
    if not labels.values:
        raise InputError(f"{source} holds no labels; give one for each vector.")
    _same_length(len(labels.values), "labels", {"ids": labels.ids, "groups": labels.groups}, source)
    return labels


def join(vectors: Vectors, labels: Labels | None = None) -> Joined:
    """Give every vector its label: by id when both sides have ids, else by position.

    By id, every vector needs a label row, and label rows without a vector are left out and noted. Without
    `labels` those inside the vectors file are taken. Groups come from the labels, else from the vectors.
    """
    if labels is None:
        if vectors.labels is None:
            raise InputError(f"{vectors.source} holds no labels; give a file of labels.")
        groups = None if vectors.groups is None else list(vectors.groups)
        return Joined(vectors.values, list(vectors.labels), groups, vectors.ids, ())
    notes = []
    if vectors.labels is not None and labels.source != vectors.source:
        notes.append(f"Labels come from {labels.source}; those in {vectors.source} are not used.")
    if vectors.ids is not None and labels.ids is not None:
        order = _by_id(vectors.ids, labels.ids, vectors.source, labels.source)
        spare = len(labels.values) - len(order)
        if spare:
            rows = "1 row has" if spare == 1 else f"{spare} rows have"
            notes.append(f"{labels.source}: {rows} no vector and {'was' if spare == 1 else 'were'} left out.")
    else:
        if len(vectors.values) != len(labels.values):
            raise InputError(_length_mismatch(vectors, labels))
        if (vectors.ids is None) != (labels.ids is None):
            without = vectors.source if vectors.ids is None else labels.source
            notes.append(f"{without} has no ids; vectors and labels were joined by position.")
        order = list(range(len(labels.values)))
    chosen = [labels.values[row] for row in order]
    found: Sequence[str | None] | None = vectors.groups
    if labels.groups is not None:
        found = [labels.groups[row] for row in order]
    ids = labels.ids if vectors.ids is None else vectors.ids
    return Joined(vectors.values, chosen, None if found is None else list(found), ids, tuple(notes))


def _by_id(ids: Sequence[str], label_ids: Sequence[str], source: str, label_source: str) -> list[int]:
    for names, where in ((ids, source), (label_ids, label_source)):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise InputError(f"{where} has {_some(repeated, 'id')} more than once; ids must be unique.")
    row_of = {name: row for row, name in enumerate(label_ids)}
    missing = [name for name in ids if name not in row_of]
    if missing:
        raise InputError(
            f"{label_source} lacks {_some(missing, 'id')} of {len(ids)} in {source}; add the rows, "
            "with an empty label where there is none."
        )
    return [row_of[name] for name in ids]


def _length_mismatch(vectors: Vectors, labels: Labels) -> str:
    short = (
        f"{vectors.source} has {len(vectors.values)} rows but {labels.source} has {len(labels.values)} labels"
    )
    if labels.header is not None and len(labels.values) + 1 == len(vectors.values):
        return f'{short}; its first line "{labels.header}" was read as the heading: put `label` above it.'
    return f"{short}; give one label for each vector, or an `id` column on both sides."


def _some(names: Sequence[str], noun: str, most: int = 3) -> str:
    """'id "a"', '2 ids ("a", "b")', '9 ids ("a", "b", "c", …)'"""
    shown = ", ".join(f'"{name}"' for name in names[:most])
    if len(names) == 1:
        return f"{noun} {shown}"
    return f"{len(names)} {noun}s ({shown}{', …' if len(names) > most else ''})"


# --- what all formats share -----------------------------------------------------------------------


_Reader = TypeVar("_Reader")


def _reader(source: Path, readers: Mapping[str, _Reader], kind: str) -> _Reader:
    if not source.exists():
        raise InputError(f"{source} does not exist; check the path.")
    if source.is_dir():
        raise InputError(f"{source} is a folder; give a file of {kind} ({', '.join(readers)}).")
    suffix = source.suffix.lower()
    if suffix not in readers:
        raise InputError(f'{source}: {kind} are read from {", ".join(readers)} files, not from "{suffix}".')
    if source.stat().st_size == 0:
        raise InputError(f"{source} is empty; write it again.")
    return readers[suffix]


@contextmanager
def _readable(source: Path) -> Iterator[None]:
    """Turn whatever the system or a parser raises into one sentence about the file."""
    try:
        yield
    except EarmarkError:
        raise
    except PermissionError as error:
        raise InputError(f"{source} cannot be opened: permission denied; change its permissions.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    except MemoryError as error:
        raise InputError(f"{source} does not fit into memory; use float32, or fewer vectors.") from error
    except Exception as error:
        # Parsers meet damaged files with almost any type: ValueError, EOFError, zlib.error, struct.error, …
        detail = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        kind = source.suffix.lower()
        raise InputError(f"{source} is damaged or not a {kind} file ({detail}); write it again.") from error


def _same_length(
    count: int, kind: str, beside: Mapping[str, Sequence[str | None] | None], source: Path
) -> None:
    for name, texts in beside.items():
        if texts is not None and len(texts) != count:
            raise InputError(f"{source} has {count} {kind} but {len(texts)} {name}; write it again.")


def _role(name: str) -> str | None:
    """`id`, `label` or `group` when a column or array has that meaning."""
    singular = name.strip().lower().removesuffix("s")
    return singular if singular in ("id", "label", "group") else None


def _roles(names: Iterable[str], source: Path) -> dict[str, str]:
    """Meaning → name of the column or array that has it."""
    found: dict[str, str] = {}
    for name in names:
        role = _role(name)
        if role is not None and found.setdefault(role, name) != name:
            raise InputError(f"{source} has both `{found[role]}` and `{name}`; remove one of them.")
    return found


def _matrix(array: NDArray[Any], source: Path) -> Matrix:
    """Check that the array is a matrix of numbers, and bring it to native float32 or float64."""
    if array.dtype.kind not in "fiub":
        what = {"O": "Python objects", "c": "complex numbers", "U": "text", "S": "text"}
        held = what.get(array.dtype.kind, f"values of type {array.dtype}")
        raise InputError(f"{source} holds {held}, not real numbers; save the vectors as float32.")
    if array.ndim < 2:
        raise InputError(f"{source} has the shape {array.shape}; save one vector a row, as a matrix.")
    if array.ndim > 2:
        raise InputError(
            f"{source} has {array.ndim} dimensions {array.shape}; pool to one vector a clip first."
        )
    if 0 in array.shape:
        raise InputError(
            f"{source} has no {'rows' if array.shape[0] == 0 else 'columns'} {array.shape}; write it again."
        )
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    if single:
        return np.ascontiguousarray(array, dtype=np.float32)
    return np.ascontiguousarray(array, dtype=np.float64)


def _text(item: object) -> str | None:
    """A label or group as text; None when it says nothing."""
    if item is None or (isinstance(item, float) and math.isnan(item)):
        return None
    if isinstance(item, bytes):
        item = item.decode()
    if isinstance(item, float) and item.is_integer():
        item = int(item)
    return str(item).strip() or None


def _words(cells: Iterable[str], role: str = "label") -> Texts:
    """Cells of a text file, where a missing label or group may have been written as a word."""
    if role == "id":
        return [_text(cell) for cell in cells]
    texts = [None if text == "NaN" else text for text in map(_text, cells)]
    if "nan" in texts and all(_is_number(text) for text in texts if text is not None):
        return [None if text == "nan" else text for text in texts]
    return texts


def _ids(texts: Texts, source: Path) -> tuple[str, ...]:
    for row, text in enumerate(texts, start=1):
        if text is None:
            raise InputError(f"{source}: row {row} has no id; give every row one, or remove the ids.")
    return tuple(text for text in texts if text is not None)


def _vectors(values: Matrix, texts: Mapping[str, Texts], source: Path) -> Vectors:
    return Vectors(
        _ids(texts["id"], source) if "id" in texts else None,
        values,
        labels=tuple(texts["label"]) if "label" in texts else None,
        groups=tuple(texts["group"]) if "group" in texts else None,
        source=str(source),
    )


def _pick(names: Sequence[str], column: str | None, groups: str | None, source: Path) -> dict[str, str]:
    """Which columns or arrays hold the labels, the groups and the ids."""
    roles = _roles(names, source)
    for wanted, role in ((column, "label"), (groups, "group")):
        if wanted is None:
            continue
        if wanted not in names:
            hint = did_you_mean(wanted, names)
            raise InputError(f'{source} has no column "{wanted}"; it has {", ".join(names)}.{hint}')
        roles[role] = wanted
    if "label" not in roles:
        others = [name for name in names if name not in roles.values()]
        if len(others) != 1:
            raise InputError(
                f"{source} has the columns {', '.join(names)}; name the one with the labels `label`."
            )
        roles["label"] = others[0]
    return roles


# --- .npy and .npz --------------------------------------------------------------------------------


def _load_npy(source: Path) -> NDArray[Any]:
    with source.open("rb") as stream:
        start = stream.read(6)
        if start != b"\x93NUMPY":
            # np.load would take it for a pickle and advise to allow them, which is never safe.
            kind = "a .npz file" if start[:2] == b"PK" else "not a NumPy array"
            raise InputError(f"{source} is {kind}; save it with numpy.save, or give it its right suffix.")
        stream.seek(0)
        with _refusing_objects(str(source)):
            return np.asarray(np.load(stream, allow_pickle=False))


@contextmanager
def _refusing_objects(name: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise InputError(
            f"{name} holds Python objects, which are unsafe to read; save numbers as float32 and text as str."
        ) from error


def _npy_vectors(source: Path, _key: str | None) -> Vectors:
    return Vectors(None, _matrix(_load_npy(source), source), source=str(source))


def _npz_vectors(source: Path, key: str | None) -> Vectors:
    with _open_npz(source) as archive:
        chosen = _choose_array({name: _npz_ndim(source, name) for name in archive.files}, key, source)
        values = _matrix(_npz_array(archive, chosen, source), source)
        texts = {
            role: _array_texts(_npz_array(archive, name, source), source)
            for role, name in _roles(archive.files, source).items()
            if name != chosen
        }
    return _vectors(values, texts, source)


@contextmanager
def _open_npz(source: Path) -> Iterator[Any]:
    # Opened here: given a path, is_zipfile takes a file that may not be opened for no zip file, and np.load
    # leaves a damaged one open.
    with source.open("rb") as stream:
        if not zipfile.is_zipfile(stream):
            raise InputError(f"{source} is damaged or not a .npz file; save it with numpy.savez.")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            yield archive


def _npz_array(archive: Any, name: str, source: Path) -> NDArray[Any]:
    with _refusing_objects(f"{source}, array `{name}`"):
        return np.asarray(archive[name])


def _npz_ndim(source: Path, name: str) -> int:
    """The number of dimensions of an array, from its header: other arrays of the file may be large."""
    with zipfile.ZipFile(source) as archive, archive.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape = np.lib.format.read_array_header_1_0(stream)[0]
        else:
            shape = np.lib.format.read_array_header_2_0(stream)[0]
    return len(shape)


def _choose_array(ndims: Mapping[str, int], key: str | None, source: Path) -> str:
    names = ", ".join(ndims) or "none"
    if key is not None:
        if key not in ndims:
            raise InputError(f'{source} has no array "{key}"; it has {names}.{did_you_mean(key, ndims)}')
        return key
    if "vectors" in ndims:
        return "vectors"
    matrices = [name for name, ndim in ndims.items() if ndim == 2]
    if len(matrices) != 1:
        count = "no 2-D array" if not matrices else f"{len(matrices)} 2-D arrays"
        raise InputError(f"{source} has {count} among its arrays ({names}); name the matrix `vectors`.")
    return matrices[0]


def _array_texts(array: NDArray[Any], source: Path) -> Texts:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{source}: labels, ids and groups have one dimension; this shape is {array.shape}.")
    if array.dtype.kind in "OcV":
        raise InputError(
            f"{source} holds {array.dtype} where text or numbers belong; save labels as str or int."
        )
    return [_text(item) for item in array.tolist()]


def _npy_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    _refuse_columns(source, column, groups)
    return Labels(_array_texts(_load_npy(source), source), source=str(source))


def _refuse_columns(source: Path, column: str | None, groups: str | None) -> None:
    if column is not None or groups is not None:
        raise InputError(
            f"{source} has no named columns; give a .csv, .npz or .parquet file to choose one by name."
        )


def _npz_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    with _open_npz(source) as archive:
        lists = [
            name for name in archive.files if _role(name) or _npz_ndim(source, name) == 1 or name == column
        ]
        if not lists:
            raise InputError(
                f"{source} has no 1-D array; its arrays are {', '.join(archive.files) or 'none'}."
            )
        texts = {
            role: _array_texts(_npz_array(archive, name, source), source)
            for role, name in _pick(lists, column, groups, source).items()
        }
    return _labels(texts, source)


def _labels(texts: Mapping[str, Texts], source: Path, header: str | None = None) -> Labels:
    return Labels(
        texts["label"],
        ids=_ids(texts["id"], source) if "id" in texts else None,
        groups=texts.get("group"),
        source=str(source),
        header=header,
    )


# --- .csv and .txt --------------------------------------------------------------------------------


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()  # Python accepts 1_000 and Arabic digits, NumPy does not


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
            raise InputError(
                f"{source}, line {line} is not readable as CSV ({error}); check its quotes."
            ) from error


def _csv_header(first: list[str], second: list[str], source: Path) -> bool:
    """Whether the first row holds names: one with a meaning, or no number at all, or pandas' 0, 1, 2, …"""
    if len(first) == 1 and len(re.split(r"[;\t]", first[0])) > 1:
        raise InputError(f"{source} is not separated by commas; save it as comma-separated values.")
    if any(_role(cell) for cell in first) or not any(_is_number(cell) for cell in first):
        return True
    if not first[0].strip() and all(_is_number(cell) for cell in first[1:]):
        return True
    counting = first == [str(place) for place in range(len(first))] and len(first) > 1
    return counting and any("." in cell for cell in second)


def _csv_vectors(source: Path, _key: str | None) -> Vectors:
    rows = _csv_rows(source)
    opening = list(itertools.islice(rows, 2))
    if not opening:
        raise InputError(f"{source} is empty; write it again.")
    first = opening[0][1]
    header = _csv_header(first, opening[-1][1], source)
    names = [cell.strip() for cell in first] if header else [f"{place}" for place in range(1, len(first) + 1)]
    roles = _roles(names, source) if header else {}
    for place, name in enumerate(names, start=1):
        if not name or name.lower().startswith("unnamed:"):
            raise InputError(
                f"{source}: column {place} has no name; name it `id`, or write it without an index."
            )
    places = {role: names.index(name) for role, name in roles.items()}
    numbers = [place for place in range(len(names)) if place not in places.values()]
    body = itertools.chain(opening[header:], rows)
    texts: dict[str, list[str]] = {role: [] for role in places}
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for line, cells in body:
            if len(cells) != len(names):
                raise InputError(
                    f"{source}, line {line} has {len(cells)} cells, not {len(names)}; check its commas."
                )
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
    return _vectors(values, words, source)


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


def _csv_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    rows = list(_csv_rows(source))
    if not rows:
        raise InputError(f"{source} is empty; write it again.")
    first = [cell.strip() for cell in rows[0][1]]
    # One column under a number is a list of class numbers without a heading.
    header = len(first) > 1 or not _is_number(first[0]) or column == first[0]
    names = first if header else ["label"]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(f'{source} has the column "{repeated[0]}" more than once; rename one.')
    roles = _pick(names, column, groups, source)
    body = rows[header:]
    for line, cells in body:
        if len(cells) != len(names):
            raise InputError(
                f"{source}, line {line} has {len(cells)} cells, not {len(names)}; check its commas."
            )
    texts = {
        role: _words((cells[names.index(name)] for _, cells in body), role) for role, name in roles.items()
    }
    heading = roles["label"] if header and _role(roles["label"]) != "label" else None
    return _labels(texts, source, heading)


def _txt_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    _refuse_columns(source, column, groups)
    with source.open(encoding="utf-8-sig") as stream:  # universal newlines: Windows files count the same
        lines = stream.read().split("\n")
    if lines[-1] == "":
        lines.pop()  # the end of the last line, not a label
    return Labels(_words(lines), source=str(source))


# --- .parquet and .pt -----------------------------------------------------------------------------


def _parquet_table(source: Path) -> Any:
    parquet = require("pyarrow.parquet", *_PARQUET)
    with source.open("rb") as stream:
        return parquet.ParquetFile(stream).read()


def _parquet_vectors(source: Path, key: str | None) -> Vectors:
    types = require("pyarrow.types", *_PARQUET)
    table = _parquet_table(source)
    names = _parquet_names(table)
    roles = _roles(names, source)
    if key is not None and key not in names:
        raise InputError(
            f'{source} has no column "{key}"; it has {", ".join(names)}.{did_you_mean(key, names)}'
        )
    lists = [key] if key is not None else [name for name in names if name.lower() in _LIST_COLUMNS]
    lists = [name for name in lists if _is_list(table.schema.field(name).type, types)]
    if len(lists) > 1:
        raise InputError(f"{source} has the vector columns {', '.join(lists)}; keep one of them.")
    if lists:
        values = _list_column(table.column(lists[0]), lists[0], source)
    elif key is not None:
        raise InputError(
            f'{source}: column "{key}" does not hold lists of numbers; name a column of vectors.'
        )
    else:
        values = _number_columns(table, [name for name in names if name not in roles.values()], types, source)
    texts = {role: [_text(item) for item in table.column(name).to_pylist()] for role, name in roles.items()}
    return _vectors(values, texts, source)


def _parquet_names(table: Any) -> list[str]:
    # pandas keeps a row index of its own as a column with this name.
    return [name for name in table.column_names if not re.fullmatch(r"__index_level_\d+__", name)]


def _is_list(kind: Any, types: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _list_column(column: Any, name: str, source: Path) -> Matrix:
    arrow = require("pyarrow", *_PARQUET)
    whole = column.combine_chunks()
    if whole.null_count:
        row = whole.is_null().to_pylist().index(True) + 1
        raise InputError(f'{source}: row {row} of column "{name}" is empty; remove it or give it a vector.')
    compute = require("pyarrow.compute", *_PARQUET)
    lengths = compute.list_value_length(whole).to_numpy(zero_copy_only=False)
    flat = whole.flatten()
    odd = np.flatnonzero(lengths != lengths[0]) if len(lengths) else lengths
    if len(odd):
        raise InputError(
            f'{source}: column "{name}" has {lengths[0]} numbers in row 1 but {lengths[odd[0]]} in row '
            f"{odd[0] + 1}; give all vectors one length."
        )
    if flat.null_count:
        row = flat.is_null().to_pylist().index(True) // max(int(lengths[0]), 1) + 1
        raise InputError(
            f'{source}: row {row} of column "{name}" has an empty number; fill it or remove the row.'
        )
    if arrow.types.is_decimal(flat.type):
        flat = flat.cast(arrow.float64())
    width = int(lengths[0]) if len(lengths) else 0
    return _matrix(flat.to_numpy(zero_copy_only=False).reshape(len(lengths), width), source)


def _number_columns(table: Any, names: Sequence[str], types: Any, source: Path) -> Matrix:
    arrow = require("pyarrow", *_PARQUET)
    kinds = [table.schema.field(name).type for name in names]
    for name, kind in zip(names, kinds, strict=True):
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)):
            raise InputError(
                f'{source}: column "{name}" holds {kind}, not numbers; remove it, or name it `id`, `label` '
                "or `group`."
            )
        if table.column(name).null_count:
            row = table.column(name).is_null().to_pylist().index(True) + 1
            raise InputError(f'{source}: row {row} of column "{name}" is empty; fill it or remove the row.')
    if not names:
        raise InputError(f"{source} has no number columns and no column `vector`; add the vectors.")
    single = all(types.is_float16(kind) or types.is_float32(kind) for kind in kinds)
    values = np.empty((table.num_rows, len(names)), dtype=np.float32 if single else np.float64)
    for place, name in enumerate(names):
        column = table.column(name)
        if types.is_decimal(kinds[place]):
            column = column.cast(arrow.float64())
        values[:, place] = column.to_numpy()
    return _matrix(values, source)


def _parquet_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    types = require("pyarrow.types", *_PARQUET)
    table = _parquet_table(source)
    # A file with vectors may hold the labels too: its list columns are no candidates.
    names = [name for name in _parquet_names(table) if not _is_list(table.schema.field(name).type, types)]
    roles = _pick(names, column, groups, source)
    texts = {role: [_text(item) for item in table.column(name).to_pylist()] for role, name in roles.items()}
    return _labels(texts, source)


def _pt_vectors(source: Path, key: str | None) -> Vectors:
    torch = require("torch", "Torch .pt files", "torch")
    try:
        # weights_only: tensors and plain containers, never code.
        held = torch.load(source, map_location="cpu", weights_only=True)
    except PermissionError:
        raise
    except Exception as error:
        # Torch's own message advises to load the file without this safeguard.
        raise InputError(
            f"{source} is damaged or holds more than tensors; save the matrix with torch.save(tensor, path)."
        ) from error
    if not isinstance(held, Mapping):
        if key is not None:
            raise InputError(f"{source} holds one tensor; leave the key out.")
        return Vectors(None, _matrix(_from_tensor(held, torch, source), source), source=str(source))
    ndims = {str(name): item.ndim if torch.is_tensor(item) else 0 for name, item in held.items()}
    by_name = {str(name): item for name, item in held.items()}
    chosen = _choose_array(ndims, key, source)
    texts = {}
    for role, name in _roles(by_name, source).items():
        item = by_name[name]
        if name != chosen:
            listed = item.tolist() if torch.is_tensor(item) else item
            if not isinstance(listed, list | tuple):
                raise InputError(f"{source}: `{name}` is not a list; give one entry for each vector.")
            texts[role] = [_text(entry) for entry in listed]
    return _vectors(_matrix(_from_tensor(by_name[chosen], torch, source), source), texts, source)


def _from_tensor(tensor: Any, torch: Any, source: Path) -> NDArray[Any]:
    if not torch.is_tensor(tensor):
        raise InputError(
            f"{source} holds a {type(tensor).__name__}, not a tensor; save the matrix with torch.save."
        )
    if tensor.layout != torch.strided:
        raise InputError(f"{source} holds a sparse tensor; save it dense.")
    # NumPy has no bfloat16; float32 holds every value of it.
    dense = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return np.asarray(dense.detach().numpy())


_VECTOR_READERS: dict[str, Callable[[Path, str | None], Vectors]] = {
    ".npy": _npy_vectors,
    ".npz": _npz_vectors,
    ".csv": _csv_vectors,
    ".parquet": _parquet_vectors,
    ".pt": _pt_vectors,
}
_LABEL_READERS: dict[str, Callable[[Path, str | None, str | None], Labels]] = {
    ".csv": _csv_labels,
    ".txt": _txt_labels,
    ".npy": _npy_labels,
    ".npz": _npz_labels,
    ".parquet": _parquet_labels,
}
