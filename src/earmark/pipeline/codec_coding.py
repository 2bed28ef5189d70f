"""The two steps that take the time: code every clip with every codec, and measure what came out.

    for a few codecs at a time:   known delays, or calibrate ──  clips ── workers ── packs

A worker that dies costs one codec on one clip: what it was given is tried again codec by codec, and the one that kills
the worker once more is marked as failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from earmark.codecs.clip_work import MOST_SECONDS, TOGETHER, Job, Outcome, Part, do
from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.processes import Died, Processes
from earmark.embedding.hearing import length_of
from earmark.pipeline.codec_delays import Sample, calibrated, chosen, known_delay
from earmark.pipeline.codec_packs import Packer, Records, read_records
from earmark.pipeline.codec_state import CodecWork
from earmark.pipeline.codec_systems import CodecSystem
from earmark.progress import progress_bar
from earmark.workers import Workers

__all__ = ["blocks", "code_and_measure", "missing_names", "names_wanted"]

HOPELESS = 16
"""A codec that has failed on this many clips and managed none is not tried on the others."""
TANDEM_METRICS = ("pesq", "stoi", "mel_distance")
DELAY_METRICS = ("stft_distance", "mel_distance", "stoi")
"""Measured once more without the delay taken out, for codecs that have one: what a benchmark without alignment sees."""

log = logging.getLogger("earmark.pipeline")

Answered = tuple[Job, list[Outcome]]
Answers = Callable[[Iterator[Job]], Iterator[Answered]]


class _Asked(NamedTuple):
    """A job and the systems of its parts."""

    job: Job
    systems: tuple[CodecSystem, ...]


def blocks(systems: Sequence[CodecSystem]) -> Iterator[list[CodecSystem]]:
    """Systems that are worked on together: a few of them, but a model with weights by itself."""
    waiting: list[CodecSystem] = []
    for system in systems:
        heavy = bool(system.card.checkpoint or system.card.how_to_get)
        if waiting and (heavy or len(waiting) == TOGETHER):
            yield waiting
            waiting = []
        if heavy:
            yield [system]
        else:
            waiting.append(system)
    if waiting:
        yield waiting


def names_wanted(work: CodecWork, delay: float) -> tuple[str, ...]:
    """Every measurement of a clip through a codec with this delay."""
    config, metrics = work.config, work.metrics
    names = [f"{work.protocol} {metric}" for metric in metrics]
    if config.unaligned and delay and work.protocol != "reference":
        names += [f"unaligned {metric}" for metric in DELAY_METRICS if metric in metrics]
    few = [metric for metric in TANDEM_METRICS if metric in metrics] or list(metrics[:3])
    names += [f"tandem:{number} {metric}" for number in range(1, config.tandem + 1) for metric in few]
    names += [f"loss:{percent:g}#{config.seed} {metric}" for percent in config.loss for metric in few]
    return tuple(names)


def code_and_measure(work: CodecWork) -> None:
    """Do whatever the cache does not hold yet; what fails is noted in `work.refused`."""
    samples = work.samples()
    suitable: list[Sample] | None = None
    with _answering(work) as answers:
        for block in blocks(work.systems):
            for system in block:
                work.coded[system.name] = read_records(work.cache, system.coded_kind)
            if suitable is None and any(system.card.delay is None for system in block):
                suitable = chosen([sample for sample, _ in samples])
            _find_delays(work, block, suitable or [], answers)
            for system in block:
                for category in dict.fromkeys(category for _, category in samples):
                    kind = system.measured_kind(work.delays[system.name].seconds, category)
                    work.measured[system.name, category] = read_records(work.cache, kind)
            _work_through(work, block, answers)


@contextmanager
def _answering(work: CodecWork) -> Iterator[Answers]:
    """A function that has jobs done, in worker processes or in this one, and gives the answers in order."""
    if work.jobs == 0:
        with Workers(1):  # BLAS on one thread, as in a worker: a value must not depend on who computed it
            yield lambda jobs: ((job, do(job)) for job in jobs)
        return
    # Leaving, processes end before the threads that wait for them: an interrupt is quick.
    with Workers(work.jobs) as threads, Processes(do, work.jobs) as processes:

        def answer(job: Job) -> Answered:
            return job, do(job) if _stays_here(job) else _through(processes, job)

        yield lambda jobs: threads.map(answer, jobs)


def _through(processes: Processes, job: Job) -> list[Outcome]:
    try:
        found: list[Outcome] = processes.call(job)
        return found
    except Died as death:
        if len(job.parts) > 1:
            singles = [Job(job.clip, job.digest, (part,), job.category) for part in job.parts]
            return [_through(processes, single)[0] for single in singles]
        return [Outcome(refused=Measured.failed(str(death)))]


def _stays_here(job: Job) -> bool:
    """Whether a job belongs to the caller's main script, which workers do not import."""
    things = [job.clip.make, *(part.codec for part in job.parts if not isinstance(part.codec, str))]
    return any("__main__" in (getattr(thing, "__module__", ""), type(thing).__module__) for thing in things)


# --- delays ----------------------------------------------------------------------------------------------------------


def _find_delays(work: CodecWork, block: Sequence[CodecSystem], samples: Sequence[Sample], answers: Answers) -> None:
    for system in block:
        delay = known_delay(work.cache, system, samples)
        if delay is not None:
            work.delays[system.name] = delay
    unknown = tuple(system for system in block if system.name not in work.delays)
    if not unknown:
        return
    decoded: dict[str, list[Waveform | None]] = {system.name: [] for system in unknown}
    with _packing(work, [work.coded[system.name] for system in unknown]) as pack:

        def jobs() -> Iterator[Job]:
            for sample in samples:
                parts = tuple(Part(s.codec, _payload(work, s, sample.digest), decoded=True) for s in unknown)
                yield Job(sample.clip, sample.digest, parts, work.category_of(sample.digest))

        for job, outcomes in answers(jobs()):
            for system, outcome in zip(unknown, outcomes, strict=True):
                _keep_coded(work, system, job.digest, outcome, pack)
                decoded[system.name].append(outcome.decoded)
    for system in unknown:
        work.delays[system.name] = calibrated(work.cache, system, samples, decoded[system.name])
        found = work.delays[system.name]
        log.info("%s: delay %.2f ms (%s, %d clips)", system.name, 1000 * found.seconds, found.method, found.n)


# --- coding and measuring --------------------------------------------------------------------------------------------


def _work_through(work: CodecWork, block: Sequence[CodecSystem], answers: Answers) -> None:
    todo = _todo(work, block)
    total = sum(len(systems) for _, systems in todo)
    every = len(block) * len(work.samples())
    work.count("measure", cached=every - total)
    if not total:
        return
    work.cache.check_writable()
    asked: list[tuple[CodecSystem, ...]] = []
    failed = dict.fromkeys((system.name for system in block), 0)
    managed = {system.name for system in block if work.coded[system.name].records}

    def jobs() -> Iterator[Job]:
        for sample, systems in todo:
            hoping = tuple(s for s in systems if failed[s.name] < HOPELESS or s.name in managed)
            for system in set(systems) - set(hoping):
                reason = "not tried, because the codec failed on every clip before it"
                work.refused[system.name, sample.digest] = Measured.failed(reason)
            if hoping:
                asked.append(hoping)
                yield _job(work, sample, hoping)

    stores = [work.coded[system.name] for system in block]
    stores += [store for (name, _), store in work.measured.items() if any(name == system.name for system in block)]
    title = block[0].name if len(block) == 1 else f"{block[0].name} … {block[-1].name}"
    with _packing(work, stores) as pack, progress_bar(work.progress, total, title, "clip") as tick:
        for number, (job, outcomes) in enumerate(answers(jobs())):
            category = work.category_of(job.digest)
            for system, outcome in zip(asked[number], outcomes, strict=True):
                _keep_coded(work, system, job.digest, outcome, pack)
                failed[system.name] += outcome.refused is not None
                if outcome.refused is None:
                    managed.add(system.name)
                if outcome.values:
                    values = {name: list(value) for name, value in outcome.values.items()}
                    pack[work.measured[system.name, category].kind].add(job.digest, values)
                work.count("measure", computed=int(bool(outcome.values)), failed=int(outcome.refused is not None))
            tick(len(outcomes))


def _todo(work: CodecWork, block: Sequence[CodecSystem]) -> list[tuple[Sample, tuple[CodecSystem, ...]]]:
    found = []
    for sample, _ in work.samples():
        if length_of(sample.clip) > MOST_SECONDS:  # no worker need be told
            too_long = do(Job(sample.clip, sample.digest, (Part(block[0].codec),)))[0].refused
            work.refused.update({(system.name, sample.digest): too_long for system in block if too_long is not None})
            continue
        lacking = tuple(system for system in block if missing_names(work, system, sample.digest))
        if lacking:
            found.append((sample, lacking))
    return found


def missing_names(work: CodecWork, system: CodecSystem, digest: str) -> tuple[str, ...]:
    """Measurements of a clip that are not in the cache."""
    known = work.measured[system.name, work.category_of(digest)].records.get(digest, {})
    wanted = names_wanted(work, work.delays[system.name].seconds)
    coded = digest in work.coded[system.name].records
    return tuple(name for name in wanted if name not in known) if coded else wanted


def _job(work: CodecWork, sample: Sample, systems: Sequence[CodecSystem]) -> Job:
    parts = []
    for system in systems:
        payload = _payload(work, system, sample.digest)
        delay = work.delays[system.name].seconds
        parts.append(Part(system.codec, payload, delay, missing_names(work, system, sample.digest)))
    return Job(sample.clip, sample.digest, tuple(parts), work.category_of(sample.digest))


def _payload(work: CodecWork, system: CodecSystem, digest: str) -> bytes | None:
    """What the codec sent, from the cache; a pack that is gone is forgotten, so that its clips are coded again."""
    store = work.coded[system.name]
    place = store.blobs.get(digest)
    payload = None if place is None else work.blobs.read(place)
    if payload is None:
        store.forget(digest)
    return payload


def _keep_coded(work: CodecWork, system: CodecSystem, digest: str, outcome: Outcome, pack: dict[str, Packer]) -> None:
    if outcome.refused is not None:
        work.refused[system.name, digest] = outcome.refused
        log.warning("%s %s: %s", system.name, digest[:12], outcome.refused.reason)
    elif outcome.known is not None:
        pack[system.coded_kind].add(digest, outcome.known._asdict(), outcome.payload)
        work.count("code", computed=1)


@contextmanager
def _packing(work: CodecWork, stores: Sequence[Records]) -> Iterator[dict[str, Packer]]:
    """A packer for each store; whatever happens, what is finished is written."""
    with ExitStack() as stack:
        packers = {store.kind: Packer(work.cache, store) for store in stores}
        for packer in packers.values():
            stack.callback(packer.flush)
        yield packers
