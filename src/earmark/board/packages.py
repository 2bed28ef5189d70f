"""Packages on the board's disk: they arrive in parts, are looked at and never opened, and leave when their job ends.

A package lies in `ID.zip`, under the id of its job. It is written to `ID.part`, whole and on the disk before it gets
its name, and gets its name before its job is stored: whatever is cut off leaves a file without a job, never a job
without its file. `sweep` removes files that no job needs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from earmark.board.jobs import UNFINISHED, Package
from earmark.board.refusals import NotFound, Refusal
from earmark.submissions import Problem, Refused, SystemCard, card_from
from earmark.submissions.rules import card_problems

if TYPE_CHECKING:
    from earmark.board.storage import Store

_ROOM = 500_000_000
"""Bytes that packages leave free on the disk: the database lies there too."""
_LOOK_EVERY = 16_000_000
_AT_A_TIME = 2
"""Packages of one team, or of a user without one, that arrive at the same time."""
_FILE = re.compile(r"([0-9a-f]{16})\.(zip|part)")
_ORPHAN_SECONDS = 86_400.0


class Incoming:
    """A package that arrives: its bytes are hashed as they are written."""

    def __init__(self, path: Path, stream: IO[bytes], most: int) -> None:
        self.path = path
        self.size = 0
        self._stream = stream
        self.most = most
        self._looked = 0  # how much was written when the room on the disk was looked at
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self.most:
            raise Refusal(f"The package is larger than {self.most / 1e6:g} MB, the most that this board takes.", 413)
        try:
            if self.size - self._looked >= _LOOK_EVERY:  # others write at the same time
                self._looked = self.size
                _refuse_full(self.path.parent)
            self._stream.write(data)
        except OSError as error:
            raise _no_room() from error
        self._hash.update(data)

    def finish(self) -> None:
        """Have every byte on the disk."""
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise _no_room() from error


@dataclass(frozen=True)
class Packages:
    """The folder of packages."""

    folder: Path
    most: int  # bytes of one
    arriving: Counter[str] = field(default_factory=Counter, repr=False, compare=False)  # in this process, by sender

    @contextlib.contextmanager
    def turn(self, sender: str) -> Iterator[None]:
        """Count a package while it arrives; a sender of whom enough arrive already is told to wait."""
        if self.arriving[sender] >= _AT_A_TIME:
            raise Refusal(
                f"{_AT_A_TIME} packages of the {sender} arrive at this moment; send this one when they are through.",
                429,
                {"Retry-After": "10"},
            )
        self.arriving[sender] += 1
        try:
            yield
        finally:
            self.arriving[sender] -= 1
            if not self.arriving[sender]:
                del self.arriving[sender]

    @contextlib.contextmanager
    def incoming(self, id: str, declared: int) -> Iterator[Incoming]:
        """A place for a package that arrives; what is there at the end and was not kept is removed."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_full(self.folder, declared)
        part = self.folder / f"{id}.part"
        try:
            with part.open("xb") as stream:
                part.chmod(0o600)
                yield Incoming(part, stream, self.most)
        finally:
            part.unlink(missing_ok=True)

    def keep(self, id: str, incoming: Incoming) -> None:
        """Give a package that is whole the name under which its job finds it."""
        incoming.path.rename(self.path(id))
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)  # the name, too
        finally:
            os.close(handle)

    def path(self, id: str) -> Path:
        return self.folder / f"{id}.zip"

    def find(self, id: str) -> Path:
        path = self.path(id)
        if not path.is_file():
            raise NotFound(f"The package of the job {id} is not on the board's disk any more.")
        return path

    def sweep(self, store: Store) -> None:
        """Remove the packages of jobs that have ended, and what an upload left that was cut off a day ago."""
        if not self.folder.is_dir():
            return
        named = {path: match for path in self.folder.iterdir() if (match := _FILE.fullmatch(path.name))}
        states = store.job_states({match[1] for match in named.values()})
        for path, match in named.items():
            state = states.get(match[1])
            with contextlib.suppress(OSError):  # another process was quicker
                old = time.time() - path.stat().st_mtime > _ORPHAN_SECONDS
                if state not in UNFINISHED and (old or state is not None):
                    path.unlink()


def inspected(incoming: Incoming) -> tuple[Package, SystemCard]:
    """What a package says of itself; `Refused` with everything that is wrong with it. Nothing of it is run."""
    from earmark.blind.packages import PackageRefused, inspect

    try:
        found = inspect(incoming.path)
    except PackageRefused as refused:
        raise Refused([Problem("package", sentence, "/package") for sentence in refused.problems]) from refused
    card = card_from({**found.system, "name": found.entry}, "The card of the package")
    if problems := card_problems(card):  # what would be refused at its release is refused now
        raise Refused(problems)
    return Package(found.entry, found.kind, found.digest, incoming.sha256, incoming.size), card


def _refuse_full(folder: Path, more: int = 0) -> None:
    if shutil.disk_usage(folder).free < more + _ROOM:
        raise _no_room()


def _no_room() -> Refusal:
    return Refusal("The board has no room for packages now; try again later, or tell its host.", 503)
