"""Small tools for owners of processes: a limit on time, a pipe, and how a process ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def kill_after(process: subprocess.Popen[bytes], seconds: float | None) -> Iterator[threading.Event]:
    """A process that is busy for longer than allowed is killed, which ends the wait for it; the event says so."""
    overdue = threading.Event()

    def ring() -> None:
        overdue.set()
        kill(process)

    timer = threading.Timer(seconds or 0.0, ring)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield overdue
    finally:
        timer.cancel()


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, and where it leads a session of its own all that it started."""
    with contextlib.suppress(OSError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        process.kill()


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    """A pipe of a process that was started with pipes."""
    assert stream is not None
    return stream


def ending(code: int | None) -> str:
    """How a process ended; bubblewrap gives 128 and the signal for one that was killed inside."""
    if code is None:
        return "it could not be started"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-code if code < 0 else code - 128).name}"
    return f"exit code {code}"
