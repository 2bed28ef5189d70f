"""Earmark: what frozen audio models hear, measured without training anything.

The names below load on first use, so that `import earmark` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from earmark._version import __version__

if TYPE_CHECKING:
    from earmark.embed import embed_audio as embed
    from earmark.evaluation import compare, evaluate, hubness
    from earmark.pipeline import run
    from earmark.scores import Scores, load_scores

__all__ = ["Scores", "__version__", "compare", "embed", "evaluate", "hubness", "load_scores", "run"]

_HOME = {
    "Scores": "earmark.scores",
    "compare": "earmark.evaluation",
    "evaluate": "earmark.evaluation",
    "hubness": "earmark.evaluation",
    "load_scores": "earmark.scores",
    "run": "earmark.pipeline",
}


def __getattr__(name: str) -> Any:
    if name == "embed":
        return import_module("earmark.embed")  # the package is callable: see its docstring
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'earmark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
