"""Where the work of a stage is done: in this process, in threads, or in worker processes. Executors live here.

    batches ── map ── at most 2 x workers under way ── (batch, answers), first batch first

A pool has one function, of a batch of items to a result for each. What goes wrong with a batch (an error, a worker that
dies, a call that takes too long) is tried again item by item and costs the one item that it happens with again: its
answer is the exception. Another executor is another subclass of `Pool` that says how `call` reaches its workers.

Worker processes are for work that holds the interpreter lock or may take the interpreter down with it: PESQ and Praat
keep the lock while they run, and a C library that crashes on one clip must not end the run. Each is a Python of its own
that reads batches from its standard input and answers on its standard output; one that dies is replaced. Workers do not
import the caller's main script, and end when their caller does.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Generic, Self, TypeVar

from earmark.errors import EarmarkError, InputError, MissingExtra, Unreachable, UsageError, no_exit
from earmark.isolation import ending, kill_after, pipe
from earmark.workers import Workers

Item = TypeVar("Item")
Result = TypeVar("Result")

ITEM_SECONDS = 600.0
"""What one item may take before it is given up: a model or codec that hangs costs its clip, not the run."""


class Lost(InputError):
    """An item came to nothing, without its fault being known."""


class Died(Lost):
    """A worker process ended while it was busy with an item."""


class Overdue(Lost):
    """An item was not finished in time."""


class Pool(Generic[Item, Result]):
    """Batches through one function in this process: one after another, or in threads. To be used as a context.

    `limit` is in seconds for a call; None: no limit. Errors of the kinds in `fatal` end the run, unless a
    worker died or took too long.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Sequence[Result]],
        workers: int = 1,
        *,
        limit: float | None = None,
        fatal: tuple[type[Exception], ...] = (UsageError, MissingExtra, Unreachable),
    ) -> None:
        self.work, self.workers, self.limit, self.fatal = work, workers, limit, fatal
        self._here = threading.local()  # each thread makes its own calls
        self._timed: list[Timed] = []

    def __enter__(self) -> Self:
        # BLAS on one thread, as in a worker: a value must not depend on who computed it.
        self._threads = Workers(self.workers).__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.__exit__()
        for timed in self._timed:
            timed.close()

    def renew(self) -> None:
        """Begin anew: what workers remember is gone. Only when nothing is under way."""

    def call(self, batch: Sequence[Item]) -> Sequence[Result]:
        """The results of a batch; raises what the function raised, `Died` or `Overdue`."""
        if not hasattr(self._here, "timed"):
            self._here.timed = Timed(self.limit)
            self._timed.append(self._here.timed)
        timed: Timed = self._here.timed
        return timed.call(self.work, batch)

    def map(self, batches: Iterable[Sequence[Item]]) -> Iterator[list[tuple[Item, Result | Exception]]]:
        """Each item of each batch with its result, or the exception in its place; in the order of the batches."""
        return self._threads.map(self._answers, batches)

    def _answers(self, batch: Sequence[Item]) -> list[tuple[Item, Result | Exception]]:
        try:
            return list(zip(batch, self.call(batch), strict=True))
        except Exception as error:
            if isinstance(error, self.fatal) and not isinstance(error, Lost):
                raise
            if len(batch) == 1:
                return [(batch[0], error)]
            return [answer for item in batch for answer in self._answers([item])]


class ProcessPool(Pool[Item, Result]):
    """Batches through one function in worker processes."""

    def __enter__(self) -> Self:
        self._processes = Processes(self.work, self.workers, limit=self.limit).__enter__()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self._processes.__exit__()  # before the threads that wait for them: an interrupt is quick
        super().__exit__()

    def renew(self) -> None:
        self._processes.renew()

    def call(self, batch: Sequence[Item]) -> Sequence[Result]:
        data = _portable(batch)
        if data is None:
            return super().call(batch)
        answers: Sequence[Result] = self._processes.call(data)
        return answers


def make_pool(work: Callable[[Sequence[Item]], Sequence[Result]], processes: int, **options: Any) -> Pool[Item, Result]:
    """Worker processes, or this process where their number is 0."""
    return ProcessPool(work, processes, **options) if processes else Pool(work, **options)


class Timed:
    """A thread that makes calls for another one, which waits no longer than the limit in seconds allows.

    A call that is overdue goes on where nobody hears it, and the next one gets a new thread.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self._calls: queue.SimpleQueue[Any] | None = None

    @no_exit()
    def call(self, work: Callable[[Item], Result], argument: Item) -> Result:
        """What `work` returns or raises; `Overdue` when it takes too long."""
        if self.limit is None:
            return work(argument)
        if self._calls is None:
            self._calls = queue.SimpleQueue()
            threading.Thread(target=_make_calls, args=(self._calls,), daemon=True).start()
        answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._calls.put((work, argument, answers))
        try:
            result, error = answers.get(timeout=self.limit)
        except queue.Empty:
            self.close()
            raise _overdue(self.limit) from None
        if error is not None:
            raise error
        answer: Result = result
        return answer

    def close(self) -> None:
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None


def _make_calls(calls: queue.SimpleQueue[Any]) -> None:
    while (call := calls.get()) is not None:
        work, argument, answers = call
        try:
            answers.put((work(argument), None))
        except BaseException as error:
            answers.put((None, error))
        del call, work, argument


def _overdue(limit: float) -> Overdue:
    return Overdue(f"it took longer than {limit:g} s and was given up")


def _portable(batch: Sequence[Any]) -> bytes | None:
    """A batch as bytes; None where it holds what a worker cannot import: a thing of the caller's main script."""
    try:
        data = pickle.dumps(batch, protocol=pickle.HIGHEST_PROTOCOL)
    except (AttributeError, TypeError, pickle.PicklingError):
        return None
    return None if b"__main__" in data else data


# --- worker processes ----------------------------------------------------------------------------------------

_SIZE = struct.Struct("<Q")
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
_START = "from earmark.runs.pool import serve; serve()"
_Worker = subprocess.Popen[bytes]


class Processes:
    """A few worker processes that call one function: `call` may be used from as many threads as there are workers.

    `environments` holds variables for each of them, such as which GPU it sees; one that replaces another has the same.
    """

    def __init__(
        self,
        work: Callable[[Any], Any],
        jobs: int,
        *,
        limit: float | None = None,
        environments: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self._work, self._jobs, self._limit = work, jobs, limit
        self._environments = list(environments) or [{}] * jobs
        self._idle: queue.SimpleQueue[tuple[int, _Worker | None]] = queue.SimpleQueue()
        self._all: set[_Worker] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        for number in range(self._jobs):
            self._idle.put((number, None))  # started when it is first needed
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        with self._lock:
            for process in self._all:
                process.kill()
            for process in self._all:
                process.wait()
                for stream in (process.stdin, process.stdout):
                    with contextlib.suppress(OSError):
                        pipe(stream).close()

    def renew(self) -> None:
        """End the workers that are idle; others are started when they are needed."""
        for _ in range(self._jobs):
            number, process = self._idle.get()
            if process is not None:
                self._buried(process)
                self._all.discard(process)
            self._idle.put((number, None))

    def call(self, task: Any) -> Any:
        """What the function returned or raised in a worker; `Died` when the worker did not live to tell.

        `task` may be pickled already.
        """
        data = task if isinstance(task, bytes) else pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
        number, process = self._idle.get()
        overdue = threading.Event()
        try:
            process = process or self._started(self._environments[number])
            with kill_after(process, self._limit) as overdue:
                answer = _ask(process, data)
        except (OSError, EOFError) as error:
            code = self._buried(process)
            process = None
            if overdue.is_set():
                raise _overdue(self._limit or 0.0) from None
            raise Died(f"the process that worked on it ended ({ending(code)})") from error
        finally:
            self._idle.put((number, process))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _started(self, own: Mapping[str, str]) -> _Worker:
        with self._lock:
            if self._closed:
                raise OSError("the run is over")
            # A worker is one of several: its libraries keep to one thread.
            environment = {**os.environ, **{f"{name}_NUM_THREADS": "1" for name in _THREADS}, **own}
            process = subprocess.Popen(
                [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            self._all.add(process)
        for value in (sys.path, self._work):
            _send(pipe(process.stdin), pickle.dumps(value))
        _receive(pipe(process.stdout))  # it has imported what it needs: from now on its time counts
        return process

    def _buried(self, process: _Worker | None) -> int | None:
        if process is None:
            return None
        with contextlib.suppress(OSError):
            process.kill()  # it may have closed its end and live on
        return process.wait()


def _ask(process: _Worker, data: bytes) -> Any:
    _send(pipe(process.stdin), data)
    return pickle.loads(_receive(pipe(process.stdout)))


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(_SIZE.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    head = stream.read(_SIZE.size)
    size = _SIZE.unpack(head)[0] if len(head) == _SIZE.size else None
    data = stream.read(size) if size is not None else b""
    if size is None or len(data) < size:
        raise EOFError
    return data


def serve() -> None:
    """Inside a worker: answer until the caller closes the pipe. What libraries print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides what an interrupt means
    tasks, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError):
        sys.path[:] = pickle.loads(_receive(tasks))
        work = pickle.loads(_receive(tasks))
        _send(answers, b"ready")
        while True:
            answer = _answer(work, _receive(tasks))
            _send(answers, pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL))


def _answer(work: Callable[[Any], Any], data: bytes) -> Any:
    try:
        with no_exit():
            return work(pickle.loads(data))
    except Exception as error:
        if isinstance(error, EarmarkError):
            return error
        # A stranger's exception may refuse to be pickled: any error as one that can be sent.
        return InputError(f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
