"""What comes out of a sealed cell is checked before it is read: whatever it sends costs it, and not its owner."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from tests.blind.red_team.cells import attempt, growth, sealed_cell
from tests.blind.red_team.replies import FRAMES

from earmark.isolation import BadMessage, CellDied, CellFailure, CellOverdue, Message, array_of
from earmark.isolation._messages import read_message

ARRAYS = ("wrong length", "huge shape", "negative shape", "deep shape", "no shape", "object array", "unknown kind",
          "no array")  # fmt: skip


def ask(cell, kind, seconds=20.0, most=1_000_000):
    return cell.call(Message({"do": "reply", "kind": kind}), seconds, most)


@pytest.mark.parametrize("kind", FRAMES)
def test_what_is_no_message_is_not_read(kind):
    with pytest.raises(BadMessage):
        read_message(io.BytesIO(FRAMES[kind]), 1_000_000)


@pytest.mark.parametrize("kind", ["noise", "deep", "huge"])
def test_a_cell_that_sends_no_message_is_ended_and_its_owner_does_not_grow(kind):
    with sealed_cell() as cell, growth() as grown:
        with pytest.raises(BadMessage):
            ask(cell, kind)
        assert not cell.alive
        assert grown() < 100_000


def test_arrays_that_lie_are_not_made(inside):
    for kind in ARRAYS:
        with pytest.raises(BadMessage, match="not what the message says"):
            array_of(ask(inside, kind))


def test_values_that_are_no_numbers_arrive_as_such_for_the_owner_to_see(inside):
    assert np.isnan(array_of(ask(inside, "not finite"))[0])


def test_a_message_that_breaks_off_is_none():
    with sealed_cell() as cell, pytest.raises(CellDied):
        ask(cell, "cut")


def test_an_answer_that_drips_is_overdue():
    with sealed_cell() as cell:
        started = time.monotonic()
        attempt(cell, "environment")
        with pytest.raises(CellOverdue):
            ask(cell, "drip", seconds=0.5)
        assert time.monotonic() - started < 10.0


def test_a_closed_pipe_ends_the_wait():
    with sealed_cell() as cell:
        attempt(cell, "environment")
        with pytest.raises((CellDied, CellOverdue)):
            ask(cell, "closing", seconds=0.5)


def test_bytes_that_nobody_asked_for_end_the_cell():
    with sealed_cell() as cell:
        assert ask(cell, "later").head == {"first": True}
        time.sleep(0.3)
        with pytest.raises(BadMessage, match="not asked for"):
            attempt(cell, "environment")
        assert "got" in attempt(cell, "environment")  # by a new process: the forged answer is gone


def test_two_answers_to_one_question_end_the_cell():
    with sealed_cell() as cell:
        try:
            assert ask(cell, "twice").head == {"forged": True}  # one answer, its own; the other is left over
        except BadMessage:
            pass
        else:
            time.sleep(0.1)
            with pytest.raises(BadMessage, match="not asked for"):
                attempt(cell, "environment")
        assert "got" in attempt(cell, "environment")


def test_a_cell_that_does_not_read_does_not_hold_its_owner():
    with sealed_cell() as cell:
        attempt(cell, "environment")
        cell.call(Message({"do": "several", "attempts": {"x": {"do": "stop_later"}}}), 5.0)
        started = time.monotonic()
        with pytest.raises(CellOverdue):
            cell.call(Message({"do": "environment"}, (bytes(64 << 20),)), 0.5)
        assert time.monotonic() - started < 10.0


def test_words_of_a_stranger_cannot_move_a_cursor(inside):
    with pytest.raises(CellFailure) as told:
        ask(inside, "words")
    assert "clip" in str(told.value)
    assert str(told.value).isprintable()
    str(told.value).encode()
