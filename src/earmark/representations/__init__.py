"""Representation runs: clips through frozen models to vectors, scores and a report, as stages on `earmark.runs`."""

from earmark.report.drawing import draw_figures
from earmark.representations._folder import RunVectors, load_points, load_vectors, open_clips
from earmark.representations.ablations import compare_variants
from earmark.representations.comparisons import compare_runs
from earmark.representations.maps import map_run
from earmark.representations.runner import Run, plan, run

__all__ = [
    "Run",
    "RunVectors",
    "compare_runs",
    "compare_variants",
    "draw_figures",
    "load_points",
    "load_vectors",
    "map_run",
    "open_clips",
    "plan",
    "run",
]
