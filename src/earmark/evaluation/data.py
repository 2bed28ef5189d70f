"""What to evaluate: vectors, labels and groups, checked together; what was left out is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.evaluation.options import Options
from earmark.geometry.layout import Layout, lay_out, one_class
from earmark.wording import counted

Array = NDArray[Any]


@dataclass(frozen=True)
class Data:
    """Checked input: vectors as given, the layout of the kept rows, and what was left out."""

    vectors: Array
    layout: Layout
    kept: NDArray[np.int64]  # the given row of each kept row; layout.order counts kept rows
    rows: int
    ids: tuple[str, ...] | None
    notes: tuple[str, ...]
    digest: str

    @property
    def order(self) -> NDArray[np.int64]:
        """The given row of each place."""
        return self.kept[self.layout.order]


def check_vectors(vectors: Any, name: str = "The vectors") -> Array:
    """A finite 2-D float array, or an error that says which rows are not."""
    try:
        values = np.asarray(vectors)
    except ValueError:
        raise InputError(f"{name} are not a table: every row must have the same number of values.") from None
    if values.dtype == object or values.dtype.kind in "USVOM":
        raise InputError(f"{name} are of type {values.dtype}, not numbers: give a numeric array [clips, dimensions].")
    if values.dtype.kind == "c":
        raise InputError(f"{name} are complex: give real numbers, such as magnitudes.")
    if values.ndim != 2:
        raise InputError(
            f"{name} have {values.ndim} dimension(s), not 2: pool frames first, so that each clip is one row."
        )
    if 0 in values.shape:
        raise InputError(f"{name} are empty (shape {values.shape[0]} x {values.shape[1]}).")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    # One pass: the sum of a row is finite unless an entry is not (or the sum overflows, settled below).
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(values.sum(axis=1)))
    bad = suspects[[not np.isfinite(values[row]).all() for row in suspects]] if len(suspects) else suspects
    if len(bad):
        listed = ", ".join(str(row) for row in bad[:5]) + (", ..." if len(bad) > 5 else "")
        raise InputError(
            f"{name} hold NaN or infinity in {len(bad)} of {len(values)} rows (first: {listed}; counted from 0): "
            "remove or repair those rows."
        )
    return np.ascontiguousarray(values)


def check(vectors: Any, labels: Any, groups: Any, options: Options, ids: Sequence[str] | None) -> Data:
    """Check vectors, labels and groups together; drop and count unlabelled rows and small classes."""
    values = check_vectors(vectors)
    n = len(values)
    names = _label_names(labels, n)
    if options.across_groups and groups is None:
        raise UsageError("across_groups needs groups: give the group (speaker, bird, recording) of each row.")
    numbered = None if groups is None else group_codes(groups, n)
    notes = []
    labelled = np.flatnonzero(names != "")
    if len(labelled) < n:
        notes.append(f"{counted(n - len(labelled), 'unlabelled row')} dropped")
    if not len(labelled):
        raise InputError("No row has a label: nothing to evaluate.")
    found, codes, sizes = np.unique(names[labelled], return_inverse=True, return_counts=True)
    small = sizes < options.min_class_size
    if small.any():
        dropped = int(sizes[small].sum())
        where = counted(int(small.sum()), "class")
        notes.append(f"{counted(dropped, 'row')} in {where} of fewer than {options.min_class_size} dropped")
    kept = labelled[~small[codes]]
    if len(found) == 1:
        raise InputError(f"All rows have the same label ({str(found[0])!r}): a comparison needs at least two classes.")
    if int((~small & (sizes > 1)).sum()) < 1:
        raise InputError(
            f"Every class has fewer than {max(2, options.min_class_size)} clips: there are no same-class pairs to find."
        )
    if int((~small).sum()) < 2:
        raise InputError(
            f"Only one class has at least {options.min_class_size} clips: a comparison needs two, "
            "so lower min_class_size or add clips."
        )
    codes = np.unique(codes[~small[codes]], return_inverse=True)[1]
    kept_groups = None
    if numbered is not None:
        kept_groups = np.unique(numbered[kept], return_inverse=True)[1]
    layout = lay_out(codes, kept_groups)
    digest = _hash(
        values, np.frombuffer("\x1f".join(names.tolist()).encode("utf-8", "surrogatepass"), np.uint8), numbered
    )
    return Data(values, layout, kept, n, _ids(ids, n), tuple(notes), digest)


def _label_names(labels: Any, n: int) -> NDArray[Any]:
    """Labels as text, "" where there is none."""
    array = labels if isinstance(labels, np.ndarray) else _object_array(labels, "Labels")
    if array.ndim != 1:
        raise InputError(f"Labels have {array.ndim} dimensions: give one label per row.")
    if len(array) != n:
        raise InputError(f"There are {n} vectors and {len(array)} labels: they must pair up one to one.")
    if array.dtype.kind in "iub":
        return array.astype(str)
    return np.array([_label_text(label) for label in array], dtype=str)


def _object_array(given: Any, what: str) -> NDArray[Any]:
    """A 1-D array of whatever the sequence holds, also when its items are sequences themselves."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{what} must be a sequence with one entry per row, not {given!r}.")
    items = list(given)
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _label_text(label: Any) -> str:
    if label is None or (isinstance(label, float | np.floating) and np.isnan(label)):
        return ""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label).strip()


def group_codes(groups: Any, n: int) -> NDArray[np.int64]:
    """Group numbers; a row without a group is a group of its own."""
    names = _object_array(groups, "Groups")
    if len(names) != n:
        raise InputError(f"There are {n} vectors and {len(names)} groups: they must pair up one to one.")
    texts = [_label_text(name) for name in names]
    unique = np.array([text if text else f"\x00alone {row}" for row, text in enumerate(texts)])
    return np.asarray(np.unique(unique, return_inverse=True)[1], np.int64)


def _ids(ids: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    if ids is None:
        return None
    ids = list(_object_array(ids, "Ids"))
    if len(ids) != n:
        raise InputError(f"There are {n} vectors and {len(ids)} ids: they must pair up one to one.")
    return tuple(str(name) for name in ids)


def _hash(*arrays: Array | None) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data.cast("B"))
    return digest.hexdigest()


def unlabelled(vectors: Any, ids: Sequence[str] | None) -> Data:
    """Checked vectors without labels."""
    values = check_vectors(vectors)
    n = len(values)
    return Data(values, one_class(n), np.arange(n), n, _ids(ids, n), (), _hash(values))
