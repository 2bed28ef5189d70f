"""Real against generated: ball metrics with and without GICDM, distances of distributions, and their sanity checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.generated._gicdm import GICDM
    from earmark.generated.api import Fidelity, fidelity
    from earmark.generated.by_recipe import audio_distance
    from earmark.generated.metrics import METRICS
    from earmark.generated.several import GeneratorRank, RankedGenerators, rank_generators

__all__ = [
    "GICDM", "METRICS", "Fidelity", "GeneratorRank", "RankedGenerators", "audio_distance", "fidelity",
    "rank_generators",
]  # fmt: skip

__getattr__ = lazy_names(
    "earmark.generated",
    {
        "Fidelity": "api", "GICDM": "_gicdm", "GeneratorRank": "several", "METRICS": "metrics",
        "RankedGenerators": "several", "audio_distance": "by_recipe", "fidelity": "api", "rank_generators": "several",
    },
)  # fmt: skip
