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

_LEVEL, _FAST_LEVEL = 4, 1  # of compression: half the work of 6 for a tenth more bytes; for long bodies less still
_LONG = 200_000
_LEAST = 1000


@dataclass(frozen=True)
class Page:
    """A body as it is sent, with its compressed form (where that is worth it) and its tag."""

    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    compressed: bytes = b""
    tag: str = ""

    @property
    def size(self) -> int:
        return len(self.body) + len(self.compressed)


def packed(body: str | bytes, media_type: str = "text/html; charset=utf-8", headers: Mapping[str, str] = {}) -> Page:
    """A body with its compressed form and its tag."""
    data = body.encode("utf-8", "replace") if isinstance(body, str) else body
    level = _FAST_LEVEL if len(data) > _LONG else _LEVEL
    compressed = gzip.compress(data, level, mtime=0) if len(data) >= _LEAST else b""
    return Page(data, media_type, dict(headers), compressed, f'W/"{hashlib.sha256(data).hexdigest()[:20]}"')


class PageCache:
    """The pages asked for last, up to a number of bytes. Safe to use from many threads."""

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self._most = most_bytes
        self._pages: OrderedDict[Hashable, Page] = OrderedDict()
        self._size = 0
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Page | None:
        with self._lock:
            page = self._pages.get(key)
            if page is not None:
                self._pages.move_to_end(key)
            return page

    def put(self, key: Hashable, page: Page) -> None:
        with self._lock:
            old = self._pages.pop(key, None)
            self._size += page.size - (old.size if old else 0)
            self._pages[key] = page
            while self._size > self._most and self._pages:
                _, gone = self._pages.popitem(last=False)
                self._size -= gone.size

    def fetch(self, key: Hashable, make: Callable[[], Page]) -> Page:
        """The page under a key. While one thread makes it, others that ask for it wait for the same."""
        page = self.get(key)
        if page is not None:
            return page
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            page = self.get(key)
            if page is None:
                try:
                    page = make()
                    self.put(key, page)
                finally:
                    with self._lock:
                        self._making.pop(key, None)
        return page


def answer(request: Request, tag: str, make: Callable[[], Page], headers: Mapping[str, str] | None = None) -> Response:
    """What `make` returns, compressed where the browser takes it; 304, and nothing is made, where it has the tag."""
    sent = {"etag": tag, "cache-control": "no-cache", "vary": "accept-encoding", **(headers or {})}
    known = {part.strip() for part in request.headers.get("if-none-match", "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=sent)
    page = make()
    body = page.body
    if page.compressed and "gzip" in request.headers.get("accept-encoding", ""):
        sent["content-encoding"] = "gzip"
        body = page.compressed
    return Response(body, media_type=page.media_type, headers=sent)
