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
from earmark.evaluation import dtw
from earmark.evaluation.options import byte_count
from earmark.geometry import spaces
from earmark.geometry.layout import one_class
from earmark.geometry.sweep import Wanted, sweep
from earmark.metrics import catalogue, retrieval
from earmark.pipeline import frames, layers, packs
from earmark.pipeline.cache import Cache
from earmark.pipeline.config import DtwOptions, RunConfig
from earmark.pipeline.entries import Entry
from earmark.pipeline.packs import Index
from earmark.scores import Row
from earmark.wording import counted
from earmark.workers import thread_count

SUFFIX = "+dtw"


class StoredFrames:
    """Frames [T, D] of clips in the cache, in their order; may be gone through again and again."""

    def __init__(
        self,
        cache: Cache,
        extractor_key: str,
        index: Index,
        clips: Sequence[str],
        stride: int,
        layer: int | None = None,
    ) -> None:
        self._source = (cache, extractor_key, index)
        self._clips = clips
        self._parts = [layers.part_of(layer, part) for part in frames.parts(stride)]

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        cache, key, index = self._source
        values, width = self._parts
        held: tuple[str, dict[str, NDArray[np.float32]]] = ("", {})
        for clip in self._clips:
            pack = index.places[values][clip].pack
            if held[0] != pack:
                held = (pack, packs.read_pack(cache, key, pack, [values, width]))
            columns = int(held[1][f"{clip} {width}"][0])
            yield held[1][f"{clip} {values}"].reshape(-1, columns)


def measure(
    vectors: NDArray[np.float32],
    labels: Sequence[str | None],
    stored: StoredFrames,
    kept: Sequence[int],
    note: str,
    *,
    config: RunConfig,
    options: DtwOptions,
    inputs: str,
) -> Entry:
    """P@k of the re-ranked neighbours; `kept` are the rows whose class is large enough, as for every metric."""
    started = time.perf_counter()
    _, ks = catalogue.plan(config.metrics, config.k)
    distance = f"{options.distance}{SUFFIX}"
    base: dict[str, Any] = {"distance": distance, "version": __version__, "inputs": inputs}
    candidates = min(options.candidates, len(kept) - 1)
    if candidates < 1:
        rows = [Row(metric=f"P@{k}", status="not_applicable", reason="too few labelled clips", **base) for k in ks]
        return Entry({"rows": [row.as_dict() for row in rows], "note": note, "seconds": 0.0})
    nearest = _nearest(vectors[list(kept)], options.distance, candidates, config)
    sequences = dtw.prepare(stored, components=options.dimension, stride=1)
    found = dtw.rerank(nearest, sequences, radius=options.radius, threads=config.threads).indices
    codes = np.unique([labels[row] or "" for row in kept], return_inverse=True)[1]
    seconds = time.perf_counter() - started
    rows = [_row(codes, found, k, {**base, "seconds": seconds}) for k in ks]
    return Entry({"rows": [row.as_dict() for row in rows], "note": note, "seconds": seconds})


def _row(codes: NDArray[np.int64], found: NDArray[np.int64], k: int, base: dict[str, Any]) -> Row:
    if k > found.shape[1]:
        reason = f"k = {k} needs more than {found.shape[1]} candidates"
        return Row(metric=f"P@{k}", status="not_applicable", reason=reason, **base)
    partners = np.bincount(codes)[codes] > 1
    points = retrieval.precision_at_k(codes[found[:, :k]], codes, k)[partners]
    alone = int((~partners).sum())
    excluded = f"{counted(alone, 'point')} without a same-class partner excluded" if alone else ""
    reason = "; ".join(filter(None, [excluded, "no interval: clips are not left out of re-ranked lists"]))
    value = float(points.mean())
    return Row(metric=f"P@{k}", value=value, n=len(points), reason=reason, **base)


def scored_rows(labels: Sequence[str | None], min_class_size: int) -> list[int]:
    """Rows with a label whose class has enough clips."""
    sizes = Counter(label for label in labels if label)
    return [row for row, label in enumerate(labels) if label and sizes[label] >= min_class_size]


def _nearest(values: NDArray[np.float32], distance: str, count: int, config: RunConfig) -> NDArray[np.int64]:
    threads = thread_count(config.threads)
    layout = one_class(len(values))
    space = spaces.prepare(values, distance, order=layout.order, ties=config.ties, threads=threads)
    memory = byte_count(int(config.memory) if config.memory.isdigit() else config.memory)
    swept = sweep(space, layout, Wanted(neighbours=count), threads=threads, memory=memory)
    return np.asarray(layout.order[swept["all"].neighbours.places])
