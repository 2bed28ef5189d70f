"""A change of the board, as readers and its author see it: whole, of one generation, and without waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.board.documents import document
from tests.board.hosted import document as whole_document
from tests.board.hosted import hosted

from earmark.board.boards import Snapshots
from earmark.board.boards.snapshot import Snapshot
from earmark.board.records import User
from earmark.board.storage import Store

BOARD = document().board


def accept(store: Store, moderator: User, name: str) -> None:
    store.decide(store.submit(document({"BC": 0.5, "BS1": 0.6}, system=name), moderator).id, moderator, accept=True)


def names(snapshot: Snapshot) -> set[str]:
    return {system.card.name for system in snapshot.systems}


@contextmanager
def held_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Ranks of new snapshots are not made before the event is set."""
    go, prepare = threading.Event(), Snapshot.prepare

    def waiting(self: Snapshot) -> None:
        assert go.wait(20)
        prepare(self)

    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "prepare", waiting)
        yield go
        go.set()


def within(seconds: float, snapshots: Snapshots, name: str) -> bool:
    ends = time.monotonic() + seconds
    while name not in names(snapshots.current(BOARD)):
        if time.monotonic() > ends:
            return False
        time.sleep(0.01)
    return True


def test_readers_see_the_board_as_it_was_until_all_ranks_of_the_new_one_are_made(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = sqlite_store.create_user("host", role="moderator")
    accept(sqlite_store, host, "first")
    snapshots = Snapshots(sqlite_store, check_every=60)
    before = snapshots.current(BOARD)
    with held_back(monkeypatch) as go:
        accept(sqlite_store, host, "second")
        for _ in range(5):  # nobody waits, and nobody sees a part of it
            snapshots._checked -= 61  # this reader looks
            assert snapshots.current(BOARD) is before
            assert snapshots.generation == before.generation
        go.set()
        assert within(10, snapshots, "second")
    assert snapshots.generation == snapshots.current(BOARD).generation > before.generation


def test_whoever_decided_sees_it_at_once_also_while_readers_wait_for_another_change(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = sqlite_store.create_user("host", role="moderator")
    accept(sqlite_store, host, "first")
    snapshots = Snapshots(sqlite_store, check_every=60)
    snapshots.boards()
    accept(sqlite_store, host, "own")
    assert "own" not in names(snapshots.current(BOARD))
    snapshots.refresh()
    assert "own" in names(snapshots.current(BOARD))
    with held_back(monkeypatch) as go:
        snapshots._checked -= 61  # the next reader looks
        accept(sqlite_store, host, "another's")
        snapshots.current(BOARD)
        accept(sqlite_store, host, "own again")
        threading.Timer(0.1, go.set).start()
        snapshots.refresh()
        assert {"another's", "own again"} <= names(snapshots.current(BOARD))


def test_after_a_pause_the_first_reader_gets_what_is_new(sqlite_store: Store) -> None:
    host = sqlite_store.create_user("host", role="moderator")
    accept(sqlite_store, host, "first")
    snapshots = Snapshots(sqlite_store, check_every=0.01)
    snapshots.boards()
    accept(sqlite_store, host, "second")
    time.sleep(0.1)
    assert "second" in names(snapshots.current(BOARD))


def test_a_page_that_is_being_made_stays_of_one_generation(sqlite_store: Store) -> None:
    host = sqlite_store.create_user("host", role="moderator")
    accept(sqlite_store, host, "first")
    snapshots = Snapshots(sqlite_store, check_every=0)
    before = snapshots.current(BOARD)
    with snapshots.pinned(snapshots.latest):
        accept(sqlite_store, host, "second")
        snapshots.refresh()
        assert snapshots.current(BOARD) is before
        assert snapshots.generation == before.generation
        seen: list[set[str]] = []
        other = threading.Thread(target=lambda: seen.append(names(snapshots.current(BOARD))))
        other.start()
        other.join()
        assert seen == [{"first", "second"}]  # others do not hold on to it
    assert names(snapshots.current(BOARD)) == {"first", "second"}


def test_a_moderator_sees_the_decision_on_the_next_page_and_its_tag_is_new(tmp_path: Path) -> None:
    with hosted(tmp_path) as board:
        board.accepted(whole_document("first"))
        before = board.client.get("/b/vocsim")
        board.accepted(whole_document("second", value=0.7))
        after = board.client.get("/b/vocsim")
        assert "second" not in before.text
        assert "second" in after.text
        assert before.headers["etag"] != after.headers["etag"]
        assert board.client.get("/v1/boards").json()["items"][0]["systems"] == 2
