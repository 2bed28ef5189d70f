"""The keeper of the snapshots of all boards.

It swaps a new snapshot in when the store's generation has grown; only the systems that changed are read again. While
the store does not answer, what is in memory stays.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from earmark.board.boards.snapshot import NoSuchBoard, Snapshot
from earmark.definitions import Definition, paper_boards
from earmark.errors import did_you_mean

if TYPE_CHECKING:
    from earmark.board.storage import Store


class Snapshots:
    """The snapshots of all boards of a store, kept up to date. Safe to use from many threads."""

    def __init__(self, store: Store, *, check_every: float = 1.0) -> None:
        self._store = store
        self._check_every = check_every
        self._lock = threading.Lock()
        self._kept: dict[str, Snapshot] = {}
        self._former: dict[str, str] = {}
        self._generation = -1
        self._checked = float("-inf")
        self.settle = False  # see `_prepare`
        self._away = False
        self._seen = datetime.now(UTC)

    @property
    def generation(self) -> int:
        """The generation of the store that is shown."""
        return self._generation

    @property
    def fresh(self) -> bool:
        """Whether the store was asked a moment ago; then `current` and `boards` answer from memory alone."""
        return time.monotonic() - self._checked < self._check_every

    def boards(self) -> tuple[str, ...]:
        """The names of the boards that have a system with live scores, and of those that had one."""
        self._check()
        return tuple(self._kept)

    def listed(self) -> tuple[str, ...]:
        """The names of the boards that everybody finds: neither hidden nor private."""
        return tuple(name for name in self.boards() if _is_listed(self.current(name)))

    def find(self, board: str) -> Snapshot | None:
        """The snapshot of a board, if there is one."""
        self._check()
        return self._kept.get(board)

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
        return board if board in self._kept else self._former.get(board, board)

    def current(self, board: str) -> Snapshot:
        """The snapshot of a board, at most `check_every` seconds behind the store. NoSuchBoard if there is none."""
        self._check()
        try:
            return self._kept[board]
        except KeyError:
            near = did_you_mean(board, [name for name, each in self._kept.items() if _is_listed(each)])
            raise NoSuchBoard(f'There is no board "{board}".{near}') from None

    @property
    def away_since(self) -> datetime | None:
        """When the store was last seen, while it does not answer; None while it does."""
        return self._seen if self._away else None

    def refresh(self) -> None:
        """Read what changed now: after a decision its author sees it on the next page."""
        with self._lock:
            self._read_or_keep()

    def _check(self) -> None:
        """Look whether the store has changed, in one thread; the others go on with what there is."""
        if self.fresh or not self._lock.acquire(blocking=self._generation < 0):
            return
        if self._away:  # nobody waits for a store that did not answer
            self._checked = time.monotonic()
            threading.Thread(target=self._read_and_release, name="store", daemon=True).start()
        else:
            self._read_and_release()

    def _read_and_release(self) -> None:
        try:
            if self._away or not self.fresh:
                self._read_or_keep()
        finally:
            self._lock.release()

    def _read_or_keep(self) -> None:
        """Read what changed; a store that does not answer leaves what is in memory, if anything is."""
        from earmark.databases import Busy

        try:
            self._read()
        except Busy:
            if self._generation < 0:
                raise
            self._away, self._checked = True, time.monotonic()
        else:
            self._away, self._seen = False, datetime.now(UTC)

    def _read(self) -> None:
        now = time.monotonic()
        generation = self._store.generation()
        if generation != self._generation:
            kept: dict[str, Snapshot] = {}
            for board in self._store.boards():
                kept[board] = self._read_board(board, generation, self._kept.get(board))
                kept[board].prepare(1)  # before anybody sees it
            self._former = self._store.former_names()
            self._kept = kept
            self._generation = generation
            threading.Thread(
                target=_prepare, args=(tuple(kept.values()), self.settle), name="ranks", daemon=True
            ).start()
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


def _prepare(snapshots: Sequence[Snapshot], settle: bool) -> None:
    for snapshot in snapshots:
        snapshot.prepare()
    for snapshot in snapshots:
        snapshot.prepare_more()
    if settle:
        # Boards are millions of objects that stay. The collector looks through them again and again, which delays pages
        # by a tenth of a second: in a process that does nothing but serve it leaves them alone.
        gc.collect()
        gc.freeze()
