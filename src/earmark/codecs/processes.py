"""Worker processes for work that may hold the interpreter lock or take the interpreter down with it.

PESQ and Praat keep the lock while they run, so threads would wait for one another, and a C library that crashes on one
clip must not end the run. Each worker is a Python of its own that reads tasks from its standard input and answers on
its standard output; one that dies costs the task it was given, with the reason, and is replaced. Workers do not import
the caller's main script, and end when their caller does.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any, Self, TypeVar

from earmark.errors import EarmarkError, InputError

__all__ = ["Died", "Processes", "serve"]

Task = TypeVar("Task")
Answer = TypeVar("Answer")

_SIZE = struct.Struct("<Q")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_START = "from earmark.codecs.processes import serve; serve()"


class Died(InputError):
    """A worker process ended while it was busy with a task."""


class Processes:
    """A few worker processes that call one function: `call` may be used from as many threads as there are workers."""

    def __init__(self, work: Callable[[Any], Any], jobs: int) -> None:
        self._work, self._jobs = work, jobs
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes] | None] = queue.SimpleQueue()
        self._all: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        for _ in range(self._jobs):
            self._idle.put(None)  # started when it is first needed
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        with self._lock:
            for process in self._all:
                process.kill()
            for process in self._all:
                process.wait()
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        with contextlib.suppress(OSError):
                            pipe.close()

    def call(self, task: Any) -> Any:
        """What the function returned or raised in a worker; `Died` when the worker did not live to tell."""
        process = self._idle.get()
        try:
            if process is None:
                process = self._started()
            answer = self._ask(process, task)
        except (OSError, EOFError) as error:
            code = self._buried(process)
            process = None
            raise Died(f"the process that worked on it ended ({_said(code)})") from error
        finally:
            self._idle.put(process)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _ask(self, process: subprocess.Popen[bytes], task: Any) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        _send(process.stdin, task)
        return pickle.loads(_receive(process.stdout))

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise OSError("the run is over")
            # A worker is one of several: its libraries keep to one thread.
            environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
            process = subprocess.Popen(
                [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            self._all.add(process)
        assert process.stdin is not None
        _send(process.stdin, sys.path)
        _send(process.stdin, self._work)
        return process

    def _buried(self, process: subprocess.Popen[bytes] | None) -> int | None:
        if process is None:
            return None
        with contextlib.suppress(OSError):
            process.kill()  # it may have closed its end and live on
        return process.wait()


def _said(code: int | None) -> str:
    if code is None:
        return "it could not be started"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _send(stream: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_SIZE.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    (size,) = _SIZE.unpack(head)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


# --- inside a worker -------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer tasks until the caller closes the pipe. What libraries print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides what an interrupt means
    tasks, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError):
        sys.path[:] = pickle.loads(_receive(tasks))
        work = pickle.loads(_receive(tasks))
        while True:
            _send(answers, _answer(work, _receive(tasks)))


def _answer(work: Callable[[Any], Any], data: bytes) -> Any:
    try:
        return work(pickle.loads(data))
    except Exception as error:
        return error if isinstance(error, EarmarkError) else _plain(error)


def _plain(error: BaseException) -> InputError:
    """Any error as one that can be sent: a stranger's exception may refuse to be pickled."""
    return InputError(f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
