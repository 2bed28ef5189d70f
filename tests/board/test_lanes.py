"""Reading documents of strangers: in a process with a deadline, in lanes that do not wait for each other."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.board.hosted import Hosted, document, hosted, listening

from earmark.board.settings import Rate, Throttle
from earmark.board.web import reading
from earmark.board.web.lanes import LANES
from earmark.board.web.reading import CELLS, Question, Unread, read_sealed
from earmark.errors import InputError
from earmark.scores import Row, Scores
from earmark.submissions import Document, Limits, check, read_document

PARQUET = {"Content-Type": "application/vnd.apache.parquet"}
JSON = {"Content-Type": "application/json"}


def packed(rows: int, **columns: Any) -> bytes:
    """A Parquet file with so many rows; a column is one text for all of them, or a list."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    given = {"suite": "mine", "system": "m", "subset": "a", "metric": "P@1", "value": 0.5, **columns}
    table = arrow.table({name: cell if isinstance(cell, list) else [cell] * rows for name, cell in given.items()})
    stream = io.BytesIO()
    parquet.write_table(table, stream, compression="snappy")
    return stream.getvalue()


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path) as made:
        yield made


def validated(board: Hosted, data: bytes, **headers: str) -> Any:
    return board.client.post("/v1/submissions/validate", content=data, headers={**PARQUET, **headers})


# --- what one document may cost ------------------------------------------------------------------------------------


def test_many_equal_rows_are_refused_before_any_is_made() -> None:
    bomb = packed(100_000)
    assert len(bomb) < 5_000
    began = time.process_time()
    with pytest.raises(InputError, match="100,000 rows, and only 1 different ones"):
        read_document(bomb, filename="scores.parquet")
    assert time.process_time() - began < 1.0


def test_few_equal_rows_are_named_by_the_rules() -> None:
    verdict = check(read_document(packed(5), filename="scores.parquet"))
    assert [problem.code for problem in verdict.problems] == ["repeated_row"] * 4


def test_a_document_has_so_many_subsets_settings_and_bytes() -> None:
    def sentences(count: int, limits: Limits, name: str) -> list[str]:
        begin = {"subset": "s", "protocol": "tandem:"}[name]
        rows = tuple(
            Row(suite="mine", system="m", value=0.5, metric="P@1", **{name: f"{begin}{number}"})
            for number in range(1, count + 1)
        )
        return [problem.message for problem in check(Document.of(Scores(rows)), limits=limits).problems]

    few = Limits(max_subsets=3, max_settings=3, max_body=100_000)
    assert sentences(3, few, "subset") == []
    assert sentences(4, few, "subset") == ["The document has 4 subsets; at most 3 are taken: send it in parts."]
    assert sentences(3, few, "protocol") == []
    assert "4 settings" in sentences(4, few, "protocol")[0]
    short = Limits(max_body=1_000)
    assert "is stored as" in sentences(40, short, "subset")[0]


# --- a process with a deadline -------------------------------------------------------------------------------------


def test_a_reading_is_what_reading_here_gives() -> None:
    sent = document()
    outcome = read_sealed(Question(sent.to_bytes(), "document.json"), seconds=60)
    found = outcome.reading()
    assert (found.board, found.rows, found.digest, found.problems) == ("vocsim", 4, sent.digest, ())
    assert found.document(Limits()) == sent
    assert 0 <= outcome.seconds < 60


def test_errors_keep_their_kind_and_their_sentence() -> None:
    for data, filename in ((b"[", "a.json"), (b"", "a.csv"), (b"x", "a.zip"), (b"PAR1", "a.parquet")):
        with pytest.raises(InputError) as here:
            read_document(data, filename=filename)
        with pytest.raises(type(here.value)) as there:
            read_sealed(Question(data, filename), seconds=60).reading()
        assert str(there.value) == str(here.value)


def test_a_document_that_takes_too_long_ends_its_process_and_the_next_is_read() -> None:
    large = packed(60_000, subset=[f"s{number % 400}" for number in range(60_000)],
                   system=[f"m{number // 400}" for number in range(60_000)])  # fmt: skip
    CELLS.warm()
    with pytest.raises(Unread, match=r"took longer than 0\.05 s"):
        read_sealed(Question(large, "scores.parquet"), seconds=0.05).reading()
    assert read_sealed(Question(document().to_bytes(), "a.json"), seconds=60).reading().rows == 4


def test_a_document_cannot_take_more_memory_than_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    if "limits" in reading._parts_missing():
        pytest.skip("this machine cannot bound the memory of a process")
    one = arrow.array(["P@1" * 1_000_000]).dictionary_encode().take(arrow.array([0] * 50_000))
    stream = io.BytesIO()
    parquet.write_table(arrow.table({"metric": one, "value": [0.5] * 50_000}), stream, compression="snappy")
    with pytest.raises(InputError):
        read_sealed(Question(stream.getvalue(), "scores.parquet"), seconds=60).reading()
    assert read_sealed(Question(document().to_bytes(), "a.json"), seconds=60).reading().rows == 4


# --- lanes ---------------------------------------------------------------------------------------------------------


def test_without_a_token_a_check_is_small_and_says_what_to_do(board: Hosted) -> None:
    rows = [f"s{number % 400}" for number in range(5_001)]
    large = packed(5_001, subset=rows, system=[f"m{number // 400}" for number in range(5_001)])
    answer = validated(board, large)
    assert answer.status_code == 422
    assert "5,001 rows; at most 5,000 are taken: sign in to check more" in answer.json()["detail"]
    assert "earmark submit FILE --dry-run" in answer.json()["detail"]
    assert validated(board, large, **board.author).json()["rows"] == 5_001
    long = board.client.post("/v1/submissions/validate", content=b" " * 1_500_000, headers=JSON)
    assert long.status_code == 413
    assert "larger than 1 MB; sign in" in long.json()["detail"]


def test_a_host_may_ask_for_a_token(tmp_path: Path) -> None:
    with hosted(tmp_path, anonymous_rows=0) as board:
        data = document().to_bytes()
        assert board.client.post("/v1/submissions/validate", content=data, headers=JSON).status_code == 401
        answer = board.client.post("/v1/submissions/validate", content=data, headers={**JSON, **board.author})
        assert answer.json()["accepted"] is True


def test_work_that_was_done_is_charged_and_owed() -> None:
    now = [0.0]
    throttle = Throttle(Rate(per_minute=60, burst=10), clock=lambda: now[0])
    assert throttle.take("a", 0.5) == 0
    throttle.charge("a", 14.5)  # it took more than was thought
    assert throttle.take("a", 0.5) == pytest.approx(5.5)
    assert throttle.take("b", 0.5) == 0
    now[0] += 5.5
    assert throttle.take("a", 0.5) == 0
    throttle.charge("b", -100.0)  # what was not used comes back, and no more
    assert throttle.take("b", 10.0) == 0
    assert throttle.take("b", 0.5) > 0


def test_an_asker_who_has_spent_their_time_is_told_when_to_come_back(tmp_path: Path) -> None:
    with hosted(tmp_path, anonymous_seconds=Rate(0.001, 1)) as board:
        data = document().to_bytes()
        board.client.app.state.lanes["anonymous"]._work.charge("testclient", 5.0)  # type: ignore[attr-defined]
        answer = board.client.post("/v1/submissions/validate", content=data, headers=JSON)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        signed_in = board.client.post("/v1/submissions/validate", content=data, headers={**JSON, **board.author})
        assert signed_in.status_code == 200
        assert board.send(document()).status_code == 201


def test_a_full_lane_answers_at_once_and_leaves_the_others_alone(
    board: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, held = threading.Event(), threading.Semaphore(0)
    real = reading.CELLS.call

    def slow(message: Any, seconds: float, most: int) -> Any:
        if message.head["limits"]["max_rows"] == 5_000:  # what nobody signed in for
            held.release()
            hold.wait(30)
        return real(message, seconds, most)

    monkeypatch.setattr(reading.CELLS, "call", slow)
    data = document().to_bytes()
    with ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(board.client.post, "/v1/submissions/validate", content=data, headers=JSON) for _ in range(4)
        ]
        assert held.acquire(timeout=30)
        try:
            refused = [one for one in asked if _status_within(one, 10) == 429]
            assert len(refused) == 4 - LANES["anonymous"].of_one_asker
            assert board.send(document()).status_code == 201
            checked = board.client.post("/v1/submissions/validate", content=data, headers={**JSON, **board.author})
            assert checked.status_code == 200
        finally:
            hold.set()
        assert sorted(one.result().status_code for one in asked) == [200, 200, 429, 429]


def _status_within(asked: Any, seconds: float) -> int | None:
    try:
        status: int = asked.result(timeout=seconds / 4).status_code
    except TimeoutError:
        return None
    return status


def test_nobody_works_for_a_client_that_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold, calls = threading.Event(), list[int]()
    real = reading.CELLS.call

    def slow(message: Any, seconds: float, most: int) -> Any:
        if message.head["limits"]["max_rows"] == 5_000:
            calls.append(1)
            hold.wait(30)
        return real(message, seconds, most)

    monkeypatch.setattr(reading.CELLS, "call", slow)
    data = document().to_bytes()
    lines = (b"POST /v1/submissions/validate HTTP/1.1", b"Host: x", b"Content-Type: application/json")
    asked = b"\r\n".join((*lines, b"Content-Length: %d\r\n\r\n"))
    with listening(tmp_path) as (address, _):
        place = urlsplit(address)
        with ExitStack() as stack:
            first, second = (
                stack.enter_context(socket.create_connection((place.hostname or "", place.port or 0))) for _ in "12"
            )
            first.sendall(asked % len(data) + data)
            while not calls:
                time.sleep(0.01)
            second.sendall(asked % len(data) + data)
            time.sleep(0.5)
            second.close()
            time.sleep(0.5)
            hold.set()
            assert first.recv(100).startswith(b"HTTP/1.1 200")
            time.sleep(0.5)
    assert len(calls) == 1
