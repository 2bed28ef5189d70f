"""The sanity bench: synthetic checks that a metric of fidelity or coverage must pass."""

from earmark.fidelity.sanity.bench import sanity
from earmark.fidelity.sanity.data import CHECKS, Check, Pair, draw_pair
from earmark.fidelity.sanity.table import Cell, Sanity, Tally

__all__ = ["CHECKS", "Cell", "Check", "Pair", "Sanity", "Tally", "draw_pair", "sanity"]
