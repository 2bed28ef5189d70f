"""The engine under every run: what a stage has to do is done in a pool, kept, counted, and given up when hopeless.

    items ── less what the cache holds ── batches ── pool ── keep ── packs
                                                       └── failures, each once, with its reason

A run is a `Ledger` (counts, failures, notes, progress) and a list of stages. Stages whose results belong to single
items go through `work_through` and lie in packs; those with one result for a whole set are `Cache.recall`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from earmark.errors import EarmarkError, InputError

Item = TypeVar("Item")
Result = TypeVar("Result")
Tick = Callable[[int], object]
"""Called with the number of items that were finished."""


@dataclass(frozen=True)
class Failure:
    """An item that could not be used: at which step, for which extractor or codec (empty: for all), and why."""

    suite: str
    subset: str
    id: str
    path: str
    label: str
    step: str
    extractor: str
    reason: str


def reason_of(error: BaseException) -> str:
    """An error as a reason of one line: our own say all; of others the type says more than the text."""
    text = " ".join(str(error).split())
    return text if isinstance(error, EarmarkError) else f"{type(error).__name__}: {text}"


@dataclass
class Ledger:
    """What a run has come to so far, and the one place that shows how far it is."""

    progress: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    counts: dict[str, dict[str, float]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def count(self, step: str, **amounts: float) -> None:
        counts = self.counts.setdefault(step, {})
        for name, amount in amounts.items():
            counts[name] = round(counts.get(name, 0) + amount, 3)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the seconds of a step."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.count(step, seconds=time.perf_counter() - started)


class Patience(Generic[Item]):
    """Which subjects are hopeless: they have failed on so many items and managed none. `noun`: model, codec …

    `managed` are subjects that have managed an item before; `failed` says on how many they have failed before.
    """

    def __init__(
        self,
        most: int,
        noun: str,
        subject: Callable[[Item], str],
        managed: Iterable[str] = (),
        failed: Mapping[str, int] | None = None,
    ) -> None:
        self._most, self._subject = most, subject
        self.refusal = InputError(f"not tried, because the {noun} failed on every clip before it")
        self._managed = set(managed)
        self._failed = dict(failed or {})

    def hopeless(self, item: Item) -> bool:
        name = self._subject(item)
        return self._failed.get(name, 0) >= self._most and name not in self._managed

    def note(self, item: Item, managed: bool | None) -> None:
        """Remember how an item went; None says nothing of the subject."""
        name = self._subject(item)
        if managed:
            self._managed.add(name)
        elif managed is not None:
            self._failed[name] = self._failed.get(name, 0) + 1


def work_through(
    batches: Iterable[Sequence[Item]],
    answers: Callable[[Iterator[Sequence[Item]]], Iterable[Iterable[tuple[Item, Result | Exception]]]],
    *,
    keep: Callable[[Item, Result | Exception], bool | None],
    patience: Patience[Item] | None = None,
    after_batch: Callable[[], object] = lambda: None,
    tick: Tick = lambda _: None,
) -> None:
    """Do what is to be done, batch by batch.

    `answers` (a pool's `map`) gives each item with its result or its error; `keep` stores the one and notes the other,
    and says whether the subject managed the item. Items of a subject that is hopeless are not tried.
    """

    def hopeful() -> Iterator[Sequence[Item]]:
        for batch in batches:
            left = []
            for item in batch:
                if patience is not None and patience.hopeless(item):
                    keep(item, patience.refusal)
                    tick(1)
                else:
                    left.append(item)
            if left:
                yield left

    for batch in answers(hopeful()):
        for item, result in batch:
            managed = keep(item, result)
            if patience is not None:
                patience.note(item, managed)
            tick(1)
        after_batch()
