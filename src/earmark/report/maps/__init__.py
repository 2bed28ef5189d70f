"""Maps to listen through: every clip a point to click, with its true neighbours and its sound, in one HTML file."""

from __future__ import annotations

from earmark.report.maps._api import ClipMap, map_clips
from earmark.report.maps._building import Representation, build_map, projections_of
from earmark.report.maps._sounds import BUDGET
from earmark.report.maps.content import ClipTable, MapContent, MapLayout, MapView

__all__ = [
    "BUDGET",
    "ClipMap",
    "ClipTable",
    "MapContent",
    "MapLayout",
    "MapView",
    "Representation",
    "build_map",
    "map_clips",
    "projections_of",
]
