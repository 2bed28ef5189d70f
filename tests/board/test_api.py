"""The API: what a program sees of a board, and how a document gets there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.board.hosted import SUBSETS, Hosted, document, hosted, plain

from earmark.definitions import Definition
from earmark.scores import COLUMNS


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """A board with five accepted systems that these tests only read."""
    with hosted(tmp_path_factory.mktemp("board")) as made:
        for number in range(5):
            family = "Whisper" if number % 2 else ""
            made.accepted(document(f"model {number}", 0.3 + 0.1 * number, family=family))
        yield made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path) as made:
        yield made


# --- reading --------------------------------------------------------------------------------------


def test_boards_systems_and_one_system(board: Hosted) -> None:
    listed = board.client.get("/v1/boards").json()["items"]
    assert [(one["name"], one["systems"], one["metrics"]) for one in listed] == [("vocsim", 5, ["P@1"])]
    assert board.client.get("/v1/boards/vocsim").json() == listed[0]
    assert sorted(listed[0]["subsets"]) == sorted(SUBSETS)
    systems = board.client.get("/v1/boards/vocsim/systems").json()["items"]
    assert [one["slug"] for one in systems] == [f"model-{number}" for number in range(5)]
    assert board.client.get("/v1/boards/vocsim/systems/model-3").json() == systems[3]
    assert systems[3]["card"]["family"] == "Whisper"
    assert systems[3]["card"]["parameters_m"] is None
    assert systems[3]["page"].endswith("/b/vocsim/s/model-3")


def test_systems_are_found_by_words_and_family(board: Hosted) -> None:
    def found(query: str) -> list[str]:
        return [one["slug"] for one in board.client.get(f"/v1/boards/vocsim/systems?{query}").json()["items"]]

    assert found("q=MODEL+4") == ["model-4"]
    assert found("family=Whisper") == ["model-1", "model-3"]
    assert found("q=whisper+1") == ["model-1"]
    assert found("q=nothing") == []


def test_pages_together_are_the_whole_list(board: Hosted) -> None:
    for path, size in (("systems", 5), ("scores", 5 * len(SUBSETS))):
        address = f"/v1/boards/vocsim/{path}"
        whole = board.client.get(address).json()["items"]
        assert len(whole) == size
        items, cursor, pages = [], "", 0
        while cursor is not None:
            page = board.client.get(address, params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
            items += page["items"]
            cursor, pages = page["next"], pages + 1
        assert items == whole
        assert pages == -(-size // 3)


def test_scores_are_filtered_as_a_loop_over_all_of_them_would(board: Hosted) -> None:
    whole = board.client.get("/v1/boards/vocsim/scores").json()["items"]
    for filters in (
        {"subset": ["BC"]},
        {"subset": ["BC", "HS1"], "system": ["model-1", "model-4"]},
        {"metric": ["P@5"]},
        {"metric": ["P@1"], "distance": ["cosine"], "status": ["ok"]},
        {"distance": ["euclidean"]},
        {"protocol": ["all"], "correction": ["none"], "subset": ["nowhere"]},
    ):
        found = board.client.get("/v1/boards/vocsim/scores", params=filters).json()["items"]
        named = {("slug" if name == "system" else name): wanted for name, wanted in filters.items()}
        assert found == [row for row in whole if all(row[name] in wanted for name, wanted in named.items())]


def test_a_cursor_survives_systems_that_arrive_between_pages(fresh: Hosted) -> None:
    for number in range(3):
        fresh.accepted(document(f"model {number}"))
    first = fresh.client.get("/v1/boards/vocsim/scores?limit=6").json()
    fresh.accepted(document("late", 0.9))
    rest = fresh.client.get("/v1/boards/vocsim/scores", params={"cursor": first["next"]}).json()["items"]
    seen = [(row["slug"], row["subset"]) for row in first["items"] + rest]
    assert len(seen) == len(set(seen)) == 4 * len(SUBSETS)


def test_the_table_ranks_and_a_comparison_pairs(board: Hosted) -> None:
    table = board.client.get("/v1/boards/vocsim/table").json()
    assert [line["slug"] for line in table["items"]] == [f"model-{number}" for number in (4, 3, 2, 1, 0)]
    assert {line["rank"] for line in table["items"]} == {0}  # VocSim ranks who has all of its public subsets
    over = f"over=subset:{SUBSETS[0]}"
    table = board.client.get(f"/v1/boards/vocsim/table?{over}").json()
    assert [line["rank"] for line in table["items"]] == [1, 2, 3, 4, 5]
    assert board.client.get(f"/v1/boards/vocsim/table?{over}&q=model+1").json()["items"][0]["rank"] == 4
    two = board.client.get("/v1/boards/vocsim/compare?s=model-4&s=model-0").json()
    assert two["differences"][0]["mean"] == pytest.approx(0.4)
    assert two["differences"][0]["better"] == len(SUBSETS)
    assert board.client.get("/v1/boards/vocsim/compare?s=model-4").status_code == 422


def test_an_etag_spares_the_answer_until_the_board_changes(fresh: Hosted) -> None:
    fresh.accepted(document("one"))
    first = fresh.client.get("/v1/boards/vocsim/scores")
    tag = {"If-None-Match": first.headers["etag"]}
    again = fresh.client.get("/v1/boards/vocsim/scores", headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert fresh.client.get("/v1/boards/vocsim/scores?limit=1", headers=tag).status_code == 200
    fresh.accepted(document("two"))
    later = fresh.client.get("/v1/boards/vocsim/scores", headers=tag)
    assert later.status_code == 200
    assert len(later.json()["items"]) == 2 * len(SUBSETS)


def test_answers_are_compressed_for_those_who_take_it(board: Hosted) -> None:
    with board.client.stream("GET", "/v1/boards/vocsim/scores", headers={"Accept-Encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == "gzip"
    whole = board.client.get("/v1/boards/vocsim/scores", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in whole.headers
    assert gzip.decompress(packed) == whole.content
    assert len(packed) < len(whole.content) / 3


# --- sending --------------------------------------------------------------------------------------


def test_a_document_becomes_pending_then_ranked_then_withdrawn(fresh: Hosted) -> None:
    sent = document()
    created = fresh.send(sent)
    assert created.status_code == 201
    told = created.json()
    assert created.headers["location"] == f"/v1/submissions/{told['id']}"
    assert (told["state"], told["owner"], told["rows"], told["digest"]) == ("pending", "ada", 4, sent.digest)
    assert fresh.client.get("/v1/boards").json()["items"] == []
    address = f"/v1/submissions/{told['id']}"
    assert fresh.client.get(f"{address}/scores").status_code == 403
    rows = fresh.client.get(f"{address}/scores", headers=fresh.author).json()
    assert tuple(rows[0]) == COLUMNS
    done = fresh.client.post(f"{address}/decision", json={"accept": True}, headers=fresh.moderator).json()
    assert (done["state"], done["decided_by"]) == ("accepted", "mod")
    assert len(fresh.client.get("/v1/boards/vocsim/scores").json()["items"]) == 4
    assert fresh.client.get(f"{address}/scores").json() == rows
    gone = fresh.client.post(f"{address}/withdraw", json={"reason": "a bug"}, headers=fresh.author).json()
    assert (gone["state"], gone["reason"]) == ("withdrawn", "a bug")
    assert fresh.client.get("/v1/boards/vocsim/scores").json()["items"] == []
    assert fresh.client.get(address).json()["state"] == "withdrawn"


def test_the_same_key_is_one_submission_and_another_document_a_conflict(fresh: Hosted) -> None:
    first = fresh.send(document(), **{"Idempotency-Key": "k1"})
    again = fresh.send(document(), **{"Idempotency-Key": "k1"})
    assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
    other = fresh.send(document(value=0.6), **{"Idempotency-Key": "k1"})
    assert other.status_code == 409
    assert len(fresh.store.submissions()) == 1


def test_a_document_is_checked_without_being_stored(fresh: Hosted) -> None:
    before = fresh.counts()
    spoiled = plain(document())
    spoiled["scores"][1]["value"] = 51.0
    for body, fine in ((document().to_bytes(), True), (json.dumps(spoiled).encode(), False)):
        verdict = fresh.client.post(
            "/v1/submissions/validate", content=body, headers={"Content-Type": "application/json"}
        ).json()
        assert verdict["accepted"] is fine
        assert verdict["rows"] == 4
        assert ([one["pointer"] for one in verdict["problems"]] == []) is fine
    assert any(one["pointer"].startswith("/scores/1") for one in verdict["problems"])
    refused = fresh.send(json.dumps(spoiled).encode())
    assert refused.status_code == 422
    assert refused.json()["errors"] == [dict(one) for one in verdict["problems"]]
    assert fresh.counts() == before


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "parquet", "form"])
def test_a_score_table_is_taken_in_every_format(fresh: Hosted, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"scores.{'csv' if kind == 'form' else kind}"
    document().scores.write(file)
    if kind == "form":
        answer = fresh.client.post(
            "/v1/submissions", files={"file": ("scores.csv", file.read_bytes())}, headers=fresh.author
        )
    else:
        types = {"csv": "text/csv", "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}
        answer = fresh.client.post(
            "/v1/submissions",
            content=file.read_bytes(),
            headers={"Content-Type": types.get(kind, "application/json"), **fresh.author},
        )
    assert answer.status_code == 201, answer.text
    assert fresh.store.rows_of(answer.json()["id"]) == document().scores


def test_the_list_of_submissions_is_filtered_and_read_in_pages(fresh: Hosted) -> None:
    ids = [fresh.send(document(f"model {number}")).json()["id"] for number in range(5)]
    fresh.client.post(
        f"/v1/submissions/{ids[0]}/decision", json={"accept": False, "reason": "no"}, headers=fresh.moderator
    )
    mine = fresh.moderator
    first = fresh.client.get("/v1/submissions?limit=3", headers=mine).json()
    rest = fresh.client.get("/v1/submissions", params={"cursor": first["next"], "limit": 3}, headers=mine).json()
    assert [one["id"] for one in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None
    assert [
        one["id"] for one in fresh.client.get("/v1/submissions?state=rejected", headers=mine).json()["items"]
    ] == ids[:1]
    assert [
        one["id"] for one in fresh.client.get("/v1/submissions?system=model-3", headers=mine).json()["items"]
    ] == ids[3:4]
    assert fresh.client.get("/v1/submissions?owner=nobody", headers=mine).json()["items"] == []


def test_what_was_never_accepted_is_listed_for_its_author_and_moderators_alone(fresh: Hosted) -> None:
    ids = [fresh.send(document(f"model {number}")).json()["id"] for number in range(5)]
    for number, accept in ((0, True), (1, True), (2, False)):
        decision = {"accept": accept, "reason": "because"}
        fresh.client.post(f"/v1/submissions/{ids[number]}/decision", json=decision, headers=fresh.moderator)
    for number in (1, 3):  # one that was on the board, one that nobody had seen
        fresh.client.post(f"/v1/submissions/{ids[number]}/withdraw", json={}, headers=fresh.author)
    stranger, _ = fresh.store.create_token(fresh.store.create_user("eve"), "")

    def listed(query: str = "", **headers: str) -> list[str]:
        items = fresh.client.get(f"/v1/submissions{query}", headers=headers).json()["items"]
        return [one["id"] for one in items]

    for who in ({}, {"Authorization": f"Bearer {stranger}"}, fresh.author):
        assert listed(**who) == ids[1::-1]
        assert listed("?state=pending", **who) == []
    assert listed("?owner=ada") == ids[1::-1]
    assert listed("?owner=ada", **fresh.author) == listed(**fresh.moderator) == ids[::-1]


# --- who ------------------------------------------------------------------------------------------


def test_only_moderators_decide_and_only_owners_withdraw(fresh: Hosted) -> None:
    sent = fresh.send(document()).json()["id"]
    stranger_token, _ = fresh.store.create_token(fresh.store.create_user("eve"))
    stranger = {"Authorization": f"Bearer {stranger_token}"}
    decision, withdrawal = f"/v1/submissions/{sent}/decision", f"/v1/submissions/{sent}/withdraw"
    assert fresh.client.post(decision, json={"accept": True}, headers=fresh.author).status_code == 403
    assert fresh.client.post(withdrawal, json={}, headers=stranger).status_code == 403
    assert fresh.client.post(decision, json={"accept": True}).status_code == 401
    assert fresh.client.post(decision, json={"accept": False}, headers=fresh.moderator).status_code == 422
    assert fresh.client.get(f"/v1/submissions/{sent}/scores", headers=stranger).status_code == 403
    taken = fresh.client.post(
        "/v1/submissions",
        content=document(value=0.1).to_bytes(),
        headers={"Content-Type": "application/json", **stranger},
    )
    assert taken.status_code == 403
    assert fresh.store.submission(sent).state == "pending"  # type: ignore[union-attr]


def test_a_withdrawal_needs_no_body(fresh: Hosted) -> None:
    sent = fresh.send(document()).json()
    assert (sent["systems"], sent["names"]) == (["my-model"], ["my model"])
    done = fresh.client.post(f"/v1/submissions/{sent['id']}/withdraw", headers=fresh.author)
    assert (done.status_code, done.json()["state"], done.json()["reason"]) == (200, "withdrawn", "")


def test_the_audit_trail_parts_a_mark_from_its_reason(fresh: Hosted) -> None:
    sent = fresh.send(document()).json()["id"]
    said = {"accept": True, "provenance": "reproduced", "reason": "I ran it"}
    fresh.client.post(f"/v1/submissions/{sent}/decision", json=said, headers=fresh.moderator)
    assert fresh.store.events(1)[0].detail == "as reproduced: I ran it"


def test_subsets_that_the_board_does_not_have_are_noted(fresh: Hosted) -> None:
    first = document("first", board="mine")
    assert fresh.client.post("/v1/submissions/validate", json=plain(first)).json()["warnings"] == []  # a new board
    fresh.accepted(first)
    second = plain(document("second", board="mine"))
    for row, subset in zip(second["scores"], ("BC", "bs 1", "hw1", "otters"), strict=True):
        row["subset"] = subset
    notes = [
        'The subset "bs 1" is written "BS1" on mine, and would be another one; rename it if they are the same.',
        'The subset "hw1" is written "HW1" on mine, and would be another one; rename it if they are the same.',
        'mine does not have 1 subset of this: "otters".',
    ]
    assert fresh.client.post("/v1/submissions/validate", json=second).json()["warnings"] == notes
    assert fresh.send(json.dumps(second).encode()).json()["notes"] == notes
    assert fresh.send(document("third", board="mine")).json()["notes"] == []


def test_tokens_are_made_listed_and_revoked(fresh: Hosted) -> None:
    made = fresh.client.post("/v1/tokens", json={"label": "laptop"}, headers=fresh.author)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    plain_token, token = made.json()["plain"], made.json()["token"]
    new = {"Authorization": f"Bearer {plain_token}"}
    assert fresh.client.get("/v1/me", headers=new).json()["name"] == "ada"
    listed = fresh.client.get("/v1/tokens", headers=fresh.author)
    assert [one["label"] for one in listed.json()["items"]] == ["test", "laptop"]
    assert plain_token not in listed.text
    assert fresh.client.delete(f"/v1/tokens/{token['id']}", headers=fresh.moderator).status_code == 204
    assert fresh.client.get("/v1/me", headers=new).status_code == 401
    assert fresh.client.delete("/v1/tokens/999", headers=fresh.author).status_code == 404


def test_registration_is_closed_unless_the_host_opens_it(fresh: Hosted, tmp_path: Path) -> None:
    assert fresh.client.post("/v1/users", json={"name": "grace"}).status_code == 403
    with hosted(tmp_path / "open", registration="open") as opened:
        made = opened.client.post("/v1/users", json={"name": "grace", "team": "navy"})
        assert made.status_code == 201
        me = opened.client.get("/v1/me", headers={"Authorization": f"Bearer {made.json()['plain']}"}).json()
        assert (me["name"], me["team"], me["role"]) == ("grace", "navy", "author")
        assert opened.client.post("/v1/users", json={"name": "grace"}).status_code == 409
        moderator = opened.store.user("mod")
        assert moderator is not None
        opened.store.define(Definition("secret", private=True, readers=("team:labx", "zoe")), moderator)
        for asked in ({"name": "Zoe"}, {"name": "eve", "team": "labx"}):
            assert opened.client.post("/v1/users", json=asked).status_code == 409


# --- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/boards/nowhere", 404),
        ("GET", "/v1/boards/vocsim/systems/nobody", 404),
        ("GET", "/v1/boards/vocsim/scores?limit=0", 422),
        ("GET", "/v1/boards/vocsim/scores?cursor=AAAA", 422),
        ("GET", "/v1/boards/vocsim/scores?cursor=WzFlOTksIDFd", 422),
        ("GET", "/v1/boards/vocsim/table?metric=nonsense", 422),
        ("GET", "/v1/submissions/nothing", 404),
        ("GET", "/v1/submissions?cursor=WyJ4Il0", 404),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/me", 401),
        ("POST", "/v1/boards", 405),
        ("POST", "/v1/tokens", 401),
    ],
)
def test_every_refusal_is_a_problem_with_a_sentence(board: Hosted, method: str, path: str, status: int) -> None:
    answer = board.client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert told["title"]
    assert told["detail"].endswith((".", "?"))


def test_the_description_of_the_api_names_every_route(board: Hosted) -> None:
    described = board.client.get("/v1/openapi.json").json()
    assert {path: sorted(routes) for path, routes in described["paths"].items()} == {
        "/v1/blind/boards": ["get"],
        "/v1/blind/jobs": ["get", "post"],
        "/v1/blind/jobs/claim": ["post"],
        "/v1/blind/jobs/{job}": ["get"],
        "/v1/blind/jobs/{job}/fail": ["post"],
        "/v1/blind/jobs/{job}/held": ["post"],
        "/v1/blind/jobs/{job}/package": ["get"],
        "/v1/blind/jobs/{job}/progress": ["post"],
        "/v1/blind/jobs/{job}/release": ["post"],
        "/v1/blind/jobs/{job}/withdraw": ["post"],
        "/v1/blind/releases": ["get"],
        "/v1/blind/releases/{job}/withdraw": ["post"],
        "/v1/blind/sets": ["put"],
        "/v1/boards": ["get"],
        "/v1/boards/{board}": ["get"],
        "/v1/boards/{board}/compare": ["get"],
        "/v1/boards/{board}/definition": ["get", "put"],
        "/v1/boards/{board}/name": ["post"],
        "/v1/boards/{board}/scores": ["get"],
        "/v1/boards/{board}/systems": ["get"],
        "/v1/boards/{board}/systems/{slug}": ["get"],
        "/v1/boards/{board}/table": ["get"],
        "/v1/drafts": ["get", "post"],
        "/v1/drafts/{draft}": ["delete", "get"],
        "/v1/drafts/{draft}/outlook": ["get"],
        "/v1/drafts/{draft}/send": ["post"],
        "/v1/feed": ["delete", "post"],
        "/v1/me": ["get"],
        "/v1/submissions": ["get", "post"],
        "/v1/boards/{board}/systems/{slug}/card": ["patch"],
        "/v1/events": ["get"],
        "/v1/submissions/decisions": ["post"],
        "/v1/submissions/{submission}/outlook": ["get"],
        "/v1/submissions/{submission}/provenance": ["post"],
        "/v1/submissions/validate": ["post"],
        "/v1/submissions/{submission}": ["get"],
        "/v1/submissions/{submission}/decision": ["post"],
        "/v1/submissions/{submission}/scores": ["get"],
        "/v1/submissions/{submission}/withdraw": ["post"],
        "/v1/tokens": ["get", "post"],
        "/v1/tokens/{token}": ["delete"],
        "/v1/users": ["post"],
    }
