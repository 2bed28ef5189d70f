"""Names of a room that load on first use, so that importing the room costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(room: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for the module `room`; `homes` gives the module of each name, with ":name" if another there."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        return getattr(import_module(f"{room}.{module}"), attribute or name)

    return load
