"""Real against generated: ball metrics with and without GICDM, distances of distributions, and their sanity checks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earmark.generated._gicdm import GICDM
    from earmark.generated.api import Fidelity, fidelity
    from earmark.generated.metrics import METRICS

__all__ = ["GICDM", "METRICS", "Fidelity", "fidelity"]

_HOME = {"Fidelity": "api", "GICDM": "_gicdm", "METRICS": "metrics", "fidelity": "api"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"earmark.generated.{_HOME[name]}"), name)
    raise AttributeError(f"module 'earmark.generated' has no attribute {name!r}")
