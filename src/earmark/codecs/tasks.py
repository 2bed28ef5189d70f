"""The old address of `earmark.probes`, kept for code written for version 0.1.0."""

from __future__ import annotations

from earmark.probes import TASKS, Finding, Heard, Task, TaskCard, open_task, task_cards

__all__ = ["TASKS", "Finding", "Heard", "Task", "TaskCard", "open_task", "task_cards"]
