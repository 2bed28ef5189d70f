"""Real against generated: ball metrics with and without GICDM, distances of distributions, and their sanity checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.generated._gicdm import GICDM
    from earmark.generated.api import Fidelity, fidelity
    from earmark.generated.by_recipe import audio_distance
    from earmark.generated.metrics import METRICS

__all__ = ["GICDM", "METRICS", "Fidelity", "audio_distance", "fidelity"]

__getattr__ = lazy_names(
    "earmark.generated",
    {"Fidelity": "api", "GICDM": "_gicdm", "METRICS": "metrics", "audio_distance": "by_recipe", "fidelity": "api"},
)
