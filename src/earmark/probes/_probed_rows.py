"""Vectors with labels, groups and folds, checked together for a probe; what was left out is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.evaluation.data import check_ids, check_vectors, digest_of, texts_of_rows
from earmark.vectors.doubtful_labels import alike_names
from earmark.vectors.texts import as_text
from earmark.wording import counted, first_of

LARGEST = 1e150
"""Vectors are scaled by their deviation, a root of squares."""


@dataclass(frozen=True)
class ProbedRows:
    """Checked input: rows that have labels and a fold, and what was left out."""

    vectors: NDArray[Any]
    targets: NDArray[Any]  # codes [n], or with several labels whether each is present [n, labels]
    names: NDArray[Any]  # of classes or labels, by code
    groups: NDArray[Any] | None
    given: NDArray[Any] | None
    kept: NDArray[np.int64]
    rows: int
    notes: tuple[str, ...]
    digest: str

    @property
    def several(self) -> bool:
        return self.targets.ndim == 2

    @property
    def points(self) -> NDArray[Any]:
        """The vectors of the kept rows."""
        return self.vectors if len(self.kept) == self.rows else self.vectors[self.kept]


def are_several(labels: Any) -> bool:
    """Whether rows have lists of labels."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        return False
    return any(isinstance(entry, list | tuple | set | frozenset) for entry in labels)


def check_rows(vectors: Any, labels: Any, groups: Any, given: Any) -> ProbedRows:
    values = check_vectors(vectors)
    if max(float(values.max()), -float(values.min())) > LARGEST:
        raise InputError(f"The vectors hold numbers above {LARGEST:g}, whose squares have no value: divide them all.")
    n = len(values)
    several = are_several(labels)
    listed = labels if several else texts_of_rows(labels, n, "labels") or ()
    sets = [_label_set(entry) for entry in listed]
    if len(sets) != n:
        raise InputError(f"There are {n} vectors and {len(sets)} labels: they must pair up one to one.")
    columns = {"group": texts_of_rows(groups, n, "groups"), "fold": texts_of_rows(given, n, "folds")}
    usable = np.array([entry is not None for entry in sets])
    if not usable.any():
        raise InputError("No row has a label: nothing to probe.")
    notes = [] if usable.all() else [f"{counted(n - int(usable.sum()), 'unlabelled row')} dropped"]
    for what, texts in columns.items():
        without = usable & np.array([not text for text in texts]) if texts else np.zeros(n, bool)
        if without.any():
            notes.append(f"{counted(int(without.sum()), 'row')} without a {what} dropped")
        usable &= ~without
        if not usable.any():
            raise InputError(f"No labelled row has a {what}: nothing to probe.")
    kept = np.flatnonzero(usable)
    if columns["group"] is not None:
        notes += alike_names((text for text in np.array(columns["group"], object)[kept] if text), "group")
    names = np.array(sorted({name for row in kept for name in sets[row] or ()}), dtype=str)
    if len(names) < (1 if several else 2):
        raise InputError(
            "No row has any label: nothing to probe."
            if not len(names)
            else f'All rows have the same label ("{names[0]}"): a probe needs at least two classes.'
        )
    code_of = {name: code for code, name in enumerate(names.tolist())}
    if several:
        targets: NDArray[Any] = np.zeros((len(kept), len(names)), bool)
        for place, row in enumerate(kept):
            targets[place, [code_of[name] for name in sets[row] or ()]] = True
    else:
        targets = np.array([code_of[next(iter(sets[row] or ()))] for row in kept], np.int64)
    other = {what: None if texts is None else np.array(texts)[kept].astype(str) for what, texts in columns.items()}
    text = "\x1f".join("\x1e".join(sorted(entry or ())) for entry in sets)
    used = [text, *("\x1f".join(map(str, texts)) for texts in columns.values() if texts is not None)]
    digest = digest_of(values, *(np.frombuffer(part.encode("utf-8", "surrogatepass"), np.uint8) for part in used))
    return ProbedRows(values, targets, names, other["group"], other["fold"], kept, n, tuple(notes), digest)


def check_names(ids: Sequence[str] | None, data: ProbedRows) -> tuple[str, ...] | None:
    """Ids of all rows; a clip that is there twice is refused, since one copy would be learnt and the other tested."""
    names = check_ids(ids, data.rows)
    times = Counter(name for row in data.kept if names is not None and (name := names[row]))
    if twice := [name for name, count in times.items() if count > 1]:
        there = f"{counted(len(twice), 'id')} ({first_of(twice, 3)}) {'stands' if len(twice) == 1 else 'stand'}"
        raise InputError(f"{there} for more than one row: give each clip once, or clips of their own ids.")
    return names


def _label_set(entry: Any) -> set[str] | None:
    if isinstance(entry, list | tuple | set | frozenset):
        return {text for item in entry if (text := as_text(item))}
    text = as_text(entry)
    return {text} if text else None
