"""Scores for people: tables as Markdown, LaTeX and terminal text."""

from earmark.report.tables import long_text, to_latex, to_markdown, to_text

__all__ = ["long_text", "to_latex", "to_markdown", "to_text"]
