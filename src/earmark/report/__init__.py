"""Scores for people: tables as Markdown, LaTeX and terminal text; pages and figures in the rooms below."""

from earmark.report._score_tables import (
    READ_FIRST,
    TableOptions,
    by_subset,
    leading_metrics,
    long_text,
    score_table,
    to_latex,
    to_markdown,
    to_text,
)

__all__ = [
    "READ_FIRST",
    "TableOptions",
    "by_subset",
    "leading_metrics",
    "long_text",
    "score_table",
    "to_latex",
    "to_markdown",
    "to_text",
]
