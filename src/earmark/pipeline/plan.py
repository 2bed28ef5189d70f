"""What a run would do: which steps are done already, which are to run, and about how long they take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from earmark.corpora.clips import Clip
from earmark.embed.hearing import hear
from earmark.extractors.contract import Extractor
from earmark.pipeline import embedding, frames, layers, steps
from earmark.pipeline.cache import Cache
from earmark.pipeline.config import RunConfig
from earmark.pipeline.models import Model, System
from earmark.pipeline.packs import Index
from earmark.pipeline.prepare import Failure, Subset
from earmark.tables import aligned
from earmark.wording import counted

PROBE_CLIPS = 3
# Measured on one core, to the right order of magnitude: a plan says minutes or hours, not seconds.
_SECONDS_PER_MULTIPLICATION = 6e-11
_SECONDS_PER_PAIR = 6e-8
_SECONDS_PER_PERMUTATION_AND_CLIP = 4e-7


@dataclass(frozen=True)
class Line:
    """One step of a plan. `seconds` is None where nothing is known yet.

    `again` are the clips among `total` that failed in an earlier run: each run tries them once more.
    """

    step: str
    subset: str
    what: str
    todo: int
    total: int
    unit: str
    seconds: float | None
    again: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        new = self.total - len(self.again)
        if not self.todo:
            return "cached" if new or not self.total else "failed before"
        return "to run" if self.todo == new else "partly cached"


def models_of(systems: Iterable[System], config: RunConfig) -> dict[str, tuple[Model, tuple[str, ...]]]:
    """Each distinct model with every part that some system needs of it: one forward pass serves them all."""
    found: dict[str, tuple[Model, tuple[str, ...]]] = {}
    extra = frames.parts(config.dtw.stride) if config.dtw is not None else ()
    for system in systems:
        model, parts = found.get(system.model.identity, (system.model, ()))
        own = [layers.part_of(system.layer, part) for part in extra]
        found[system.model.identity] = (model, tuple(dict.fromkeys([*parts, *system.parts, *own])))
    return found


def make_plan(
    config: RunConfig,
    subsets: Sequence[Subset],
    systems: Sequence[System],
    indexes: Mapping[tuple[str, str, str], Index],
    cache: Cache,
    *,
    failures: Sequence[Failure] = (),
    threads: int = 1,
) -> list[Line]:
    """The steps of a run in order. A model without history is tried on a few clips, to learn its pace.

    `failures` of an earlier run tell which clips will not have vectors.
    """
    lines: list[Line] = []
    models = models_of(systems, config)
    if "embed" in config.steps:
        for identity, (model, parts) in models.items():
            known = {key[1:]: indexes[key] for key in indexes if key[0] == identity}
            lines += _embed_lines(config, subsets, model, parts, known, failures)
    if "evaluate" in config.steps:
        for subset in subsets:
            for system in systems:
                failed = _failed(failures, subset, models[system.model.identity][0])
                index = indexes[system.model.identity, subset.suite, subset.name]
                vectors = steps.vectors_of(subset, system, index, assume=True, failed=failed)
                lines += _evaluate_lines(config, vectors, index, cache, threads)
    return lines


def _embed_lines(
    config: RunConfig,
    subsets: Sequence[Subset],
    model: Model,
    parts: Sequence[str],
    indexes: Mapping[tuple[str, str], Index],
    failures: Sequence[Failure],
) -> Iterator[Line]:
    pace: float | None = None
    for subset in subsets:
        index = indexes[subset.suite, subset.name]
        todo = embedding.missing(subset, index, parts, config.batch)
        failed = _failed(failures, subset, model)
        again = tuple(clip.id for window in todo.windows for clip, _ in window if clip.id in failed)
        new = todo.clips - len(again)
        if new and pace is None:
            pace = pace_of(model, index, subset)
        seconds = 0.0 if not new else None if pace is None else pace * new
        yield Line("embed", subset.name, model.name, new, todo.clips + todo.cached, "clips", seconds, again)


def _failed(failures: Iterable[Failure], subset: Subset, model: Model) -> set[str]:
    """Ids of the clips of a subset that failed before, for every model or for this one."""
    where = subset.suite, subset.name
    return {one.id for one in failures if (one.suite, one.subset) == where and one.extractor in ("", model.name)}


def _evaluate_lines(
    config: RunConfig, vectors: steps.Vectors, index: Index, cache: Cache, threads: int
) -> Iterator[Line]:
    subset, system, points = vectors.subset, vectors.system, len(vectors.rows)
    jobs = list(steps.jobs_of(vectors, config))
    todo = [job for job in jobs if cache.peek(steps.SCORES_KIND, job.key) is None]
    if vectors.pca_key is not None:
        reduce = int(bool(todo) and cache.peek(steps.PCA_KIND, vectors.pca_key) is None)
        width = _width(replace(system, pca=None), index)
        seconds = reduce * points * width * min(points, width) * _SECONDS_PER_MULTIPLICATION / threads
        yield Line("pca", subset.name, system.name, reduce, 1, "reductions", seconds)
    cost = cost_of(points, _width(system, index), config.permutations, threads)
    yield Line("evaluate", subset.name, system.name, len(todo), len(jobs), "measurements", cost * len(todo))


def pace_of(model: Model, index: Index, subset: Subset) -> float | None:
    """Seconds per clip: from packs made before, else from the first clips of the subset; None if that fails."""
    if index.clips:
        return index.spent / index.clips
    clips = [clip for clip, _ in subset.readable[:PROBE_CLIPS]]
    if model.learns or not clips:
        return None
    try:
        extractor = model.open()
        _try(extractor, clips[:1])  # the first call compiles and loads
        started = time.perf_counter()
        _try(extractor, clips)
        return (time.perf_counter() - started) / len(clips)
    except Exception:  # a plan does not fail because a clip does
        return None


def _try(extractor: Extractor, clips: Sequence[Clip]) -> None:
    for heard in hear([clips], extractor):
        for _ in heard:
            pass


def cost_of(points: int, width: int, permutations: int, threads: int) -> float:
    """About how many seconds one distance takes."""
    pairs = float(points) ** 2
    work = pairs * width * _SECONDS_PER_MULTIPLICATION + pairs * _SECONDS_PER_PAIR
    return (work + permutations * points * _SECONDS_PER_PERMUTATION_AND_CLIP * 10) / max(1, threads)


def _width(system: System, index: Index) -> int:
    if system.pca is not None:
        return system.pca
    longest = [
        max((max(lengths.get(part, [0])) for lengths in index.lengths.values()), default=0) for part in system.parts
    ]
    return sum(longest) or (system.model.card.dimension or 512) * (100 if "flatten" in system.pooling else 1)


def plan_text(lines: Sequence[Line], cache_url: str) -> str:
    """The plan for people: a line for each step, then the total."""
    cells = [
        [
            line.step,
            line.subset,
            line.what,
            _amount(line),
            line.state,
            "" if not line.todo else duration(line.seconds),
        ]
        for line in lines
    ]
    head = ["step", "subset", "what", "amount", "state", "about"]
    text = aligned([head, *cells])
    known = [line.seconds for line in lines if line.seconds is not None]
    unknown = any(line.seconds is None for line in lines)
    todo = sum(1 for line in lines if line.todo)
    total = "nothing to compute" if not todo else f"{'at least ' if unknown else 'about '}{duration(sum(known))}"
    said = [f"{todo} of {counted(len(lines), 'step')} to run, {total}; cache: {cache_url}"]
    again = {(line.subset, clip) for line in lines for clip in line.again}
    if again:
        said.append(f"{counted(len(again), 'clip')} failed before and will be tried again")
    return "\n".join([*text, "", *said])


def _amount(line: Line) -> str:
    return f"{line.todo} of {line.total} {line.unit}"


def duration(seconds: float | None) -> str:
    """Seconds as a person says them: 4 s, 12 min, 3.5 h."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
