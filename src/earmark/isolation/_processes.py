"""Small tools for owners of processes: a limit on time, a pipe, and how a process ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import IO, Any


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


class Timed:
    """One end of a pipe, read or written until a moment; TimeoutError after it, also where bytes drip on."""

    def __init__(self, stream: IO[bytes], deadline: float) -> None:
        self._stream: Any = stream  # without a buffer: it answers None where it would have to wait
        self._deadline = deadline
        os.set_blocking(stream.fileno(), False)

    def readinto(self, buffer: memoryview) -> int:
        self._check()
        while (count := self._stream.readinto(buffer)) is None:
            self._wait(select.POLLIN)
        return int(count)

    def write(self, data: memoryview) -> int:
        self._check()
        while (count := self._stream.write(data)) is None:
            self._wait(select.POLLOUT)
        return int(count)

    def flush(self) -> None:
        """There is no buffer."""

    def _check(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeoutError

    def _wait(self, event: int) -> None:
        self._check()
        poll = select.poll()
        poll.register(self._stream, event)
        poll.poll(1000.0 * max(self._deadline - time.monotonic(), 0.0))


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
