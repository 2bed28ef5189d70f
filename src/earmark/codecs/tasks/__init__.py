"""What downstream tasks lose: recognisers, speaker verifiers, emotion and event classifiers on coded clips."""

from __future__ import annotations

from earmark.codecs.tasks.catalogue import TASKS, open_task, task_cards
from earmark.codecs.tasks.contract import Finding, Heard, Task, TaskCard

__all__ = ["TASKS", "Finding", "Heard", "Task", "TaskCard", "open_task", "task_cards"]
