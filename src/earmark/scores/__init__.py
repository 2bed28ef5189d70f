"""The score table: its columns, facts about every metric, reading, writing, merging, validating, aggregating.

Every measurement in Earmark is a `Row`, and `Scores` is an ordered table of rows. A missing number is `None`
in Python, an empty cell in CSV and `null` in JSON and Parquet; it is never 0 and never NaN. Numbers survive
every format exactly. Columns are only ever added at the end, so files of older versions still load.
"""

from __future__ import annotations

from earmark.scores._files import decode_rows
from earmark.scores._rules import RULES, VOCSIM_SUBSETS, Rule, VocSimSubset, aggregate, find_rule, harmonic_mean
from earmark.scores._table import PointKey, Scores, load_scores, merge, read_scores
from earmark.scores.metrics import LEADING, METRICS, Metric, metric, metric_facts
from earmark.scores.metrics import Metric as MetricFacts
from earmark.scores.rows import COLUMNS, KEY, Measurement, Row
from earmark.scores.validation import PROTOCOLS, STATUS_MARKS, STATUSES, WITH_VALUE, validate

__all__ = [
    "COLUMNS", "KEY", "LEADING", "METRICS", "PROTOCOLS", "RULES", "STATUSES", "STATUS_MARKS", "VOCSIM_SUBSETS",
    "WITH_VALUE", "Measurement", "Metric", "MetricFacts", "PointKey", "Row", "Rule", "Scores", "VocSimSubset",
    "aggregate", "decode_rows", "find_rule", "harmonic_mean", "load_scores", "merge", "metric", "metric_facts",
    "read_scores", "validate",
]  # fmt: skip
