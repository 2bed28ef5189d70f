"""`earmark serve`: a fresh folder becomes a board, a second start finds it, a signal ends it well."""

from __future__ import annotations

import json
import signal
import socket
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.board.hosted import document
from tests.board.serving import serving
from tests.cli.verbs import runner

from earmark.board.storage import Store
from earmark.cli import serve
from earmark.submissions.client import BoardClient

Call = Callable[..., tuple[int, str, str]]


def read(address: str, token: str = "") -> str:
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def test_a_fresh_folder_becomes_a_board_and_a_second_start_finds_it(tmp_path: Path) -> None:
    with serving(tmp_path, "--title", "Our board") as first:
        boards = json.loads(read(f"{first.address}/v1/boards"))["items"]
        assert {"vocsim", "codec-superb"} <= {one["name"] for one in boards}
        assert "Our board" in read(first.address)
        token = first.token()
        receipt = BoardClient(first.address, token).submit(document("new one").to_bytes())
        assert receipt.state == "pending"
        assert first.stop() == 0
    lines = [line for line in first.log.read_text("utf-8").splitlines() if line.startswith("{")]
    assert [json.loads(line)["message"] for line in lines][-1] == f"Finished server process [{first.process.pid}]"
    assert token not in "".join(lines)
    with serving(tmp_path, "--quiet") as second:
        assert second.log.read_text("utf-8") == ""  # no new moderator, nothing loaded again
        assert BoardClient(second.address, token).submission(receipt.id).state == "pending"
        assert len(json.loads(read(f"{second.address}/v1/submissions?board=vocsim"))["items"]) == 1  # the papers'
        assert len(json.loads(read(f"{second.address}/v1/submissions?board=vocsim", token))["items"]) == 2
        assert second.stop(signal.SIGINT) == 0


def test_several_workers_share_one_board(tmp_path: Path) -> None:
    with serving(tmp_path, "--empty", "--workers", "2") as server:
        client = BoardClient(server.address, server.token())
        sent = [client.submit(document(f"model {number}").to_bytes()).id for number in range(6)]
        assert json.loads(read(f"{server.address}/v1/boards"))["items"] == []
        asked = read(f"{server.address}/v1/submissions", server.token())
        listed = [one["id"] for one in json.loads(asked)["items"]]
        assert sorted(listed) == sorted(sent)
        assert server.stop() == 0


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    return runner("serve", serve, capsys)


def test_a_port_that_is_taken_leaves_no_database_behind(call: Call, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, out, err = call("--port", taken.getsockname()[1], "--data", tmp_path)
    assert (code, out) == (1, "")
    assert "give another with --port" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "70000"], "between 0 and 65535"),
        (["--package-limit", "large"], "a size is written as 500MB or 2GB"),
        (["--workers", "0"], "at least one process"),
        (["--host", "no.such.host.invalid"], "no address of this machine"),
        (["--port", "0", "--database", "mysql://x/y"], "sqlite or postgresql"),
        (["--url", "ftp://x"], "--url is an address such as"),
        (["--url", "https://[x"], "--url is an address such as"),
    ],
)
def test_wrong_options_are_one_sentence(call: Call, tmp_path: Path, words: list[str], said: str) -> None:
    code, out, err = call(*words, "--data", tmp_path)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_the_first_moderator_takes_nobodys_name(sqlite_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    sqlite_store.create_user("moderator")
    serve._first_moderator(sqlite_store)
    assert "token of the user moderator 2" in capsys.readouterr().err
    assert [(user.name, user.role) for user in sqlite_store.users()] == [
        ("moderator", "author"),
        ("moderator 2", "host"),
    ]
    serve._first_moderator(sqlite_store)
    assert capsys.readouterr().err == ""


def test_without_the_extra_it_says_what_to_install(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, out, err = call()
    assert (code, out) == (1, "")
    assert err == 'earmark: Leaderboards need `pip install "earmark[board]"`.\n'
