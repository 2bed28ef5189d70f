"""Several labels of one clip in one text, between separators: `owl;wren`.

Files say it in three ways: in one cell with a separator, in a row for each label (as BirdNET-Analyzer does), or in a
column of 0 and 1 for each label. The last two become the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from earmark.errors import InputError
from earmark.vectors._values import Labels
from earmark.vectors.texts import Texts
from earmark.wording import counted

BACKGROUND = "background"
_YES, _NO = frozenset({"1", "true", "yes", "x"}), frozenset({"0", "false", "no", ""})
SEPARATORS = (";", "|", "/", "\x1f")


def joined_labels(sets: Sequence[Iterable[str]], separator: str = "") -> tuple[list[str | None], str]:
    """A text for each set of labels, None for an empty one; and the separator, "" where no set has several."""
    unique = [sorted(set(labels)) for labels in sets]
    if all(len(labels) < 2 for labels in unique):
        return [labels[0] if labels else None for labels in unique], ""
    separator = separator or free_separator(label for labels in unique for label in labels)
    return [separator.join(labels) or None for labels in unique], separator


def free_separator(labels: Iterable[str]) -> str:
    """The first separator that is part of no label."""
    held = "\n".join(set(labels))
    return next(sign for sign in SEPARATORS if sign not in held or sign == SEPARATORS[-1])


def split_labels(text: str, separator: str) -> list[str]:
    """The labels of a text, each once and in order; empty ones are none."""
    parts = text.split(separator) if separator else [text]
    return sorted({part.strip() for part in parts} - {""})


def spelled(text: str | None, separator: str) -> str | None:
    """The one spelling of labels, in whichever order they were given; None where there are none."""
    return separator.join(split_labels(text, separator)) or None if text and separator else text


def labels_agree(own: str | None, other: str | None, separator: str, background: str) -> bool:
    """Whether a neighbour is right: it has the clip's label, or shares one; of background none is wrong."""
    if own == background and background:
        return True
    if not (separator and own and other):
        return own == other
    return not set(split_labels(own, separator)).isdisjoint(split_labels(other, separator))


def label_columns(names: Sequence[str], asked: str | None) -> list[str]:
    """The columns that a list of names or patterns (`sp_*`, `wren,owl`) means; none where it is the name of one."""
    if asked is None or asked in names or not set(asked) & set(",*?["):
        return []
    patterns = [part.strip() for part in asked.split(",") if part.strip()]
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def of_columns(columns: Mapping[str, Texts], source: Path) -> tuple[Texts, str]:
    """One text for each row of columns of 0 and 1; rows of zeros are background, rows of nothing unlabelled."""
    rows: list[list[str] | None] = []
    for number, cells in enumerate(zip(*columns.values(), strict=True), start=1):
        held = []
        for name, cell in zip(columns, cells, strict=True):
            word = (cell or "").lower()
            if word not in _YES | _NO:
                raise InputError(
                    f'{source}, row {number}: column "{name}" holds {cell!r}; columns of labels hold 0 and 1.'
                )
            if word in _YES:
                held.append(name)
        rows.append(held if any(cell is not None for cell in cells) else None)
    texts, separator = joined_labels([held or [] for held in rows])
    return [BACKGROUND if held == [] else text for held, text in zip(rows, texts, strict=True)], separator


def one_row_each(labels: Labels, separator: str) -> Labels:
    """Labels with one row for each id: where an id has several rows, with all their labels."""
    if labels.ids is None or len(set(labels.ids)) == len(labels.ids):
        return labels
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(labels.ids):
        rows.setdefault(name, []).append(row)
    groups = None
    if labels.groups is not None:
        of_id = [{labels.groups[row] for row in held} for held in rows.values()]
        torn = next((name for name, held in zip(rows, of_id, strict=True) if len(held) > 1), None)
        if torn is not None:
            raise InputError(f'{labels.source} has the id "{torn}" in several groups; give each id one group.')
        groups = [held.pop() for held in of_id]
    sets = [
        [label for row in held if (text := labels.values[row]) for label in split_labels(text, separator)]
        for held in rows.values()
    ]
    texts, _ = joined_labels(sets, separator)
    several = sum(len(set(held)) > 1 for held in sets)
    note = f"{labels.source}: {counted(several, 'id')} with several labels, a row for each."
    return replace(
        labels, values=texts, ids=tuple(rows), groups=groups, separator=separator, beside={},
        notes=(*labels.notes, *([note] if several else [])),
    )  # fmt: skip
