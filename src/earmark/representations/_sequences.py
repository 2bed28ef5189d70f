"""DTW re-ranking of a system's nearest neighbours, an ablation: scores before pooling threw the order of frames away.

Rows carry the distance that found the candidates: `spearman+dtw`. Frames come from the cache, clip by clip; the PCA
is fitted on the frames that were kept (every `stride`-th).

    as many candidates as there are other clips   every DTW distance is known: they are measured like any distances
                                                  that are given, with all metrics, intervals, groups, corrections
    fewer                                         P@k of the re-ranked lists, and nothing that needs other distances
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.calibrate import sample as sampling
from earmark.errors import InputError
from earmark.evaluation import dtw
from earmark.evaluation.options import byte_count
from earmark.geometry import spaces
from earmark.geometry.layout import one_class
from earmark.geometry.sweep import Wanted, sweep
from earmark.metrics import catalogue, retrieval
from earmark.progress import Progress
from earmark.representations import _layers as layers
from earmark.representations.config import DtwOptions, RunConfig
from earmark.runs.identity import Stage
from earmark.runs.packs import Records
from earmark.runs.store import Entry
from earmark.scores import Row
from earmark.scores.spelling import SAMPLED
from earmark.vectors import Distances
from earmark.vectors._condensed import condensed_places
from earmark.wording import counted
from earmark.workers import thread_count

SUFFIX = "+dtw"
DTW = Stage(
    "dtw",
    1,
    libraries=("numpy", "scipy", "numba"),
    modules=("embedding/pca.py", "evaluation/dtw.py", "representations/_sequences.py"),
)
DTW_KIND = "dtw"


class StoredFrames:
    """Frames [T, D] of clips in the cache, in their order; may be gone through again and again."""

    def __init__(self, records: Records, digests: Sequence[str], stride: int, layer: int | None = None) -> None:
        self._records, self._digests = records, digests
        self._parts = layers.frame_parts(stride, layer)

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        values, width = self._parts
        for digest in self._digests:
            columns = int(self._records.array(digest, width)[0])
            yield self._records.array(digest, values).reshape(-1, columns)


@dataclass(frozen=True)
class Alignment:
    """Which clips of a system are aligned with which: the rows whose class is large enough, each with so many."""

    options: DtwOptions
    labels: Sequence[str | None]
    digests: Sequence[str]
    kept: tuple[int, ...]
    candidates: int
    layer: int | None

    @property
    def complete(self) -> bool:
        """Whether every clip is aligned with every other one."""
        return self.candidates > 0 and self.candidates == len(self.kept) - 1

    def key(self, model: str) -> str:
        """What all distances depend on: the model's frames of these clips, in their order."""
        how = self.options.model_dump(exclude={"candidates", "distance"})
        return DTW.key(model, self.layer, how, [self.digests[row] for row in self.kept])


def alignment_of(
    labels: Sequence[str | None], digests: Sequence[str], layer: int | None, config: RunConfig
) -> Alignment:
    """What is to be aligned, of the clips whose class is large enough, as for every metric."""
    assert config.dtw is not None
    sizes = Counter(label for label in labels if label)
    kept = tuple(row for row, label in enumerate(labels) if label and sizes[label] >= config.min_class_size)
    others, wanted = max(0, len(kept) - 1), config.dtw.candidates
    return Alignment(config.dtw, labels, digests, kept, others if wanted == "all" else min(wanted, others), layer)


# --- all distances -------------------------------------------------------------------------------------------


def all_distances(
    given: Alignment, records: Records, key: str, config: RunConfig, progress: Progress = False
) -> Distances:
    """The DTW distances of all pairs; NaN for clips that are not scored. They are found again for other poolings."""
    count = len(given.kept)
    size, memory = 4 * count * (count - 1), _memory(config)
    if size > memory:
        raise InputError(
            f"the DTW distances of all pairs of {count} clips take {size / 1e9:.1f} GB, and --memory allows "
            f"{memory / 1e9:.1f}: draw clips with --sample, allow more, or compare fewer with --dtw 200"
        )

    def align() -> Entry:
        sequences = _sequences(given, records)
        distances = dtw.all_distances(sequences, radius=given.options.radius, threads=config.threads, progress=progress)
        return Entry({}, {"distances": distances})

    found = np.asarray(records.cache.recall(DTW_KIND, key, align).entry.arrays["distances"])
    n = len(given.labels)
    if count == n:
        return Distances(found, source="DTW")
    values, start = np.full(n * (n - 1) // 2, np.nan), 0
    rows = np.asarray(given.kept)
    for place in range(count - 1):
        others = rows[place + 1 :]
        values[condensed_places(rows[place], others, n)] = found[start : start + len(others)]
        start += len(others)
    return Distances(values, source="DTW")


def _sequences(given: Alignment, records: Records) -> dtw.Sequences:
    stored = StoredFrames(records, [given.digests[row] for row in given.kept], given.options.stride, given.layer)
    return dtw.prepare(stored, components=given.options.dimension, stride=1)


# --- re-ranked lists -----------------------------------------------------------------------------------------


def reranked_rows(
    given: Alignment, vectors: NDArray[np.float32], records: Records, *, config: RunConfig, inputs: str
) -> list[Row]:
    """P@k of the nearest neighbours by the pooled vectors, re-ranked."""
    _, ks = catalogue.plan(config.metrics, config.k)
    about: dict[str, Any] = {
        "distance": f"{given.options.distance}{SUFFIX}", "version": __version__, "inputs": inputs
    }  # fmt: skip
    if given.candidates < 1:
        return [Row(metric=f"P@{k}", status="not_applicable", reason="too few labelled clips", **about) for k in ks]
    kept = list(given.kept)
    sample = sampling.draw(one_class(len(kept)), config.queries, config.seed, by_class=False)
    asking = np.arange(len(kept)) if sample is None else sample.rows
    nearest = _nearest(vectors[kept], given.options.distance, given.candidates, config, asking)
    neighbours = dtw.rerank(
        nearest, _sequences(given, records), queries=asking, radius=given.options.radius, threads=config.threads
    ).indices
    codes = np.unique([given.labels[row] or "" for row in kept], return_inverse=True)[1]
    drawn = f"{len(asking)} of {len(kept)} {SAMPLED} (seed {config.seed})" if sample is not None else ""
    return [_row(codes, asking, neighbours, k, drawn, about) for k in ks]


def lacking(given: Alignment) -> str:
    """Why other metrics than P@k have no value."""
    others = len(given.kept) - 1
    if others < 1:
        return "too few labelled clips"
    return (
        f"needs the DTW distances to all {others} other clips, and each clip was compared with {given.candidates}: "
        "give --dtw all"
    )


def _row(
    codes: NDArray[np.int64],
    asking: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    k: int,
    drawn: str,
    about: dict[str, Any],
) -> Row:
    if k > neighbours.shape[1]:
        reason = f"k = {k} needs more than {neighbours.shape[1]} candidates"
        return Row(metric=f"P@{k}", status="not_applicable", reason=reason, **about)
    partners = (np.bincount(codes)[codes] > 1)[asking]
    if not partners.any():
        reason = "no point has a same-class partner to be compared with"
        return Row(metric=f"P@{k}", status="not_applicable", reason=reason, **about)
    points = retrieval.precision_at_k(codes[neighbours[:, :k]], codes[asking], k)[partners]
    alone = int((~partners).sum())
    excluded = f"{counted(alone, 'point')} without a same-class partner excluded" if alone else ""
    reason = "; ".join(filter(None, [drawn, excluded, "no interval: clips are not left out of re-ranked lists"]))
    return Row(metric=f"P@{k}", value=float(points.mean()), n=len(points), reason=reason, **about)


def _nearest(
    values: NDArray[np.float32], distance: str, count: int, config: RunConfig, asking: NDArray[np.int64]
) -> NDArray[np.int64]:
    threads = thread_count(config.threads)
    layout = one_class(len(values))
    space = spaces.prepare(values, distance, order=layout.order, ties=config.ties, threads=threads)
    swept = sweep(
        space, layout, Wanted(neighbours=count), threads=threads, memory=_memory(config), device=config.device,
        rows=asking,
    )  # fmt: skip
    return np.asarray(layout.order[swept["all"].neighbours.places[asking]])


def _memory(config: RunConfig) -> int:
    return byte_count(int(config.memory) if config.memory.isdigit() else config.memory)
