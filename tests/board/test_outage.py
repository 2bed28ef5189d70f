"""The database away, its file removed, the disk full: readers read on, nothing is acknowledged and lost, and the board
says what is wrong without saying where it keeps what."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import make_url
from tests.board.hosted import Hosted, document, hosted

from earmark.board.settings import Rate
from earmark.board.storage import Store, open_database
from earmark.board.web.kept_pages import NAMES

HTML = {"Accept": "text/html"}
NOTICE = "the database does not answer, and nothing can be submitted now"


def within(seconds: float, true: Callable[[], bool]) -> bool:
    """Whether something becomes true in time."""
    ends = time.monotonic() + seconds
    while not true():
        if time.monotonic() > ends:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path) as made:
        made.accepted(document("kept in memory"))
        yield made


def ready(board: Hosted) -> tuple[int, str]:
    answer = board.client.get("/readyz")
    return answer.status_code, answer.text


@contextmanager
def postgres_away(url: str) -> Iterator[None]:
    """The database takes no connections, and those that it has are ended."""
    address = make_url(url)
    engine = create_engine(
        address.set(drivername="postgresql+psycopg", database="postgres"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.execute(text(f"ALTER DATABASE {address.database} ALLOW_CONNECTIONS false"))
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
            {"name": address.database},
        )
    try:
        yield
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"ALTER DATABASE {address.database} ALLOW_CONNECTIONS true"))
        engine.dispose()


def test_readers_read_on_while_postgresql_is_away(tmp_path: Path, postgres_url: str) -> None:
    with hosted(tmp_path, database_url=postgres_url) as board:
        board.accepted(document("kept in memory"))
        before = board.client.get("/b/vocsim", headers=HTML)
        assert NOTICE not in before.text
        assert ready(board) == (200, "ok\n")
        with postgres_away(postgres_url):
            time.sleep(1.1)  # what was asked a moment ago is not asked again
            for path in ("/b/vocsim", "/", "/b/vocsim?metric=P%401&q=kept", "/b/vocsim/s/kept-in-memory", "/about"):
                answer = board.client.get(path, headers=HTML)
                assert (path, answer.status_code) == (path, 200)
                assert NOTICE in answer.text
                assert NOTICE in answer.headers["x-earmark-notice"]
            assert "kept in memory" in board.client.get("/b/vocsim.csv").text
            assert board.client.get("/v1/boards").json()["items"][0]["name"] == "vocsim"
            refused = board.send(document("new one"))
            assert refused.status_code == 503
            assert refused.json()["detail"] == "The database does not answer; try again in a minute."
            page = board.client.get("/submissions/x", headers=HTML)
            assert page.status_code == 503
            for word in ("127.0.0.1", "localhost", "5432", make_url(postgres_url).database or "?", "psycopg"):
                assert word not in refused.text + page.text
            assert ready(board) == (503, "the database does not answer\n")
            assert board.client.get("/healthz").status_code == 200
        assert within(20, lambda: NOTICE not in board.client.get("/b/vocsim", headers=HTML).text)
        assert board.send(document("new one")).status_code == 201
        assert within(10, lambda: ready(board) == (200, "ok\n"))


def test_what_is_sent_to_a_removed_file_is_not_acknowledged(board: Hosted, tmp_path: Path) -> None:
    board.client.get("/b/vocsim", headers=HTML)
    (file,) = tmp_path.glob("*.sqlite3")
    away = tmp_path / "elsewhere"
    away.mkdir()
    for part in tmp_path.glob("*.sqlite3*"):
        shutil.move(part, away / part.name)
    refused = board.send(document("lost"))
    assert refused.status_code == 503, refused.text
    assert str(tmp_path) not in refused.text
    assert not file.exists()  # nor is an empty one made in its place
    time.sleep(1.1)
    page = board.client.get("/b/vocsim", headers=HTML)
    assert page.status_code == 200
    assert NOTICE in page.text
    assert ready(board)[0] == 503
    for part in away.iterdir():
        shutil.move(part, tmp_path / part.name)
    assert within(10, lambda: board.send(document("found")).status_code == 201)
    assert within(10, lambda: NOTICE not in board.client.get("/b/vocsim", headers=HTML).text)


def test_a_file_that_is_put_in_the_place_of_another_is_used(board: Hosted, tmp_path: Path) -> None:
    (file,) = tmp_path.glob("*.sqlite3")
    other = tmp_path / "other.sqlite3"
    store = Store(open_database(f"sqlite:///{other}"))
    store.create_user("somebody else")
    store.close()
    for part in tmp_path.glob("earmark-board.sqlite3-*"):
        part.unlink()
    other.replace(file)
    assert within(10, lambda: board.client.get("/v1/me", headers=board.author).status_code == 401)


def test_a_full_disk_is_said_and_leaves_the_board_readable(board: Hosted) -> None:
    assert ready(board) == (200, "ok\n")
    engine = board.store.engine

    def no_room(connection: object, _: object) -> None:
        connection.execute("PRAGMA max_page_count=1")  # type: ignore[attr-defined]

    event.listen(engine, "connect", no_room)
    engine.dispose()
    large = document("large", description="x" * 2000)
    answers = [board.send(large if number == 0 else document(f"m{number}")) for number in range(60)]
    refused = next(answer for answer in answers if answer.status_code != 201)
    assert refused.status_code == 507, refused.text
    assert "no room left" in refused.json()["detail"]
    assert board.client.get("/b/vocsim", headers=HTML).status_code == 200
    event.remove(engine, "connect", no_room)
    engine.dispose()
    assert board.send(document("after")).status_code == 201


def test_a_disk_that_is_nearly_full_is_not_ready(tmp_path: Path) -> None:
    with hosted(tmp_path, least_free=10**18) as board:
        status, sentence = ready(board)
        assert status == 503
        assert sentence.startswith("the disk has ")
        assert "less than 1,000,000,000,000 MB" in sentence
        assert board.client.get("/healthz").text == "ok\n"


def test_a_thread_that_has_ended_is_noticed(board: Hosted) -> None:
    background = board.client.app.state.background  # type: ignore[attr-defined]
    assert ready(board) == (200, "ok\n")
    background.stop()
    assert ready(board) == (503, "the thread that makes analyses has ended; restart the board\n")


# --- addresses that are made up ------------------------------------------------------------------------------------


def test_names_that_no_page_reads_make_no_new_page(board: Hosted) -> None:
    first = board.client.get("/b/vocsim?metric=P%401", headers=HTML)
    made_up = [
        board.client.get(f"/b/vocsim?x{number}={number}&metric=P%401&y=&metric=", headers=HTML) for number in range(5)
    ]
    assert {answer.headers["etag"] for answer in made_up} == {first.headers["etag"]}
    assert all("x1" not in answer.text for answer in made_up)
    api = [board.client.get(f"/v1/boards/vocsim/systems?made_up={number}") for number in range(3)]
    assert len({answer.headers["etag"] for answer in api}) == 1


def test_all_names_that_pages_use_are_read(board: Hosted) -> None:
    used: set[str] = set()
    for path in ("/b/vocsim", "/b/vocsim/compare?s=kept-in-memory", "/b/vocsim/pareto", "/b/vocsim/s/kept-in-memory",
                 "/b/vocsim/subsets", "/b/vocsim/subsets/BC", "/b/vocsim/analysis", "/"):  # fmt: skip
        page = board.client.get(path, headers=HTML).text
        used |= set(re.findall(r'<(?:input|select)[^>]*\sname="([^"]+)"', page))
        for address in re.findall(r'(?:href|hx-get)="([^"]*\?[^"]*)"', page):
            parts = urlsplit(unescape(address))
            if parts.path.startswith("/b/"):
                used |= {name for name, _ in parse_qsl(parts.query)}
    assert {"metric", "show", "s"} <= used
    assert used <= NAMES, used - NAMES


def test_one_reader_cannot_have_all_pages_made(tmp_path: Path) -> None:
    with hosted(tmp_path, page_seconds=Rate(0.001, 0)) as board:
        board.accepted(document())
        kept = board.client.get("/b/vocsim", headers=HTML)
        assert kept.status_code == 200
        refused = board.client.get("/b/vocsim?q=other", headers=HTML)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert board.client.get("/b/vocsim", headers=HTML).text == kept.text  # what is there costs nothing
