"""The pages of moderators, hosts and authors: what a submission would change, bulk decisions, users, texts, drafts."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.board.hosted import Hosted, document, hosted
from tests.board.test_writing_pages import page, post, sign_in

from earmark.scores import Scores
from earmark.submissions import Document

HTML = {"Accept": "text/html"}


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path) as made:
        yield made


@pytest.fixture
def hosting(board: Hosted) -> Hosted:
    """The board, with a host signed in."""
    token, _ = board.store.create_token(board.store.create_user("hilda", role="host"))
    sign_in(board, token)
    return board


def test_a_pending_submission_shows_what_it_would_change(board: Hosted) -> None:
    board.accepted(document("good", 0.6, board="mine"))
    board.accepted(document("model", 0.4, board="mine"))
    sent = board.send(document("model", 0.7, board="mine")).json()["id"]
    sign_in(board, board.moderator_token)
    shown = page(board, f"/submissions/{sent}")
    assert "If this is accepted" in shown
    assert re.search(r'<td class="n">2.* of 2</td><td class="n"><strong>1.* of 2</strong></td>', shown)
    assert "good, 61.5" in shown  # the best so far
    assert re.search(r"\+30\.0</td>", shown)
    assert "new best" in shown
    assert "good, P@1: 1 → 2" in shown
    assert "Settings (distance and correction) tried: model 1 → 1" in shown


def test_a_lookalike_is_told_first(board: Hosted) -> None:
    bob = board.store.create_user("bob")
    board.store.decide(
        board.store.submit(document("EWMTF-D100", board="mine"), bob).id, board.store.users()[1], accept=True
    )
    board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
    sent = board.send(document("EWMTF Dl00", board="mine")).json()
    assert any("looks like" in note for note in sent["notes"])
    sign_in(board, board.moderator_token)
    shown = page(board, f"/submissions/{sent['id']}")
    assert shown.count("looks like &#34;EWMTF-D100&#34;") == 1
    assert "looks like" in page(board, "/moderate")


def test_lookalikes_that_wait_together_are_told_to_moderators_alone(board: Hosted) -> None:
    ada, bob = board.store.user("ada"), board.store.create_user("bob")
    assert ada is not None
    first = board.store.submit(document("EWMTF-D100", board="mine"), ada)
    second = board.store.submit(document("other", board="mine", title="EWMTF Dl00"), bob)
    plain = document("third", board="mine")
    routine = [replace(row, version="", inputs="") for row in plain.scores.rows]
    board.store.submit(Document.of(Scores(tuple(routine)), board="mine", cards=plain.cards), bob)
    sign_in(board, board.author_token)
    assert "looks like" not in page(board, f"/submissions/{first.id}")
    sign_in(board, board.moderator_token)
    for shown in (page(board, "/moderate"), page(board, "/moderate?noted=1")):
        assert f"of bob, pending as {second.id}" in shown
        assert f"of ada, pending as {first.id}" in shown
        assert "which version" not in shown
    assert "third" in page(board, "/moderate")
    assert "third" not in page(board, "/moderate?noted=1")
    assert f"pending as {second.id}" in page(board, f"/submissions/{first.id}")


def test_the_whole_card_of_what_waits_is_shown(board: Hosted) -> None:
    card = {"family": "Whisper", "parameters_m": 12.0, "details": {"tokens_per_second": 50.0}}
    sent = board.send(document("model", board="mine", **card)).json()["id"]
    sign_in(board, board.moderator_token)
    shown = page(board, f"/submissions/{sent}")
    for label, text in (("Family", "Whisper"), ("Parameters", "12 million"), ("Tokens per second", "50")):
        assert f"<dt>{label}</dt><dd>{text}</dd>" in shown


def test_a_closed_account_is_told_to_whoever_holds_its_token(board: Hosted) -> None:
    ada = board.store.user("ada")
    assert ada is not None
    older, kept = board.store.create_token(ada)
    board.store.revoke_token(kept.id, ada)
    board.store.ban("ada", None)
    assert "closed this account" in board.send(document()).text
    for unknown in (older, board.author_token[:-1] + "~"):
        answer = board.client.get("/v1/tokens", headers={"Authorization": f"Bearer {unknown}"})
        assert (answer.status_code, "closed" in answer.text) == (401, False)


def test_others_do_not_see_what_it_would_change(board: Hosted) -> None:
    sent = board.send(document()).json()["id"]
    assert "If this is accepted" not in page(board, f"/submissions/{sent}")


def test_lists_go_on_beyond_a_page_and_several_are_decided(board: Hosted) -> None:
    ada = board.store.user("ada")
    assert ada is not None
    ids = [board.store.submit(document(f"m{number:03d}", board="mine"), ada).id for number in range(60)]
    sign_in(board, board.moderator_token)
    first = page(board, "/moderate")
    following = re.search(r'href="(/moderate\?[^"]+)" rel="next"', first)
    assert following is not None
    second = page(board, following[1].replace("&amp;", "&"))
    assert (first.count('name="id"'), second.count('name="id"')) == (50, 10)
    refused = post(board, "/moderate", "/moderate", choice="reject", reason="", id=ids[0])
    assert (refused.status_code, "A rejection needs a reason" in refused.text) == (422, True)
    assert "Choose at least one" in post(board, "/moderate", "/moderate", choice="accept").text
    board.store.withdraw(ids[1], ada)
    done = post(board, "/moderate", "/moderate", choice="reject", reason="measured twice", id=ids[:3])
    assert done.status_code == 200
    assert done.text.count(": rejected") == 2
    assert f"Submission {ids[1]} is withdrawn already" in done.text
    assert {board.store.submission(id).state for id in (ids[0], ids[2])} == {"rejected"}  # type: ignore[union-attr]
    assert "m003" in page(board, "/moderate?board=mine&owner=ada&before=" + ids[4])
    assert "Nothing is like that" in page(board, "/moderate?owner=nobody")
    assert "m000" in page(board, "/moderate?state=rejected")


def test_only_moderators_decide_about_several(board: Hosted) -> None:
    sent = board.send(document()).json()["id"]
    sign_in(board, board.author_token)
    assert board.client.get("/moderate", headers=HTML).status_code == 403
    assert post(board, "/moderate", "/mine", choice="accept", id=sent).status_code == 403
    assert board.store.submission(sent).state == "pending"  # type: ignore[union-attr]


def test_provenance_is_marked_later_and_readers_see_it(board: Hosted) -> None:
    sent = board.accepted(document("model", board="mine"))
    sign_in(board, board.moderator_token)
    address = f"/submissions/{sent}"
    done = post(board, f"{address}/mark", address, provenance="reproduced", reason="ran it here")
    assert done.status_code == 303
    assert "<dd>reproduced</dd>" in page(board, address)
    assert "self-reported to reproduced: ran it here" in page(board, "/b/mine/s/model")


def test_a_card_is_corrected_by_its_owner(board: Hosted) -> None:
    board.accepted(document("model", board="mine", title="Old"))
    sign_in(board, board.author_token)
    address = "/b/mine/s/model/correct"
    form = page(board, address)
    assert 'value="Old"' in form
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form)) | {"kind": "representation"}
    fields.pop("form_token")
    done = post(
        board, address, address, **fields | {"title": "New", "training_free": "yes", "command": "", "why": "typo"}
    )
    assert done.headers["location"].endswith("?done=card-asked")
    assert "New" in page(board, "/b/mine/s/model")
    assert "training_free" not in page(board, "/b/mine/s/model")
    assert "waiting" in page(board, "/mine")
    wrong = post(board, address, address, **fields | {"title": "New", "year": "soon", "command": ""})
    assert (wrong.status_code, "Year is a number" in wrong.text) == (422, True)
    sign_in(board, board.moderator_token)
    assert "Cards to be corrected" in page(board, "/moderate")
    (change,) = board.store.card_changes(state="waiting")
    assert post(board, f"/corrections/{change.id}/decide", "/moderate", choice="accept").status_code == 303
    assert "training_free: not stated → yes" in page(board, "/b/mine/s/model")
    bob, _ = board.store.create_token(board.store.create_user("bob"))
    sign_in(board, bob)
    assert board.client.get(address, headers=HTML).status_code == 403


def test_a_draft_is_looked_at_and_sent(board: Hosted) -> None:
    board.accepted(document("good", 0.6, board="mine"))
    sign_in(board, board.author_token)
    token = re.search(r'name="form_token" value="([^"]+)"', page(board, "/submit"))
    assert token is not None
    fields = {"form_token": token[1], "action": "draft"}
    sent = document("fresh", 0.7, board="mine").to_bytes()
    kept = board.client.post(
        "/submit", data=fields, files={"file": ("d.json", sent)}, headers=HTML, follow_redirects=False
    )
    assert kept.status_code == 303, kept.text
    address = kept.headers["location"].partition("?")[0]
    shown = page(board, address)
    assert re.search(r"<strong>1.* of 2</strong>", shown)
    assert address in page(board, "/mine")
    assert board.client.get("/v1/submissions", headers=board.moderator).json()["items"][0]["names"] == ["good"]
    done = post(board, f"{address}/send", address)
    assert done.headers["location"].startswith("/submissions/")
    assert board.client.get(address, headers=HTML).status_code == 404
    assert board.store.submissions(state="pending")[0].names == ("fresh",)


def test_the_audit_trail_is_filtered_paged_and_exported(board: Hosted) -> None:
    for number in range(60):
        board.store.create_token(board.store.user("ada"), f"t{number}")  # type: ignore[arg-type]
    board.send(document("=cmd", board="mine"))
    sign_in(board, board.moderator_token)
    shown = page(board, "/audit")
    older = re.search(r'href="(/audit\?[^"]+)" rel="next"', shown)
    assert older is not None
    assert "created token" in page(board, older[1].replace("&amp;", "&"))
    only = page(board, "/audit?user=mod&action=created_token")
    assert "<td>ada</td>" not in only
    rows = list(csv.DictReader(io.StringIO(board.client.get("/audit.csv").text)))
    assert len(rows) == len(board.store.events(1000))
    filtered = list(csv.DictReader(io.StringIO(board.client.get("/audit.csv?action=created_user").text)))
    assert {row["user"] for row in filtered} == {"ada", "mod"}
    sign_in(board, board.author_token)
    assert board.client.get("/audit.csv", headers=HTML).status_code == 403


def test_a_host_looks_after_users(hosting: Hosted) -> None:
    sent = hosting.accepted(document("model", board="mine"))
    assert "ada" in page(hosting, "/users")
    assert post(hosting, "/users", "/users", name="ada", action="role", role="moderator").status_code == 303
    assert hosting.store.user("ada").moderates  # type: ignore[union-attr]
    post(hosting, "/users", "/users", name="ada", action="role", role="author")
    done = post(hosting, "/users", "/users", name="ada", action="ban", reason="spam", hide="1")
    assert done.headers["location"] == "/users?done=banned"
    assert hosting.send(document("other")).status_code == 401
    assert "No score of this system is ranked here" in page(hosting, "/b/mine/s/model")
    assert post(hosting, "/users", "/users", name="ada", action="unban").status_code == 303
    refused = post(hosting, "/users", "/users", name="ada", action="erase", scores="kept", again="bob")
    assert (refused.status_code, "nothing brings it back" in refused.text) == (422, True)
    post(hosting, "/users", "/users", name="ada", action="erase", scores="kept", again="ada")
    assert hosting.store.user("ada") is None
    assert hosting.store.submission(sent).owner.startswith("erased user")  # type: ignore[union-attr]
    assert not re.search(r"\bada\b", page(hosting, "/b/mine/s/model"))  # ids may hold the letters
    assert post(hosting, "/users", "/users", name="hilda", action="role", role="author").status_code == 409


def test_moderators_are_no_hosts(board: Hosted) -> None:
    sign_in(board, board.moderator_token)
    assert board.client.get("/users", headers=HTML).status_code == 403
    assert board.client.get("/texts", headers=HTML).status_code == 403
    assert post(board, "/users", "/moderate", name="ada", action="ban").status_code == 403
    assert post(board, "/texts", "/moderate", name="news", text="x").status_code == 403


def test_a_quota_is_told_in_the_api(tmp_path: Path) -> None:
    from earmark.board.records import Quotas

    with hosted(tmp_path, quotas=Quotas(submissions=1)) as board:
        assert board.send(document("one", board="mine")).status_code == 201
        refused: Any = board.send(document("two", board="mine"))
        assert refused.status_code == 429
        assert "1 submissions within 24 hours" in refused.json()["detail"]
        assert int(refused.headers["retry-after"]) > 80_000
        assert board.send(document("one", board="mine")).status_code == 201  # the same again


def test_what_was_sent_by_a_user_with_markup_is_text(hosting: Hosted) -> None:
    rows = document("x", board="mine").scores.rows
    evil = replace(rows[0], subset="<b>bold</b>")
    from earmark.scores import Scores
    from earmark.submissions import Document

    sent = hosting.send(Document.of(Scores((evil,)), board="mine")).json()["id"]
    assert "<b>bold</b>" not in page(hosting, f"/submissions/{sent}")


def test_the_hosts_texts_are_on_every_page_and_sanitised(hosting: Hosted) -> None:
    hosting.accepted(document("model", board="mine"))
    assert hosting.client.get("/imprint", headers=HTML).status_code == 404
    assert "Imprint" not in page(hosting, "/b/mine")
    for name, text in (
        ("news", "We move on **Friday** <script>alert(1)</script>"), ("footer", "Run by *nobody*."),
        ("imprint", "# Who\n\nA. Host"), ("privacy", "We keep `names`."),
    ):  # fmt: skip
        assert post(hosting, "/texts", "/texts", name=name, text=text).status_code == 303
    for address in ("/b/mine", "/", "/about", "/sign-in", "/mine"):
        shown = page(hosting, address)
        assert "<strong>Friday</strong> &lt;script&gt;" in shown
        assert '<a href="/imprint"' in shown
        assert "Run by" in shown
    imprint = page(hosting, "/imprint")
    assert "A. Host" in imprint
    assert "<h1>Who</h1>" in imprint  # the heading that the text begins with is that of the page
    assert imprint.count("Who</h") == 1
    assert "<h1>Privacy</h1>" in page(hosting, "/privacy")
    assert "<code>names</code>" in page(hosting, "/privacy")
    post(hosting, "/texts", "/texts", name="news", text="")
    assert "Friday" not in page(hosting, "/b/mine")
    assert post(hosting, "/texts", "/texts", name="poem", text="x").status_code == 422
    too_long = post(hosting, "/texts", "/texts", name="news", text="x" * 1001)
    assert (too_long.status_code, "at most 1,000" in too_long.text) == (422, True)
    assert "wrote_text" in [event.action for event in hosting.store.events(1)]


def test_programs_see_what_would_change_decide_mark_and_correct(board: Hosted) -> None:
    board.accepted(document("good", 0.6, board="mine"))
    ids = [board.send(document(f"m{number}", 0.7, board="mine")).json()["id"] for number in range(2)]
    address = f"/v1/submissions/{ids[0]}"
    seen = board.client.get(f"{address}/outlook", headers=board.author).json()
    assert (seen["standings"][0]["after"]["rank"], seen["rows"][0]["best_system"]) == (1, "good")
    stranger, _ = board.store.create_token(board.store.create_user("bob"))
    assert board.client.get(f"{address}/outlook", headers={"Authorization": f"Bearer {stranger}"}).status_code == 403
    asked = {"ids": [*ids, "nothing"], "accept": True}
    assert board.client.post("/v1/submissions/decisions", json=asked, headers=board.author).status_code == 403
    done = board.client.post("/v1/submissions/decisions", json=asked, headers=board.moderator).json()
    assert [each["state"] for each in done] == ["accepted", "accepted", None]
    assert board.client.get(f"{address}/outlook", headers=board.author).status_code == 409
    marked = board.client.post(f"{address}/provenance", json={"provenance": "reproduced"}, headers=board.moderator)
    assert marked.json()["provenance"] == "reproduced"
    card = {"card": {"title": "New", "kbps": 6.0}, "why": "typo"}
    made = board.client.patch("/v1/boards/mine/systems/m0/card", json=card, headers=board.author).json()
    assert [(each["state"], each["changes"]) for each in made] == [
        ("applied", {"title": "New"}), ("waiting", {"kbps": 6.0}),
    ]  # fmt: skip
    wrong = board.client.patch("/v1/boards/mine/systems/m0/card", json={"card": {"name": "x"}}, headers=board.author)
    assert wrong.status_code == 422
    first = board.client.get("/v1/events?limit=2", headers=board.moderator).json()
    second = board.client.get(f"/v1/events?limit=2&cursor={first['next']}", headers=board.moderator).json()
    assert first["items"][0]["action"] == "asked_card"
    assert second["items"][0]["id"] < first["items"][1]["id"]
    assert board.client.get("/v1/events", headers=board.author).status_code == 403


def test_a_private_board_tells_strangers_nothing(board: Hosted) -> None:
    """Neither by remarks on a document, nor by a draft."""
    board.accepted(document("EWMTF-D100", board="mine"))
    bob = board.store.create_user("bob")
    draft = board.store.save_draft(document("EWMTF Dl00", board="mine"), bob)
    moderator = board.store.user("mod")
    assert moderator is not None
    there = board.store.definition("mine")
    assert there is not None
    board.store.define(replace(there.definition, private=True), moderator)
    token, _ = board.store.create_token(bob)
    board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
    sign_in(board, token)
    shown = board.client.get(f"/drafts/{draft.id}", headers=HTML)
    assert (shown.status_code, "EWMTF-D100" in shown.text) == (404, False)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    checked = board.client.post(
        "/v1/submissions/validate", content=document("EWMTF Dl00", board="mine").to_bytes(), headers=headers
    )
    assert "EWMTF-D100" not in checked.text
