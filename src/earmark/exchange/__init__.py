"""Results for other places: what was measured, written as model hubs, mteb, shared databases and Croissant read it.

Only measured values leave (status ok, one subset, nothing changed on purpose), in the unit and direction that the
receiver expects; what it has no place for is said in one line.
"""

from __future__ import annotations

from earmark.exchange.croissant import write_croissant
from earmark.exchange.every_eval_ever import write_every_eval_ever
from earmark.exchange.hub import write_hub
from earmark.exchange.measured import Measured, open_measured
from earmark.exchange.mteb_results import write_mteb
from earmark.exchange.tracking import Tracking, track

__all__ = [
    "Measured",
    "Tracking",
    "open_measured",
    "track",
    "write_croissant",
    "write_every_eval_ever",
    "write_hub",
    "write_mteb",
]
