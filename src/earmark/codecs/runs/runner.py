"""A codec run: clips through codecs, delays taken out, metrics, tasks, and a folder of results.

    clips ── encode (payload, bits) ── delay and promises ── decode, metrics of each clip ── rows ── report, submission
                cached by clip              cached                  cached by clip

Encoders and decoders run in processes of their own that share only the payload (`earmark.codecs.cells`).

Every arrow is found again by the hash of all it depends on, so a killed run continues where it stopped, and a codec,
a metric or a clip that is added costs what is new.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from earmark._version import __version__
from earmark.codecs._adapted import Adapted
from earmark.codecs.cells import Portable
from earmark.codecs.clip_work import MOST_SECONDS
from earmark.codecs.contract import CATEGORIES, Category, Codec, CodecCard
from earmark.codecs.runs._aggregate import mean_rows, subset_rows, without_lost
from earmark.codecs.runs._calibrate import choose_samples, known_delay
from earmark.codecs.runs._code import code_and_measure
from earmark.codecs.runs._listen import open_tasks, task_rows
from earmark.codecs.runs._opening import open_work
from earmark.codecs.runs._spread import executor_of, spread_coding, spread_hearing
from earmark.codecs.runs.config import CodecConfig
from earmark.codecs.runs.folder import write_results
from earmark.codecs.runs.state import CodecWork
from earmark.codecs.standing import Promise, Standing
from earmark.corpora.clips import Corpus, length_of
from earmark.corpora.subsets import PreparedSubset, clip_count, prepare
from earmark.errors import EarmarkError, UsageError
from earmark.progress import progress_bar
from earmark.runs import folder
from earmark.runs.config import refuse_unshared
from earmark.runs.plan import PlannedStep
from earmark.runs.shards import notes_on, read_shards
from earmark.runs.store import Cache, open_cache
from earmark.scores import Row, Scores
from earmark.wording import counted

log = logging.getLogger("earmark.runs")

Config = CodecConfig | Mapping[str, Any] | str | Path


@dataclass(frozen=True)
class CodecRun:
    """What a codec run came to. `counts` says, per step, how much was computed, found in the cache, and failed."""

    scores: Scores
    folder: Path
    counts: dict[str, dict[str, float]]
    report: Path | None
    notes: tuple[str, ...] = ()


def codec(
    codecs: str | Codec | Sequence[str | Codec],
    corpus: str | Path | Corpus,
    *,
    category: Category | None = None,
    into: str | Path = "codec-run",
    progress: bool = False,
    **options: Any,
) -> CodecRun:
    """Measure codecs on a corpus: what they keep, at what rate. The scores lie in the folder `into` too.

    Args:
        codecs: Names as on the command line (`opus@12`, `mp3`, `mypackage.mymodule:MyCodec`) or objects with `card`,
            `encode` and `decode`.
        corpus: A folder, a manifest, the name of a corpus, or a Corpus.
        category: What the sounds are (speech, audio, music); None is what each corpus's card says.
        into: The folder for the results.
        progress: Whether bars on stderr show how far the work is.
        options: Other keys of `CodecConfig`: metrics, extras, tasks, tandem, loss, limit, jobs …

    Returns:
        The run: its `scores`, and the folder that they lie in.

    >>> earmark.codec(["opus@12", "mp3@32"], "sounds/", category="audio").scores.value("pesq", system="opus@12")
    """
    given = codecs if isinstance(codecs, Sequence) and not isinstance(codecs, str) else [codecs]
    settings = [
        setting if isinstance(setting, str) or isinstance(getattr(setting, "card", None), CodecCard)
        else Adapted(setting)
        for setting in given
    ]  # fmt: skip
    names = [setting if isinstance(setting, str) else setting.card.name for setting in settings]
    spec = corpus.name if isinstance(corpus, Corpus) else str(corpus)
    values = {"codecs": names, "corpus": [spec], "category": category, "into": str(into), **options}
    corpora = [corpus] if isinstance(corpus, Corpus) else None
    return run_codecs(CodecConfig.make(values, "codec"), codecs=settings, corpora=corpora, progress=progress)


def run_codecs(
    config: Config,
    *,
    codecs: Sequence[str | Codec] | None = None,
    corpora: Sequence[Corpus] | None = None,
    progress: bool = False,
    merge: bool = False,
) -> CodecRun:
    """Do what a config says (a CodecConfig, a mapping or a YAML file) and return the scores and where they lie.

    Args:
        config: a CodecConfig, a mapping of its fields, or the path of a YAML file.
        codecs: stand in for those the config names, when they exist only in memory.
        corpora: stand in for those the config names, when they exist only in memory.
        progress: show bars on stderr.
        merge: go on from what shards did (`earmark.codecs.runs.shards`).
    """
    config = CodecConfig.resolve(config)
    in_memory = bool(corpora) or any(not isinstance(codec, str) for codec in codecs or ())
    refuse_unshared(config.executor, config.cache, in_memory, merge)
    tasks = open_tasks(config.tasks, config.retention)
    path = folder.make_folder(config.into)
    with folder.logging_to(path), open_cache(config.cache.url, config.cache.policy) as cache:
        resolved = config.portable().to_yaml()
        aside = folder.set_aside(path, resolved)
        folder.write_text(path / "config.yaml", resolved)
        log.info("earmark %s: codecs into %s, cache %s", __version__, path, cache.url)
        try:
            work = prepare_work(config, cache, codecs, corpora, progress)
            work.notes += [f"{path} held another run: its results lie in {aside} now."] if aside else []
            if merge:
                work.notes += notes_on(read_shards(path), "earmark codec run CONFIG", config, show=work.progress)
            with executor_of(work) as executor:
                if executor is not None:
                    spread_coding(work, executor)
                code_and_measure(work)
                if executor is not None and tasks:
                    spread_hearing(work, executor, tasks)
            _stand(work)
            scores = Scores((*_aggregate(work), *without_lost(work, task_rows(work, tasks))))
            write_results(work, path, scores)
        except EarmarkError as error:
            log.error("stopped: %s", error)
            raise
        report = _report(work, path, scores) if config.report else None
        log.info("finished: %d rows", len(scores))
    return CodecRun(scores, path, work.counts, report, tuple(work.notes))


def plan_codecs(
    config: Config, *, codecs: Sequence[str | Codec] | None = None, corpora: Sequence[Corpus] | None = None
) -> tuple[list[PlannedStep], str]:
    """What there is to do and about how long it takes; nothing is coded. Also the cache's URL."""
    config = CodecConfig.resolve(config)
    with open_cache(config.cache.url, config.cache.policy) as cache:
        return _plan(prepare_work(config, cache, codecs, corpora)), cache.url


def prepare_work(
    config: CodecConfig,
    cache: Cache,
    codecs: Sequence[str | Codec] | None = None,
    corpora: Sequence[Corpus] | None = None,
    progress: bool = False,
) -> CodecWork:
    """Codecs and corpora opened, every clip known by the hash of its sound."""
    work = open_work(config, cache, codecs, corpora, progress)
    limited, jobs = work.corpora, work.jobs
    wanted = [entry.subsets for entry in config.corpus]
    with progress_bar(progress, clip_count(limited, wanted), "prepare") as tick:
        work.subsets = prepare(limited, wanted, workers=max(1, jobs), tick=tick)
    for subset in work.subsets:
        if subset.name in work.categories:
            raise UsageError(f"Two corpora have a subset {subset.name!r}: measure them in two runs, or rename one.")
        work.categories[subset.name] = _category(config, subset)
    unreadable = sum(len(subset.failures) for subset in work.subsets)
    if unreadable:
        work.notes.append(f"{counted(unreadable, 'clip')} cannot be read; clips.csv says why")
    work.count("prepare", clips=sum(len(subset.clips) for subset in work.subsets), failed=unreadable)
    return work


def _stand(work: CodecWork) -> None:
    """What the results of each codec rest on."""
    offered = work.confinement.support()
    for system in work.systems:
        level, reason = offered
        if level != "none" and not isinstance(system.codec, str | Portable):
            level, reason = "none", "it is an object of the calling program, which cannot go to another process"
        elif level == "full" and not isinstance(system.codec, str):
            level = "partial"
            reason = "its code ran in the program that measures; name it by its path, such as my_codec.py:MyCodec"
        if level == "full" and work.config.readable:
            reason = f"it could read {', '.join(work.config.readable)} too, as was asked for"
        checked = work.checks.get(system.name)
        said = "" if system.stranger else "a codec of the list, which the project's tests check"
        check, why = checked if checked is not None else ("not run", said)
        promises = work.promises.get(system.name, ())
        dodged = [
            digest for digest in work.unrepeated.get(system.name, ()) if (system.name, digest) not in work.refused
        ]
        if dodged:
            said = f"it coded {counted(len(dodged), 'clip')} in the run and not when it was asked again"
            promises = (*(promise for promise in promises if promise.name != "state"), Promise("state", "broken", said))
        standing = Standing(level, reason, check, why, promises)
        work.standings[system.name] = standing
        for problem in standing.problems:
            log.warning("%s: %s", system.name, problem)
    levels = {standing.isolation for standing in work.standings.values()}
    if levels == {"full"}:
        work.notes.append("encoders and decoders ran in processes that share only the payload")
    elif offered.level != "full":
        work.notes.append(f"encoders and decoders were not fully isolated: {offered.reason}")
    else:
        alone = [name for name, standing in work.standings.items() if standing.isolation != "full"]
        work.notes.append(f"not isolated: {', '.join(alone)} ({work.standings[alone[0]].isolation_reason})")
    for system in work.systems:
        standing = work.standings[system.name]
        marks = [f"{promise.name}: {promise.reason}" for promise in standing.broken]
        marks += [f"check: {standing.check_reason}"] if standing.check == "failed" else []
        work.notes += [f"{system.name} breaks a promise ({mark})" for mark in marks]


def _category(config: CodecConfig, subset: PreparedSubset) -> Category:
    known = [category for category in CATEGORIES if subset.card.domain == category]
    if config.category is None and not known:
        raise UsageError(
            f"Nothing says what {subset.name} holds, and the overall score depends on it: give the category "
            f"({', '.join(CATEGORIES)})."
        )
    return config.category or known[0]


# Measured on one core for the core metrics, to the right order of magnitude: a plan says minutes or hours.
_SECONDS_PER_SECOND = 0.08
_CODING_PER_SECOND = 0.03


def _plan(work: CodecWork) -> list[PlannedStep]:
    """Two steps for each codec; where a delay is not known yet nothing is measured yet."""
    samples = [sample for sample in work.samples.values() if length_of(sample.clip) <= MOST_SECONDS]
    seconds = sum(length for subset in work.subsets for length in subset.seconds)
    pace = seconds / max(1, len(samples)) / max(1, work.jobs)
    suitable = choose_samples(samples) if any(system.card.delay is None for system in work.systems) else []
    steps: list[PlannedStep] = []
    for system in work.systems:
        work.read_coded(system)
        known = work.coded[system.name].records
        todo = sum(sample.digest not in known for sample in samples)
        left = len(samples)
        delay = known_delay(work.cache, system, suitable)
        if delay is not None:
            work.delays[system.name] = delay
            work.read_measured(system)
            left = sum(bool(work.missing_names(system, sample.digest)) for sample in samples)
        for step, count, cost in (("code", todo, _CODING_PER_SECOND), ("measure", left, _SECONDS_PER_SECOND)):
            steps.append(PlannedStep(step, "", system.name, count, len(samples), "clips", count * pace * cost))
    return steps


def _aggregate(work: CodecWork) -> list[Row]:
    rows: list[Row] = []
    with progress_bar(work.progress, len(work.subsets) * len(work.systems), "aggregate") as tick:
        for subset in work.subsets:
            for system in work.systems:
                rows += subset_rows(work, subset, system)
                tick(1)
    return rows + mean_rows(work, rows)


def _report(work: CodecWork, path: Path, scores: Scores) -> Path | None:
    """RUN/report.html; one that cannot be written costs no scores."""
    gathering = import_module("earmark.report.codecs.gathering")  # the room above this one
    try:
        page: Path = gathering.report_codec_run(path, scores=scores, cache=work.cache, corpora=work.corpora)
        return page
    except EarmarkError as error:
        note = f"The report was not written: {error}"
        log.warning(note)
        work.notes.append(note)
        return None
