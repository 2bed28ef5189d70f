"""What an opened model holds: the packages its parts come from, and names of weights that libraries open unseen.

A model is walked from its attributes inwards, breadth first, and so are the globals of the user's modules. Types tell
which packages are really at work, also those that no import statement names (`require("torch")`, a dynamic import).
Text that ends like weights (`.onnx`, `.safetensors`, ...) and names a file is taken for a file that the model reads:
onnxruntime, safetensors and TorchScript open theirs in C++ or Rust, where Python cannot watch.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from earmark.pipeline.identity.places import WEIGHTS, is_data

__all__ = ["Held", "held_by"]

MOST = 20_000  # objects that are looked at: the outer ones come first
LONGEST = 1_000  # items of a container
_LEAVES = (bool, int, float, complex, bytes, bytearray, memoryview, type(None))
_ARRAYS = ("numpy", "torch")  # whose tensors are not entered


class Held(NamedTuple):
    """Modules that types, functions and modules inside a model come from, and files whose names it holds."""

    modules: set[str]
    files: list[Path]


def held_by(roots: Iterable[Any]) -> Held:
    modules: set[str] = set()
    files: dict[Path, None] = {}
    known: dict[int, Any] = {}  # the objects themselves, so that no number is used twice
    waiting = deque(roots)
    while waiting and len(known) < MOST:
        thing = waiting.popleft()
        if isinstance(thing, _LEAVES) or id(thing) in known:
            continue
        if isinstance(thing, str | Path):
            file = _weights(thing)
            files |= {file: None} if file else {}
            continue
        known[id(thing)] = thing
        modules |= _modules_of(thing)
        waiting.extend(_inside(thing))
    return Held(modules, list(files))


def _weights(text: str | Path) -> Path | None:
    if len(str(text)) > 1024 or Path(text).suffix not in WEIGHTS:
        return None
    try:
        file = Path(text).expanduser().absolute()
        return file if is_data(file) else None
    except (OSError, RuntimeError, ValueError):
        return None


def _modules_of(thing: Any) -> set[str]:
    if isinstance(thing, ModuleType):
        return {thing.__name__}
    if isinstance(thing, type | FunctionType | MethodType):
        return {str(getattr(thing, "__module__", "") or "")}
    return {str(getattr(kind, "__module__", "") or "") for kind in type(thing).__mro__}


def _inside(thing: Any) -> Iterator[Any]:
    """What an object holds, as far as a model can be made of it."""
    if isinstance(thing, ModuleType | type):
        return
    if isinstance(thing, Mapping):
        for key, value in zip(*_first(thing), strict=False):
            yield key
            yield value
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from (value for value, _ in zip(thing, range(LONGEST), strict=False))
    elif isinstance(thing, MethodType):
        yield thing.__self__
        yield thing.__func__
    elif isinstance(thing, FunctionType):
        for cell in thing.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not filled yet
                continue
        yield from thing.__defaults__ or ()
        yield from (thing.__kwdefaults__ or {}).values()
    elif not (type(thing).__module__.partition(".")[0] in _ARRAYS and hasattr(thing, "shape")):
        yield from _attributes(thing)


def _first(mapping: Mapping[Any, Any]) -> tuple[list[Any], list[Any]]:
    try:
        pairs = [pair for pair, _ in zip(mapping.items(), range(LONGEST), strict=False)]
    except Exception:  # a stranger's mapping may do what it likes
        return [], []
    return [key for key, _ in pairs], [value for _, value in pairs]


def _attributes(thing: Any) -> Iterator[Any]:
    """Attributes that lie in an object itself; none is computed."""
    own = getattr(thing, "__dict__", None)
    if isinstance(own, dict):
        yield from list(own.values())[:LONGEST]
    for kind in type(thing).__mro__:
        for name in [slots] if isinstance(slots := vars(kind).get("__slots__", ()), str) else list(slots):
            if name not in ("__dict__", "__weakref__"):
                try:
                    yield object.__getattribute__(thing, name)
                except AttributeError:
                    continue


def globals_of(modules: Iterable[str]) -> list[Any]:
    """What modules that are imported hold, without their own imports of other modules."""
    found: list[Any] = []
    for name in sorted(modules):
        values = list(vars(sys.modules[name]).items()) if name in sys.modules else []
        found += [value for key, value in values if not key.startswith("__") and not isinstance(value, ModuleType)]
    return found
