"""What a sweep means: pure functions of arrays, each with its record, and how metrics are chosen by name."""

from earmark.metrics.catalogue import digest, find, name_of, plan
from earmark.scores.metrics import METRICS, Metric, metric

__all__ = ["METRICS", "Metric", "digest", "find", "metric", "name_of", "plan"]
