"""The analysis runs in a process of its own, is kept in the store, and says what it is of."""

from __future__ import annotations

import time

import pytest
from tests.board.scored import cards, scores, snapshot

from earmark.analysis.study import analyze
from earmark.board.boards.analyses import Background, analysed, digest_of, matrix_of
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.board.storage import Store
from earmark.scores import Row, Scores
from earmark.submissions import Document


def test_the_matrix_is_the_board_under_each_systems_best_setting() -> None:
    whole = snapshot()
    matrix = matrix_of(whole)
    assert matrix["metric"] == "P@1"
    assert set(matrix["subsets"]) == {"birds", "cats", "dogs", "doors", "rain"}
    field = whole.field("P@1")
    assert len(matrix["values"]) == len(field.rows) == 6
    assert sum(value is None for line in matrix["values"] for value in line) == 1
    assert digest_of(matrix) != digest_of(matrix_of(snapshot(seed=3)))
    assert matrix_of(Snapshot.of_scores("empty", Scores()))["systems"] == []


def test_it_finds_what_analyze_finds() -> None:
    matrix = matrix_of(snapshot(8, seed=4))
    found = analysed(matrix)
    rows = tuple(
        Row(suite="mine", subset=subset, system=system, metric="P@1", value=value)
        for system, line in zip(matrix["systems"], matrix["values"], strict=True)
        for subset, value in zip(matrix["subsets"], line, strict=True)
        if value is not None
    )
    families = dict(zip(matrix["systems"], matrix["families"], strict=True))
    plain = analyze(Scores(rows), metric="P@1", families=families).as_dict()
    assert {name: part for name, part in found.found.items() if name != "drawn"} == plain
    assert found.error == ""
    assert found.verdict("cats") is not None
    assert found.verdict("nothing") is None


def test_a_board_that_is_too_small_has_a_reason_instead() -> None:
    found = analysed(matrix_of(snapshot(2)))
    assert (found.found, found.error) == ({}, "An analysis needs at least 3 systems and 3 subsets with scores.")


@pytest.fixture
def filled(sqlite_store: Store) -> Store:
    ada, grace = sqlite_store.create_user("ada"), sqlite_store.create_user("grace", role="moderator")
    table = Scores(tuple(row for row in scores(8) if row.metric == "P@1" and row.status == "ok"))
    sent = sqlite_store.submit(Document.of(table, board="mine", cards=list(cards(8).values())), ada)
    sqlite_store.decide(sent.id, grace, accept=True)
    return sqlite_store


def test_one_worker_makes_it_and_the_others_take_it(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = Snapshots(filled)
    first = Background(filled, snapshots)
    assert first.latest("mine") is None
    assert not first.current("mine")
    first.step()
    made = first.latest("mine")
    assert made is not None
    assert first.current("mine")
    assert made.found["novelty"]
    assert made.digest == digest_of(matrix_of(snapshots.current("mine")))
    version = first.version
    first.step()
    assert first.version == version  # nothing to do

    second = Background(filled, Snapshots(filled))
    monkeypatch.setattr(second, "_in_process", lambda matrix: pytest.fail("it is there already"))
    second.step()
    assert second.latest("mine") == made


def test_a_change_makes_it_stale_but_it_stays_to_be_shown(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = Snapshots(filled)
    background = Background(filled, snapshots)
    monkeypatch.setattr(background, "_in_process", analysed)
    background.step()
    grace = filled.user("grace")
    assert grace is not None
    row = Row(
        suite="mine", subset="birds", system="model 1", distance="cosine", metric="P@1", value=0.99, version="0.1"
    )
    sent = filled.submit(Document.of(Scores((row,)), board="mine", cards=[cards()["model 1"]]), grace)
    filled.decide(sent.id, grace, accept=True)
    snapshots.refresh()
    before = background.latest("mine")
    asked = []
    monkeypatch.setattr(background, "_claim", lambda board, digest: bool(asked.append(board)))
    background.step()
    assert asked == ["mine"]  # it wants a new one
    assert background.latest("mine") == before
    assert not background.current("mine")


def test_who_works_on_it_is_left_alone_until_the_claim_grows_old(filled: Store) -> None:
    key = "analysis-claim:mine"
    one = Background(filled, Snapshots(filled))
    filled.set_meta(key, f"digest 1 {time.time():.0f}")
    assert not one._claim("mine", "digest")
    assert one._claim("mine", "another digest")
    filled.set_meta(key, f"digest 1 {time.time() - 100:.0f}")
    assert one._claim("mine", "digest")
    assert one._claim("mine", "digest")  # its own


def test_stopping_ends_the_thread(filled: Store) -> None:
    background = Background(filled, Snapshots(filled), every=0.01)
    background.start()
    background.stop()
    assert background._thread is not None
    assert not background._thread.is_alive()
