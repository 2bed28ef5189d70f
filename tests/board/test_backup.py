"""A backup is the whole board; it goes back into either database, or nowhere at all."""

from __future__ import annotations

import contextlib
import csv
import gzip
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from sqlalchemy import MetaData, select
from tests.board.documents import document, row

from earmark.board.backup import backup, restore
from earmark.board.export import export
from earmark.board.records import User
from earmark.board.storage import Store, open_database
from earmark.errors import InputError, UsageError
from earmark.scores import Scores, load_scores
from earmark.submissions import Document


def everything(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, as plain values without time zones."""
    metadata = MetaData()
    metadata.reflect(store.engine)
    with store.engine.connect() as connection:
        return {
            table.name: sorted(
                tuple(cell.isoformat()[:26] if hasattr(cell, "isoformat") else cell for cell in line)
                for line in connection.execute(select(table))
            )
            for table in metadata.sorted_tables
        }


@pytest.fixture
def full(store: Store, ada: User, grace: User) -> Store:
    """A board on which everything happened once."""
    odd = "<script>'; DROP TABLE x; -- 🐦"
    missing = row(None, status="failed", reason="“why”, it said", system=odd)
    first = store.submit(Document.of(Scores((missing, row(1 / 3, subset="b", system=odd, n=2**53)))), ada)
    store.decide(first.id, grace, accept=True)
    store.submit(document({"birds": 0.5}), ada, idempotency_key="k")
    rejected = store.submit(document({"birds": 0.6}), ada)
    store.decide(rejected.id, grace, accept=False, reason="no")
    _, token = store.create_token(ada, "old")
    store.revoke_token(token.id, ada)
    store.set_meta("secret", "abc")
    return store


NOT_KEPT = ("alembic_version", "sessions")  # whoever was signed in signs in again


@pytest.mark.parametrize("into", ["sqlite", "postgres"])
def test_a_board_moves_between_databases(
    full: Store, ada: User, grace: User, tmp_path: Path, request: pytest.FixtureRequest, into: str
) -> None:
    plain, _ = full.create_token(ada, "laptop")
    before = everything(full)
    target = tmp_path / "board.backup.gz"
    made = backup(full.engine, target)
    assert made.tables == {name: len(rows) for name, rows in before.items() if name not in NOT_KEPT}
    assert target.stat().st_mode & 0o077 == 0

    on_file = f"sqlite:///{tmp_path / 'new.sqlite3'}"
    new = on_file if into == "sqlite" else request.getfixturevalue("bare_postgres_url")
    assert restore(target, new).tables == made.tables
    other = Store(open_database(new))
    assert everything(other) == before
    # The board goes on where it was: numbers that are given out next are new ones, tokens and keys still fit.
    assert other.authenticate(plain) == ada
    assert other.submit(document({"birds": 0.5}), ada, idempotency_key="k").digest == document({"birds": 0.5}).digest
    sent = other.submit(document({"birds": 0.9}, system="later"), ada)
    other.decide(sent.id, grace, accept=True)
    assert len(other.live_scores("mine")) == len(full.live_scores("mine")) + 1
    other.create_user("somebody new")
    other.close()


def test_a_restore_overwrites_nothing(full: Store, tmp_path: Path) -> None:
    target = tmp_path / "board.backup.gz"
    backup(full.engine, target)
    new = f"sqlite:///{tmp_path / 'new.sqlite3'}"
    open_database(new).dispose()  # tables alone are no contents
    restore(target, new)
    with pytest.raises(InputError, match="not empty"):
        restore(target, new)


@pytest.mark.parametrize("damage", ["cut", "changed", "last line", "text", "other", "nothing"])
def test_a_damaged_backup_restores_nothing(sqlite_store: Store, tmp_path: Path, damage: str) -> None:
    ada = sqlite_store.create_user("ada")
    sqlite_store.submit(document(), ada)
    target = tmp_path / "board.backup.gz"
    backup(sqlite_store.engine, target)
    data = target.read_bytes()
    if damage == "cut":
        target.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        target.write_bytes(gzip.compress(gzip.decompress(data).replace(b'"ada"', b'"eve"', 1)))
    elif damage == "last line":
        target.write_bytes(gzip.compress(b"\n".join(gzip.decompress(data).splitlines()[:-2]) + b"\n"))
    elif damage == "text":
        target.write_text("words")
    elif damage == "other":
        target.write_bytes(gzip.compress(b'{"format": "other"}\n{}\n'))
    else:
        target.unlink()
    new = tmp_path / "new.sqlite3"
    with pytest.raises(InputError):
        restore(target, f"sqlite:///{new}")
    store = Store(open_database(f"sqlite:///{new}"))
    assert store.users() == []
    assert store.submissions() == []
    store.close()


def test_a_backup_is_one_moment_of_a_board_that_runs(store: Store, ada: User, tmp_path: Path) -> None:
    """Others write while it is taken: what it holds fits together."""
    for number in range(5):
        store.submit(document(system=f"s{number}"), ada)
    written: list[int] = []

    def busy(rows: int) -> None:
        written.append(rows)
        store.submit(document(system=f"later {len(written)}"), ada)

    backup(store.engine, tmp_path / "b.gz", progress=busy)
    assert len(written) > 3
    new = f"sqlite:///{tmp_path / 'new.sqlite3'}"
    restore(tmp_path / "b.gz", new)
    other = Store(open_database(new))
    found = other.submissions()
    assert len(found) == 5
    assert all(len(other.rows_of(sent.id)) == sent.rows for sent in found)
    other.close()


# --- export ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_backup_never_replaces_the_database(sqlite_store: Store, sqlite_url: str, end: str) -> None:
    place = Path(sqlite_url.removeprefix("sqlite:///") + end)
    before = place.read_bytes() if place.exists() else None
    with pytest.raises(InputError, match="is the database itself"):
        backup(sqlite_store.engine, place)
    assert (place.read_bytes() if place.exists() else None) == before


def test_a_restore_from_nothing_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        restore(tmp_path / "no.backup.gz", f"sqlite:///{tmp_path / 'new.sqlite3'}")
    assert list(tmp_path.iterdir()) == []


def test_a_restore_spares_a_database_of_something_else(sqlite_store: Store, tmp_path: Path) -> None:
    backup(sqlite_store.engine, tmp_path / "board.gz")
    other = tmp_path / "other.sqlite3"
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE users (a)")
    with pytest.raises(InputError, match="something else than a board"):
        restore(tmp_path / "board.gz", f"sqlite:///{other}")


def test_an_export_holds_no_formulas(sqlite_store: Store, tmp_path: Path) -> None:
    grace = sqlite_store.create_user("grace", role="moderator")
    sent = sqlite_store.submit(document(title="=1+1", authors=("@SUM(A1)",)), grace)
    sqlite_store.decide(sent.id, grace, accept=True)
    files = export(sqlite_store, tmp_path / "out")
    (line,) = _read(files[2])
    assert (line["title"], line["authors"], line["name"]) == ("'=1+1", "'@SUM(A1)", "model")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_export_is_what_readers_see(full: Store, grace: User, tmp_path: Path, suffix: Any) -> None:
    files = export(full, tmp_path / "out", suffix)
    assert [path.relative_to(tmp_path / "out").as_posix() for path in files] == [
        f"mine/{name}.{suffix}" for name in ("scores", "origins", "systems", "submissions")
    ]
    accepted = next(sent for sent in full.submissions() if sent.state == "accepted")
    assert set(load_scores(files[0])) == set(full.rows_of(accepted.id))
    tables = [_read(path) for path in files]
    assert [line["submission"] for line in tables[1]] == [accepted.id] * 2
    assert [line["name"] for line in tables[2]] == ["<script>'; DROP TABLE x; -- 🐦"]
    assert [line["id"] for line in tables[3]] == [accepted.id]  # what was never accepted is nobody's business
    with pytest.raises(UsageError, match='no board "yours"'):
        export(full, tmp_path / "out", suffix, ["yours"])


def _read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        found: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
        return found
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
