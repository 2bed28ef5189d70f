"""What any process can do for a codec run: encode clips, find delays and promises, measure clips, hear for a task.

The functions here are called by `earmark.runs.executors.do_step` with a job, which holds the config, and small values:
codecs by name and key, clips by subset, id and the hash of their sound, which the run has computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from earmark.codecs.alignment import Delay
from earmark.codecs.cells import close_cells
from earmark.codecs.clip_work import MOST_SECONDS
from earmark.codecs.contract import Category
from earmark.codecs.runs._calibrate import CALIBRATE
from earmark.codecs.runs._code import CodecPool, coding_pool, encode_block, measure_block, settle_block
from earmark.codecs.runs._listen import LISTEN, NamedTask, ear_of, open_tasks, sounds_of
from earmark.codecs.runs._opening import open_work
from earmark.codecs.runs._systems import CODE, MEASURE, CodecSystem
from earmark.codecs.runs.config import CodecConfig
from earmark.codecs.runs.state import CodecWork, Sample
from earmark.corpora.clips import Clip, CorpusCard
from earmark.corpora.subsets import PreparedSubset, as_hashed, choose_subsets
from earmark.errors import EarmarkError, Unreachable
from earmark.runs.executors import Done, Job, Unfit, here

ENCODE_CLIPS = f"{__name__}:encode_clips"
SETTLE_CODECS = f"{__name__}:settle_codecs"
MEASURE_CLIPS = f"{__name__}:measure_clips"
HEAR_CLIPS = f"{__name__}:hear_clips"
LIBRARIES = sorted({*CODE.libraries, *MEASURE.libraries, *CALIBRATE.libraries, *LISTEN.libraries})
"""Those whose versions are part of keys: a worker with others would write what nobody finds."""


class ClipName(NamedTuple):
    """A clip of the run: where it stands in the corpus, the hash of its sound, and what it is measured as."""

    suite: str
    subset: str
    id: str
    digest: str
    category: Category


CodecName = tuple[str, str]
"""A codec's name and key."""


def encode_clips(job: Job, codecs: Sequence[CodecName], clips: Sequence[ClipName]) -> Done:
    """What codecs send for clips, where the cache does not hold it."""
    with _at_work(job, codecs, clips) as (work, block, pool):
        encode_block(work, block, pool)
    return _done(work)


def settle_codecs(job: Job, codecs: Sequence[CodecName], clips: Sequence[ClipName]) -> Done:
    """The delays of codecs and the promises that they keep, found on clips that suit it."""
    with _at_work(job, codecs, clips) as (work, block, pool):
        work.suitable = list(work.samples.values())
        encode_block(work, block, pool)
        settle_block(work, block, pool)
        delays = {system.name: list(work.delays[system.name]) for system in block}
    return _done(work, delays=delays)


def measure_clips(
    job: Job, codecs: Sequence[CodecName], clips: Sequence[ClipName], delays: dict[str, Sequence[Any]]
) -> Done:
    """Every measurement of what codecs sent for clips, where the cache does not hold it."""
    with _at_work(job, codecs, clips) as (work, block, pool):
        for system in block:
            work.delays[system.name] = Delay(*delays[system.name])
            work.read_coded(system)
        measure_block(work, block, pool)
    return _done(work)


def hear_clips(
    job: Job, spec: str, codecs: Sequence[CodecName], clips: Sequence[ClipName], delays: dict[str, Sequence[Any]]
) -> Done:
    """What a task's model hears in clips, or in what a codec made of them, where the cache does not hold it."""
    with _at_work(job, codecs, clips, pooled=False) as (work, block, _):
        work.systems = list(block)
        samples = list(work.samples.values())
        first = clips[0]
        work.subsets = [
            PreparedSubset(
                first.suite, first.subset, CorpusCard(first.suite), tuple(sample.clip for sample in samples),
                tuple(sample.digest for sample in samples), (), (),
            )
        ]  # fmt: skip
        work.categories = {first.subset: first.category}
        for system in block:
            work.delays[system.name] = Delay(*delays[system.name])
            work.read_coded(system)
            work.read_measured(system)
        clean, *coded = sounds_of(work, work.subsets[0])
        ear_of(work, _task(job, spec)).listen(coded or [clean])
    return _done(work)


# --- what a process keeps ------------------------------------------------------------------------------------


@contextmanager
def _at_work(
    job: Job, codecs: Sequence[CodecName], clips: Sequence[ClipName], *, pooled: bool = True
) -> Iterator[tuple[CodecWork, list[CodecSystem], CodecPool]]:
    """A run of some clips through some codecs; processes of its own only where the step has several cores."""
    opened = _opened(job)
    block = [_system(opened, *codec) for codec in codecs]
    work = CodecWork(
        config=opened.config, cache=job.cache, corpora=opened.corpora, systems=opened.systems, metrics=opened.metrics,
        jobs=job.threads if job.threads > 1 else 0, confinement=opened.confinement,
    )  # fmt: skip
    work.samples = {clip.digest: Sample(_clip(job, opened, clip), clip.digest, clip.category) for clip in clips}
    work.categories = {clip.category: clip.category for clip in clips}
    try:
        yield work, block, _pool(job, work) if pooled else None  # type: ignore[misc]
    finally:
        close_cells()


def _pool(job: Job, work: CodecWork) -> CodecPool:
    """Processes that stay for later steps: each takes seconds to start."""
    if ("pool", work.jobs) not in job.kept:
        job.kept["pool", work.jobs] = _KeptPool(coding_pool(work, MOST_SECONDS))
    kept: _KeptPool = job.kept["pool", work.jobs]
    return kept.pool


class _KeptPool:
    """A pool that ends when nobody needs its job any more; with this process its own end too."""

    def __init__(self, pool: CodecPool) -> None:
        self.pool = pool.__enter__()

    def __del__(self) -> None:
        with suppress(Exception):
            self.pool.__exit__(None, None, None)


def _opened(job: Job) -> CodecWork:
    if "work" not in job.kept:
        try:
            job.kept["work"] = open_work(CodecConfig.make(job.config), job.cache)
        except Unreachable:
            raise
        except EarmarkError as error:
            raise Unfit(f"{here()} cannot do this run: {error}") from error
    work: CodecWork = job.kept["work"]
    return work


def _system(work: CodecWork, name: str, key: str) -> CodecSystem:
    found = next((system for system in work.systems if system.name == name), None)
    if found is None:
        raise Unfit(f"{here()} has no codec {name}: install what it needs there.")
    if found.key != key:
        raise Unfit(f"{here()} has another version of {name}, or of what it reads: install the same there.")
    return found


def _clip(job: Job, work: CodecWork, name: ClipName) -> Clip:
    if "clips" not in job.kept:
        job.kept["clips"] = {
            (corpus.name, subset): {clip.id: clip for clip in clips}
            for corpus, entry in zip(work.corpora, work.config.corpus, strict=True)
            for subset, clips in choose_subsets(corpus, entry.subsets).items()
        }
    clip: Clip | None = job.kept["clips"].get((name.suite, name.subset), {}).get(name.id)
    if clip is None:
        raise Unfit(f"{here()} does not see the clip {name.id!r} of {name.suite}/{name.subset}: share the corpus.")
    return as_hashed(clip, name.digest)


def _task(job: Job, spec: str) -> NamedTask:
    if ("task", spec) not in job.kept:
        job.kept["task", spec] = open_tasks([spec], None)[0]
    task: NamedTask = job.kept["task", spec]
    return task


def _done(work: CodecWork, **facts: Any) -> Done:
    counts = {
        f"{step} {name}": amount
        for step, amounts in work.counts.items()
        for name, amount in amounts.items()
        if name == "computed"
    }
    files = {name: sorted(opened) for name, opened in work.files.items() if opened}
    return Done(counts, facts={**facts, "files": files})
