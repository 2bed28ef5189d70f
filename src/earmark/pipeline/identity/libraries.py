"""Versions of the installed packages that are at work in a model, and of those that these require.

Which packages are loaded in the whole process says nothing of one model: the others of a run load theirs. So they are
found from the model: from its code, from the types of what it holds, and from what the modules of those types use.
Required packages count too, loaded or not: libraries for a GPU have no module that could be seen.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable
from importlib import metadata
from types import ModuleType

from earmark.pipeline import keys

__all__ = ["used_by", "versions_of"]


def used_by(modules: Iterable[str]) -> set[str]:
    """Packages that modules belong to, and those that the imported ones among them use."""
    found: set[str] = set()
    for name in modules:
        found.add(name.partition(".")[0])
        for value in list(vars(sys.modules[name]).values()) if name in sys.modules else []:
            owner = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
            if isinstance(owner, str):
                found.add(owner.partition(".")[0])
    return {name for name in found if name and name not in sys.stdlib_module_names and name != "earmark"}


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Distributions by name with their versions, required ones included."""
    waiting = sorted({name for package in packages for name in _distributions(package)})
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            version = keys.version_of(name)
            found |= {name: version} if version else {}
            waiting += _required(name) if version else []
    return found


@functools.cache
def _distributions(package: str) -> tuple[str, ...]:
    """The distributions that a package, by the name it is imported under, comes from."""
    spelled = _spelled(package)
    return (spelled,) if keys.version_of(spelled) else _by_package().get(package, ())


@functools.cache
def _required(name: str) -> tuple[str, ...]:
    """What a distribution requires, without its extras."""
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return ()
    heads = [re.match(r"[A-Za-z0-9._-]+", line) for line in lines if not re.search(r"\bextra\s*==", line)]
    return tuple(_spelled(head[0]) for head in heads if head)


@functools.cache
def _by_package() -> dict[str, tuple[str, ...]]:
    """Distributions by the packages in them, for those whose names differ (`sklearn`, `yaml`)."""
    found: dict[str, dict[str, None]] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        listed = (distribution.read_text("top_level.txt") or "").split()
        for package in listed or _packages_in(distribution.read_text("RECORD") or ""):
            found.setdefault(package, {})[_spelled(name)] = None
    return {package: tuple(sorted(names)) for package, names in found.items()}


def _packages_in(record: str) -> set[str]:
    heads = (line.partition(",")[0] for line in record.splitlines() if ".py," in line or ".so," in line)
    return {head.partition("/")[0].partition(".")[0] for head in heads}


def _spelled(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
