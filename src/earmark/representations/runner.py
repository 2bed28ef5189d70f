"""A whole run: prepare → embed → pca → evaluate → report, from a config to a folder of results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from earmark._version import __version__
from earmark.atomic import write_whole
from earmark.corpora.clips import Corpus, groups_of
from earmark.corpora.subsets import PreparedSubset, clip_count, open_corpora, prepare, refuse_unlabelled
from earmark.displayed import Displayed
from earmark.embedding.hearing import settle_rate
from earmark.errors import EarmarkError, InputError
from earmark.places import locate
from earmark.progress import progress_bar
from earmark.report.maps import ClipMap
from earmark.report.methods import methods_text
from earmark.representations import _embed as embed
from earmark.representations import _evaluate as evaluate
from earmark.representations import _probe as probing
from earmark.representations import comparisons
from earmark.representations._copies import note_on_copies, remark_on_copies, settle_copies
from earmark.representations._folder import read_finished
from earmark.representations._record import (
    Work,
    describe_vectors,
    keep_finished,
    record_of,
    report_inputs,
    write_tables,
)
from earmark.representations._samples import draw_samples, notes_on_samples, remark_on_sample
from earmark.representations._shards import take_shards
from earmark.representations._systems import Model, System, parts_by_model, systems_of
from earmark.representations._workers import executor_of, read_vectors, spread, spread_here
from earmark.representations.config import RunConfig
from earmark.representations.plan import make_plan
from earmark.runs import folder
from earmark.runs.config import refuse_unshared
from earmark.runs.engine import Failure, Tick
from earmark.runs.packs import LostPacks
from earmark.runs.plan import PlannedStep
from earmark.runs.store import Entry, open_cache
from earmark.scores import Row, Scores, load_scores
from earmark.scores.spelling import with_noise
from earmark.wording import counted, listed
from earmark.workers import thread_count

log = logging.getLogger("earmark.runs")

Config = RunConfig | Mapping[str, Any] | str | Path


@dataclass(frozen=True, repr=False)
class Run(Displayed):
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

    _room = "earmark.representations._display"

    def map(self, **options: Any) -> ClipMap:
        """A map of the clips to click through and listen to, which shows itself in a notebook and saves itself.

        `options` are those of `earmark.representations.map_run`: subset, system, distance, correct, k, projection,
        sounds, most, seed, title, threads, progress.
        """
        from earmark.representations.maps import map_run

        return map_run(self.folder, **options)


def run(config: Config, *, corpora: Sequence[Corpus] | None = None, progress: bool = False, merge: bool = False) -> Run:
    """Do what a config says (a RunConfig, a mapping or a YAML file) and return the scores and where they lie.

    Args:
        config: a RunConfig, a mapping of its fields, or the path of a YAML file.
        corpora: stand in for those the config names, one for each entry, when they exist only in memory.
        progress: show a bar for each step on stderr.
        merge: go on from what shards did (`earmark.representations.shards`): what failed there is not tried again.

    Returns:
        The run: its `scores`, and the folder that holds report and tables.

    >>> earmark.run({"corpus": "sounds/", "extractors": ["logmel"], "into": "run"}).scores.value("P@1")
    """
    config = RunConfig.resolve(config)
    refuse_unshared(config.executor, config.cache, bool(corpora), merge)
    path = folder.make_folder(config.into)
    with folder.logging_to(path), open_cache(config.cache.url, config.cache.policy) as cache:
        if config.steps == ["report"]:
            return _report_only(path)
        before = read_finished(path) if "evaluate" not in config.steps else None
        resolved = config.portable().to_yaml()
        aside = folder.set_aside(path, resolved) if before is None else None
        drawn_before = _report_key(path)
        folder.write_text(path / "config.yaml", resolved)
        log.info("earmark %s: %s into %s, cache %s", __version__, ", ".join(config.steps), path, cache.url)
        sounds = list(corpora or open_corpora(config.corpus, config.label_separator))
        work = Work(config=config, cache=cache, corpora=sounds, progress=progress, shared=not corpora)
        work.notes += [f"{path} held another run: its results lie in {aside} now."] if aside else []
        try:
            scores, compared = _stages(work, path, merge)
        except EarmarkError as error:
            log.error("stopped: %s", error)
            raise
        if before is not None:
            keep_finished(work, before)
        _write_record(work, path, scores)
        report = (
            _report(work, path, scores, compared, drawn_before) if "report" in config.steps and scores.rows else None
        )
        record = _write_record(work, path, scores)
        log.info("finished: %d rows, %d failures", len(scores), len(work.failures))
        answer, lost = comparisons.answer_of(record, scores, compared) if scores.rows else ((), ())
    return Run(scores, path, tuple(work.failures), work.counts, report, tuple(work.notes), answer, lost)


def _write_record(work: Work, path: Path, scores: Scores) -> dict[str, Any]:
    """Write run.json, with a paragraph on methods, and return what it says."""
    record = record_of(work)
    record["methods"] = methods_text(record, work.config.model_dump(), scores.rows)
    folder.write_record(path, record)
    return record


def plan(
    config: Config, *, corpora: Sequence[Corpus] | None = None, progress: bool = False
) -> tuple[list[PlannedStep], str]:
    """The steps of a run, what of them is cached, and an estimate; nothing is computed. Also the cache's URL."""
    config = RunConfig.resolve(config)
    with open_cache(config.cache.url, config.cache.policy) as cache:
        work = Work(
            config=config,
            cache=cache,
            corpora=list(corpora or open_corpora(config.corpus, config.label_separator)),
            progress=progress,
        )
        prepare_work(work)
        return make_plan(work, folder.read_failures(locate(config.into)), thread_count(config.threads)), cache.url


# --- the stages ----------------------------------------------------------------------------------------------


def _stages(work: Work, path: Path, merge: bool) -> tuple[Scores, Scores]:
    """The scores, and those on shared clips with the differences between systems."""
    wanted = work.config.steps
    with executor_of(work) as executor:
        with work.timed("prepare"):
            prepare_work(work)
        if executor is not None:
            with work.timed("workers"):
                spread(work, executor, [step for step in ("embed", "evaluate", "probe") if step in wanted])
    if merge:
        take_shards(work, path)
    if "embed" in wanted:
        with work.timed("embed"):
            _embed(work)
    else:
        work.failures += [failure for failure in folder.read_failures(path) if failure.step == "embed"]
    _take_remarks(work)
    _take_pictures(work, path)
    scores = compared = Scores()
    if "evaluate" in wanted:
        _refuse_gaps(work)
        if work.config.across_groups:
            names = [subset.name for subset in work.subsets if groups_of(subset.clips) is None]
            work.notes += [f"no clip of {listed(names)} has a group: across_groups was not measured"] if names else []
        with work.timed("evaluate"):
            scores = Scores(tuple(_evaluate(work)))
            scores.write(path / "scores.csv")
            compared = _compare(work, scores)
            comparisons.write_comparisons(path, compared)
    if "probe" in wanted:
        _refuse_gaps(work)
        with work.timed("probe"):
            scores = Scores((*scores.rows, *_probe(work)))
            scores.write(path / "scores.csv")
    write_tables(work, path)
    return scores, compared


def prepare_work(work: Work) -> None:
    """Open models and corpora, hash every clip, and read what the cache holds of their vectors."""
    probing.refuse_missing_files(work.config)
    wanted = [entry.subsets for entry in work.config.corpus]
    if "evaluate" in work.config.steps and not work.config.probes:  # a probe may bring labels of its own
        refuse_unlabelled(work.corpora, wanted)
    work.corpora = [corpus.at_speed(work.config.speed) for corpus in work.corpora]
    work.systems = systems_of(work.config, work.cache)
    with progress_bar(work.progress, clip_count(work.corpora, wanted), "prepare", "clip") as tick:
        subsets = prepare(work.corpora, wanted, workers=work.workers, tick=tick)
    work.subsets = draw_samples(settle_copies(subsets, work.config.copies, threads=work.workers), work.config)
    work.systems = [replace(system, model=system.model.taught_by(work.subsets)) for system in work.systems]
    work.notes += [note for corpus in work.corpora for note in corpus.notes]
    work.notes += notes_on_samples(work.subsets)
    work.notes += [note for subset in work.subsets for note in note_on_copies(subset)]
    work.failures += [failure for subset in work.subsets for failure in subset.failures]
    work.count("prepare", clips=sum(len(subset.clips) for subset in work.subsets), failed=len(work.failures))
    for model in {system.model.identity: system.model for system in work.systems}.values():
        for subset in work.subsets if not model.card.rate else ():
            # Clips of several rates are refused, also where all their vectors are cached.
            settle_rate(model.open(), [clip for clip, _ in subset.readable])
    read_vectors(work)


def _embed(work: Work) -> None:
    spread_here(work)
    todo = [
        (model, subset, embed.missing(subset, work.records_of(model, subset), parts, work.config.batch))
        for model, parts in parts_by_model(work.systems, work.config).values()
        for subset in work.subsets
    ]
    with progress_bar(work.progress, sum(missing.clips for _, _, missing in todo), "embed", "clip") as tick:
        for model, subset, missing in todo:
            _embed_subset(work, model, subset, missing, tick)


def _embed_subset(work: Work, model: Model, subset: PreparedSubset, todo: embed.Todo, tick: Tick) -> None:
    outcome = embed.embed(
        subset,
        model,
        todo,
        work.records_of(model, subset),
        batch=work.config.batch,
        workers=work.workers,
        tick=tick,
        progress=work.progress,
        before=embed.Before(refused=work.refused.get((model.identity, subset.suite, subset.name), {})),
    )
    known = set(work.failures)
    work.failures += [failure for failure in outcome.failures if failure not in known]
    elsewhere = min(outcome.cached, work.embedded.pop((model.identity, subset.suite, subset.name), 0))
    amounts = outcome.computed + elsewhere, outcome.cached - elsewhere, len(outcome.failures)
    work.count("embed", computed=amounts[0], cached=amounts[1], failed=amounts[2])
    if amounts[0] or outcome.failures:
        log.info("embed %s/%s %s: %d computed, %d cached, %d failed", subset.suite, subset.name, model.name, *amounts)


def _take_remarks(work: Work) -> None:
    """What was noticed of models when they first heard sound, now or in an earlier run, for people and the record."""
    remarks: dict[str, str] = {}
    for system in work.systems:
        for subset in work.subsets:
            remark = evaluate.remark_on_model(work.records_of(system.model, subset))
            if remark:
                remarks.setdefault(system.model.name, remark)
    work.systems = [replace(system, remark=remarks.get(system.model.name, "")) for system in work.systems]
    for name, remark in remarks.items():
        log.warning("%s: %s", name, remark)
        work.notes.append(f"{name}: {remark}")


def _take_pictures(work: Work, path: Path) -> None:
    """What models that learn drew of what they learnt, from beside their checkpoints to RUN/figures."""
    for model, _ in parts_by_model(work.systems, work.config).values():
        heard = work.subsets[:1] if model.school else work.subsets  # what it learnt once serves all subsets
        for subset in heard if model.learns else []:
            picture = embed.picture_of(work.cache, model.key(subset))
            if not picture.is_file():
                continue
            of = "" if model.school else f" of {subset.name}"
            stem = folder.file_stem(model.name if model.school else f"{subset.name}-{model.name}")
            if f"figures/{stem}.png" in work.figures.values():
                stem = folder.file_stem(f"{subset.suite}-{stem}")
            (path / "figures").mkdir(exist_ok=True)
            write_whole(path / "figures" / f"{stem}.png", picture.read_bytes())
            work.figures[f"what {model.name} learnt{of} (picture)"] = f"figures/{stem}.png"


def _refuse_gaps(work: Work) -> None:
    """Without the step embed every clip must have its vectors already, or be known to fail."""
    if "embed" in work.config.steps:
        return
    failed = {(failure.suite, failure.subset, failure.id) for failure in work.failures}
    for model, parts in parts_by_model(work.systems, work.config).values():
        for subset in work.subsets:
            todo = embed.missing(subset, work.records_of(model, subset), parts, work.config.batch)
            clips = [clip for window in todo.windows for clip, _ in window]
            gaps = sum((subset.suite, subset.name, clip.id) not in failed for clip in clips)
            if gaps:
                raise InputError(
                    f"{counted(gaps, 'clip')} of {subset.name} {'has' if gaps == 1 else 'have'} no vectors of "
                    f"{model.name} in the cache: add the step embed."
                )


def _evaluate(work: Work) -> list[Row]:
    """The rows of every subset and system, in the order of the config."""
    config = work.config
    each = len(config.correct) * (1 + len(config.label_noise))
    aligned = 0 if config.dtw is None else len(config.correct) if config.dtw.candidates == "all" else 1
    per_subset = sum(len(system.distances) * each + aligned for system in work.systems)
    with progress_bar(work.progress, len(work.subsets) * per_subset, "evaluate", "measurement") as tick:
        return [
            row
            for subset in work.subsets
            for system in work.systems
            for row in _evaluate_system(work, subset, system, tick)
        ]


def _probe(work: Work) -> list[Row]:
    """The rows of every probe, in the order of subsets, systems and the config."""
    rows: dict[tuple[str, ...], Row] = {}
    count = len(work.subsets) * len(work.systems) * len(work.config.probes)
    with progress_bar(work.progress, count, "probe", "probe") as tick:
        for subset in work.subsets:
            for system in work.systems:
                for row in _retried(work, subset, system, partial(_probe_system, work, subset, system, tick)):
                    rows.setdefault(row.key, row)  # how listeners agree is the same whichever system is asked
    return list(rows.values())


def _probe_system(work: Work, subset: PreparedSubset, system: System, tick: Tick) -> list[Row]:
    records = work.records_of(system.model, subset)
    vectors = evaluate.vectors_of(subset, system, records)
    if not vectors.rows:
        tick(len(work.config.probes))
        return []  # the step evaluate says why
    rows: list[Row] = []
    for job in probing.probings_of(vectors, work.config):
        entry, computed = work.cache.recall(
            probing.PROBES_KIND,
            job.key,
            lambda job=job: probing.probe(  # type: ignore[misc]
                job, evaluate.load(work.cache, vectors, records, work.config.threads).entry, work.config
            ),
        )
        computed = computed or job.key in work.elsewhere
        if computed:
            about = subset.suite, subset.name, system.name, job.entry.probe, entry.meta["seconds"]
            log.info("probe %s/%s %s %s: %.1f s", *about)
        work.count("probe", computed=int(computed), cached=int(not computed))
        rows += probing.named_rows(job, entry, records)
        tick(1)
    return rows


def _compare(work: Work, scores: Scores) -> Scores:
    """Systems against each other, on the clips they share."""
    rows: list[Row] = []
    for subset in work.subsets:
        clips = {
            system.name: (system, evaluate.vectors_of(subset, system, work.records_of(system.model, subset)).rows)
            for system in work.systems
        }
        rows += comparisons.rows_on_shared_clips(
            subset, clips, lambda of, system, shared: _evaluate_system(work, of, system, lambda _: None, shared)
        )
    ranking = comparisons.ranking_of(record_of(work), scores, Scores(tuple(rows)))
    rows += comparisons.differences(ranking, [*work.comparisons, *work.evaluations], work.cache)
    return Scores(tuple(rows))


def _evaluate_system(
    work: Work, subset: PreparedSubset, system: System, tick: Tick, only: tuple[int, ...] | None = None
) -> list[Row]:
    """The rows of a system over a subset, or over some of its clips."""
    return _retried(work, subset, system, partial(_measure_system, work, subset, system, tick, only))


def _retried(work: Work, subset: PreparedSubset, system: System, measure: Callable[[], list[Row]]) -> list[Row]:
    """What `measure` gives; vectors that the cache has lost are computed again."""
    for attempt in range(3):
        try:
            return measure()
        except LostPacks as lost:
            if attempt == 2 or "embed" not in work.config.steps:
                raise InputError(f"The cache {work.cache.url} keeps losing vectors: check its disk.") from lost
            log.warning("%s/%s %s: %s, computed again", subset.suite, subset.name, system.name, lost)
            records = work.records_of(system.model, subset)
            records.forget(lost.packs)
            _, parts = parts_by_model(work.systems, work.config)[system.model.identity]
            todo = embed.missing(subset, records, parts, work.config.batch)
            _embed_subset(work, system.model, subset, todo, lambda _: None)
    raise AssertionError("unreachable")


def _measure_system(
    work: Work, subset: PreparedSubset, system: System, tick: Tick, only: tuple[int, ...] | None
) -> list[Row]:
    config, cache, records = work.config, work.cache, work.records_of(system.model, subset)
    vectors = evaluate.vectors_of(subset, system, records, only=only)
    if not vectors.rows:
        reason = f"{system.model.name} has no vector of any clip of {subset.name}{_why(work, subset, system)}"
        if not subset.clips:
            why = "; ".join(filter(None, [remark_on_sample(subset), remark_on_copies(subset)]))
            reason = f"no clip of {subset.name} is left to score: {why}"
        return evaluate.failed_rows(subset, system, config, reason)
    loaded: list[Entry] = []
    rows: list[Row] = []
    done: list[dict[str, Any]] = []

    def measure(job: evaluate.Measurement) -> Entry:
        if not loaded:
            made = evaluate.load(cache, vectors, records, config.threads)
            loaded.append(made.entry)
            if vectors.pca_key:
                work.count("pca", computed=int(made.computed), cached=int(not made.computed))
        return evaluate.measure(job, loaded[0], records, config, work.progress)

    for job in evaluate.measurements_of(vectors, config):
        if only is not None and job.noise:
            continue  # an ablation ranks nothing
        entry, computed = cache.recall(evaluate.SCORES_KIND, job.key, partial(measure, job))
        computed = computed or job.key in work.elsewhere
        if computed:
            way = job.distance if job.correction == "none" else f"{job.distance} {job.correction}"
            seconds = entry.meta["seconds"]
            log.info("evaluate %s/%s %s %s: %.1f s", subset.suite, subset.name, system.name, way, seconds)
        work.count("evaluate", computed=int(computed), cached=int(not computed))
        rows += evaluate.named_rows(job, entry, records, shared=only is not None)
        done.append(
            {
                "suite": subset.suite,
                "subset": with_noise(subset.name, job.noise),
                "system": system.name,
                "distance": job.distance,
                "correction": job.correction,
                "key": job.key,
                "cached": not computed,
                "seconds": entry.meta["seconds"],
            }
        )
        tick(1)
    if only is not None:
        work.comparisons += done
    else:
        work.evaluations += done
        work.vectors.append(describe_vectors(work, vectors))
    return rows


def _why(work: Work, subset: PreparedSubset, system: System) -> str:
    """The first reason a model failed with, to stand behind the sentence that it failed."""
    for failure in work.failures:
        if (failure.suite, failure.subset, failure.extractor) == (subset.suite, subset.name, system.model.name):
            return f" (first: {failure.reason})"
    return ""


# --- the report ----------------------------------------------------------------------------------------------


def _report(work: Work, path: Path, scores: Scores, compared: Scores, drawn_before: str) -> Path | None:
    """The report, drawn anew when anything it shows has changed."""
    work.drawn = report_inputs(path, scores, compared)
    if work.drawn == drawn_before and (path / "report.html").is_file():
        log.info("the report shows what was measured: it stays")
        return path / "report.html"
    with work.timed("report"), progress_bar(work.progress, 1, "report", "page") as tick:
        page, note = _write_report(path, scores, compared)
        tick(1)
    work.notes += [note] if note else []
    return page


def _report_key(path: Path) -> str:
    """What the report in a folder was drawn from; "" where there is none."""
    with suppress(InputError):
        return str(folder.read_record(path).get("drawn", ""))
    return ""


def _write_report(path: Path, scores: Scores | None = None, compared: Scores | None = None) -> tuple[Path | None, str]:
    """RUN/report.html, or None and the reason: a report that cannot be written costs no scores."""
    from earmark.representations.report import report_run

    try:
        return report_run(path, scores=scores, compared=compared), ""
    except EarmarkError as error:
        note = f"The report was not written: {error}"
        log.warning(note)
        return None, note


def _report_only(path: Path) -> Run:
    scores, compared = load_scores(path / "scores.csv"), comparisons.read_comparisons(path)
    record = folder.read_record(path)
    page, note = _write_report(path, scores, compared)
    answer, lost = comparisons.answer_of(record, scores, compared)
    failures = tuple(folder.read_failures(path))
    return Run(scores, path, failures, record["steps"], page, (note,) if note else (), answer, lost)
