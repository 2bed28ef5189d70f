"""One process that answers messages within its bounds, with a limit on the time of every answer.

What comes out of it is a stranger's: an answer is asked for, measured before it is read, and alone. Bytes that nobody
asked for end the process; what it prints is read on, whoever needs it, and beyond a limit dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, Self

from earmark.errors import InputError
from earmark.isolation._bounds import PROGRAM, Bounds, Support, environment, support
from earmark.isolation._messages import MOST_BYTES, BadMessage, Message, read_message, write_message
from earmark.isolation._processes import Timed, ending, kill, kill_after, pipe, pipe_with

START_SECONDS = 120.0
_START = "from earmark.isolation._inside import serve; serve()"
_KEPT_LINES = 40  # of what a cell prints
_PIPE_BYTES = 1 << 20


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


class Launch(NamedTuple):
    """How the process of a cell is started."""

    command: list[str]
    path: list[str]  # where it imports from
    options: dict[str, Any]  # of Popen
    fds: tuple[int, ...] = ()  # that it inherits; closed here once it has them
    folder: str = ""  # removed when it has ended
    watched: bool = False  # bubblewrap names the process that it starts, and that one is ended


class Seal(Protocol):
    """How a sealed cell is started; see `earmark.isolation._sealed`."""

    @property
    def printed(self) -> int: ...

    def launch(self) -> Launch: ...


class Cell:
    """A process that answers messages by a function named as `module:function`. Started when first called.

    Args:
        function: what answers, of a Message to a Message; imported inside.
        bounds: what it may see.
        confined: False runs it without bubblewrap even where that is installed.
        seal: how it is started where it is sealed (`sealed` gives such a cell).
    """

    def __init__(
        self, function: str, bounds: Bounds | None = None, *, confined: bool = True, seal: Seal | None = None
    ) -> None:
        self.function, self.bounds = function, bounds or Bounds()
        self._seal = seal
        self.support = Support("full") if seal else support() if confined else _UNCONFINED
        self._process: subprocess.Popen[bytes] | None = None
        self._inner: int | None = None  # a descriptor of the first process inside
        self._folder = ""
        self._started = False
        self._printed = Printed(seal.printed if seal else None)
        self._lock = threading.Lock()
        self._closing = threading.RLock()

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
        """What the process printed: the last lines; of a sealed cell the beginning, up to its limit."""
        return self._printed.text()

    def call(self, message: Message, seconds: float, most: int = MOST_BYTES) -> Message:
        """The answer to a message.

        Raises CellFailure for an error inside, CellDied, CellOverdue, and BadMessage for what is no answer; after
        these three the next call starts a new process.
        """
        with self._lock:
            if not self.alive:
                self._start()
            return self._exchange(message, seconds, most)

    def close(self) -> None:
        """End the process and remove its folders; of two who do it at once, the second waits for the first."""
        with self._closing:
            self._close()

    def _close(self) -> None:
        if self._process is not None:
            self._end()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    pipe(stream).close()
            self._process = None
        if self._inner is not None:
            os.close(self._inner)
            self._inner = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    def _end(self) -> None:
        """Kill the process: the first one inside, so that bubblewrap sees it end and leaves nothing to be buried by
        others; then whatever is left."""
        assert self._process is not None
        if self._inner is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._inner, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5.0)
        kill(self._process)

    def _launch(self) -> Launch:
        path = [str(Path(entry).absolute()) for entry in sys.path if entry]
        known = {**environment(), "PYTHONPATH": os.pathsep.join(path)}
        command = [sys.executable, "-c", _START]
        if self.support.level == "full":
            arguments = pipe_with("\0".join(self.bounds.arguments()).encode() + b"\0")
            command = [str(shutil.which(PROGRAM)), "--args", str(arguments), *command]
            return Launch(command, path, {"env": known}, (arguments,))
        folder = tempfile.mkdtemp(prefix="earmark-cell-")
        known |= {"TMPDIR": folder, "HOME": folder, "XDG_CACHE_HOME": folder}
        known.setdefault("HF_HOME", str(Path.home() / ".cache/huggingface"))
        known.setdefault("TORCH_HOME", str(Path.home() / ".cache/torch"))
        options = {"env": known, "cwd": self.bounds.folder or folder, "start_new_session": True}
        return Launch(command, path, options, folder=folder)

    def _start(self) -> None:
        self.close()
        self._started = False
        launch = self._seal.launch() if self._seal else self._launch()
        self._folder = launch.folder
        fds, command, told = launch.fds, launch.command, -1
        if launch.watched:
            told, telling = os.pipe()
            fds = (*fds, telling)
            command = [command[0], "--info-fd", str(telling), *command[1:]]
        options = {**launch.options, **({"pass_fds": fds} if fds else {})}
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        try:
            # No buffers: what was not asked for must stay in the pipe, where it is seen.
            self._process = _STARTER.start(command, bufsize=0, **streams, **options)
        except OSError as error:
            self.close()
            raise CellDied(f"its process could not be started ({error})") from error
        finally:
            for fd in fds:
                os.close(fd)
            if launch.watched and self._process is None:
                os.close(told)
        self._printed = Printed(self._seal.printed if self._seal else None)
        self._reader = threading.Thread(target=self._printed.collect, args=(pipe(self._process.stderr),), daemon=True)
        self._reader.start()
        if launch.watched:
            self._inner = _first_inside(told)
        for stream in (self._process.stdin, self._process.stdout):
            _widen(pipe(stream))
        self._exchange(Message({"function": self.function, "path": launch.path}), START_SECONDS, MOST_BYTES)
        self._started = True

    def _exchange(self, message: Message, seconds: float, most: int) -> Message:
        assert self._process is not None
        try:
            self._check_silence()
            with self._streams(seconds) as (questions, answers):
                write_message(questions, message)
                reply = read_message(answers, most)
            self._check_silence()
        except BadMessage:
            self.close()
            raise
        except TimeoutError:
            self.close()
            raise CellOverdue(f"it took longer than {seconds:g} s and was ended") from None
        except (OSError, EOFError, ValueError) as error:
            self._end()
            code = self._process.wait()
            self._reader.join(1.0)  # its last words
            self.close()
            # What a sealed cell prints stays inside, once it is open to strangers.
            words = "" if self._seal and self._started else self._printed.last()[:200]
            said = f"; it printed: {words}" if words else ""
            raise CellDied(f"its process ended ({ending(code)}{said})") from error
        except BaseException:  # an interrupt must not leave an answer behind for the next question
            self.close()
            raise
        if "error" in reply.head:
            raise CellFailure(*(_readable(reply.head.get(name, "")) for name in ("error", "kind", "missing")))
        return reply

    @contextlib.contextmanager
    def _streams(self, seconds: float) -> Iterator[tuple[Any, Any]]:
        """The pipes for a question and its answer; TimeoutError where these take longer."""
        assert self._process is not None
        questions, answers = pipe(self._process.stdin), pipe(self._process.stdout)
        if hasattr(select, "poll"):
            deadline = time.monotonic() + seconds
            yield Timed(questions, deadline), Timed(answers, deadline)
            return
        overdue = threading.Event()
        try:
            with kill_after(self._process, seconds) as overdue:
                yield questions, answers
        except (OSError, EOFError):
            if overdue.is_set():
                raise TimeoutError from None
            raise

    def _check_silence(self) -> None:
        """Nothing may come that was not asked for: it would be taken for the next answer."""
        assert self._process is not None
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(pipe(self._process.stdout), select.POLLIN)
            if any(event & select.POLLIN for _, event in poll.poll(0)):
                raise BadMessage("Its process sent something that it was not asked for.")


_UNCONFINED = Support("partial", "it was asked to run unconfined")


def _readable(value: object) -> str:
    """Words of a stranger's, without what a terminal or a file could not take."""
    text = str(value)[:1000]
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _first_inside(told: int) -> int | None:
    """A descriptor of the process that bubblewrap started in its namespaces; None where it did not come to that."""
    with os.fdopen(told, "rb") as stream:
        said = stream.read(4096)
    try:
        return os.pidfd_open(int(json.loads(said)["child-pid"]))
    except (ValueError, KeyError, OSError, AttributeError):
        return None


def _widen(stream: IO[bytes]) -> None:
    """A pipe that holds more needs fewer turns; the usual size does where the system's share is used up."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class Printed:
    """What a process prints, read so that it never waits for a reader: the last lines, or the first so many bytes."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._beginning = bytearray()
        self._dropped = False

    def collect(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            if self._most is None:
                with os.fdopen(os.dup(stream.fileno()), "rb") as lines:
                    while chunk := lines.readline(4096):
                        self._lines.append(chunk.decode(errors="replace").rstrip())
                return
            while chunk := os.read(stream.fileno(), 65536):
                room = self._most - len(self._beginning)
                self._beginning += chunk[:room]
                if len(chunk) > room:
                    self._dropped = True
                    break
            _widen(stream)
            _drop(stream.fileno())

    def text(self) -> str:
        more = "\n[more was printed]" if self._dropped else ""
        return "\n".join(self._lines) if self._most is None else self._beginning.decode(errors="replace") + more

    def last(self) -> str:
        lines = self.text().split("\n")
        return next((line for line in reversed(lines) if line.strip()), "")


def _drop(source: int) -> None:
    """Read to the end and keep nothing; where the kernel can, without a copy."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - a descriptor, for a system call
        while True:
            try:
                count = os.splice(source, nothing.fileno(), _PIPE_BYTES)
            except (AttributeError, OSError):
                count = len(os.read(source, 65536))
            if not count:
                return


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
