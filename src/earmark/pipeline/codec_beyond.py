"""Beyond the signal: tasks that hear the coded clips, each model listening once to the clean and to every coded set.

A coded clip is an ordinary clip that decodes what the codec sent and takes its delay out, so whatever hears clips hears
it. What a task heard is kept in the cache; scoring it is cheap and done afresh.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from earmark._version import __version__
from earmark.codecs import harness
from earmark.codecs.alignment import aligned
from earmark.codecs.clip_work import opened
from earmark.codecs.contract import Codec, Waveform
from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, UsageError
from earmark.pipeline import identity, keys
from earmark.pipeline.codec_state import CodecWork
from earmark.pipeline.codec_systems import CodecSystem
from earmark.pipeline.entries import Entry
from earmark.pipeline.prepare import Subset
from earmark.probes import Finding, Heard, Task, open_task
from earmark.progress import progress_bar
from earmark.scores import Row
from earmark.wording import counted

__all__ = ["KIND", "CodedSound", "NamedTask", "coded_clips", "open_tasks", "task_rows"]

KIND = "codec-heard"
_CODE = ("probes/*.py", "codecs/alignment.py", "embed/*.py", "pipeline/codec_beyond.py")

log = logging.getLogger("earmark.pipeline")


class NamedTask(NamedTuple):
    """A task as it was asked for."""

    spec: str
    task: Task
    reads: str = ""  # the hash of what its model reads


@dataclass(frozen=True)
class CodedSound:
    """What a codec made of a clip, as a function without arguments: decoded anew wherever it is called."""

    codec: str | Codec
    payload: bytes
    delay: float
    rate: int
    length: int
    identity: str

    def __call__(self) -> tuple[Waveform, int]:
        decoded = harness.decode(_shared(self.codec), harness.unpack(self.payload), self.rate, self.length)
        return aligned(decoded, self.delay, self.rate, self.length), self.rate

    def digest(self) -> str:
        return self.identity


@functools.lru_cache(maxsize=2)
def _by_spec(spec: str) -> Codec:
    return harness.in_threads(opened(spec))


def _shared(codec: str | Codec) -> Codec:
    """The codec, safe to be called from the threads that decode clips."""
    return _by_spec(codec) if isinstance(codec, str) else harness.in_threads(codec)


def coded_clips(work: CodecWork, subset: Subset, system: CodecSystem) -> list[Clip]:
    """The clips of a subset after a codec, under the ids of the clean ones; those that it failed on are not there."""
    store, delay = work.coded[system.name], work.delays[system.name].seconds
    found: list[Clip] = []
    for one in work.results(subset, system):
        place = store.blobs.get(one.digest or "")
        payload = work.blobs.read(place) if place is not None else None
        if one.known is None or payload is None:
            continue
        identity = keys.fingerprint(system.key, one.digest, delay)
        sound = CodedSound(system.codec, payload, delay, one.known.rate, one.known.samples, identity)
        found.append(Clip(one.clip.id, one.clip.label, one.clip.subset, one.clip.group, make=sound))
    return found


def open_tasks(specs: Sequence[str], retention: str | None) -> list[NamedTask]:
    """The tasks, opened before the work so that what is missing is told before it."""
    wanted = [*specs, *([f"content:{retention}", f"fidelity:{retention}"] if retention else [])]
    tasks = [_opened(spec) for spec in dict.fromkeys(wanted)]
    by_name: dict[str, str] = {}
    for named in tasks:
        other = by_name.setdefault(named.spec.partition(":")[0], named.spec)
        if other != named.spec:
            raise UsageError(
                f"{other} and {named.spec} would give scores of the same name: run one of them, and the other --into "
                "another folder."
            )
    return tasks


def _opened(spec: str) -> NamedTask:
    task, reads = identity.opening(lambda: open_task(spec), given=re.split("[:?=&]", spec))
    return NamedTask(spec, task, reads.key)


def task_rows(work: CodecWork, tasks: Sequence[NamedTask]) -> list[Row]:
    """Every task on every subset and codec, in the order of the score table."""
    rows: list[Row] = []
    total = len(tasks) * len(work.subsets) * (1 + len(work.systems))
    with progress_bar(work.progress, total, f"tasks ({counted(total, 'set')} of clips)", "set") as tick:
        for named in tasks:
            for subset in work.subsets:
                rows += _on_subset(work, named, subset, tick)
    return rows


def _on_subset(work: CodecWork, named: NamedTask, subset: Subset, tick: Any) -> Iterator[Row]:
    category = work.categories[subset.name]
    card = named.task.card
    if card.categories and category not in card.categories:
        tick(1 + len(work.systems))
        reason = f"{card.name} is a task for {' and '.join(card.categories)}, not for {category}"
        missing = [Finding.not_applicable(metric, card.protocols[0], reason) for metric in card.metrics]
        yield from _named_rows(work, named, subset, work.systems, missing)
        return
    clips = [clip for clip, _ in subset.readable]
    clean = _heard(work, named, clips, [digest for _, digest in subset.readable])
    tick(1)
    for system in work.systems:
        coded = coded_clips(work, subset, system)
        identities = [clip.digest() for clip in coded]
        try:
            if isinstance(clean, EarmarkError):
                raise clean
            heard = _heard(work, named, coded, identities)
            if isinstance(heard, EarmarkError):
                raise heard
            findings = named.task.score(clips, clean, heard, seed=work.config.seed)
        except EarmarkError as error:
            log.warning("%s on %s, %s: %s", named.spec, subset.name, system.name, error)
            findings = [
                Finding(metric, card.protocols[0], n=0, status="failed", reason=str(error)) for metric in card.metrics
            ]
        tick(1)
        yield from _named_rows(work, named, subset, [system], findings)


def _heard(work: CodecWork, named: NamedTask, clips: Sequence[Clip], digests: Sequence[str]) -> Heard | EarmarkError:
    """What the task's model made of clips: from the cache, or now."""
    ids = [[clip.id, clip.label, clip.group] for clip in clips]
    key = keys.fingerprint(
        "codec heard 2",
        named.spec,
        asdict(named.task.card),
        named.reads,
        ids,
        list(digests),
        __version__,
        keys.code_of(_CODE),
    )
    entry = work.cache.get(KIND, key)
    if entry is not None:
        work.count("tasks", cached=1)
        return Heard.from_arrays(entry.arrays)
    if not clips:
        return EarmarkError("The codec failed on every clip.")
    try:
        heard = named.task.listen(clips, progress=work.progress)
    except EarmarkError as error:
        return error
    work.cache.put(KIND, key, Entry({}, heard.to_arrays()))
    work.count("tasks", computed=1)
    return heard


def _named_rows(
    work: CodecWork, named: NamedTask, subset: Subset, systems: Sequence[CodecSystem], findings: Sequence[Finding]
) -> Iterator[Row]:
    for system in systems:
        inputs = keys.fingerprint(
            named.spec, system.key, work.delays[system.name].seconds, list(subset.digests), work.config.seed
        )[:32]
        for finding in findings:
            yield Row(
                suite=work.config.suite, subset=subset.name, system=system.name, version=__version__, inputs=inputs,
                **finding.cells(),
            )  # fmt: skip
