"""Figures, each a pure function that returns a matplotlib Figure; they need the extra `plots`."""

from earmark.report.figures._heatmaps import correlation_map, lift_plot, lift_systems, score_heatmap
from earmark.report.figures._points import confusion, projection, spectrogram_png
from earmark.report.figures._properties import trends
from earmark.report.figures.style import as_svg, save

__all__ = [
    "as_svg",
    "confusion",
    "correlation_map",
    "lift_plot",
    "lift_systems",
    "projection",
    "save",
    "score_heatmap",
    "spectrogram_png",
    "trends",
]
