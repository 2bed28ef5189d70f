"""Reading vectors and labels, whose suffix chooses the format, and joining them by id or by position.

Every failure is an InputError that names the file and the remedy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from earmark.errors import EarmarkError, InputError, UsageError
from earmark.places import is_remote, locate
from earmark.vectors._array_files import npy_labels, npy_vectors, npz_labels, npz_vectors, pt_vectors
from earmark.vectors._matching import match_rows
from earmark.vectors._values import Joined, Labels, Vectors
from earmark.vectors.birdnet_files import birdnet_files, read_birdnet
from earmark.vectors.columns import Asked, MissingColumn, NamelessColumns, refuse_columns
from earmark.vectors.hoplite_files import hoplite_database, read_hoplite
from earmark.vectors.several_labels import label_columns, one_row_each
from earmark.vectors.table_files import (
    column_names,
    csv_labels,
    csv_vectors,
    parquet_labels,
    parquet_vectors,
    txt_labels,
)

_Reader = TypeVar("_Reader")

_Held = TypeVar("_Held", Vectors, Labels)

NO_GROUPS = "none"
"""What is asked for in the place of a column where groups that a file holds do not count."""

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
        .birdnet.embeddings.txt    windows of a recording, as BirdNET-Analyzer writes them; also a folder of these, and
                  its .csv with the columns file_path, start, end and embedding
        hoplite.sqlite             the folder of a database of Perch Hoplite or BirdNET-Analyzer, or that file in it

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

    Returns:
        The matrix, with the ids, labels and groups that the file holds.

    >>> earmark.read_vectors("vectors.parquet", dimensions="f*").summary
    """
    source = locate(path)
    if key is not None and source.suffix.lower() in (".npy", ".csv"):
        raise UsageError(f"{source} holds one matrix; a key chooses an array of .npz, .parquet or .pt files.")
    patterns = (dimensions,) if isinstance(dimensions, str) else tuple(dimensions)
    asked = Asked(label_column, groups, tuple(apart), patterns)
    if not is_remote(source) and (files := birdnet_files(source)):
        refuse_columns(source, label_column, groups)
        return read_birdnet(source, files)
    if not is_remote(source) and (database := hoplite_database(source)) is not None:
        refuse_columns(source, label_column, None)
        with readable(source):
            return read_hoplite(source, database, groups)
    with readable(source):
        found = reader_for(source, _VECTOR_READERS, "vectors")(source, key, asked)
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
    source = locate(path)
    with readable(source):
        labels = reader_for(source, _LABEL_READERS, "labels")(source, column, groups)
    if not labels.values:
        raise InputError(f"{source} holds no labels; give one for each vector.")
    _same_length(len(labels.values), "labels", {"ids": labels.ids, "groups": labels.groups}, source)
    return labels


def reader_for(source: Path, readers: Mapping[str, _Reader], kind: str) -> _Reader:
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
def readable(source: Path) -> Iterator[None]:
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


# --- vectors with their labels --------------------------------------------------------------------------------


def read_labelled(
    vectors: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    *,
    key: str | None = None,
    label_column: str | None = None,
    label_separator: str = "",
    groups: str | None = None,
    dimensions: str | Sequence[str] = (),
) -> Joined:
    """Read vectors with their labels, from one file or from two, and join them.

    Columns used as labels, groups or ids are never dimensions, in whichever file they are named.

    Args:
        vectors: A file of vectors, as `read_vectors` reads it.
        labels: A file of labels; joined by id, or by a column that holds the ids (`path`, `file`, …). None takes
            those in the file of the vectors.
        key: The array, list column or dictionary entry to take.
        label_column: The column or array that holds the labels; several columns of 0 and 1, as names or a pattern
            (`wren,owl`, `sp_*`), hold one label each.
        label_separator: What stands between the labels of a row that has several.
        groups: The column or array that holds the groups, looked for in the file of the labels and then in the other
            one; "none", where no column is called so, leaves out those that the files hold.
        dimensions: Columns of a table that are the vectors, by name or pattern (`f*`).

    Returns:
        Vectors, labels, groups and ids in one order.

    >>> earmark.read_labelled("vectors.npy", "clips.csv", groups="tape").values.shape
    """
    asked: dict[str, Any] = {"key": key, "label_column": label_column, "dimensions": dimensions}
    if labels is None and label_column and set(label_column) & set(",*?[") and _holds_columns(vectors, label_column):
        labels = vectors  # columns of labels are read from the same file once more
    try:
        return join(*_read_both(vectors, labels, groups=groups, **asked), label_separator=label_separator)
    except (MissingColumn, NamelessColumns) as error:
        if groups != NO_GROUPS or getattr(error, "wanted", groups) != groups:
            raise
    loaded, found = _read_both(vectors, labels, groups=None, **asked)
    bare = None if found is None else _without_groups(found)
    return join(_without_groups(loaded), bare, label_separator=label_separator)


def _holds_columns(path: str | os.PathLike[str], asked: str) -> bool:
    """Whether several columns are meant, and not one whose name holds a comma or a star."""
    try:
        read_vectors(path, label_column=asked)
    except MissingColumn:
        return True
    except EarmarkError:
        pass
    return False


def _without_groups(held: _Held) -> _Held:
    roles = {role: name for role, name in held.roles.items() if role != "group"}
    return replace(held, groups=None, roles=roles)


def read_labels_and_groups(path: str | os.PathLike[str], *, column: str | None, groups: str | None) -> Labels:
    """Read labels; where `groups` is "none", and no column is called so, without groups."""
    try:
        return read_labels(path, column=column, groups=groups)
    except (MissingColumn, NamelessColumns) as error:
        if groups != NO_GROUPS or getattr(error, "wanted", groups) != groups:
            raise
    return _without_groups(read_labels(path, column=column))


def _read_both(
    vectors: str | os.PathLike[str], labels: str | os.PathLike[str] | None, *,
    key: str | None, label_column: str | None, groups: str | None, dimensions: str | Sequence[str],
) -> tuple[Vectors, Labels | None]:  # fmt: skip
    if labels is None:
        loaded = read_vectors(vectors, key=key, label_column=label_column, groups=groups, dimensions=dimensions)
        return loaded, None
    elsewhere = None
    try:
        found = read_labels(labels, column=label_column, groups=groups)
    except (MissingColumn, NamelessColumns) as error:
        if groups is None or getattr(error, "wanted", groups) != groups:
            raise
        found = replace(read_labels(labels, column=label_column), groups=None)
        elsewhere = error
    in_vectors = None if elsewhere is None else groups
    try:
        loaded = read_vectors(
            vectors, key=key, groups=in_vectors, dimensions=dimensions,
            apart=(*found.roles.values(), *_columns_named(labels, label_column)),
        )  # fmt: skip
    except (MissingColumn, NamelessColumns) as error:
        if in_vectors is None or getattr(error, "wanted", groups) != groups:
            raise
        raise (elsewhere if isinstance(elsewhere, MissingColumn) else error) from None
    return loaded, found


def _columns_named(labels: str | os.PathLike[str], asked: str | None) -> list[str]:
    """The columns of 0 and 1 that hold labels: no dimensions, in whichever file they lie."""
    source = locate(labels)
    if not asked or not set(asked) & set(",*?[") or source.suffix.lower() not in (".csv", ".parquet"):
        return []
    with readable(source):
        return label_columns(column_names(source), asked)


def join(vectors: Vectors, labels: Labels | None = None, *, label_separator: str = "") -> Joined:
    """Give every vector its label: by id when both sides have ids, by a column that holds them, else by position.

    By id, every vector needs a label row, and label rows without a vector are left out and noted. Without
    `labels` those inside the vectors file are taken. Groups come from the labels, else from the vectors.
    """
    if labels is None:
        if vectors.labels is None:
            there = f", or name one of its columns ({', '.join(vectors.left_out)})" if vectors.left_out else ""
            raise InputError(f"{vectors.source} holds no labels; give a file of labels{there}.")
        groups = None if vectors.groups is None else list(vectors.groups)
        _refuse_leaks(vectors, vectors.labels, groups)
        return Joined(
            vectors.values, list(vectors.labels), groups, vectors.ids, vectors.notes, vectors.columns, vectors.summary,
            separator=label_separator or vectors.separator,
        )  # fmt: skip
    labels = one_row_each(labels, label_separator) if label_separator else labels
    notes = [*vectors.notes, *labels.notes]
    if vectors.labels is not None and not _same_file(labels.source, vectors.source):
        notes.append(f"Labels come from {labels.source}; those in {vectors.source} are not used.")
    match = match_rows(
        vectors.ids, len(vectors.values), vectors.source, labels, "vector", beside=vectors.beside
    )  # fmt: skip
    chosen = [labels.values[row] for row in match.order]
    found: Sequence[str | None] | None = vectors.groups
    if labels.groups is not None:
        found = [labels.groups[row] for row in match.order]
    groups = None if found is None else list(found)
    _refuse_leaks(vectors, chosen, groups)
    where = "" if _same_file(labels.source, vectors.source) else labels.source
    summary = vectors.summary_with({"id": match.column, **labels.roles} if match.column else labels.roles, where)
    return Joined(
        vectors.values, chosen, groups, match.ids, (*notes, *match.notes), vectors.columns, summary, match.doubts,
        separator=label_separator or labels.separator, background=labels.background,
    )  # fmt: skip


def _refuse_leaks(vectors: Vectors, labels: Sequence[str | None], groups: Sequence[str | None] | None) -> None:
    """Refuse vectors of which one dimension is the label or the group under other names."""
    for place in vectors.doubtful:
        name = vectors.columns[place] if vectors.columns else str(place + 1)
        for texts, what in ((labels, "labels"), (groups or (), "groups")):
            pairs = {(number, text) for number, text in zip(vectors.values[:, place], texts, strict=False) if text}
            apart = len({number for number, _ in pairs}), len({text for _, text in pairs})
            if apart == (len(pairs), len(pairs)) and len(pairs) > 1:
                raise InputError(
                    f'{vectors.source}: column "{name}" numbers the {what}, and so is no dimension; take it out.'
                )


def _same_file(one: str, other: str) -> bool:
    return one == other or locate(one).absolute() == locate(other).absolute()
