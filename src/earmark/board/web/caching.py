"""Rendered pages kept by what they show, so that a page is made once for each state of the board.

A key holds the generation of the store, so nothing is ever stale: what the board no longer shows is not asked for any
more and falls out. Bodies are kept compressed too; a browser that has the page gets 304.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

__all__ = ["Kept", "PageCache", "answer"]

_LEVEL, _FAST_LEVEL = 4, 1  # of compression: half the work of 6 for a tenth more bytes; for long bodies less still
_LONG = 200_000
_LEAST = 1000


@dataclass(frozen=True)
class Kept:
    """A body as it is sent."""

    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    compressed: bytes = b""
    tag: str = ""

    @property
    def size(self) -> int:
        return len(self.body) + len(self.compressed)


def kept(body: str | bytes, media_type: str = "text/html; charset=utf-8", headers: Mapping[str, str] = {}) -> Kept:
    """A body with its compressed form and its tag."""
    data = body.encode("utf-8", "replace") if isinstance(body, str) else body
    packed = gzip.compress(data, _FAST_LEVEL if len(data) > _LONG else _LEVEL, mtime=0) if len(data) >= _LEAST else b""
    return Kept(data, media_type, dict(headers), packed, f'W/"{hashlib.sha256(data).hexdigest()[:20]}"')


class PageCache:
    """The pages asked for last, up to a number of bytes. Safe to use from many threads."""

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self._most = most_bytes
        self._pages: OrderedDict[Hashable, Kept] = OrderedDict()
        self._size = 0
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Kept | None:
        with self._lock:
            found = self._pages.get(key)
            if found is not None:
                self._pages.move_to_end(key)
            return found

    def put(self, key: Hashable, page: Kept) -> None:
        with self._lock:
            old = self._pages.pop(key, None)
            self._size += page.size - (old.size if old else 0)
            self._pages[key] = page
            while self._size > self._most and self._pages:
                _, gone = self._pages.popitem(last=False)
                self._size -= gone.size

    def fetch(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """The page under a key. While one thread makes it, others that ask for it wait for the same."""
        found = self.get(key)
        if found is not None:
            return found
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            found = self.get(key)
            if found is None:
                try:
                    found = make()
                    self.put(key, found)
                finally:
                    with self._lock:
                        self._making.pop(key, None)
        return found


def answer(request: Request, page: Kept) -> Response:
    """The page, compressed where the browser takes it, or 304 where the browser has it."""
    headers = {
        "etag": page.tag,
        "cache-control": "no-cache",
        "vary": "accept-encoding, hx-request",
        **page.headers,
    }
    known = [part.strip() for part in request.headers.get("if-none-match", "").split(",")]
    if page.tag in known:
        return Response(status_code=304, headers=headers)
    body = page.body
    if page.compressed and "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        body = page.compressed
    return Response(body, media_type=page.media_type, headers=headers)
