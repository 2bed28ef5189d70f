"""The pages of authors and moderators: what they say of a submission, and forms that come back with what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.board.hosted import Hosted, document, hosted

HTML = {"Accept": "text/html"}


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path, registration="open") as made:
        yield made


def page(board: Hosted, path: str) -> str:
    answer = board.client.get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def post(board: Hosted, path: str, source: str, **fields: str) -> Any:
    """Send a form with the form token of the page on which it is."""
    token = re.search(r'name="form_token" value="([^"]+)"', page(board, source))
    assert token is not None
    fields = {"form_token": token[1], **fields}
    return board.client.post(path, data=fields, headers=HTML, follow_redirects=False)


def sign_in(board: Hosted, token: str) -> None:
    assert post(board, "/sign-in", "/sign-in", token=token).status_code == 303


def test_a_rejection_without_a_reason_brings_the_form_back(board: Hosted) -> None:
    sent = board.send(document()).json()["id"]
    sign_in(board, board.moderator_token)
    address = f"/submissions/{sent}"
    assert re.search(r'<textarea id="reason"[^>]* required', page(board, address))
    assert re.search(r'value="accept"[^>]* formnovalidate', page(board, address))
    before = board.counts()
    refused = post(board, f"{address}/decide", address, choice="reject", provenance="blind", reason=" ")
    assert refused.status_code == 422
    assert 'role="alert" id="wrong">A rejection needs a reason' in refused.text
    assert '<option value="blind" selected>' in refused.text
    assert board.counts() == before
    assert post(board, f"{address}/decide", address, choice="reject", reason="measured twice").status_code == 303
    assert "measured twice" in page(board, address)


def test_a_moderator_sees_the_cards_and_what_is_new(board: Hosted) -> None:
    board.accepted(document("old one", board="mine"))
    card: dict[str, Any] = {
        "authors": ("A. Author", "B. Author"),
        "licence": "MIT",
        "command": "earmark run --suite mine",
    }
    fresh = board.send(document("New <one>", board="mine", **card)).json()["id"]
    again = board.send(document("old one", 0.6, board="mine")).json()["id"]
    assert "A. Author" not in page(board, f"/submissions/{fresh}")  # to nobody but its author and moderators
    sign_in(board, board.moderator_token)
    shown = page(board, f"/submissions/{fresh}")
    for text in ("A. Author, B. Author", "<dd>MIT</dd>", "<code>earmark run --suite mine</code>", "New &lt;one&gt;"):
        assert text in shown
    assert ("new to the board" in shown, "on the board already" in shown) == (True, False)
    shown = page(board, f"/submissions/{again}")
    assert ("new to the board" in shown, "on the board already" in shown) == (False, True)


def test_systems_are_called_by_their_names(board: Hosted) -> None:
    sent = board.accepted(document("My Model, layer 9"))
    sign_in(board, board.author_token)
    assert "<td>My Model, layer 9</td>" in page(board, "/mine")
    assert '<a href="/b/vocsim/s/my-model-layer-9">My Model, layer 9</a>' in page(board, f"/submissions/{sent}")


def test_the_page_is_called_as_the_links_and_the_documentation_call_it(board: Hosted) -> None:
    assert "<h1>Sign up</h1>" in page(board, "/sign-up")
    assert '<a href="/sign-up">Sign up</a>' in page(board, "/sign-in")


def test_training_free_is_explained_where_it_is_asked(board: Hosted) -> None:
    sign_in(board, board.author_token)
    shown = page(board, "/submit")
    assert "nothing was trained on this benchmark&#39;s own data" in shown
    assert '<select id="card-training_free" name="training_free" aria-describedby="help-training_free">' in shown
