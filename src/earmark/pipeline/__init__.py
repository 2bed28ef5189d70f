"""The former home of runs; its documented names still stand for what they stood for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "earmark.pipeline.config": ("RunConfig", "load_config", "make_config"),
    "earmark.representations": ("Run", "load_points", "load_vectors", "open_clips", "plan", "run"),
    "earmark.runs": ("read_clips", "read_record"),
}
__all__ = sorted(name for names in _HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'earmark.pipeline' has no attribute {name!r}")
