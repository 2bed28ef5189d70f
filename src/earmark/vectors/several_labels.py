"""Several labels of one clip in one text, between separators: `owl;wren`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SEPARATORS = (";", "|", "/", "\x1f")


def joined_labels(sets: Sequence[Iterable[str]]) -> tuple[list[str | None], str]:
    """A text for each set of labels, None for an empty one; and the separator, "" where no set has several."""
    unique = [sorted(set(labels)) for labels in sets]
    if all(len(labels) < 2 for labels in unique):
        return [labels[0] if labels else None for labels in unique], ""
    separator = free_separator(label for labels in unique for label in labels)
    return [separator.join(labels) or None for labels in unique], separator


def free_separator(labels: Iterable[str]) -> str:
    """The first separator that is part of no label."""
    held = "\n".join(set(labels))
    return next(sign for sign in SEPARATORS if sign not in held or sign == SEPARATORS[-1])


def split_labels(text: str, separator: str) -> list[str]:
    """The labels of a text, each once and in order; empty ones are none."""
    parts = text.split(separator) if separator else [text]
    return sorted({part.strip() for part in parts} - {""})
