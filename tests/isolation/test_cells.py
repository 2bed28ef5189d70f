"""A cell answers within its bounds and its time, and whatever it does costs one answer."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from earmark.isolation import (
    Bounds,
    Cell,
    CellDied,
    CellFailure,
    CellOverdue,
    Message,
    array_of,
    arrays_message,
    support,
)
from earmark.isolation._messages import BadMessage

FUNCTION = "tests.isolation.inside:answer"
needs_bubblewrap = pytest.mark.skipif(
    support().level != "full", reason="bubblewrap is not here: scripts/services install"
)
ROOT = str(Path(__file__).parents[2])


@pytest.fixture(params=[True, False], ids=["confined", "unconfined"])
def cell(request):
    if request.param and support().level != "full":
        pytest.skip("bubblewrap is not here: scripts/services install")
    with Cell(FUNCTION, Bounds(readable=(ROOT,)), confined=request.param) as cell:
        yield cell


def ask(cell: Cell, task: str, seconds: float = 20.0, **values: object) -> Message:
    return cell.call(Message({"do": task, **values}), seconds)


def test_arrays_come_back_as_they_went(cell):
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([True, False]), np.array([[1, -2]], np.int64)]
    reply = cell.call(arrays_message({"do": "echo"}, arrays, b"bytes"), 20.0)
    for number, array in enumerate(arrays):
        assert array_of(reply, number).dtype == array.dtype
        np.testing.assert_array_equal(array_of(reply, number), array)
    assert reply.blobs[3] == b"bytes"


def test_an_error_is_told_and_the_cell_goes_on(cell):
    with pytest.raises(CellFailure, match="no such thing") as told:
        ask(cell, "raise", text="no such thing")
    assert told.value.kind == "KeyError"
    with pytest.raises(CellFailure) as told:
        ask(cell, "exit")
    assert told.value.kind == "Ended"
    assert ask(cell, "count").head["count"] == 3  # the same process


def test_a_process_that_ends_costs_one_answer(cell):
    with pytest.raises(CellDied, match="exit code 7"):
        ask(cell, "end", code=7)
    with pytest.raises(CellDied, match="SIGSEGV"):
        ask(cell, "crash")
    assert ask(cell, "count").head["count"] == 1  # another process


def test_a_hang_is_ended_in_time(cell):
    ask(cell, "count")
    started = time.monotonic()
    with pytest.raises(CellOverdue, match=r"longer than 0\.5 s"):
        ask(cell, "sleep", 0.5)
    assert time.monotonic() - started < 10.0
    assert ask(cell, "count").head["count"] == 1


def test_what_is_printed_is_kept_apart(cell, capfd):
    assert ask(cell, "print", text="a line").head["done"]
    with pytest.raises(CellDied, match="it printed: last words"):
        ask(cell, "end", code=1, text="last words")
    assert capfd.readouterr() == ("", "")


def test_nonsense_on_the_pipe_is_no_answer(cell):
    with pytest.raises((BadMessage, CellDied)):
        ask(cell, "nonsense")
    assert ask(cell, "count").head["count"] == 1


def test_an_answer_is_not_longer_than_asked_for(cell):
    with pytest.raises(BadMessage, match="too long"):
        cell.call(Message({"do": "flood"}), 20.0, most=1000)


def test_the_environment_has_no_secrets(cell, monkeypatch):
    monkeypatch.setenv("EARMARK_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "secret" not in ask(cell, "environment").head["values"]


@needs_bubblewrap
def test_a_confined_cell_sees_no_network_no_process_and_no_file_of_others(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with Cell(FUNCTION, Bounds(readable=(ROOT,))) as cell:
        seen = ask(cell, "look", file=str(secret), process=os.getpid()).head
        assert seen == {"file": False, "process": False, "network": False, "home": False}
        assert not ask(cell, "write", file=str(Path(ROOT) / "x.txt")).head["written"]
    with Cell(FUNCTION, Bounds(readable=(ROOT, str(tmp_path)))) as cell:
        assert ask(cell, "look", file=str(secret), process=os.getpid()).head["file"]
    covered = Bounds(readable=(ROOT, str(tmp_path)), hidden=(str(secret),))
    with Cell(FUNCTION, covered) as cell, pytest.raises(CellFailure, match="Permission denied"):
        ask(cell, "read", file=str(secret))


@needs_bubblewrap
def test_settings_of_the_kernel_cannot_be_written_also_by_root():
    """Without capabilities root may still write to /proc/sys; a cell's own view of it is read only."""
    given = {"path": "/proc/sys/vm/swappiness"}
    with Cell("tests.blind.red_team.attempts:answer", Bounds(readable=(ROOT,))) as cell:
        assert ask(cell, "read", **given).head["results"]["read"]["got"]
        assert "stopped" in ask(cell, "write_back", **given).head["results"]["write_back"]


@needs_bubblewrap
def test_hidden_folders_are_covered_and_readable_ones_inside_are_seen(tmp_path):
    for name in ("clips/a.wav", "clips/weights/w.bin", "code/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("there")
    bounds = Bounds(
        readable=(ROOT, str(tmp_path), str(tmp_path / "clips/weights")), hidden=(str(tmp_path / "clips/a.wav"),)
    )
    with Cell(FUNCTION, bounds) as cell:
        there = [ask(cell, "look", file=str(tmp_path / name), process=0).head["file"] for name in
                 ("clips/a.wav", "clips/weights/w.bin", "code/c.py")]  # fmt: skip
    assert there == [False, True, True]


def test_without_bubblewrap_the_reason_says_what_could_not_be_excluded(monkeypatch):
    monkeypatch.setenv("PATH", "")
    support.cache_clear()
    try:
        level, reason = support()
    finally:
        support.cache_clear()
    assert level == "partial"
    assert "apt-get install bubblewrap" in reason
    assert "could not be excluded" in reason
