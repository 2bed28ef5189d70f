"""Cells in which the red team tries: sealed ones, and one that is not confined at all, for comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from earmark.isolation import Cell, Limits, Message, sealed

FUNCTION = "tests.blind.red_team.attempts:answer"
ROOT = Path(__file__).parents[3]
ALLOWED = frozenset({"not-root"})
"""The checks may run as root: everything else must be there."""


def sealed_cell(readable: Iterable[str | Path] = (), **limits: int) -> Cell:
    return sealed(FUNCTION, readable=(ROOT, *readable), limits=Limits(**limits), allowed=ALLOWED)


def open_cell() -> Cell:
    return Cell(FUNCTION, confined=False)


def attempt(cell: Cell, do: str, seconds: float = 20.0, **given: Any) -> dict[str, Any]:
    """What became of one attempt: "got" and what, or "stopped" and by which error."""
    return dict(cell.call(Message({"do": do, **given}), seconds).head["results"][do])


def attempts(cell: Cell, several: dict[str, dict[str, Any]], seconds: float = 30.0) -> dict[str, dict[str, Any]]:
    return dict(cell.call(Message({"do": "several", "attempts": several}), seconds).head["results"])


def stopped(result: dict[str, Any]) -> bool:
    return "got" not in result


@contextmanager
def growth() -> Iterator[Callable[[], int]]:
    """By how many kilobytes the memory of this process grew at its peak since here."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    before = _memory("VmRSS")
    yield lambda: _memory("VmHWM") - before


def _memory(name: str) -> int:
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])
