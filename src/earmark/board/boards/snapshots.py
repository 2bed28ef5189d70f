"""The keeper of the snapshots of all boards.

When the store's generation has grown, new snapshots are made beside those that readers see: only the systems that
changed are read again, and all ranks that pages ask for are made. Then all boards are swapped at once. So readers never
wait for a change, and never see a part of one. Who decided something calls `refresh`, waits until it is shown, and sees
it on the next page. While the store does not answer, what is in memory stays.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from earmark.board.boards.snapshot import NoSuchBoard, Snapshot
from earmark.definitions import Definition, paper_boards
from earmark.errors import did_you_mean

if TYPE_CHECKING:
    from earmark.board.storage import Store

_PATIENCE = 5.0
"""After so many times `check_every` without a look at the store, a reader waits for what is new."""


class Shown(NamedTuple):
    """What readers see of all boards, as of one generation of the store."""

    generation: int = -1
    boards: Mapping[str, Snapshot] = {}
    former: Mapping[str, str] = {}


class Snapshots:
    """The snapshots of all boards of a store, kept up to date. Safe to use from many threads."""

    def __init__(self, store: Store, *, check_every: float = 1.0) -> None:
        self._store = store
        self._check_every = check_every
        self._lock = threading.Lock()
        self._latest = Shown()
        self._pins = threading.local()
        self._checked = float("-inf")
        self.settle = False  # see `_settle`
        self._away = False
        self._seen = datetime.now(UTC)

    @property
    def generation(self) -> int:
        """The generation of the store that is shown."""
        return self._shown.generation

    @property
    def latest(self) -> Shown:
        """What is shown now, whatever this thread holds on to."""
        return self._latest

    @property
    def _shown(self) -> Shown:
        pinned: Shown | None = getattr(self._pins, "shown", None)
        return self._latest if pinned is None else pinned

    @contextmanager
    def pinned(self, shown: Shown) -> Iterator[None]:
        """Hold on to what was shown, in this thread: a page is of one generation, whatever happens meanwhile."""
        before = getattr(self._pins, "shown", None)
        self._pins.shown = shown
        try:
            yield
        finally:
            self._pins.shown = before

    @property
    def fresh(self) -> bool:
        """Whether the store was asked a moment ago; then `current` and `boards` answer from memory alone."""
        return time.monotonic() - self._checked < self._check_every

    def boards(self) -> tuple[str, ...]:
        """The names of the boards that have a system with live scores, and of those that had one."""
        self._check()
        return tuple(self._shown.boards)

    def listed(self) -> tuple[str, ...]:
        """The names of the boards that everybody finds: neither hidden nor private."""
        return tuple(name for name in self.boards() if _is_listed(self.current(name)))

    def find(self, board: str) -> Snapshot | None:
        """The snapshot of a board, if there is one."""
        self._check()
        return self._shown.boards.get(board)

    def definition(self, board: str) -> Definition | None:
        """What a board is, also before anything was accepted there: by its host, else by its paper."""
        snapshot = self.find(board)
        if snapshot is not None:
            return snapshot.definition
        version = self._store.definition(board)
        return version.definition if version else paper_boards().get(board)

    def name_now(self, board: str) -> str:
        """What a board is called now, if it had this name before; else the name itself."""
        self._check()
        return board if board in self._shown.boards else self._shown.former.get(board, board)

    def current(self, board: str) -> Snapshot:
        """The snapshot of a board. It is behind the store by at most `check_every` seconds and the time that a new one
        takes to make. NoSuchBoard if there is none."""
        self._check()
        boards = self._shown.boards
        try:
            return boards[board]
        except KeyError:
            near = did_you_mean(board, [name for name, each in boards.items() if _is_listed(each)])
            raise NoSuchBoard(f'There is no board "{board}".{near}') from None

    @property
    def away_since(self) -> datetime | None:
        """When the store was last seen, while it does not answer; None while it does."""
        return self._seen if self._away else None

    def refresh(self) -> None:
        """Read and show what changed now: after a decision its author sees it on the next page."""
        with self._lock:
            self._read_or_keep()

    def _check(self) -> None:
        """Look whether the store has changed, in one thread; the others go on with what there is, and so does this one
        unless that may be old."""
        if self.fresh or getattr(self._pins, "shown", None) is not None:
            return
        if not self._lock.acquire(blocking=self._latest.generation < 0):
            return
        apart = False
        try:
            if not self.fresh:
                apart = self._is_read_apart()
                if apart:
                    self._checked = time.monotonic()
                    threading.Thread(target=self._read_and_release, name="snapshots", daemon=True).start()
                else:
                    self._read_or_keep()
        finally:
            if not apart:
                self._lock.release()

    def _is_read_apart(self) -> bool:
        """Whether readers go on meanwhile: nobody waits for a store that did not answer, nor for new ranks while what
        is shown was right a moment ago."""
        from earmark.databases import Busy

        if self._away:
            return True
        if time.monotonic() - self._checked > _PATIENCE * self._check_every:
            return False
        try:
            return self._store.generation() != self._latest.generation
        except Busy:
            return False  # `_read_or_keep` finds the same, and keeps what there is

    def _read_and_release(self) -> None:
        try:
            self._read_or_keep()
        finally:
            self._lock.release()

    def _read_or_keep(self) -> None:
        """Read what changed; a store that does not answer leaves what is in memory, if anything is."""
        from earmark.databases import Busy

        try:
            self._read()
        except Busy:
            if self._latest.generation < 0:
                raise
            self._away, self._checked = True, time.monotonic()
        else:
            self._away, self._seen = False, datetime.now(UTC)

    def _read(self) -> None:
        now = time.monotonic()
        generation, old = self._store.generation(), self._latest.boards
        if generation != self._latest.generation:
            boards: dict[str, Snapshot] = {}
            for board in self._store.boards():
                boards[board] = self._read_board(board, generation, old.get(board))
                boards[board].prepare()  # before anybody sees it
            self._latest = Shown(generation, boards, self._store.former_names())
            if self.settle:
                _settle()
        self._checked = now

    def _read_board(self, board: str, generation: int, old: Snapshot | None) -> Snapshot:
        blind, offered = self._store.blind_subsets(board), self._store.offered_sets(board)
        if old is not None and (old.blind, old.offered) != (blind, offered):
            old = None  # a host has announced blind sets: what authors claim of them is read anew
        systems = self._store.systems(board, changed_since=old.generation if old else 0)
        version = self._store.definition(board)
        definition = version.definition if version else None
        if old is not None and definition not in (None, old.definition):
            old = old.defined(definition, old.generation)
        if old is not None and not systems:
            return old
        live = self._store.live_scores(board, [system.id for system in systems] if old else None)
        place = {system.id: number for number, system in enumerate(systems)}
        columns = {**live.columns, "system": [place[number] for number in live.system_id.tolist()]}
        if old is None:
            return Snapshot.of_columns(board, generation, systems, columns, blind, offered, definition)
        return old.updated(generation, systems, columns)


def _is_listed(snapshot: Snapshot) -> bool:
    return snapshot.definition.state != "hidden" and not snapshot.definition.private


def _settle() -> None:
    """Boards are millions of objects that stay. The collector looks through them again and again, which delays pages by
    a tenth of a second: in a process that does nothing but serve it leaves them alone."""
    gc.collect()
    gc.freeze()
