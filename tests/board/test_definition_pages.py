"""A board is defined by the API, on a page and from the command line; its old name and its privacy hold everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.board.hosted import Hosted, document, hosted, listening
from tests.board.test_definition import OWN
from tests.board.test_writing_pages import page, post, sign_in

from earmark.board.pages.markdown import markdown
from earmark.cli import main
from earmark.definitions import read_definition, to_plain, to_yaml
from earmark.scores import Row, Scores
from earmark.submissions import Document, SystemCard


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path) as made:
        made.accepted(document("one", 0.3, board="mine"))
        made.accepted(document("two", 0.6, board="mine"))
        yield made


# --- API -------------------------------------------------------------------------------------------------------------


def test_the_api_reads_and_changes_a_definition(board: Hosted) -> None:
    address = "/v1/boards/mine/definition"
    held = board.client.get(address)
    assert held.headers["etag"] == '"1"'
    assert held.json()["rank_by"] == ["mean"]
    yaml = board.client.get(f"{address}?format=yaml")
    assert to_plain(read_definition(yaml.text)) == held.json()
    changed = {**held.json(), "title": "Ours"}
    tag = {"If-Match": held.headers["etag"]}
    assert board.client.put(address, json=changed, headers={**board.author, **tag}).status_code == 403
    assert board.client.put(address, json=changed, headers=board.moderator).status_code == 428
    done = board.client.put(address, json=changed, headers={**board.moderator, **tag})
    assert (done.status_code, done.headers["etag"], done.json()["title"]) == (200, '"2"', "Ours")
    again = board.client.put(address, json=changed, headers={**board.moderator, **tag})
    assert again.status_code == 412
    assert "version 2 holds, not 1" in again.json()["detail"]
    wrong = board.client.put(address, json={**changed, "subets": []}, headers={**board.moderator, "If-Match": '"2"'})
    assert (wrong.status_code, "Did you mean" in wrong.json()["detail"]) == (422, True)
    other = board.client.put("/v1/boards/other/definition", json=changed, headers={**board.moderator, **tag})
    assert other.status_code == 422
    assert ">Ours</h1>" in page(board, "/b/mine")


def test_a_new_board_is_defined_before_anybody_submits(board: Hosted) -> None:
    own = replace(read_definition(OWN), opens=None, closes=None)
    headers = {**board.moderator, "If-Match": '"0"', "Content-Type": "application/yaml"}
    done = board.client.put("/v1/boards/reef/definition", content=to_yaml(own), headers=headers)
    assert done.status_code == 200
    assert "Sounds of the reef" in page(board, "/")
    assert page(board, "/b/reef")
    assert "share of calls that nobody found" in page(board, "/b/reef/about")
    sent = document("three", board="reef")
    names = zip(sent.scores, ("crabs", "shrimp"), strict=False)
    rows = [replace(row, subset=name, metric="misses") for row, name in names]
    board.accepted(replace(sent, scores=type(sent.scores)(tuple(rows))))
    line = board.client.get("/v1/boards/reef/table").json()["items"][0]
    assert (line["system"], line["rank"]) == ("three", 1)


def test_a_renamed_board_is_found_by_its_old_addresses(board: Hosted) -> None:
    done = board.client.post("/v1/boards/mine/name", json={"name": "ours"}, headers=board.moderator)
    assert done.status_code == 200
    for old, new in (
        ("/b/mine?metric=P%401", "/b/ours?metric=P%401"), ("/b/mine.csv", "/b/ours.csv"),
        ("/b/mine/s/one", "/b/ours/s/one"), ("/v1/boards/mine/scores?limit=1", "/v1/boards/ours/scores?limit=1"),
    ):  # fmt: skip
        answer = board.client.get(old, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (308, new)
        assert board.client.get(old).status_code == 200
    assert board.accepted(document("three", board="mine"))
    assert len(board.client.get("/v1/boards/ours/systems").json()["items"]) == 3


def test_a_private_board_is_nowhere_for_others(board: Hosted) -> None:
    id = board.accepted(document("secret", board="mine"))
    held = board.client.get("/v1/boards/mine/definition")
    tag = {**board.moderator, "If-Match": held.headers["etag"]}
    private = {**held.json(), "private": True, "readers": ["bob"]}
    assert board.client.put("/v1/boards/mine/definition", json=private, headers=tag).status_code == 200
    token, _ = board.store.create_token(board.store.create_user("bob"), "test")
    bob = {"Authorization": f"Bearer {token}"}
    eve_token, _ = board.store.create_token(board.store.create_user("eve"), "test")
    eve = {"Authorization": f"Bearer {eve_token}"}
    for path in ("/b/mine", "/b/mine.csv", "/b/mine/about", "/b/mine/s/one", "/b/mine/subsets", "/v1/boards/mine",
                 "/v1/boards/mine/scores", "/v1/boards/mine/definition"):  # fmt: skip
        assert board.client.get(path).status_code == 404, path
        assert board.client.get(path, headers=eve).status_code == 404, path
        seen = board.client.get(path, headers=bob)
        assert (seen.status_code, seen.headers["cache-control"]) == (200, "private, no-store"), path
    assert "mine" not in [each["name"] for each in board.client.get("/v1/boards").json()["items"]]
    assert "/b/mine" not in page(board, "/")
    assert board.client.get(f"/v1/submissions/{id}", headers=eve).status_code == 404
    assert board.client.get("/v1/submissions", headers=eve).json()["items"] == []
    assert board.client.get(f"/submissions/{id}").status_code == 404
    sign_in(board, token)
    assert page(board, "/b/mine")


def test_hidden_boards_are_on_no_list_and_archived_ones_take_nothing(board: Hosted) -> None:
    held = board.client.get("/v1/boards/mine/definition")

    def change(version: int, **keys: str) -> None:
        headers = {**board.moderator, "If-Match": f'"{version}"'}
        assert board.client.put("/v1/boards/mine/definition", json={**held.json(), **keys}, headers=headers).is_success

    change(1, state="hidden")
    assert "/b/mine" not in page(board, "/")
    assert page(board, "/b/mine")
    change(2, state="archived")
    refused = board.send(document("late", board="mine"))
    assert (refused.status_code, "is archived" in refused.json()["detail"]) == (409, True)


# --- pages -----------------------------------------------------------------------------------------------------------


def test_a_moderator_defines_a_board_on_its_page(board: Hosted) -> None:
    address = "/b/mine/define"
    assert board.client.get(address, follow_redirects=False).status_code == 303
    sign_in(board, board.author_token)
    assert board.client.get(address).status_code == 403
    sign_in(board, board.moderator_token)
    yaml = to_yaml(read_definition(board.client.get("/v1/boards/mine/definition?format=yaml").text))
    fewer = yaml.replace("rank_by: [mean]", "rank_by: [mean]\nunranked: [two]").replace("derived: true\n", "")
    shown = post(board, address, address, part="yaml", yaml=fewer, version="1", action="preview")
    assert shown.status_code == 200
    assert "1 would lose their rank" in shown.text
    assert board.client.get("/v1/boards/mine/definition").headers["etag"] == '"1"'
    saved = post(board, address, address, part="yaml", yaml=fewer, version="1", action="save", note="a baseline")
    assert saved.status_code == 303
    assert "a baseline" in page(board, "/b/mine/about")
    stale = post(board, address, address, part="yaml", yaml=yaml, version="1", action="save")
    assert (stale.status_code, "version 2 holds" in stale.text) == (412, True)
    wrong = post(
        board, address, address, part="yaml", yaml=yaml.replace("rank_by", "rankby"), version="2", action="save"
    )
    assert (wrong.status_code, "Did you mean" in wrong.text) == (422, True)
    fields = {"title": "Ours <b>", "closes": "2031-01-01", "state": "open", "version": "2", "yaml": fewer}
    assert post(board, address, address, action="save", **fields).status_code == 303
    about = page(board, "/b/mine/about")
    assert "Ours &lt;b&gt;" in about
    assert "2031-01-01" in about


def test_one_click_adds_what_submissions_brought(board: Hosted) -> None:
    sent = document("new one", board="mine")
    rows = tuple(replace(row, subset="lake") for row in sent.scores.rows[:1])
    board.accepted(replace(sent, scores=type(sent.scores)(rows)))
    assert "not part of the board" in page(board, "/b/mine/about")
    sign_in(board, board.moderator_token)
    assert "Add the subset lake" in page(board, "/b/mine/define")
    assert post(board, "/b/mine/define", "/b/mine/define", add="subset:lake").status_code == 303
    assert "Add the subset lake" not in page(board, "/b/mine/define")
    line = board.client.get("/v1/boards/mine/table?over=subset:lake").json()["items"][0]
    assert (line["system"], line["rank"]) == ("new one", 1)


def test_the_hosts_title_of_a_metric_and_its_percent_are_on_every_page(board: Hosted) -> None:
    grace = board.store.user("mod")
    assert grace is not None
    text = "name: reef\nmetrics:\n- {name: misses, title: Missed calls, range: [0, 1], percent: true}\n"
    text += "subsets:\n- {name: crabs}\ngroups:\n- {key: all, subsets: [crabs], metrics: [misses]}\nrank_by: [all]\n"
    board.store.define(read_definition(text), grace, "")
    titled = "Missed calls <small><code>misses</code></small>"

    def sent(value: float) -> str:
        rows = document("model", board="reef").scores.rows[:1]
        row = replace(rows[0], subset="crabs", metric="misses", value=value, low=None, high=None)
        made = Document.of(Scores((row,)), board="reef", cards=[SystemCard("model")])
        return str(board.send(made).json()["id"])

    id = sent(0.2533)
    sign_in(board, board.moderator_token)
    shown = page(board, f"/submissions/{id}")
    assert (titled in shown, "25.3" in shown, "0.2533" in shown) == (True, True, False)
    board.store.decide(id, grace, accept=True)
    board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
    for address in (f"/submissions/{id}", "/b/reef", "/b/reef/s/model"):
        assert titled in page(board, address), address


def test_markdown_of_hosts_is_shown_and_harmless() -> None:
    text = "See [the paper](https://example.org/a_b?x=1&y=2), **now** and *then*.\n\n1. one\n2. two\n\n> said"
    shown = markdown(text)
    assert '<a href="https://example.org/a_b?x=1&amp;y=2" rel="nofollow noopener">the paper</a>' in shown
    assert "<strong>now</strong> and <em>then</em>" in shown
    assert "<ol><li>one</li><li>two</li></ol>" in shown
    assert "<blockquote><p>said</p></blockquote>" in shown
    assert markdown("```\n<b>**x**\n```") == "<pre>&lt;b&gt;**x**\n</pre>"
    for bad in ("[x](javascript:alert(1))", "<script>", '[x](https://a" onclick="b)', "[<img>](https://a.b)"):
        made = str(markdown(bad))
        assert "<script" not in made and "<img" not in made and 'onclick="' not in made  # noqa: PT018
        assert 'href="javascript' not in made


# --- the command line ------------------------------------------------------------------------------------------------


def test_the_command_line_defines_shows_and_renames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, data = tmp_path / "reef.yaml", ["--data", str(tmp_path)]
    file.write_text(OWN, "utf-8")
    assert main(["board", "user", "grace", "--moderator", *data]) == 0
    capsys.readouterr()
    assert main(["board", "define", str(file), "--check", *data]) == 0
    assert "reef is a new board. Systems are ranked by the mean of the reef (2 subsets)" in capsys.readouterr().out
    assert main(["board", "define", "--show", "reef", *data]) != 0
    past = tmp_path / "past.yaml"
    past.write_text(OWN.replace("2027-01-01", "2020-01-01").replace("2027-03-31", "2020-01-31"), "utf-8")
    assert main(["board", "define", str(past), "--check", *data]) == 0
    assert "It closed on 2020-01-31 and takes no scores." in capsys.readouterr().out
    assert main(["board", "define", str(file), *data]) == 0
    capsys.readouterr()
    assert main(["board", "define", "--show", "reef", *data]) == 0
    assert read_definition(capsys.readouterr().out) == read_definition(OWN)
    assert main(["board", "define", "--show", "vocsim", *data]) == 0
    assert read_definition(capsys.readouterr().out).title == "VocSim"
    assert main(["board", "define", "reef", "--add-subset", "whales", "--json", *data]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == 2
    assert main(["board", "rename", "reef", "atoll", *data]) == 0
    capsys.readouterr()
    file.write_text(OWN.replace("title:", "titel:"), "utf-8")
    assert main(["board", "define", str(file), *data]) == 2
    assert 'Did you mean "title"?' in capsys.readouterr().err


def test_earmark_submit_takes_the_metrics_of_the_board_that_it_sends_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        Row(suite="reef", subset=name, system="model", metric="misses", value=0.2, n=10, version="1", inputs="ab" * 32)
        for name in ("crabs", "shrimp")
    ]
    Scores(tuple(rows)).write(tmp_path / "scores.csv")
    with listening(tmp_path / "board") as (address, store):
        grace = store.create_user("grace", role="moderator")
        token, _ = store.create_token(grace, "test")
        sending = ["submit", str(tmp_path / "scores.csv"), "--to", address, "--token", token, "--yes", "--quiet"]
        assert main(sending) != 0
        assert "misses is no metric" in capsys.readouterr().err
        store.define(replace(read_definition(OWN), opens=None, closes=None), grace)
        assert main(sending) == 0
        assert "pending" in capsys.readouterr().out
