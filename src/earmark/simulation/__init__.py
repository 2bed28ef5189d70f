"""Can a conclusion be trusted? Designs with a known truth, and what intervals and tests make of them."""

from earmark.simulation._designs import DESIGNS, Design, Sample, draw
from earmark.simulation.study import METRICS, STANDARD, Line, study, to_csv

__all__ = ["DESIGNS", "METRICS", "STANDARD", "Design", "Line", "Sample", "draw", "study", "to_csv"]
