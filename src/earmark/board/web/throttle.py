"""How often somebody may ask."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """So many requests a minute in the long run, and `burst` at once. A rate of 0 sets no limit."""

    per_minute: float
    burst: int


class Throttle:
    """A bucket for each asker, refilled steadily: in this process alone, and forgotten with the process.

    A bucket of `burst` drops; a request takes one; `per_minute` drops come back each minute. `take` returns 0 when
    there was a drop, else the seconds until there is one. The buckets of those who have not asked for long are full
    again and are dropped, so that memory stays within `most` askers.
    """

    def __init__(self, rate: Rate, *, most: int = 50_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # asker: (drops, when counted)

    def take(self, asker: str) -> float:
        if self._rate.per_minute <= 0:
            return 0.0
        per_second = self._rate.per_minute / 60
        now = self._clock()
        with self._lock:
            drops, counted = self._buckets.pop(asker, (float(self._rate.burst), now))
            drops = min(float(self._rate.burst), drops + (now - counted) * per_second)
            wait = 0.0 if drops >= 1 else (1 - drops) / per_second
            self._buckets[asker] = (drops - 1 if wait == 0 else drops, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return wait
