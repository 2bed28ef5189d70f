"""Open a model and find out what it reads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from earmark.pipeline import keys
from earmark.pipeline.identity import files, libraries, watching
from earmark.pipeline.identity.code import Code, code_of_modules
from earmark.pipeline.identity.held import globals_of, held_by
from earmark.pipeline.identity.places import is_installed, is_ours

__all__ = ["Code", "Reads", "opening", "stated_by"]

T = TypeVar("T")


@dataclass(frozen=True)
class Reads:
    """Digests of sources by module, versions by distribution, and digests of files by their names."""

    code: dict[str, str]
    libraries: dict[str, str]
    files: list[list[str]]
    paths: frozenset[Path] = frozenset()  # where the files lie; no part of the key
    own: frozenset[str] = frozenset()  # modules of the user's; no part of the key

    @property
    def key(self) -> str:
        return keys.fingerprint(self.code, self.libraries, self.files)


def opening(make: Callable[[], T], modules: Iterable[str] = (), given: Iterable[Any] = ()) -> tuple[T, Reads]:
    """What `make` returns, and what it reads.

    `modules` are those that the spec names; `given` are parameters, which may name files and folders.
    """
    with watching.watching() as seen:
        made = make()
    return made, _reads(made, modules, given, seen.files())


def stated_by(made: Any, modules: Iterable[str] = (), given: Iterable[Any] = ()) -> Reads:
    """What something that is already made reads, as far as it can be told afterwards."""
    return _reads(made, modules, given, [])


def _reads(made: Any, modules: Iterable[str], given: Iterable[Any], opened: list[Path]) -> Reads:
    inner = [getattr(made, name) for name in ("model", "codec") if hasattr(made, name)]
    first = {kind.__module__ for thing in [made, *inner] for kind in type(thing).__mro__}
    code = code_of_modules({*first, *modules})
    inside = held_by([made, *globals_of(code.own)])
    own = {name for name in inside.modules if _is_own(name)}
    if not own <= code.own:  # parts that came by a dynamic import
        code = code_of_modules({*first, *modules, *own})
    packages = code.packages | libraries.used_by(name for name in inside.modules if name.partition(".")[0] != "earmark")
    found = [
        *files.named_by(*given),
        *opened,
        *watching.of_modules(code.own),
        *inside.files,
        *code.files,
        *_stated(made, inner),
    ]
    paths = files.with_companions(found)
    return Reads(
        code.sources, libraries.versions_of(packages), files.digests(paths), frozenset(paths), frozenset(code.own)
    )


def _stated(made: Any, inner: Iterable[Any]) -> list[Path]:
    """Files that a model says it reads."""
    listed = [getattr(thing, "files", None) for thing in (made, *inner)]
    return [path for one in listed if isinstance(one, list | tuple | set | frozenset) for path in files.named_by(*one)]


def _is_own(module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or module == "__main__":
        return False
    return not is_installed(Path(file)) and not is_ours(Path(file))
