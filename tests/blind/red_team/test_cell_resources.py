"""What a sealed cell uses is limited, and reaching a limit costs that cell and nobody else."""

from __future__ import annotations

import time

import pytest
from tests.blind.red_team.cells import attempt, growth, sealed_cell

from earmark.isolation import CellDied, CellOverdue, Limits

MIB = 1 << 20


@pytest.mark.parametrize("do", ["allocate", "allocate_pieces"])
def test_fifty_gigabytes_are_not_had(do):
    with sealed_cell(memory=512 * MIB) as cell:
        assert attempt(cell, do, size=50 * 10**9)["stopped"] == "MemoryError"
        assert attempt(cell, "allocate", size=MIB)["got"] == MIB  # and the cell goes on
        peak = int(attempt(cell, "read_all", path="/proc/self/status")["got"].split("VmPeak:")[1].split()[0])
        assert peak <= 512 * 1024


def test_an_endless_loop_ends_with_its_processor_time():
    with sealed_cell(cpu_seconds=1) as cell:
        started = time.monotonic()
        with pytest.raises(CellDied, match="SIGKILL"):  # the first signal was ignored
            attempt(cell, "loop", 60.0)
        assert time.monotonic() - started < 30.0


@pytest.mark.parametrize("do", ["loop", "sleep", "stop"])
def test_whoever_does_not_answer_is_ended(do):
    with sealed_cell() as cell:
        attempt(cell, "environment")
        started = time.monotonic()
        with pytest.raises(CellOverdue, match=r"longer than 0\.3 s"):
            attempt(cell, do, 0.3)
        assert time.monotonic() - started < 10.0


def test_a_full_disk_is_its_own(tmp_path):
    with sealed_cell(scratch=8 * MIB, file_bytes=64 * MIB) as cell:
        for folder in ("/tmp", "/dev/shm"):
            assert -8 * MIB <= attempt(cell, "fill", folder=folder, size=1 << 40)["got"] < 0  # full
        for folder in ("/", "/dev", "/usr/lib"):
            assert "stopped" in attempt(cell, "fill", folder=folder, size=1 << 40)


def test_a_file_is_not_longer_than_allowed():
    with sealed_cell(scratch=64 * MIB, file_bytes=2 * MIB) as cell:
        assert attempt(cell, "long_file", path="/tmp/long", size=2 * MIB)["got"] == 2 * MIB
        assert attempt(cell, "long_file", path="/tmp/long", size=2 * MIB + 1)["stopped"] == "OSError"


def test_open_files_are_counted():
    with sealed_cell(files=32) as cell:
        assert attempt(cell, "open_files", most=1000)["got"] < 32


def test_a_crash_costs_the_cell_and_leaves_no_dump(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with sealed_cell() as cell:
        with pytest.raises(CellDied, match="SIGSEGV"):
            attempt(cell, "crash")
        assert attempt(cell, "allocate", size=MIB)["got"] == MIB  # by a new process
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "size"), [(1, 10 * 10**9), (2, 10**9)], ids=["standard output", "standard error"])
def test_ten_gigabytes_of_printing_are_read_and_dropped(number, size):
    with sealed_cell(printed=10_000) as cell:
        attempt(cell, "print_much", number=number, size=MIB)
        started = time.monotonic()
        with growth() as grown:
            assert attempt(cell, "print_much", 120.0, number=number, size=size)["got"] == size
            assert grown() < 20_000
        assert time.monotonic() - started < 60.0
        assert len(cell.printed) < 10_100
        assert cell.printed.startswith("clipclip")
        assert cell.printed.endswith("[more was printed]")


def test_limits_that_are_none_are_refused():
    from earmark.errors import UsageError

    for name, value in (("memory", 0), ("memory", 1.5), ("files", -1), ("threads", True), ("cpu_seconds", 1 << 80)):
        with pytest.raises(UsageError, match=f"The limit {name} of a sealed cell"):
            Limits(**{name: value})
