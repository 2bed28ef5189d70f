"""The steps of a codec run in the order in which they may begin: blocks of codecs side by side, each in three turns.

    encode all clips, in portions ── delays and promises ── measure all clips, in portions ── tasks hear, set by set

No clip of a codec is decoded before all are encoded: an encoder that is slow on purpose tells a decoder nothing. What
fails in a worker is tried again by the run itself, so that its rows are those of a run in one process.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from earmark.codecs.alignment import Delay
from earmark.codecs.clip_work import MOST_SECONDS
from earmark.codecs.runs._calibrate import choose_samples
from earmark.codecs.runs._code import blocks
from earmark.codecs.runs._ear import PORTION_CLIPS
from earmark.codecs.runs._listen import NamedTask, ear_of, fitting_subsets, sounds_of
from earmark.codecs.runs._steps import (
    ENCODE_CLIPS,
    HEAR_CLIPS,
    LIBRARIES,
    MEASURE_CLIPS,
    SETTLE_CODECS,
    ClipName,
    CodecName,
)
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import BLOB, CodecWork
from earmark.corpora.clips import length_of
from earmark.progress import progress_bar
from earmark.runs.clusters import DaskWorkers
from earmark.runs.executors import Answer, Done, Executor, JobAddress, Step, carry_out, keep_job
from earmark.runs.pool import Lost
from earmark.wording import counted

PORTION_SECONDS = 300.0
"""Seconds of sound through one codec in a step: about half a minute of work."""
TRIES = 3
"""How often a step is begun whose worker is lost; then the run does it itself."""

log = logging.getLogger("earmark.runs")


def executor_of(work: CodecWork) -> AbstractContextManager[Executor | None]:
    """The executor that a config names, where that is another than this process and its own."""
    config = work.config
    return DaskWorkers(config.scheduler, config.cluster, work.cache.url) if config.executor == "dask" else nullcontext()


def spread_coding(work: CodecWork, executor: Executor) -> None:
    """Let workers encode, settle and measure; what they come to lies in the cache."""
    work.cache.check_writable()
    with work.timed("workers"):
        _carry_out(work, executor, CodingAgenda(work, job_of(work), executor.workers), "code and measure")
    work.delays.clear()


def spread_hearing(work: CodecWork, executor: Executor, tasks: Sequence[NamedTask]) -> None:
    """Let workers hear for tasks; what they come to lies in the cache."""
    with work.timed("workers"):
        _carry_out(work, executor, HearingAgenda(work, job_of(work), tasks), "tasks")


def _carry_out(work: CodecWork, executor: Executor, agenda: CodingAgenda | HearingAgenda, title: str) -> None:
    many = f" on {counted(executor.workers, 'worker')}" if executor.workers > 1 else ""
    with progress_bar(work.progress, agenda.size, title + many, "clip") as tick:
        carry_out(executor, agenda, tick)


def job_of(work: CodecWork) -> JobAddress:
    """The job of a run, in the cache. Where this machine isolates codecs fully, no other may do with less."""
    values: dict[str, Any] = work.config.portable().model_dump(mode="json")
    unlike = ("executor", "scheduler", "cluster", "jobs", "report", "bootstrap", "tasks", "retention", "into", "cache")
    values = {name: value for name, value in values.items() if name not in unlike}
    return keep_job(work.cache, {**values, "isolation": work.confinement.mode}, LIBRARIES)


def clip_names(work: CodecWork) -> dict[str, ClipName]:
    """Every sound of the run once, as steps name it, by its hash."""
    names: dict[str, ClipName] = {}
    for subset in work.subsets:
        for clip, digest in subset.readable:
            names.setdefault(
                digest, ClipName(subset.suite, subset.name, clip.id, digest, work.samples[digest].category)
            )
    return names


class _Agenda:
    """What both kinds of agenda do about workers that are lost."""

    def __init__(self, work: CodecWork, job: JobAddress) -> None:
        self.work, self.job = work, job
        self._tries: Counter[str] = Counter()
        self._again: list[Step] = []

    def taken(self, step: Step, answer: Answer) -> bool:
        """Whether a step has come to its end; one that was lost is begun again, a few times."""
        if isinstance(answer, Done):
            for name, files in answer.facts["files"].items():
                self.work.files.setdefault(name, set()).update(files)
            self.work.elsewhere.update({name: int(amount) for name, amount in answer.counts.items()})
            return True
        if not isinstance(answer, Lost):
            raise answer
        log.warning("%s: %s", step.name, answer)
        self._tries[step.name] += 1
        if self._tries[step.name] < TRIES:
            self._again.append(step)
            return False
        return True

    def again(self) -> list[Step]:
        found, self._again = self._again, []
        return found


@dataclass
class _Block:
    """Codecs that are worked on together, and how far they are."""

    systems: list[CodecSystem]
    turns: list[str] = field(default_factory=lambda: ["encode", "settle", "measure"])
    under_way: int = 0

    @property
    def names(self) -> list[CodecName]:
        return [(system.name, system.key) for system in self.systems]


class CodingAgenda(_Agenda):
    """Clips through codecs."""

    def __init__(self, work: CodecWork, job: JobAddress, workers: int) -> None:
        super().__init__(work, job)
        self._workers = workers
        self._names = clip_names(work)
        self._suitable = choose_samples(list(work.samples.values()))
        self._blocks = [_Block(systems) for systems in blocks(work.systems)]
        self._block_of: dict[str, _Block] = {}

    @property
    def size(self) -> int:
        return 2 * len(self._names) * len(self.work.systems)

    def ready(self) -> list[Step]:
        steps = self.again()
        for block in self._blocks:
            while block.turns and not block.under_way:
                begun = getattr(self, f"_{block.turns.pop(0)}")(block)
                block.under_way = len(begun)
                self._block_of.update({step.name: block for step in begun})
                steps += begun
        return steps

    def note(self, step: Step, answer: Answer) -> None:
        if not self.taken(step, answer):
            return
        self._block_of[step.name].under_way -= 1
        if isinstance(answer, Done):
            self.work.settled.update(answer.facts.get("delays", {}))

    def _encode(self, block: _Block) -> list[Step]:
        for system in block.systems:
            self.work.read_coded(system)
        known = [self.work.coded[system.name].spans.get(BLOB, {}) for system in block.systems]
        return self._portions(block, "encode", ENCODE_CLIPS, [
            digest for digest in self._names
            if any(digest not in of for of in known) and length_of(self.work.samples[digest].clip) <= MOST_SECONDS
        ])  # fmt: skip

    def _settle(self, block: _Block) -> list[Step]:
        clips = [self._names[sample.digest] for sample in self._suitable]
        return [Step(SETTLE_CODECS, self.job, f"settle {_title(block)}", (block.names, clips), 0)]

    def _measure(self, block: _Block) -> list[Step]:
        delays = {name: self.work.settled[name] for name, _ in block.names if name in self.work.settled}
        if len(delays) < len(block.systems):  # nobody lived to find them: the run does
            return []
        for system in block.systems:
            self.work.delays[system.name] = Delay(*delays[system.name])
            self.work.read_coded(system)
            self.work.read_measured(system)
        lacking = [
            digest for digest in self._names
            if any(
                digest in self.work.coded[system.name].records and self.work.missing_names(system, digest)
                for system in block.systems
            )
        ]  # fmt: skip
        return self._portions(block, "measure", MEASURE_CLIPS, lacking, delays)

    def _portions(self, block: _Block, turn: str, do: str, digests: Sequence[str], *more: Any) -> list[Step]:
        """Portions of so many clips that a step takes a while, and so few that every worker has some."""
        most = max(1, -(-len(digests) // (2 * self._workers)))
        steps: list[Step] = []
        portion: list[ClipName] = []
        seconds = 0.0
        for place, digest in enumerate(digests):
            portion.append(self._names[digest])
            seconds += length_of(self.work.samples[digest].clip) * len(block.systems)
            if len(portion) >= most or seconds >= PORTION_SECONDS or place == len(digests) - 1:
                name = f"{turn} {_title(block)}, {counted(len(portion), 'clip')} from {place - len(portion) + 2}"
                size = len(portion) * len(block.systems)
                steps.append(Step(do, self.job, name, (block.names, portion, *more), size))
                portion, seconds = [], 0.0
        return steps


class HearingAgenda(_Agenda):
    """Clean and coded clips before the models of tasks. The delays of all codecs are known."""

    def __init__(self, work: CodecWork, job: JobAddress, tasks: Sequence[NamedTask]) -> None:
        super().__init__(work, job)
        self._steps = [step for named in tasks for step in self._of(named)]

    @property
    def size(self) -> int:
        return sum(step.size for step in self._steps)

    def _of(self, named: NamedTask) -> list[Step]:
        ear = ear_of(self.work, named)
        steps: list[Step] = []
        for subset in fitting_subsets(self.work, named):
            known = {clip.id: digest for clip, digest in subset.readable}
            category = self.work.categories[subset.name]
            for system, sounds in zip([None, *self.work.systems], sounds_of(self.work, subset), strict=True):
                lacking = [item.id for item in ear.lacking(sounds)]
                clips = [ClipName(subset.suite, subset.name, id, known[id], category) for id in lacking]
                codecs = [] if system is None else [(system.name, system.key)]
                delays = {name: list(self.work.delays[name]) for name, _ in codecs}
                most = len(clips) if ear.together else PORTION_CLIPS
                for start in range(0, len(clips), most or 1):
                    portion = clips[start : start + most]
                    by = "clean" if system is None else system.name
                    name = f"{named.spec} {subset.suite}/{subset.name} {by}, {counted(len(portion), 'clip')} from "
                    arguments = named.spec, codecs, portion, delays
                    steps.append(Step(HEAR_CLIPS, self.job, f"{name}{start + 1}", arguments, len(portion)))
        return steps

    def ready(self) -> list[Step]:
        steps, self._steps = [*self.again(), *self._steps], []
        return steps

    def note(self, step: Step, answer: Answer) -> None:
        self.taken(step, answer)


def _title(block: _Block) -> str:
    first, last = block.systems[0].name, block.systems[-1].name
    return first if len(block.systems) == 1 else f"{first} … {last}"
