"""The old address of `earmark.probes`, kept for code written for version 0.1.0."""

from __future__ import annotations

from typing import Any

from earmark.probes import TASKS, Responses, Row, Task, TaskCard, open_task, task_cards

__all__ = ["TASKS", "Finding", "Heard", "Task", "TaskCard", "open_task", "task_cards"]

Heard = Responses


def Finding(metric: str, protocol: str = "all", value: float | None = None, **cells: Any) -> Row:
    """A row of the score table."""
    return Row(metric=metric, protocol=protocol, value=value, **cells)
