"""The app as a whole: health, meters, logs, pages of problems, and the secret that outlives a restart."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.board.hosted import Hosted, document, hosted

from earmark.board.app import create_app
from earmark.board.settings import Settings
from earmark.board.web.logs import JsonLines, log_to_stderr, struck_out


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with hosted(tmp_path_factory.mktemp("board"), title="Our <board>") as made:
        yield made


def test_meters_count_routes_and_not_addresses(board: Hosted) -> None:
    board.accepted(document())
    for number in range(5):
        board.client.get(f"/v1/boards/unknown{number}")
        board.client.get(f"/unknown{number}")
        board.client.get(f"/b/unknown{number}")
    board.client.get("/b/vocsim/s/my-model", headers={"Accept": "text/html"})
    text = board.client.get("/metrics").text
    assert 'earmark_board_requests_total{method="GET",route="/v1/boards/{board}",status="404"} 5.0' in text
    assert 'earmark_board_requests_total{method="GET",route="/b/{board}",status="404"} 5.0' in text
    assert 'earmark_board_requests_total{method="GET",route="/b/{board}/s/{slug}",status="200"} 1.0' in text
    assert 'earmark_board_requests_total{method="GET",route="other",status="404"} 5.0' in text
    assert 'earmark_board_submissions_total{outcome="accepted"} 1.0' in text
    assert f"earmark_board_generation {board.store.generation()}.0" in text
    assert "unknown1" not in text


def test_a_line_of_the_log_says_who_did_what(board: Hosted, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "earmark.board")
    answer = board.client.get("/v1/me?q=private", headers=board.author)
    line = json.loads(JsonLines().format(caplog.records[-1]))
    assert (line["method"], line["path"], line["status"], line["user"]) == ("GET", "/v1/me", 200, "ada")
    assert line["request"] == answer.headers["x-request-id"]
    assert "private" not in json.dumps(line)


def test_lines_go_to_stderr_and_a_traceback_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("earmark.board")
    kept = (list(logger.handlers), logger.level, logger.propagate)
    try:
        log_to_stderr("info")
        try:
            raise ValueError("em_0123456789abcdefghij\nnext")
        except ValueError:
            logger.exception("failed for %s", "em_0123456789abcdefghij")
        lines = capsys.readouterr().err.splitlines()
    finally:
        logger.handlers, logger.level, logger.propagate = kept
    assert len(lines) == 1
    line = json.loads(lines[0])
    assert line["message"] == "failed for em_[token]"
    assert "em_[token]\nnext" in line["traceback"]
    assert struck_out("/b/em_short") == "/b/em_short"


def test_people_read_a_page_and_programs_a_problem(board: Hosted) -> None:
    page = board.client.get("/b/<script>/nowhere", headers={"Accept": "text/html,*/*"})
    assert page.status_code == 404
    assert "There is nothing at this address." in page.text
    assert "Our &lt;board&gt;" in page.text
    for path, accept in (("/nowhere", "application/json"), ("/v1/nowhere", "text/html")):
        answer = board.client.get(path, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/problem+json"


def test_the_api_is_described_on_a_page_of_our_own(board: Hosted) -> None:
    page = board.client.get("/v1/docs").text
    described = board.client.get("/v1/openapi.json").json()["paths"]
    for path, methods in described.items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    assert "<code>Idempotency-Key</code>" in page


def test_a_defect_is_logged_and_says_nothing_of_itself(
    board: Hosted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("inner detail")

    monkeypatch.setattr(board.store, "submission", fail)
    answer = board.client.get("/v1/submissions/x")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "inner detail" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "inner detail" in caplog.text


def test_sessions_outlive_a_restart_and_permalinks_have_the_public_address(tmp_path: Path) -> None:
    with hosted(tmp_path, base_url="https://board.example.org") as board:
        told = board.send(document()).json()
        assert told["permalink"] == f"https://board.example.org/submissions/{told['id']}"
    first, second = (create_app(Settings(data=tmp_path)) for _ in range(2))
    assert first.state.context.signer.secret == second.state.context.signer.secret
    assert len(first.state.context.signer.secret) == 32
    with TestClient(second) as client:
        assert client.get(f"/v1/submissions/{told['id']}").json()["state"] == "pending"
    first.state.context.store.close()
