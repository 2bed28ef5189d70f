"""The report as one self-contained HTML file: fill a `ReportData` and call `write_report`."""

from earmark.report.content import CloseUp, Durations, FileNote, ReportData, SubsetFacts, Timing
from earmark.report.html._page import render, write_report

__all__ = ["CloseUp", "Durations", "FileNote", "ReportData", "SubsetFacts", "Timing", "render", "write_report"]
