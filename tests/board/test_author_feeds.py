"""Authors by programs: a private feed of what became of their submissions, and drafts through the API."""

from __future__ import annotations

import logging
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import update
from tests.board.hosted import Hosted, document, hosted

from earmark.board.storage.tables import feeds, users
from earmark.board.web.logs import LOGGER

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path) as made:
        yield made


def feed_of(board: Hosted, address: str) -> list[tuple[str, str]]:
    """The titles and summaries of a feed, the newest first."""
    answer = board.client.get(urlsplit(address).path)
    assert answer.status_code == 200, answer.text
    entries = ET.fromstring(answer.text).findall(f"{ATOM}entry")
    return [(entry.findtext(f"{ATOM}title", ""), entry.findtext(f"{ATOM}summary", "")) for entry in entries]


def test_a_private_feed_tells_what_became_of_submissions_until_it_is_renewed(board: Hosted) -> None:
    sent = board.send(document("mine", 0.5)).json()["id"]
    board.client.post(
        f"/v1/submissions/{sent}/decision", json={"accept": False, "reason": "no <commands>"}, headers=board.moderator
    )
    board.accepted(document("mine", 0.6))
    made = board.client.post("/v1/feed", headers=board.author)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    address = made.json()["address"]
    told = feed_of(board, address)
    assert [title for title, _ in told] == [
        "vocsim: mine accepted", "vocsim: mine sent", "vocsim: mine rejected", "vocsim: mine sent",
    ]  # fmt: skip
    assert "no <commands>" in told[2][1]
    first = board.client.get(urlsplit(address).path)
    assert first.headers["cache-control"] == "private, no-cache"
    assert first.headers["x-robots-tag"] == "noindex"
    assert "access-control-allow-origin" not in first.headers
    again = board.client.get(urlsplit(address).path, headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    new = board.client.post("/v1/feed", headers=board.author).json()["address"]
    assert new != address
    assert board.client.get(urlsplit(address).path).status_code == 404
    assert len(feed_of(board, new)) == 4
    assert board.client.delete("/v1/feed", headers=board.author).status_code == 204
    assert board.client.get(urlsplit(new).path).status_code == 404


def test_a_feed_is_of_its_author_alone_and_ends_with_a_ban(board: Hosted) -> None:
    board.send(document("mine", 0.5))
    other = board.client.post("/v1/feed", headers=board.moderator).json()["address"]
    assert feed_of(board, other) == []
    own = board.client.post("/v1/feed", headers=board.author).json()["address"]
    with board.store.engine.begin() as connection:
        assert own.rpartition("/")[2].removesuffix(".atom") not in str(connection.execute(feeds.select()).all())
        connection.execute(update(users).values(banned=datetime.now(UTC)))
    assert board.client.get(urlsplit(own).path).status_code == 404
    assert board.client.post("/v1/feed").status_code == 401


def test_logs_do_not_hold_the_word_of_a_feed(board: Hosted) -> None:
    address = board.client.post("/v1/feed", headers=board.author).json()["address"]
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = records.append  # type: ignore[method-assign]
    LOGGER.addHandler(handler)
    before = LOGGER.level
    LOGGER.setLevel(logging.DEBUG)
    try:
        feed_of(board, address)
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)
    paths = [record.fields["path"] for record in records if hasattr(record, "fields") and "path" in record.fields]
    assert paths == ["/feeds/…"]


def test_drafts_through_the_api(board: Hosted) -> None:
    post = {"Content-Type": "application/json", **board.author}
    board.accepted(document("there", 0.4))
    made = board.client.post("/v1/drafts", content=document("mine", 0.5).to_bytes(), headers=post)
    assert made.status_code == 201, made.text
    id = made.json()["id"]
    assert made.headers["location"] == f"/v1/drafts/{id}"
    assert (made.json()["names"], made.json()["board"]) == (["mine"], "vocsim")
    assert [each["id"] for each in board.client.get("/v1/drafts", headers=board.author).json()["items"]] == [id]
    assert board.client.get(f"/v1/drafts/{id}", headers=board.author).json()["rows"] == made.json()["rows"]
    seen = board.client.get(f"/v1/drafts/{id}/outlook", headers=board.author).json()
    assert {standing["system"] for standing in seen["standings"]} == {"mine"}
    for method, path in (("GET", ""), ("GET", "/outlook"), ("POST", "/send"), ("DELETE", "")):
        assert board.client.request(method, f"/v1/drafts/{id}{path}", headers=board.moderator).status_code == 404
        assert board.client.request(method, f"/v1/drafts/{id}{path}").status_code == 401
    sent = board.client.post(f"/v1/drafts/{id}/send", headers={**board.author, "Idempotency-Key": "k"})
    assert (sent.status_code, sent.json()["state"]) == (201, "pending")
    assert board.client.get(f"/v1/drafts/{id}", headers=board.author).status_code == 404
    wrong = board.client.post("/v1/drafts", content=document("mine", 50.0).to_bytes(), headers=post)
    assert wrong.status_code == 422
    other = board.client.post("/v1/drafts", content=document("other", 0.5).to_bytes(), headers=post).json()["id"]
    assert board.client.delete(f"/v1/drafts/{other}", headers=board.author).status_code == 204
    assert board.client.get("/v1/drafts", headers=board.author).json()["items"] == []
