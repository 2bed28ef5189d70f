"""Earmark: what frozen audio models hear, measured without training anything.

The names below load on first use, so that `import earmark` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from earmark._version import __version__

if TYPE_CHECKING:
    from earmark.analysis.predict import predict
    from earmark.analysis.study import analyze
    from earmark.codecs.runs.runner import codec
    from earmark.embed import embed_audio as embed
    from earmark.evaluation import compare, evaluate, hubness
    from earmark.fidelity.api import fidelity
    from earmark.representations import run
    from earmark.scores import Scores, load_scores

__all__ = [
    "Scores",
    "__version__",
    "analyze",
    "codec",
    "compare",
    "embed",
    "evaluate",
    "fidelity",
    "hubness",
    "load_scores",
    "predict",
    "run",
]

_HOME = {
    "Scores": "earmark.scores",
    "analyze": "earmark.analysis.study",
    "codec": "earmark.codecs.runs.runner",
    "compare": "earmark.evaluation",
    "evaluate": "earmark.evaluation",
    "hubness": "earmark.evaluation",
    "load_scores": "earmark.scores",
    "predict": "earmark.analysis.predict",
    "run": "earmark.representations",
}


def __getattr__(name: str) -> Any:
    if name in ("embed", "fidelity"):
        return import_module(f"earmark.{name}")  # the package is callable: see its docstring
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'earmark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
