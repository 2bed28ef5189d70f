"""The steps after embedding, each a function of content: vectors → PCA → scores. Results lie in the cache.

A job is one subset, one system, one distance, one correction and one share of label noise. Its key is the hash of the
sounds, the labels and groups, the extractor, the pooling, the PCA, the options and the code that measures, so a job is
found again only when nothing it depends on has changed. Names (suite, subset, system) are put on the rows afterwards:
renaming costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.corpora.clips import groups_of, labels_of
from earmark.embedding import pca
from earmark.errors import InputError
from earmark.evaluation import evaluate
from earmark.metrics import catalogue
from earmark.pipeline import keys, packs, sequences
from earmark.pipeline.cache import Cache
from earmark.pipeline.config import RunConfig
from earmark.pipeline.copies import remark_on_copies
from earmark.pipeline.entries import Entry
from earmark.pipeline.models import Model, System
from earmark.pipeline.noise import flip_labels
from earmark.pipeline.packs import Index
from earmark.pipeline.prepare import Subset
from earmark.scores import Row
from earmark.scores.spelling import with_noise
from earmark.wording import counted

PCA_KIND = "pca"
SCORES_KIND = "scores"
KEPT_POINTS = ("nearest_row", "P@1", "GSR", "hub_ratio")
"""Per-point values that reports need: which clip was nearest to each, and how well each was placed."""
KEPT_UNITS = ("GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette")
"""Metrics, beside P@k, whose values without each unit are kept: systems are compared by them."""


def without_each(protocol: str, metric: str) -> str:
    """The name under which an evaluation keeps the values of a metric without each unit."""
    return f"{protocol} without {metric}"


@dataclass(frozen=True)
class Vectors:
    """The vectors of one system over one subset, by what they depend on; nothing is loaded."""

    subset: Subset
    system: System
    rows: tuple[int, ...]  # clips of the subset that have vectors, in its order
    pca_key: str | None
    key: str

    @property
    def digests(self) -> list[str]:
        return [self.subset.digests[row] or "" for row in self.rows]


@dataclass(frozen=True)
class Job:
    """One measurement: which vectors, which distance, how it is corrected, how much label noise."""

    vectors: Vectors
    distance: str
    noise: float
    key: str
    correction: str = "none"


class Made(NamedTuple):
    """What a step returned, and whether it had to be computed."""

    value: Any
    computed: bool


def vectors_of(
    subset: Subset,
    system: System,
    index: Index,
    *,
    assume: bool = False,
    failed: Collection[str] = (),
    only: Collection[int] | None = None,
) -> Vectors:
    """The vectors that are there; with `assume`, those that will be there when every readable clip is embedded.

    `failed` are ids of clips that are known to fail, and will again; `only` the places of the clips to take.
    """
    chosen = None if only is None else frozenset(only)
    rows = tuple(
        row
        for row, digest in enumerate(subset.digests)
        if digest is not None
        and (chosen is None or row in chosen)
        and (not index.lacks(digest, system.parts) or (assume and subset.clips[row].id not in failed))
    )
    raw = keys.fingerprint(
        system.model.key(subset),
        system.parts,
        [subset.digests[row] for row in rows],
        keys.code_of(keys.ASSEMBLY_CODE),
    )
    if system.pca is None:
        return Vectors(subset, system, rows, None, raw)
    reduced = keys.fingerprint("pca", raw, system.pca, keys.code_of(keys.PCA_CODE))
    return Vectors(subset, system, rows, reduced, reduced)


def jobs_of(vectors: Vectors, config: RunConfig) -> Iterator[Job]:
    """Every measurement of some vectors, in the order of the score table."""
    for noise in (0.0, *config.label_noise):
        labels, groups = truth(vectors, noise, config.seed)
        options = {**config.options(), "across_groups": config.across_groups and groups is not None}
        truth_key = keys.fingerprint(labels, groups)
        for distance, correction in product(vectors.system.distances, config.correct):
            key = keys.fingerprint(
                "scores 2",
                vectors.key,
                truth_key,
                distance,
                correction,
                options,
                config.across_groups,
                __version__,
                keys.versions(*keys.EVALUATION_LIBRARIES),
                keys.code_of(keys.EVALUATION_CODE),
            )
            yield Job(vectors, distance, noise, key, correction)
    if config.dtw is not None:
        labels, _ = truth(vectors, 0.0, config.seed)
        asked = [config.dtw.model_dump(), config.metrics, config.k, config.min_class_size, config.ties]
        key = keys.fingerprint(
            "dtw",
            vectors.key,
            labels,
            asked,
            __version__,
            keys.versions(*keys.EVALUATION_LIBRARIES),
            keys.code_of(keys.EVALUATION_CODE + keys.PCA_CODE),
        )
        yield Job(vectors, config.dtw.distance + sequences.SUFFIX, 0.0, key)


def truth(vectors: Vectors, noise: float, seed: int) -> tuple[list[str | None], list[str | None] | None]:
    """Labels and groups of the clips that have vectors; noise falls on the same clips for every system."""
    clips = vectors.subset.clips
    labels = labels_of(clips)
    if noise:
        labels = flip_labels(labels, noise, seed)
    return [labels[row] for row in vectors.rows], groups_of([clips[row] for row in vectors.rows])


# --- loading and reducing ------------------------------------------------------------------------------------


def load_raw(cache: Cache, vectors: Vectors, index: Index) -> NDArray[np.float32]:
    """The pooled vectors before PCA; `packs.LostPacks` when the cache has lost some."""
    key = vectors.system.model.key(vectors.subset)
    return packs.assemble(cache, key, index, vectors.digests, vectors.system.parts)


def load(cache: Cache, vectors: Vectors, index: Index, threads: int | None = None) -> Made:
    """The vectors as (values, note): from the cache, or reduced now and stored."""
    if vectors.pca_key is None or vectors.system.pca is None:
        return Made((load_raw(cache, vectors, index), ""), False)
    entry = cache.get(PCA_KIND, vectors.pca_key)
    if entry is not None:
        return Made((entry.arrays["values"], entry.meta["note"]), False)
    reduced = pca.reduce(load_raw(cache, vectors, index), vectors.system.pca, threads=threads)
    meta = {"note": reduced.pca.note, "explained": float(reduced.pca.explained.sum())}
    cache.put(PCA_KIND, vectors.pca_key, Entry(meta, {"values": reduced.vectors}))
    return Made((reduced.vectors, reduced.pca.note), True)


# --- measuring -----------------------------------------------------------------------------------------------


def measure(job: Job, values: NDArray[np.float32], note: str, *, config: RunConfig) -> Entry:
    """The rows of a job, without names, and the per-point values that reports need."""
    labels, groups = truth(job.vectors, job.noise, config.seed)
    started = time.perf_counter()
    try:
        scores = evaluate(
            values,
            labels,
            distance=job.distance,
            correct=job.correction,
            groups=groups,
            across_groups=config.across_groups and groups is not None,
            per_point=True,
            per_unit=True,
            memory=_memory(config),
            threads=config.threads,
            device=config.device,
            **config.options(),
        )
    except InputError as error:
        rows = _not_applicable(config, job.distance, job.correction, "all", str(error))
        return Entry({"rows": rows, "note": note, "seconds": time.perf_counter() - started})
    rows = [row.as_dict() for row in scores.rows]
    if config.across_groups and groups is None:
        rows += _not_applicable(config, job.distance, job.correction, "across_groups", "the clips have no groups")
    arrays = {
        f"{protocol} {metric}": points
        for (_, _, protocol, metric), points in scores.per_point.items()
        if metric in KEPT_POINTS
    }
    arrays |= {
        without_each(protocol, metric): values
        for (_, _, protocol, metric), values in scores.per_unit.items()
        if metric in KEPT_UNITS or metric.startswith("P@")
    }
    return Entry({"rows": rows, "note": note, "seconds": time.perf_counter() - started}, arrays)


def measure_sequences(
    job: Job, values: NDArray[np.float32], note: str, *, cache: Cache, index: Index, config: RunConfig
) -> Entry:
    """The rows of a DTW job."""
    assert config.dtw is not None
    vectors = job.vectors
    labels, _ = truth(vectors, 0.0, config.seed)
    kept = sequences.scored_rows(labels, config.min_class_size)
    digests = vectors.digests
    key = vectors.system.model.key(vectors.subset)
    own = [digests[row] for row in kept]
    stored = sequences.StoredFrames(cache, key, index, own, config.dtw.stride, vectors.system.layer)
    return sequences.measure(values, labels, stored, kept, note, config=config, options=config.dtw, inputs=job.key)


def _memory(config: RunConfig) -> str | int:
    return int(config.memory) if config.memory.isdigit() else config.memory


def _not_applicable(
    config: RunConfig, distance: str, correction: str, protocol: str, reason: str
) -> list[dict[str, Any]]:
    names, ks = catalogue.plan(config.metrics, config.k)
    metrics = [*(f"P@{k}" for k in ks), *names]
    return [
        Row(
            metric=metric,
            distance=distance,
            correction=correction,
            protocol=protocol,
            status="not_applicable",
            reason=reason,
            version=__version__,
        ).as_dict()
        for metric in metrics
    ]


def failed_rows(subset: Subset, system: System, config: RunConfig, reason: str) -> list[Row]:
    """Rows of a system that has no vectors of a subset at all."""
    return [
        replace(
            Row(**row),
            suite=subset.suite,
            subset=with_noise(subset.name, noise),
            system=system.name,
            status="failed",
        )
        for noise in (0.0, *config.label_noise)
        for distance, correction in product(system.distances, config.correct)
        for row in _not_applicable(config, distance, correction, "all", reason)
    ]


def named_rows(job: Job, entry: Entry, index: Index, *, shared: bool = False) -> list[Row]:
    """The rows of a job as they stand in the score table: named, with everything a reader should know of n.

    `shared` says that the clips were chosen because several systems have them.
    """
    subset, system = job.vectors.subset, job.vectors.system
    remarks = [*remarks_on(job.vectors, index, shared=shared), *filter(None, [entry.meta["note"]])]
    if job.noise:
        remarks.append(f"label noise {job.noise:.3g}")
    rows = []
    for cells in entry.meta["rows"]:
        row = Row(**cells)
        rows.append(
            replace(
                row,
                suite=subset.suite,
                subset=with_noise(subset.name, job.noise),
                system=system.name,
                reason="; ".join(filter(None, [*remarks, row.reason])),
            )
        )
    return rows


def remarks_on(vectors: Vectors, index: Index, *, shared: bool = False) -> list[str]:
    """What was noticed of the model, copies, clips that failed and clips that the model does not hear to their end."""
    remarks = [*filter(None, [index.remark, remark_on_copies(vectors.subset)])]
    failed = len(vectors.subset.clips) - len(vectors.rows)
    if shared:
        remarks.append(
            f"on the {len(vectors.rows)} of {len(vectors.subset.clips)} clips that all compared systems have"
        )
    elif failed:
        lost = ", more than half: not ranked" if 2 * len(vectors.rows) < len(vectors.subset.clips) else ""
        remarks.append(f"{counted(failed, 'clip')} failed and {'is' if failed == 1 else 'are'} left out{lost}")
    cut = truncated(vectors.digests, index, vectors.system.model)
    if cut:
        limit = vectors.system.model.card.context_seconds
        remarks.append(f"{counted(cut, 'clip')} truncated to the {limit:g} s the model hears")
    return remarks


def truncated(digests: Sequence[str], index: Index, model: Model) -> int:
    limit = model.card.context_seconds
    if limit is None:
        return 0
    # A clip of exactly the limit may be one resampled sample longer.
    return sum(index.facts[digest].seconds > limit + 0.001 for digest in digests if digest in index.facts)
