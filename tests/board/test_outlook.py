"""What a board would show if a submission were accepted: compared with what it shows once it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.board.hosted import document

from earmark.board.boards.name_risks import lookalikes
from earmark.board.boards.outlook import MOST_ROWS, outlook, outlook_of_document, outlook_of_submission
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.board.records import User
from earmark.board.storage import Store
from earmark.submissions import Document, SystemCard
from earmark.submissions.texts import lookalike


@pytest.fixture
def people(sqlite_store: Store) -> tuple[User, User, User]:
    """Two authors and a moderator."""
    return (
        sqlite_store.create_user("ada"),
        sqlite_store.create_user("bob"),
        sqlite_store.create_user("grace", role="moderator"),
    )


def accepted(store: Store, sent: Document, user: User, moderator: User) -> str:
    id = store.submit(sent, user).id
    store.decide(id, moderator, accept=True)
    return id


def test_the_rank_that_is_foretold_is_the_rank_that_comes(sqlite_store: Store, people: tuple[User, User, User]) -> None:
    ada, bob, grace = people
    for name, value in (("low", 0.3), ("middle", 0.5), ("high", 0.7)):
        accepted(sqlite_store, document(name, value, board="mine"), bob, grace)
    snapshots = Snapshots(sqlite_store, check_every=0)
    sent = sqlite_store.submit(document("new", 0.6, board="mine"), ada)
    seen = outlook_of_submission(sqlite_store, snapshots, sent)
    (standing,) = seen.standings
    assert (standing.before, standing.best) == (None, "high")
    assert standing.after is not None
    assert (standing.after.rank, standing.after.among) == (2, 4)
    assert standing.best_mean == pytest.approx(0.715)
    assert {(each.system, each.before, each.after) for each in seen.moved} == {("middle", 2, 3), ("low", 3, 4)}
    assert [(change.old, change.best_system) for change in seen.rows] == [(None, "high")] * 4
    assert [change.best for change in seen.rows] == pytest.approx([0.7, 0.71, 0.72, 0.73])

    sqlite_store.decide(sent.id, grace, accept=True)
    snapshots.refresh()
    after = snapshots.current("mine")
    field = after.field("P@1")
    names = [after.systems[place].card.name for place in field.systems.tolist()]
    assert field.rank_at(names.index("new"))[:3] == standing.after[:3]
    assert field.means.value[names.index("new")] == pytest.approx(standing.after.mean)


def test_a_row_stands_beside_the_one_it_replaces(sqlite_store: Store, people: tuple[User, User, User]) -> None:
    ada, _, grace = people
    accepted(sqlite_store, document("model", 0.4, board="mine"), ada, grace)
    snapshots = Snapshots(sqlite_store, check_every=0)
    older = sqlite_store.submit(document("model", 0.45, board="mine"), ada)
    seen = outlook_of_document(sqlite_store, snapshots, document("model", 0.5, board="mine"), ada)
    assert [change.old for change in seen.rows] == pytest.approx([0.4, 0.41, 0.42, 0.43])
    assert [change.difference for change in seen.rows] == pytest.approx([0.1] * 4)
    assert all(change.counts and change.leads for change in seen.rows)
    assert seen.standings[0].before is not None
    assert seen.standings[0].after is not None
    assert seen.standings[0].after.mean == pytest.approx(0.515)
    # What is newer than a pending one stays in front of it.
    accepted(sqlite_store, document("model", 0.6, board="mine"), ada, grace)
    seen = outlook_of_submission(sqlite_store, snapshots, older)
    assert not any(change.counts for change in seen.rows)
    assert seen.standings[0].after == seen.standings[0].before


def test_a_first_submission_of_a_board_has_an_outlook(sqlite_store: Store, people: tuple[User, User, User]) -> None:
    seen = outlook_of_document(
        sqlite_store, Snapshots(sqlite_store, check_every=0), document("first", board="new"), people[0]
    )
    assert seen.standings[0].after is not None
    assert (seen.standings[0].after.rank, seen.warnings) == (1, ())


def test_risks_come_as_sentences() -> None:
    there = document("EWMTF-D100", board="mine", title="The great one").scores
    snapshot = Snapshot.of_scores("mine", there, {"EWMTF-D100": SystemCard("EWMTF-D100", title="The great one")})
    rows = [
        replace(row, system="EWMTF Dl00", correction=f"c{number}") for number in range(12) for row in there.rows[:1]
    ]
    rows.append(replace(there.rows[0], system="EWMTF Dl00", subset="unheard"))
    rows.append(replace(there.rows[0], system="EWMTF Dl00", metric="my own"))
    card = SystemCard("EWMTF Dl00", title="The Great 0ne")
    seen = outlook(snapshot, rows, [card], owner="eve")
    told = "\n".join(seen.warnings)
    for part in (
        'The name "EWMTF Dl00" looks like "EWMTF-D100"', 'The title "The Great 0ne" looks like "The great one"',
        '1 row on subsets that the board does not name: "unheard"',
        "1 row of metrics that the board does not name: my own", "13 settings (distance and correction)",
    ):  # fmt: skip
        assert part in told
    assert (seen.tried[0].before, seen.tried[0].after) == (0, 13)


def test_what_an_author_has_is_no_lookalike_of_their_own() -> None:
    snapshot = Snapshot.of_scores("mine", document("model 1", board="mine").scores)
    snapshot = replace(snapshot, systems=tuple(replace(each, owner="ada", team="lab") for each in snapshot.systems))
    card = SystemCard("model-l")
    assert list(lookalikes(snapshot, [card], "ada")) == []
    assert list(lookalikes(snapshot, [card], "bob", "lab")) == []
    assert len(list(lookalikes(snapshot, [card], "eve"))) == 1
    assert list(lookalikes(snapshot, [SystemCard("model 2")], "eve")) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("EWMTF-D100", "EWMTF Dl00"), ("CLAP", "clap"), ("Opus", "0pus"), ("HuBERT", "НuВЕRТ"), ("Café", "Cafe"),
        ("wav2vec 2.0", "wav2vec2.O"), ("CLAP", "C L A P"), ("CLAP", "ＣＬＡＰ"), ("gong", "ɡonɡ"),
        ("Mel I", "mel|"),
    ],
)  # fmt: skip
def test_names_that_look_alike(one: str, other: str) -> None:
    assert lookalike(one) == lookalike(other)


@pytest.mark.parametrize(
    ("one", "other"), [("v1.0", "v1.1"), ("layer 9", "layer 6"), ("CLAP", "CLIP"), ("a-10", "a-11")]
)
def test_names_that_do_not(one: str, other: str) -> None:
    assert lookalike(one) != lookalike(other)


def test_codecs_show_isolation_and_check() -> None:
    rows = document("codec", board="mine").scores.rows
    details = {"isolation": "none", "isolation_reason": "one process", "check": "failed", "check_reason": "a delay"}
    seen = outlook(None, rows, [SystemCard("codec", "codec", details=details)], owner="eve")
    assert (seen.codecs[0].isolation, seen.codecs[0].check) == ("none: one process", "failed: a delay")
    assert any("one process" in warning for warning in seen.warnings)


def test_blind_subsets_that_were_measured_at_home_are_told_first() -> None:
    rows = [replace(document().scores.rows[0], subset=name) for name in ("HU3", "BC")]
    seen = outlook(None, rows, [SystemCard("my model")], owner="eve")
    assert seen.warnings[0].startswith("It reports HU3 itself")


def test_long_documents_are_not_tried_out() -> None:
    rows = [
        replace(row, distance=f"d{number}") for number in range(MOST_ROWS // 4 + 1) for row in document().scores.rows
    ]
    seen = outlook(None, rows, [SystemCard("my model")], owner="eve")
    assert seen.standings == ()
    assert "too many to try out" in seen.warnings[-1]
