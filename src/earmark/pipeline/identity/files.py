"""What files hold, as digests: read once in a process for as long as a file stays as it is."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from earmark.extractors.onnx_files import external_data

__all__ = ["digest_of", "digests", "named_by", "with_companions"]

MOST = 10_000  # files of a folder that count
READ = 64 << 30  # bytes of a model's files that are read; what is more counts by size and time


def named_by(*given: Any) -> list[Path]:
    """Every file that parameters name, and every file in a folder that they name."""
    found: list[Path] = []
    for value in given:
        if isinstance(value, dict):
            found += named_by(*value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            found += named_by(*value)
        elif isinstance(value, str | Path) and 0 < len(str(value)) < 4096:
            found += _at(Path(value))
    return list(dict.fromkeys(found))


def _at(place: Path) -> list[Path]:
    try:
        place = place.expanduser().absolute()
        if place.is_file():
            return [place]
        if place.is_dir():
            return sorted(path for path in place.rglob("*") if path.is_file())[:MOST]
    except (OSError, RuntimeError, ValueError):  # no home folder, or text that cannot be a path
        pass
    return []


def with_companions(files: Iterable[Path]) -> list[Path]:
    """The files, and those that they read besides: external data of ONNX files, the shards of an index."""
    found: dict[Path, None] = {}
    waiting = list(files)
    while waiting:
        file = waiting.pop(0)
        if file not in found:
            found[file] = None
            waiting += [other for other in _companions(file) if other.is_file()]
    return list(found)


def _companions(file: Path) -> list[Path]:
    if file.suffix == ".onnx":
        return external_data(file)
    if file.name.endswith(".index.json"):
        try:
            shards = json.loads(file.read_text("utf-8")).get("weight_map", {})
            return [file.parent / name for name in sorted(set(shards.values()))]
        except (OSError, ValueError, AttributeError, TypeError):
            return []
    return []


def digests(files: Iterable[Path]) -> list[list[str]]:
    """Names (without their folders: a moved project keeps its keys) and digests of files, sorted."""
    found: list[list[str]] = []
    read = 0
    for file in sorted(dict.fromkeys(files)):
        try:
            facts = file.stat()
        except OSError:
            continue
        read += facts.st_size
        digest = digest_of(file) if read <= READ else f"{facts.st_size} bytes of {facts.st_mtime_ns}"
        found.append([_name(file), digest])
    return sorted(found)


def _name(file: Path) -> str:
    """A file's name; one of the hub's cache has its revision in front, which stands for files opened unseen too."""
    revision = [part for before, part in itertools.pairwise(file.parts) if before == "snapshots"]
    return "/".join([*revision[:1], file.name])


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
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
