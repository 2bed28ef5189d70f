"""A remote file as a stream that can be sought: bytes are fetched in ranges, ahead while reading goes on.

first read, or after a jump     64 KiB, then twice as much each time, up to WINDOW in parallel blocks
cut connection                  the blocks that failed are asked for again, no others
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from earmark.errors import InputError
from earmark.places._requests import may_pass, persist, reach

FIRST_READ = 1 << 16
BLOCK = 4 << 20
WINDOW = 32 << 20

following: ContextVar[Callable[[str, int, int], None] | None] = ContextVar("following", default=None)
"""Told of transfers: (URL, bytes done, bytes in all)."""


def fetch_ranges(url: str, paths: Sequence[str], ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
    """Ranges of files on the file system of `url`, many at a time; None of a file that is not there.

    A range is cut where its file ends.
    """
    answers = ask_for_ranges(url, paths, ranges)
    return [
        answer[start:stop] if answer is not None and len(answer) > stop - start else answer
        for (start, stop), answer in zip(ranges, answers, strict=True)
    ]


def ask_for_ranges(url: str, paths: Sequence[str], ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
    """`fetch_ranges`, as answered: more than was asked for is the whole file, of a server that knows no ranges.

    Of a batch that is cut short, only what did not come is asked for again.
    """
    answers: dict[int, bytes | None] = {}

    def ask() -> None:
        waiting = [place for place in range(len(paths)) if place not in answers]
        failed: list[BaseException] = []
        got = reach(url).fs.cat_ranges(
            [paths[place] for place in waiting],
            [ranges[place][0] for place in waiting],
            [ranges[place][1] for place in waiting],
            on_error="return",
        )
        for place, answer in zip(waiting, got, strict=True):
            if isinstance(answer, FileNotFoundError) and "bucket does not exist" not in str(answer):
                answers[place] = None
            elif isinstance(answer, BaseException):
                failed.append(answer)
            else:
                answers[place] = bytes(answer)
        if failed:
            raise next((error for error in failed if not may_pass(error)), failed[0])

    if paths:
        persist(ask, url)
    return [answers[place] for place in range(len(paths))]


class RangeReader(io.RawIOBase):
    """The bytes of one file of a known size. `changed` is asked at the end whether it is still the file it was."""

    def __init__(self, url: str, path: str, size: int, changed: Callable[[], bool]) -> None:
        self._url, self._path, self._size, self._changed = url, path, size, changed
        self._at = 0
        self._start, self._held = 0, memoryview(b"")  # what was fetched, and where it begins
        self._ahead = FIRST_READ
        self._fetched = 0
        self._fetches = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer).cast("B")
        if self._at >= self._size:
            return 0
        inside = self._at - self._start
        if not 0 <= inside < len(self._held):
            self._fetch(len(room))
            inside = self._at - self._start
        piece = self._held[inside : inside + len(room)]
        room[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _fetch(self, wanted: int) -> None:
        """Fetch from where reading stands: as much as is wanted, and more the longer it goes on in order."""
        in_order = self._at == self._start + len(self._held)
        self._ahead = min(2 * self._ahead, WINDOW) if in_order and self._fetches else FIRST_READ
        end = min(self._size, self._at + max(self._ahead, min(wanted, WINDOW)))
        starts = list(range(self._at, end, BLOCK))
        ranges = [(start, min(start + BLOCK, end)) for start in starts]
        blocks = ask_for_ranges(self._url, [self._path] * len(ranges), ranges)
        whole = next((b for b, (start, stop) in zip(blocks, ranges, strict=True) if b and len(b) > stop - start), None)
        if whole is not None and len(whole) == self._size:  # held from now on: nothing is asked for again
            self._start, self._held = 0, memoryview(whole)
        elif any(b is None or len(b) != stop - start for b, (start, stop) in zip(blocks, ranges, strict=True)):
            raise self._other_file()
        else:
            self._start = self._at
            self._held = memoryview(b"".join(block for block in blocks if block is not None))
        self._fetched += len(self._held)
        self._fetches += 1
        tell = following.get()
        if tell is not None:
            tell(self._url, min(self._fetched, self._size), self._size)

    def check(self) -> None:
        """Refuse bytes of two versions of a file."""
        if self._fetches > 1 and self._changed():
            raise self._other_file()

    def _other_file(self) -> InputError:
        return InputError(f"{self._url} was changed while it was read: try again when nobody writes it.")


class Stream(io.BufferedReader):
    """A RangeReader with a buffer. Leaving its `with` block checks that the file stayed what it was."""

    def __init__(self, raw: RangeReader) -> None:
        super().__init__(raw, FIRST_READ)
        self._ranges = raw

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._ranges.check()
        finally:
            self.close()
