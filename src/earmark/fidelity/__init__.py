"""Real against generated: ball metrics with and without GICDM, distances of distributions, and their sanity checks.

`earmark.fidelity(...)` is `earmark.fidelity.fidelity(...)`. Importing any module of this package binds the name
`earmark.fidelity` to the package, so the package itself can be called and does the same.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earmark.fidelity.api import Fidelity, fidelity
    from earmark.fidelity.gicdm import GICDM
    from earmark.fidelity.metrics import METRICS

__all__ = ["GICDM", "METRICS", "Fidelity", "fidelity"]

_HOME = {"Fidelity": "api", "GICDM": "gicdm", "METRICS": "metrics", "fidelity": "api"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"earmark.fidelity.{_HOME[name]}"), name)
    raise AttributeError(f"module 'earmark.fidelity' has no attribute {name!r}")


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.fidelity(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
