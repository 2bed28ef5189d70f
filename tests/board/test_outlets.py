"""The board elsewhere: feeds, badges, frames, and what pages of other sites may read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.board.hosted import Hosted, document, hosted
from tests.board.scored import NASTY

from earmark.board.boards.field import Rank
from earmark.board.pages.outlets import _badge, _standing

ATOM = "{http://www.w3.org/2005/Atom}"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with hosted(tmp_path_factory.mktemp("board"), title="Our board", base_url="https://board.example") as made:
        made.accepted(document("first", 0.5, "mine"))
        made.accepted(document(NASTY, 0.6, "mine"))
        made.accepted(document("third", 0.7, "other"))
        made.send(document("pending", 0.9, "mine"))
        yield made


def entries(board: Hosted, path: str) -> list[dict[str, str]]:
    answer = board.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/atom+xml")
    root = ElementTree.fromstring(answer.content)
    assert root.findtext(f"{ATOM}id", "").startswith("urn:uuid:")
    links = {each.get("rel"): each.get("href") for each in root.findall(f"{ATOM}link")}
    assert links["self"] == f"https://board.example{path}"
    return [
        {
            **{name: entry.findtext(f"{ATOM}{name}", "") for name in ("title", "id", "updated", "summary")},
            "link": str(entry.find(f"{ATOM}link").get("href")),  # type: ignore[union-attr]
        }
        for entry in root.findall(f"{ATOM}entry")
    ]


def test_a_feed_tells_what_was_accepted_newest_first_and_nothing_else(board: Hosted) -> None:
    mine = entries(board, "/b/mine/feed.atom")
    assert [entry["title"].partition(": ")[2] for entry in mine][-1] == "first"
    assert NASTY in mine[-2]["title"] or "alert" in mine[-2]["title"]
    assert not any("pending" in entry["title"] or "third" in entry["title"] for entry in mine)
    assert mine[-1]["link"] == "https://board.example/b/mine/s/first"
    assert "4 scores of first accepted, self-reported." in mine[-1]["summary"]
    assert len(entries(board, "/feed.atom")) == len(mine) + 1
    assert [entry["updated"] for entry in mine] == sorted((entry["updated"] for entry in mine), reverse=True)


def test_a_withdrawal_is_an_entry_of_its_own_and_ids_stay(board: Hosted) -> None:
    sent = board.accepted(document("leaving", 0.4, "mine"))
    before = {entry["id"] for entry in entries(board, "/b/mine/feed.atom")}
    tag = board.client.get("/b/mine/feed.atom").headers["etag"]
    assert board.client.get("/b/mine/feed.atom", headers={"if-none-match": tag}).status_code == 304
    done = board.client.post(f"/v1/submissions/{sent}/withdraw", json={"reason": "wrong clips"}, headers=board.author)
    assert done.status_code == 200, done.text
    after = entries(board, "/b/mine/feed.atom")
    assert before < {entry["id"] for entry in after}
    assert after[0]["title"].endswith("leaving withdrawn")
    assert board.client.get("/b/mine/feed.atom", headers={"if-none-match": tag}).status_code == 200


def test_what_was_withdrawn_before_it_was_accepted_is_nobodys_business(board: Hosted) -> None:
    sent = board.send(document("never seen", 0.4, "mine")).json()["id"]
    board.client.post(f"/v1/submissions/{sent}/withdraw", json={"reason": "oh"}, headers=board.author)
    assert not any("never seen" in entry["title"] for entry in entries(board, "/b/mine/feed.atom"))


def test_pages_name_their_feed(board: Hosted) -> None:
    html = {"accept": "text/html"}
    assert 'type="application/atom+xml"' in board.client.get("/b/mine", headers=html).text
    assert 'href="/feed.atom"' in board.client.get("/", headers=html).text


def test_a_badge_is_a_small_picture_of_the_rank(board: Hosted) -> None:
    answer = board.client.get("/b/mine/s/first/badge.svg")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["cache-control"] == "public, max-age=600"
    assert "set-cookie" not in answer.headers
    assert len(answer.content) < 1500
    root = ElementTree.fromstring(answer.content)
    assert root.get("role") == "img"
    assert "first on mine P@1: rank 2" in str(root.get("aria-label"))
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts[0] == "mine P@1"
    assert str(texts[1]).startswith("rank 2")
    tier = ElementTree.fromstring(board.client.get("/b/mine/s/first/badge.svg?show=tier").content)
    assert "tier" in str(tier.get("aria-label"))
    assert board.client.get("/b/mine/s/nobody/badge.svg").status_code == 404
    assert board.client.get("/b/mine/s/first/badge.svg?show=money").status_code in (400, 422)


def test_badges_say_what_is_known() -> None:
    assert _standing(Rank(), "rank") == "no rank"
    assert _standing(Rank(3, 1, 5, 1), "rank") == "rank 3 (1–5)"
    assert _standing(Rank(1, 1, 1, 1), "rank") == "rank 1"
    assert _standing(Rank(3, 1, 5, 1), "tier") == "tier 1"
    assert _standing(Rank(3), "tier") == "no tier"
    root = ElementTree.fromstring(_badge(NASTY, "rank 1", "#000", NASTY))
    assert root.findtext(f"{SVG}title") == NASTY


def test_a_frame_may_hold_the_table_and_nothing_else(board: Hosted) -> None:
    html = {"accept": "text/html"}
    framed = board.client.get("/b/mine/embed?lines=1", headers=html)
    assert framed.status_code == 200
    policy = framed.headers["content-security-policy"]
    assert "frame-ancestors *" in policy
    assert "script-src" not in policy
    assert "x-frame-options" not in framed.headers
    assert "set-cookie" not in framed.headers
    for word in ("<form", "<script", "<input", "hx-"):
        assert word not in framed.text
    assert framed.text.count('<th scope="row"') == 1
    assert 'href="https://board.example/b/mine"' in framed.text
    assert "alert(&quot;x&quot;)" in framed.text or "alert(&#34;x&#34;)" in framed.text
    for path in ("/b/mine", "/b/mine/pareto", "/", "/b/mine/s/first/badge.svg"):
        other = board.client.get(path, headers=html)
        assert "frame-ancestors 'none'" in other.headers["content-security-policy"]
        assert other.headers["x-frame-options"] == "DENY"
    assert board.client.get("/b/mine/embed?lines=0", headers=html).status_code in (400, 422)
    assert board.client.get("/b/mine/embed?lines=9999999999", headers=html).status_code in (400, 422)


@pytest.mark.parametrize(
    "path", ["/v1/boards", "/b/mine.csv", "/b/mine.json", "/b/mine/pareto.csv", "/b/mine/s/first/badge.svg"]
)
def test_other_sites_may_read_data_without_credentials(board: Hosted, path: str) -> None:
    answer = board.client.get(path, headers={"origin": "https://elsewhere.example"})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    asked = board.client.options(
        path, headers={"origin": "https://elsewhere.example", "access-control-request-method": "GET"}
    )
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-methods"] == "GET, HEAD"
    assert "authorization" not in asked.headers["access-control-allow-headers"]


def test_other_sites_may_not_write_nor_read_pages(board: Hosted) -> None:
    sent = board.client.post("/v1/submissions", content=b"{}", headers={"origin": "https://elsewhere.example"})
    assert "access-control-allow-origin" not in sent.headers
    for path in ("/b/mine", "/mine", "/sign-in"):
        page = board.client.get(path, headers={"accept": "text/html", "origin": "https://elsewhere.example"})
        assert "access-control-allow-origin" not in page.headers


def test_a_new_definition_is_news_and_a_private_board_is_shown_nowhere_else(tmp_path: Path) -> None:
    with hosted(tmp_path, base_url="https://board.example") as made:
        made.accepted(document("first", 0.5, "mine"))
        version = made.store.definition("mine")
        assert version is not None
        moderator = made.store.user("mod")
        assert moderator is not None
        made.store.define(replace(version.definition, title="Mine and yours"), moderator, "a better title")
        made.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
        newest = entries(made, "/b/mine/feed.atom")[0]
        assert newest["title"] == "Mine and yours: new definition"
        assert "a better title" in newest["summary"]
        assert newest["link"] == "https://board.example/b/mine"
        made.store.define(replace(version.definition, private=True), moderator, "closed")
        made.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
        for path in ("/b/mine/feed.atom", "/b/mine/embed", "/b/mine/s/first/badge.svg"):
            assert made.client.get(path).status_code == 404
        assert entries(made, "/feed.atom") == []


def test_a_systems_page_has_its_badge_to_copy(board: Hosted) -> None:
    text = board.client.get("/b/mine/s/first", headers={"accept": "text/html"}).text
    assert "(https://board.example/b/mine/s/first/badge.svg)](https://board.example/b/mine/s/first)" in text
    assert '<img src="/b/mine/s/first/badge.svg"' in text
