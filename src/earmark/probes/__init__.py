"""What downstream tasks lose: recognisers, speaker verifiers, emotion and event classifiers on coded clips."""

from __future__ import annotations

from earmark.probes._contract import Responses, Task, TaskCard
from earmark.probes._scoring import measured, not_applicable
from earmark.probes.tasks import TASKS, open_task, task_cards
from earmark.scores import Row

__all__ = ["TASKS", "Responses", "Row", "Task", "TaskCard", "measured", "not_applicable", "open_task", "task_cards"]
