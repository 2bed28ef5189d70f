"""Looking after a cache: what it holds, what may go, and whether every byte is as it was written.

Entries are never wrong, only absent: whatever is removed here is computed again when a run asks for it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from earmark.errors import InputError
from earmark.places import RemotePath, is_remote, locate, read_heads
from earmark.progress import Progress, tracked
from earmark.runs.folder import read_record
from earmark.runs.store import (
    HEADER_GUESS,
    RUNNING,
    STALE_SECONDS,
    SUFFIX,
    Cache,
    Damaged,
    read_header,
    read_seal,
    unpack,
)
from earmark.wording import first_of

_PART = ".part"
_MARK_SECONDS = 24 * 3600.0
"""How long the mark of a run on another machine counts."""
_DAY = 24 * 3600.0


class Stored(NamedTuple):
    """One file of a cache: an entry, or a part that a writer has not finished."""

    path: Path
    kind: str  # the first folder: vectors, scores, codes …
    size: int
    written: float  # seconds since 1970


class Share(NamedTuple):
    """What a kind takes up."""

    kind: str
    entries: int
    size: int
    oldest: float
    newest: float


class Removal(NamedTuple):
    """What was removed, or would be; `kept` is what stays."""

    removed: int
    size: int
    kept: int
    kept_size: int


def stored_in(cache: Cache) -> list[Stored]:
    """Every entry and unfinished part of a cache, oldest first. Other files are nobody's business."""
    try:
        files = list(_files(cache.root))
    except OSError as error:
        raise InputError(
            f"The cache {cache.url} cannot be read ({error.strerror or error}); check its place."
        ) from error
    return sorted(files, key=lambda file: (file.written, str(file.path)))


def _files(root: Path) -> Iterator[Stored]:
    if is_remote(root):
        yield from _files_elsewhere(root)
        return
    for path in root.rglob("*"):
        if path.suffix in (SUFFIX, _PART):
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                status = path.stat()
                yield Stored(path, _kind(path, root), status.st_size, status.st_mtime)


def _files_elsewhere(root: RemotePath) -> Iterator[Stored]:
    """Servers say in many ways when a file was written: its own header says it in one."""
    try:
        remote = [path for path in root.tree if path.suffix == SUFFIX]
    except FileNotFoundError:
        return
    sizes = [path.listed_status().st_size for path in remote]
    paths = [locate(str(path)) for path in remote]
    heads = read_heads(paths, [min(HEADER_GUESS, size) for size in sizes])
    for path, size, head in zip(paths, sizes, heads, strict=True):
        if head is not None:
            yield Stored(path, _kind(path, root), size, _written(head))


def _written(head: bytes) -> float:
    """When an entry was written, by its header; 0 where that cannot be read."""
    try:
        return float(read_header(head, read_seal(head))["meta"].get("written", 0)) / 1e9
    except (Damaged, ValueError):
        return 0.0


def _kind(path: object, root: object) -> str:
    return str(path)[len(str(root)) :].strip("/").split("/")[0]


def shares(files: Sequence[Stored]) -> list[Share]:
    """What each kind takes up, the largest first."""
    kinds: dict[str, list[Stored]] = {}
    for file in files:
        kinds.setdefault(file.kind, []).append(file)
    made = [
        Share(kind, len(own), sum(file.size for file in own), min(f.written for f in own), max(f.written for f in own))
        for kind, own in kinds.items()
    ]
    return sorted(made, key=lambda share: -share.size)


def running_in(cache: Cache) -> list[str]:
    """The runs that use a cache now, as `machine, process 123`; marks of those that were killed are cleared away."""
    folder = cache.root / RUNNING
    if not cache.local or not folder.is_dir():
        return []
    found = []
    for mark in sorted(folder.iterdir()):
        machine, process, _ = mark.name.rsplit("-", 2) if mark.name.count("-") > 1 else (mark.name, "", "")
        with contextlib.suppress(FileNotFoundError):  # it has ended this moment
            if _alive(machine, process, time.time() - mark.stat().st_mtime):
                found.append(f"{machine}, process {process}")
            else:
                mark.unlink()
    return found


def _alive(machine: str, process: str, age: float) -> bool:
    if machine != (platform.node() or "here") or os.name == "nt" or not process.isdigit():
        return age < _MARK_SECONDS
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True


def mentioned_in(runs: Sequence[str | Path]) -> set[str]:
    """Every text in the records of run folders: the keys of what they measured are among them."""
    words: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, str):
            words.add(value)
        elif isinstance(value, dict):
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    for run in runs:
        collect(read_record(run))
    return words


def prune(
    cache: Cache,
    *,
    older_than: float | None = None,
    keep: int | None = None,
    unused_by: Sequence[str | Path] = (),
    kinds: Sequence[str] = (),
    dry: bool = False,
    progress: Progress = False,
) -> Removal:
    """Remove entries, oldest first.

    Args:
        cache: The cache.
        older_than: Those that were written more than so many days ago.
        keep: Until the rest takes up at most so many bytes.
        unused_by: Run folders: entries that none of them refers to.
        kinds: Only entries of these kinds; none named means all.
        dry: Count, and remove nothing.
        progress: Whether a bar is shown.
    """
    if not dry and (runs := running_in(cache)):
        raise InputError(f"A run uses the cache {cache.url} ({first_of(runs, 1)}): prune it when that has ended.")
    files = stored_in(cache)
    known = mentioned_in(unused_by)
    own = [file for file in files if not kinds or file.kind in kinds]
    chosen = [file for file in own if _expired(file, older_than) or (unused_by and not _mentioned(file, known))]
    if keep is not None:
        gone = set(chosen)
        younger = [file for file in own if file not in gone]
        left = sum(file.size for file in younger)
        for file in younger:
            if left <= keep:
                break
            chosen.append(file)
            left -= file.size
    for file in tracked([] if dry else chosen, "removing", "entries", progress=bool(progress)):
        file.path.unlink(missing_ok=True)
    size = sum(file.size for file in chosen)
    return Removal(len(chosen), size, len(files) - len(chosen), sum(file.size for file in files) - size)


def _mentioned(file: Stored, words: set[str]) -> bool:
    """Whether a record names the entry, or the folder it lies in, such as that of a model's vectors."""
    return not words.isdisjoint((file.path.name.removesuffix(SUFFIX), file.path.parent.name))


def _expired(file: Stored, days: float | None) -> bool:
    age = time.time() - file.written
    return (days is not None and age > days * _DAY) or (file.path.suffix == _PART and age > STALE_SECONDS)


def damaged_in(cache: Cache, *, remove: bool = False, progress: Progress = False) -> list[tuple[Stored, str]]:
    """Read every byte of every entry; those that are not as they were written, with what is wrong with each."""
    damaged: list[tuple[Stored, str]] = []
    entries = [file for file in stored_in(cache) if file.path.suffix == SUFFIX]
    for file in tracked(entries, "reading", "entries", progress=bool(progress)):
        try:
            unpack(file.path.read_bytes())
        except FileNotFoundError:
            continue
        except (Damaged, ValueError, KeyError) as error:
            damaged.append((file, str(error)))
            if remove:
                file.path.unlink(missing_ok=True)
    return damaged
