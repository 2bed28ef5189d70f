"""The store on SQLite and on PostgreSQL: nothing is overwritten, nothing is lost, nothing is seen by half."""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import traceback
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from tests.board.documents import document, row

from earmark.board.records import User
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage import Store, open_database
from earmark.databases import Busy
from earmark.errors import InputError, UsageError
from earmark.scores import COLUMNS, KEY, Row, Scores
from earmark.submissions import Document, Refused, SystemCard


def live(store: Store, board: str = "mine") -> dict[tuple[str, str], float]:
    """The live values by system and subset."""
    names = {system.id: system.card.name for system in store.systems(board)}
    found = store.live_scores(board)
    keys = [(names[system], subset) for system, subset in zip(found.system_id.tolist(), found["subset"], strict=True)]
    return dict(zip(keys, found["value"].tolist(), strict=True))


def accept(store: Store, sent: Document, user: User, moderator: User) -> str:
    made = store.submit(sent, user)
    store.decide(made.id, moderator, accept=True)
    return made.id


# --- a document's way ------------------------------------------------------------------------------------------------


def test_a_document_is_pending_and_unseen_until_it_is_accepted(store: Store, ada: User, grace: User) -> None:
    sent = document({"birds": 0.25, "otters": 0.75}, family="Whisper", authors=("A", "B"))
    made = store.submit(sent, ada)
    assert (made.state, made.owner, made.board, made.rows, made.systems) == ("pending", "ada", "mine", 2, ("model",))
    assert made.digest == hashlib.sha256(store.document_of(made.id)).hexdigest() == sent.digest
    assert abs(datetime.now(UTC) - made.created) < timedelta(minutes=1)
    assert store.boards() == []
    assert store.systems("mine") == []
    assert store.system("mine", "model") is None
    assert len(store.live_scores("mine")) == 0
    assert store.generation() == 0

    decided = store.decide(made.id, grace, accept=True, provenance="reproduced")
    assert (decided.state, decided.decided_by, decided.provenance) == ("accepted", "grace", "reproduced")
    assert store.generation() == 1
    assert store.boards() == ["mine"]
    assert live(store) == {("model", "birds"): 0.25, ("model", "otters"): 0.75}
    seen = store.system("mine", "model")
    assert seen is not None
    assert seen.card == SystemCard("model", family="Whisper", authors=("A", "B"))
    assert store.systems("mine", changed_since=1) == []
    assert store.submission(made.id) == decided
    assert store.submission("nothing") is None


def test_every_column_comes_back_as_it_was_sent(store: Store, ada: User, grace: User) -> None:
    full = row(
        1 / 3, low=0.1, high=0.7, baseline=0.1, lift=1 / 3 - 0.1, p_value=1 / 1001, n=2**53, seconds=1e-300,
        baseline_low=5e-324, baseline_high=0.2, protocol="across_groups", correction="icdm",
    )  # fmt: skip
    missing = row(None, subset="otters", status="failed", reason="ran out, of “memory”", n=None)
    made = store.submit(Document.of(Scores((full, missing))), ada)
    assert store.rows_of(made.id).rows == (full, missing)
    store.decide(made.id, grace, accept=True)
    found = store.live_scores("mine")
    assert list(found.rows("mine", {found.system_id[0]: "model"})) == [full, missing]
    assert math.isnan(found["value"][1])
    assert found["status"] == ["ok", "failed"]
    assert found["submission_id"] == [made.id] * 2
    assert found["provenance"] == ["self-reported"] * 2
    assert found["created"] == [made.created] * 2


def test_a_later_submission_supersedes_and_its_withdrawal_brings_the_earlier_back(
    store: Store, ada: User, grace: User
) -> None:
    first = accept(store, document({"birds": 0.1, "otters": 0.2}, licence="MIT", year=2020), ada, grace)
    second = accept(store, document({"birds": 0.5}, year=2021), ada, grace)
    assert live(store) == {("model", "birds"): 0.5, ("model", "otters"): 0.2}
    seen = store.system("mine", "model")
    assert seen is not None
    assert (seen.card.licence, seen.card.year) == ("MIT", 2021)  # the later card keeps what it does not say

    before = store.generation()
    withdrawn = store.withdraw(second, ada, "a bug in the labels")
    assert (withdrawn.state, withdrawn.reason) == ("withdrawn", "a bug in the labels")
    assert live(store) == {("model", "birds"): 0.1, ("model", "otters"): 0.2}
    assert store.generation() == before + 1
    assert [one.card.year for one in store.systems("mine", changed_since=before)] == [2020]
    # Nothing is erased.
    assert store.rows_of(second).value("P@1") == 0.5
    store.withdraw(first, ada, "")
    assert live(store) == {}
    assert [one.slug for one in store.systems("mine")] == ["model"]
    assert {one.state for one in store.submissions(system="model", board="mine")} == {"withdrawn"}


def test_what_came_later_counts_also_when_it_was_accepted_earlier(store: Store, ada: User, grace: User) -> None:
    older = store.submit(document({"birds": 0.1}), ada)
    newer = store.submit(document({"birds": 0.9}), ada)
    store.decide(newer.id, grace, accept=True)
    store.decide(older.id, grace, accept=True)
    assert live(store) == {("model", "birds"): 0.9}


def test_a_rejection_needs_a_reason_and_shows_nothing(store: Store, ada: User, grace: User) -> None:
    made = store.submit(document(), ada)
    with pytest.raises(InputError, match="reason is empty"):
        store.decide(made.id, grace, accept=False)
    store.decide(made.id, grace, accept=False, reason="measured on the training part")
    assert live(store) == {}
    assert store.generation() == 0
    with pytest.raises(Conflict, match="rejected already"):
        store.decide(made.id, grace, accept=True)
    with pytest.raises(Conflict, match="nothing to withdraw"):
        store.withdraw(made.id, ada, "")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["accept", "reject", "withdraw", "leave"]),
            st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(0, 1), min_size=1),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_live_scores_are_the_newest_accepted_whatever_happens(
    sqlite_store: Store, fates: list[tuple[str, dict[str, float]]]
) -> None:
    """Against a plain reading of the rule: go through the submissions in order, the last accepted value stays."""
    store = sqlite_store
    ada = store.user("ada") or store.create_user("ada")
    grace = store.user("grace") or store.create_user("grace", role="moderator")
    board = f"b{store.generation()}-{len(store.submissions(limit=1000))}"
    expected: dict[tuple[str, str], float] = {}
    for fate, values in fates:
        rows = tuple(row(value, suite=board, subset=subset) for subset, value in values.items())
        key = f"{board}-{len(store.submissions(board=board))}"
        made = store.submit(Document.of(Scores(rows)), ada, idempotency_key=key)
        if fate in ("accept", "withdraw"):
            store.decide(made.id, grace, accept=True)
        if fate == "withdraw":
            store.withdraw(made.id, ada, "")
        if fate == "reject":
            store.decide(made.id, grace, accept=False, reason="no")
        if fate == "accept":
            expected |= {("model", subset): value for subset, value in values.items()}
    assert live(store, board) == expected


# --- who may ---------------------------------------------------------------------------------------------------------


def test_a_system_belongs_to_whoever_sent_it_first(store: Store, ada: User, grace: User) -> None:
    accept(store, document({"birds": 0.1}), ada, grace)
    eve = store.create_user("eve")
    with pytest.raises(NotAllowed, match=r'"model" on mine belongs to ada; give yours another name'):
        store.submit(document({"birds": 0.99}), eve)
    store.submit(document({"birds": 0.2}), grace)  # a moderator may
    elsewhere = Document.of(Scores((row(suite="another"),)))
    assert store.submit(elsewhere, eve).board == "another"  # a name belongs to somebody on one board


def test_a_team_shares_its_systems_and_only_the_host_lets_people_in(store: Store, grace: User) -> None:
    first = store.create_user("first", team="Finches")
    accept(store, document(), first, grace)
    with pytest.raises(Conflict, match="There is a team"):
        store.create_user("intruder", team="finches")
    second = store.create_user("second", team="finches", join=True)
    assert second.team == "Finches"
    made = store.submit(document({"birds": 0.7}), second)
    assert store.withdraw(made.id, first, "").state == "withdrawn"


def test_a_name_is_not_kept_by_asking_for_it(store: Store, ada: User, grace: User) -> None:
    squatted = store.submit(document({"birds": 0.1}), ada)
    eve = store.create_user("eve")
    with pytest.raises(NotAllowed):
        store.submit(document({"birds": 0.2}), eve)
    store.decide(squatted.id, grace, accept=False, reason="not yours")
    accept(store, document({"birds": 0.2}), eve, grace)
    assert [system.owner for system in store.systems("mine")] == ["eve"]
    with pytest.raises(NotAllowed, match="belongs to eve"):
        store.submit(document({"birds": 0.3}), ada)


def test_only_moderators_decide_and_only_owners_withdraw(store: Store, ada: User, grace: User) -> None:
    made = store.submit(document(), ada)
    eve = store.create_user("eve")
    with pytest.raises(NotAllowed, match="Only a moderator"):
        store.decide(made.id, ada, accept=True)
    with pytest.raises(NotAllowed, match="belongs to ada"):
        store.withdraw(made.id, eve, "")
    with pytest.raises(NotFound):
        store.decide("nothing", grace, accept=True)
    # What counts is the role that the database knows, not the one that a caller claims.
    with pytest.raises(NotAllowed, match="Only a moderator"):
        store.decide(made.id, User(ada.id, ada.name, "", "moderator", ada.created), accept=True)
    with pytest.raises(NotAllowed, match="no user"):
        store.submit(document(), User(999, "ghost", "", "author", ada.created))
    assert store.withdraw(made.id, grace, "spam").decided_by == "grace"


def test_an_author_cannot_mark_scores_as_reproduced(store: Store, ada: User, grace: User) -> None:
    claim = Document.of(Scores((row(),)), provenance="blind")
    with pytest.raises(NotAllowed, match='Only a moderator may call scores "blind"'):
        store.submit(claim, ada)
    assert store.submissions() == []
    assert store.submit(claim, grace).provenance == "blind"


# --- sent twice ------------------------------------------------------------------------------------------------------


def test_the_same_key_again_is_the_same_submission(store: Store, ada: User, grace: User) -> None:
    made = store.submit(document(), ada, idempotency_key="k1")
    assert store.submit(document(), ada, idempotency_key="k1") == made
    with pytest.raises(Conflict, match="used for another document"):
        store.submit(document({"birds": 0.9}), ada, idempotency_key="k1")
    assert store.submit(document(), ada, idempotency_key="k2").id != made.id
    other = store.submit(document(system="other"), grace, idempotency_key="k1")  # a key is its author's own
    assert other.id != made.id
    assert len(store.submissions()) == 3


def test_the_same_document_without_a_key_is_one_submission_until_something_newer_came(
    store: Store, ada: User, grace: User
) -> None:
    made = store.submit(document({"birds": 0.1}), ada)
    assert store.submit(document({"birds": 0.1}), ada).id == made.id
    store.decide(made.id, grace, accept=True)
    assert store.submit(document({"birds": 0.1}), ada).id == made.id
    accept(store, document({"birds": 0.2}), ada, grace)
    again = accept(store, document({"birds": 0.1}), ada, grace)
    assert again != made.id
    assert live(store) == {("model", "birds"): 0.1}


def test_a_refused_document_leaves_nothing(store: Store, ada: User) -> None:
    with pytest.raises(Refused, match=r"GSR.*outside \[0, 1\]") as refused:
        store.submit(Document.of(Scores((row(), row(1.5, metric="GSR")))), ada)
    assert [problem.pointer for problem in refused.value.problems] == ["/scores/1"]
    with store.engine.connect() as connection:
        for table in ("submissions", "systems", "scores", "documents", "measurements"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() == 0


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "'; DROP TABLE systems; --", "a%_\\b", "模型 ♀", "x" * 200, "../../etc/passwd", "🐦"],
)
def test_names_are_kept_as_they_are(store: Store, ada: User, grace: User, name: str) -> None:
    accept(store, document(system=name), ada, grace)
    (system,) = store.systems("mine")
    assert system.card.name == name
    assert set(system.slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert 0 < len(system.slug) <= 70
    assert store.system("mine", system.slug) == system
    assert store.system("mine", name if name != system.slug else "nothing") is None


def test_slugs_do_not_collide(store: Store, ada: User) -> None:
    names = ["A b", "a-b", "a_b", "A B", "a b-2"]
    made = store.submit(Document.of(Scores(tuple(row(system=name) for name in names))), ada)
    assert len(set(made.systems)) == len(names)


@pytest.mark.parametrize("name", ["clap", "\uff23LAP", "\u0421LAP", "CL\u200dAP", "CLAP\u00a0"])
def test_a_name_that_looks_like_anothers_is_theirs(store: Store, ada: User, grace: User, name: str) -> None:
    eve = store.create_user("eve")
    accept(store, document(system="CLAP"), ada, grace)
    with pytest.raises((NotAllowed, InputError), match=r"looks like|blanks around"):
        store.submit(document(system=name), eve)
    assert len(store.submissions()) == 1
    store.submit(document(system="CLAP 2"), eve)
    if name.strip() == name:
        store.submit(document(system=name), ada)  # whoever has the name may vary it


# --- lists -----------------------------------------------------------------------------------------------------------


def test_submissions_are_listed_newest_first_and_page_by_page(store: Store, ada: User, grace: User) -> None:
    ids = [store.submit(document(system=f"s{k}"), ada if k % 2 else grace).id for k in range(7)]
    assert [one.id for one in store.submissions()] == ids[::-1]
    page = store.submissions(limit=3)
    assert [one.id for one in store.submissions(limit=3, before=page[-1].id)] == ids[::-1][3:6]
    assert [one.id for one in store.submissions(owner="ada")] == ids[5::-2]
    store.decide(ids[2], grace, accept=True)
    assert [one.id for one in store.submissions(state="accepted")] == [ids[2]]
    assert len(store.submissions(state="pending", board="mine")) == 6
    assert store.submissions(board="other") == []
    assert [one.id for one in store.submissions(board="mine", system="s3")] == [ids[3]]
    with pytest.raises(NotFound):
        store.submissions(before="nothing")
    with pytest.raises(UsageError):
        store.submissions(limit=0)


def test_some_systems_alone(store: Store, ada: User, grace: User) -> None:
    rows = tuple(row(k / 1000, system=f"s{k}") for k in range(700))
    accept(store, Document.of(Scores(rows[:400])), ada, grace)
    accept(store, Document.of(Scores(rows[400:])), ada, grace)
    ids = [system.id for system in store.systems("mine")]
    assert len(ids) == 700
    assert np.array_equal(np.sort(store.live_scores("mine", ids[50:650])["value"]), np.arange(50, 650) / 1000)
    assert len(store.live_scores("mine", [])) == 0
    assert len(store.live_scores("other", ids)) == 0


def test_the_trail_names_everything_that_happened(store: Store, ada: User, grace: User) -> None:
    made = store.submit(document(), ada)
    store.decide(made.id, grace, accept=True)
    store.withdraw(made.id, ada, "oops")
    trail = store.events(limit=10)
    assert [(e.user, e.action, e.submission) for e in reversed(trail)] == [
        ("ada", "created_user", ""),
        ("grace", "created_user", ""),
        ("ada", "submitted", made.id),
        ("grace", "accepted", made.id),
        ("ada", "withdrew", made.id),
    ]
    assert store.events(limit=2, before=trail[1].id) == trail[2:4]


def test_facts_about_the_board(store: Store) -> None:
    assert store.meta("title") is None
    assert store.set_meta("title", "one") == "one"
    assert store.set_meta("title", "two") == "two"
    assert store.set_meta("title", "three", keep=True) == "two"
    assert store.meta("title") == "two"


@pytest.mark.parametrize("odd", ["a\x00b", "\ud800", "x" * 100_000, "' OR 1=1 --"])
def test_odd_texts_find_nothing_and_break_nothing(store: Store, ada: User, grace: User, odd: str) -> None:
    made = accept(store, document(), ada, grace)
    assert store.systems(odd) == []
    assert store.system("mine", odd) is None
    assert store.submission(odd) is None
    assert store.user(odd) is None
    assert len(store.live_scores(odd)) == 0
    assert store.submissions(board=odd) == store.submissions(owner=odd) == store.submissions(system=odd) == []
    assert store.cards_of(odd) == ()
    for ask in (store.rows_of, store.document_of, lambda id: store.withdraw(id, ada, "")):
        with pytest.raises(NotFound):
            ask(odd)
    for told in ("a\x00b", "\ud800"):
        with pytest.raises(InputError):
            store.withdraw(made, ada, told)
        with pytest.raises(InputError):
            store.submit(document({"birds": 0.9}), ada, idempotency_key=told)
        with pytest.raises(InputError):
            store.create_token(ada, told)


# --- users and tokens ------------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_kept_as_a_hash(store: Store, ada: User) -> None:
    plain, kept = store.create_token(ada, "laptop")
    assert plain.startswith(kept.prefix)
    assert (kept.user, kept.label, kept.revoked) == ("ada", "laptop", None)
    with store.engine.connect() as connection:
        stored = connection.execute(text("SELECT * FROM tokens")).mappings().one()
    assert plain not in map(str, stored.values())
    assert stored["hash"] == hashlib.sha256(plain.encode()).hexdigest()
    assert all(plain not in event.detail for event in store.events())
    assert store.authenticate(plain) == ada
    assert store.tokens(ada)[0].last_used is not None
    wrong = plain[:-1] + ("A" if plain[-1] != "A" else "B")
    for bad in ("", "em_", kept.prefix, wrong, plain + "x", plain.upper(), "\x00", "é" * 20, "x" * 10_000):
        assert store.authenticate(bad) is None
    store.revoke_token(kept.id, ada)
    assert store.authenticate(plain) is None
    assert store.tokens(ada)[0].revoked is not None


def test_a_token_is_ended_by_its_owner_or_a_moderator(store: Store, ada: User, grace: User) -> None:
    _, kept = store.create_token(ada, "")
    eve = store.create_user("eve")
    with pytest.raises(NotFound):
        store.revoke_token(kept.id, eve)
    with pytest.raises(NotFound):
        store.revoke_token(12345, grace)
    store.revoke_token(kept.id, grace)
    store.revoke_token(kept.id, ada)  # twice is once


@pytest.mark.parametrize("name", ["", " ", "a\x00b", "-a", "a\nb", "x" * 61, "‮evil", "<b>"])
def test_impossible_user_names(store: Store, name: str) -> None:
    with pytest.raises(InputError):
        store.create_user(name)


def test_user_names_are_taken_once_and_the_papers_name_never(store: Store, ada: User) -> None:
    for taken in ("ada", "ADA", "\uff41da", "\u0430da", "papers", "Papers"):
        with pytest.raises(Conflict):
            store.create_user(taken)
    with pytest.raises(Conflict):  # nor by the host, who may let people into teams
        store.create_user("papers", join=True)
    papers = store.papers()
    assert store.papers() == papers
    with pytest.raises(NotAllowed):
        store.create_token(papers, "")
    assert [user.name for user in store.users()] == ["ada", "papers"]
    assert store.user("nobody") is None


# --- many at once ----------------------------------------------------------------------------------------------------


def _send_many(url: str, number: int, complaints: multiprocessing.Queue[str]) -> None:
    try:
        store = Store(open_database(url))
        me = store.user(f"user {number}")
        assert me is not None
        for turn in range(5):
            sent = document({"birds": turn / 10, f"own {number}": 0.5}, system=f"of {number}")
            first = store.submit(sent, me, idempotency_key=f"{number}-{turn}")
            assert store.submit(sent, me, idempotency_key=f"{number}-{turn}") == first
            grace = store.user("grace")
            assert grace is not None
            store.decide(first.id, grace, accept=True)
        store.close()
    except BaseException:
        complaints.put(traceback.format_exc())


def test_ten_processes_write_at_once(url: str) -> None:
    store = Store(open_database(url))
    store.create_user("grace", role="moderator")
    for number in range(10):
        store.create_user(f"user {number}")
    start = multiprocessing.get_context("fork")
    complaints: multiprocessing.Queue[str] = start.Queue()
    store.close()
    workers = [start.Process(target=_send_many, args=(url, number, complaints)) for number in range(10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert complaints.empty(), complaints.get()
    assert [worker.exitcode for worker in workers] == [0] * 10
    found = store.submissions(limit=1000)
    assert len(found) == 50
    assert store.generation() == 50
    expected = {(f"of {k}", "birds"): 0.4 for k in range(10)} | {(f"of {k}", f"own {k}"): 0.5 for k in range(10)}
    assert live(store) == expected
    assert Counter(event.action for event in store.events(limit=1000)) == {
        "created_user": 11, "submitted": 50, "accepted": 50,
    }  # fmt: skip
    store.close()


def _open(url: str, complaints: multiprocessing.Queue[str]) -> None:
    try:
        Store(open_database(url)).close()
    except BaseException:
        complaints.put(traceback.format_exc())


@pytest.mark.parametrize("which", ["sqlite", "postgres"])
def test_several_processes_open_a_new_board_at_once(request: pytest.FixtureRequest, tmp_path: Path, which: str) -> None:
    bare = (
        f"sqlite:///{tmp_path / 'new.sqlite3'}" if which == "sqlite" else request.getfixturevalue("bare_postgres_url")
    )
    start = multiprocessing.get_context("fork")
    complaints: multiprocessing.Queue[str] = start.Queue()
    workers = [start.Process(target=_open, args=(bare, complaints)) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert complaints.empty(), complaints.get()
    store = Store(open_database(bare))
    assert store.generation() == 0
    store.close()


def test_readers_see_one_state_while_others_write(store: Store, ada: User, grace: User) -> None:
    from earmark.board.storage.live import live_scores
    from earmark.databases import reading

    accept(store, document({"birds": 0.1}), ada, grace)
    with reading(store.engine) as connection:
        before = live_scores(connection, "mine", None)["value"].tolist()
        accept(store, document({"birds": 0.9, "otters": 0.8}), ada, grace)
        assert live_scores(connection, "mine", None)["value"].tolist() == before == [0.1]
    assert sorted(store.live_scores("mine")["value"].tolist()) == [0.8, 0.9]


def test_the_columns_of_scores_are_the_columns_of_the_score_table() -> None:
    """A new column of the score table needs a migration."""
    from earmark.board.storage.tables import measurements, scores

    stored = {column.name for table in (scores, measurements) for column in table.columns}
    assert set(COLUMNS) - {"suite", "system"} <= stored
    assert set(KEY) == {"suite", "system"} | {column.name for column in measurements.columns} - {"id"}
    assert Row().n is None


def test_numbers_beyond_what_databases_count_find_nothing(store: Store, ada: User) -> None:
    for number in (-1, 0, 2**63, 10**40):
        with pytest.raises(NotFound):
            store.revoke_token(number, ada)
    assert len(store.events(before=10**40)) == 1
    assert store.events(before=-(10**40)) == []


def test_a_database_that_went_away_is_said_in_a_sentence(sqlite_store: Store, sqlite_url: str) -> None:
    """Nobody else wrote to it: the file was taken away and another lies in its place."""
    ada = sqlite_store.create_user("ada")
    sqlite_store.close()
    Path(sqlite_url.removeprefix("sqlite:///")).write_bytes(b"")
    for ask in (sqlite_store.generation, lambda: sqlite_store.submit(document(), ada)):
        with pytest.raises(Busy, match="does not answer"):
            ask()
