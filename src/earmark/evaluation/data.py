"""What to evaluate: vectors, labels and groups, checked together; what was left out is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.evaluation._label_sets import Classes, classes_of_sets, label_sets, names_of, one_each, unused
from earmark.evaluation.options import Options
from earmark.geometry.layout import Layout, lay_out, one_class
from earmark.vectors import Distances
from earmark.vectors.class_samples import draw_sample, parse_sample, told
from earmark.vectors.columns import is_index_name, role_of, telling
from earmark.vectors.doubtful_labels import alike_names, several_in_one, words_for_nothing
from earmark.vectors.texts import as_array, column_texts, composed
from earmark.wording import counted

Array = NDArray[Any]


@dataclass(frozen=True)
class Data:
    """Checked input: vectors as given (none where distances were), the layout of the kept rows, what was left out."""

    vectors: Array
    layout: Layout
    kept: NDArray[np.int64]  # the given row of each kept row; layout.order counts kept rows
    rows: int
    ids: tuple[str, ...] | None
    notes: tuple[str, ...]
    digest: str
    classes: tuple[str, ...] = ()  # by code
    distances: Distances | None = None

    @property
    def order(self) -> NDArray[np.int64]:
        """The given row of each place."""
        return self.kept[self.layout.order]


def check_vectors(vectors: Any, name: str = "The vectors") -> Array:
    """A finite 2-D float array, or an error that says which rows are not. A masked entry counts as NaN."""
    _refuse_telling_columns(vectors, name)
    try:
        values = np.ma.asarray(vectors) if np.ma.isMaskedArray(vectors) else np.asarray(as_array(vectors))
    except (ValueError, TypeError, RuntimeError):  # rows of unequal length, a sparse tensor, ...
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
    if isinstance(values, np.ma.MaskedArray):
        values = values.filled(np.nan)
    # One pass: the sum of a row is finite unless an entry is not (or the sum overflows, settled below).
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(values.sum(axis=1)))
    bad = suspects[[not np.isfinite(values[row]).all() for row in suspects]] if len(suspects) else suspects
    if len(bad):
        listed = ", ".join(str(row) for row in bad[:5]) + (", ..." if len(bad) > 5 else "")
        what = "masked entries, NaN or infinity" if np.ma.isMaskedArray(vectors) else "NaN or infinity"
        raise InputError(
            f"{name} hold {what} in {len(bad)} of {len(values)} rows (first: {listed}; counted from 0): "
            "remove or repair those rows."
        )
    return np.ascontiguousarray(values)


def _refuse_telling_columns(vectors: Any, name: str) -> None:
    """A data frame says what its columns are: those that are labels, ids or an index are no dimensions."""
    columns = [str(column) for column in getattr(vectors, "columns", ())]
    wrong = [column for column in columns if role_of(column) or is_index_name(column) or telling(column)]
    if wrong:
        raise InputError(
            f"{name} are a data frame with the column {wrong[0]!r}, which is no dimension: name the columns, as in "
            f"labels={wrong[0]!r}, or give the frame without it."
        )


def check(vectors: Any, labels: Any, groups: Any, options: Options, ids: Sequence[str] | None) -> Data:
    """Check vectors, labels and groups together; drop and count unlabelled rows and small classes."""
    values, given = _values(vectors)
    n = len(values)
    things = "vectors" if given is None else "items"
    rows = label_sets(labels, options)
    texts = labels if rows is None else names_of(rows, options)
    names = np.array([text or "" for text in _texts(texts, n, "Labels", "labels", things)], dtype=str)
    if options.across_groups and groups is None:
        raise UsageError("across_groups needs groups: give the group (speaker, bird, recording) of each row.")
    numbered = None if groups is None else group_codes(groups, n)
    notes = given_notes(given)
    usable = names != ""
    if not usable.any():
        raise InputError("No row has a label: nothing to evaluate.")
    if not usable.all():
        notes.append(f"{counted(n - int(usable.sum()), 'unlabelled row')} dropped")
    if groups is not None:
        usable, remarks = _with_groups(groups, n, usable, options.across_groups)
        notes += remarks
    notes += [*_doubtful_words(names[usable], "label"), *(() if rows is None else unused(rows, options))]
    held = names[usable].tolist() if rows is None else [label for row in rows for label in row or ()]
    notes += _doubtful_labels(held, rows is not None, options)
    named = _names(ids, n, given)
    if options.sample:
        usable, remark = _drawn(names, usable, named, options)
        notes.append(remark)
    if rows is None or one_each(rows):
        made = _classes(names, usable, options)
    else:
        made = classes_of_sets(rows, usable, options)
    kept, notes = made.kept, notes + made.notes
    kept_groups = None
    if numbered is not None:
        kept_groups = np.unique(numbered[kept], return_inverse=True)[1]
    layout = lay_out(made.codes, kept_groups, made.sets)
    digest = digest_of(
        values if given is None else np.frombuffer(given.digest().encode(), np.uint8),
        np.frombuffer("\x1f".join(names.tolist()).encode("utf-8", "surrogatepass"), np.uint8),
        numbered,
    )
    return Data(values, layout, kept, n, named, tuple(notes), digest, made.names, given)


def _classes(names: NDArray[Any], usable: NDArray[np.bool_], options: Options) -> Classes:
    """One label each: classes that are large enough."""
    labelled = np.flatnonzero(usable)
    class_names, codes, sizes = np.unique(names[labelled], return_inverse=True, return_counts=True)
    small = sizes < options.min_class_size
    notes = []
    if small.any():
        dropped = int(sizes[small].sum())
        where = counted(int(small.sum()), "class")
        notes.append(f"{counted(dropped, 'row')} in {where} of fewer than {options.min_class_size} dropped")
    kept = labelled[~small[codes]]
    if len(class_names) == 1:
        raise InputError(
            f"All rows have the same label ({str(class_names[0])!r}): a comparison needs at least two classes."
        )
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
    return Classes(kept, codes, tuple(str(name) for name in class_names[~small]), notes)


def _drawn(
    names: NDArray[Any], usable: NDArray[np.bool_], ids: tuple[str, ...] | None, options: Options
) -> tuple[NDArray[np.bool_], str]:
    """The usable rows that a sample of classes and clips holds, and what is to be said of it."""
    labels = np.where(usable, names, "").tolist()
    draw = draw_sample(labels, ids, parse_sample(options.sample), options.seed)
    told({"the rows": draw})
    drawn = np.zeros(len(names), dtype=bool)
    drawn[list(draw.rows)] = True
    return drawn, draw.text


def _values(vectors: Any) -> tuple[Array, Distances | None]:
    """Checked vectors; of distances that were given, vectors without dimensions and the distances."""
    if isinstance(vectors, Distances):
        return np.zeros((vectors.n, 0)), vectors
    return check_vectors(vectors), None


def given_notes(given: Distances | None) -> list[str]:
    """What every row says of the distances that were given."""
    if given is None or given.symmetrise is None:
        return []
    return [f"the {given.symmetrise} of both directions of a pair"]


def _names(ids: Sequence[str] | None, n: int, given: Distances | None) -> tuple[str, ...] | None:
    return check_ids(given.ids if ids is None and given is not None else ids, n)


def _with_groups(groups: Any, n: int, usable: NDArray[np.bool_], across: bool) -> tuple[NDArray[np.bool_], list[str]]:
    """The rows that stay, and what is to be said of those without a group.

    Nobody knows whether such a clip shares its speaker with another. Across groups it can be neither query nor
    candidate; elsewhere it is a group of its own, never of one group with the others.
    """
    texts = _texts(groups, n, "Groups", "groups")
    without = np.array([text is None for text in texts], dtype=bool) & usable
    known = [text for text, stays in zip(texts, usable, strict=True) if text and stays]
    remarks = _doubtful_words(np.array(known, dtype=str), "group") + alike_names(known, "group")
    if not without.any():
        return usable, remarks
    rows = counted(int(without.sum()), "row")
    if not across:
        return usable, [f"{rows} without a group counted as groups of their own", *remarks]
    if not (usable & ~without).any():
        raise InputError("No labelled row has a group: across groups there is nothing to evaluate.")
    return usable & ~without, [f"{rows} without a group dropped, since across groups cannot be known", *remarks]


def _doubtful_words(names: NDArray[Any], what: str) -> list[str]:
    """A remark where a missing value was probably turned into the word `nan` on the way here."""
    count = int(np.isin(names, ("nan", "None")).sum())
    if not count:
        return []
    return [f"{counted(count, 'row')} with the word nan or None for a {what}: give None where that means missing"]


def _doubtful_labels(labels: Sequence[str], sets: bool, options: Options) -> list[str]:
    """Remarks on labels that are probably meant otherwise; `sets` says that clips have several."""
    several = [] if sets or options.label_separator else several_in_one(set(labels))
    return alike_names(labels, "label") + several + ([] if options.background else words_for_nothing(labels))


def kept_for_reading(given: Any) -> Any:
    """A list in place of an iterator, which could be read only once; anything else as it is."""
    return list(given) if isinstance(given, Iterator) else given


def _texts(given: Any, n: int, what: str, counted_as: str, things: str = "vectors") -> list[str | None]:
    """One text for each row, None where it is missing."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{what} must be a sequence with one entry per row, not {given!r}.")
    if isinstance(given, Mapping | Set):
        kind = type(given).__name__
        raise InputError(f"{what} are a {kind}, whose entries have no rows: give a list with one entry per row.")
    dimensions = getattr(given, "ndim", 1)
    if dimensions != 1:
        raise InputError(f"{what} have {dimensions} dimensions: give one {counted_as.removesuffix('s')} per row.")
    texts = column_texts(given)
    if len(texts) != n:
        raise InputError(f"There are {n} {things} and {len(texts)} {counted_as}: they must pair up one to one.")
    return texts


def texts_of_rows(given: Any, n: int, what: str) -> list[str | None] | None:
    """One text for each row where something is given: labels, groups or folds, as `what` calls them."""
    return None if given is None else _texts(kept_for_reading(given), n, what.capitalize(), what)


def group_codes(groups: Any, n: int) -> NDArray[np.int64]:
    """Group numbers; a row without a group is a group of its own."""
    texts = _texts(groups, n, "Groups", "groups")
    unique = np.array([f"\x00alone {row}" if text is None else text for row, text in enumerate(texts)])
    return np.asarray(np.unique(unique, return_inverse=True)[1], np.int64)


def check_ids(ids: Sequence[str] | None, n: int, which: str = "") -> tuple[str, ...] | None:
    """Names of n rows, as text."""
    if ids is None:
        return None
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InputError(f"Ids must be a sequence with one entry per row, not {ids!r}.")
    names = tuple(composed(str(name)) for name in ids)
    if len(names) != n:
        raise InputError(f"There are {n} {which}vectors and {len(names)} ids: they must pair up one to one.")
    return names


def digest_of(*arrays: Array | None) -> str:
    """A hash of types, shapes and values."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data.cast("B"))
    return digest.hexdigest()


def unlabelled(vectors: Any, ids: Sequence[str] | None) -> Data:
    """Checked vectors without labels."""
    values, given = _values(vectors)
    n = len(values)
    digest = digest_of(values if given is None else np.frombuffer(given.digest().encode(), np.uint8))
    notes = tuple(given_notes(given))
    return Data(values, one_class(n), np.arange(n), n, _names(ids, n, given), notes, digest, distances=given)
