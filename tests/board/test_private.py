"""What strangers learn of boards that are private or hidden: nothing that the host did not tell them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.board.hosted import Hosted, document, hosted
from tests.board.test_writing_pages import sign_in

from earmark.board.records import User
from earmark.definitions import Definition

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path) as made:
        yield made


def moderator_of(board: Hosted) -> User:
    user = board.store.user("mod")
    assert user is not None
    return user


def change(board: Hosted, name: str, **keys: Any) -> Definition:
    """The definition of a board with some keys changed, as readers see it on the next page."""
    there = board.store.definition(name)
    assert there is not None
    changed = board.store.define(replace(there.definition, **keys), moderator_of(board)).definition
    board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
    return changed


def headers_of(board: Hosted, name: str, team: str = "") -> dict[str, str]:
    token, _ = board.store.create_token(board.store.create_user(name, team))
    return {"Authorization": f"Bearer {token}"}


def test_an_archived_table_changes_only_once_the_board_is_open_again(board: Hosted) -> None:
    accepted = board.accepted(document("one", board="mine"))
    waiting, other = (board.send(document(name, board="mine")).json()["id"] for name in ("two", "three"))
    change(board, "mine", state="archived")

    def post(id: str, action: str, **body: Any) -> Any:
        return board.client.post(f"/v1/submissions/{id}/{action}", json=body, headers=board.moderator)

    asked: tuple[tuple[str, str, dict[str, Any]], ...] = (
        (waiting, "decision", {"accept": True}),
        (accepted, "provenance", {"provenance": "reproduced"}),
        (accepted, "withdraw", {}),
    )
    for id, action, body in asked:
        refused = post(id, action, **body)
        assert (refused.status_code, "opens it again first" in refused.json()["detail"]) == (409, True), action
    own = board.client.post(f"/v1/submissions/{accepted}/withdraw", headers=board.author)
    assert own.status_code == 409
    assert post(other, "decision", accept=False, reason="Too late.").json()["state"] == "rejected"  # changes no table
    change(board, "mine", state="open")
    for id, action, body in asked:
        assert post(id, action, **body).is_success, action


def test_a_moderator_sees_that_the_author_of_what_waits_is_banned(board: Hosted) -> None:
    id = board.send(document("one", board="mine")).json()["id"]
    sign_in(board, board.moderator_token)

    def shown() -> list[bool]:
        outlook = board.client.get(f"/v1/submissions/{id}/outlook", headers=board.moderator).json()
        words = "Its author, ada, was banned after it was sent."
        pages = [board.client.get(path).text for path in (f"/submissions/{id}", "/moderate")]
        return [words in outlook["warnings"], words in pages[0], ">banned<" in pages[1]]

    assert shown() == [False] * 3
    board.store.ban("ada", None)
    assert shown() == [True] * 3


@pytest.mark.parametrize("keys", [{"private": True}, {"state": "hidden"}])
def test_a_suggestion_names_only_boards_that_are_listed(board: Hosted, keys: dict[str, Any]) -> None:
    board.accepted(document("one", board="project-x"))
    for path in ("/b/project-xx", "/v1/boards/project-xx"):
        assert "project-x&#34;" in (text := board.client.get(path).text) or 'project-x\\"' in text, text
    change(board, "project-x", **keys)
    for path in ("/b/project-xx", "/v1/boards/project-xx"):
        answer = board.client.get(path)
        assert (answer.status_code, "Did you mean" in answer.text) == (404, False)


def test_the_new_name_of_a_private_board_is_told_to_its_readers_alone(board: Hosted) -> None:
    board.accepted(document("one", board="secret-lab"))
    change(board, "secret-lab", private=True, readers=("bob",))
    board.store.rename_board("secret-lab", "nobody-knows", moderator_of(board))
    board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
    eve, bob = headers_of(board, "eve"), headers_of(board, "bob")
    for path in ("/b/secret-lab", "/b/secret-lab.csv", "/v1/boards/secret-lab/scores"):
        for asker in ({}, eve):
            answer = board.client.get(path, headers=asker, follow_redirects=False)
            assert answer.status_code == 404, path
            assert "nobody-knows" not in answer.text + str(answer.headers)
        led = board.client.get(path, headers=bob, follow_redirects=False)
        assert (led.status_code, led.headers["cache-control"]) == (308, "private, no-store")
        assert "nobody-knows" in led.headers["location"]
    refused = board.send(document("two", board="secret-lab"), **eve)
    assert (refused.status_code, "nobody-knows" in refused.text) == (403, False)
    assert "The board secret-lab is private" in refused.json()["detail"]
    assert board.send(document("two", board="secret-lab"), **bob).json()["board"] == "nobody-knows"


def test_a_check_tells_strangers_nothing_of_a_private_board(board: Hosted) -> None:
    """Neither its subsets nor what its definition takes: as if there were no such board."""
    board.accepted(document("one", board="secret"))
    change(board, "secret", private=True, readers=("bob",), other_subsets=False, distances=("whispered",))
    rows = document("two", board="secret").to_bytes().replace(b'"BC"', b'"b c"')

    def check(asker: dict[str, str], name: str = "secret") -> dict[str, Any]:
        sent = rows.replace(b'"secret"', f'"{name}"'.encode())
        verdict = board.client.post("/v1/submissions/validate", content=sent, headers={**JSON, **asker}).json()
        return {key: verdict[key] for key in ("accepted", "problems", "warnings")}

    eve, bob = headers_of(board, "eve"), headers_of(board, "bob")
    assert not check(bob)["accepted"]
    for asker in ({}, eve):
        assert check(asker) == check(asker, "no-such-board")
    refused = board.send(rows, **eve)  # not because of its subsets
    assert (refused.status_code, "BC" in refused.text) == (403, False)


def test_submissions_of_boards_that_are_not_listed_are_on_no_list(board: Hosted) -> None:
    shown = [board.accepted(document(f"a{number}", board="open")) for number in range(3)]
    hidden = board.accepted(document("one", board="veiled"))
    private = [board.accepted(document(f"s{number}", board="secret")) for number in range(3)]
    shown.append(board.accepted(document("last", board="open")))
    change(board, "veiled", state="hidden")
    change(board, "secret", private=True)

    def listed(asker: dict[str, str], **query: Any) -> list[list[str]]:
        pages, cursor = [], ""
        while True:
            asked = {**query, "limit": 2, "cursor": cursor}
            page = board.client.get("/v1/submissions", params=asked, headers=asker).json()
            pages.append([each["id"] for each in page["items"]])
            if not (cursor := page["next"] or ""):
                return pages

    for asker in ({}, headers_of(board, "eve")):
        assert listed(asker) == [[shown[3], shown[2]], [shown[1], shown[0]]]  # whole pages, whatever lies between
        assert listed(asker, board="veiled") == [[hidden]]  # who knows its name reads the board too
        assert listed(asker, board="secret") == [[]]
    everything = {*shown, *private, hidden}
    for asker in (board.author, board.moderator):
        assert {id for page in listed(asker) for id in page} == everything
