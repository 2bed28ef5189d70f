"""An analysis for people: its sentences, its figures, and one self-contained HTML page."""

from earmark.report.analysis.page import render_analysis, write_analysis
from earmark.report.analysis.text import analysis_text, filled_text

__all__ = ["analysis_text", "filled_text", "render_analysis", "write_analysis"]
