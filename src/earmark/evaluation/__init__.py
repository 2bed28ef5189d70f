"""From vectors and labels to scores: the verbs a user calls."""

from __future__ import annotations

from earmark.evaluation._verbs import HubStudy, evaluate, hubness, study_hubness
from earmark.evaluation.comparison import compare

__all__ = ["HubStudy", "compare", "evaluate", "hubness", "study_hubness"]
