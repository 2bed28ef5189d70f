"""What any process can do for a run: hear some windows of a subset with a model, or measure a system over a subset.

The functions here are called by `earmark.runs.executors.do_step` with a job, which holds the config, and a few names.
Clips are opened as the config names them; their hashes, which the run has computed, lie in the cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from earmark.corpora.clips import Clip, CorpusCard
from earmark.corpora.subsets import PreparedSubset, as_hashed, choose_subsets, open_corpora
from earmark.errors import EarmarkError
from earmark.extractors.contract import ExtractorCard
from earmark.representations import _embed as embed
from earmark.representations import _evaluate as evaluate
from earmark.representations import _probe as probing
from earmark.representations._folder import vectors_kind
from earmark.representations._systems import EMBED, Model, System, describe_model
from earmark.representations.config import RunConfig
from earmark.runs.executors import Done, Job, Unfit, here
from earmark.runs.identity import fingerprint
from earmark.runs.packs import LostPacks, Records, read_records
from earmark.runs.store import Cache, Entry, Made
from earmark.runs.strangers import Reads

SUBSETS_KIND = "subsets"
LIBRARIES = sorted({*EMBED.libraries, *evaluate.PCA.libraries, *evaluate.EVALUATE.libraries, *probing.PROBE.libraries})
"""Those whose versions are part of keys: a worker with others would write what nobody finds."""

EMBED_WINDOWS = f"{__name__}:embed_windows"
MEASURE_SYSTEM = f"{__name__}:measure_system"


# --- subsets -------------------------------------------------------------------------------------------------


def keep_subset(cache: Cache, subset: PreparedSubset) -> str:
    """Put what a run knows of the clips of a subset into the cache, and return its key."""
    known = [subset.suite, subset.name, [clip.id for clip in subset.clips], subset.digests, subset.seconds]
    columns = np.frombuffer(json.dumps(known).encode(), np.uint8)
    key = fingerprint(known)
    cache.put(SUBSETS_KIND, key, Entry({}, {"columns": columns}))
    return key


def _subset(job: Job, key: str) -> PreparedSubset:
    """A subset as the run that asks has prepared it."""
    if ("subset", key) not in job.kept:
        entry = job.cache.get(SUBSETS_KIND, key)
        if entry is None:
            raise Unfit(f"{here()} does not find the clips of this run in the cache {job.cache.url}: run it again.")
        suite, name, ids, digests, seconds = json.loads(entry.arrays["columns"].tobytes())
        known = _clips(job, suite, name)
        lacking = next((id for id in ids if id not in known), None)
        if lacking is not None:
            spec = next((entry.spec for entry in _config(job).corpus if entry.name in (None, suite)), suite)
            raise Unfit(
                f"{here()} does not see the clip {lacking!r} of {suite}/{name} ({spec}): share it with all machines."
            )
        clips = tuple(as_hashed(known[id], digest) for id, digest in zip(ids, digests, strict=True))
        job.kept["subset", key] = PreparedSubset(
            suite, name, CorpusCard(suite), clips, tuple(digests), tuple(seconds), ()
        )
    subset: PreparedSubset = job.kept["subset", key]
    return subset


def _clips(job: Job, suite: str, name: str) -> dict[str, Clip]:
    """The clips of a subset by id, as this machine finds them."""
    config = _config(job)
    try:
        if "corpora" not in job.kept:
            job.kept["corpora"] = [
                corpus.at_speed(config.speed) for corpus in open_corpora(config.corpus, config.label_separator)
            ]
        for corpus, entry in zip(job.kept["corpora"], config.corpus, strict=True):
            if corpus.name == suite:
                clips = choose_subsets(corpus, entry.subsets).get(name.rpartition("~")[0] if config.sample else name)
                if clips is not None:
                    return {clip.id: clip for clip in clips}
    except EarmarkError as error:
        raise Unfit(f"{here()} cannot open the corpus: {error}") from error
    raise Unfit(f"{here()} does not see the subset {suite}/{name}: share the corpus with all machines.")


def _config(job: Job) -> RunConfig:
    if "config" not in job.kept:
        job.kept["config"] = RunConfig.make(job.config)
    config: RunConfig = job.kept["config"]
    return config


# --- embedding -----------------------------------------------------------------------------------------------


def embed_windows(
    job: Job,
    name: str,
    identity: str,
    subset_key: str,
    parts: Sequence[str],
    windows: Sequence[Sequence[int]],
    before: tuple[bool, bool, int, int],
    school: Sequence[str] = (),
) -> Done:
    """Hear clips of a subset with a model, window by window; `windows` are their places among the readable ones.

    `before`: whether these are the first clips that the model hears, whether it has managed others of the subset, on
    how many it has failed, and how many features it has. `school`: the subsets that it learns from together.
    """
    config, subset = _config(job), _subset(job, subset_key)
    model = replace(_model(job, name, identity), school=tuple(_subset(job, key) for key in school))
    readable = subset.readable
    first, managed, failed, features = before
    items = [[readable[place] for place in window] for window in windows]
    todo = embed.Todo(items, tuple(parts), cached=int(managed))
    outcome = embed.embed(
        subset,
        model,
        todo,
        Records(job.cache, vectors_kind(model.key(subset))),
        batch=config.batch,
        workers=job.threads,
        before=embed.Before(first, failed, features, opened=job.kept.setdefault("opened", {})),
    )
    facts = {"refused": {digest: list(refusal) for digest, refusal in outcome.refused.items()},
             "features": outcome.features}  # fmt: skip
    counts = {"computed": outcome.computed, "failed": len(outcome.refused), "clips": todo.clips}
    return Done(counts, tuple(outcome.failures), facts)


def _model(job: Job, name: str, identity: str) -> Model:
    """A model of the config, which must be the one that the run means."""
    if ("model", name) not in job.kept:
        for entry in _config(job).extractors:  # the name of one that learns may say from what
            if name == entry.name or name.startswith(f"{entry.name} on "):
                try:
                    model = describe_model(entry, job.cache, _config(job).device)
                except EarmarkError as error:
                    raise Unfit(f"{here()} cannot open the model {name}: {error}") from error
                job.kept.setdefault(("model", model.name), model)
    found: Model = job.kept["model", name]
    if found.identity != identity:
        raise Unfit(
            f"{here()} has another {name} than the run: its code, its weights or the packages it uses differ; make "
            "them the same there, give files by absolute path, and start workers anew after a change."
        )
    return found


# --- measuring -----------------------------------------------------------------------------------------------


def system_arguments(system: System, subset: PreparedSubset) -> tuple[Any, ...]:
    """A system as a step carries it: measuring needs its vectors and not its model."""
    how = list(system.parts), system.pca, list(system.distances), system.layer, system.whiten
    return (system.name, system.code, system.model.name, system.model.key(subset), system.pooling, *how)


def _system(
    name: str, code: str, model: str, key: str, pooling: str, parts: Sequence[str], pca: int | None,
    distances: Sequence[str], layer: int | None, whiten: bool,
) -> System:  # fmt: skip
    unopened = Model(model, "", "", {}, ExtractorCard(name=model), key, False, Reads({}, {}, []))
    return System(name, code, unopened, pooling, tuple(parts), pca, tuple(distances), layer, whiten)


def measure_system(job: Job, subset_key: str, system: Sequence[Any], wanted: Sequence[str]) -> Done:
    """Every measurement and probe of a system over a subset that the cache does not hold."""
    subset, config = _subset(job, subset_key), _config(job)
    measured = _system(*system)
    records = read_records(job.cache, vectors_kind(measured.model.key(subset)))
    return measure(job.cache, config, subset, measured, records, config.threads or job.threads, wanted)


def measure(
    cache: Cache, config: RunConfig, subset: PreparedSubset, system: System, records: Records, threads: int,
    wanted: Sequence[str],
) -> Done:  # fmt: skip
    """The same for what is known already; vectors that the cache has lost are left to the run."""
    config = config.model_copy(update={"threads": threads})
    vectors = evaluate.vectors_of(subset, system, records)
    loaded: list[Made] = []

    def values() -> Entry:
        if not loaded:
            loaded.append(evaluate.load(cache, vectors, records, threads))
        return loaded[0].entry

    jobs: list[tuple[str, str, Callable[[], Entry]]] = []
    if vectors.rows and "evaluate" in wanted:
        jobs += [
            (evaluate.SCORES_KIND, job.key, lambda job=job: evaluate.measure(job, values(), records, config))  # type: ignore[misc]
            for job in evaluate.measurements_of(vectors, config)
        ]
    if vectors.rows and "probe" in wanted:
        jobs += [
            (probing.PROBES_KIND, job.key, lambda job=job: probing.probe(job, values(), config))  # type: ignore[misc]
            for job in probing.probings_of(vectors, config)
        ]
    computed: list[str] = []
    with suppress(LostPacks):
        for kind, key, make in jobs:
            if cache.peek(kind, key) is None:
                cache.put(kind, key, make())
                computed.append(key)
    reduced = sum(made.computed for made in loaded)
    return Done({"computed": len(computed), "reduced": reduced}, facts={"keys": computed})
