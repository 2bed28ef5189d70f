"""One pass over clips with a few threads: decoding leaves Python free, so threads are enough."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, Unreachable
from earmark.progress import tracked

T = TypeVar("T")


def each(
    clips: Sequence[Clip], work: Callable[[Clip], T], *, threads: int | None = None, progress: str = ""
) -> Iterator[tuple[Clip, T | EarmarkError]]:
    """Every clip with the result of `work`, in order; a clip that cannot be used comes with its error instead.

    No more than a few results wait at a time, whatever the number of clips. `progress` names the bar on stderr.
    """
    count = max(1, threads or min(8, os.cpu_count() or 1))
    waiting: deque[Future[T | EarmarkError]] = deque()

    def guarded(clip: Clip) -> T | EarmarkError:
        try:
            return work(clip)
        except Unreachable:
            raise
        except EarmarkError as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        coming = iter(clips)
        try:
            for clip in tracked(clips, progress, "clip", progress=bool(progress)):
                while len(waiting) < 4 * count and (later := next(coming, None)) is not None:
                    waiting.append(pool.submit(guarded, later))
                yield clip, waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
