"""Small tools for owners of processes: a limit on time, a pipe, and how a process ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import IO


@contextlib.contextmanager
def kill_after(
    process: subprocess.Popen[bytes], seconds: float | None, end: Callable[[], None] | None = None
) -> Iterator[threading.Event]:
    """A process that is busy for longer than allowed is killed, or ended by `end`, which ends the wait for it; the
    event says so."""
    overdue = threading.Event()

    def ring() -> None:
        overdue.set()
        (end or (lambda: kill(process)))()

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


def pipe_with(data: bytes) -> int:
    """A descriptor from which the data can be read to their end."""
    if len(data) < 60_000:
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as stream:
            stream.write(data)
        return reading
    with tempfile.TemporaryFile() as file:  # more than a pipe holds would wait for a reader that does not run yet
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


def ending(code: int | None) -> str:
    """How a process ended; bubblewrap gives 128 and the signal for one that was killed inside."""
    if code is None:
        return "it could not be started"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-code if code < 0 else code - 128).name}"
    return f"exit code {code}"
