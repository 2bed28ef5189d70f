"""DTW re-ranking of a system's nearest neighbours, an ablation: P@k before pooling threw the order of frames away.

Rows carry the distance that found the candidates: `spearman+dtw`. Frames come from the cache, clip by clip; the PCA
is fitted on the frames that were kept (every `stride`-th).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.calibrate import sample as sampling
from earmark.evaluation import dtw
from earmark.evaluation.options import byte_count
from earmark.geometry import spaces
from earmark.geometry.layout import one_class
from earmark.geometry.sweep import Wanted, sweep
from earmark.metrics import catalogue, retrieval
from earmark.representations import _layers as layers
from earmark.representations.config import RunConfig
from earmark.runs.packs import Records
from earmark.runs.store import Entry
from earmark.scores import Row
from earmark.scores.spelling import SAMPLED
from earmark.wording import counted
from earmark.workers import thread_count

SUFFIX = "+dtw"


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


def measure(
    vectors: NDArray[np.float32],
    labels: Sequence[str | None],
    digests: Sequence[str],
    records: Records,
    layer: int | None,
    note: str,
    *,
    config: RunConfig,
    inputs: str,
) -> Entry:
    """P@k of the re-ranked neighbours, over the clips whose class is large enough, as for every metric."""
    options = config.dtw
    assert options is not None
    started = time.perf_counter()
    _, ks = catalogue.plan(config.metrics, config.k)
    about: dict[str, Any] = {"distance": f"{options.distance}{SUFFIX}", "version": __version__, "inputs": inputs}
    sizes = Counter(label for label in labels if label)
    kept = [row for row, label in enumerate(labels) if label and sizes[label] >= config.min_class_size]
    candidates = min(options.candidates, len(kept) - 1)
    if candidates < 1:
        rows = [Row(metric=f"P@{k}", status="not_applicable", reason="too few labelled clips", **about) for k in ks]
        return Entry({"rows": [row.as_dict() for row in rows], "note": note, "seconds": 0.0})
    sample = sampling.draw(one_class(len(kept)), config.queries, config.seed, by_class=False)
    asking = np.arange(len(kept)) if sample is None else sample.rows
    nearest = _nearest(vectors[kept], options.distance, candidates, config, asking)
    stored = StoredFrames(records, [digests[row] for row in kept], options.stride, layer)
    frames = dtw.prepare(stored, components=options.dimension, stride=1)
    neighbours = dtw.rerank(nearest, frames, queries=asking, radius=options.radius, threads=config.threads).indices
    codes = np.unique([labels[row] or "" for row in kept], return_inverse=True)[1]
    seconds = time.perf_counter() - started
    drawn = f"{len(asking)} of {len(kept)} {SAMPLED} (seed {config.seed})" if sample is not None else ""
    rows = [_row(codes, asking, neighbours, k, drawn, {**about, "seconds": seconds}) for k in ks]
    return Entry({"rows": [row.as_dict() for row in rows], "note": note, "seconds": seconds})


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
    memory = byte_count(int(config.memory) if config.memory.isdigit() else config.memory)
    swept = sweep(
        space, layout, Wanted(neighbours=count), threads=threads, memory=memory, device=config.device, rows=asking
    )
    return np.asarray(layout.order[swept["all"].neighbours.places[asking]])
