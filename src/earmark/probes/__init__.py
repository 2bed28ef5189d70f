"""What downstream tasks lose: recognisers, speaker verifiers, emotion and event classifiers on coded clips."""

from __future__ import annotations

from earmark.probes.catalogue import TASKS, open_task, task_cards
from earmark.probes.contract import Finding, Heard, Task, TaskCard

__all__ = ["TASKS", "Finding", "Heard", "Task", "TaskCard", "open_task", "task_cards"]
