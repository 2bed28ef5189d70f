"""Who does the work of a run beside the process that was asked: a Dask cluster, or more processes of this machine.

A run that takes a while embeds in as many processes as there are cores, each with one thread: models that hold the
interpreter lock or compute on one core would leave the others idle. The first windows are heard here, which tells
whether the rest is worth the start of processes. With a GPU in the machine this process embeds alone; with several
there is a process for each card.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from earmark.extractors.contract import Extractor
from earmark.extractors.torch_models import cards_of
from earmark.progress import progress_bar
from earmark.representations import _embed as embed
from earmark.representations._folder import vectors_kind
from earmark.representations._record import Work
from earmark.representations._spread import Errand, Spread
from earmark.runs.clusters import DaskWorkers
from earmark.runs.executors import Executor, LocalProcesses, carry_out
from earmark.runs.packs import Records, read_records
from earmark.runs.shards import Share
from earmark.wording import counted, listed

WORTH_SECONDS = 20.0
"""Embedding that would take longer than this here is spread over processes, each of which takes seconds to start."""
WORTH_WINDOWS = 8
"""Models with fewer windows to hear are not even tried."""
MEMORY_SHARE = 0.6
"""Of the memory that is free: what processes may take, as far as this one tells how much they need."""

log = logging.getLogger("earmark.runs")


def read_vectors(work: Work) -> None:
    """What the cache holds of vectors, now."""
    by_key: dict[str, Records] = {}
    for model in {system.model.identity: system.model for system in work.systems}.values():
        for subset in work.subsets:
            key = model.key(subset)
            if key not in by_key:
                by_key[key] = read_records(work.cache, vectors_kind(key))
            work.records[model.identity, subset.suite, subset.name] = by_key[key]


def executor_of(work: Work) -> AbstractContextManager[Executor | None]:
    """The executor that a config names, where that is another than this process."""
    config = work.config
    return DaskWorkers(config.scheduler, config.cluster, work.cache.url) if config.executor == "dask" else nullcontext()


def spread(work: Work, executor: Executor, wanted: Sequence[str], share: Share | None = None) -> Spread:
    """Let an executor do these steps of a run, all of them or a share, and know what came of them."""
    work.cache.check_writable()
    agenda = Spread(work, tuple(wanted), executor.workers, share)
    many = f" on {counted(executor.workers, 'worker')}" if executor.workers > 1 else ""
    title = f"{listed(wanted)}{many}" + (f", shard {share}" if share is not None else "")
    with progress_bar(work.progress, agenda.size, title, "step") as tick:
        carry_out(executor, agenda, tick)
    agenda.close()
    read_vectors(work)
    return agenda


# --- processes of this machine -------------------------------------------------------------------------------


def spread_here(work: Work, share: Share | None = None) -> None:
    """Embed in processes of this machine, where that pays; what is left is for the caller."""
    cards = cards_of(work.config.device)
    if not work.shared or (not cards and (work.workers < 2 or _on_gpu(work.config.device))):
        return
    by_model: dict[str, list[Errand]] = {}
    for errand in Spread(work, ("embed",), work.workers, share).errands:
        if not errand.model.learns:
            by_model.setdefault(errand.model.identity, []).append(errand)
    seconds = sum(_seconds_of(work, errands) for errands in by_model.values())
    if seconds <= WORTH_SECONDS:
        return
    if cards:
        _let_go_of_cards()
        log.info("embedding takes about %.0f s on one GPU: %s do it", seconds, counted(len(cards), "process"))
        executor = LocalProcesses(cards=cards, threads=max(1, work.workers // len(cards)))
    else:
        processes = min(work.workers, _that_fit())
        if processes < 2:
            return
        log.info("embedding takes about %.0f s on one core: %d processes do it", seconds, processes)
        executor = LocalProcesses(processes)
    with executor:
        spread(work, executor, ["embed"], share)


def _seconds_of(work: Work, errands: Sequence[Errand]) -> float:
    """About how long a model takes for all clips that it is to hear, after hearing two windows of them."""
    errand = next((errand for errand in errands if errand.windows), None)
    if errand is None or sum(len(errand.windows) for errand in errands) < WORTH_WINDOWS:
        return 0.0
    opened: dict[Any, Extractor] = {}
    pace = 0.0
    for window in [errand.windows.popleft() for _ in range(min(2, len(errand.windows)))]:
        started = time.perf_counter()
        if not _hear_window(work, errand, window, opened):
            return 0.0
        pace = (time.perf_counter() - started) / len(window)
    return pace * sum(len(window) for errand in errands for window in errand.windows)


def _hear_window(work: Work, errand: Errand, window: Sequence[int], opened: dict[Any, Extractor]) -> bool:
    """Embed a window here; whether the model managed some of it."""
    model, subset = errand.model, errand.subset
    key = model.identity, subset.suite, subset.name
    readable = subset.readable
    todo = embed.Todo([[readable[place] for place in window]], errand.parts, int(errand.managed))
    outcome = embed.embed(
        subset, model, todo, work.records_of(model, subset), batch=work.config.batch, workers=work.workers,
        before=embed.Before(errand.first, errand.failed, opened=opened),
    )  # fmt: skip
    errand.first, errand.managed = False, errand.managed or bool(outcome.computed)
    work.embedded[key] += outcome.computed
    work.refused.setdefault(key, {}).update(outcome.refused)
    return bool(outcome.computed)


def _on_gpu(device: str) -> bool:
    torch = sys.modules.get("torch")  # a torch model has been opened, and imported it
    return device != "cpu" and torch is not None and bool(torch.cuda.is_available())


def _let_go_of_cards() -> None:
    """Give back what this process holds of the memory of GPUs: others are about to use it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _that_fit() -> int:
    """How many processes like this one the free memory holds."""
    with suppress(ImportError, OSError, ValueError, IndexError, StopIteration):
        import resource

        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
        return max(1, int(MEMORY_SHARE * free / own))
    return sys.maxsize
