"""Beyond the signal: tasks that hear the coded clips, each model listening once to the clean and to every coded set.

A coded clip is an ordinary clip that decodes what the codec sent and takes its delay out, so whatever hears clips hears
it. What a task heard of each clip is kept in the cache (`_ear`); scoring it is cheap and done afresh.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from earmark._version import __version__
from earmark.codecs import harness
from earmark.codecs.alignment import aligned
from earmark.codecs.cells import Confinement
from earmark.codecs.clip_work import AnyCodec, opened
from earmark.codecs.contract import ENCODE_ONLY, Waveform
from earmark.codecs.runs._ear import Ear, HeardClip
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import BLOB, ClipResult, CodecWork
from earmark.corpora.clips import Clip
from earmark.corpora.subsets import PreparedSubset
from earmark.errors import EarmarkError, UsageError, no_exit
from earmark.probes import Responses, Task, TaskCard, not_applicable, open_task
from earmark.progress import progress_bar
from earmark.runs import strangers
from earmark.runs.engine import Tick, reason_of
from earmark.runs.identity import Stage, fingerprint
from earmark.scores import Row

LISTEN = Stage(
    "listen",
    4,
    libraries=("numpy", "scipy", "soundfile", "soxr"),
    modules=(
        "codecs/alignment.py",
        "codecs/runs/_ear.py",
        "codecs/runs/_listen.py",
        "embedding/**/*.py",
        "probes/**/*.py",
    ),
)
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


class CodedClip(NamedTuple):
    """A clip that a codec managed: the clean clip, the hash of the coded sound, and how to get it."""

    clip: Clip
    identity: str
    coded: Callable[[], Clip | None]


def coded_clips(work: CodecWork, subset: PreparedSubset, system: CodecSystem) -> Iterator[CodedClip]:
    """The clips of a subset after a codec, under the ids of the clean ones; those that it failed on are not there."""
    delay = work.delays[system.name].seconds
    for result in work.results(subset, system):
        if result.known is not None and not system.card.encode_only:
            identity = fingerprint(system.key, result.digest, delay)
            yield CodedClip(result.clip, identity, functools.partial(_coded, work, system, result, identity))


def _coded(work: CodecWork, system: CodecSystem, result: ClipResult, identity: str) -> Clip | None:
    """A clip that decodes what the codec sent; None where that is no longer in the cache."""
    payload = work.coded[system.name].payload(result.digest or "", BLOB)
    if payload is None or result.known is None:
        return None
    delay = work.delays[system.name].seconds
    sound = CodedSound(system.codec, payload, delay, result.known.rate, result.known.samples, identity,
                       work.confinement)  # fmt: skip
    return replace(result.clip, path=None, start=None, end=None, samples=None, rate=None, make=sound, recipe="")


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
    rows: list[Row] = []
    for named in tasks:
        card = named.task.card
        subsets = fitting_subsets(work, named)
        ear = ear_of(work, named)
        ear.listen(item for subset in subsets for item in sounds_of(work, subset))
        with progress_bar(work.progress, len(work.subsets) * len(work.systems), f"{card.name}: score", "set") as tick:
            for subset in work.subsets:
                if subset in subsets:
                    rows += _rows_of(work, named, ear, subset, tick)
                else:
                    rows += _unfit_rows(work, named, subset)
                    tick(len(work.systems))
    return rows


def fitting_subsets(work: CodecWork, named: NamedTask) -> list[PreparedSubset]:
    """The subsets that a task is for."""
    categories = named.task.card.categories
    return [subset for subset in work.subsets if not categories or work.categories[subset.name] in categories]


def ear_of(work: CodecWork, named: NamedTask) -> Ear:
    """What a task's model has heard already, and how it hears more."""
    card = named.task.card
    if not getattr(named.task, "each_clip", False):  # a stranger's task may hear a clip by the others
        key = LISTEN.key(named.spec, card.name, card.model, card.version, named.reads)
        return Ear(work, named.task, key, together=True)
    # Tasks that hear with the same model in the same way share what it heard.
    model = named.spec.partition(":")[2] or f"{card.model}?{named.spec.partition('?')[2]}"
    hears = [type(named.task).listen.__qualname__, type(getattr(named.task, "extractor", None)).__qualname__]
    return Ear(work, named.task, LISTEN.key(model, hears, card.model, card.version, named.reads))


def sounds_of(work: CodecWork, subset: PreparedSubset) -> Iterator[list[HeardClip]]:
    """The clean clips of a subset, and those of each codec."""
    yield [HeardClip(clip.id, digest, functools.partial(_itself, clip)) for clip, digest in subset.readable]
    for system in work.systems:
        yield [HeardClip(clip.id, identity, coded) for clip, identity, coded in coded_clips(work, subset, system)]


def _itself(clip: Clip) -> Clip:
    return clip


def _unfit_rows(work: CodecWork, named: NamedTask, subset: PreparedSubset) -> Iterator[Row]:
    card = named.task.card
    reason = f"{card.name} is a task for {' and '.join(card.categories)}, not for {work.categories[subset.name]}"
    missing = [not_applicable(metric, card.protocols[0], reason) for metric in card.metrics]
    for system in work.systems:
        yield from _rows(work, named, subset, system, missing)


def _rows_of(work: CodecWork, named: NamedTask, ear: Ear, subset: PreparedSubset, tick: Tick) -> Iterator[Row]:
    card = named.task.card
    clips = [clip for clip, _ in subset.readable]
    clean, *coded = (_responses(ear, sounds) for sounds in sounds_of(work, subset))
    for system, heard in zip(work.systems, coded, strict=True):
        if system.card.encode_only:
            tick(1)
            yield from _rows(work, named, subset, system, _unheard(card))
            continue
        try:
            for side in (clean, heard):
                if isinstance(side, EarmarkError):
                    raise side
            assert isinstance(clean, Responses)
            assert isinstance(heard, Responses)
            with no_exit():
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


def _unheard(card: TaskCard) -> list[Row]:
    """Rows of a codec that gives nothing to hear."""
    reason = f"{ENCODE_ONLY}; `earmark run` measures its tokens as a representation"
    return [not_applicable(metric, card.protocols[0], reason) for metric in card.metrics]


def _responses(ear: Ear, sounds: Sequence[HeardClip]) -> Responses | EarmarkError:
    return ear.responses(sounds) if sounds else EarmarkError("The codec failed on every clip.")


def _rows(
    work: CodecWork, named: NamedTask, subset: PreparedSubset, system: CodecSystem, rows: Sequence[Row]
) -> Iterator[Row]:
    delay = work.delays[system.name].seconds
    inputs = fingerprint(named.spec, system.key, delay, list(subset.digests), work.config.seed)[:32]
    for row in rows:
        yield replace(
            row, suite=work.config.suite, subset=subset.name, system=system.name, version=__version__, inputs=inputs
        )
