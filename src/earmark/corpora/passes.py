"""One pass over clips with a few threads: decoding leaves Python free, so threads are enough."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError
from earmark.progress import progress_bar

T = TypeVar("T")

__all__ = ["each"]


def each(
    clips: Sequence[Clip],
    work: Callable[[Clip], T],
    *,
    threads: int | None = None,
    progress: str = "",
) -> Iterator[tuple[Clip, T | EarmarkError]]:
    """Every clip with the result of `work`, in order; a clip that cannot be used comes with its error instead.

    No more than a few results wait at a time, whatever the number of clips. `progress` names the bar on stderr.
    """
    count = max(1, threads or min(8, os.cpu_count() or 1))
    ahead: deque[tuple[Clip, Future[T | EarmarkError]]] = deque()

    def guarded(clip: Clip) -> T | EarmarkError:
        try:
            return work(clip)
        except EarmarkError as error:
            return error

    with progress_bar(bool(progress), len(clips), progress, "clip") as tick, ThreadPoolExecutor(count) as pool:
        try:
            for clip in clips:
                ahead.append((clip, pool.submit(guarded, clip)))
                if len(ahead) >= 4 * count:
                    done, future = ahead.popleft()
                    yield done, future.result()
                    tick()
            while ahead:
                done, future = ahead.popleft()
                yield done, future.result()
                tick()
        finally:
            for _, future in ahead:
                future.cancel()
