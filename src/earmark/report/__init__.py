"""Scores for people: tables as Markdown, LaTeX and terminal text; pages and figures in the rooms below."""

from earmark.report._score_tables import (
    TableOptions,
    by_subset,
    long_text,
    score_table,
    to_latex,
    to_markdown,
    to_text,
)

__all__ = ["TableOptions", "by_subset", "long_text", "score_table", "to_latex", "to_markdown", "to_text"]
