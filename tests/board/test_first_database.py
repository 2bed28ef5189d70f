"""A database that version 0.1.0 wrote is opened, brought up to date, served and ranked, and nothing of it is lost.

`tests/historic/board_v0.1.0.sql` is a dump of a board that 0.1.0's own code filled: two boards, four authors' systems,
scores measured again, an ablation, a missing value, and submissions in every state. On PostgreSQL the same rows are put
into the tables that 0.1.0 made there.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import MetaData, create_engine, func, insert, inspect, select, text

from earmark.board.app import create_app
from earmark.board.boards.snapshots import Snapshots
from earmark.board.settings import Settings
from earmark.board.storage import Store, open_database
from earmark.board.storage.migrations import HEAD, bring_to, revision_of
from earmark.databases import connect, writing

DUMP = Path(__file__).parents[1] / "historic" / "board_v0.1.0.sql"
TOKEN = "em_kRNPljjMYdNsFV1sQsyaCKG1w9F-HY3UNqpk5rG5QOA"
"""Of the author ada: 0.1.0 made it on a board that nobody hosts."""


@pytest.fixture
def first_file(tmp_path: Path) -> str:
    """The board of 0.1.0 in a SQLite file, as 0.1.0 left it."""
    place = tmp_path / "earmark-board.sqlite3"
    connection = sqlite3.connect(place)
    connection.executescript(DUMP.read_text("utf-8"))
    connection.close()
    return f"sqlite:///{place}"


@pytest.fixture
def first_server(first_file: str, bare_postgres_url: str) -> str:
    """The same rows in PostgreSQL, in the tables of the first step."""
    source, target = create_engine(first_file), connect(bare_postgres_url)
    writing(target, lambda connection: bring_to(connection, "0001"))
    tables = MetaData()
    tables.reflect(target)
    read = MetaData()
    read.reflect(source)
    with source.connect() as old, target.begin() as new:
        for table in tables.sorted_tables:
            if table.name == "alembic_version":
                continue
            rows = [dict(row._mapping) for row in old.execute(select(read.tables[table.name]))]
            if rows:
                new.execute(insert(table), rows)
            if rows and "id" in table.columns:
                most = new.execute(select(func.max(table.c.id))).scalar()
                setval = "SELECT setval(pg_get_serial_sequence(:table, 'id'), :most)"
                new.execute(text(setval), {"table": table.name, "most": most})
    source.dispose()
    target.dispose()
    return bare_postgres_url


@pytest.fixture(params=["file", "server"])
def first(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"first_{request.param}")
    return found


def counts(url: str) -> dict[str, int]:
    engine = connect(url)
    with engine.connect() as connection:
        names = [name for name in inspect(connection).get_table_names() if name != "alembic_version"]
        found = {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar() for name in names}
    engine.dispose()
    return {name: int(number or 0) for name, number in found.items()}


def test_it_is_opened_and_nothing_is_lost(first: str) -> None:
    before = counts(first)
    assert before["submissions"] == 9
    store = Store(open_database(first))
    with store.engine.connect() as connection:
        assert revision_of(connection) == HEAD
    after = counts(first)
    assert {name: after[name] for name in before} == before
    assert [user.name for user in store.users()] == ["ada", "bob", "grace"]
    ada = store.authenticate(TOKEN)
    assert ada is not None
    assert (ada.team, ada.role, ada.banned) == ("analysts", "author", None)
    states = [each.state for each in reversed(store.submissions())]
    assert states == [
        "accepted", "accepted", "accepted", "accepted", "withdrawn", "rejected", "pending", "accepted", "accepted",
    ]  # fmt: skip
    assert {each.size for each in store.submissions()} == {0}
    names = {system.id: system.card.name for system in store.systems("birds")}
    live = {(row.system, row.subset, row.metric): row for row in store.live_scores("birds").rows("birds", names)}
    assert live["alpha", "crows", "P@1"].value == 0.65  # measured again
    assert live["beta", "owls", "P@1"].value == 0.5  # the withdrawn one is gone
    assert (live["beta", "finches", "GSR"].status, live["beta", "finches", "GSR"].reason) == ("failed", "out of memory")
    assert live["alpha", "crows~noise0.05", "P@1"].ablation == "noise0.05"
    assert len(live) == 11
    (alpha,) = (system for system in store.systems("birds") if system.card.name == "alpha")
    assert (alpha.card.title, alpha.card.authors, alpha.card.parameters_m) == ("Alpha, layer 9", ("A. Author",), 95.0)
    for each in store.submissions():
        assert store.document_of(each.id)
    store.close()


def test_it_goes_on(first: str) -> None:
    """What waited is decided about, marked, corrected and sent again; ids go on where they were."""
    store = Store(open_database(first))
    grace, ada = store.user("grace"), store.user("ada")
    assert grace is not None
    assert ada is not None
    (pending,) = store.submissions(state="pending")
    assert store.decide(pending.id, grace, accept=True).state == "accepted"
    assert store.mark(pending.id, grace, "reproduced").provenance == "reproduced"
    store.correct_card("birds", "epsilon", ada, {"title": "New"})
    assert store.create_user("new").id > ada.id
    store.change_role("grace", "host", None)
    store.erase("bob", store.user("grace"), "kept")
    store.close()


def test_it_is_ranked(first: str) -> None:
    store = Store(open_database(first))
    snapshot = Snapshots(store).current("birds")
    field = snapshot.field("P@1")
    names = [snapshot.systems[place].card.name for place in field.systems.tolist()]
    ranks = {name: field.rank_at(at)[0] for at, name in enumerate(names)}
    assert ranks == {"gamma": 1, "alpha": 2, "beta": 3}
    store.close()


def test_it_is_served(first_file: str) -> None:
    with TestClient(create_app(Settings(database_url=first_file))) as client:
        shown = client.get("/b/birds", headers={"Accept": "text/html"})
        assert shown.status_code == 200
        assert all(name in shown.text for name in ("gamma", "alpha", "beta"))
        assert "delta" not in shown.text
        assert client.get("/b/birds/s/alpha").status_code == 200
        assert client.get("/b/vocsim").status_code == 200
        mine = client.get("/v1/submissions?owner=ada", headers={"Authorization": f"Bearer {TOKEN}"})
        assert len(mine.json()["items"]) == 3
