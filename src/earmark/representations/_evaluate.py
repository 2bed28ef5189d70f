"""The stages after embedding, each a function of content: vectors → PCA → scores. Results lie in the cache.

A measurement is one subset, one system, one distance, one correction and one share of label noise. Its key is made of
the sounds, the labels and groups, the model, the pooling, the PCA and the options, so it is found again only when
nothing it depends on has changed. Names (suite, subset, system) are put on the rows afterwards: renaming costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.corpora.clips import groups_of, labels_of
from earmark.corpora.subsets import PreparedSubset
from earmark.embedding import pca, pooling
from earmark.errors import InputError
from earmark.evaluation import evaluate
from earmark.metrics import catalogue
from earmark.progress import Progress
from earmark.representations import _layers as layers
from earmark.representations import _sequences as sequences
from earmark.representations._copies import remark_on_copies
from earmark.representations._samples import remark_on_sample
from earmark.representations._systems import Model, System
from earmark.representations.config import RunConfig
from earmark.runs.identity import Stage, fingerprint
from earmark.runs.packs import Records
from earmark.runs.store import Cache, Entry, Made
from earmark.scores import Row
from earmark.scores.spelling import with_noise
from earmark.vectors import Distances
from earmark.wording import counted

PCA = Stage(
    "pca", 1, libraries=("numpy", "scipy", "scikit-learn"), modules=("embedding/pca.py", "embedding/pooling.py")
)
EVALUATE = Stage(
    "evaluate",
    4,
    libraries=("numpy", "scipy", "scikit-learn", "numba", "umap-learn"),
    modules=(
        "calibrate/**/*.py",
        "evaluation/**/*.py",
        "geometry/**/*.py",
        "metrics/**/*.py",
        "representations/_evaluate.py",
        "representations/_sequences.py",
    ),
)
PCA_KIND = "pca"
SCORES_KIND = "scores"
KEPT_POINTS = ("nearest_row", "P@1", "P@5", "GSR", "hub_ratio")
"""Per-point values that reports need: which clip was nearest to each, and how well each was placed."""


def without_each(protocol: str, metric: str) -> str:
    """The name under which a measurement keeps the values of a metric without each unit."""
    return f"{protocol} without {metric}"


# --- label noise, an ablation --------------------------------------------------------------------------------


def flip_labels(labels: Sequence[str | None], share: float, seed: int) -> list[str | None]:
    """Give `share` of the labelled clips (rounded to whole clips) another class's label, drawn uniformly.

    The classes are those present. The same labels, share and seed give the same flips; a larger share keeps the
    clips that a smaller one chose. With fewer than two classes nothing can be flipped.
    """
    classes = sorted({label for label in labels if label})
    labelled = [row for row, label in enumerate(labels) if label]
    flipped = list(labels)
    if len(classes) < 2:
        return flipped
    numbers = {label: number for number, label in enumerate(classes)}
    generator = np.random.default_rng(seed)
    order = generator.permutation(labelled)
    steps = generator.integers(1, len(classes), len(labelled))
    for row, step in list(zip(order, steps, strict=True))[: round(share * len(labelled))]:
        own = numbers[labels[row] or ""]
        flipped[row] = classes[(own + int(step)) % len(classes)]
    return flipped


# --- what there is to measure --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vectors:
    """The vectors of one system over one subset, by what they depend on; nothing is loaded."""

    subset: PreparedSubset
    system: System
    rows: tuple[int, ...]  # clips of the subset that have vectors, in its order
    pca_key: str | None
    key: str

    @property
    def digests(self) -> list[str]:
        return [self.subset.digests[row] or "" for row in self.rows]

    def truth(self, noise: float, seed: int) -> tuple[list[str | None], list[str | None] | None]:
        """Labels and groups of the clips that have vectors; noise falls on the same clips for every system."""
        labels = labels_of(self.subset.clips)
        if noise:
            labels = flip_labels(labels, noise, seed)
        return [labels[row] for row in self.rows], groups_of([self.subset.clips[row] for row in self.rows])


@dataclass(frozen=True)
class Measurement:
    """One measurement: which vectors, which distance, how it is corrected, how much label noise."""

    vectors: Vectors
    distance: str
    noise: float
    key: str
    correction: str = "none"


def vectors_of(
    subset: PreparedSubset,
    system: System,
    records: Records,
    *,
    assume: bool = False,
    failed: Collection[str] = (),
    only: Collection[int] | None = None,
) -> Vectors:
    """The vectors that are there; with `assume`, those that will be there when every readable clip is embedded.

    `failed` are ids of clips that are known to fail, and will again; `only` the places of the clips to take.
    """
    chosen = None if only is None else frozenset(only)
    known = records.having(system.parts)
    rows = tuple(
        row
        for row, digest in enumerate(subset.digests)
        if digest is not None
        and (chosen is None or row in chosen)
        and (digest in known or (assume and subset.clips[row].id not in failed))
    )
    raw = fingerprint(system.model.key(subset), system.parts, [subset.digests[row] for row in rows])
    if system.pca is None:
        return Vectors(subset, system, rows, None, raw)
    reduced = PCA.key(raw, system.pca, *(["whitened"] if system.whiten else []))
    return Vectors(subset, system, rows, reduced, reduced)


def measurements_of(vectors: Vectors, config: RunConfig) -> Iterator[Measurement]:
    """Every measurement of some vectors, in the order of the score table."""
    for noise in (0.0, *config.label_noise):
        labels, groups = vectors.truth(noise, config.seed)
        options = {**config.options(), "across_groups": config.across_groups and groups is not None}
        truth = fingerprint(labels, groups, *filter(None, [catalogue.digest(config.metrics or ())]))
        for distance, correction in product(vectors.system.distances, config.correct):
            key = EVALUATE.key(vectors.key, truth, distance, correction, options, config.across_groups)
            yield Measurement(vectors, distance, noise, key, correction)
    if config.dtw is not None:
        yield from _alignments_of(vectors, config)


def _alignments_of(vectors: Vectors, config: RunConfig) -> Iterator[Measurement]:
    """DTW: of all distances what is measured of any; of re-ranked lists P@k alone."""
    assert config.dtw is not None
    labels, groups = vectors.truth(0.0, config.seed)
    alignment = _alignment(vectors, labels, config)
    distance = config.dtw.distance + sequences.SUFFIX
    options = {**config.options(), "across_groups": config.across_groups and groups is not None}
    own = catalogue.digest(config.metrics or ())
    if alignment.complete:
        aligned = alignment.key(vectors.system.model.key(vectors.subset))
        for correction in config.correct:
            key = EVALUATE.key("dtw", aligned, labels, groups, own, distance, correction, options, config.across_groups)
            yield Measurement(vectors, distance, 0.0, key, correction)
        return
    how = [config.dtw.model_dump(), options, config.across_groups]
    key = EVALUATE.key("dtw", sequences.DTW.version, PCA.version, vectors.key, labels, own, how)
    yield Measurement(vectors, distance, 0.0, key)


def _alignment(vectors: Vectors, labels: Sequence[str | None], config: RunConfig) -> sequences.Alignment:
    return sequences.alignment_of(labels, vectors.digests, vectors.system.layer, config)


# --- loading and reducing ------------------------------------------------------------------------------------


def assemble(records: Records, digests: Sequence[str], parts: Sequence[str]) -> NDArray[np.float32]:
    """The matrix [clips, D]: each part padded with zeros in time to its longest, the parts side by side.

    Raises `LostPacks` when the cache has lost some.
    """
    widths = [records.longest(part, digests) for part in parts]
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(int)
    values = np.zeros((len(digests), int(starts[-1])), np.float32)
    for start, width, part in zip(starts, widths, parts, strict=False):
        rows_over_time = _rows_over_time(part, records, {records.spans[part][digest].pack for digest in digests})
        for row, vector in records.arrays(digests, part):
            pooling.lay(values[row, start : start + width], vector, rows_over_time)
    return values


def _rows_over_time(part: str, records: Records, packs: set[str]) -> int:
    """How many rows a part is padded in. Packs of Earmark 0.1.0 do not tell, and were measured as one row."""
    features = {records.about[pack].get("features", 1) for pack in packs}
    rows = {pooling.rows_of(layers.split(part)[1], count) for count in features}
    if len(rows) > 1:
        raise InputError(
            f"The cache holds vectors of one model with {' and '.join(map(str, sorted(rows)))} features: compute them "
            "again with --cache refresh."
        )
    return rows.pop() if rows else 1


def load(cache: Cache, vectors: Vectors, records: Records, threads: int | None = None) -> Made:
    """The vectors as an entry with `values` and a `note`: pooled ones as they are, reduced ones by `PCA`."""
    dimension = vectors.system.pca

    def reduce() -> Entry:
        raw = assemble(records, vectors.digests, vectors.system.parts)
        if dimension is None:
            return Entry({"note": ""}, {"values": raw})
        reduced = pca.reduce(raw, dimension, whiten=vectors.system.whiten, threads=threads)
        meta = {"note": reduced.pca.note, "explained": float(reduced.pca.explained.sum())}
        return Entry(meta, {"values": reduced.vectors})

    return Made(reduce(), False) if vectors.pca_key is None else cache.recall(PCA_KIND, vectors.pca_key, reduce)


# --- measuring -----------------------------------------------------------------------------------------------


def measure(job: Measurement, loaded: Entry, records: Records, config: RunConfig, progress: Progress = False) -> Entry:
    """The rows of a measurement, without names, and the per-point values that reports need."""
    values, note = np.asarray(loaded.arrays["values"]), loaded.meta["note"]
    points: NDArray[np.float32] | Distances = values
    labels, groups = job.vectors.truth(job.noise, config.seed)
    started = time.perf_counter()
    how: dict[str, Any] = {"distance": job.distance}
    try:
        if job.distance.endswith(sequences.SUFFIX):
            alignment = _alignment(job.vectors, labels, config)
            if not alignment.complete:
                return _reranked(job, alignment, values, records, config, note)
            model = job.vectors.system.model.key(job.vectors.subset)
            points = sequences.all_distances(alignment, records, alignment.key(model), config, progress)
            how, note = {"distance_name": job.distance}, ""  # pooled vectors play no part
        scores = evaluate(
            points,
            labels,
            correct=job.correction,
            groups=groups,
            across_groups=config.across_groups and groups is not None,
            per_point=True,
            per_unit=True,
            memory=int(config.memory) if config.memory.isdigit() else config.memory,
            threads=config.threads,
            device=config.device,
            **how,
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
        if metric in (*catalogue.LABELS, *catalogue.SEPARATION) or metric.startswith("P@")  # systems are compared
    }
    return Entry({"rows": rows, "note": note, "seconds": time.perf_counter() - started}, arrays)


def _reranked(
    job: Measurement, alignment: sequences.Alignment, vectors: NDArray[np.float32], records: Records,
    config: RunConfig, note: str,
) -> Entry:  # fmt: skip
    """P@k of re-ranked lists, and rows that say why there is nothing else."""
    started = time.perf_counter()
    found = sequences.reranked_rows(alignment, vectors, records, config=config, inputs=job.key)
    seconds = time.perf_counter() - started
    rows = [replace(row, seconds=seconds).as_dict() for row in found]
    measured = {row.metric for row in found}
    for protocol in ("all", *(["across_groups"] if config.across_groups else [])):
        lacking = _not_applicable(config, job.distance, job.correction, protocol, sequences.lacking(alignment))
        rows += [row for row in lacking if protocol != "all" or row["metric"] not in measured]
    return Entry({"rows": rows, "note": note, "seconds": seconds})


def _not_applicable(
    config: RunConfig, distance: str, correction: str, protocol: str, reason: str
) -> list[dict[str, Any]]:
    names, ks = catalogue.plan(config.metrics, config.k)
    about = Row(
        distance=distance, correction=correction, protocol=protocol, status="not_applicable", reason=reason,
        version=__version__,
    )  # fmt: skip
    return [replace(about, metric=metric).as_dict() for metric in [*(f"P@{k}" for k in ks), *names]]


# --- rows with names -----------------------------------------------------------------------------------------


def failed_rows(subset: PreparedSubset, system: System, config: RunConfig, reason: str) -> list[Row]:
    """Rows of a system that has no vectors of a subset at all."""
    return [
        replace(
            Row(**row), suite=subset.suite, subset=with_noise(subset.name, noise), system=system.name, status="failed"
        )
        for noise in (0.0, *config.label_noise)
        for distance, correction in product(system.distances, config.correct)
        for row in _not_applicable(config, distance, correction, "all", reason)
    ]


def named_rows(job: Measurement, entry: Entry, records: Records, *, shared: bool = False) -> list[Row]:
    """The rows of a measurement as they stand in the score table: named, with everything a reader should know of n.

    `shared` says that the clips were chosen because several systems have them.
    """
    remarks = [*remarks_on(job.vectors, records, shared=shared), *filter(None, [entry.meta["note"]])]
    if job.noise:
        remarks.append(f"label noise {job.noise:.3g}")
    subset, system = job.vectors.subset, job.vectors.system
    names = {"suite": subset.suite, "subset": with_noise(subset.name, job.noise), "system": system.name}
    return [
        Row(**{**cells, **names, "reason": "; ".join(filter(None, [*remarks, cells["reason"]]))})
        for cells in entry.meta["rows"]
    ]


def remarks_on(vectors: Vectors, records: Records, *, shared: bool) -> list[str]:
    """What was noticed of the model, which clips were drawn, copies, clips that failed and clips that the model does
    not hear to their end."""
    subset = vectors.subset
    remarks = [*filter(None, [remark_on_model(records), remark_on_sample(subset), remark_on_copies(subset)])]
    clips, scored = len(vectors.subset.clips), len(vectors.rows)
    if shared:
        remarks.append(f"on the {scored} of {clips} clips that all compared systems have")
    elif scored < clips:
        lost = ", more than half: not ranked" if 2 * scored < clips else ""
        verb = "is" if clips - scored == 1 else "are"
        remarks.append(f"{counted(clips - scored, 'clip')} failed and {verb} left out{lost}")
    cut = truncated(vectors.digests, records, vectors.system.model)
    if cut:
        limit = vectors.system.model.card.context_seconds
        remarks.append(f"{counted(cut, 'clip')} truncated to the {limit:g} s the model hears")
    return remarks


def remark_on_model(records: Records) -> str:
    """What was noticed of a model when it first heard these clips, now or in an earlier run."""
    return next((about["remark"] for about in records.about.values() if about.get("remark")), "")


def truncated(digests: Sequence[str], records: Records, model: Model) -> int:
    """How many clips are longer than the model hears; one of exactly the limit may be a resampled sample longer."""
    limit = model.card.context_seconds
    if limit is None:
        return 0
    known = records.records
    return sum(known[digest]["seconds"] > limit + 0.001 for digest in digests if digest in known)
