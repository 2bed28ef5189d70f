"""Text for a terminal: one printable line, and cells in aligned columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def one_line(text: str) -> str:
    """The text without line breaks and control characters: a name must not break a table or steer a terminal."""
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(mark if mark.isprintable() else "?" for mark in line)


def plain(text: str, most: int = 10_000) -> str:
    """One line in composed characters, cut in its middle where it is longer than `most`."""
    line = one_line(unicodedata.normalize("NFC", text))
    if len(line) <= most:
        return line
    tail = (most - 1) // 3
    return line[: most - 1 - tail] + "…" + line[len(line) - tail :]


def display_width(text: str) -> int:
    """Columns on a terminal: combining marks take none, East Asian wide characters two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(mark) else 2 if unicodedata.east_asian_width(mark) in "WF" else 1 for mark in text
    )


def aligned(
    lines: Sequence[Sequence[str]],
    *,
    left: int | None = None,
    words: int = 0,
    indent: str = "",
    gap: str = "  ",
    ruled: bool = False,
    least: Sequence[int] = (),
) -> list[str]:
    """Lines of cells in columns; trailing spaces are cut.

    Args:
        lines: The cells, the head first. A line of fewer cells than the first is a heading between the others: it
            takes no part in the widths.
        left: So many first columns stand to the left, the others to the right; None is all to the left.
        words: So many last columns stand to the left as well.
        indent: What stands before every line.
        gap: What stands between two columns.
        ruled: Draw a rule under the first line.
        least: Least widths of the first columns.
    """
    if not lines:
        return []
    count = len(lines[0])
    whole = [line for line in lines if len(line) == count]
    widths = [max(display_width(line[place]) for line in whole) for place in range(count)]
    widths = [max(width, least[place] if place < len(least) else 0) for place, width in enumerate(widths)]
    to_the_right = range(count if left is None else left, count - words)
    made = []
    for line in lines:
        cells = []
        for place, cell in enumerate(line):
            space = " " * (widths[place] - display_width(cell))
            cells.append(space + cell if place in to_the_right else cell + space)
        made.append((indent + gap.join(cells)).rstrip())
    if ruled:
        made.insert(1, indent + gap.join("─" * width for width in widths))
    return made
