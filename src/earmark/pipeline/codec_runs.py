"""A codec run: clips through codecs, delays taken out, metrics, tasks, and a folder of results.

    clips ── code (payload, bits, times) ── delay of each codec ── metrics of each clip ── rows ── report, submission
                  cached by clip                  cached               cached by clip

Every arrow is found again by the hash of all it depends on, so a killed run continues where it stopped, and a codec,
a metric or a clip that is added costs what is new.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from earmark._version import __version__
from earmark.codecs.adapted import Adapted
from earmark.codecs.contract import CATEGORIES, Category, Codec, CodecCard
from earmark.codecs.signal import CORE, require_packages
from earmark.corpora.clips import Corpus
from earmark.errors import EarmarkError, UsageError
from earmark.pipeline import codec_folder, codec_rows, folder
from earmark.pipeline.cache import Cache, open_cache
from earmark.pipeline.codec_beyond import open_tasks, task_rows
from earmark.pipeline.codec_coding import code_and_measure
from earmark.pipeline.codec_config import CodecConfig, make_codec_config
from earmark.pipeline.codec_plan import make_plan
from earmark.pipeline.codec_state import CodecWork
from earmark.pipeline.codec_systems import open_systems
from earmark.pipeline.plan import Line
from earmark.pipeline.prepare import Subset, clip_count, open_corpora, prepare
from earmark.progress import progress_bar
from earmark.scores import Row, Scores
from earmark.wording import counted
from earmark.workers import thread_count

__all__ = ["CodecRun", "codec", "plan_codecs", "run_codecs"]

log = logging.getLogger("earmark.pipeline")

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

    >>> earmark.codec(["opus@12", "mp3@32"], "sounds/", category="audio").scores.value("pesq", system="opus@12")
    """
    several = codecs if isinstance(codecs, Sequence) and not isinstance(codecs, str) else [codecs]
    given = [one if isinstance(one, str) or isinstance(getattr(one, "card", None), CodecCard) else Adapted(one)
             for one in several]  # fmt: skip
    names = [one if isinstance(one, str) else one.card.name for one in given]
    spec = corpus.name if isinstance(corpus, Corpus) else str(corpus)
    config = make_codec_config({
        "codecs": names, "corpus": [spec], "category": category, "into": str(into), **options
    }, "codec")  # fmt: skip
    corpora = [corpus] if isinstance(corpus, Corpus) else None
    return run_codecs(config, codecs=given, corpora=corpora, progress=progress)


def run_codecs(
    config: Config,
    *,
    codecs: Sequence[str | Codec] | None = None,
    corpora: Sequence[Corpus] | None = None,
    progress: bool = False,
) -> CodecRun:
    """Do what a config says (a CodecConfig, a mapping or a YAML file) and return the scores and where they lie.

    `codecs` and `corpora` stand in for those the config names, when they exist only in memory.
    """
    config = CodecConfig.resolve(config)
    tasks = open_tasks(config.tasks, config.retention)
    place = folder.make_folder(config.into)
    with folder.logging_to(place), open_cache(config.cache.url, config.cache.policy) as cache:
        folder.write_text(place / "config.yaml", config.portable().to_yaml())
        log.info("earmark %s: codecs into %s, cache %s", __version__, place, cache.url)
        try:
            work = _prepared(config, cache, codecs, corpora, progress)
            code_and_measure(work)
            scores = Scores((*_rows(work), *task_rows(work, tasks)))
            codec_folder.write_results(work, place, scores)
        except EarmarkError as error:
            log.error("stopped: %s", error)
            raise
        report = _report(work, place) if config.report else None
        log.info("finished: %d rows", len(scores))
    return CodecRun(scores, place, work.counts, report, tuple(work.notes))


def plan_codecs(
    config: Config, *, codecs: Sequence[str | Codec] | None = None, corpora: Sequence[Corpus] | None = None
) -> tuple[list[Line], str]:
    """What there is to do and about how long it takes; nothing is coded. Also the cache's URL."""
    config = CodecConfig.resolve(config)
    with open_cache(config.cache.url, config.cache.policy) as cache:
        return make_plan(_prepared(config, cache, codecs, corpora, False)), cache.url


# --- preparing -------------------------------------------------------------------------------------------------------


def _prepared(
    config: CodecConfig,
    cache: Cache,
    codecs: Sequence[str | Codec] | None,
    corpora: Sequence[Corpus] | None,
    progress: bool,
) -> CodecWork:
    """Codecs and corpora opened, every clip known by the hash of its sound."""
    metrics = tuple(dict.fromkeys([*(config.metrics or CORE), *config.extras]))
    require_packages(metrics)
    if config.gain_match and config.definitions == "reference":
        raise UsageError("The published definitions know no gain matching: leave out one of the two.")
    systems, notes = open_systems(config.codecs if codecs is None else codecs)
    opened = list(corpora or open_corpora(config.corpus))
    limited = [_limited(corpus, config.limit) for corpus in opened]
    jobs = thread_count(None) if config.jobs is None else config.jobs
    work = CodecWork(config, cache, limited, systems, metrics, jobs, progress, notes=notes)
    wanted = [entry.subsets for entry in config.corpus]
    with progress_bar(work.progress, clip_count(limited, wanted), "prepare") as tick:
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


def _category(config: CodecConfig, subset: Subset) -> Category:
    if config.category is not None:
        return config.category
    for category in CATEGORIES:
        if subset.card.domain == category:
            return category
    raise UsageError(
        f"Nothing says what {subset.name} holds, and the overall score depends on it: give the category "
        f"({', '.join(CATEGORIES)})."
    )


def _limited(corpus: Corpus, limit: int | None) -> Corpus:
    """The corpus with at most so many clips of each subset, evenly from its beginning to its end."""
    if limit is None:
        return corpus
    kept: list[Any] = []
    for clips in corpus.subsets().values():
        places = np.linspace(0, len(clips) - 1, min(limit, len(clips))).round().astype(int)
        kept += [clips[place] for place in places]
    return replace(corpus, clips=kept)


# --- finishing -------------------------------------------------------------------------------------------------------


def _rows(work: CodecWork) -> list[Row]:
    rows: list[Row] = []
    with progress_bar(work.progress, len(work.subsets) * len(work.systems), "aggregate") as tick:
        for subset in work.subsets:
            for system in work.systems:
                rows += codec_rows.subset_rows(work, subset, system)
                tick(1)
    return rows + codec_rows.mean_rows(work, rows)


def _report(work: CodecWork, place: Path) -> Path | None:
    """RUN/report.html; one that cannot be written costs no scores."""
    from earmark.pipeline.codec_report import report_codec_run

    try:
        return report_codec_run(place, cache=work.cache, corpora=work.corpora)
    except EarmarkError as error:
        note = f"The report was not written: {error}"
        log.warning(note)
        work.notes.append(note)
        return None
