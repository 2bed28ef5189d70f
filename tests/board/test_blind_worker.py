"""From a package to released figures, with real workers on real databases; killed at random, nothing is lost or done
twice."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.blind.examples import CODE, code_package, onnx_package
from tests.board.data_side import kill, make_worker, start_worker, write_sets
from tests.board.hosted import listening

from earmark.blind.ledger import Ledger
from earmark.blind.packages import archive
from earmark.blind.worker import Job, _Beat
from earmark.board.storage import Store
from earmark.errors import InputError
from earmark.submissions.client import BoardClient, BoardRefusal

KILLS = 20
JOBS = 6


class Field:
    """A board, a worker's account, and two teams."""

    def __init__(self, address: str, store: Store, folder: Path) -> None:
        self.address, self.store, self.folder = address, store, folder
        self.worker_token = store.create_token(store.create_user("host", role="worker"))[0]
        self.teams = [
            BoardClient(address, store.create_token(store.create_user(name, team=name))[0]) for name in ("ada", "bob")
        ]

    def send(self, team: int, package: Path) -> str:
        sent = archive(package, package.with_suffix(".zip"))
        return str(self.teams[team].send_package(sent, "field")["id"])


@contextmanager
def opened_field(url: str, folder: Path) -> Iterator[Field]:
    with listening(folder / "board", database_url=url, blind=folder / "packages", lease_seconds=1.0) as (at, store):
        yield Field(at, store, folder)


@pytest.fixture
def each_field(url: str, tmp_path: Path) -> Iterator[Field]:
    with opened_field(url, tmp_path) as field:
        yield field


@pytest.fixture
def field(sqlite_url: str, tmp_path: Path) -> Iterator[Field]:
    with opened_field(sqlite_url, tmp_path) as field:
        yield field


def variant(number: int) -> str:
    """The source of a model that is like no other."""
    return CODE.replace("np.log1p(", f"np.cos({number} * np.arange(129)) * np.log1p(")


def test_workers_that_are_killed_finish_every_job_once(each_field: Field, url: str) -> None:
    field = each_field
    ledger = str(field.folder / "ledger.sqlite3") if url.startswith("sqlite") else url
    sets = write_sets(field.folder)
    given = sets, field.address, field.worker_token, ledger
    first = make_worker(*given, field.folder / "announces")
    first.announce()
    first.ledger.close()  # what SQLite has open does not survive a fork
    jobs = [
        field.send(number % 2, code_package(field.folder / f"package{number}", variant(number),
                                            system={"name": f"model {number}", "licence": "MIT"}))
        for number in range(JOBS)
    ]  # fmt: skip
    chance = random.Random(18)
    workers = [start_worker(*given, field.folder / f"worker{number}") for number in range(2)]
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.05, 1.2))
        which = chance.randrange(2)
        kill(workers[which])
        workers[which] = start_worker(*given, field.folder / f"worker{which}")
    until = time.monotonic() + 120
    while any(field.teams[place % 2].job(job)["state"] != "released" for place, job in enumerate(jobs)):
        assert time.monotonic() < until, [field.teams[place % 2].job(job) for place, job in enumerate(jobs)]
        time.sleep(0.2)
    for worker in workers:
        kill(worker)
    book = Ledger(ledger)
    entries = book.entries()
    assert Counter(entry.body["job"] for entry in entries if entry.kind == "release") == Counter(jobs)
    assert sum(entry.kind == "departure" for entry in entries) == JOBS
    assert book.verify() == []
    book.close()
    submissions = field.store.submissions(board="field", limit=100)
    assert [one.provenance for one in submissions] == ["blind"] * JOBS
    assert Counter(name for one in submissions for name in one.systems) == Counter(
        {f"model-{number}": 1 for number in range(JOBS)}
    )


def test_two_workers_never_share_a_job(each_field: Field) -> None:
    field = each_field
    ledger, sets = str(field.folder / "ledger.sqlite3"), write_sets(field.folder)
    given = sets, field.address, field.worker_token, ledger
    first, second = (make_worker(*given, field.folder / name) for name in ("first", "second"))
    first.announce()
    field.send(0, code_package(field.folder / "package"))
    held = first.board.claim_job(first.name)
    assert held is not None
    assert second.board.claim_job(second.name) is None
    again = first.board.claim_job(first.name)
    assert again is not None
    assert again["id"] == held["id"]
    assert again["lease"] != held["lease"]
    with pytest.raises(BoardRefusal) as refusal:
        first.board.report_progress(held["id"], held["lease"], "checks", 1)
    assert refusal.value.status == 409


def ended(field: Field, package: Path, team: int = 0) -> dict[str, Any]:
    """What became of a package that one worker took."""
    sets = write_sets(field.folder) if not (field.folder / "sets.yaml").exists() else field.folder / "sets.yaml"
    ledger = str(field.folder / "ledger.sqlite3")
    worker = make_worker(sets, field.address, field.worker_token, ledger, field.folder / "worker")
    worker.announce()
    job = field.send(team, package)
    assert worker.step()
    return field.teams[team].job(job)


def test_figures_of_an_onnx_model_are_released_on_their_grid(field: Field) -> None:
    job = ended(field, onnx_package(field.folder / "package"))
    assert job["state"] == "released", job
    rows = list(field.store.rows_of(field.store.submissions(board="field")[0].id))
    assert {(row.subset, row.metric) for row in rows} == {("HX1", "P@1"), ("HX1", "P@5"), ("HX1", "GSR")}
    for row in rows:
        step = 0.05
        assert row.value is not None
        assert abs(row.value / step - round(row.value / step)) < 1e-9
        assert row.seconds is None
        assert row.n == 24  # the set's public size, not how many were scored
    left = {path.name for path in (field.folder / "worker" / "jobs").rglob("*") if path.is_file()}
    assert left <= {"host.log"}


def test_a_model_that_returns_nan_is_told_so_and_nothing_of_what_it_said(field: Field) -> None:
    wrong = "float(np.nan if len(waveform) % 10 and len(waveform) > 2000 else 1)"
    source = CODE.replace("        count = max(", "        print('SECRET', waveform[:3])\n        count = max(")
    source = source.replace(".astype(np.float32)", f".astype(np.float32) * {wrong}")
    job = ended(field, code_package(field.folder / "package", source))
    assert job["state"] == "failed"
    assert job["message"] == "Your model returned NaN or infinity on 3 clips."
    assert not job["log"]
    assert "SECRET" in next((field.folder / "worker" / "jobs").rglob("host.log")).read_text("utf-8")


def test_a_package_that_is_not_fit_is_refused_with_everything_that_is_wrong(field: Field) -> None:
    make_worker(write_sets(field.folder), field.address, field.worker_token, str(field.folder / "ledger"),
                field.folder / "worker").announce()  # fmt: skip
    package = code_package(field.folder / "package")
    (package / "weights.pkl").write_bytes(b"\x80\x04N.")
    with pytest.raises(BoardRefusal, match="pickle"):
        field.send(0, package)


@pytest.mark.parametrize(
    "lie",
    [
        {"id": "../../../recordings"}, {"id": "/etc"}, {"id": ""}, {"digest": "0" * 63}, {"board": "another"},
        {"team": "a\x1bb"}, {"entry": "x" * 1000},
    ],
)  # fmt: skip
def test_a_board_that_lies_about_a_job_gets_nothing_done(field: Field, lie: dict[str, str]) -> None:
    sets = write_sets(field.folder)
    ledger = str(field.folder / "ledger.sqlite3")
    worker = make_worker(sets, field.address, field.worker_token, ledger, field.folder / "worker")
    there = sorted(field.folder.rglob("*"))
    told = {"id": "0" * 16, "lease": "word", "board": "field", "team": "ada", "entry": "e", "digest": "0" * 64} | lie
    worker.board = Liar(field.address, told)
    with pytest.raises(InputError, match="a job that is none"):
        worker.step()
    assert sorted(field.folder.rglob("*")) == there


class Liar(BoardClient):
    """The board in the hands of somebody else."""

    def __init__(self, address: str, job: dict[str, str]) -> None:
        super().__init__(address, "token")
        object.__setattr__(self, "told", job)

    def claim_job(self, worker: str) -> dict[str, Any]:
        return dict(self.told)  # type: ignore[attr-defined]


def test_a_release_that_the_board_will_never_take_holds_nothing_up(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets, ledger = write_sets(field.folder), str(field.folder / "ledger.sqlite3")
    worker = make_worker(sets, field.address, field.worker_token, ledger, field.folder / "worker")
    worker.announce()
    jobs = [
        field.send(team, code_package(field.folder / name, variant(7 * team + 1), system={"name": name}))
        for team, name in enumerate(("first", "second"))
    ]
    release = BoardClient.release_job

    def refuse(self: BoardClient, job: str, *given: Any) -> dict[str, Any]:
        if job == jobs[0]:
            raise BoardRefusal(422, "a name that no table may have")
        return release(self, job, *given)

    monkeypatch.setattr(BoardClient, "release_job", refuse)
    worker.run(0.1, until_empty=True)
    states = [field.teams[team].job(job)["state"] for team, job in enumerate(jobs)]
    assert states[1] == "released"
    assert states[0] != "released"
    assert worker.ledger.due() == []


def test_a_worker_stops_when_its_own_side_fails(field: Field) -> None:
    sets = write_sets(field.folder)
    worker = make_worker(sets, field.address, field.worker_token, str(field.folder / "l"), field.folder / "worker")
    worker.announce()
    jobs = [field.send(team, code_package(field.folder / f"p{team}", system={"name": f"m{team}"})) for team in (0, 1)]
    for file in (field.folder / "recordings").rglob("*.wav"):
        file.write_bytes(b"no sound")
    with pytest.raises(InputError, match="failed on the host's side"):
        worker.run(0.02, until_empty=True)
    states = {field.teams[team].job(job)["state"] for team, job in enumerate(jobs)}
    assert states == {"queued"}  # other tries are left for a host that has mended it


def test_what_the_board_did_not_hear_is_told_again_and_nothing_is_heard_twice(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = write_sets(field.folder)
    worker = make_worker(sets, field.address, field.worker_token, str(field.folder / "l"), field.folder / "worker")
    worker.announce()
    job = field.send(0, code_package(field.folder / "package", CODE.replace("np.log1p(", "np.nan * np.log1p(")))

    def lost(*given: Any, **more: Any) -> None:
        raise BoardRefusal(500, "the board is ill")

    with monkeypatch.context() as broken:
        broken.setattr(BoardClient, "fail_job", lost)
        with pytest.raises(BoardRefusal):
            worker.step()
    monkeypatch.setattr("earmark.blind.worker.rehearse", lost)  # it would be heard again
    assert worker.step()
    assert field.teams[0].job(job)["state"] == "failed"
    assert "rehearsal" in field.teams[0].job(job)["message"]


def test_what_the_owners_take_back_is_sent_until_the_board_has_done_it(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = write_sets(field.folder)
    worker = make_worker(sets, field.address, field.worker_token, str(field.folder / "l"), field.folder / "worker")
    worker.announce()
    job = field.send(0, code_package(field.folder / "package"))
    assert worker.step()
    (number,) = (entry.number for entry in worker.ledger.entries() if entry.kind == "release")
    worker.ledger.object_to(number, "an owner", "we did not agree to this")

    def refuse(*given: Any) -> None:
        raise BoardRefusal(404, "there is no such job")

    with monkeypatch.context() as broken:
        broken.setattr(BoardClient, "withdraw_release", refuse)
        for _ in range(2):
            with pytest.raises(BoardRefusal):
                worker.send_due()
    assert worker.send_due() == 1
    assert worker.ledger.due() == []
    assert field.teams[0].job(job)["state"] != "released"


@pytest.mark.parametrize(("every", "told"), [(300.0, [0, 0, 7, 7]), (0.0, [0, 0, 0, 0])])
def test_how_far_a_job_is_is_told_every_few_minutes(every: float, told: list[int]) -> None:
    job = Job("0" * 16, "word", "field", "ada", "e", "0" * 64)
    beat = _Beat(BoardClient("http://127.0.0.1:9"), job, threading.Event(), every)
    assert beat.shown(0.0) == ("checks", 0)
    beat.say("rehearsal")
    assert beat.shown(1.0) == ("rehearsal", 0)
    beat.say("listening")
    seen = []
    for done, now in ((0, 2.0), (3, 299.0), (7, 301.0), (9, 599.0)):
        beat.tick(done, 10)
        seen.append(beat.shown(now))
    assert seen == [("listening", tenths) for tenths in told]
