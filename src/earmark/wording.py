"""Numbers and names in sentences: 1 row, 2 rows; a, b and c."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["counted", "error_text", "first_of", "listed"]


def counted(number: int, noun: str) -> str:
    """A number with its noun in the right form: `1 clip`, `0 clips`, `2 classes`."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{ending}"


def counted_units(number: int, unit: str) -> str:
    """Units by their number: `8 listeners`; of two kinds by the fewer: `listeners and pairs (at least 8 each)`."""
    kinds = unit.split("+")
    if len(kinds) == 1:
        return counted(number, unit)
    return f"{listed(f'{kind}s' for kind in kinds)} (at least {number} each)"


def listed(names: Iterable[str]) -> str:
    """Names as a sentence has them: `a, b and c`."""
    items = list(names)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""


def all_of(number: int) -> str:
    """All of some things, before their noun: `both`, `all 3`."""
    return "both" if number == 2 else f"all {number}"


def none_of(number: int, noun: str) -> str:
    """None of some things: `neither of the 2 subsets`, `none of the 3 subsets`."""
    return f"{'neither' if number == 2 else 'none'} of the {counted(number, noun)}"


def first_of(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def seconds_text(seconds: float) -> str:
    """A time for the name of a span, to the microsecond: `3`, `0.25`."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def error_text(error: BaseException, most: int = 300) -> str:
    """What an error of somebody else's says, on one line and without its full stop, to stand inside a sentence."""
    return " ".join(str(error).split())[:most].rstrip(".")
