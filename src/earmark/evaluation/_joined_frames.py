"""Data frames of several models, brought to the same clips in the same order before they are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from earmark.errors import InputError, UsageError
from earmark.vectors.frames import Given, columns_taken, is_frame
from earmark.wording import first_of


class Joined(NamedTuple):
    """Vectors of each system with the labels and groups that they share; notes say which clips were left out."""

    systems: dict[str, Any]
    labels: Any
    groups: Any
    notes: tuple[str, ...] = ()


def joined_frames(systems: Mapping[str, Any], labels: Any, groups: Any, ids: str | None) -> Joined:
    """Frames as their dimensions, joined by the column `ids`; labels and groups that name columns are taken from them.

    Without `ids`, row n of every frame has to be the same clip, as far as the frames can tell.
    """
    if not any(isinstance(name, str) for name in (labels, ids)) and not any(map(is_frame, systems.values())):
        return Joined(dict(systems), labels, groups)
    if ids is not None and not (isinstance(labels, str) and isinstance(groups, str | None)):
        raise UsageError(f"With ids={ids!r}, labels and groups are names of columns of the frames too.")
    parts = {name: columns_taken(frame, labels, groups, ids) for name, frame in systems.items()}
    notes: tuple[str, ...] = ()
    if ids is not None:
        parts, notes = _shared_clips(parts, ids)
    else:
        _refuse_other_order(systems)
    first, whole = next(iter(parts.items()))
    for name, part in parts.items():
        for what, column, mine, theirs in (
            ("label", labels, whole.labels, part.labels),
            ("group", groups, whole.groups, part.groups),
        ):
            if isinstance(column, str):
                _refuse_difference(what, (first, name), list(mine), list(theirs), ids)
    return Joined({name: part.vectors for name, part in parts.items()}, whole.labels, whole.groups, notes)


def _shared_clips(parts: Mapping[str, Given], column: str) -> tuple[dict[str, Given], tuple[str, ...]]:
    """The rows of each frame for the clips that all of them have, in the order of the first frame."""
    row_of: dict[str, dict[str, int]] = {}
    for name, part in parts.items():
        twice = [clip for clip, count in Counter(part.ids).items() if count > 1]
        if twice:
            raise InputError(f"{name} has {first_of(twice, 3)} more than once in {column!r}: give a row for each clip.")
        row_of[name] = {clip: row for row, clip in enumerate(part.ids)}
    first, *others = row_of.values()
    shared = [clip for clip in first if all(clip in rows for rows in others)]
    if not shared:
        raise InputError(f"{', '.join(parts)} have no clip in common in {column!r}: name the column that tells clips.")
    chosen = {name: _rows(part, [row_of[name][clip] for clip in shared]) for name, part in parts.items()}
    most = max(map(len, row_of.values()))
    lacking = (f"Compared on the {len(shared)} clips, of {most}, that all frames have",) if len(shared) < most else ()
    return chosen, lacking


def _rows(part: Given, rows: Sequence[int]) -> Given:
    def of_rows(values: Any) -> Any:
        return None if values is None else [values[row] for row in rows]

    return part._replace(
        vectors=part.vectors[list(rows)], labels=of_rows(part.labels), groups=of_rows(part.groups), ids=None
    )


def _refuse_difference(
    what: str, names: tuple[str, str], mine: Sequence[Any], theirs: Sequence[Any], ids: str | None
) -> None:
    one, other = names
    remedy = (
        "correct one of the frames"
        if ids
        else "give the same clips in the same order, or name the column that tells clips apart, as in ids='clip'"
    )
    if len(mine) != len(theirs):
        raise InputError(f"{one} has {len(mine)} rows and {other} has {len(theirs)}: {remedy}.")
    row = next((row for row, pair in enumerate(zip(mine, theirs, strict=True)) if pair[0] != pair[1]), None)
    if row is not None:
        raise InputError(
            f"{one} and {other} differ in the {what} of row {row} (counted from 0): {mine[row]!r} and {theirs[row]!r}; "
            f"{remedy}."
        )


def _refuse_other_order(systems: Mapping[str, Any]) -> None:
    """Equal labels do not show that rows are the same clips: what names clips in both frames has to agree."""
    frames = {name: frame for name, frame in systems.items() if is_frame(frame)}
    first, *others = frames.items()
    for column, mine in _names_of_clips(first[1]):
        for name, frame in others:
            theirs = dict(_names_of_clips(frame)).get(column)
            if theirs is not None and theirs != mine and {*theirs} & {*mine}:
                raise InputError(
                    f"{first[0]} and {name} have other clips, or another order, by their column {column!r}: join them "
                    f"with ids={column!r}."
                )
    for name, frame in others:
        one, other = (getattr(held, "index", None) for held in (first[1], frame))
        if one is None or other is None or not one.is_unique or one.equals(other):
            continue
        if len(one) == len(other) and {*one} == {*other}:
            raise InputError(
                f"{first[0]} and {name} have their rows in another order, by their index: sort both by it, or give "
                "both a new one with reset_index(drop=True) where row n is the same clip in both."
            )


def _names_of_clips(frame: Any) -> Iterator[tuple[str, list[str]]]:
    """Columns of text with another value in every row."""
    for column in frame.columns:
        if isinstance(next(iter(frame[column]), None), str):
            values = list(frame[column])
            if len({*values}) == len(values) > 1:
                yield str(column), values
