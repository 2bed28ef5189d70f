"""Steps on a Dask cluster: one that is there (`--scheduler tcp://host:8786`), or one that a run starts for itself.

    cluster: {kind: slurm, workers: 40, cores: 4, memory: 16GB, options: {queue: long, walltime: "08:00:00"}}

At most one step for each worker is under way, with all of the worker's threads. Dask gives a step whose worker is lost
to another one; when it has lost a few workers with the same step it says so, and the answer is `Lost`. A scheduler that
cannot be reached, or no longer, ends the run with a sentence: what was computed lies in the cache.
"""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import sys
import threading
import time
from typing import Any, Self

from earmark.errors import EarmarkError, InputError, require
from earmark.runs.config import ClusterOptions
from earmark.runs.engine import reason_of
from earmark.runs.executors import Answer, Done, Executor, Step, Unfit, attempt, do_step
from earmark.runs.pool import Lost

CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer, when it is first asked and when its connection breaks."""
FETCH_SECONDS = 60.0
"""How long an answer may be on its way: it is small, and done again if the worker that has it is lost."""
LOOK_SECONDS = 2.0
"""How often workers are counted."""
QUIET_SECONDS = 5.0
"""How long a run waits for workers without a word."""
ADDRESS = re.compile(r"((tcp|tls|ucx|ws|wss)://)?[^\s/:]+:\d+|(tcp|tls|ucx)://\[[0-9a-fA-F:]+\]:\d+|inproc://.+")
TRIES = 3
"""How often a step is sent out whose future the cluster forgets."""

log = logging.getLogger("earmark.runs")


def do_on_worker(step: Step) -> Done | EarmarkError:
    """Inside a Dask worker: a step, or its error as one that can be sent."""
    from distributed import get_worker

    answer = attempt(do_step, step, get_worker().state.nthreads)
    if isinstance(answer, Done | EarmarkError):
        return answer
    return InputError(f"{step.name}: {reason_of(answer)[:500]}")  # a stranger's exception may refuse to be pickled


class DaskWorkers(Executor):
    """Steps on the workers of a Dask scheduler. A cluster that was started here ends with the run."""

    def __init__(self, scheduler: str, cluster: ClusterOptions | None, cache_url: str) -> None:
        self._scheduler, self._options, self._cache_url = scheduler, cluster or ClusterOptions(), cache_url
        self._cluster: Any = None
        self._under_way: dict[Any, Step] = {}
        self._tries: dict[str, int] = {}
        self._bell = threading.Event()
        self._told = False  # that there is no worker
        self._seen, self._looked, self._idle_since = 0, 0.0, time.monotonic()

    def __enter__(self) -> Self:
        distributed = require("distributed", "Dask clusters", "dask")
        for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what it has to say is said here in a sentence
        if not self._scheduler:
            self._cluster = start_cluster(self._options)
        elif not ADDRESS.fullmatch(self._scheduler):
            raise InputError(f"{self._scheduler!r} is no address of a Dask scheduler: write tcp://HOST:8786.")
        address = self._scheduler or self._cluster.scheduler_address
        self._name = address
        self._distributed = distributed
        try:
            self._client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            self._close_cluster()
            raise InputError(
                f"No Dask scheduler answers at {address} ({_first_line(error)}): check the address and that it runs, "
                "or leave --scheduler out."
            ) from error
        log.info("Dask scheduler %s, %d workers", address, self.count())
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):
            self._client.cancel(list(self._under_way), force=True)
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            with contextlib.suppress(Exception):
                self._cluster.close(timeout=10)
            self._cluster = None

    def count(self) -> int:
        """Workers that are there now, looked at now and then."""
        if self._client.status == "running" and time.monotonic() - self._looked > LOOK_SECONDS:
            with contextlib.suppress(Exception):
                self._seen = len(self._client.nthreads())
            self._looked = time.monotonic()
        if self._seen:
            self._idle_since = time.monotonic()
        return self._seen

    @property
    def workers(self) -> int:  # type: ignore[override]
        return max(1, self._seen, self._options.workers if self._cluster is not None else 0)

    def free(self) -> bool:
        return len(self._under_way) < max(1, self.count())

    def begin(self, step: Step) -> None:
        self._tries[step.name] = self._tries.get(step.name, 0) + 1
        key = f"earmark {step.name} {secrets.token_hex(4)}"
        try:
            future = self._client.submit(do_on_worker, step, key=key, pure=False)
        except Exception as error:
            raise self._gone() from error
        self._under_way[future] = step
        future.add_done_callback(lambda _: self._bell.set())

    def finished(self) -> list[tuple[Step, Answer]]:
        while True:
            answers = []
            for future in [future for future in self._under_way if future.done()]:
                step = self._under_way.pop(future)
                answer = self._answer(step, future)
                if answer is None:
                    self.begin(step)
                else:
                    answers.append((step, answer))
            if answers or not self._under_way:
                return answers
            if self._client.status not in ("running", "connecting"):
                raise self._gone()
            self._tell_of_waiting()
            if not self.count() and time.monotonic() - self._idle_since > self._options.wait:
                raise InputError(
                    f"The Dask scheduler {self._name} has had no worker for {self._options.wait:g} s: start some with "
                    f"`dask worker {self._name}`; {self._stays()}"
                )
            self._bell.wait(LOOK_SECONDS)
            self._bell.clear()

    def _tell_of_waiting(self) -> None:
        if self._seen or self._told or time.monotonic() - self._idle_since < QUIET_SECONDS:
            return
        self._told = True
        print(
            f"\nThe Dask scheduler {self._name} has no worker: waiting up to {self._options.wait:g} s for one "
            f"(`dask worker {self._name}` starts one).",
            file=sys.stderr,
        )

    def _answer(self, step: Step, future: Any) -> Answer | None:
        """What a future came to; None where the cluster has forgotten it and it is to be sent out again."""
        if future.status == "finished":
            with contextlib.suppress(Exception):  # the connection broke at this moment: what follows knows
                answer: Answer = future.result(timeout=FETCH_SECONDS)
                return answer
        if future.status == "error":
            return self._error(step, future.exception())
        until = time.monotonic() + CONNECT_SECONDS + LOOK_SECONDS
        while self._client.status == "connecting" and time.monotonic() < until:
            time.sleep(0.1)  # the client mends its connection, or closes
        if self._client.status != "running":
            raise self._gone()
        return None if self._tries[step.name] < TRIES else Lost(f"the cluster {self._name} keeps losing it")

    def _error(self, step: Step, error: BaseException) -> Exception:
        if isinstance(error, self._distributed.KilledWorker):
            return Lost(f"its workers ended, the last of them {error.last_worker.address}: its own log may say why")
        if isinstance(error, ImportError) and "earmark" in str(error):
            return Unfit(
                f"The workers of {self._name} cannot import Earmark ({_first_line(error)}): install the same version "
                "there."
            )
        return InputError(f"{step.name}: {reason_of(error)[:500]}")

    def _gone(self) -> InputError:
        return InputError(f"The Dask scheduler {self._name} no longer answers: start it again; {self._stays()}")

    def _stays(self) -> str:
        return f"what was computed stays in {self._cache_url}, and the same command goes on from there."


def start_cluster(options: ClusterOptions) -> Any:
    """A cluster of a kind that the config names, with its workers asked for."""
    makers = {"local": _local, "slurm": _slurm, "kubernetes": _kubernetes}
    try:
        return makers[options.kind](options)
    except EarmarkError:
        raise
    except Exception as error:  # a stranger's package: a wrong option, no sbatch, no cluster
        raise InputError(
            f"The {options.kind} cluster did not start ({_first_line(error)}): check `cluster:`."
        ) from error


def _local(options: ClusterOptions) -> Any:
    distributed = require("distributed", "Dask clusters", "dask")
    return distributed.LocalCluster(
        n_workers=options.workers, threads_per_worker=options.cores, memory_limit=options.memory or "auto",
        dashboard_address=None, **options.options,
    )  # fmt: skip


def _slurm(options: ClusterOptions) -> Any:
    jobqueue = require("dask_jobqueue", "SLURM clusters of Dask", "slurm")
    cluster = jobqueue.SLURMCluster(
        **{"cores": options.cores, "processes": 1, "memory": options.memory or "8GB", **options.options}
    )
    cluster.scale(jobs=options.workers)
    return cluster


def _kubernetes(options: ClusterOptions) -> Any:
    operator = require("dask_kubernetes.operator", "Kubernetes clusters of Dask", "kubernetes")
    asked = {"cpu": str(options.cores), **({"memory": options.memory} if options.memory else {})}
    return operator.KubeCluster(
        **{"name": "earmark", "n_workers": options.workers, "resources": {"requests": asked, "limits": asked},
           **options.options}
    )  # fmt: skip


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
