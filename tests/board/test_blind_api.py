"""Blind evaluation through the API, over a real connection and with the client that workers and participants use."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.board.blind_jobs import POLICY, archive, facts, figures
from tests.board.hosted import listening

from earmark.board.storage import Store
from earmark.board.web import uploads
from earmark.submissions.client import BoardClient, BoardRefusal

SETS = [{"subset": "field", "title": "Field", "clips": 600, "classes": 30}]
TERMS = {"digest": POLICY, "text": "# Policy", "quota": 100, "entries": 100, "owners": "the community"}


class Sides:
    """A board that listens, a participant and a worker."""

    def __init__(self, address: str, store: Store, folder: Path) -> None:
        self.address, self.store, self.folder = address, store, folder
        self.packages = folder / "blind-packages"
        self.token, _ = store.create_token(store.create_user("ada"), "test")
        worker, _ = store.create_token(store.create_user("lab", role="worker"), "test")
        self.ada = BoardClient(address, self.token, patience=0)
        self.lab = BoardClient(address, worker, patience=0)
        self.lab.announce_sets("mine", SETS, TERMS)

    def file(self, entry: str = "tiny", **parts: str) -> Path:
        path = self.folder / f"{entry}.zip"
        path.write_bytes(archive(entry, **parts))
        return path

    def post(self, data: bytes, **more: Any) -> httpx.Response:
        """A form that a program sends."""
        headers = {"Authorization": f"Bearer {self.token}"}
        files = {"package": ("package.zip", data, "application/zip")}
        return httpx.post(f"{self.address}/v1/blind/jobs", headers=headers, files=files, data={"board": "mine", **more})


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("board")
    with listening(folder, blind=True, max_package=3_000_000) as (address, store):
        yield Sides(address, store, folder)


def test_a_package_from_the_participant_to_the_board(sides: Sides, tmp_path: Path) -> None:
    path = sides.file("whole")
    job = sides.ada.send_package(path, "mine")
    assert (job["state"], job["place"], job["sentence"]) == ("queued", 1, "Queued as first.")
    assert job["created"].endswith(":00Z")  # to the minute
    assert sides.ada.send_package(path, "mine")["id"] == job["id"]
    assert [one["id"] for one in sides.ada.jobs()] == [one["id"] for one in sides.lab.jobs()] == [job["id"]]
    claimed = sides.lab.claim_job("one")
    assert claimed is not None
    id, lease = claimed["id"], claimed["lease"]
    assert (claimed["team"], claimed["entry"], claimed["kind"]) == ("user ada", "whole", "code")
    sides.lab.fetch_package(id, lease, tmp_path / "got.zip", claimed["digest"])
    assert (tmp_path / "got.zip").read_bytes() == path.read_bytes()
    sides.lab.report_progress(id, lease, "listening", 4)
    assert sides.ada.job(id)["sentence"] == "Running: listening to the blind recordings, 40 %."
    sides.lab.hold_job(id, lease, "The figures leave at the next quarter of an hour.")
    assert len(list(sides.packages.iterdir())) == 1
    document = json.loads(figures("whole", subsets=("field",)).to_bytes())
    released = sides.lab.release_job(id, facts(), document)
    assert sides.lab.release_job(id, facts(), document) == released
    done = sides.ada.job(id)
    assert (done["state"], done["release"]) == ("released", released["page"])
    assert list(sides.packages.iterdir()) == []  # it is not needed any more
    rows = httpx.get(f"{sides.address}/v1/boards/mine/scores").json()["items"]
    assert {row["provenance"] for row in rows} == {"blind"}
    assert [one["system"] for one in httpx.get(f"{sides.address}/v1/blind/releases").json()["items"]] == ["whole"]
    assert sides.lab.claim_job("one") is None
    sides.lab.withdraw_release(id, "the owners object.")
    assert httpx.get(f"{sides.address}/v1/boards/mine/scores").json()["items"] == []


def test_a_worker_that_lost_its_lease_is_told(sides: Sides) -> None:
    sides.ada.send_package(sides.file("lost"), "mine")
    first, second = sides.lab.claim_job("one"), sides.lab.claim_job("one")
    assert first is not None
    assert second is not None
    assert first["id"] == second["id"]
    with pytest.raises(BoardRefusal) as refusal:
        sides.lab.report_progress(first["id"], first["lease"], "checks", 0)
    assert refusal.value.status == 409
    with pytest.raises(BoardRefusal) as refusal:
        sides.lab.fetch_package(first["id"], first["lease"], sides.folder / "none.zip", "")
    assert refusal.value.status == 409
    assert not (sides.folder / "none.zip").exists()
    sides.ada.withdraw_job(first["id"])
    with pytest.raises(BoardRefusal) as refusal:
        sides.lab.report_progress(second["id"], second["lease"], "checks", 0)
    assert refusal.value.status == 410


def test_what_is_wrong_with_a_package_is_said_at_once_and_in_full(sides: Sides) -> None:
    path = sides.file("bad", **{"submission.yaml": "format: 1\nkind: kode\nmodle: x\n"})
    with pytest.raises(BoardRefusal) as refusal:
        sides.ada.send_package(path, "mine")
    assert refusal.value.status == 422
    assert len(refusal.value.problems) > 1
    assert any("modle" in problem.message for problem in refusal.value.problems)
    assert list(sides.packages.iterdir()) == []
    assert sides.post(b"no archive").status_code == 422


def test_a_package_that_is_too_large_is_refused_and_leaves_nothing(sides: Sides) -> None:
    for size in (3_050_000, 4_000_000):  # over the limit of the package, over that of the body
        answer = sides.post(b"x" * size)
        assert answer.status_code == 413, answer.text
        assert "larger than 3 MB" in answer.json()["detail"]
    assert list(sides.packages.iterdir()) == []


def test_forms_that_are_none(sides: Sides) -> None:
    address, headers = f"{sides.address}/v1/blind/jobs", {"Authorization": f"Bearer {sides.token}"}
    assert httpx.post(address, headers=headers, json={}).status_code == 415
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    for body in (b"", b"--b\r\n", b"--b--\r\n", b"nothing", b'--b\r\nContent-Disposition: form-data; name="package"'):
        answer = httpx.post(address, headers={**headers, **kind}, content=body)
        assert answer.status_code in (400, 422), answer.text
    whole = httpx.Request(
        "POST", address, headers=headers, data={"board": "mine"}, files={"package": ("p.zip", archive("cut"))}
    )
    kind = {"Content-Type": whole.headers["Content-Type"]}
    cut = httpx.post(address, headers={**headers, **kind}, content=whole.read()[:-50])
    assert (cut.status_code, "ended early" in cut.text) == (400, True)
    assert sides.post(archive(), board="elsewhere").status_code == 404
    no_board = httpx.post(address, headers=headers, files={"package": ("p.zip", archive())})
    assert "does not name the board" in no_board.text
    assert list(sides.packages.iterdir()) == []


def test_who_may_do_what(sides: Sides) -> None:
    address = f"{sides.address}/v1/blind"
    assert httpx.post(f"{address}/jobs", files={"package": b"x"}).status_code == 401
    assert httpx.get(f"{address}/jobs").status_code == 401
    participant = {"Authorization": f"Bearer {sides.token}"}
    assert httpx.post(f"{address}/jobs/claim", headers=participant, json={"worker": "x"}).status_code == 403
    assert httpx.put(f"{address}/sets", headers=participant, json={}).status_code in (403, 422)
    zoe, _ = sides.store.create_token(sides.store.create_user("zoe"), "test")
    job = sides.ada.send_package(sides.file("mine"), "mine")["id"]
    stranger = BoardClient(sides.address, zoe, patience=0)
    for call in (stranger.job, stranger.withdraw_job):
        with pytest.raises(BoardRefusal, match="404"):
            call(job)
    assert stranger.jobs() == []


def test_uploads_at_the_same_time(sides: Sides) -> None:
    """The same package from four connections at once is one job; nothing is left of the others, and who waits for a
    turn gets it."""
    path, found = sides.file("twice"), []
    patient = BoardClient(sides.address, sides.token, patience=30)
    threads = [
        threading.Thread(target=lambda: found.append(patient.send_package(path, "mine")["id"])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    unfinished = {job["id"] for job in sides.lab.jobs()}
    assert {path.stem for path in sides.packages.iterdir()} == unfinished


class Slow:
    """An upload whose body goes on for as long as the test likes, without a length."""

    def __init__(self, sides: Sides) -> None:
        self.connection = http.client.HTTPConnection(sides.address.removeprefix("http://"), timeout=30)
        self.connection.putrequest("POST", "/v1/blind/jobs")
        self.connection.putheader("Authorization", f"Bearer {sides.token}")
        self.connection.putheader("Content-Type", "multipart/form-data; boundary=b")
        self.connection.putheader("Transfer-Encoding", "chunked")
        self.connection.endheaders()
        self.send(b'--b\r\nContent-Disposition: form-data; name="board"\r\n\r\nmine\r\n')
        self.send(b'--b\r\nContent-Disposition: form-data; name="package"; filename="p.zip"\r\n\r\nPK')

    def send(self, data: bytes) -> None:
        self.connection.send(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self) -> tuple[int, str]:
        self.connection.send(b"0\r\n\r\n")
        return self.told()

    def told(self) -> tuple[int, str]:
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode()


def test_one_participant_does_not_take_all_turns(sides: Sides) -> None:
    held = [Slow(sides), Slow(sides)]
    until = time.monotonic() + 20
    while len(list(sides.packages.glob("*.part"))) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    third = sides.post(archive("third"))
    assert (third.status_code, third.headers["Retry-After"]) == (429, "10")
    assert "2 packages of the user ada arrive at this moment" in third.text
    eve, _ = sides.store.create_token(sides.store.create_user("eve"), "test")
    others = BoardClient(sides.address, eve, patience=0).send_package(sides.file("of eve"), "mine")
    assert others["state"] == "queued"
    for each in held:
        assert each.answer()[0] == 400  # cut off, and the turn is given back
    assert sides.post(archive("third")).status_code == 201
    assert not list(sides.packages.glob("*.part"))


@pytest.mark.parametrize(("name", "value"), [("_LEAST_RATE", 10**9), ("_FAIR_RATE", 10**12)])
def test_an_upload_that_drips_is_ended(sides: Sides, monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    """By its rate since the beginning, and by a time for the whole; a byte now and then keeps nothing open."""
    monkeypatch.setattr(uploads, "_GRACE_SECONDS", 0.2)
    monkeypatch.setattr(uploads, "_LEAST_RATE", 0)
    monkeypatch.setattr(uploads, name, value)
    monkeypatch.setattr(uploads, "DRAINING_SECONDS", 0.1)
    drip, until = Slow(sides), time.monotonic() + 20
    with contextlib.suppress(OSError):
        while not select.select([drip.connection.sock], [], [], 0.05)[0] and time.monotonic() < until:
            drip.send(b"x")
    status, text = drip.told()
    assert (status, "The upload is too slow" in text) == (408, True)
    assert not list(sides.packages.glob("*.part"))


def test_what_is_told_of_jobs_is_kept_by_nobody(sides: Sides) -> None:
    job = sides.ada.send_package(sides.file("private"), "mine")["id"]
    headers = {"Authorization": f"Bearer {sides.token}"}
    for path in ("/jobs", f"/jobs/{job}", "/jobs/none"):
        answer = httpx.get(f"{sides.address}/v1/blind{path}", headers=headers)
        assert answer.headers["Cache-Control"] == "no-store", path
    assert httpx.get(f"{sides.address}/v1/blind/jobs").headers["Cache-Control"] == "no-store"  # 401


def test_a_board_without_blind_evaluation_says_so(tmp_path: Path) -> None:
    with listening(tmp_path) as (address, store):
        token, _ = store.create_token(store.create_user("ada"), "test")
        with pytest.raises(BoardRefusal, match="Blind evaluation is off"):
            BoardClient(address, token, patience=0).send_package(tmp_path / "none.zip", "mine")


def test_a_card_that_no_release_could_carry_is_refused_before_anything_is_measured(sides: Sides) -> None:
    manifest = (
        "format: 1\nkind: code\nmodel: extractor.py:Tiny\nrate: 16000\npooling: mean_time\ndistance: cosine\n"
        'system: {name: odd, url: "javascript:alert(1)"}\n'
    )
    with pytest.raises(BoardRefusal) as refusal:
        sides.ada.send_package(sides.file("odd", **{"submission.yaml": manifest}), "mine")
    assert refusal.value.status == 422
    assert "no address of the web" in str(refusal.value)


def test_a_disk_that_fills_up_keeps_room_for_the_database(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    from earmark.board import packages

    monkeypatch.setattr(packages, "_ROOM", 10**18)
    answer = sides.post(archive("no room"))
    assert (answer.status_code, "no room for packages" in answer.text) == (503, True)


def test_times_say_little(sides: Sides) -> None:
    (board,) = httpx.get(f"{sides.address}/v1/blind/boards").json()["items"]
    assert board["seen"].endswith(":00Z")
