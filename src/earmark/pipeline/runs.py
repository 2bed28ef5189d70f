"""A whole run: prepare → embed → pca → evaluate → report, from a config to a folder of results."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from earmark._version import __version__
from earmark.atomic import write_whole
from earmark.corpora.clips import Corpus, groups_of
from earmark.errors import EarmarkError, InputError
from earmark.pipeline import comparisons, embedding, folder, models, packs, sequences, steps
from earmark.pipeline import plan as planning
from earmark.pipeline.cache import open_cache
from earmark.pipeline.config import RunConfig
from earmark.pipeline.copies import note_on_copies, remark_on_copies, settle_copies
from earmark.pipeline.models import Model, System
from earmark.pipeline.packs import Index
from earmark.pipeline.prepare import Failure, Subset, clip_count, open_corpora, prepare
from earmark.pipeline.record import Work, keep_finished, placed, record_of, write_record, write_report, write_tables
from earmark.progress import progress_bar
from earmark.report.reading import listed
from earmark.scores import Row, Scores, load_scores
from earmark.scores.spelling import with_noise
from earmark.wording import counted
from earmark.workers import thread_count

log = logging.getLogger("earmark.pipeline")


@dataclass(frozen=True)
class Run:
    """What a run came to. `counts` says, per step, how much was computed, found in the cache, and failed."""

    scores: Scores
    folder: Path
    failures: tuple[Failure, ...]
    counts: dict[str, dict[str, float]]
    report: Path | None
    notes: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    """What the scores say, as the report opens: a sentence each."""
    lost: tuple[str, ...] = ()
    """A sentence for each system that lost more than half of the clips of a subset; a command ends with status 1."""


def run(
    config: RunConfig | Mapping[str, Any] | str | Path,
    *,
    corpora: Sequence[Corpus] | None = None,
    progress: bool = False,
) -> Run:
    """Do what a config says and return the scores and where they lie.

    Args:
        config: A RunConfig, a mapping with its keys, or a YAML file.
        corpora: Stand in for those that the config names, one for each entry, when they exist only in memory.
        progress: Whether bars on stderr show how far the work is.

    >>> earmark.run({"corpus": "sounds/", "extractors": ["logmel"], "into": "run"}).scores.value("P@1")
    """
    config = RunConfig.resolve(config)
    place = folder.make_folder(config.into)
    with folder.logging_to(place), open_cache(config.cache.url, config.cache.policy) as cache:
        if config.steps == ["report"]:
            return _report_only(place)
        before = folder.read_finished(place) if "evaluate" not in config.steps else None
        folder.write_text(place / "config.yaml", config.portable().to_yaml())
        log.info("earmark %s: %s into %s, cache %s", __version__, ", ".join(config.steps), place, cache.url)
        work = Work(config, cache, list(corpora or open_corpora(config.corpus)), progress)
        try:
            scores = _steps(work, place)
        except EarmarkError as error:
            log.error("stopped: %s", error)
            raise
        if before is not None:
            keep_finished(work, before)
        write_record(work, place)
        report = _report(work, place) if "report" in config.steps and scores.rows else None
        write_record(work, place)
        log.info("finished: %d rows, %d failures", len(scores), len(work.failures))
        answer, lost = comparisons.told(record_of(work), scores, place) if scores.rows else ((), ())
    return Run(scores, place, tuple(work.failures), work.counts, report, tuple(work.notes), answer, lost)


def plan(
    config: RunConfig | Mapping[str, Any] | str | Path,
    *,
    corpora: Sequence[Corpus] | None = None,
    progress: bool = False,
) -> tuple[list[planning.Line], str]:
    """The steps of a run, what of them is cached, and an estimate; nothing is computed. Also the cache's URL."""
    config = RunConfig.resolve(config)
    with open_cache(config.cache.url, config.cache.policy) as cache:
        work = Work(config, cache, list(corpora or open_corpora(config.corpus)), progress)
        _prepare(work)
        lines = planning.make_plan(
            config,
            work.subsets,
            work.systems,
            work.indexes,
            cache,
            failures=folder.read_failures(Path(config.into)),
            threads=thread_count(config.threads),
        )
        return lines, cache.url


# --- the steps -----------------------------------------------------------------------------------------------


def _steps(work: Work, place: Path) -> Scores:
    wanted = work.config.steps
    with _timed(work, "prepare"):
        _prepare(work)
    if "embed" in wanted:
        with _timed(work, "embed"):
            _embed(work)
    else:
        work.failures += [known for known in folder.read_failures(place) if known.step == "embed"]
    _take_remarks(work)
    scores = Scores()
    _take_pictures(work, place)
    if "evaluate" in wanted:
        _refuse_gaps(work)
        work.notes += _groupless(work)
        with _timed(work, "evaluate"):
            scores = Scores(tuple(_evaluate(work)))
            scores.write(place / "scores.csv")
            _compare(work, scores, place)
    write_tables(work, place)
    return scores


def _prepare(work: Work) -> None:
    """Open models and corpora, hash every clip, and read what the cache holds of their vectors."""
    work.systems = models.systems_of(work.config, work.cache)
    wanted = [entry.subsets for entry in work.config.corpus]
    with progress_bar(work.progress, clip_count(work.corpora, wanted), "prepare", "clip") as tick:
        work.subsets = prepare(work.corpora, wanted, workers=work.workers, tick=tick)
    work.subsets = settle_copies(work.subsets, work.config.copies, threads=work.workers)
    work.notes += [note for corpus in work.corpora for note in corpus.notes]
    work.notes += [note for subset in work.subsets for note in note_on_copies(subset)]
    work.failures += [failure for subset in work.subsets for failure in subset.failures]
    work.count("prepare", clips=sum(len(subset.clips) for subset in work.subsets), failed=len(work.failures))
    read: dict[str, Index] = {}
    for system in work.systems:
        for subset in work.subsets:
            key = system.model.key(subset)
            if key not in read:
                read[key] = packs.read_index(work.cache, key)
            work.indexes[system.model.identity, subset.suite, subset.name] = read[key]


def _embed(work: Work) -> None:
    todo = {
        (identity, subset.suite, subset.name): embedding.missing(
            subset, work.index(model, subset), parts, work.config.batch
        )
        for identity, (model, parts) in planning.models_of(work.systems, work.config).items()
        for subset in work.subsets
    }
    with progress_bar(work.progress, sum(one.clips for one in todo.values()), "embed", "clip") as tick:
        for identity, (model, _) in planning.models_of(work.systems, work.config).items():
            for subset in work.subsets:
                _embed_subset(work, model, subset, todo[identity, subset.suite, subset.name], tick)


def _embed_subset(work: Work, model: Model, subset: Subset, todo: embedding.Todo, tick: Any) -> None:
    outcome = embedding.embed(
        subset,
        model,
        todo,
        cache=work.cache,
        index=work.index(model, subset),
        batch=work.config.batch,
        workers=work.workers,
        tick=tick,
        progress=work.progress,
    )
    known = set(work.failures)
    work.failures += [failure for failure in outcome.failures if failure not in known]
    work.count("embed", computed=outcome.computed, cached=outcome.cached, failed=len(outcome.failures))
    if outcome.computed or outcome.failures:
        log.info(
            "embed %s/%s %s: %d computed, %d cached, %d failed",
            subset.suite,
            subset.name,
            model.name,
            outcome.computed,
            outcome.cached,
            len(outcome.failures),
        )


def _take_remarks(work: Work) -> None:
    """What was noticed of models when they first heard sound, now or in an earlier run, for people and the record."""
    found: dict[str, str] = {}
    for system in work.systems:
        for subset in work.subsets:
            remark = work.index(system.model, subset).remark
            if remark:
                found.setdefault(system.model.name, remark)
    work.systems = [replace(system, remark=found.get(system.model.name, "")) for system in work.systems]
    for name, remark in found.items():
        log.warning("%s: %s", name, remark)
        work.notes.append(f"{name}: {remark}")


def _take_pictures(work: Work, place: Path) -> None:
    """What models that learn drew of what they learnt, from beside their checkpoints to RUN/figures."""
    taken: set[str] = set()
    for model, _ in planning.models_of(work.systems, work.config).values():
        for subset in work.subsets if model.learns else []:
            picture = embedding.picture_of(work.cache, model.key(subset))
            if not picture.is_file():
                continue
            stem = folder.file_stem(f"{subset.name}-{model.name}")
            if stem in taken:
                stem = folder.file_stem(f"{subset.suite}-{stem}")
            taken.add(stem)
            (place / "figures").mkdir(exist_ok=True)
            write_whole(place / "figures" / f"{stem}.png", picture.read_bytes())
            work.figures[f"what {model.name} learnt of {subset.name} (picture)"] = f"figures/{stem}.png"


def _groupless(work: Work) -> list[str]:
    """Subsets that were to be measured across groups and have none."""
    if not work.config.across_groups:
        return []
    names = [subset.name for subset in work.subsets if groups_of(subset.clips) is None]
    return [f"no clip of {listed(names)} has a group: across_groups was not measured"] if names else []


def _refuse_gaps(work: Work) -> None:
    """Without the step embed every clip must have its vectors already, or be known to fail."""
    if "embed" in work.config.steps:
        return
    failed = {(known.suite, known.subset, known.id) for known in work.failures}
    for model, parts in planning.models_of(work.systems, work.config).values():
        for subset in work.subsets:
            todo = embedding.missing(subset, work.index(model, subset), parts, work.config.batch)
            gaps = [
                clip
                for window in todo.windows
                for clip, _ in window
                if (subset.suite, subset.name, clip.id) not in failed
            ]
            if gaps:
                have = "has" if len(gaps) == 1 else "have"
                raise InputError(
                    f"{counted(len(gaps), 'clip')} of {subset.name} {have} no vectors of {model.name} in the cache: "
                    "add the step embed."
                )


def _evaluate(work: Work) -> Iterator[Row]:
    """The rows of every subset and system, in the order of the config."""
    pairs = [(subset, system) for subset in work.subsets for system in work.systems]
    extra = int(work.config.dtw is not None)
    each = len(work.config.correct) * (1 + len(work.config.label_noise))
    total = sum(len(system.distances) * each + extra for _, system in pairs)
    with progress_bar(work.progress, total, "evaluate", "measurement") as tick:
        for subset, system in pairs:
            yield from _evaluate_system(work, subset, system, tick)


def _compare(work: Work, scores: Scores, place: Path) -> None:
    """Systems against each other, on the clips they share: comparisons.csv."""
    rows: list[Row] = []
    for subset in work.subsets:
        having = {
            system.name: (system, steps.vectors_of(subset, system, work.index(system.model, subset)).rows)
            for system in work.systems
        }
        rows += comparisons.rows_on_shared_clips(
            subset, having, lambda where, system, shared: _evaluate_system(work, where, system, lambda _: None, shared)
        )
    ranking = comparisons.ranking_of(record_of(work), scores, Scores(tuple(rows)))
    rows += comparisons.differences(ranking, [*work.comparisons, *work.evaluations], work.cache)
    comparisons.write_comparisons(place, rows)


def _evaluate_system(
    work: Work, subset: Subset, system: System, tick: Any, only: tuple[int, ...] | None = None
) -> list[Row]:
    """The rows of a system over a subset, or over some of its clips."""
    for attempt in range(3):
        try:
            return _attempt(work, subset, system, tick, only)
        except packs.LostPacks as lost:
            if attempt == 2 or "embed" not in work.config.steps:
                raise InputError(f"The cache {work.cache.url} keeps losing vectors: check its disk.") from lost
            log.warning("%s/%s %s: %s, computed again", subset.suite, subset.name, system.name, lost)
            index = work.index(system.model, subset)
            index.forget(lost.packs)
            _, parts = planning.models_of(work.systems, work.config)[system.model.identity]
            todo = embedding.missing(subset, index, parts, work.config.batch)
            _embed_subset(work, system.model, subset, todo, lambda _: None)
    raise AssertionError("unreachable")


def _attempt(work: Work, subset: Subset, system: System, tick: Any, only: tuple[int, ...] | None) -> list[Row]:
    config, cache, index = work.config, work.cache, work.index(system.model, subset)
    vectors = steps.vectors_of(subset, system, index, only=only)
    if not vectors.rows:
        reason = f"{system.model.name} has no vector of any clip of {subset.name}{_why(work, subset, system)}"
        if not subset.clips:
            reason = f"no clip of {subset.name} is left to score: {remark_on_copies(subset)}"
        return steps.failed_rows(subset, system, config, reason)
    loaded: Any = None
    rows: list[Row] = []
    done: list[dict[str, Any]] = []
    for job in steps.jobs_of(vectors, config):
        if only is not None and job.noise:
            continue  # an ablation ranks nothing
        entry = cache.get(steps.SCORES_KIND, job.key)
        cached = entry is not None
        if entry is None:
            if loaded is None:
                loaded = steps.load(cache, vectors, index, config.threads)
                if vectors.pca_key:
                    work.count("pca", computed=int(loaded.computed), cached=int(not loaded.computed))
            if job.distance.endswith(sequences.SUFFIX):
                entry = steps.measure_sequences(job, *loaded.value, cache=cache, index=index, config=config)
            else:
                entry = steps.measure(job, *loaded.value, config=config)
            cache.put(steps.SCORES_KIND, job.key, entry)
            log.info(
                "evaluate %s/%s %s %s: %.1f s",
                subset.suite,
                subset.name,
                system.name,
                job.distance if job.correction == "none" else f"{job.distance} {job.correction}",
                entry.meta["seconds"],
            )
        work.count("evaluate", computed=int(not cached), cached=int(cached))
        rows += steps.named_rows(job, entry, index, shared=only is not None)
        done.append(
            {
                "suite": subset.suite,
                "subset": with_noise(subset.name, job.noise),
                "system": system.name,
                "distance": job.distance,
                "correction": job.correction,
                "key": job.key,
                "cached": cached,
                "seconds": entry.meta["seconds"],
            }
        )
        tick(1)
    if only is not None:
        work.comparisons += done
        return rows
    work.evaluations += done
    work.vectors.append(placed(work, vectors))
    return rows


def _why(work: Work, subset: Subset, system: System) -> str:
    """The first reason a model failed with, to stand behind the sentence that it failed."""
    for failure in work.failures:
        if (failure.suite, failure.subset, failure.extractor) == (subset.suite, subset.name, system.model.name):
            return f" (first: {failure.reason})"
    return ""


# --- the report ----------------------------------------------------------------------------------------------


def _report(work: Work, place: Path) -> Path | None:
    with _timed(work, "report"), progress_bar(work.progress, 1, "report", "page") as tick:
        made, note = write_report(place)
        tick(1)
    if note:
        log.warning(note)
        work.notes.append(note)
    return made


def _report_only(place: Path) -> Run:
    scores, record = load_scores(place / "scores.csv"), folder.read_record(place)
    report, note = write_report(place)
    failures = tuple(folder.read_failures(place))
    answer, lost = comparisons.told(record, scores, place)
    return Run(scores, place, failures, record["steps"], report, (note,) if note else (), answer, lost)


# --- progress ------------------------------------------------------------------------------------------------


@contextmanager
def _timed(work: Work, step: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        work.count(step, seconds=time.perf_counter() - started)
