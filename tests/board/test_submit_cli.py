"""`earmark submit`: what it shows, what it refuses before anything is sent, and what it prints when it was."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.board.hosted import document
from tests.cli.verbs import runner

from earmark.board.storage import Store
from earmark.cli import submit
from earmark.cli.board_access import split_page
from earmark.scores import Row, Scores
from earmark.submissions import Verdict

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def token(board: tuple[str, Store]) -> str:
    _, store = board
    plain, _ = store.create_token(store.create_user("ada"))
    return plain


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, token: str) -> Call:
    monkeypatch.setenv("EARMARK_TOKEN", token)
    return runner("submit", submit, capsys)


def written(folder: Path, name: str = "my model", value: float = 0.5) -> Path:
    document(name, value).scores.write(folder / "scores.csv")
    return folder / "scores.csv"


def test_a_table_is_shown_sent_once_and_found_again(
    call: Call, board: tuple[str, Store], tmp_path: Path, token: str
) -> None:
    address, store = board
    file = written(tmp_path, "shown")
    code, out, err = call(file, "--to", address, "--yes")
    assert code == 0, err
    assert "board    vocsim at http://127.0.0.1" in err
    assert "systems  shown" in err
    assert "scores   4 rows: 4 subsets × P@1" in err
    assert token not in out + err
    permalink, state = out.split()
    assert (state, permalink.startswith(f"{address}/submissions/")) == ("(pending)", True)
    code, again, err = call(file, "--to", address, "--yes")
    assert (code, again) == (0, out)
    assert "sent before" in err
    assert len(store.submissions(system="shown")) == 1
    code, again, _ = call(file, "--to", address, "--yes", "--again", "--json", "--quiet")
    assert code == 0
    assert json.loads(again)["permalink"] != permalink
    assert len(store.submissions(system="shown")) == 2


def test_nothing_is_sent_without_a_yes(
    call: Call, board: tuple[str, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, store = board
    file = written(tmp_path, "unsure")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, err = call(file, "--to", address)
    assert (code, out) == (2, "")
    assert "add --yes" in err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    code, out, err = call(file, "--to", address)
    assert (code, out) == (2, "")
    assert "Send it? [y/N]" in err
    assert store.submissions(system="unsure") == []
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    code, out, _ = call(file, "--to", address)
    assert code == 0
    assert "(pending)" in out


def test_a_dry_run_asks_here_and_there_and_sends_nothing(call: Call, board: tuple[str, Store], tmp_path: Path) -> None:
    address, store = board
    file = written(tmp_path, "dry")
    assert call(file, "--dry-run", "--quiet") == (0, "4 rows of 1 system: checked here, nothing sent\n", "")
    code, out, _ = call(file, "--to", address, "--dry-run")
    assert (code, out) == (0, "4 rows of 1 system: checked here and by the board, nothing sent\n")
    code, out, _ = call(file, "--dry-run", "--json", "--quiet")
    assert json.loads(out) == {
        "board": "vocsim",
        "systems": ["dry"],
        "rows": 4,
        "digest": document("dry").digest,
        "asked_board": False,
    }
    assert store.submissions(system="dry") == []


def test_problems_are_told_before_anything_is_sent(call: Call, board: tuple[str, Store], tmp_path: Path) -> None:
    address, store = board
    before = len(store.submissions(limit=1000))
    code, out, err = call(written(tmp_path, "wrong", 40.0), "--to", address, "--yes")
    assert (code, out) == (1, "")
    assert "earmark: /scores/0" in err
    assert err.rstrip().endswith("nothing was sent.")
    assert len(store.submissions(limit=1000)) == before


def test_an_unknown_metric_is_told_once(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    rows = "".join(f"mine,{subset},model,confused_calls,0.25\n" for subset in ("birds", "bats", "frogs"))
    file.write_text(f"suite,subset,system,metric,value\n{rows}")
    code, _, told = call(file, "--dry-run")
    lines = [line for line in told.splitlines() if "no metric" in line]
    assert (code, len(lines)) == (1, 1)
    assert "confused_calls is no metric that Earmark knows." in lines[0]
    assert lines[0].endswith("If it is the board's own, check with --to ADDRESS.")
    assert lines[0].count(",") < 3


def test_what_only_the_board_knows_is_told_in_full(
    call: Call, board: tuple[str, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = board
    monkeypatch.setattr("earmark.submissions.check", lambda document: Verdict())  # an older Earmark, with other rules
    for more in (["--yes"], ["--dry-run"]):
        code, out, err = call(written(tmp_path, "older", 40.0), "--to", address, "--quiet", *more)
        assert (code, out) == (1, "")
        assert err.count("earmark: the board says: /scores/") >= 4
        assert err.endswith("earmark: nothing was sent.\n")


def test_a_card_and_a_name_describe_the_system(call: Call, board: tuple[str, Store], tmp_path: Path) -> None:
    address, store = board
    rows = [Row(subset=row.subset, distance="cosine", metric="P@1", value=row.value) for row in document().scores]
    Scores(tuple(rows)).write(tmp_path / "bare.csv")
    (tmp_path / "card.yaml").write_text("name: carded\nfamily: Whisper\nparameters_m: 635\nauthors: [A. Author]\n")
    code, out, err = call(
        tmp_path / "bare.csv", "--to", address, "--board", "vocsim", "--card", tmp_path / "card.yaml", "--yes"
    )
    assert code == 0, err
    (card,) = store.cards_of(out.split()[0].rpartition("/")[2])
    assert (card.name, card.family, card.parameters_m, card.authors) == ("carded", "Whisper", 635, ("A. Author",))
    code, out, err = call(written(tmp_path), "--to", address, "--name", "renamed", "--yes")
    assert code == 0, err
    sent = out.split()[0].rpartition("/")[2]
    assert {row.system for row in store.rows_of(sent)} == {"renamed"}
    code, out, err = call(
        written(tmp_path), "--card", tmp_path / "card.yaml", "--name", "both", "--dry-run", "--json", "--quiet"
    )
    assert json.loads(out)["systems"] == ["both"]


def test_a_lost_board_and_a_wrong_token_are_said(
    call: Call, board: tuple[str, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = board
    file = written(tmp_path)
    code, _, err = call(file, "--to", "http://board.invalid", "--yes")
    assert code == 1
    assert "does not answer" in err
    assert "is not encrypted" in err
    monkeypatch.setenv("EARMARK_TOKEN", "em_wrong")
    code, _, err = call(file, "--to", address, "--yes", "--quiet")
    assert (code, err) == (1, "earmark: The board answered 401: The token is unknown or was revoked; make a new one.\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["scores.csv"], 2, "--to URL"),
        (["nothing.csv", "--dry-run"], 1, "does not exist"),
        ([".", "--dry-run"], 1, "is a folder"),
        (["scores.csv", "--to", "ftp://x"], 2, "is not the address of a board"),
        (["scores.csv", "--card", "nothing.yaml", "--dry-run"], 1, "nothing.yaml cannot be read"),
        (["scores.csv", "--card", "bad.yaml", "--dry-run"], 1, "unknown key"),
        (["scores.csv", "--card", "worse.yaml", "--dry-run"], 1, "not readable as YAML"),
        (["two.csv", "--name", "x", "--dry-run"], 2, "--name names one system"),
        (["notes.txt", "--dry-run"], 1, "a document is one of"),
    ],
)
def test_wrong_calls_are_one_sentence(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    Scores((*document("a").scores.rows, *document("b").scores.rows)).write("two.csv")
    Path("bad.yaml").write_text("name: x\nfamliy: y\n")
    Path("worse.yaml").write_text("name: [x\n")
    Path("notes.txt").write_text("hello")
    found, out, err = call(*words, "--quiet")
    assert (found, out) == (code, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_sending_needs_a_token(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EARMARK_TOKEN")
    code, _, err = call(written(tmp_path), "--to", "http://localhost:1", "--yes")
    assert code == 2
    assert "set EARMARK_TOKEN" in err
    assert "the host of the board gave you" in err
    assert "http://localhost:1/sign-up" in err


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("/b/mybirds", "mybirds"),
        ("/b/mybirds/s/crow", "mybirds"),
        ("/submit", ""),
        ("/submissions/3f9c2a7be1d04c55", ""),
        ("/boards", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("root", ["https://b.example.org:8000", "http://b", "https://example.org/sounds"])
def test_the_address_of_a_page_is_that_of_its_board(
    capsys: pytest.CaptureFixture[str], root: str, page: str, found: str | None
) -> None:
    expected = (root + page, "") if found is None else (root, found)
    assert split_page(root + page, "", quiet=False) == expected
    assert bool(capsys.readouterr().err) == (found is not None)
    assert split_page(root + page, "given", quiet=True) == (expected[0], "given")


def test_a_copied_page_says_which_board_a_bare_table_is_for(
    call: Call, board: tuple[str, Store], tmp_path: Path
) -> None:
    address, store = board
    Scores((Row(subset="crow", system="copied", metric="P@1", value=0.5),)).write(tmp_path / "bare.csv")
    code, _, err = call(tmp_path / "bare.csv", "--to", address, "--dry-run")
    assert code == 1
    assert "name it with --board" in err
    code, _, err = call(tmp_path / "bare.csv", "--to", f"{address}/b/mybirds", "--yes")
    assert code == 0, err
    assert f"taken as {address} and the board mybirds" in err
    assert [one.board for one in store.submissions(system="copied")] == ["mybirds"]


def test_a_subset_that_is_new_to_the_board_is_remarked(call: Call, board: tuple[str, Store], tmp_path: Path) -> None:
    address, store = board
    moderator = store.create_user("mod", role="moderator")
    sent = store.submit(document("there", board="pond"), moderator).id
    bearer = {"Authorization": f"Bearer {store.create_token(moderator)[0]}"}
    httpx.post(f"{address}/v1/submissions/{sent}/decision", json={"accept": True}, headers=bearer).raise_for_status()
    Scores((Row(suite="pond", subset="bc", system="new", metric="P@1", value=0.5),)).write(tmp_path / "new.csv")
    for more in ("--dry-run", "--yes"):
        code, _, err = call(tmp_path / "new.csv", "--to", address, more)
        assert code == 0, err
        assert 'remark   The subset "bc" is written "BC" on pond' in err
