"""Stores to test on: every test that asks for `store` runs on SQLite and on a real PostgreSQL server.

The server is the one that EARMARK_TEST_POSTGRES names (`scripts/services run pytest …` starts one); without it the
tests on PostgreSQL are skipped. Each test has a database of its own, copied from one whose tables were made once.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from tests.board.hosted import listening

from earmark.board.records import User
from earmark.board.storage import Store, open_database

POSTGRES = os.environ.get("EARMARK_TEST_POSTGRES", "")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("template") / "board.sqlite3"
    open_database(f"sqlite:///{place}").dispose()
    return place


def _administer(*commands: str) -> None:
    engine = create_engine(make_url(POSTGRES).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for command in commands:
            connection.execute(text(command))
    engine.dispose()


def _database(name: str) -> str:
    return make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)


@contextmanager
def _postgres_database(template: str = "") -> Iterator[str]:
    name = f"earmark_{uuid.uuid4().hex[:12]}"
    _administer(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
    yield name
    _administer(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[str]:
    if not POSTGRES:
        pytest.skip("EARMARK_TEST_POSTGRES names no server: scripts/services starts one")
    with _postgres_database() as name:
        open_database(_database(name)).dispose()
        yield name


@pytest.fixture
def postgres_url(postgres_template: str) -> Iterator[str]:
    """An empty board on PostgreSQL."""
    with _postgres_database(postgres_template) as name:
        yield _database(name)


@pytest.fixture
def bare_postgres_url(postgres_template: str) -> Iterator[str]:
    """A PostgreSQL database without tables."""
    with _postgres_database() as name:
        yield _database(name)


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """An empty board in a SQLite file."""
    place = tmp_path / "board.sqlite3"
    shutil.copy(sqlite_template, place)
    return f"sqlite:///{place}"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of an empty board, on each database."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """An empty board, on each database."""
    made = Store(open_database(url))
    yield made
    made.close()


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    """An empty board on SQLite alone, for tests of what lies above the storage."""
    made = Store(open_database(sqlite_url))
    yield made
    made.close()


@pytest.fixture
def ada(store: Store) -> User:
    return store.create_user("ada")


@pytest.fixture
def grace(store: Store) -> User:
    """The moderator."""
    return store.create_user("grace", role="moderator")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    """A board that listens: its address, and the store behind it."""
    with listening(tmp_path_factory.mktemp("board")) as hosted:
        yield hosted
