"""Which files a piece of code opens, seen through Python's audit events in the thread that runs it, and what they hold.

    with watching() as seen:
        model = make()
    seen.files()         what `make` opened for reading and did not write itself

Seen is every open that goes through Python (torch.load, NumPy, JSON, pickles, zip files). Libraries that open files in
C++ or Rust (onnxruntime, safetensors, TorchScript) are not seen here: `strangers` looks for the names of those.

A file opened while a module is imported, or inside a function that remembers its answer (`functools.cache`), is opened
once in a process, whichever model comes first. It is kept with that module, and counts for every model that uses it.
What an installed package opens while it is imported belongs to its version. `hearing` tells what is opened once sound
is heard from what is opened before: the first kind is known too late to be part of a key (`strangers.Later`).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import earmark
from earmark.onnx_files import external_data

WEIGHTS = frozenset(
    ".bin .ckpt .engine .gguf .h5 .hdf5 .jit .joblib .keras .mlmodel .model .msgpack .npy .npz .onnx .ort .pb "
    ".pdiparams .pdmodel .pkl .plan .pt .pth .safetensors .tflite .torchscript .ts".split()
)
"""Names of weights end so. Other text that a model holds is not taken for the name of a file."""
MOST = 10_000  # files of a folder that count
READ = 64 << 30  # bytes of a model's files that are read; what is more counts by size and time

_CODE = frozenset(".dll .dylib .nbc .nbi .py .pyc .pyd .pyi .so".split())
_SYSTEM = tuple(
    f"/{name}/" for name in "dev etc lib lib64 proc run sys usr/lib usr/share/locale usr/share/zoneinfo".split()
)
_SECRETS = ("token", "stored_tokens", ".netrc")
_OURS = f"{Path(earmark.__file__).parent}{os.sep}"


# --- whose a file is -----------------------------------------------------------------------------------------


def is_data(file: Path) -> bool:
    """Whether a file is one whose content may change a model's numbers: no code, no system file, no package's own."""
    return not (
        file.suffix in _CODE
        or ".so." in file.name
        or file.name in _SECRETS
        or (file.parent.name == "refs" and file.parent.parent.name.startswith("models--"))  # of the hub's cache
        or is_installed(file)
        or is_ours(file)
        or "__pycache__" in file.parts
        or str(file).startswith(_SYSTEM)
        or not file.is_file()
    )


def is_ours(file: Path) -> bool:
    """Whether a file is part of Earmark."""
    return str(file).startswith(_OURS)


def is_installed(file: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, which count by their versions."""
    return not file.is_absolute() or str(file).startswith(_installed_folders())


def is_own(file: Path) -> bool:
    """Whether a file is the user's own: no installed package's, and not Earmark's."""
    return not is_installed(file) and not is_ours(file)


@functools.cache
def _installed_folders() -> tuple[str, ...]:
    folders = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(dict.fromkeys(f"{folder}{os.sep}" for folder in [*folders, *(path.resolve() for path in folders)]))


# --- watching ------------------------------------------------------------------------------------------------

_here = threading.local()
_lock = threading.Lock()
_hooked = False
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
    global _hooked
    with _lock:
        if not _hooked:
            sys.addaudithook(_hook)
            _hooked = True
    seen, before = seen or Seen(), getattr(_here, "seen", None)
    seen.start = sys._getframe(2)
    _here.seen = seen
    try:
        yield seen
    finally:
        _here.seen, seen.start = before, None


def of_modules(names: Iterable[str], hearing: bool = False) -> list[Path]:
    """Files of data that these modules opened when they were imported, or in functions that remember."""
    with _lock:
        opened = [name for module in sorted(names) for name in _of_module.get((module, hearing), ())]
    return [Path(name) for name in dict.fromkeys(opened) if is_data(Path(name))]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    seen = getattr(_here, "seen", None) if event == "open" else None
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
    if not modules:
        seen.read[path] = None
    with _lock:
        for module in modules:
            _of_module.setdefault((module, seen.hearing), {})[path] = None


def _opened_once(frame: FrameType | None, start: FrameType | None) -> set[str] | None:
    """Modules of the user's that open a file once in a process; None where a package is being imported.

    Of Earmark's own functions only those remember that compare a file with a digest in the source.
    """
    modules: set[str] = set()
    while frame is not None and frame is not start:
        code = frame.f_code
        file = Path(code.co_filename)
        own = is_own(file) and file.suffix == ".py"
        imported = code.co_name == "<module>"
        if imported or hasattr(frame.f_globals.get(code.co_name), "cache_info"):
            if (not own and file.suffix == ".py") if imported else is_ours(file):
                return None
            modules |= {frame.f_globals.get("__name__", "")} if own else set()
        frame = frame.f_back
    return modules - {"__main__"}


# --- what files hold -----------------------------------------------------------------------------------------


def named_by(*given: Any) -> list[Path]:
    """Every file that parameters name, and every file in a folder that they name."""
    files: list[Path] = []
    for value in given:
        if isinstance(value, dict):
            files += named_by(*value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            files += named_by(*value)
        elif isinstance(value, str | Path) and 0 < len(str(value)) < 4096:
            with suppress(OSError, RuntimeError, ValueError):  # no home folder, or text that cannot be a path
                path = Path(value).expanduser().absolute()
                if path.is_file():
                    files.append(path)
                elif path.is_dir():
                    files += sorted(inside for inside in path.rglob("*") if inside.is_file())[:MOST]
    return list(dict.fromkeys(files))


def with_companions(files: Iterable[Path]) -> list[Path]:
    """The files, and those that they read besides: external data of ONNX files, the shards of an index."""
    known: dict[Path, None] = {}
    waiting = list(files)
    while waiting:
        file = waiting.pop(0)
        if file not in known:
            known[file] = None
            waiting += [other for other in _companions(file) if other.is_file()]
    return list(known)


def _companions(file: Path) -> list[Path]:
    if file.suffix == ".onnx":
        return external_data(file)
    if file.name.endswith(".index.json"):
        with suppress(OSError, ValueError, AttributeError, TypeError):
            shards = json.loads(file.read_text("utf-8")).get("weight_map", {})
            return [file.parent / name for name in sorted(set(shards.values()))]
    return []


def digests(files: Iterable[Path]) -> list[list[str]]:
    """Names (without their folders: a moved project keeps its keys) and digests of files, sorted."""
    pairs: list[list[str]] = []
    read = 0
    for file in sorted(dict.fromkeys(files)):
        with suppress(OSError):
            facts = file.stat()
            read += facts.st_size
            digest = digest_of(file) if read <= READ else f"{facts.st_size} bytes of {facts.st_mtime_ns}"
            # A file of the hub's cache has its revision in front, which stands for files opened unseen too.
            revision = [part for before, part in itertools.pairwise(file.parts) if before == "snapshots"]
            pairs.append(["/".join([*revision[:1], file.name]), digest])
    return sorted(pairs)


def digest_of(file: Path) -> str:
    """The SHA-256 of a file; "" where there is none. Blobs of the hub's cache are named by theirs."""
    try:
        real = file.resolve()
        if real.parent.name == "blobs" and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", real.name):
            return real.name
        facts = real.stat()
        return _digest(real, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
    except OSError:
        return ""


@functools.lru_cache(maxsize=4096)
def _digest(file: Path, size: int, changed: int, written: int, number: int) -> str:
    """Read once in a process for as long as a file stays as it is."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
