"""Numbers in sentences: 1 row, 2 rows."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """A number with its noun in the right form: `1 clip`, `0 clips`, `2 classes`."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{ending}"
