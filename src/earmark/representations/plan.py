"""What a representation run would do, and about how long it takes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from earmark.corpora.subsets import PreparedSubset
from earmark.embedding.hearing import hear, settle_rate
from earmark.representations import _embed as embed
from earmark.representations import _evaluate as evaluate
from earmark.representations import _probe as probing
from earmark.representations._record import Work
from earmark.representations._systems import Model, System, parts_by_model
from earmark.runs.engine import Failure
from earmark.runs.packs import Records
from earmark.runs.plan import PlannedStep

PROBE_CLIPS = 3
# Measured on one core, to the right order of magnitude: a plan says minutes or hours, not seconds.
_SECONDS_PER_MULTIPLICATION = 6e-11
_SECONDS_PER_PAIR = 6e-8
_SECONDS_PER_PERMUTATION_AND_CLIP = 4e-6


def make_plan(work: Work, failures: Sequence[Failure] = (), threads: int = 1) -> list[PlannedStep]:
    """The steps of a run in order. A model without history is tried on a few clips, to learn its pace.

    `failures` of an earlier run tell which clips will not have vectors.
    """
    steps: list[PlannedStep] = []
    if "embed" in work.config.steps:
        for model, parts in parts_by_model(work.systems, work.config).values():
            steps += _embed_steps(work, model, parts, failures)
    if "evaluate" in work.config.steps:
        for subset in work.subsets:
            for system in work.systems:
                steps += _evaluate_steps(work, subset, system, _failed(failures, subset, system.model), threads)
    if "probe" in work.config.steps:
        for subset in work.subsets:
            for system in work.systems:
                steps.append(_probe_step(work, subset, system, _failed(failures, subset, system.model)))
    return steps


def _probe_step(work: Work, subset: PreparedSubset, system: System, failed: set[str]) -> PlannedStep:
    """How many probes are to be done; how long classifiers take to learn nobody knows before."""
    records = work.records_of(system.model, subset)
    vectors = evaluate.vectors_of(subset, system, records, assume=True, failed=failed)
    jobs = list(probing.probings_of(vectors, work.config))
    todo = sum(work.cache.peek(probing.PROBES_KIND, job.key) is None for job in jobs)
    return PlannedStep("probe", subset.name, system.name, todo, len(jobs), "probes", 0.0 if not todo else None)


def _embed_steps(work: Work, model: Model, parts: Sequence[str], failures: Sequence[Failure]) -> Iterator[PlannedStep]:
    pace: float | None = None
    for subset in work.subsets:
        records = work.records_of(model, subset)
        todo = embed.missing(subset, records, parts, work.config.batch)
        failed = _failed(failures, subset, model)
        again = tuple(clip.id for window in todo.windows for clip, _ in window if clip.id in failed)
        new = todo.clips - len(again)
        if new and pace is None:
            pace = _pace_of(model, records, subset)
        seconds = 0.0 if not new else None if pace is None else pace * new
        yield PlannedStep("embed", subset.name, model.name, new, todo.clips + todo.cached, "clips", seconds, again)


def _failed(failures: Iterable[Failure], subset: PreparedSubset, model: Model) -> set[str]:
    """Ids of the clips of a subset that failed before, for every model or for this one."""
    key = subset.suite, subset.name
    return {
        failure.id
        for failure in failures
        if (failure.suite, failure.subset) == key and failure.extractor in ("", model.name)
    }


def _evaluate_steps(
    work: Work, subset: PreparedSubset, system: System, failed: set[str], threads: int
) -> Iterator[PlannedStep]:
    records = work.records_of(system.model, subset)
    vectors = evaluate.vectors_of(subset, system, records, assume=True, failed=failed)
    points = len(vectors.rows)
    jobs = list(evaluate.measurements_of(vectors, work.config))
    todo = sum(work.cache.peek(evaluate.SCORES_KIND, job.key) is None for job in jobs)
    if vectors.pca_key is not None:
        reduce = int(bool(todo) and work.cache.peek(evaluate.PCA_KIND, vectors.pca_key) is None)
        width = _width(replace(system, pca=None), records)
        seconds = reduce * points * width * min(points, width) * _SECONDS_PER_MULTIPLICATION / threads
        yield PlannedStep("pca", subset.name, system.name, reduce, 1, "reductions", seconds)
    pairs = float(points) * min(points, work.config.queries or points)
    cost = pairs * _width(system, records) * _SECONDS_PER_MULTIPLICATION + pairs * _SECONDS_PER_PAIR
    cost += work.config.permutations * points * _SECONDS_PER_PERMUTATION_AND_CLIP
    seconds = cost / max(1, threads) * todo
    yield PlannedStep("evaluate", subset.name, system.name, todo, len(jobs), "measurements", seconds)


def _pace_of(model: Model, records: Records, subset: PreparedSubset) -> float | None:
    """Seconds per clip: from packs made before, else from the first clips of the subset; None if that fails."""
    if records.computed:
        return records.spent / records.computed
    clips = [clip for clip, _ in subset.readable[:PROBE_CLIPS]]
    if model.learns or not clips:
        return None
    try:
        extractor = settle_rate(model.open(), clips)
        for tried in (clips[:1], clips):  # the first call compiles and loads
            started = time.perf_counter()
            for heard in hear([tried], extractor):
                list(heard)
        return (time.perf_counter() - started) / len(clips)
    except Exception:  # a plan does not fail because a clip does
        return None


def _width(system: System, records: Records) -> int:
    if system.pca is not None:
        return system.pca
    longest = sum(records.longest(part) for part in system.parts)
    return longest or (system.model.card.dimension or 512) * (100 if "flatten" in system.pooling else 1)
