"""What a host does with users: roles, bans, erasure; and what one author may send in a day."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import inspect, select, text, update
from tests.board.documents import document

from earmark.board.records import Quotas, User
from earmark.board.refusals import Conflict, NotAllowed, NotFound, Refusal
from earmark.board.storage import Store
from earmark.board.storage.accounts import now
from earmark.board.storage.tables import submissions
from earmark.definitions import Definition
from earmark.errors import InputError, UsageError


@pytest.fixture
def host(store: Store) -> User:
    return store.create_user("hilda", role="host")


def actions(store: Store) -> list[str]:
    return [event.action for event in store.events(1000)]


def test_only_a_host_gives_roles(store: Store, ada: User, grace: User, host: User) -> None:
    with pytest.raises(NotAllowed, match="Only a host"):
        store.change_role("ada", "host", grace)
    assert store.change_role("ada", "moderator", host).moderates
    assert store.change_role("ada", "author", None).role == "author"  # at the command line
    assert store.events(1)[0].detail == "ada: moderator to author"
    assert store.events(1)[0].user == "command line"
    with pytest.raises(UsageError, match="A role is"):
        store.change_role("ada", "king", host)  # type: ignore[arg-type]
    with pytest.raises(Conflict, match="only host"):
        store.change_role("hilda", "author", host)
    with pytest.raises(NotFound):
        store.change_role("papers", "author", host)


def test_who_is_banned_neither_signs_in_nor_sends(store: Store, ada: User, grace: User, host: User) -> None:
    token, _ = store.create_token(ada)
    sent = store.submit(document({"birds": 0.5}), ada)
    store.decide(sent.id, grace, accept=True)
    with pytest.raises(NotAllowed):
        store.ban("ada", grace)
    store.ban("ada", host, "spam")
    assert store.authenticate(token) is None
    for refused in (
        lambda: store.submit(document({"birds": 0.6}), ada),
        lambda: store.create_token(ada),
        lambda: store.save_draft(document(), ada),
        lambda: store.withdraw(sent.id, ada),
        lambda: store.set_contact(ada, "", ""),
    ):
        with pytest.raises(NotAllowed, match="banned ada"):
            refused()
    assert len(store.live_scores("mine")) == 1  # kept, unless they are hidden
    before = store.generation()
    store.ban("ada", host, "spam", hide=True)
    assert len(store.live_scores("mine")) == 0
    assert store.generation() > before
    store.unban("ada", host)
    assert len(store.live_scores("mine")) == 1
    assert store.authenticate(token) is None  # a token that has ended stays so
    assert store.authenticate(store.create_token(store.user("ada") or ada)[0]) is not None
    assert actions(store)[:4] == ["created_token", "unbanned_user", "banned_user", "banned_user"]
    assert store.events(3)[2].detail == "ada, scores hidden: spam"


def test_hosts_do_not_lock_themselves_out(store: Store, host: User) -> None:
    with pytest.raises(Conflict, match="themselves"):
        store.ban("hilda", host)
    with pytest.raises(Conflict, match="only host"):
        store.ban("hilda", None)
    with pytest.raises(Conflict, match="only host"):
        store.erase("hilda", None, "kept")
    store.create_user("bob")
    with pytest.raises(Conflict, match="not banned"):
        store.unban("bob", host)


def everything(store: Store) -> str:
    """All texts of all tables."""
    with store.engine.connect() as connection:
        names = inspect(connection).get_table_names()
        return "\n".join(str(row) for name in names for row in connection.execute(text(f"SELECT * FROM {name}")))


@pytest.mark.parametrize("scores", ["kept", "withdrawn"])
def test_nothing_names_who_was_erased(store: Store, grace: User, host: User, scores: str) -> None:
    zoe = store.create_user("zoe quux", team="quuxlab")
    store.create_token(zoe, "of zoe quux")
    card = {"authors": ("Zoe Quux",), "citation": "Quux 2025", "licence": "MIT", "command": "run --as quux"}
    sent = store.submit(document({"birds": 0.5}, **card), zoe)
    store.decide(sent.id, grace, accept=True)
    pending = store.submit(document({"birds": 0.6}, system="other", **card), zoe)
    gone = store.submit(document({"birds": 0.6}, system="third", **card), zoe)
    store.withdraw(gone.id, zoe, "quux was wrong")
    store.correct_card("mine", "model", zoe, {"authors": ["Z. Quux"]}, "quux asked")
    store.save_draft(document({"birds": 0.7}, **card), zoe)
    store.set_contact(zoe, "zoe@quux.example.org", "")
    lines = len(store.events(1000))

    stand_in = store.erase("zoe quux", host, scores)  # type: ignore[arg-type]
    assert "quux" not in everything(store).lower()
    assert store.user("zoe quux") is None
    assert stand_in == f"erased user {zoe.id}"
    assert len(store.events(1000)) > lines  # no line is gone, and there is one that says what was done
    assert store.events(1)[0].action == "erased_user"
    assert store.events(1)[0].user == "hilda"
    states = {each.id: (each.state, each.owner) for each in store.submissions()}
    assert states[sent.id] == ("accepted" if scores == "kept" else "withdrawn", stand_in)
    assert states[pending.id][0] == "withdrawn"
    assert len(store.live_scores("mine")) == (1 if scores == "kept" else 0)
    (system,) = store.systems("mine")
    assert (system.card.authors, system.card.licence, system.owner) == ((), "MIT", stand_in)
    with pytest.raises(NotFound):
        store.document_of(sent.id)
    with pytest.raises(Conflict, match="reserved"):
        store.create_user("Erased user 7")


def test_nobody_registers_the_name_of_a_reader_or_of_who_was_erased(store: Store, grace: User, host: User) -> None:
    """The host lists whom they expect; whoever comes first with that name is told what a name that exists is told."""
    store.define(Definition("secret", private=True, readers=("team:labx", "Zoe")), grace)
    store.create_user("quentin", team="quuxlab")
    store.erase("quentin", host, "kept")
    for name in ("Zoe", "zoe", "Qu\u0435ntin"):  # with a Cyrillic letter
        with pytest.raises(Conflict, match=r"There is a user .* already; choose another name"):
            store.register(name)
    for team in ("labx", " LabX ", "QuuxLab"):
        with pytest.raises(Conflict, match=r"There is a team .* already; ask the host"):
            store.register("eve", team)
    assert store.register("labx", "Zoe").name == "labx"  # a user is no team
    assert not store.may_read("secret", store.user("labx"))
    assert store.may_read("secret", store.create_user("Zoe", "labx"))  # a host may
    assert store.create_user("quentin", "quuxlab").team == "quuxlab"
    with pytest.raises(InputError):
        store.register("\ud800")


def test_a_name_within_another_is_left_alone(store: Store, ada: User, host: User) -> None:
    store.create_user("adalbert")
    store.ban("adalbert", host)
    store.erase("ada", host, "kept")
    assert "adalbert" in store.events(2)[1].detail


# --- quotas ----------------------------------------------------------------------------------------------------------


def test_an_author_has_a_quota_of_submissions_a_day(store: Store, ada: User, grace: User) -> None:
    store.quotas = Quotas(submissions=2)
    first = store.submit(document({"birds": 0.1}), ada)
    store.submit(document({"birds": 0.2}), ada)
    with pytest.raises(Refusal, match="ada has sent 2 submissions within 24 hours, and this board takes 2") as refused:
        store.submit(document({"birds": 0.3}), ada)
    assert refused.value.status == 429
    assert 86_000 < int(refused.value.headers["Retry-After"]) <= 86_400
    assert store.submit(document({"birds": 0.2}), ada).id != first.id  # the same again is what was sent, not more
    store.submit(document({"birds": 0.4}, system="other"), grace)
    store.submit(document({"birds": 0.4}, system="third"), store.create_user("bob"))
    with store.engine.begin() as connection:
        yesterday = update(submissions).where(submissions.c.public == first.id)
        connection.execute(yesterday.values(created=now() - timedelta(hours=25)))
    store.submit(document({"birds": 0.3}), ada)


def test_a_team_shares_its_quota(store: Store) -> None:
    store.quotas = Quotas(rows=3)
    one, other = (store.create_user(name, "lab", join=True) for name in ("one", "other"))
    store.submit(document({"a": 0.1, "b": 0.2}), one)
    with pytest.raises(Refusal, match="The team lab has sent 2 rows"):
        store.submit(document({"a": 0.3, "b": 0.3}), other)
    store.submit(document({"a": 0.3}), other)
    with pytest.raises(Refusal, match=r"alone has 4"):
        store.submit(document({"a": 0.3, "b": 0.3, "c": 0.1, "d": 0.1}, system="z"), store.create_user("solo"))


def test_stored_bytes_are_what_is_counted_not_what_was_sent(store: Store, ada: User) -> None:
    """A packed file of equal rows is small when it is sent and large when it is stored."""
    sent = document({f"subset {number}": 0.5 for number in range(50)})
    store.quotas = Quotas(bytes=len(sent.to_bytes()) + 100)
    stored = store.submit(sent, ada)
    assert stored.size == len(sent.to_bytes())
    with store.engine.connect() as connection:
        assert connection.execute(select(submissions.c.size)).scalar() == stored.size
    with pytest.raises(Refusal, match="bytes within 24 hours"):
        store.submit(document({"subset 1": 0.6, "subset 2": 0.5}), ada)


def test_zero_is_no_limit(store: Store, ada: User) -> None:
    store.quotas = Quotas(0, 0, 0)
    for number in range(3):
        store.submit(document({"birds": number / 10}), ada)
