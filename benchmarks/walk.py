"""How often a run opens each audio file, and how often it changes rooms.

    python benchmarks/walk.py run --corpus sounds/ --extractor logmel --into /tmp/walk --cache off --quiet

A room is a module or folder of the package. Counted are calls from one room into another in the main thread, and
changes of room in the order in which functions are first entered: what somebody meets who follows a run.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import earmark
from earmark.audio import SUFFIXES
from earmark.cli import main

ROOT = Path(earmark.__file__).parent


class Walk:
    """What was seen of one command."""

    def __init__(self) -> None:
        self.opens: Counter[str] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.entered: dict[tuple[str, str], str] = {}  # rooms by file and function, in order of the first call
        self.watching = False

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.watching and event == "open" and Path(str(arguments[0])).suffix.lower() in SUFFIXES:
            self.opens[str(arguments[0])] += 1

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        room = _room(frame)
        if event != "call" or not room or threading.current_thread() is not threading.main_thread():
            return
        if not frame.f_code.co_name.startswith("<"):
            self.entered.setdefault((frame.f_code.co_filename, frame.f_code.co_name), room)
        caller = frame.f_back
        while caller is not None and not _room(caller):
            caller = caller.f_back
        if caller is not None and _room(caller) != room:
            self.calls[_room(caller), room] += 1

    def text(self) -> str:
        changes = len([room for room, _ in groupby(self.entered.values())])
        lines = [
            f"{len(self.opens)} audio files, opened at most {max(self.opens.values(), default=0)} times",
            f"{changes} changes of room in {len(self.entered)} functions, {self.calls.total()} calls between rooms",
        ]
        lines += [f"  {caller} → {room}: {count}" for (caller, room), count in self.calls.most_common(12)]
        return "\n".join(lines)


def _room(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    return Path(file).relative_to(ROOT).parts[0].removesuffix(".py") if file.startswith(str(ROOT)) else ""


def walk(words: list[str]) -> Walk:
    """Do a command and see where it goes."""
    seen = Walk()
    sys.addaudithook(seen.audit)
    sys.setprofile(seen.profile)
    seen.watching = True
    try:
        main(words)
    finally:
        sys.setprofile(None)
        seen.watching = False
    return seen


if __name__ == "__main__":
    print(walk(sys.argv[1:]).text())
