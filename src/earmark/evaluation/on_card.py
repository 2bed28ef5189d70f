"""Every metric of a sweep, for vectors that are on a GPU already: tensors in, a handful of numbers out.

    sets = LabelledSets([labels_a, labels_b], "cuda")       # once
    sets.measure(vectors, "cosine")                          # as often as there are representations: [{metric: value}]

Several sets are measured at once, one behind the other: small ones do not fill a GPU. Neighbours are exact, as in
`evaluate`; values are its values up to rounding, without intervals, baselines and files. `evaluate(..., device="cuda")`
runs on the same kernels and gives all of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from earmark.errors import InputError, UsageError, require
from earmark.geometry import devices
from earmark.geometry.hubness import TOP_SHARE
from earmark.geometry.layout import Layout, lay_out
from earmark.metrics.separation import EPSILON, ROUNDING

Tensor = Any

NAMES = (
    "GSR", "CSR_pointwise", "CSR", "silhouette", "CS", "CSCF", "hub_ratio", "antihub_rate", "hub_skew", "robin_hood",
)  # fmt: skip
CHECKS = 4  # flat vectors, rows that are not certain, sums that closed forms cannot know, values that are not finite
RECORDED = 1 << 19  # points up to which the launches of a measurement are recorded
GRAPHS = 3  # kept at once: each holds the memory of a measurement


class _How(NamedTuple):
    distance: str
    ks: tuple[int, ...]
    hub_k: int
    ties: Any


class _Measured(NamedTuple):
    """Points and what was found of them; the metrics of each set, one behind the other, and `CHECKS` counts."""

    points: Any
    found: Any
    summed: Any
    values: Tensor


class LabelledSets:
    """The labels of one or more sets of vectors, laid out on a device for `measure`."""

    def __init__(self, labels: Iterable[ArrayLike], device: str = "cuda") -> None:
        self.torch = require("torch", "Measuring on a GPU", "torch")
        self.device = devices.resolve(device, math.inf).removeprefix("torch:")
        given = [np.asarray(own) for own in labels]
        for own in given:
            if own.ndim != 1 or len(own) < 2:
                raise InputError(f"A set needs a list of at least two labels, not an array of shape {own.shape}.")
        if not given:
            raise UsageError("Give the labels of at least one set.")
        self.layouts: list[Layout] = [lay_out(np.unique(own, return_inverse=True)[1]) for own in given]
        card = require("earmark.geometry.torch_card", "Measuring on a GPU", "torch")
        self.sets = card.Sets(self.layouts, self.device)
        bounds = self.sets.bounds[:-1]
        order = np.concatenate([own.order + at for own, at in zip(self.layouts, bounds, strict=True)])
        self.order = self.torch.from_numpy(order).to(self.device)
        self.ordered = bool((np.diff(order) > 0).all())
        sizes = self.sets.sizes
        self.answerable = sizes[self.sets.codes] > 1.0
        self.n = self.torch.tensor([own.n for own in self.layouts], dtype=self.torch.float64, device=self.device)
        tops = [math.ceil(TOP_SHARE * own.n) for own in self.layouts]
        self._seen: dict[Any, int] = {}
        self._graphs: dict[Any, tuple[Tensor, Any, _Measured]] = {}
        self.tops = self.torch.tensor(tops, device=self.device)

    def measure(
        self, vectors: Tensor, distance: str = "cosine", *, ks: Sequence[int] = (1, 5), hub_k: int = 5,
        ties: Any = "average",
    ) -> list[dict[str, float]]:  # fmt: skip
        """The metrics of each set; `vectors` [N, D] are those of all sets, one behind the other, as the labels are.

        NaN where a metric has no value: no class of two, fewer points than neighbours.
        """
        how = _How(distance, tuple(ks), hub_k, ties)
        vectors = self.torch.as_tensor(vectors, device=self.device)
        if vectors.dim() != 2 or len(vectors) != self.sets.n:
            raise InputError(
                f"There are {self.sets.n} labels: give an array of {self.sets.n} vectors, not one of shape "
                f"{tuple(vectors.shape)}."
            )
        try:
            measured = self._recorded(vectors, how) or self._measured(vectors, how)
            values = measured.values.cpu().tolist()
        except self.torch.OutOfMemoryError:
            raise UsageError(
                f"The memory of {self.device} does not hold {self.sets.n} points with their sums over classes: measure "
                "fewer sets at once, or use earmark.evaluate, which goes block by block."
            ) from None
        flat, uncertain, suspects, broken = (int(check) for check in values[-CHECKS:])
        if broken:
            raise InputError("The vectors hold values that are not finite or too large: look for NaN and infinity.")
        if flat:
            measured = self._measured(vectors, how, any_flat=True)
            uncertain, suspects = 1, 1
        if uncertain or suspects:
            values = self._mended(measured, how, bool(suspects)).cpu().tolist()
        names = [*(f"P@{k}" for k in ks), *NAMES]
        rows = (values[start : start + len(names)] for start in range(0, len(values) - CHECKS, len(names)))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _recorded(self, vectors: Tensor, how: _How) -> _Measured | None:
        """The same in one launch, from the third time that such vectors come: launching the parts takes longest."""
        torch, key = self.torch, (how, vectors.shape[1], vectors.dtype)
        if not self.device.startswith("cuda") or self.sets.n > RECORDED:
            return None
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] < 3:  # the first compiles
            return None
        if key not in self._graphs:
            while len(self._graphs) >= GRAPHS:
                self._graphs.pop(next(iter(self._graphs)))
            held, graph = vectors.clone(), torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                measured = self._measured(held, how)
            self._graphs[key] = held, graph, measured
        held, graph, measured = self._graphs[key]
        held.copy_(vectors)
        graph.replay()
        return measured

    def _mended(self, measured: _Measured, how: _How, sums_too: bool) -> Tensor:
        """The metrics once what the quick way left open is decided: few rows, as a rule."""
        card = require("earmark.geometry.torch_card", "Measuring on a GPU", "torch")
        sums = require("earmark.geometry.torch_sums", "Measuring on a GPU", "torch")
        points, found, summed, _ = measured
        everyone = self.torch.arange(self.sets.n, device=self.device)
        card.settle_rest(points, self.sets, card.Asked(max(*how.ks, how.hub_k), far=True), found, everyone)
        if sums_too:
            summed = sums.class_sums(points, self.sets, careful=True)
        return self._reduce(points, found, summed, how)

    def _measured(self, vectors: Tensor, how: _How, *, any_flat: bool = False) -> _Measured:
        """Metrics of each set, and counts of what was left open."""
        spaces = require("earmark.geometry.torch_spaces", "Measuring on a GPU", "torch")
        card = require("earmark.geometry.torch_card", "Measuring on a GPU", "torch")
        sums = require("earmark.geometry.torch_sums", "Measuring on a GPU", "torch")
        ordered = vectors if self.ordered else vectors[self.order]
        asked = card.Asked(max(*how.ks, how.hub_k), far=True)
        points = spaces.prepare(ordered, how.distance, self.sets, ties=how.ties, any_flat=any_flat)
        found = card.propose_and_decide(points, self.sets, asked)
        summed = sums.class_sums(points, self.sets)
        return _Measured(points, found, summed, self._reduce(points, found, summed, how))

    def _reduce(self, points: Any, found: Any, summed: Any, how: _How) -> Tensor:
        """Metrics of each set, and how many vectors have no direction, rows are not certain, sums are suspect."""
        torch, sets, ks, hub_k = self.torch, self.sets, how.ks, how.hub_k
        spaces = require("earmark.geometry.torch_spaces", "Measuring on a GPU", "torch")
        sums = require("earmark.geometry.torch_sums", "Measuring on a GPU", "torch")
        alike = (sets.codes[found.places.clamp(min=0)] == sets.codes[:, None]) & (found.places >= 0)
        columns: list[Tensor] = []

        def mean_of(values: Tensor) -> None:
            valid = self.answerable & torch.isfinite(values)
            columns.extend([torch.where(valid, values, 0.0), valid.to(torch.float64)])

        for k in ks:
            mean_of(alike[:, :k].sum(1).to(torch.float64) / k)
        near, wide, own, other = found.other, found.far, summed.own_mean, summed.other_mean
        mean_of(_balance(near, own))
        mean_of(_balance(near, wide))
        largest = torch.maximum(own, other)
        mean_of(torch.where(largest > 0, (other - own) / largest, torch.where(largest == 0, 0.0, torch.nan)))
        both = torch.isfinite(near) & torch.isfinite(wide)
        listed = found.places[:, :hub_k]
        occurrences = torch.zeros(sets.n, dtype=torch.int64, device=sets.device).scatter_add_(
            0, listed.clamp(min=0).flatten(), (listed >= 0).to(torch.int64).flatten()
        )
        apart = occurrences.to(torch.float64) - hub_k
        columns += [
            torch.where(both, near, 0.0), torch.where(both, wide, 0.0), both.to(torch.float64),
            (occurrences == 0).to(torch.float64), apart.square(), apart**3, apart.abs(),
        ]  # fmt: skip
        by_class = spaces.segment_sums(torch.stack(columns, 1), sets.starts)
        near_sum, wide_sum, counted = by_class[:, -7], by_class[:, -6], by_class[:, -5]
        score = _balance(near_sum / counted, wide_sum / counted) * counted
        terms = sums.pair_terms(summed.pairs, sets, ROUNDING)
        by_set = spaces.segment_sums(
            torch.cat([by_class, torch.where(counted > 0, score, 0.0)[:, None], terms], 1), sets.class_starts
        )
        means = (by_set[:, 0:-11:2] / by_set[:, 1:-11:2]).unbind(1)
        counted, antihubs, squares, cubes, absolute, score, overlap, confused, pairs = by_set[:, -9:].unbind(1)
        variance = squares / self.n
        skew = torch.where(variance > 0, cubes / self.n / variance.clamp(min=1e-300) ** 1.5, 0.0)
        # The highest counts of each set, from a sort of all.
        ordered = (sets.set_of * (1 << 32) + occurrences).sort().values & ((1 << 32) - 1)
        running = torch.nn.functional.pad(ordered.cumsum(0), (1, 0))
        ends = sets.set_starts[1:]
        hubs = (running[ends] - running[ends - self.tops]).to(torch.float64) / self.tops / hub_k
        hubness = [hubs, antihubs / self.n, skew, 0.5 * absolute / (hub_k * self.n)]
        few = self.n <= hub_k
        precisions = [torch.where(self.n <= k, torch.nan, value) for k, value in zip(ks, means, strict=False)]
        gsr, pointwise, silhouette = means[len(ks) :]
        table = torch.stack(
            [
                *precisions, gsr, pointwise, score / counted, silhouette, overlap / pairs, confused / pairs,
                *(torch.where(few, torch.nan, value) for value in hubness),
            ],
            1,
        )  # fmt: skip
        flat = torch.zeros_like(points.flat).sum() if points.any_flat else points.flat.sum()
        broken = (~torch.isfinite(points.squares)).sum()
        checks = torch.stack([flat, (~found.certain).sum(), summed.suspects, broken]).to(torch.float64)
        return torch.cat([table.flatten(), checks])


def _balance(near: Tensor, wide: Tensor) -> Tensor:
    return ((near - wide) / (near + wide + EPSILON) + 1.0) / 2.0
