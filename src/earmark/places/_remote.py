"""A path on a file system elsewhere, with the verbs of `pathlib.Path` that Earmark uses.

A file is written by one upload, which an object store shows when it is whole; other file systems get a part that is
renamed. Folders need not be made on object stores, and are there as long as a file lies in them.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, NamedTuple

from earmark.errors import InputError
from earmark.places._keys import shown
from earmark.places._requests import HTTP, OBJECT_STORES, persist, reach, scheme_of
from earmark.places._streams import BLOCK, WINDOW, RangeReader, Stream, fetch_ranges, following

_WHOLE = 8 << 20  # bytes up to which a file is one request


class Status(NamedTuple):
    """What a listing says of a file: its size, and a text that changes with its content."""

    st_size: int
    version: str


_MARKS = (
    "ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "Digest",
    "LastModified", "last_modified", "Last-Modified", "updated", "mtime", "modify", "created",
)  # fmt: skip
"""What changes with the content of a file, as libraries call it; the first that is there counts."""
_listed: dict[str, Status] = {}


@functools.total_ordering
class RemotePath:
    """`s3://bucket/folder/file.csv` as a path. Text such as `?` and `%` in it is part of the name; of http and https a
    `?` begins a query."""

    def __init__(self, url: str) -> None:
        web = scheme_of(url) in HTTP
        scheme, _, rest = (shown(url) if web else url).partition("://")
        rest, mark, query = rest.partition("?") if web else (rest, "", "")
        self._scheme = scheme
        self._query = mark + query
        self._parts = tuple(part for part in rest.split("/") if part)

    # --- the name --------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"{self._scheme}://{'/'.join(self._parts)}{self._query}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __lt__(self, other: RemotePath) -> bool:
        return (self._scheme, self._parts) < (other._scheme, other._parts)

    def __truediv__(self, name: str | os.PathLike[str]) -> Any:
        from earmark.places._locating import is_url, locate

        if isinstance(name, RemotePath):
            return name
        text = os.fspath(name)
        if is_url(text) or PurePath(text).is_absolute():
            return locate(text)
        parts = list(self._parts)
        for part in text.replace("\\", "/").split("/") if os.name == "nt" else text.split("/"):
            if part == ".." and len(parts) > 1:
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return self._with(parts)

    def __rtruediv__(self, folder: object) -> RemotePath:
        return self  # as an absolute path does

    def _with(self, parts: Any) -> RemotePath:
        return RemotePath(f"{self._scheme}://{'/'.join(parts)}")

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"{self._scheme}://", *self._parts)

    @property
    def name(self) -> str:
        return self._parts[-1] if self._parts else ""

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def parent(self) -> RemotePath:
        return self._with(self._parts[:-1]) if len(self._parts) > 1 else self

    def with_name(self, name: str) -> RemotePath:
        return self._with([*self._parts[:-1], name])

    def with_suffix(self, suffix: str) -> RemotePath:
        return self.with_name(PurePosixPath(self.name).with_suffix(suffix).name)

    def relative_to(self, other: RemotePath) -> PurePosixPath:
        if not self.is_relative_to(other):
            raise ValueError(f"{self} does not lie under {other}")
        return PurePosixPath(*self._parts[len(other._parts) :])

    def is_relative_to(self, other: object) -> bool:
        if not isinstance(other, RemotePath) or other._scheme != self._scheme:
            return False
        return self._parts[: len(other._parts)] == other._parts

    def as_posix(self) -> str:
        return str(self)

    def is_absolute(self) -> bool:
        return True

    def absolute(self) -> RemotePath:
        return self

    def expanduser(self) -> RemotePath:
        return self

    def resolve(self) -> RemotePath:
        return self

    # --- what is there ---------------------------------------------------------------------------------------

    def check_scheme(self) -> None:
        """Refuse an address of a kind that nobody knows, or whose library is not installed; nothing is asked yet."""
        reach(str(self))

    @property
    def object_store(self) -> bool:
        return scheme_of(str(self)) in OBJECT_STORES

    def _info(self) -> dict[str, Any] | None:
        def ask() -> dict[str, Any]:
            fs, path = reach(str(self))
            fs.invalidate_cache(path)
            try:
                found: dict[str, Any] = fs.info(path)
            except FileNotFoundError as error:
                # fsspec's HTTP says so of every failure; what the server answered is its cause.
                cause = error.__cause__ if scheme_of(str(self)) in HTTP else None
                if cause is None or getattr(cause, "status", 0) in (404, 410):
                    raise
                raise cause from None
            return {**found, "type": "directory"} if _is_page_of_folder(found) else found

        try:
            return persist(ask, str(self))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def exists(self) -> bool:
        return self._info() is not None

    def is_file(self) -> bool:
        found = self._info()
        return found is not None and found.get("type") != "directory"

    def is_dir(self) -> bool:
        found = self._info()
        return found is not None and found.get("type") == "directory"

    def stat(self) -> Status:
        found = self._info()
        if found is None:
            raise FileNotFoundError(2, "No such file", str(self))
        if found.get("type") == "directory":
            raise IsADirectoryError(21, "Is a folder", str(self))
        return self._status(found)

    def _entries(self) -> dict[str, dict[str, Any]]:
        """What a folder holds, by name; `FileNotFoundError` where there is none."""

        def ask() -> list[dict[str, Any]]:
            fs, path = reach(str(self))
            fs.invalidate_cache(path)
            listed: list[dict[str, Any]] = fs.ls(path, detail=True)
            return listed

        found = persist(ask, str(self), doing="list")
        own = reach(str(self)).path
        entries = {entry["name"].rstrip("/"): entry for entry in found}
        return {
            name.rpartition("/")[2]: entry
            for name, entry in entries.items()
            if name.strip("/") != own.strip("/") and not self._is_button(name)
        }

    def _status(self, entry: dict[str, Any]) -> Status:
        size = entry.get("size")
        if size is None:
            raise InputError(f"{self}: its server does not say how large it is; fetch it to this machine.")
        version = next((str(entry[mark]) for mark in _MARKS if entry.get(mark)), "")
        return Status(int(size), f"{size} {version}")

    def listing(self) -> dict[str, Status | None]:
        """The names in a folder, with the status of those that are files; `FileNotFoundError` where there is none.

        A server whose listings lack sizes is asked for each file."""
        entries = self._entries()
        files = {name: entry for name, entry in entries.items() if entry.get("type") != "directory"}
        short = [self / name for name, entry in files.items() if entry.get("size") is None]
        with ThreadPoolExecutor(16) as pool:
            asked = dict(zip([file.name for file in short], pool.map(RemotePath.stat, short), strict=True))
        statuses = {name: asked.get(name) or self._status(entry) for name, entry in files.items()}
        _listed.update({str(self / name): status for name, status in statuses.items()})
        return {name: statuses.get(name) for name in entries}

    def iterdir(self) -> Iterator[RemotePath]:
        return (self / name for name in self._entries())

    def _is_button(self, name: str) -> bool:
        """Whether a listing's entry is a link of the page, such as to another order of it."""
        return "?" in name and scheme_of(str(self)) in HTTP

    @functools.cached_property
    def tree(self) -> dict[RemotePath, Status | None]:
        """Every file under a folder, by one listing (in pages), in the order of their names; listed once. Where the
        listing has no sizes, `listed_status` asks."""

        def ask() -> dict[str, dict[str, Any]]:
            fs, path = reach(str(self))
            fs.invalidate_cache()
            found: dict[str, dict[str, Any]] = fs.find(path, detail=True)
            return found

        own = reach(str(self)).path.strip("/")
        found = persist(ask, str(self), doing="list")
        names = {name.strip("/").removeprefix(own).lstrip("/"): entry for name, entry in found.items()}
        statuses = {
            self / name: None if entry.get("size") is None else self._status(entry)
            for name, entry in sorted(names.items())
            if name and not name.endswith("/") and entry.get("type") != "directory" and not self._is_button(name)
        }
        _listed.update({str(file): status for file, status in statuses.items() if status is not None})
        return statuses

    def listed_status(self) -> Status:
        """What the last listing of its corpus in this process said of a file, else what its server says now."""
        known = _listed.get(str(self))
        if known is None:
            known = _listed[str(self)] = self.stat()
        return known

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Files under a folder whose names below it match."""
        try:
            below = self.tree
        except FileNotFoundError:
            return iter(())
        depth = len(PurePosixPath(pattern).parts)
        chosen = [file for file in below if len(file._parts) - len(self._parts) == depth]
        return (file for file in chosen if file.relative_to(self).match(pattern))

    # --- reading ---------------------------------------------------------------------------------------------

    def open(
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """The file as a stream to read; to write one, `earmark.atomic` has `replacing` and `write_whole`."""
        if mode not in ("r", "rt", "rb"):
            raise io.UnsupportedOperation(f"{self} is written as a whole, not in mode {mode!r}")
        status = self.stat()
        path = reach(str(self)).path
        raw = RangeReader(str(self), path, status.st_size, lambda: self.stat().version != status.version)
        stream = Stream(raw)
        if mode == "rb":
            return stream
        return _TextStream(stream, encoding=encoding or "utf-8", errors=errors, newline=newline)

    def read_bytes(self) -> bytes:
        """All bytes: a small file by one request, a large one in parallel ranges."""

        def ask() -> bytes:
            fs, path = reach(str(self))
            try:
                start: bytes = fs.cat_file(path, start=0, end=_WHOLE)
            except OSError as error:
                if error.errno == errno.EINVAL and self.stat().st_size == 0:
                    return b""  # servers refuse a range of nothing
                raise
            return start

        data = persist(ask, str(self))
        if len(data) != _WHOLE:
            return data
        before = self.stat()
        path = reach(str(self)).path
        pieces = [data]
        tell = following.get()
        for at in range(_WHOLE, before.st_size, WINDOW):
            end = min(at + WINDOW, before.st_size)
            ranges = [(start, min(start + BLOCK, end)) for start in range(at, end, BLOCK)]
            pieces += [piece or b"" for piece in fetch_ranges(str(self), [path] * len(ranges), ranges)]
            if tell is not None:
                tell(str(self), end, before.st_size)
        data = b"".join(pieces)
        if len(data) != before.st_size or self.stat().version != before.version:
            raise InputError(f"{self} was changed while it was read: try again when nobody writes it.")
        return data

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        data = self.read_bytes().decode(encoding or "utf-8", errors or "strict")
        return data.replace("\r\n", "\n").replace("\r", "\n")

    # --- writing ---------------------------------------------------------------------------------------------

    def write_bytes(self, data: bytes) -> int:
        """Write the file, whole or not at all."""

        def put() -> None:
            fs, path = reach(str(self))
            with self._in_place(fs, path) as target:
                fs.pipe_file(target, data)

        persist(put, str(self), doing="write")
        return len(data)

    def write_text(self, text: str, encoding: str | None = None, errors: str | None = None) -> int:
        return self.write_bytes(text.encode(encoding or "utf-8", errors or "strict"))

    def upload(self, file: Path) -> None:
        """Write what a file of this machine holds, in parts where it is large."""
        size = file.stat().st_size
        if size <= _WHOLE:
            self.write_bytes(file.read_bytes())
            return
        tell = following.get()

        def put() -> None:
            from fsspec.callbacks import Callback

            fs, path = reach(str(self))
            done = Callback(hooks={"told": lambda _, value, **__: tell(str(self), value, size) if tell else None})
            with self._in_place(fs, path) as target:
                fs.put_file(str(file), target, callback=done)

        persist(put, str(self), doing="write")

    @contextlib.contextmanager
    def _in_place(self, fs: Any, path: str) -> Iterator[str]:
        """Where to write so that the file appears whole."""
        if self.object_store:
            yield path
            return
        part = f"{path}.{os.getpid()}-{threading.get_ident()}-{secrets.token_hex(4)}.part"
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        try:
            yield part
            fs.mv(part, path)
        finally:
            with contextlib.suppress(Exception):
                if fs.exists(part):
                    fs.rm_file(part)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """A folder, where there are such things; a file of that name is refused."""
        if self.object_store:
            return
        fs, path = reach(str(self))
        persist(lambda: fs.makedirs(path, exist_ok=True), str(self), doing="write")

    def unlink(self, missing_ok: bool = False) -> None:
        def remove() -> None:
            fs, path = reach(str(self))
            fs.rm_file(path)

        try:
            persist(remove, str(self), doing="remove")
        except FileNotFoundError:
            if not missing_ok:
                raise


class _TextStream(io.TextIOWrapper):
    """Text of a `Stream`; leaving its `with` block checks as that does."""

    def __init__(self, stream: Stream, **how: Any) -> None:
        super().__init__(stream, **how)
        self._stream = stream

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._stream._ranges.check()
        finally:
            self.close()


def _is_page_of_folder(entry: dict[str, Any]) -> bool:
    """Whether what fsspec's HTTP takes for a file is a folder: servers lead from `/x` to `/x/`, a page."""
    return entry.get("mimetype") == "text/html" and str(entry.get("url", "")).partition("?")[0].endswith("/")
