"""The one progress bar: silent for short work, a bar on a terminal, lines in a log file."""

from __future__ import annotations

import io
import re

import pytest

from earmark import progress
from earmark.progress import progress_bar, tracked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    return stream


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch)
    assert list(tracked([1, 2, 3], "work", "clip", progress=True)) == [1, 2, 3]
    assert not stderr.getvalue().strip()


def test_long_work_shows_a_bar_on_a_terminal_and_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 1e-9)
    with progress_bar(True, 4, "work", "clip") as tick:
        _later(tick, 60.0)
        tick(note="stage")
    assert re.search(r"work:\s+25%.* 01:00 so far.*stage", stderr.getvalue())
    assert not stderr.getvalue().rsplit("\r", 2)[-1].strip()


def test_a_log_file_gets_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 1e-9)
    with progress_bar(True, 4, "work", "clip") as bar:
        _later(bar, 60.0)
        bar.reach(2)
    assert capsys.readouterr().err.startswith("work: 50 %, ")
    with progress_bar(True, None, "backup", "rows") as bar:
        _later(bar, 60.0)
        bar(7)
    assert "7" in capsys.readouterr().err


def _later(bar: progress.Bar, seconds: float) -> None:
    """As if the bar had begun so many seconds ago."""
    inner = next(cell.cell_contents for cell in bar._show.__closure__ or () if hasattr(cell.cell_contents, "start_t"))
    inner.start_t -= seconds
    inner.last_print_t -= seconds


def test_a_function_is_called_with_done_and_total_and_silence_calls_nothing() -> None:
    calls: list[tuple[int, int]] = []
    with progress_bar(lambda done, total: calls.append((done, total)), 5, "work") as bar:
        bar(2)
        bar.reach(5)
    assert calls == [(2, 5), (5, 5)]
    with progress_bar(False, 5, "work") as bar:
        bar()
    assert bar.done == 1
