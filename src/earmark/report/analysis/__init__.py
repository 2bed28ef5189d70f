"""An analysis for people: its sentences, its figures, and one self-contained HTML page."""

from earmark.report.analysis._page import render_analysis, write_analysis
from earmark.report.analysis._text import analysis_text, filled_text

__all__ = ["analysis_text", "filled_text", "render_analysis", "write_analysis"]
