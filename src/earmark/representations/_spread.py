"""The steps of a run in the order in which they may begin, and what came of them.

    first window of a model ── first window of each subset ── all other windows ── the subset's systems are measured

A model that fails on its first clips is not tried on all the others by a hundred workers at once: until it has managed
a clip of a subset its windows go out one at a time, and after HOPELESS failures none is left to go. Until the number of
its features is known, one window goes out at all.

What is lost with its worker is tried again window by window, then clip by clip; the clip with which a worker is lost
again fails, and the others are kept.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from earmark.corpora.subsets import PreparedSubset
from earmark.embedding import hearing
from earmark.errors import InputError
from earmark.representations import _embed as embed
from earmark.representations import _steps as steps
from earmark.representations._record import Work
from earmark.representations._systems import Model, System, parts_by_model
from earmark.runs.executors import Answer, Done, Job, JobAddress, Step, adopt_job, keep_job
from earmark.runs.pool import Lost
from earmark.runs.shards import Share
from earmark.wording import counted

STEP_SECONDS = 30.0
"""What a step should take: much longer than handing it out, much shorter than what a lost worker may cost."""
MOST_WINDOWS = 16
SHARE_WINDOWS = 4
"""Windows that follow each other and belong to one shard."""
TRIES = 3
"""How often a measurement is begun whose worker is lost."""

log = logging.getLogger("earmark.runs")

Window = list[int]
"""Places of clips among the readable ones of a subset."""


@dataclass
class Errand:
    """A model and the clips of a subset that it is still to hear."""

    model: Model
    subset: PreparedSubset
    parts: tuple[str, ...]
    windows: deque[Window]
    managed: bool
    first: bool = False  # its first window is the one that is heard twice
    failed: int = 0
    under_way: int = 0
    alone: list[list[Window]] = field(default_factory=list)  # what was lost, to be tried again

    @property
    def open(self) -> bool:
        return bool(self.windows or self.under_way or self.alone)

    @property
    def hopeless(self) -> bool:
        return self.failed >= embed.HOPELESS and not self.managed


def windows_of(
    subset: PreparedSubset, todo: embed.Todo, batch: int, refused: Collection[str] = ()
) -> list[tuple[int, Window]]:
    """What is missing of a subset and was not refused, as numbers of windows and places in them."""
    missing = {id(clip) for window in todo.windows for clip, digest in window if digest not in refused}
    cuts = hearing.windows(subset.seconds, batch)
    clips = [id(clip) for clip, _ in subset.readable]
    found = [(number, [place for place in range(cut.start, cut.stop) if clips[place] in missing])
             for number, cut in enumerate(cuts)]  # fmt: skip
    return [(number, window) for number, window in found if window]


class Spread:
    """An agenda: what a run has to embed, to measure and to probe, as steps."""

    def __init__(self, work: Work, wanted: tuple[str, ...], workers: int, share: Share | None = None) -> None:
        self._work, self._wanted, self.workers, self._share = work, wanted, workers, share
        self.left = 0  # systems of this share whose vectors are not all there
        self.errands: list[Errand] = []
        self.features: dict[str, int] = {}  # by the key of a model's vectors
        self.pace = 0.0  # seconds for a window
        self._begun: dict[str, tuple[Errand, list[Window]]] = {}
        self._measured: set[tuple[str, str, str]] = set()
        self._tries: dict[str, int] = {}
        self._again: list[Step] = []
        self._lost: list[str] = []
        if "embed" in wanted:
            self._list_errands()

    def _list_errands(self) -> None:
        config, piece = self._work.config, 0
        for model, parts in parts_by_model(self._work.systems, config).values():
            for subset in self._work.subsets:
                records = self._work.records_of(model, subset)
                todo = embed.missing(subset, records, parts, config.batch)
                together = len(subset.clips) if model.learns else SHARE_WINDOWS
                refused = self._work.refused.get((model.identity, subset.suite, subset.name), {})
                found = windows_of(subset, todo, config.batch, refused)
                if self._share is not None:
                    found = [(place, window) for place, window in found if self._share.takes(piece + place // together)]
                piece += -(-len(hearing.windows(subset.seconds, config.batch)) // together)
                known = (about["features"] for about in records.about.values() if "features" in about)
                key = model.key(subset)
                self.features[key] = max(self.features.get(key, 0), next(known, 0))
                # Whoever has the first window hears its first clips twice.
                first = bool(found) and (found[0][0] == 0 if self._share is not None else not records.computed)
                first = first and all(errand.model.key(errand.subset) != key for errand in self.errands)
                windows, failed = deque(window for _, window in found), sum(one.of_model for one in refused.values())
                errand = Errand(model, subset, todo.parts, windows, bool(todo.cached), first, failed)
                if errand.hopeless:
                    windows.clear()
                self.errands.append(errand)

    @cached_property
    def keys(self) -> dict[tuple[str, str], str]:
        """Where the clips of each subset lie in the cache."""
        subsets = self._work.subsets
        return {(subset.suite, subset.name): steps.keep_subset(self._work.cache, subset) for subset in subsets}

    @cached_property
    def job(self) -> JobAddress:
        return _job_of(self._work, self.keys)

    @property
    def size(self) -> int:
        """Clips to embed and systems to measure."""
        measuring = len(self._work.subsets) * len(self._work.systems) if self._measures else 0
        return sum(len(window) for errand in self.errands for window in errand.windows) + measuring

    @property
    def _measures(self) -> bool:
        return any(step in self._wanted for step in ("evaluate", "probe"))

    # --- steps that may begin --------------------------------------------------------------------------------

    def ready(self) -> list[Step]:
        found, self._again = self._again, []
        for errand in self.errands:
            key = errand.model.key(errand.subset)
            while errand.alone:
                found.append(self._step(errand, errand.alone.pop()))
            if not errand.windows:
                continue
            if errand.model.learns:  # it learns from all clips before it hears the first
                if not self.features[key] and self._hears(key):
                    continue  # another is learning the same
                found.append(self._step(errand, list(errand.windows)))
                errand.windows.clear()
            elif errand.managed and self.features[key]:
                most, windows = self._at_once(errand), list(errand.windows)
                errand.windows.clear()
                found += [self._step(errand, windows[start : start + most]) for start in range(0, len(windows), most)]
            elif not errand.under_way and (self.features[key] or not self._hears(key)):
                found.append(self._step(errand, [errand.windows.popleft()]))
        return found + (self._measurements() if self._measures else [])

    def _at_once(self, errand: Errand) -> int:
        """Windows in a step: so many that it takes a while, and so few that every worker has some."""
        by_time = round(STEP_SECONDS / self.pace) if self.pace else MOST_WINDOWS
        share = -(-len(errand.windows) // (2 * max(1, self.workers)))
        return max(1, min(by_time, share, MOST_WINDOWS))

    def _hears(self, key: str) -> bool:
        return any(errand.under_way for errand in self.errands if errand.model.key(errand.subset) == key)

    def _step(self, errand: Errand, windows: list[Window]) -> Step:
        subset, model, first = errand.subset, errand.model, errand.first
        errand.first = False
        clips = sum(map(len, windows))
        name = f"embed {subset.suite}/{subset.name} {model.name}, {counted(clips, 'clip')} from {windows[0][0] + 1}"
        before = first, errand.managed, errand.failed, self.features[model.key(subset)]
        key = self.keys[subset.suite, subset.name]
        school = [self.keys[taught.suite, taught.name] for taught in model.school]
        arguments = model.name, model.identity, key, list(errand.parts), windows, before, school
        self._tries[name] = self._tries.get(name, 0) + 1
        if self._tries[name] > 1:
            name += f", attempt {self._tries[name]}"
        self._begun[name] = errand, windows
        errand.under_way += 1
        return Step(steps.EMBED_WINDOWS, self.job, name, arguments, clips)

    def _measurements(self) -> list[Step]:
        found, piece = [], -1
        for subset in self._work.subsets:
            for system in self._work.systems:
                key, piece = (subset.suite, subset.name, system.name), piece + 1
                if key not in self._measured and not self._awaited(subset, system.model):
                    self._measured.add(key)
                    if self._share is not None and not self._share.takes(piece):
                        continue
                    if self._share is not None and not self._complete(subset, system):
                        self.left += 1
                        continue
                    arguments = (
                        self.keys[subset.suite, subset.name], steps.system_arguments(system, subset), self._wanted
                    )  # fmt: skip
                    name = f"measure {subset.suite}/{subset.name} {system.name}"
                    found.append(Step(steps.MEASURE_SYSTEM, self.job, name, arguments))
        return found

    def _awaited(self, subset: PreparedSubset, model: Model) -> bool:
        return any(
            errand.open for errand in self.errands
            if errand.subset is subset and errand.model.identity == model.identity
        )  # fmt: skip

    def _complete(self, subset: PreparedSubset, system: System) -> bool:
        """Whether every clip of a subset has its vectors, or is known to have failed."""
        refused = self._work.refused.get((system.model.identity, subset.suite, subset.name), {})
        known = self._work.records_of(system.model, subset).having(system.parts)
        return all(digest in known or digest in refused for _, digest in subset.readable)

    # --- what came of them -----------------------------------------------------------------------------------

    def note(self, step: Step, answer: Answer) -> None:
        if isinstance(answer, Exception) and not isinstance(answer, Lost):
            raise answer
        if step.name in self._begun:
            self._note_clips(step, answer)
        elif isinstance(answer, Done):
            self._work.elsewhere.update(answer.facts["keys"])
            if answer.counts["reduced"]:
                self._work.count("pca", computed=answer.counts["reduced"])
        else:
            self._measure_again(step, answer)

    def _note_clips(self, step: Step, answer: Answer) -> None:
        errand, windows = self._begun.pop(step.name)
        errand.under_way -= 1
        whose = errand.model.identity, errand.subset.suite, errand.subset.name
        refused = self._work.refused.setdefault(whose, {})
        if isinstance(answer, Done):
            computed = int(answer.counts["computed"])
            self._work.embedded[whose] += computed
            errand.managed = errand.managed or bool(computed)
            key = errand.model.key(errand.subset)
            self.features[key] = self.features[key] or answer.facts["features"]
            self.pace = max(self.pace, answer.seconds / len(windows))
            new = {digest: embed.Refusal(*refusal) for digest, refusal in answer.facts["refused"].items()}
            errand.failed += sum(refusal.of_model for refusal in new.values())
            refused.update(new)
            if errand.hopeless:
                errand.windows.clear()
            return
        log.warning("%s: %s", step.name, answer)
        if len(windows) > 1 and not errand.model.learns:
            errand.alone += [[window] for window in reversed(windows)]
        elif len(windows[0]) > 1 and not errand.model.learns:
            errand.alone += [[[place]] for place in reversed(windows[0])]
        else:
            readable = errand.subset.readable
            reason = f"the process that worked on it ended again and again ({answer})"
            places = [place for window in windows for place in window]
            refused.update({readable[place][1]: embed.Refusal(reason, True) for place in places})
            errand.failed += len(places)

    def _measure_again(self, step: Step, lost: Exception) -> None:
        log.warning("%s: %s", step.name, lost)
        self._tries[step.name] = self._tries.get(step.name, 0) + 1
        if self._tries[step.name] < TRIES:
            self._again.append(step)
        else:
            self._lost.append(f"{step.name}: {lost}")

    def close(self) -> None:
        """Say what nobody could measure."""
        if self._lost:
            raise InputError(
                f"{counted(len(self._lost), 'step')} could not be done, because every worker that tried ended (first: "
                f"{self._lost[0]}): give workers more memory; what is finished stays, and the same command goes on."
            )


def _job_of(work: Work, keys: dict[tuple[str, str], str]) -> JobAddress:
    """The job of a run, in the cache; steps that are done in this process find all they need opened."""
    values: dict[str, Any] = work.config.portable().model_dump(mode="json")
    unlike = ("executor", "scheduler", "cluster", "into", "steps")  # say nothing of what a step does
    values = {name: value for name, value in values.items() if name not in unlike}
    address = keep_job(work.cache, values, steps.LIBRARIES)
    kept: dict[Any, Any] = {("subset", keys[subset.suite, subset.name]): subset for subset in work.subsets}
    kept |= {("model", system.model.name): system.model for system in work.systems}
    adopt_job(address, Job(work.cache, values, kept={**kept, "config": work.config}))
    return address
