"""Who does the work of a run: steps that any process can do, and executors that hand them out.

    run ── job (in the cache) ── steps ── executor: this process, worker processes, Dask workers, a shard's share
                                             └── do_step(step) ── results into the cache, counts and failures back
    run ── finds everything in the cache and goes on as if it had computed it itself

A **job** is what all steps of a run share, kept in the cache: the config, the version of Earmark, the versions of the
libraries that count, and which entries may be used. A **step** is a small value (the import path of a function, the
job, numbers and names; never arrays) that takes seconds to minutes. The function is called `function(job, *arguments)`
in some process that reaches the corpora and the cache, writes what it makes into the cache, and returns a `Done`:
counts, failures and small facts. Doing a step twice does no harm, so that a worker that is lost costs its step.

How another kind of run uses this:

1. `keep_job(cache, config, libraries)` once; `step.job` is what it returns.
2. A module-level function `def code_clips(job: Job, codec: str, places: list[int]) -> Done`, which reads `job.config`
   and keeps what later steps of this process need too (a corpus, a model) in `job.kept`.
3. An `Agenda` that gives steps as soon as they may begin and is told what came of each: `Listed(steps)` where none
   waits for another. An answer is a `Done`, or the exception: `Lost` where the worker did not live to tell.
4. `carry_out(executor, agenda, tick)`, then the run as it always was: it reads the cache anew, computes what is still
   missing itself, and its numbers are those of a run in one process.

Executors of other machines: `earmark.runs.clusters` (Dask) and `earmark.runs.shards`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from earmark._version import __version__
from earmark.errors import Changed, InputError, no_exit
from earmark.runs.engine import Failure, Tick
from earmark.runs.identity import fingerprint, versions
from earmark.runs.pool import Processes
from earmark.runs.store import Cache, Entry

JOBS_KIND = "jobs"
MOST_LINES = 50
"""Lines of its log that a step brings home."""

log = logging.getLogger("earmark.runs")


class Unfit(InputError):
    """A worker that cannot do the steps of a run at all; says which worker and why."""


# --- jobs and steps ------------------------------------------------------------------------------------------


class JobAddress(NamedTuple):
    """Where a job lies: the cache's URL, the entry's key, and the oldest entries that may be used."""

    url: str
    key: str
    since: int = 0


@dataclass
class Job:
    """What the steps of a run share, as a process that does some of them knows it."""

    cache: Cache
    config: dict[str, Any]
    threads: int = 1  # that a step may use
    kept: dict[Any, Any] = field(default_factory=dict)  # what later steps of this process need too


@dataclass(frozen=True)
class Step:
    """One piece of a run's work: `do` is the import path of the function, `size` how many items it is for the bar."""

    do: str
    job: JobAddress
    name: str
    arguments: tuple[Any, ...] = ()
    size: int = 1


@dataclass(frozen=True)
class Done:
    """What came of a step; what it made lies in the cache. `facts` are small values for the run that asked."""

    counts: Mapping[str, float] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    where: str = ""
    log: tuple[str, ...] = ()


def keep_job(cache: Cache, config: Mapping[str, Any], libraries: Iterable[str]) -> JobAddress:
    """Put what the steps of a run share into the cache."""
    meta = {
        "config": dict(config),
        "earmark": __version__,
        "versions": versions(*sorted(set(libraries))),
        "path": [entry for entry in sys.path if entry and Path(entry).is_dir()],
    }
    key = fingerprint("job", meta)
    cache.put(JOBS_KIND, key, Entry(meta))
    return JobAddress(cache.url, key, cache.since)


def adopt_job(address: JobAddress, job: Job) -> None:
    """Let steps that are done in this process use what it has opened already."""
    _jobs.clear()
    _jobs[address] = job


@no_exit()
def do_step(step: Step, threads: int = 1) -> Done:
    """Do a step in this process: one at a time, whatever thread it is called from."""
    with _at_work, _log_lines() as lines:
        job = _opened(step.job)
        job.threads = threads
        module, _, name = step.do.partition(":")
        started = time.perf_counter()
        try:
            done: Done = getattr(import_module(module), name)(job, *step.arguments)
        except Changed as error:
            raise Unfit(f"{here()}: {error}") from error
        return replace(done, seconds=time.perf_counter() - started, where=here(), log=tuple(lines))


def here() -> str:
    """This process, for people."""
    return f"{socket.gethostname()}, process {os.getpid()}"


_at_work = threading.Lock()
_jobs: dict[JobAddress, Job] = {}


def _opened(address: JobAddress) -> Job:
    """The job at an address; the last one is kept, with what its steps have opened."""
    if address not in _jobs:
        cache = Cache(address.url, "use", since=address.since)
        entry = Cache(address.url, "use").get(JOBS_KIND, address.key)
        if entry is None:
            raise Unfit(
                f"{here()} does not see the cache {address.url}: give a folder that all machines share, or a URL, with "
                "--cache-dir."
            )
        refuse_differences(entry.meta)
        sys.path += [folder for folder in entry.meta["path"] if folder not in sys.path and Path(folder).is_dir()]
        adopt_job(address, Job(cache, dict(entry.meta["config"])))
    return _jobs[address]


def refuse_differences(meta: Mapping[str, Any]) -> None:
    """Refuse to work for a run of another version of Earmark, or with other libraries under the numbers."""
    if meta["earmark"] != __version__:
        raise Unfit(
            f"{here()} has Earmark {__version__}, and the run has {meta['earmark']}: install the same version there."
        )
    own = versions(*meta["versions"])
    for name, version in meta["versions"].items():
        if own[name] != version:
            raise Unfit(
                f"{here()} has {name} {own[name] or '(none)'}, and the run has {version or '(none)'}: install the same "
                "version there, so that numbers are the same."
            )


@contextlib.contextmanager
def _log_lines() -> Iterator[deque[str]]:
    """The last lines of the log while a step is done."""
    lines: deque[str] = deque(maxlen=MOST_LINES)

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.levelname} {' '.join(record.getMessage().split())}")

    handler, before = Collector(), log.level
    log.addHandler(handler)
    log.setLevel(min(before or logging.INFO, logging.INFO))
    try:
        yield lines
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


# --- what is to be done --------------------------------------------------------------------------------------

Answer = Done | Exception


class Agenda(Protocol):
    """Steps in an order of their own."""

    def ready(self) -> list[Step]:
        """Steps that may begin now; each is given once."""
        ...

    def note(self, step: Step, answer: Answer) -> None:
        """Learn what came of a step; others may then begin. An error that ends the run is raised."""
        ...


class Listed:
    """Steps that wait for nothing. What came of each is in `answers`, by the name of the step."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = list(steps)
        self.answers: dict[str, Answer] = {}

    def ready(self) -> list[Step]:
        steps, self._steps = self._steps, []
        return steps

    def note(self, step: Step, answer: Answer) -> None:
        self.answers[step.name] = answer


# --- executors -----------------------------------------------------------------------------------------------


class Executor:
    """Does steps one after another in this process. To be used as a context; others are subclasses."""

    workers = 1

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def __enter__(self) -> Self:
        self._answers: deque[tuple[Step, Answer]] = deque()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def free(self) -> bool:
        """Whether another step may begin."""
        return not self._answers

    def begin(self, step: Step) -> None:
        self._answers.append((step, attempt(do_step, step, self.threads)))

    def finished(self) -> list[tuple[Step, Answer]]:
        """Steps that have come to an end, after waiting for at least one; none when none is under way."""
        answers, self._answers = list(self._answers), deque()
        return answers


def attempt(do: Callable[..., Done], *arguments: Any) -> Answer:
    """What a call gives, or the error in its place; an error of usage is one of the run."""
    try:
        return do(*arguments)
    except Exception as error:
        return error


def carry_out(executor: Executor, agenda: Agenda, tick: Tick = lambda _: None) -> None:
    """Do everything on an agenda. What workers logged goes into the log of the run; the agenda judges errors."""
    waiting: deque[Step] = deque()
    under_way = 0
    while True:
        waiting.extend(agenda.ready())
        while waiting and executor.free():
            executor.begin(waiting.popleft())
            under_way += 1
        if not under_way:
            return
        for step, answer in executor.finished():
            under_way -= 1
            if isinstance(answer, Done):
                for line in answer.log if answer.where != here() else ():
                    log.info("[%s] %s", answer.where, line)
                tick(step.size)
            agenda.note(step, answer)


class LocalProcesses(Executor):
    """Steps in worker processes of this machine, each with a core of its own.

    `cards` are GPUs as CUDA_VISIBLE_DEVICES names them: there is then a process for each, which sees that one alone,
    and `threads` of its own that decode.
    """

    def __init__(self, workers: int = 1, *, cards: Sequence[str] = (), threads: int = 1) -> None:
        self.workers, self.threads = len(cards) or workers, threads
        self._environments = [{"CUDA_VISIBLE_DEVICES": card} for card in cards]

    def __enter__(self) -> Self:
        work = partial(do_step, threads=self.threads)
        self._processes = Processes(work, self.workers, environments=self._environments).__enter__()
        self._threads = ThreadPoolExecutor(self.workers)
        self._under_way: dict[Future[Answer], Step] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.__exit__()  # before the threads that wait for them: an interrupt is quick
        self._threads.shutdown(cancel_futures=True)

    def free(self) -> bool:
        return len(self._under_way) < self.workers

    def begin(self, step: Step) -> None:
        self._under_way[self._threads.submit(attempt, self._processes.call, step)] = step

    def finished(self) -> list[tuple[Step, Answer]]:
        done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        return [(self._under_way.pop(future), future.result()) for future in done]
