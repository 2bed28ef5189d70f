"""The code a model runs: the modules its spec and its parts come from, and all that these import.

Source counts for Earmark's extractors and for everything that is not installed (a user's own files); an installed
package counts by its version (`identity.libraries`). Imports are followed where they are written, also inside functions
and as text: `require("torch", ...)`, `import_module("mine.dsp")`.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from earmark.pipeline import keys
from earmark.pipeline.identity.places import WEIGHTS, is_data, is_installed

__all__ = ["Code", "code_of_modules"]

_SHARED = ("earmark.extractors.contract", "earmark.progress")
"""Modules of extractors that only describe and tell: they change no number."""

_IMPORTERS = ("require", "import_module", "__import__")


class Code(NamedTuple):
    """Digests of sources by module, the user's own modules among them, packages that they use, weights they name."""

    sources: dict[str, str]
    own: set[str]
    packages: set[str]
    files: list[Path]


def code_of_modules(modules: Iterable[str]) -> Code:
    """Follow imports from these modules."""
    waiting = sorted(set(modules))
    found = Code({}, set(), set(), [])
    while waiting:
        name = waiting.pop()
        if name in found.sources or name in _SHARED:
            continue
        top = name.partition(".")[0]
        ours = top == "earmark"
        if top in sys.stdlib_module_names or (ours and not name.startswith("earmark.extractors.")):
            continue
        file = _file_of(name)
        if file is None:
            continue
        if not ours and is_installed(file):
            found.packages.add(top)
            continue
        found.sources[name] = keys.source_digest(file)
        read = _read(file, name)
        waiting += read.imports
        if not ours:
            found.own.add(name)
            found.files.extend(path for text in read.weights for path in _near(file, text))
    return found


class _Read(NamedTuple):
    imports: list[str]
    weights: list[str]


@functools.cache
def _read(file: Path, name: str) -> _Read:
    """Names of modules that a file's import statements mention, and text in it that ends like weights."""
    if file.suffix != ".py":
        return _Read([], [])
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return _Read([], [])
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return _Read(
        list(_imports(tree, package)),
        sorted({text for text in texts if len(text) < 1024 and Path(text).suffix in WEIGHTS}),
    )


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if called in _IMPORTERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _near(source: Path, text: str) -> list[Path]:
    """The files that text in a source may mean: from the current folder, or in the source's folder or one below it."""
    try:
        below = list(source.parent.glob(f"*/{text}")) if not Path(text).is_absolute() else []
        places = [Path(text).expanduser().absolute(), source.parent / text, *sorted(below)]
        return [place for place in dict.fromkeys(places) if is_data(place)]
    except (OSError, RuntimeError, ValueError, NotImplementedError):
        return []  # text that is no path: with a NUL, of an unknown user's home, or no pattern that glob takes


def _file_of(name: str) -> Path | None:
    """The source file of a module, whether it is imported yet or not."""
    known = getattr(sys.modules.get(name), "__file__", None)
    if known is None and name not in sys.modules and all(part.isidentifier() for part in name.split(".")):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None
        known = spec.origin if spec is not None else None
    return Path(known) if known and Path(known).is_file() else None
