"""SIGTERM ends a server within ten seconds, whatever it is doing; a flood of costly checks delays nobody."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.board.hosted import document
from tests.board.serving import serving

ROOT = Path(__file__).parents[2]

BUSY = """
from earmark.board.pages.boards import Reader

def endless(self, *_, **__):
    while True:  # a page that takes for ever
        sum(range(1000))

Reader.boards = endless
"""


@contextlib.contextmanager
def busy_server(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server whose front page is never finished, in every process."""
    (folder / "sitecustomize.py").write_text(BUSY)
    command = [sys.executable, "-m", "earmark", "serve", "--empty", "--port", "0", "--data", str(folder), *options]
    path = os.pathsep.join([str(folder), *sys.path])
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "PYTHONPATH": path}
        )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def children(of: int) -> set[int]:
    """The processes that a process has started, and theirs."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    there, new = set[int](), {of}
    while new:
        new = {process for process, parent in parents.items() if parent in new} - there
        there |= new
    return there


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_ends_a_server_that_is_busy_in_every_way(tmp_path: Path, workers: int) -> None:
    with busy_server(tmp_path, "--workers", str(workers)) as (process, address):
        place, answers = urlsplit(address), list[int]()

        def ask() -> None:
            with contextlib.suppress(httpx.HTTPError):
                answers.append(httpx.get(f"{address}/", timeout=60).status_code)

        def up() -> bool:
            try:
                return httpx.get(f"{address}/healthz", timeout=5).status_code == 200
            except httpx.HTTPError:
                return False

        while not up():
            time.sleep(0.1)
        checked = httpx.post(
            f"{address}/v1/submissions/validate", content=document().to_bytes(),
            headers={"Content-Type": "application/json"}, timeout=60,
        )  # fmt: skip
        assert checked.status_code == 200
        readers = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
        for reader in readers:
            reader.start()
        with socket.create_connection((place.hostname or "", place.port or 0)) as upload:
            upload.sendall(
                b"POST /v1/submissions/validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: 900000\r\n\r\n["
            )
            time.sleep(1.0)
            helpers = children(process.pid)
            assert helpers  # readers of documents at least
            assert answers == []
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
            took = time.monotonic() - began
    print(f"stopped after {took:.1f} s")
    assert took < 10
    assert code == 0
    ends = time.monotonic() + 5
    while (left := {helper for helper in helpers if _is_alive(helper)}) and time.monotonic() < ends:
        time.sleep(0.1)
    assert not left


def _is_alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_server_with_nothing_to_do_stops_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, "--empty") as server:
        assert httpx.get(f"{server.address}/healthz").status_code == 200
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 8


def test_a_flood_of_costly_checks_does_not_delay_a_submission(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import board_flood
    finally:
        sys.path.pop(0)
    with serving(tmp_path, "--empty") as server:
        flood = board_flood.measure(server.address, server.token(), 5.0)
        server.stop()
    print("\n".join(flood.lines()), os.getloadavg())
    # Under a second on a machine of its own; others may have all of this one's processors.
    assert max(flood.flooded + flood.at_once) < max(5.0, 5 * max(flood.alone))
    assert flood.answers.keys() <= {200, 422, 429, 503}
    assert flood.answers[200] > 0
