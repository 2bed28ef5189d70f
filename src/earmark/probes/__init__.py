"""What downstream tasks lose: recognisers, speaker verifiers, emotion and event classifiers on coded clips."""

from __future__ import annotations

from earmark.probes.contract import Finding, Responses, Task, TaskCard
from earmark.probes.tasks import TASKS, open_task, task_cards

Heard = Responses  # the name of version 0.1.0

__all__ = ["TASKS", "Finding", "Heard", "Responses", "Task", "TaskCard", "open_task", "task_cards"]
