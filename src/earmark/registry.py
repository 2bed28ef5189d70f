"""One lazy typed registry: names stand for "module:attribute" strings, and nothing is imported to list them.

Plug-ins add names through entry points (`[project.entry-points."earmark.extractors"]`); a name with a colon is an
import path and needs no registration at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from earmark.errors import InputError, UsageError, did_you_mean, strangers_code
from earmark.specs import Spec

__all__ = ["EXTRA_MODULES", "Registry", "are_installed", "load_path"]

T = TypeVar("T")

EXTRA_MODULES: dict[str, tuple[str, ...]] = {
    "codecs": ("av",),
    "encoders": ("onnxruntime", "ai_edge_litert", "opensmile"),
    "models": ("torch", "transformers"),
    "mteb": ("mteb",),
    "onnx": ("onnxruntime",),
    "sentence-transformers": ("sentence_transformers",),
    "speech": ("onnxruntime",),
    "torch": ("torch",),
}
"""The modules that tell whether an extra is installed."""


def are_installed(modules: Sequence[str]) -> bool:
    """Whether all modules can be imported; none of them is."""
    return all(map(_is_installed, modules))


@cache
def _is_installed(module: str) -> bool:
    return find_spec(module) is not None


class Registry(Generic[T]):
    """Names of one kind of thing ("extractor", "corpus"), each found where its import path says.

    Args:
        kind: what the names are names of, for messages.
        group: the entry points under which plug-ins add names.
        paths: where our own are, "module:attribute" by name.
        methods: what a thing of this kind can do, and by which a finished object is known from what makes one.
        shape: a thing of this kind in words, such as "a model with an `extract` method".
        remedy: what to say to somebody whose thing lacks the methods.
        options: what its keywords are called.
    """

    def __init__(
        self, kind: str, group: str, paths: Mapping[str, str], *, methods: Sequence[str] = (), shape: str = "",
        remedy: str = "", options: str = "parameters",
    ) -> None:  # fmt: skip
        self.kind, self._group, self._paths = kind, group, dict(paths)
        self._methods, self._shape, self._remedy, self._options = methods, shape, remedy, options

    def names(self) -> list[str]:
        """Every registered name, plug-ins included, without importing any of them."""
        return sorted({*self._paths, *(point.name for point in entry_points(group=self._group))})

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._paths or name in self.names()

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

    def find(self, spec: Spec) -> tuple[T, tuple[str, ...]]:
        """What a spelling stands for, and the arguments that its call takes first: none for an import path."""
        if "." not in spec.name and spec.name in self:
            return self.load(spec.name), () if spec.argument is None else (spec.argument,)
        try:
            return self.load(spec.path), ()
        except InputError as error:
            raise InputError(f"{error}{did_you_mean(spec.name, self)}") from error

    def has_methods(self, thing: object) -> bool:
        return all(callable(getattr(thing, method, None)) for method in self._methods)

    def make(self, thing: Any, spec: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """What a class or a function makes, or a finished object as it is; what goes wrong becomes one sentence.

        Args:
            thing: what a name or an import path stands for.
            spec: how it was spelled, for messages.
            arguments: what its call takes first.
            options: the keywords of its call.
        """

        if not isinstance(thing, type) and self._methods and self.has_methods(thing):
            if options:
                raise UsageError(f"{spec} is a finished object and takes no {self._options} ({', '.join(options)}).")
            return thing
        if not callable(thing):
            raise UsageError(f"{spec} is neither {self._shape} nor something that makes one.")
        with strangers_code(f"{spec} cannot be made"):
            try:
                made = thing(*arguments, **options)
            except TypeError as error:
                raise UsageError(f"{spec} cannot be made with these {self._options}: {error}.") from error
        if not self.has_methods(made):
            raise UsageError(f"{spec} has no {self._remedy}.")
        return made


def load_path(path: str, kind: str) -> object:
    """Import "module:attribute", or "file.py:attribute"; errors name the path and what is missing.

    Modules in the current folder count, after everything that is installed.
    """
    module_name, _, attribute = path.partition(":")
    file = Path(module_name).expanduser() if module_name.endswith(".py") else None
    folder = str(Path.cwd() if file is None else file.resolve().parent)
    if folder not in sys.path and (file is not None or "" not in sys.path):
        sys.path.append(folder)
    if file is not None and not file.is_file():
        raise InputError(f"The {kind} {path!r} cannot be imported: there is no file {file} here.")
    with strangers_code(f"The {kind} {path!r} cannot be imported"):
        try:
            thing: object = import_module(module_name if file is None else file.stem)
        except ImportError as error:
            raise InputError(
                f"The {kind} {path!r} cannot be imported ({error}): check the spelling and PYTHONPATH."
            ) from error
    if file is not None and Path(str(getattr(thing, "__file__", None))).resolve() != file.resolve():
        raise InputError(f"The {kind} {path!r} cannot be imported: another module is called {file.stem}; rename it.")
    for part in attribute.split("."):
        if not hasattr(thing, part):
            raise InputError(f"The {kind} {path!r} cannot be found: module {module_name} has no {attribute!r}.")
        thing = getattr(thing, part)
    return thing
