"""The former place of what is now in `score_index`, `metric_text`, `earmark.tables` and `earmark.wording`."""

from collections.abc import Mapping

from earmark.report.metric_text import facts, goodness, interval, number, points
from earmark.report.score_index import Representation, ScoreIndex, Subset, ranked, subset
from earmark.scores import Row, Scores
from earmark.tables import plain
from earmark.wording import listed

__all__ = [
    "facts",
    "goodness",
    "headline",
    "interval",
    "is_mean",
    "listed",
    "number",
    "plain",
    "points",
    "protocols",
    "ranked",
    "subset",
    "values",
]


def headline(scores: Scores) -> str:
    return ScoreIndex(scores).headline


def protocols(scores: Scores) -> list[str]:
    return ScoreIndex(scores).protocols


def values(scores: Scores, metric: str, protocol: str | None = None) -> Mapping[Subset, Mapping[Representation, Row]]:
    return ScoreIndex(scores).values(metric, protocol)


def is_mean(row: Row) -> bool:
    return row.aggregate != ""
