"""Beyond the signal: tasks that hear the coded clips, each model listening once to the clean and to every coded set.

A coded clip is an ordinary clip that decodes what the codec sent and takes its delay out, so whatever hears clips hears
it. What a task heard is kept in the cache; scoring it is cheap and done afresh.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from earmark._version import __version__
from earmark.codecs import harness
from earmark.codecs.alignment import aligned
from earmark.codecs.cells import Confinement
from earmark.codecs.clip_work import AnyCodec, opened
from earmark.codecs.contract import Waveform
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import BLOB, CodecWork
from earmark.corpora.clips import Clip
from earmark.corpora.subsets import PreparedSubset
from earmark.errors import EarmarkError, UsageError
from earmark.probes import Responses, Task, not_applicable, open_task
from earmark.progress import progress_bar
from earmark.runs import strangers
from earmark.runs.engine import Tick, reason_of
from earmark.runs.identity import Stage, fingerprint
from earmark.runs.store import Entry
from earmark.scores import Row
from earmark.wording import counted

LISTEN = Stage(
    "listen",
    3,
    libraries=("numpy", "scipy", "soundfile", "soxr"),
    modules=("codecs/alignment.py", "codecs/runs/_listen.py", "embedding/**/*.py", "probes/**/*.py"),
)
KIND = "codec-heard"
ROOMS = ("earmark.probes.", "earmark.extractors.", "earmark.networks.")

log = logging.getLogger("earmark.runs")


class NamedTask(NamedTuple):
    """A task as it was asked for."""

    spec: str
    task: Task
    reads: str = ""  # the hash of what its model reads


@dataclass(frozen=True)
class CodedSound:
    """What a codec made of a clip, as a function without arguments: decoded anew wherever it is called."""

    codec: AnyCodec
    payload: bytes
    delay: float
    rate: int
    length: int
    identity: str
    confinement: Confinement

    def __call__(self) -> tuple[Waveform, int]:
        # The codec, safe to be called from the threads that decode clips.
        codec = harness.in_threads(opened(self.codec, self.confinement))
        decoded = harness.decode(codec, harness.unpack(self.payload), self.rate, self.length)
        return aligned(decoded, self.delay, self.rate, self.length), self.rate

    def digest(self) -> str:
        return self.identity


def coded_clips(work: CodecWork, subset: PreparedSubset, system: CodecSystem) -> list[Clip]:
    """The clips of a subset after a codec, under the ids of the clean ones; those that it failed on are not there."""
    delay = work.delays[system.name].seconds
    clips: list[Clip] = []
    for result in work.results(subset, system):
        payload = work.coded[system.name].payload(result.digest or "", BLOB)
        if result.known is None or payload is None:
            continue
        identity = fingerprint(system.key, result.digest, delay)
        sound = CodedSound(system.codec, payload, delay, result.known.rate, result.known.samples, identity,
                           work.confinement)  # fmt: skip
        clip = result.clip
        clips.append(Clip(clip.id, clip.label, clip.subset, clip.group, make=sound))
    return clips


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
    task, reads = strangers.opening(lambda: open_task(spec), given=re.split("[:?=&]", spec), rooms=ROOMS)
    return NamedTask(spec, task, reads.key)


def task_rows(work: CodecWork, tasks: Sequence[NamedTask]) -> list[Row]:
    """Every task on every subset and codec, in the order of the score table."""
    total = len(tasks) * len(work.subsets) * (1 + len(work.systems))
    with progress_bar(work.progress, total, f"tasks ({counted(total, 'set')} of clips)", "set") as tick:
        return [
            row for named in tasks for subset in work.subsets for row in _rows_of(work, named, subset, tick)
        ]  # fmt: skip


def _rows_of(work: CodecWork, named: NamedTask, subset: PreparedSubset, tick: Tick) -> Iterator[Row]:
    category = work.categories[subset.name]
    card = named.task.card
    if card.categories and category not in card.categories:
        tick(1 + len(work.systems))
        reason = f"{card.name} is a task for {' and '.join(card.categories)}, not for {category}"
        missing = [not_applicable(metric, card.protocols[0], reason) for metric in card.metrics]
        for system in work.systems:
            yield from _rows(work, named, subset, system, missing)
        return
    clips = [clip for clip, _ in subset.readable]
    clean = _heard(work, named, clips, [digest for _, digest in subset.readable])
    tick(1)
    for system in work.systems:
        coded = coded_clips(work, subset, system)
        try:
            if isinstance(clean, EarmarkError):
                raise clean
            heard = _heard(work, named, coded, [clip.digest() for clip in coded])
            if isinstance(heard, EarmarkError):
                raise heard
            rows = named.task.score(clips, clean, heard, seed=work.config.seed)
        except Exception as error:  # a stranger's task may raise anything
            reason = reason_of(error)
            log.warning("%s on %s, %s: %s", named.spec, subset.name, system.name, reason)
            rows = [
                Row(metric=metric, protocol=card.protocols[0], n=0, status="failed", reason=reason)
                for metric in card.metrics
            ]
        tick(1)
        yield from _rows(work, named, subset, system, rows)


def _heard(
    work: CodecWork, named: NamedTask, clips: Sequence[Clip], digests: Sequence[str]
) -> Responses | EarmarkError:
    """What the task's model made of clips: from the cache, or now."""
    card = named.task.card
    ids = [[clip.id, clip.label, clip.group] for clip in clips]
    key = LISTEN.key(named.spec, card.name, card.model, card.version, named.reads, ids, list(digests))
    entry = work.cache.get(KIND, key)
    if entry is not None:
        work.count("tasks", cached=1)
        return Responses.from_arrays(entry.arrays)
    if not clips:
        return EarmarkError("The codec failed on every clip.")
    try:
        heard = named.task.listen(clips, progress=work.progress)
    except EarmarkError as error:
        return error
    except Exception as error:  # a stranger's task may raise anything
        return EarmarkError(reason_of(error))
    work.cache.put(KIND, key, Entry({}, heard.to_arrays()))
    work.count("tasks", computed=1)
    return heard


def _rows(
    work: CodecWork, named: NamedTask, subset: PreparedSubset, system: CodecSystem, rows: Sequence[Row]
) -> Iterator[Row]:
    delay = work.delays[system.name].seconds
    inputs = fingerprint(named.spec, system.key, delay, list(subset.digests), work.config.seed)[:32]
    for row in rows:
        yield replace(
            row, suite=work.config.suite, subset=subset.name, system=system.name, version=__version__, inputs=inputs
        )
