"""Which files a piece of code opens: seen through Python's audit events, in the thread that runs it.

    with watching() as seen:
        model = make()
    seen.files()         what `make` opened for reading and did not write itself

Seen is every open that goes through Python (torch.load, NumPy, JSON, pickles, zip files). Libraries that open files in
C++ or Rust (onnxruntime, safetensors, TorchScript) are not seen here: `identity.held` looks for those.

A file opened while a module is imported, or inside a function that remembers its answer (`functools.cache`), is opened
once in a process, whichever model comes first. It is kept with that module, and counts for every model that uses it.
What an installed package opens while it is imported belongs to its version. `hearing` tells what is opened once sound
is heard from what is opened before: the first kind is known too late to be part of a key (see `identity.later`).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from earmark.pipeline.identity.places import is_data, is_installed, is_ours

__all__ = ["Seen", "of_modules", "watching"]

_here = threading.local()
_lock = threading.Lock()
_installed = False
_of_module: dict[tuple[str, bool], dict[str, None]] = {}  # by module, and whether sound was heard already


class Seen:
    """Files that were opened, in order: read, and written."""

    def __init__(self, hearing: bool = False) -> None:
        self.hearing = hearing
        self.read: dict[str, None] = {}
        self.written: set[str] = set()
        self.start: FrameType | None = None  # where the watched code is called from

    def files(self) -> list[Path]:
        """Files of data that were read and that are still there; not those that the code writes itself."""
        return [Path(name) for name in self.read if name not in self.written and is_data(Path(name))]


@contextmanager
def watching(seen: Seen | None = None) -> Iterator[Seen]:
    """Note what this thread opens until the end of the block; blocks may lie inside each other."""
    _install()
    seen, before = seen or Seen(), getattr(_here, "seen", None)
    seen.start = sys._getframe(2)
    _here.seen = seen
    try:
        yield seen
    finally:
        _here.seen, seen.start = before, None


def of_modules(names: set[str], hearing: bool = False) -> list[Path]:
    """Files of data that these modules opened when they were imported, or in functions that remember."""
    with _lock:
        found = [name for module in sorted(names) for name in _of_module.get((module, hearing), ())]
    return [Path(name) for name in dict.fromkeys(found) if is_data(Path(name))]


def _install() -> None:
    global _installed
    with _lock:
        if not _installed:
            sys.addaudithook(_hook)
            _installed = True


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open":
        return
    seen = getattr(_here, "seen", None)
    if seen is None:
        return
    _here.seen = None  # what is opened in here is not the model's
    try:
        with suppress(Exception):  # an error would forbid the open
            _note(seen, *arguments)
    finally:
        _here.seen = seen


def _note(seen: Seen, name: Any, mode: Any, flags: Any) -> None:
    if isinstance(name, int):
        return
    path = str(Path(os.fsdecode(name)).absolute())
    if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
        seen.written.add(path)
        return
    modules = _opened_once(sys._getframe(2), seen.start)
    if modules is None:
        return
    if modules:
        with _lock:
            for module in modules:
                _of_module.setdefault((module, seen.hearing), {})[path] = None
    else:
        seen.read[path] = None


def _opened_once(frame: FrameType | None, start: FrameType | None) -> set[str] | None:
    """Modules of the user's that open a file once in a process; None where a package is being imported.

    Of Earmark's own functions only those remember that compare a file with a digest in the source.
    """
    modules: set[str] = set()
    while frame is not None and frame is not start:
        code = frame.f_code
        file = Path(code.co_filename)
        own = not is_installed(file) and not is_ours(file) and file.suffix == ".py"
        if code.co_name == "<module>":
            if not own and file.suffix == ".py":
                return None
            modules |= {frame.f_globals.get("__name__", "")} if own else set()
        elif hasattr(frame.f_globals.get(code.co_name), "cache_info"):
            if is_ours(file):
                return None
            modules |= {frame.f_globals.get("__name__", "")} if own else set()
        frame = frame.f_back
    return modules - {"__main__"}
