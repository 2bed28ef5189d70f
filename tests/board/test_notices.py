"""Authors are told by mail and webhook: real servers receive, nothing is lost, and nothing leads inside."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from sqlalchemy import update
from tests.board.documents import document
from tests.board.hosted import hosted
from tests.board.test_writing_pages import page, post, sign_in

from earmark.board.courier import Courier, post_signed, public_target, signature
from earmark.board.records import User
from earmark.board.refusals import Conflict, Refusal
from earmark.board.settings import Settings
from earmark.board.storage import Store
from earmark.board.storage.accounts import now
from earmark.board.storage.notices import MOST_ATTEMPTS
from earmark.board.storage.tables import notices
from earmark.errors import InputError


@contextmanager
def mail_server() -> Iterator[tuple[str, list[Any]]]:
    """A real SMTP server: its address, and what it received."""
    received: list[Any] = []

    class Handler:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            received.append(envelope)
            return "250 OK"

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(Handler(), hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield f"smtp://127.0.0.1:{port}", received
    finally:
        controller.stop()


@contextmanager
def web_server(*statuses: int, location: str = "") -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A server that answers with each status in turn, the last for good."""
    received: list[tuple[dict[str, str], bytes]] = []
    left = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            received.append((dict(self.headers), data))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            if location:
                self.send_header("Location", location)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def due_again(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(update(notices).where(notices.c.due.is_not(None)).values(due=now() - timedelta(seconds=1)))


def test_a_decision_arrives_as_a_signed_webhook(store: Store, ada: User, grace: User) -> None:
    with web_server(204) as (address, received):
        contact = store.set_contact(ada, "", address)
        sent = store.submit(document(), ada)
        store.decide(sent.id, grace, accept=False, reason="no version")
        courier = Courier(store, Settings(base_url="https://board.example.org", webhooks="any"))
        assert courier.send_due() == 1
        assert courier.send_due() == 0  # once
    ((headers, body),) = received
    plain = json.loads(body)
    assert (plain["event"], plain["submission"], plain["reason"]) == ("rejected", sent.id, "no version")
    assert plain["address"] == f"https://board.example.org/submissions/{sent.id}"
    assert headers["X-Earmark-Signature"] == signature(contact.secret, body)
    assert headers["X-Earmark-Signature"] != signature("another", body)


def test_what_does_not_arrive_is_sent_again_and_given_up_in_the_end(store: Store, ada: User, grace: User) -> None:
    with web_server(500, 302, 200, location="http://127.0.0.1/elsewhere") as (address, received):
        store.set_contact(ada, "", address)
        store.decide(store.submit(document(), ada).id, grace, accept=True)
        courier = Courier(store, Settings(webhooks="any"))
        assert courier.send_due() == 0
        assert courier.send_due() == 0  # not due yet: it waits a minute
        due_again(store)
        assert courier.send_due() == 0  # a redirect is not followed
        due_again(store)
        assert courier.send_due() == 1
        assert len(received) == 3
    store.decide(store.submit(document({"birds": 0.7}), ada).id, grace, accept=True)
    for _ in range(MOST_ATTEMPTS):  # nobody listens any more
        due_again(store)
        assert courier.send_due() == 0
    assert not store.has_due_notices()
    assert store.events(1)[0].action == "gave_up_notice"


def test_mail_is_sent_to_addresses_that_were_confirmed(store: Store, ada: User, grace: User) -> None:
    with mail_server() as (smtp, received):
        courier = Courier(store, Settings(smtp=smtp, mail_from="board@example.org", title="Birds"))
        store.set_contact(ada, "ada@example.org", "")
        store.decide(store.submit(document(), ada).id, grace, accept=True)
        assert courier.send_due() == 0  # nobody has said that it is theirs
        store.ask_to_confirm(ada, "CODE")
        assert courier.send_due() == 1
        assert b"/contact/confirm?code=3DCODE" in received[0].content or b"code=CODE" in received[0].content
        with pytest.raises(Conflict):
            store.confirm_mail(ada, "eve@example.org")
        store.confirm_mail(ada, "ada@example.org")
        store.decide(store.submit(document({"birds": 0.6}), ada).id, grace, accept=False, reason="why not")
        assert courier.send_due() == 1
    assert received[1].rcpt_tos == ["ada@example.org"]
    text = received[1].content.decode()
    assert "Subject: Birds: Your submission to mine: rejected" in text
    assert "Reason: why not" in text


def test_the_thread_of_notices_ends_with_the_server(tmp_path: Path) -> None:
    """Else it asks a database that is gone, and logs that it is."""

    def couriers() -> set[int | None]:
        return {thread.ident for thread in threading.enumerate() if thread.name == "courier"}

    before = couriers()
    with hosted(tmp_path, webhooks="any"):
        assert couriers() - before
    assert couriers() <= before


def test_codes_are_not_sent_without_end(store: Store, ada: User) -> None:
    store.set_contact(ada, "victim@example.org", "")
    for _ in range(3):
        store.ask_to_confirm(ada, "x")
    with pytest.raises(Refusal, match="tomorrow"):
        store.ask_to_confirm(ada, "x")


@pytest.mark.parametrize(
    "address",
    ["ftp://example.org", "http://", "javascript:alert(1)", "https://ada:pw@example.org/", "https://exa mple.org", "x"],
)
def test_addresses_that_are_no_webhooks(store: Store, ada: User, address: str) -> None:
    with pytest.raises(InputError, match="webhook"):
        store.set_contact(ada, "", address)
    with pytest.raises(InputError, match="mail address"):
        store.set_contact(ada, address, "")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "10.0.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "fd00::1",
        "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "224.0.0.1", "100.64.0.1",
    ],
)  # fmt: skip
def test_nothing_inside_is_reached(host: str) -> None:
    with pytest.raises(InputError, match="no address of the public internet"):
        public_target(host, 80)


def test_public_addresses_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert public_target("93.184.215.14", 443) == ("93.184.215.14", 443)
    with web_server(200) as (address, received):
        with pytest.raises(InputError, match="public internet"):
            post_signed(address, {"a": 1}, "secret")
        assert received == []


def test_the_page_takes_an_address_and_confirms_it(tmp_path: Path) -> None:
    with mail_server() as (smtp, received), hosted(tmp_path, smtp=smtp) as board:
        sign_in(board, board.author_token)
        assert "Where you are told" in page(board, "/mine")
        done = post(board, "/contact", "/mine", mail="ada@example.org", webhook="")
        assert done.headers["location"] == "/mine?done=confirm"
        assert Courier(board.store, Settings(smtp=smtp)).send_due() == 1
        text = received[0].content.decode().replace("=\r\n", "").replace("=3D", "=")
        code = re.search(r"confirm\?code=(\S+)", text)
        assert code is not None
        assert 'value="' + code[1] in page(board, f"/contact/confirm?code={code[1]}")
        assert post(board, "/contact/confirm", "/contact/confirm?code=x", code="wrong").status_code == 422
        assert post(board, "/contact/confirm", "/contact/confirm?code=x", code=code[1]).status_code == 303
        assert "(confirmed)" in page(board, "/mine")


def test_a_board_without_a_mail_server_asks_for_no_address(tmp_path: Path) -> None:
    with hosted(tmp_path, webhooks="off") as board:
        sign_in(board, board.author_token)
        shown = page(board, "/mine")
        assert "Make a private feed" in shown  # which needs neither
        assert "Mail address" not in shown
        assert "Webhook" not in shown
        assert post(board, "/contact", "/mine", mail="ada@example.org").status_code == 422
        assert post(board, "/contact", "/mine", webhook="https://example.org").status_code == 422
