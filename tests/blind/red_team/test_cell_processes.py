"""A sealed cell is one process: it makes no other, sees no other, and leaves none behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.blind.red_team.cells import attempt, attempts, open_cell, sealed_cell, stopped

from earmark.isolation import CellOverdue

SECRET = b"what the owner has in memory"


@pytest.mark.parametrize("do", ["parent_memory", "parent_memory_by_call"])
def test_the_owners_memory_is_not_read(inside, outside, do):
    buffer = ctypes.create_string_buffer(SECRET)
    given = {"process": os.getpid(), "address": ctypes.addressof(buffer), "size": len(SECRET)}
    assert attempt(outside, do, **given)["got"] == SECRET.decode()
    assert stopped(attempt(inside, do, **given))
    assert stopped(attempt(inside, do, **{**given, "process": 1}))


def test_there_is_no_other_process_in_sight(inside, outside):
    numbers = [*range(1, 1000), os.getpid(), os.getppid()]
    assert {os.getpid(), os.getppid()} <= set(attempt(outside, "processes", numbers=numbers)["got"])
    assert attempt(inside, "processes", numbers=numbers)["got"][:2] == [1, 2]  # bubblewrap's first, and itself
    assert len(attempt(inside, "processes", numbers=numbers)["got"]) <= 5  # with its threads
    results = attempts(
        inside,
        {path: {"do": "read", "path": f"/proc/1/{path}"} for path in ("mem", "maps", "environ", "status", "stack")},
    )
    assert all(map(stopped, results.values())), results


def test_no_signal_reaches_the_owner(inside, outside):
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    try:
        for process in (os.getpid(), os.getppid(), -os.getpgrp()):
            assert stopped(attempt(inside, "send_signal", process=process, number=int(signal.SIGUSR1)))
        assert stopped(attempt(inside, "send_signal", process=1, number=int(signal.SIGUSR1)))
        attempt(inside, "send_signal", process=-1, number=int(signal.SIGUSR1))  # everybody that it can see
        assert not heard
        assert not stopped(attempt(outside, "send_signal", process=os.getpid(), number=int(signal.SIGUSR1)))
        time.sleep(0.05)
        assert heard
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_fork_bomb_does_not_make_one_process(inside, outside):
    assert attempt(outside, "fork_bomb")["got"] == 50
    assert attempt(inside, "fork_bomb")["stopped"] == "PermissionError"
    assert attempt(inside, "fork")["stopped"] == "PermissionError"


def test_a_bomb_of_threads_stays_within_the_limits(outside):
    assert attempt(outside, "threads", most=300)["got"] == 300
    with sealed_cell(memory=768 << 20) as cell:
        assert attempt(cell, "threads", most=300)["got"] < 150
        assert attempt(cell, "threads", most=4)["got"] == 4  # a few are allowed, and it goes on


def test_no_process_is_left_behind(outside, tmp_path):
    with open_cell() as cell:
        assert attempt(cell, "left_behind", file=str(tmp_path / "alive"))["got"] == "left"
    deadline, alive = time.monotonic() + 5.0, tmp_path / "alive"
    while not (alive.exists() and alive.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    survivor = int(alive.read_text())
    os.kill(survivor, signal.SIGKILL)  # it outlived its cell: what a sealed one must not allow
    with sealed_cell() as cell:
        for do in ("left_behind", "spawn", "new_session"):
            given = {"file": "/tmp/alive"} if do == "left_behind" else {}
            assert attempt(cell, do, **given)["stopped"] == "PermissionError"


def test_it_cannot_become_another_program(inside):
    assert attempt(inside, "replace")["stopped"] == "PermissionError"


def test_nothing_remains_of_a_cell_that_was_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = _family(os.getpid())
    cell = sealed_cell()
    attempt(cell, "environment")
    inner = _family(os.getpid()) - before
    assert len(inner) == 3  # bubblewrap, its first process inside, and Python
    with pytest.raises(CellOverdue):
        attempt(cell, "sleep", 0.3)
    assert not [pid for pid in inner if Path(f"/proc/{pid}").exists()]  # not even as a zombie
    assert _family(os.getpid()) == before
    assert not list(tmp_path.iterdir())


def test_a_cell_ends_with_its_owner(tmp_path):
    """The owner is killed in the middle of a call: what is inside dies too."""
    script = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "from tests.blind.red_team.cells import attempt, sealed_cell\n"
        "cell = sealed_cell(); attempt(cell, 'environment'); print('ready', flush=True)\n"
        "attempt(cell, 'sleep', 100)\n"
    )
    root = str(Path(__file__).parents[3])
    with subprocess.Popen([sys.executable, "-c", script, root], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        inner = _family(owner.pid) - {owner.pid}
        assert len(inner) == 3
        owner.kill()
    deadline = time.monotonic() + 5.0
    while (left := [pid for pid in inner if _is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left


def _children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def _family(pid: int) -> set[int]:
    found, waiting = set(), [pid]
    while waiting:
        children = _children(waiting.pop())
        found |= set(children)
        waiting += children
    return found


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
