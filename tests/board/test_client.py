"""The client against a real board, and against servers that misbehave in every way a network knows."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import pytest
from tests.board.hosted import document

from earmark.board.storage import Store
from earmark.errors import InputError, UsageError
from earmark.submissions import client
from earmark.submissions.client import BoardClient, BoardRefusal, checked_address, sends_in_the_open

TOKEN = "em_" + "x" * 43
RECEIPT = {
    "id": "1", "board": "vocsim", "state": "pending", "systems": ["m"], "rows": 4, "notes": [], "permalink": "http://x/1",
}  # fmt: skip


# --- a real board ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ada(board: tuple[str, Store]) -> BoardClient:
    address, store = board
    token, _ = store.create_token(store.create_user("ada"))
    return BoardClient(address, token, patience=5)


def test_a_document_is_checked_sent_found_and_asked_for(ada: BoardClient, board: tuple[str, Store]) -> None:
    sent = document("sent by the client")
    assert ada.validate(sent.to_bytes())["accepted"] is True
    assert ada.find("vocsim", sent.digest) is None
    receipt = ada.submit(sent.to_bytes())
    assert (receipt.state, receipt.rows, receipt.systems) == ("pending", 4, ("sent-by-the-client",))
    assert receipt.permalink == f"{board[0]}/submissions/{receipt.id}"
    assert ada.find("vocsim", sent.digest) == receipt == ada.submission(receipt.id)
    assert board[1].document_of(receipt.id) == sent.to_bytes()


def test_a_refusal_has_the_boards_sentence_and_everything_it_found(ada: BoardClient, board: tuple[str, Store]) -> None:
    with pytest.raises(BoardRefusal, match=r"The board answered 422: .*") as caught:
        ada.submit(document(value=40.0).to_bytes())
    assert caught.value.status == 422
    assert any(problem.pointer.startswith("/scores/0") for problem in caught.value.problems)
    with pytest.raises(BoardRefusal, match="401"):
        BoardClient(board[0], TOKEN).submit(document().to_bytes())


def test_a_hundred_megabytes_are_refused_over_a_real_connection(ada: BoardClient) -> None:
    with pytest.raises(BoardRefusal, match="413: The body is larger than 8 MB"):
        ada.submit(b" " * 100_000_000)


# --- servers that misbehave -----------------------------------------------------------------------

Answer = Callable[[BaseHTTPRequestHandler], None]


def says(status: int, body: object, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        for name, text in headers.items():
            handler.send_header(name, text)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def stops_in_the_middle(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(201)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id":')
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)


class Scripted:
    """A server that gives its answers one after the other, the last one for ever, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        left = list(answers)

        class Handler(BaseHTTPRequestHandler):
            def answer(handler) -> None:
                body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
                self.asked.append((handler.command, handler.path, dict(handler.headers), body))
                (left.pop(0) if len(left) > 1 else left[0])(handler)

            do_GET = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_what_may_pass_is_tried_again_with_the_same_key() -> None:
    waits: list[float] = []
    answers = (
        hangs_up, stops_in_the_middle, says(503, {"detail": "Busy."}), says(502, b"<html>"), says(429, b""),
        says(201, RECEIPT),
    )  # fmt: skip
    with Scripted(*answers) as server:
        receipt = BoardClient(server.address, TOKEN, sleep=waits.append).submit(b"{}")
    assert receipt.id == "1"
    assert len(server.asked) == len(answers)
    keys = {headers["Idempotency-Key"] for _, _, headers, _ in server.asked}
    assert len(keys) == 1
    assert len(keys.pop()) == 32
    assert {headers["Authorization"] for _, _, headers, _ in server.asked} == {f"Bearer {TOKEN}"}
    assert {body for *_, body in server.asked} == {b"{}"}
    assert len(waits) == len(answers) - 1
    assert waits[-1] > 4 * waits[0]  # longer and longer


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    with Scripted(says(status, {"detail": "No."})) as server, pytest.raises(BoardRefusal, match=f"{status}: No"):
        BoardClient(server.address, TOKEN).submit(b"{}")
    assert len(server.asked) == 1


def test_a_redirect_is_not_followed_with_the_token() -> None:
    with Scripted(says(201, RECEIPT)) as other, Scripted(says(307, b"", Location=other.address + "/v1")) as server:
        with pytest.raises(InputError, match="sends us to"):
            BoardClient(server.address, TOKEN).submit(b"{}")
        assert other.asked == []


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"id": "1", "rows": "many"}', b"\xff", b"[" * 99_999])
def test_another_kind_of_server_is_recognised(body: bytes) -> None:
    with Scripted(says(200, body)) as server, pytest.raises(InputError, match="does not answer as a board"):
        BoardClient(server.address, TOKEN).submit(b"{}")


def test_a_page_that_is_missing_elsewhere_is_no_answer_of_a_board() -> None:
    with Scripted(says(404, b"<html>")) as server, pytest.raises(InputError, match="does not answer as a board"):
        BoardClient(server.address, TOKEN).submit(b"{}")


def test_a_certificate_that_does_not_fit_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = urllib.error.URLError(ssl.SSLCertVerificationError(1, "self-signed certificate"))
    monkeypatch.setattr(client._OPENER, "open", mock.Mock(side_effect=wrong))
    with pytest.raises(InputError, match="self-signed"):
        BoardClient("https://board.invalid", TOKEN, sleep=lambda _: pytest.fail("waited")).submit(b"{}")


def test_patience_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(InputError, match="does not answer"):
        BoardClient(f"http://127.0.0.1:{port}", TOKEN, patience=0.1).submit(b"{}")
    with pytest.raises(InputError, match="does not answer"):  # nor is a name that nobody has asked for a minute
        BoardClient("http://board.invalid", TOKEN, sleep=lambda _: pytest.fail("waited")).submit(b"{}")


# --- addresses and tokens -------------------------------------------------------------------------


def test_addresses() -> None:
    assert checked_address("board.example.org") == "https://board.example.org"
    assert checked_address("http://localhost:8000/") == "http://localhost:8000"
    assert checked_address("https://example.org/board/?x#y") == "https://example.org/board"
    for wrong in (
        "",
        "ftp://x",
        "http://",
        "http://a b",
        "http://user:word@host",
        "http://x:99999",
        "http://[::1",
        "file:///etc/passwd",
    ):
        with pytest.raises(UsageError, match="is not the address of a board"):
            checked_address(wrong)
    for address in ("http://board.example.org", "http://10.0.0.7:8000"):
        assert sends_in_the_open(address)
    for address in ("https://x", "http://localhost:1", "http://127.0.0.1", "http://[::1]:8"):
        assert not sends_in_the_open(address)


def test_a_token_is_never_part_of_a_message() -> None:
    client = BoardClient("http://localhost", TOKEN)
    assert TOKEN not in repr(client)
    with pytest.raises(UsageError) as caught:
        BoardClient("http://localhost", TOKEN + "\r\nX-Evil: 1")
    assert TOKEN not in str(caught.value)


def test_the_client_needs_neither_the_web_stack_nor_a_database() -> None:
    """In a fresh interpreter in which they cannot be imported."""
    code = """
import sys
for name in ("fastapi", "starlette", "sqlalchemy", "alembic", "uvicorn", "jinja2", "torch", "transformers"):
    sys.modules[name] = None
import earmark.submissions.client, earmark.cli.submit
from earmark import cli
raise SystemExit(cli.main(["submit", sys.argv[1], "--board", "vocsim", "--dry-run", "--quiet"]))
"""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        file = Path(folder) / "scores.csv"
        document().scores.write(file)
        done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "4 rows of 1 system: checked here, nothing sent\n"), done.stderr
