"""An analysis for people: its sentences, its figures, the paper's tables, and one self-contained HTML page."""

from earmark.report.analysis._page import render_analysis, write_analysis
from earmark.report.analysis._paper_tables import TABLES, missing_tables, paper_tables, tables_text
from earmark.report.analysis._saving import analysis_figures, check_formats, save_figures
from earmark.report.analysis._text import analysis_text, filled_text

__all__ = [
    "TABLES",
    "analysis_figures",
    "analysis_text",
    "check_formats",
    "filled_text",
    "missing_tables",
    "paper_tables",
    "render_analysis",
    "save_figures",
    "tables_text",
    "write_analysis",
]
