"""The two stages that take the time: code every clip with every codec, and measure what came out.

for a few codecs at a time:   known delays, or calibrate ──  clips ── workers ── packs
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from earmark.codecs.clip_work import MOST_SECONDS, TOGETHER, Job, Outcome, Part, do
from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.runs._calibrate import calibrated, choose_samples, known_delay
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import BLOB, CodecWork, Sample
from earmark.corpora.clips import length_of
from earmark.progress import progress_bar
from earmark.runs.engine import Patience, work_through
from earmark.runs.packs import Packer, Records
from earmark.runs.pool import ITEM_SECONDS, Pool, make_pool

HOPELESS = 16
"""A codec that has failed on this many clips and managed none is not tried on the others."""

log = logging.getLogger("earmark.runs")


@dataclass(frozen=True)
class CodingItem:
    """One clip through one codec, as a worker is given it; a batch is a clip with a few codecs."""

    system: str
    sample: Sample
    part: Part


CodecPool = Pool[CodingItem, Outcome]


def code_clip(batch: Sequence[CodingItem]) -> list[Outcome]:
    """What comes of a clip through a few codecs, in whichever process."""
    clip, digest, category = batch[0].sample
    return do(Job(clip, digest, tuple(item.part for item in batch), category))


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


def code_and_measure(work: CodecWork) -> None:
    """Do whatever the cache does not hold yet; what fails is noted in `work.refused`."""
    suitable: list[Sample] | None = None
    with make_pool(code_clip, work.jobs, limit=ITEM_SECONDS) as pool:
        for block in blocks(work.systems):
            for system in block:
                work.read_coded(system)
            if suitable is None and any(system.card.delay is None for system in block):
                suitable = choose_samples(list(work.samples.values()))
            _find_delays(work, block, suitable or [], pool)
            for system in block:
                work.read_measured(system)
            _measure(work, block, pool)


def _find_delays(work: CodecWork, block: Sequence[CodecSystem], samples: Sequence[Sample], pool: CodecPool) -> None:
    for system in block:
        delay = known_delay(work.cache, system, samples)
        if delay is not None:
            work.delays[system.name] = delay
    unknown = [system for system in block if system.name not in work.delays]
    if not unknown:
        return
    decoded: dict[str, list[Waveform | None]] = {system.name: [] for system in unknown}

    def batches() -> Iterator[list[CodingItem]]:
        for sample in samples:
            parts = [Part(system.codec, _payload(work, system, sample), decoded=True) for system in unknown]
            yield [CodingItem(system.name, sample, part) for system, part in zip(unknown, parts, strict=True)]

    with _packing(work.coded[system.name] for system in unknown) as packers:

        def keep(item: CodingItem, outcome: Outcome | Exception) -> None:
            outcome = _keep_coded(work, item, outcome, packers)
            decoded[item.system].append(outcome.decoded)

        work_through(batches(), pool.map, keep=keep, after_batch=packers.flush_if_full)
    for system in unknown:
        delay = calibrated(work.cache, system, samples, decoded[system.name])
        work.delays[system.name] = delay
        log.info("%s: delay %.2f ms (%s, %d clips)", system.name, 1000 * delay.seconds, delay.method, delay.n)


def _measure(work: CodecWork, block: Sequence[CodecSystem], pool: CodecPool) -> None:
    todo = list(_todo(work, block))
    total = sum(len(systems) for _, systems in todo)
    work.count("measure", cached=len(block) * len(work.samples) - total)
    if not total:
        return
    work.cache.check_writable()

    def batches() -> Iterator[list[CodingItem]]:
        for sample, systems in todo:
            yield [CodingItem(system.name, sample, _part(work, system, sample)) for system in systems]

    managed = [system.name for system in block if work.coded[system.name].records]
    patience: Patience[CodingItem] = Patience(HOPELESS, "codec", lambda item: item.system, managed)
    names = {system.name for system in block}
    stores = [work.coded[name] for name in names]
    stores += [records for (name, _), records in work.measured.items() if name in names]
    title = block[0].name if len(block) == 1 else f"{block[0].name} … {block[-1].name}"
    with _packing(stores) as packers, progress_bar(work.progress, total, title, "clip") as tick:

        def keep(item: CodingItem, outcome: Outcome | Exception) -> bool | None:
            if outcome is patience.refusal:
                work.refused[item.system, item.sample.digest] = Measured.failed(str(outcome))
                return None
            outcome = _keep_coded(work, item, outcome, packers)
            if outcome.values:
                values = {name: list(value) for name, value in outcome.values.items()}
                packers.of(work.measured[item.system, item.sample.category]).add(item.sample.digest, values)
            managed = outcome.refused is None
            work.count("measure", computed=int(bool(outcome.values)), failed=int(not managed))
            return managed

        work_through(
            batches(), pool.map, keep=keep, patience=patience, after_batch=packers.flush_if_full, tick=tick
        )  # fmt: skip


def _todo(work: CodecWork, block: Sequence[CodecSystem]) -> Iterator[tuple[Sample, list[CodecSystem]]]:
    for sample in work.samples.values():
        if length_of(sample.clip) > MOST_SECONDS:  # no worker need be told
            too_long = do(Job(sample.clip, sample.digest, (Part(block[0].codec),)))[0].refused
            work.refused.update({(system.name, sample.digest): too_long for system in block if too_long is not None})
            continue
        lacking = [system for system in block if work.missing_names(system, sample.digest)]
        if lacking:
            yield sample, lacking


def _part(work: CodecWork, system: CodecSystem, sample: Sample) -> Part:
    payload = _payload(work, system, sample)
    delay = work.delays[system.name].seconds
    return Part(system.codec, payload, delay, work.missing_names(system, sample.digest))


def _payload(work: CodecWork, system: CodecSystem, sample: Sample) -> bytes | None:
    """What the codec sent, from the cache; a pack that is gone is forgotten, so that its clips are coded again."""
    return work.coded[system.name].payload(sample.digest, BLOB)


def _keep_coded(work: CodecWork, item: CodingItem, outcome: Outcome | Exception, packers: Packers) -> Outcome:
    digest = item.sample.digest
    if isinstance(outcome, Exception):
        outcome = Outcome(refused=Measured.failed(str(outcome)))
    if outcome.refused is not None:
        work.refused[item.system, digest] = outcome.refused
        log.warning("%s %s: %s", item.system, digest[:12], outcome.refused.reason)
    elif outcome.known is not None and outcome.payload is not None:
        packers.of(work.coded[item.system]).add(digest, outcome.known._asdict(), {BLOB: outcome.payload})
        work.count("code", computed=1)
    return outcome


class Packers:
    """A packer for each of several stores."""

    def __init__(self, stores: Iterable[Records]) -> None:
        self._packers = {records.kind: Packer(records) for records in stores}

    def of(self, records: Records) -> Packer:
        return self._packers[records.kind]

    def flush_if_full(self) -> None:
        for packer in self._packers.values():
            packer.flush_if_full()

    def flush(self) -> None:
        for packer in self._packers.values():
            packer.flush()


@contextmanager
def _packing(stores: Iterable[Records]) -> Iterator[Packers]:
    """Packers of several stores; whatever happens, what is finished is written."""
    packers = Packers(stores)
    try:
        yield packers
    finally:
        packers.flush()
