"""Threads for work that releases the interpreter lock: BLAS calls and compiled kernels."""

from __future__ import annotations

import operator
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Self, SupportsIndex, TypeVar

from threadpoolctl import ThreadpoolController

from earmark.errors import UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count(threads: int | None) -> int:
    """The number of worker threads: as asked, else every core this process may use."""
    if threads is not None:
        if not isinstance(threads, SupportsIndex) or operator.index(threads) < 1:
            raise UsageError(f"threads must be a whole number of at least 1, not {threads!r}.")
        return operator.index(threads)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


class Workers:
    """A pool of threads that yields results in the order of its items.

    While it is open BLAS is held to one thread per call: the parallelism is over tiles, so that a tile's
    numbers do not depend on how many cores the machine has. `blas` allows more, where there are fewer items than cores.
    """

    def __init__(self, threads: int, blas: int = 1) -> None:
        self.threads, self.blas = threads, blas

    def __enter__(self) -> Self:
        self._limits = _libraries(len(sys.modules)).limit(limits=self.blas, user_api="blas")
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._limits.restore_original_limits()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work`, first item first, with a bounded number of results waiting."""
        if self._pool is None:
            yield from map(work, items)
            return
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(self._pool.submit(work, item))
            if len(waiting) > 2 * self.threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def torch_on_one_thread() -> Iterator[None]:
    """Hold what torch computes on the CPU in this thread to one core.

    The last bit of a product or of a recurrent layer depends on how many share it, and a vector must not depend on who
    computed it. BLAS is held by `Workers`, in the thread that began: threadpoolctl heeds no other.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The loaded thread pools, looked for again whenever a module has been imported: the search takes milliseconds."""
    return ThreadpoolController()
