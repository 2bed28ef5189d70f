"""The steps from an empty database to the tables of this version, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from earmark.board.storage import open_database
from earmark.board.storage.migrations import HEAD, config_for, revision_of
from earmark.board.storage.tables import metadata
from earmark.databases import connect, writing
from earmark.errors import InputError, UsageError

_FIRST = (
    "meta", "users", "tokens", "systems", "submissions", "documents", "submission_systems", "measurements", "scores",
    "live", "events",
)  # fmt: skip
"""The tables of the first step."""


def test_the_steps_make_the_tables(url: str) -> None:
    """`alembic check`: nothing is left to migrate when all steps were taken."""
    engine = open_database(url)
    with engine.begin() as connection:
        assert revision_of(connection) == HEAD
        command.check(config_for(connection))
        there = set(inspect(connection).get_table_names()) - {"alembic_version"}
    assert there == set(metadata.tables)
    engine.dispose()


def test_the_last_step_is_the_head(tmp_path: Path) -> None:
    engine = open_database(str(tmp_path / "a.sqlite3"))
    with engine.connect() as connection:
        assert ScriptDirectory.from_config(config_for(connection)).get_heads() == [HEAD]
    engine.dispose()


def test_the_check_sees_a_table_that_no_step_makes(url: str) -> None:
    """The test above can fail."""
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE scores DROP COLUMN seconds"))
        with pytest.raises(Exception, match="New upgrade operations detected"):
            command.check(config_for(connection))
    engine.dispose()


def test_a_step_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made in one transaction, also on SQLite."""
    from earmark.board.storage import migrations

    engine = connect(str(tmp_path / "half.sqlite3"))

    def fail_after(config: object, revision: str) -> None:
        connection = config.attributes["connection"]  # type: ignore[attr-defined]
        connection.execute(text("CREATE TABLE half (id INTEGER)"))
        raise RuntimeError("killed")

    monkeypatch.setattr("alembic.command.upgrade", fail_after)
    with pytest.raises(RuntimeError):
        writing(engine, lambda connection: migrations.bring_to(connection, HEAD))
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == []
    engine.dispose()


def test_a_database_of_a_newer_version_is_left_alone(url: str) -> None:
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(InputError, match=r"newer Earmark .*9999"):
        open_database(url)


@pytest.mark.parametrize("address", ["mysql://a@b/c", "sqlite://", "sqlite:///:memory:", "://"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(UsageError):
        open_database(address)


def test_a_file_that_is_no_database_and_a_server_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite3").write_text("words " * 1000)
    with pytest.raises(InputError, match="cannot be opened"):
        open_database(str(tmp_path / "text.sqlite3"))
    with pytest.raises(UsageError, match="is a folder"):
        open_database(str(tmp_path))
    with pytest.raises(InputError) as refused:
        open_database(f"postgresql://ada:hush-hush@/board?host={tmp_path}")
    assert "hush-hush" not in str(refused.value)


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    open_database(str(tmp_path / "new" / "board.sqlite3")).dispose()
    assert (tmp_path / "new" / "board.sqlite3").stat().st_mode & 0o077 == 0


def test_a_database_of_the_first_version_is_brought_up_with_its_rows(url: str) -> None:
    """Rows that were stored before the last columns were there read as rows without them; new ones keep every cell."""
    from tests.board.documents import row

    from earmark.board.storage import Store
    from earmark.board.storage.migrations import bring_to
    from earmark.scores import Scores
    from earmark.submissions import Document, SystemCard

    spelled = ("ablation", "aggregate", "statistic")
    new = ("interval", "unit", "units", "comparisons", "shuffle", "baseline_error", *spelled)
    store = Store(open_database(url))
    grace = store.create_user("grace", role="moderator")
    rows = (row(0.4), row(0.3, subset="ES1~noise0.05"), row(0.4, subset="mean:public"))
    before = store.submit(Document.of(Scores(rows), cards=[SystemCard("model")]), grace)
    store.decide(before.id, grace, accept=True)
    with store.engine.begin() as connection:  # as it was before the second step
        command.downgrade(config_for(connection), "0001")
    store.engine.dispose()
    engine = connect(url)
    with engine.connect() as connection:
        assert revision_of(connection) == "0001"
        assert not set(new) & {column["name"] for column in inspect(connection).get_columns("scores")}
    writing(engine, lambda connection: bring_to(connection, HEAD))
    engine.dispose()

    store = Store(open_database(url))
    with store.engine.begin() as connection:
        command.check(config_for(connection))
    names = {system.id: system.card.name for system in store.systems("mine")}
    live = store.live_scores("mine")
    assert set(zip(live["ablation"], live["aggregate"], strict=True)) == {
        ("", ""),
        ("noise0.05", ""),
        ("", "mean:public"),
    }
    assert set(live.rows("mine", names)) == set(rows)
    full = row(
        0.6, low=0.5, high=0.7, baseline=0.1, interval="jackknife", unit="group", units=15, comparisons=3,
        shuffle="whole_groups", baseline_error=0.001,
    )  # fmt: skip
    sent = store.submit(Document.of(Scores((full,)), cards=[SystemCard("model")]), grace)
    store.decide(sent.id, grace, accept=True)
    assert full in set(store.live_scores("mine").rows("mine", names))
    store.engine.dispose()
