"""Clips with several labels or none: label sets from what was given, and the classes that they make.

Labels come as texts with a separator, as collections (a list, a set), or as a table of 0 and 1 with a column for each
label. Nothing given (None, an empty text) is unlabelled and left out. An empty collection, a row of zeros and the label
called background say that a clip holds none of the classes: it is a candidate like any other, and never a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.evaluation.options import Options
from earmark.geometry.label_sets import LabelSets, sets_of
from earmark.metrics import catalogue
from earmark.scores import METRICS
from earmark.vectors.several_labels import SEPARATORS, split_labels
from earmark.vectors.texts import as_array, as_text, column_texts
from earmark.wording import counted, first_of

Held = tuple[str, ...]
BACKGROUND = "(background)"


class Classes(NamedTuple):
    """The rows that stay, the class of each, the names of the classes, and their label sets where they are such."""

    kept: NDArray[np.int64]
    codes: NDArray[np.int64]
    names: tuple[str, ...]
    notes: list[str]
    sets: LabelSets | None = None


def label_sets(labels: Any, options: Options) -> list[Held | None] | None:
    """The labels of each row, None for an unlabelled one; None where a row cannot have several, or none."""
    rows = _rows(labels, options)
    if rows is None:
        return None
    if options.background:
        for number, held in enumerate(rows):
            if held is not None and options.background in held and len(held) > 1:
                others = first_of([label for label in held if label != options.background], 3)
                raise InputError(
                    f"Row {number} is background ({options.background!r}) and {others} at once: give it one of them."
                )
        rows = [() if held == (options.background,) else held for held in rows]
    return rows


def one_each(rows: Sequence[Held | None]) -> bool:
    """Whether every labelled row has exactly one label, so that labels are classes."""
    return all(held is None or len(held) == 1 for held in rows)


def label_texts(labels: Any, options: Options) -> list[str | None]:
    """One text for each row's labels; the same labels have the same text, in whichever order they were given."""
    rows = label_sets(labels, options)
    return column_texts(labels) if rows is None else names_of(rows, options)


def unused(rows: Sequence[Held | None], options: Options) -> Iterable[str]:
    """What was said of the labels and is true of none: probably a slip."""
    if options.label_separator and not any(held is not None and len(held) > 1 for held in rows):
        yield f"no row has several labels with {options.label_separator!r} between them"
    if options.background and () not in rows:
        labels = sorted({label for held in rows for label in held or ()})
        near = [label for label in labels if label.casefold() == options.background.casefold()]
        hint = f" (there is {near[0]!r})" if near else ""
        yield f"no row has the label {options.background!r} of background{hint}"


def _rows(labels: Any, options: Options) -> list[Held | None] | None:
    labels = as_array(labels)
    if getattr(labels, "ndim", 1) == 2:
        return _of_table(labels)
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        return None
    entries: list[Any] = list(labels)
    if any(_is_collection(entry) for entry in entries):
        return [_of_collection(entry, options) for entry in entries]
    if not options.label_separator and not options.background:
        return None
    texts = column_texts(labels)
    return [
        None if text is None else tuple(split_labels(text, options.label_separator)) or None for text in texts
    ]  # fmt: skip


def _is_collection(entry: Any) -> bool:
    return isinstance(entry, Set | list | tuple) or (isinstance(entry, np.ndarray) and entry.ndim == 1)


def _of_collection(entry: Any, options: Options) -> Held | None:
    if not _is_collection(entry):
        text = as_text(entry)
        return None if text is None else tuple(split_labels(text, options.label_separator)) or None
    texts = {as_text(item) for item in entry}
    held = tuple(sorted(text for text in texts if text is not None))
    return None if texts and not held else held  # [None] says that nobody looked


def _of_table(table: Any) -> list[Held | None]:
    """A column for each label, named by its heading or its number; every cell 0 or 1, or a row of nothing (NaN)."""
    names = [str(name) for name in getattr(table, "columns", range(table.shape[1]))]
    values = np.asarray(table.to_numpy() if hasattr(table, "to_numpy") else table)
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "Labels have 2 dimensions: give one label per row, or a table of 0 and 1 with a column for each label."
        ) from None
    missing = np.asarray(np.isnan(numbers).all(axis=1))
    odd = ~np.isin(numbers, (0.0, 1.0)) & ~missing[:, None]
    if odd.any():
        row, place = np.argwhere(odd)[0]
        raise InputError(
            f"Labels have 2 dimensions and are no table of 0 and 1: row {row} has {values[row, place]} under "
            f"{names[place]!r}; give one label per row, or 0 and 1 with a column for each label."
        )
    return [
        None if gone else tuple(sorted(names[place] for place in np.flatnonzero(row)))
        for row, gone in zip(numbers == 1.0, missing, strict=True)
    ]


def names_of(rows: Sequence[Held | None], options: Options) -> list[str | None]:
    """One text for each row's labels."""
    sign = options.label_separator or SEPARATORS[0]
    return [None if held is None else sign.join(held) or options.background or BACKGROUND for held in rows]


def classes_of_sets(rows: Sequence[Held | None], usable: NDArray[np.bool_], options: Options) -> Classes:
    """Label sets as classes; a label that too few rows have is taken out, and rows that are left without any."""
    for name, why in (("sample", "draws clips of classes"), ("queries", "draws clips by class")):
        if getattr(options, name):
            raise UsageError(f"{name} {why}, and here clips have several labels or none: leave it out.")
    given = [held for held, stays in zip(rows, usable, strict=True) if stays and held is not None]
    counts = Counter(label for held in given for label in held)
    small = {label for label, count in counts.items() if count < options.min_class_size}
    large = [label for label in counts if label not in small]
    if not large or max(counts.values()) < 2:
        least = max(2, options.min_class_size)
        raise InputError(f"Every label is of fewer than {least} clips: there are no pairs that share one.")
    kept = [
        row for row in np.flatnonzero(usable).tolist() if not rows[row] or not small.issuperset(rows[row] or ())
    ]  # fmt: skip
    left = [tuple(label for label in rows[row] or () if label not in small) for row in kept]
    notes = list(_notes(left, small, len(given), options))
    sets, codes, labels = sets_of(left)
    if len(sets.sizes) < 2:
        raise InputError(f"All rows have the same labels ({', '.join(left[0])}): a comparison needs two that differ.")
    sign = options.label_separator or SEPARATORS[0]
    names = tuple(
        sign.join(labels[label] for label in sets.members[start:stop]) or options.background or BACKGROUND
        for start, stop in zip(sets.starts[:-1], sets.starts[1:], strict=True)
    )
    return Classes(np.array(kept, np.int64), codes, names, notes, sets)


def _notes(left: Sequence[Held], small: set[str], given: int, options: Options) -> Iterable[str]:
    if small:
        lost = f", {counted(given - len(left), 'row')} with no other dropped" if given > len(left) else ""
        yield f"{counted(len(small), 'label')} of fewer than {options.min_class_size} rows taken out{lost}"
    several, none = sum(len(held) > 1 for held in left), sum(not held for held in left)
    if several:
        yield f"{counted(several, 'row')} with several labels: a neighbour is right that shares one"
    if none:
        yield f"{counted(none, 'row')} of background: candidates, no queries"
    shared = set(left[0]).intersection(*map(set, left[1:])) if left else set()
    if shared:
        yield f"all rows have the label {min(shared)}: P@k is 1 whatever the vectors"


def not_of_sets(names: Iterable[str]) -> dict[str, str]:
    """Which of the metrics mean nothing where clips have several labels or none, and why."""
    reasons: dict[str, str] = {}
    for name in names:
        if name in catalogue.SEPARATION:
            reasons[name] = (
                "it compares a clip's own class with the others, and clips with several labels or none have no class "
                "of their own: keep clips of one label each to measure it"
            )
        elif name in catalogue.CLUSTERED:
            reasons[name] = "a cluster is compared with one class for each clip, and clips have several labels or none"
        elif catalogue.is_own(name) and not {"neighbours", "neighbour_distances", "vectors", "groups", "occurrences",
                                             "k"}.issuperset(METRICS[name].needs):  # fmt: skip
            reasons[name] = "it takes one class for each clip, and clips have several labels or none"
    return reasons
