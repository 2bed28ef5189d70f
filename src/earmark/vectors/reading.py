"""Reading vectors and labels: the suffix of the file chooses the format.

Every failure is an InputError that names the file and the remedy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from earmark.errors import EarmarkError, InputError, UsageError
from earmark.vectors.array_files import npy_labels, npy_vectors, npz_labels, npz_vectors, pt_vectors
from earmark.vectors.dimensions import Asked
from earmark.vectors.parquet_files import parquet_labels, parquet_vectors
from earmark.vectors.tables import Labels, Vectors
from earmark.vectors.text_files import csv_labels, csv_vectors, txt_labels

_Reader = TypeVar("_Reader")

_VECTOR_READERS: dict[str, Callable[[Path, str | None, Asked], Vectors]] = {
    ".npy": npy_vectors,
    ".npz": npz_vectors,
    ".csv": csv_vectors,
    ".parquet": parquet_vectors,
    ".pt": pt_vectors,
}
_LABEL_READERS: dict[str, Callable[[Path, str | None, str | None], Labels]] = {
    ".csv": csv_labels,
    ".txt": txt_labels,
    ".npy": npy_labels,
    ".npz": npz_labels,
    ".parquet": parquet_labels,
}


def read_vectors(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    label_column: str | None = None,
    groups: str | None = None,
    dimensions: str | Sequence[str] = (),
    apart: Sequence[str] = (),
) -> Vectors:
    """Read a matrix of vectors, one row for each clip, by the suffix of the file.

        .npy      a 2-D array
        .npz      the array `vectors`, or the only 2-D array; with `ids`, `labels`, `groups` if there
        .csv      number columns, with or without a header; with `id`, `label`, `group` columns if there
        .parquet  number columns, or one list column `vector` or `embedding`; with `id`, `label`, `group` if there
        .pt       a 2-D tensor, or a dictionary as in .npz

    Of a .csv or .parquet file, labels, groups, ids, an index and columns whose name tells rows apart (class,
    speaker_id, fold, …) are no dimensions. `Vectors.columns` and `Vectors.summary` say which were used. A column that
    counts the rows is left out of any file. float32 and float64 stay as they are, float16 becomes float32, and whole
    numbers float64.

    Args:
        path: The file.
        key: The array, list column or dictionary entry to take.
        label_column: The column or array that holds labels.
        groups: The column or array that holds groups.
        dimensions: Columns of a table that are the vectors, by name or pattern (`f*`).
        apart: Columns that are no dimensions, beside those above.
    """
    source = Path(path)
    if key is not None and source.suffix.lower() in (".npy", ".csv"):
        raise UsageError(f"{source} holds one matrix; a key chooses an array of .npz, .parquet or .pt files.")
    patterns = (dimensions,) if isinstance(dimensions, str) else tuple(dimensions)
    asked = Asked(label_column, groups, tuple(apart), patterns)
    with _readable(source):
        found = _reader(source, _VECTOR_READERS, "vectors")(source, key, asked)
    beside = {"ids": found.ids, "labels": found.labels, "groups": found.groups}
    _same_length(len(found.values), "vectors", beside, source)
    return found


def read_labels(path: str | os.PathLike[str], *, column: str | None = None, groups: str | None = None) -> Labels:
    """Read one label for each clip. An empty text, a NaN number and None mean unlabelled.

    .csv .parquet  the column `label`, or the only one besides `id` and `group`, or the one named by `column`
    .npz           the array `labels`, or the only 1-D array besides `ids` and `groups`, or the one named
    .txt .npy      one label a line; a 1-D array

    `groups` names the column of groups; without it a column `group` is taken if there. Surrounding spaces are
    dropped, and whole numbers lose their fraction, so that 3 and 3.0 are one label, also as text where every label
    is a number. The words NaN, NaT and <NA> mean unlabelled, and so do nan, None, null and NA where all other labels
    are numbers; elsewhere these are words.
    """
    source = Path(path)
    with _readable(source):
        labels = _reader(source, _LABEL_READERS, "labels")(source, column, groups)
    if not labels.values:
        raise InputError(f"{source} holds no labels; give one for each vector.")
    _same_length(len(labels.values), "labels", {"ids": labels.ids, "groups": labels.groups}, source)
    return labels


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


def _same_length(count: int, kind: str, beside: Mapping[str, Sequence[str | None] | None], source: Path) -> None:
    for name, texts in beside.items():
        if texts is not None and len(texts) != count:
            raise InputError(f"{source} has {count} {kind} but {len(texts)} {name}; write it again.")
