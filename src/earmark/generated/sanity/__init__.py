"""The sanity bench: synthetic checks that a metric of fidelity or coverage must pass."""

from earmark.generated.sanity._data import CHECKS, Check, Pair, draw_pair
from earmark.generated.sanity.bench import sanity
from earmark.generated.sanity.table import Cell, Sanity, Tally

__all__ = ["CHECKS", "Cell", "Check", "Pair", "Sanity", "Tally", "draw_pair", "sanity"]
