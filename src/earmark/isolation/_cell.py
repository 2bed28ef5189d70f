"""One process that answers messages within its bounds, with a limit on the time of every answer."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import IO, Any, Self

from earmark.errors import InputError
from earmark.isolation._bounds import PROGRAM, Bounds, Support, environment, support
from earmark.isolation._messages import MOST_BYTES, BadMessage, Message, read_message, write_message
from earmark.isolation._processes import ending, kill, kill_after, pipe

START_SECONDS = 120.0
_START = "from earmark.isolation._inside import serve; serve()"
_KEPT_LINES = 40  # of what a cell prints


class CellFailure(InputError):
    """What runs in a cell raised an error; the message is its own."""

    def __init__(self, message: str, kind: str = "", missing: str = "") -> None:
        super().__init__(message)
        self.kind = kind  # the class of the error
        self.missing = missing  # a file that was not there


class CellDied(InputError):
    """The process of a cell ended while it was busy."""


class CellOverdue(InputError):
    """A cell did not answer in time and was ended."""


class Cell:
    """A process that answers messages by a function named as `module:function`. Started when first called.

    Args:
        function: what answers, of a Message to a Message; imported inside.
        bounds: what it may see.
        confined: False runs it without bubblewrap even where that is installed.
    """

    def __init__(self, function: str, bounds: Bounds | None = None, *, confined: bool = True) -> None:
        self.function, self.bounds = function, bounds or Bounds()
        self.support: Support = support() if confined else Support("partial", "it was asked to run unconfined")
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self._printed: deque[str] = deque(maxlen=_KEPT_LINES)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be ending
            self.close()

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def printed(self) -> str:
        """The last lines that the process printed."""
        return "\n".join(self._printed)

    def call(self, message: Message, seconds: float, most: int = MOST_BYTES) -> Message:
        """The answer to a message.

        Raises CellFailure for an error inside, CellDied and CellOverdue; after these two the next call starts a new
        process.
        """
        with self._lock:
            if not self.alive:
                self._start()
            return self._exchange(message, seconds, most)

    def close(self) -> None:
        """End the process and remove its folders."""
        if self._process is not None:
            kill(self._process)
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    pipe(stream).close()
            self._process = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    def _start(self) -> None:
        self.close()
        self._printed.clear()
        paths = [str(Path(entry).absolute()) for entry in sys.path if entry]
        known = {**environment(), "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-c", _START]
        given: dict[str, Any] = {}
        reading: int | None = None
        if self.support.level == "full":
            reading, writing = os.pipe()
            with os.fdopen(writing, "wb") as stream:
                # More arguments than a pipe holds would wait for a reader that does not run yet.
                arguments = "\0".join(self.bounds.arguments()).encode() + b"\0"
                if len(arguments) < 60_000:
                    stream.write(arguments)
            if len(arguments) >= 60_000:
                os.close(reading)
                with tempfile.TemporaryFile() as file:
                    file.write(arguments)
                    file.seek(0)
                    reading = os.dup(file.fileno())
            command = [str(shutil.which(PROGRAM)), "--args", str(reading), *command]
            given["pass_fds"] = (reading,)
        else:
            self._folder = tempfile.mkdtemp(prefix="earmark-cell-")
            known |= {"TMPDIR": self._folder, "HOME": self._folder, "XDG_CACHE_HOME": self._folder}
            known.setdefault("HF_HOME", str(Path.home() / ".cache/huggingface"))
            known.setdefault("TORCH_HOME", str(Path.home() / ".cache/torch"))
            given["cwd"] = self.bounds.folder or self._folder
            given["start_new_session"] = True
        try:
            self._process = _STARTER.start(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=known, **given
            )
        except OSError as error:
            raise CellDied(f"its process could not be started ({error})") from error
        finally:
            if reading is not None:
                os.close(reading)
        threading.Thread(target=_collect, args=(pipe(self._process.stderr), self._printed), daemon=True).start()
        self._exchange(Message({"function": self.function, "path": paths}), START_SECONDS, MOST_BYTES)

    def _exchange(self, message: Message, seconds: float, most: int) -> Message:
        assert self._process is not None
        overdue = threading.Event()
        try:
            with kill_after(self._process, seconds) as overdue:
                write_message(pipe(self._process.stdin), message)
                reply = read_message(pipe(self._process.stdout), most)
        except BadMessage:
            self.close()
            raise
        except (OSError, EOFError, ValueError) as error:
            kill(self._process)
            code = self._process.wait()
            self.close()
            if overdue.is_set():
                raise CellOverdue(f"it took longer than {seconds:g} s and was ended") from None
            said = f"; it printed: {self._printed[-1][:200]}" if self._printed else ""
            raise CellDied(f"its process ended ({ending(code)}{said})") from error
        except BaseException:  # an interrupt must not leave an answer behind for the next question
            self.close()
            raise
        if "error" in reply.head:
            raise CellFailure(*(str(reply.head.get(name, ""))[:1000] for name in ("error", "kind", "missing")))
        return reply


class _Starter:
    """A thread that starts processes and outlives them: Linux ends a cell with the thread that started it."""

    def __init__(self) -> None:
        self._owner = 0
        self._lock = threading.Lock()

    def start(self, command: list[str], **given: Any) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._owner != os.getpid():  # threads do not survive a fork
                self._owner = os.getpid()
                self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
                threading.Thread(target=self._serve, args=(self._tasks,), daemon=True).start()
        answers: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()
        self._tasks.put((command, given, answers))
        answer = answers.get()
        if isinstance(answer, OSError):
            raise answer
        return answer

    def _serve(self, tasks: queue.SimpleQueue[Any]) -> None:
        while True:
            command, given, answers = tasks.get()
            try:
                answers.put(subprocess.Popen(command, **given))
            except OSError as error:
                answers.put(error)


_STARTER = _Starter()


def _collect(stream: IO[bytes], lines: deque[str]) -> None:
    """Read what a process prints, so that it never waits for a reader, and keep the last lines."""
    with contextlib.suppress(OSError, ValueError), stream:
        while chunk := stream.readline(4096):
            lines.append(chunk.decode(errors="replace").rstrip())
