"""One lazy typed registry: names stand for "module:attribute" strings, and nothing is imported to list them.

Plug-ins add names through entry points (`[project.entry-points."earmark.extractors"]`); a name with a colon is an
import path and needs no registration at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Generic, TypeVar, cast

from earmark.errors import InputError, UsageError, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind of thing ("extractor", "corpus"), each found where its import path says."""

    def __init__(self, kind: str, group: str, paths: dict[str, str]) -> None:
        self.kind, self._group, self._paths = kind, group, dict(paths)

    def names(self) -> list[str]:
        """Every registered name, plug-ins included, without importing any of them."""
        return sorted({*self._paths, *(point.name for point in entry_points(group=self._group))})

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def load(self, name: str) -> T:
        """The object behind a registered name or an import path such as `mypackage.mymodule:MyModel`."""
        if name in self._paths:
            return cast(T, load_path(self._paths[name], self.kind))
        for point in entry_points(group=self._group):
            if point.name == name:
                return cast(T, load_path(point.value, self.kind))
        if ":" in name:
            return cast(T, load_path(name, self.kind))
        raise UsageError(
            f"There is no {self.kind} {name!r}.{did_you_mean(name, self.names())} "
            f"Known: {', '.join(self.names())}; or give an import path such as mypackage.mymodule:Name."
        )


def load_path(path: str, kind: str) -> object:
    """Import "module:attribute"; errors name the path and what is missing.

    Modules in the current folder count, after everything that is installed.
    """
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    module_name, _, attribute = path.partition(":")
    try:
        found: object = import_module(module_name)
    except ImportError as error:
        raise InputError(
            f"The {kind} {path!r} cannot be imported ({error}): check the spelling and PYTHONPATH."
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(f"The {kind} {path!r} cannot be found: module {module_name} has no {attribute!r}.")
        found = getattr(found, part)
    return found
