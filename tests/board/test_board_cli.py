"""`earmark board`: what is printed where, what is stored, which exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.board.documents import document
from tests.cli.verbs import runner

from earmark.board.storage import Store, open_database
from earmark.cli import board

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("EARMARK_DATABASE_URL", sqlite_url)
    return runner("board", board, capsys)


def test_users_tokens_and_decisions(run: Run, sqlite_url: str) -> None:
    code, token, said = run("user", "ada", "--team", "analysts")
    assert code == 0
    assert "shown this once" in said
    code, out, _ = run("user", "grace", "--moderator", "--json")
    assert json.loads(out)["role"] == "moderator"
    store = Store(open_database(sqlite_url))
    ada = store.authenticate(token.strip())
    assert ada is not None
    assert (ada.name, ada.team, ada.role) == ("ada", "analysts", "author")
    first, second = (store.submit(document({"birds": value}), ada).id for value in (0.1, 0.2))

    code, out, _ = run("submissions", "--state", "pending")
    assert out.splitlines()[1].startswith(f"{second}  pending  mine")
    code, out, _ = run("approve", first, "--provenance", "reproduced")
    assert (code, out) == (0, f"{first} is accepted: 1 row of model on mine\n")
    assert run("reject", second)[0] == 2
    assert run("reject", second, "--reason", "no")[0] == 0
    code, _, said = run("approve", second)
    assert (code, said.startswith(f"earmark: Submission {second} is rejected already;")) == (1, True)
    assert run("withdraw", first, "--as", "ada", "--reason", "mine")[0] == 0
    code, out, _ = run("events", "--json")
    assert [event["action"] for event in json.loads(out)][:3] == ["withdrew", "rejected", "accepted"]

    prefix = json.loads(run("tokens", "ada", "--json")[1])[0]["prefix"]
    assert run("revoke", prefix, "--user", "ada")[0] == 0
    assert store.authenticate(token.strip()) is None
    assert store.authenticate(run("token", "ada", "--label", "new")[1].strip()) == ada
    assert [line.split()[0] for line in run("users")[1].splitlines()] == ["name", "ada", "grace"]
    store.close()


def test_the_user_of_a_worker(run: Run) -> None:
    assert json.loads(run("user", "lab", "--worker", "--json")[1])["role"] == "worker"
    assert json.loads(run("user", "other lab", "--role", "worker", "--json")[1])["role"] == "worker"
    assert run("user", "both", "--worker", "--moderator")[0] == 2


def test_who_decides_must_be_clear(run: Run) -> None:
    code, _, said = run("approve", "x")
    assert code == 2
    assert "There is no moderator yet" in said
    run("user", "grace", "--moderator")
    assert run("approve", "x")[::2] == (1, "earmark: There is no submission 'x' on this board.\n")
    run("user", "alan", "--moderator")
    code, _, said = run("approve", "x")
    assert code == 2
    assert "Say with --as who decides: grace" in said
    assert "alan" in said
    assert "papers" not in said
    assert 'Did you mean "alan"' in run("approve", "x", "--as", "allan")[2]


def test_load_published(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earmark.board.papers.PUBLISHED_BOARDS", ("codec-superb",))  # the small one
    assert run("load-published")[:2] == (0, "codec-superb: 537 rows of 20 systems, loaded\n")
    assert run("load-published")[:2] == (0, "codec-superb: 537 rows of 20 systems, already there (accepted)\n")


def test_backup_restore_export(run: Run, tmp_path: Path, sqlite_url: str) -> None:
    run("user", "grace", "--moderator")
    store = Store(open_database(sqlite_url))
    grace = store.user("grace")
    assert grace is not None
    sent = store.submit(document(), grace)
    store.close()
    run("approve", sent.id)
    code, _, said = run("backup", tmp_path / "b.gz")
    assert code == 0
    assert "keep it where only you read it" in said
    fresh = f"sqlite:///{tmp_path / 'fresh.sqlite3'}"
    assert run("restore", tmp_path / "b.gz", "--database", fresh)[0] == 0
    assert json.loads(run("submissions", "--database", fresh, "--json")[1])[0]["id"] == sent.id
    code, _, said = run("restore", tmp_path / "b.gz")
    assert (code, said.startswith("earmark: The database is not empty")) == (1, True)
    code, out, _ = run("export", "--into", tmp_path / "out", "--board", "mine", "--json")
    names = ["scores.csv", "origins.csv", "systems.csv", "submissions.csv"]
    assert [Path(name).name for name in json.loads(out)] == names
    assert run("export", "--into", tmp_path / "b.gz")[0] == 1
    assert run("backup", tmp_path / "no" / "b.gz")[0] == 1


def test_a_folder_for_the_file(run: Run, tmp_path: Path) -> None:
    code, _, told = run("user", "ada", "--data", tmp_path / "data")
    assert code == 0
    assert f"a new one was made at {tmp_path / 'data' / 'earmark-board.sqlite3'}." in told
    assert "new one was made" not in run("user", "bob", "--data", tmp_path / "data")[2]
    assert (tmp_path / "data" / "earmark-board.sqlite3").exists()
    assert run("users", "--data", tmp_path / "data")[0] == 0
    assert run("users", "--database", "mysql://x")[0] == 2


@pytest.mark.parametrize(
    "words",
    [("users",), ("tokens", "ada"), ("submissions",), ("events",), ("backup", "b.gz"), ("export", "--into", "out"),
     ("freeze", "--into", "site"), ("approve", "x"), ("load-published",)],
)  # fmt: skip
def test_a_board_that_is_not_there_is_not_made_by_reading_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    code, out, said = run(*words, "--data", tmp_path / "elsewhere")
    assert (code, out) == (1, "")
    assert f"There is no board at {tmp_path / 'elsewhere' / 'earmark-board.sqlite3'}; " in said
    assert "--data" in said
    assert len(said.splitlines()) == 1
    assert set(tmp_path.iterdir()) == before


def test_freeze_writes_pages_that_open_from_a_folder(run: Run, tmp_path: Path, sqlite_url: str) -> None:
    store = Store(open_database(sqlite_url))
    ada = store.create_user("ada", role="moderator")
    store.decide(store.submit(document({"birds": 0.5}), ada).id, ada, accept=True)
    store.close()
    code, out, _ = run("freeze", "--into", tmp_path / "site", "--title", "Kept", "--json")
    told = json.loads(out)
    page = Path(told["open"]).read_text("utf-8")
    assert code == 0
    assert "Kept" in page
    assert told["files"] == sum(path.is_file() for path in (tmp_path / "site").rglob("*"))
    assert run("freeze", "--into", tmp_path / "site")[0] != 0  # it is not empty any more


def test_what_would_change_and_several_decisions(run: Run, sqlite_url: str) -> None:
    run("user", "ada")
    run("user", "grace", "--moderator")
    store = Store(open_database(sqlite_url))
    ada = store.user("ada")
    assert ada is not None
    ids = [store.submit(document({"birds": 0.5 + number / 10}, system=f"m{number}"), ada).id for number in range(3)]
    assert run("accept", ids[0])[0] == 0
    code, out, _ = run("outlook", ids[1])
    assert code == 0
    assert "1 of 2" in out
    assert "m0 50.0" in out  # the best so far, in percent as everywhere
    assert "P@1 (%)" in out
    assert "60.0" in out
    assert "0.6" not in out
    seen = json.loads(run("outlook", ids[1], "--json")[1])
    assert (seen["standings"][0]["after"]["rank"], seen["rows"][0]["best"]) == (1, 0.5)
    assert run("outlook", "nothing")[0] == 1
    code, out, said = run("accept", *ids)
    assert (code, out.count(" accepted\n"), "1 submission of 3" in said) == (1, 2, True)
    code, out, _ = run("mark", ids[0], "--provenance", "reproduced", "--reason", "ran it")
    assert (code, f"{ids[0]} is now reproduced, was self-reported: 1 row of m0" in out) == (0, True)
    assert store.submissions(limit=3)[2].provenance == "reproduced"
    assert [line.split()[-1] for line in run("events", "--action", "marked")[1].splitlines()][-1] == "it"
    listed = run("submissions", "--owner", "ada", "--before", ids[1], "--json")[1]
    assert [each["id"] for each in json.loads(listed)] == [ids[0]]
    store.close()


def test_lookalikes_are_told_before_several_are_accepted(run: Run, sqlite_url: str) -> None:
    run("user", "ada")
    run("user", "bob")
    run("user", "grace", "--moderator")
    store = Store(open_database(sqlite_url))
    ids = [
        store.submit(document(system=name), user).id
        for name, user in (("EWMTF-D100", store.user("ada")), ("EWMTF Dl00", store.user("bob")))
        if user is not None
    ]
    assert run("submissions", "--noted")[2].count("looks like") == 2
    code, _, told = run("accept", *ids)
    assert code == 0
    assert f'look  {ids[0]}: The name "EWMTF-D100" looks like "EWMTF Dl00": the system "EWMTF Dl00" of bob' in told
    assert told.count("look  ") == 2
    store.close()


def test_the_trail_says_what_was_done_at_the_command_line(run: Run) -> None:
    run("user", "grace", "--moderator")
    prefix = run("token", "grace")[1][:11]
    run("revoke", prefix, "--user", "grace")
    trail = [(each["user"], each["action"], each["detail"]) for each in json.loads(run("events", "--json")[1])]
    assert trail[0] == ("command line", "revoked_token", f"{prefix} of grace")
    assert trail[1] == ("command line", "created_token", f"{prefix} of grace")
    assert trail[3] == ("command line", "created_user", "grace, as moderator")
    assert {user for user, _, _ in trail} == {"command line"}


def test_what_a_host_does(run: Run, sqlite_url: str, tmp_path: Path) -> None:
    run("user", "ada")
    assert "ada is moderator" in run("role", "ada", "moderator")[1]
    assert "scores hidden" in run("ban", "ada", "--hide", "--reason", "spam")[1]
    assert "may send again" in run("unban", "ada")[1]
    code, _, said = run("erase", "ada", "--scores", "kept")
    assert (code, "--yes" in said) == (2, True)
    assert "erased user" in run("erase", "ada", "--scores", "kept", "--yes", "ada")[1]
    assert run("ban", "ada")[0] == 1
    (tmp_path / "news.md").write_text("We **move**.")
    assert run("text", "news", str(tmp_path / "news.md"))[1].strip() == "We **move**."
    assert run("text", "news")[1].strip() == "We **move**."
    assert run("text", "news", str(tmp_path / "none.md"))[0] == 1
    store = Store(open_database(sqlite_url))
    assert {event.user for event in store.events(5)} == {"command line"}
    store.close()
