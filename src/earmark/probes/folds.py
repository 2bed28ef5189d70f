"""Which clips a probe learns from and which it is tested on: stratified, grouped, group-stratified and given folds.

    kind              scikit-learn's splitter, with shuffle=True and random_state=seed     what it keeps
    stratified        StratifiedKFold                                                      shares of labels
    grouped           GroupKFold                                                           groups whole
    group-stratified  StratifiedGroupKFold                                                 both, as far as it can be
    given             none: each value of a column is a test part; or train, valid, test   what its makers meant

A group (mouse, speaker, recording) that is trained on and tested on lets a classifier recognise the group in place of
the label. `refuse_leaks` looks at the folds themselves, so a column of folds that leaks is refused like any other.
A clip that is there twice gives its own label away; `copy_remark` counts vectors that are trained on and tested on.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.wording import counted, first_of

Indices = NDArray[np.int64]

KINDS = ("stratified", "grouped", "group-stratified", "given")
WHOLE_GROUPS = ("grouped", "group-stratified")
MOST_NAMED = 3
_RARE = "The least populated class"  # scikit-learn warns of what `fold_remarks` counts

_PARTS = {
    "train": "train", "training": "train",
    "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
    "test": "test", "testing": "test", "eval": "test", "evaluation": "test",
}  # fmt: skip


class Fold(NamedTuple):
    """Rows to learn from, to choose settings on (there may be none) and to test on."""

    name: str
    train: Indices
    valid: Indices
    test: Indices


def default_kind(*, groups: bool, given: bool) -> str:
    """The kind of folds where none was asked for: a given column, whole groups where there are some, else by label."""
    return "given" if given else "group-stratified" if groups else "stratified"


def make_folds(
    labels: Sequence[Any] | NDArray[Any],
    *,
    kind: str,
    count: int = 5,
    groups: Sequence[Any] | NDArray[Any] | None = None,
    given: Sequence[Any] | NDArray[Any] | None = None,
    seed: int = 0,
) -> tuple[Fold, ...]:
    """Share rows out among folds; the same arguments give the same folds.

    Args:
        labels: One for each row; for grouped and given folds it may be a table of several for each.
        kind: One of `KINDS`.
        count: How many folds; a given column has its own number.
        groups: The group of each row; grouped kinds need it.
        given: The fold of each row, or train, valid and test.
        seed: Seed of the shuffles.
    """
    rows = len(labels)
    if kind not in KINDS:
        raise UsageError(f'Unknown kind of folds "{kind}": choose {", ".join(KINDS)}.{did_you_mean(kind, KINDS)}')
    if given is not None and kind != "given":
        raise UsageError(f"Folds are given, and {kind} ones are to be made: leave out the given folds or the kind.")
    if kind == "given":
        if given is None:
            raise UsageError("Given folds need the fold of each row: name the column that holds it.")
        return _given_folds(_texts(given, rows, "fold"))
    if count < 2:
        raise UsageError(f"{counted(count, 'fold')}: at least 2 are needed, one to test on and one to learn from.")
    if kind == "stratified":
        return _stratified(_texts(labels, rows, "label"), count, seed)
    if groups is None:
        raise UsageError(f"{kind} folds need groups: name the column of the mouse, speaker or recording.")
    names = _texts(groups, rows, "group")
    single = kind == "group-stratified" or np.asarray(labels).ndim == 1
    texts = _texts(labels, rows, "label") if single else None
    if texts is not None:
        _refuse_lone_groups(texts, names)
    units = len(np.unique(names))
    if units < count:
        raise InputError(f"{counted(units, 'group')} cannot fill {count} folds: ask for {max(units, 2)} or fewer.")
    return _grouped(texts if kind == "group-stratified" else None, names, count, seed)


def refuse_leaks(folds: Sequence[Fold], groups: Sequence[Any] | NDArray[Any] | None, allow: bool = False) -> str:
    """Refuse folds that test on a group they were trained on; where that is allowed, say so in a remark.

    Returns the remark, empty where no group is in two parts.
    """
    if groups is None:
        return ""
    names = np.asarray(groups).astype(str)
    shared: dict[str, None] = {}
    for fold in folds:
        learnt = np.unique(names[np.concatenate([fold.train, fold.valid])])
        shared |= dict.fromkeys(np.intersect1d(learnt, names[fold.test]).tolist())
    if not shared:
        return ""
    there = f"{len(shared)} of {counted(len(np.unique(names)), 'group')} ({first_of(list(shared), MOST_NAMED)})"
    has = "is" if len(shared) == 1 else "are"
    if allow:
        return f"leaks: {there} {has} trained on and tested on"
    raise InputError(
        f"{there} {has} trained on and tested on in the same fold: take folds of whole groups (--kind "
        "group-stratified or grouped), or allow leaks (--allow-leaks) if classes of known groups are what you want to "
        "measure, or leave the groups out (--groups none)."
    )


def copy_remark(folds: Sequence[Fold], vectors: NDArray[Any]) -> str:
    """How many tested clips have exactly the vector of a clip that their fold learns from; empty where none has.

    Equal vectors are copies of a sound, or features too coarse to tell sounds apart, so they are no error. A vector of
    one value throughout, as silence has, is no sign of a copy and not counted.
    """
    codes: dict[bytes, int] = {}
    of = np.array([codes.setdefault(hashlib.sha256(row + 0.0).digest(), len(codes)) for row in vectors])  # -0 is 0
    if len(codes) == len(of):
        return ""
    telling = vectors.min(axis=1) < vectors.max(axis=1)
    copied = 0
    for fold in folds:
        learnt = np.concatenate([fold.train, fold.valid])
        copied += int((np.isin(of[fold.test], of[learnt]) & telling[fold.test]).sum())
    if not copied:
        return ""
    tested = counted(sum(len(fold.test) for fold in folds), "tested clip")
    return f"leaks: {copied} of {tested} {'has' if copied == 1 else 'have'} the vector of a clip that was learnt from"


def spell_folds(kind: str, folds: Sequence[Fold]) -> str:
    """The folds as the column `protocol` has them: `grouped:5`, `given:5`, `train/valid/test`."""
    if kind == "given" and len(folds) == 1:
        return "train/valid/test" if len(folds[0].valid) else "train/test"
    return f"{kind}:{len(folds)}"


def fold_remarks(
    folds: Sequence[Fold], labels: Sequence[Any] | NDArray[Any], groups: Sequence[Any] | NDArray[Any] | None = None
) -> list[str]:
    """What a reader of a score should know of its folds: rare classes, groups of one label, classes not trained on."""
    texts = np.asarray(labels).astype(str)
    classes, codes = np.unique(texts, return_inverse=True)
    unit, of = ("clip", np.arange(len(texts))) if groups is None else ("group", _codes(groups))
    sizes = _units_of_classes(codes, of)
    remarks = []
    if len(folds) > 1 and (rare := np.flatnonzero(sizes < len(folds))).size:
        named = first_of([f"{classes[code]} {sizes[code]}" for code in rare], MOST_NAMED)
        verb = "has" if len(rare) == 1 else "have"
        remarks.append(f"{counted(len(rare), 'class')} {verb} fewer {unit}s than there are folds ({named})")
    if groups is not None and sizes.sum() == of.max() + 1 < len(texts):
        least = int(sizes.argmin())
        remarks.append(
            f"every group has one label: {counted(int(sizes.sum()), 'group')} carry the labels, "
            f"{sizes[least]} of them {classes[least]}"
        )
    unseen = sum(int((~np.isin(codes[fold.test], codes[fold.train])).sum()) for fold in folds)
    if unseen:
        verb = "is" if unseen == 1 else "are"
        remarks.append(f"{counted(unseen, 'clip')} {verb} of a class that the fold did not learn, and count as wrong")
    return remarks


def _stratified(labels: NDArray[Any], count: int, seed: int) -> tuple[Fold, ...]:
    from sklearn.model_selection import StratifiedKFold

    _refuse_lone_clips(labels)
    if len(labels) < count:
        raise InputError(f"{counted(len(labels), 'clip')} cannot fill {count} folds: ask for fewer.")
    most = int(np.unique(labels, return_counts=True)[1].max())
    if most < count:
        raise InputError(
            f"No class has more than {counted(most, 'clip')}, too few to fill {count} folds: ask for {most}."
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_RARE)
        parts = list(StratifiedKFold(count, shuffle=True, random_state=seed).split(np.zeros(len(labels)), labels))
    return _numbered(parts)


def _grouped(labels: NDArray[Any] | None, groups: NDArray[Any], count: int, seed: int) -> tuple[Fold, ...]:
    """Folds of whole groups, with like shares of labels where there are labels."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    maker: Any = GroupKFold if labels is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_RARE)
        try:
            cutter = maker(count, shuffle=True, random_state=seed)
            parts = list(cutter.split(np.zeros(len(groups)), labels, groups))
        except ValueError as error:
            raise InputError(
                f"The groups cannot be shared out: {str(error).rstrip('.')}; ask for fewer folds."
            ) from None
    empty = sum(not len(test) for _, test in parts)
    if empty:
        raise InputError(f"{empty} of {count} folds would have no clips to test: ask for fewer folds.")
    return _numbered(parts)


def _numbered(parts: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> tuple[Fold, ...]:
    none = np.zeros(0, np.int64)
    return tuple(
        Fold(str(number), np.asarray(train, np.int64), none, np.asarray(test, np.int64))
        for number, (train, test) in enumerate(parts, start=1)
    )


def _given_folds(names: NDArray[Any]) -> tuple[Fold, ...]:
    values = sorted(set(names.tolist()), key=_natural)
    parts = [_PARTS.get(value.lower()) for value in values]
    if all(parts):
        return _given_parts(np.array([_PARTS[name.lower()] for name in names.tolist()]))
    if any(parts):
        odd = next(value for value, part in zip(values, parts, strict=True) if part is None)
        part = next(value for value, part in zip(values, parts, strict=True) if part is not None)
        raise InputError(
            f'Given folds hold "{part}", a part of a split, and also "{odd}": use train, valid and test alone, or '
            "other names for folds."
        )
    if len(values) < 2:
        raise InputError(f'All rows are in one fold ("{values[0]}"): there is nothing left to learn from.')
    none = np.zeros(0, np.int64)
    return tuple(Fold(value, np.flatnonzero(names != value), none, np.flatnonzero(names == value)) for value in values)


def _given_parts(parts: NDArray[Any]) -> tuple[Fold, ...]:
    train, valid, test = (np.flatnonzero(parts == name) for name in ("train", "valid", "test"))
    for name, part in (("train", train), ("test", test)):
        if not len(part):
            raise InputError(f'Given folds name no rows "{name}": train and test are needed.')
    return (Fold("test", train, valid, test),)


def _natural(text: str) -> tuple[int, float, str]:
    """Numbers before words, and by their size."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


def _refuse_lone_clips(labels: NDArray[Any]) -> None:
    classes, sizes = np.unique(labels, return_counts=True)
    if (lone := classes[sizes < 2]).size:
        raise InputError(
            f"{counted(len(lone), 'class')} with one clip ({first_of(lone.tolist(), MOST_NAMED)}) cannot be learnt and "
            "tested: drop classes of fewer than 2 clips."
        )


def _refuse_lone_groups(labels: NDArray[Any], groups: NDArray[Any]) -> None:
    """A class inside one group is never trained on where it is tested."""
    classes, codes = np.unique(labels, return_inverse=True)
    sizes = _units_of_classes(codes, _codes(groups))
    lone = classes[sizes < 2]
    if not lone.size:
        return
    if lone.size == classes.size:
        same = (
            "the labels are the groups" if len(np.unique(groups)) == classes.size else "every class is inside one group"
        )
        raise InputError(
            f"Folds of whole groups are impossible: {same}, so no class is trained on where it is tested; take "
            "stratified folds without groups (identity of known individuals: --groups none), or sessions or "
            "recordings as groups."
        )
    raise InputError(
        f"{counted(lone.size, 'class')} inside one group ({first_of(lone.tolist(), MOST_NAMED)}) cannot be learnt and "
        "tested in folds of whole groups: drop classes of fewer than 2 groups."
    )


def _units_of_classes(codes: NDArray[Any], units: NDArray[Any]) -> NDArray[np.int64]:
    """How many units each class has clips in."""
    pairs = np.unique(np.stack([codes, units], axis=1), axis=0)
    return np.bincount(pairs[:, 0], minlength=int(codes.max()) + 1)


def _codes(groups: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(np.unique(np.asarray(groups).astype(str), return_inverse=True)[1], np.int64)


def _texts(given: Sequence[Any] | NDArray[Any], rows: int, what: str) -> NDArray[Any]:
    """One text for each row; a missing one is refused, since the row would be in no fold."""
    values = list(given)
    if len(values) != rows:
        raise InputError(f"There are {counted(rows, 'label')} and {len(values)} {what}s: they must pair up one to one.")
    missing = [row for row, value in enumerate(values) if value is None or value == "" or value != value]
    if missing:
        raise InputError(
            f"{counted(len(missing), 'row')} (first: {missing[0]}, counted from 0) without a {what}: leave them out."
        )
    if not values:
        raise InputError("There are no rows to share out among folds.")
    return np.array([str(value) for value in values])
