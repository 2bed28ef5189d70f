"""The stages that take the time: encode every clip with every codec, decode what was sent, and measure what came out.

for a few codecs at a time:   encode all clips ── known delays, or calibrate ── promises ── decode and measure ── packs

Every clip is encoded before the first is decoded: an encoder that is slow on purpose tells a decoder nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from earmark.codecs.cells import close_cells
from earmark.codecs.clip_work import MOST_SECONDS, TOGETHER, Job, Outcome, Part, do
from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.runs._calibrate import calibrated, choose_samples, known_delay
from earmark.codecs.runs._examine import (
    EXAMINED,
    Examination,
    ExaminationItem,
    examination_item,
    examine,
    keep_promises,
    left_to_examine,
)
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import BLOB, CodecWork, Sample
from earmark.corpora.clips import length_of
from earmark.progress import progress_bar
from earmark.runs import strangers
from earmark.runs.engine import Patience, work_through
from earmark.runs.packs import Packer, Records
from earmark.runs.pool import ITEM_SECONDS, Pool, make_pool
from earmark.runs.shards import Share

HOPELESS = 16
"""A codec that has failed on this many clips and managed none is not tried on the others."""
HANG = 6
"""As how many failures a clip counts that was given up because it took too long."""

SHARE_CLIPS = 16
"""Clips that follow each other and belong to one shard."""

log = logging.getLogger("earmark.runs")


@dataclass(frozen=True)
class CodingItem:
    """One clip through one codec, as a worker is given it; a batch is a clip with a few codecs."""

    system: str
    sample: Sample
    part: Part


Item = CodingItem | ExaminationItem
CodecPool = Pool[Any, Any]
"""Of either kind of item to what comes of it."""


def work_on(batch: Sequence[Item]) -> list[Outcome] | list[Examination]:
    """What comes of a clip through a few codecs, or of a codec's promises, in whichever process."""
    coding = [item for item in batch if isinstance(item, CodingItem)]
    if not coding:
        return [examine(item) for item in batch if isinstance(item, ExaminationItem)]
    clip, digest, category = coding[0].sample
    return do(Job(clip, digest, tuple(item.part for item in coding), category))


def blocks(systems: Sequence[CodecSystem]) -> Iterator[list[CodecSystem]]:
    """Systems that are worked on together: a few of them, but a model with weights or a stranger's by itself."""
    waiting: list[CodecSystem] = []
    for system in systems:
        if waiting and (system.alone or len(waiting) == TOGETHER):
            yield waiting
            waiting = []
        if system.alone:
            yield [system]
        else:
            waiting.append(system)
    if waiting:
        yield waiting


def code_and_measure(work: CodecWork, share: Share | None = None) -> None:
    """Do whatever the cache does not hold yet, all of it or a share; what fails is noted in `work.refused`."""
    work.suitable = choose_samples(list(work.samples.values()))
    if share is not None:  # and the clips that delays are found on
        own = {digest for place, digest in enumerate(work.samples) if share.takes(place // SHARE_CLIPS)}
        suitable = {sample.digest for sample in work.suitable}
        work.samples = {digest: sample for digest, sample in work.samples.items() if digest in own | suitable}
    with coding_pool(work) as pool:
        for block in blocks(work.systems):
            encode_block(work, block, pool)
            settle_block(work, block, pool)
            measure_block(work, block, pool)
    for system in work.systems:
        new = work.files.get(system.name, set()) - set(system.files)
        strangers.keep_later(work.cache, system.key, new)
    if coded := work.elsewhere.pop("code computed", 0):
        work.count("code", computed=coded)
    close_cells()


def coding_pool(work: CodecWork, longest: float | None = None) -> CodecPool:
    """Processes for the clips of a run, with as much time for each call as the longest clip needs."""
    if longest is None:
        longest = max((length_of(sample.clip) for sample in work.samples.values()), default=0.0)
    limit = ITEM_SECONDS
    if work.confinement.mode != "off":  # cells have limits of their own, which must be able to pass first
        limit += 2 * TOGETHER * work.confinement.allowed(min(longest, MOST_SECONDS))
    return make_pool(work_on, work.jobs, limit=limit)


def encode_block(work: CodecWork, block: Sequence[CodecSystem], pool: CodecPool) -> None:
    """What codecs send for every clip."""
    for system in block:
        work.read_coded(system)
    _encode(work, block, pool)
    _end_cells(block, pool)


def settle_block(work: CodecWork, block: Sequence[CodecSystem], pool: CodecPool) -> None:
    """The delays of codecs, and the promises that they keep."""
    _find_delays(work, block, pool)
    _examine(work, block, pool)
    _end_cells(block, pool)


def measure_block(work: CodecWork, block: Sequence[CodecSystem], pool: CodecPool) -> None:
    """Every measurement of what codecs sent."""
    for system in block:
        work.read_measured(system)
    _measure(work, block, pool)
    _end_cells(block, pool)


def _end_cells(block: Sequence[CodecSystem], pool: CodecPool) -> None:
    """End the processes of a stranger's codec: no encoder lives while a decoder works, and none remembers a pass."""
    if any(system.stranger for system in block):
        close_cells()
        pool.renew()


# --- encoding --------------------------------------------------------------------------------------------------------


def _encode(work: CodecWork, block: Sequence[CodecSystem], pool: CodecPool) -> None:
    """What every codec sends for every clip, where it is not known."""
    todo: list[tuple[Sample, list[CodecSystem]]] = []
    for sample in work.samples.values():
        if length_of(sample.clip) > MOST_SECONDS:  # no worker need be told
            too_long = do(Job(sample.clip, sample.digest, (Part(block[0].codec),)))[0].refused
            work.refused.update({(system.name, sample.digest): too_long for system in block if too_long is not None})
            continue
        lacking = [system for system in block if _payload(work, system, sample) is None]
        if lacking:
            todo.append((sample, lacking))
    _work_through(work, block, pool, "encode", todo, lambda system, _: Part(system.codec, confinement=work.confinement))


def _measure(work: CodecWork, block: Sequence[CodecSystem], pool: CodecPool) -> None:
    """Every measurement of what was sent, where it is not known."""
    todo: list[tuple[Sample, list[CodecSystem]]] = []
    for sample in work.samples.values():
        lacking = [
            system for system in block
            if (system.name, sample.digest) not in work.refused and work.missing_names(system, sample.digest)
        ]  # fmt: skip
        if lacking:
            todo.append((sample, lacking))
    refused = sum((system.name, digest) in work.refused for system in block for digest in work.samples)
    total = sum(len(systems) for _, systems in todo)
    work.count_cached("measure", len(block) * len(work.samples) - total - refused)

    def part(system: CodecSystem, sample: Sample) -> Part:
        delay, missing = work.delays[system.name].seconds, work.missing_names(system, sample.digest)
        return Part(system.codec, _payload(work, system, sample), delay, missing, confinement=work.confinement)

    _work_through(work, block, pool, "measure", todo, part)


def _work_through(
    work: CodecWork,
    block: Sequence[CodecSystem],
    pool: CodecPool,
    step: str,
    todo: Sequence[tuple[Sample, list[CodecSystem]]],
    part: Callable[[CodecSystem, Sample], Part],
) -> None:
    """One of the two errands for a block of codecs, with progress, patience, and packs that are written as it goes."""
    total = sum(len(systems) for _, systems in todo)
    if not total:
        return
    work.cache.check_writable()

    def batches() -> Iterator[list[CodingItem]]:
        for sample, systems in todo:
            yield [CodingItem(system.name, sample, part(system, sample)) for system in systems]

    names = {system.name for system in block}
    stores = [work.coded[name] for name in names]
    stores += [records for (name, _), records in work.measured.items() if name in names]
    known = {name for name in names if work.coded[name].records} if step == "encode" else set()
    patience: Patience[CodingItem] = Patience(HOPELESS, "codec", lambda item: item.system, known)
    title = f"{step} {block[0].name}" if len(block) == 1 else f"{step} {block[0].name} … {block[-1].name}"
    with _packing(stores) as packers, progress_bar(work.progress, total, title, "clip") as tick:

        def keep(item: CodingItem, answer: Outcome | Exception) -> bool | None:
            if answer is patience.refusal:
                work.refused[item.system, item.sample.digest] = Measured.failed(str(answer))
                work.count("measure", failed=1)
                return None
            outcome = _kept(work, item, answer, packers)
            if outcome.overdue:
                for _ in range(HANG - 1):
                    patience.note(item, False)
            managed = outcome.refused is None
            computed = bool(outcome.values)
            work.count("measure", computed=int(computed and managed), failed=int(not managed))
            return managed

        work_through(batches(), pool.map, keep=keep, patience=patience, after_batch=packers.flush_if_full, tick=tick)


def _kept(work: CodecWork, item: CodingItem, answer: Outcome | Exception, packers: Packers) -> Outcome:
    """Store what came of a clip through a codec, and note what did not."""
    digest = item.sample.digest
    outcome = Outcome(refused=Measured.failed(str(answer))) if isinstance(answer, Exception) else answer
    work.files.setdefault(item.system, set()).update(outcome.files)
    if outcome.refused is not None:
        work.refused[item.system, digest] = outcome.refused
        log.warning("%s %s: %s", item.system, digest[:12], outcome.refused.reason)
        return outcome
    if outcome.known is not None and outcome.payload is not None:
        packers.of(work.coded[item.system]).add(digest, outcome.known._asdict(), {BLOB: outcome.payload})
        work.count("code", computed=1)
    if outcome.values and item.part.delay is not None:
        values = {name: list(value) for name, value in outcome.values.items()}
        packers.of(work.measured[item.system, item.sample.category]).add(digest, values)
    return outcome


def _payload(work: CodecWork, system: CodecSystem, sample: Sample) -> bytes | None:
    """What the codec sent, from the cache; a pack that is gone is forgotten, so that its clips are coded again."""
    return work.coded[system.name].payload(sample.digest, BLOB)


# --- delays and promises ---------------------------------------------------------------------------------------------


def _coded_samples(work: CodecWork, system: CodecSystem, wanted: int) -> list[tuple[Sample, bytes]]:
    """Clips that suit measuring times, with what the codec sent for them."""
    sent = [(sample, _payload(work, system, sample)) for sample in work.suitable[:wanted]]
    return [(sample, payload) for sample, payload in sent if payload is not None]


def _find_delays(work: CodecWork, block: Sequence[CodecSystem], pool: CodecPool) -> None:
    for system in block:
        delay = known_delay(work.cache, system, work.suitable if system.card.delay is None else ())
        if delay is not None:
            work.delays[system.name] = delay
    unknown = [system for system in block if system.name not in work.delays]
    if not unknown:
        return
    samples = work.suitable
    decoded: dict[str, dict[str, Waveform]] = {system.name: {} for system in unknown}

    def batches() -> Iterator[list[CodingItem]]:
        for sample in samples:
            sent = [(system, _payload(work, system, sample)) for system in unknown]
            items = [
                CodingItem(system.name, sample, Part(system.codec, payload, decoded=True, confinement=work.confinement))
                for system, payload in sent if payload is not None
            ]  # fmt: skip
            if items:
                yield items

    def keep(item: CodingItem, outcome: Outcome | Exception) -> bool:
        if isinstance(outcome, Outcome) and outcome.decoded is not None:
            decoded[item.system][item.sample.digest] = outcome.decoded
        return True

    work_through(batches(), pool.map, keep=keep)
    for system in unknown:
        delay = calibrated(work.cache, system, samples, [decoded[system.name].get(s.digest) for s in samples])
        work.delays[system.name] = delay
        log.info("%s: delay %.2f ms (%s, %d clips)", system.name, 1000 * delay.seconds, delay.method, delay.n)


def _examine(work: CodecWork, block: Sequence[CodecSystem], pool: CodecPool) -> None:
    """Which promises each codec keeps, on a few clips, in processes of their own."""
    todo: list[ExaminationItem] = []
    for system in block:
        item = left_to_examine(work, examination_item(work, system, _coded_samples(work, system, EXAMINED)))
        if item is not None:
            todo.append(item)

    def keep(item: ExaminationItem, answer: Examination | Exception) -> bool:
        keep_promises(work, item, answer)
        return True

    if todo:
        with progress_bar(work.progress, len(todo), "promises and checks", "codec") as tick:
            work_through(([item] for item in todo), pool.map, keep=keep, tick=tick)


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
