"""From a text to a path, here or elsewhere; and what is asked of many files at once."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeGuard, cast

from earmark.errors import InputError, Unreachable
from earmark.places._keys import shown, spelled
from earmark.places._remote import RemotePath
from earmark.places._requests import HTTP, reach, scheme_of, server_of
from earmark.places._streams import fetch_ranges, following
from earmark.progress import Bar, progress_bar

_URL = re.compile(r"(?:[a-z0-9]+::)*([a-z][a-z0-9+.-]+)://", re.I)
_FOLDERS = 64  # that are listed one by one
_AT_ONCE = 16  # files that a server is asked for


def is_url(name: object) -> bool:
    """Whether a text names a file elsewhere: `s3://bucket/x`, not `file:///x` or `C:\\x`."""
    text = spelled(str(name))
    match = _URL.match(text)
    return match is not None and match[1].lower() not in ("file", "local")


def is_remote(path: object) -> TypeGuard[RemotePath]:
    """Whether a path lies elsewhere."""
    return isinstance(path, RemotePath)


def locate(name: str | os.PathLike[str]) -> Path:
    """A path of a path; of a URL, a `RemotePath`, which has the verbs of one and shows no keys.

    Raises:
        InputError: A URL that carries a password.
    """
    if is_remote(name):
        return cast(Path, name)
    text = os.fspath(name)
    if is_url(text):
        return cast(Path, RemotePath(shown(spelled(text))))
    local = re.match(r"(?:file|local)://(?=/|[A-Za-z]:)", text)
    if local is None:
        return Path(text)
    rest = text[local.end() :]
    return Path(rest[1:] if re.match(r"/[A-Za-z]:", rest) else rest)


def sizes_in(folder: Path) -> dict[str, int]:
    """The files of a folder, by name, with their sizes; none where there is no such folder."""
    sizes: dict[str, int] = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        if is_remote(folder):
            return {name: status.st_size for name, status in folder.listing().items() if status is not None}
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process has removed it
                    if entry.is_file():
                        sizes[entry.name] = entry.stat().st_size
    return sizes


def which_exist(names: Iterable[str]) -> dict[str, bool]:
    """Whether each of many files is there; those elsewhere by listings of their folders, not one by one."""
    files = {name: locate(name) for name in dict.fromkeys(names)}
    remote: dict[str, RemotePath] = {name: file for name, file in files.items() if is_remote(file)}
    listed: set[RemotePath] = set()
    by_server: dict[str, list[RemotePath]] = {}
    for file in remote.values():
        by_server.setdefault(server_of(str(file)), []).append(file)
    for together in by_server.values():
        folders = list(dict.fromkeys(file.parent for file in together))
        many = len(folders) > _FOLDERS
        if many:
            folders = [functools.reduce(_shared, folders)]
        for folder in folders:
            with suppress(FileNotFoundError, NotADirectoryError), _without_listing(folder):
                listed.update(folder.tree if many else folder.iterdir())
    # A server of web pages need not list its folders, or spells names its own way.
    asked = [file for file in remote.values() if file not in listed and scheme_of(str(file)) in HTTP]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        listed.update(file for file, there in zip(asked, pool.map(RemotePath.is_file, asked), strict=True) if there)
    return {name: file in listed if name in remote else file.is_file() for name, file in files.items()}


@contextmanager
def _without_listing(folder: RemotePath) -> Iterator[None]:
    try:
        yield
    except Unreachable:
        raise
    except InputError:
        if scheme_of(str(folder)) not in HTTP:
            raise


def _shared(one: RemotePath, other: RemotePath) -> RemotePath:
    """The folder that two folders lie in."""
    while not other.is_relative_to(one):
        one = one.parent
    return one


def read_heads(files: Sequence[Path], sizes: Sequence[int]) -> list[bytes | None]:
    """The first bytes of files that lie together, elsewhere many at a time; None of one that is not there."""
    if files and is_remote(files[0]):
        paths = [reach(str(file)).path for file in files]
        return fetch_ranges(str(files[0]), paths, [(0, size) for size in sizes])
    return [_head(file, size) for file, size in zip(files, sizes, strict=True)]


def _head(file: Path, size: int) -> bytes | None:
    try:
        with file.open("rb") as stream:
            return stream.read(size)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


@contextmanager
def showing_transfers(progress: bool) -> Iterator[None]:
    """Show a bar for each large file that is fetched or sent in this block."""
    with ExitStack() as bars:
        shown: dict[str, Bar] = {}

        def tell(url: str, done: int, whole: int) -> None:
            if url not in shown:
                bars.close()
                shown.clear()
                title = url.rpartition("/")[2]
                shown[url] = bars.enter_context(progress_bar(progress, whole / 1e6, title, "MB"))
            shown[url].reach(done / 1e6)

        token = following.set(tell)
        try:
            yield
        finally:
            following.reset(token)
