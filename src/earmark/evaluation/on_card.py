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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from earmark.errors import InputError, UsageError, require
from earmark.geometry import devices
from earmark.geometry.hubness import TOP_SHARE
from earmark.geometry.layout import Layout, lay_out
from earmark.metrics.separation import EPSILON, ROUNDING

Tensor = Any


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
        self.tops = self.torch.tensor(tops, device=self.device)

    def measure(
        self, vectors: Tensor, distance: str = "cosine", *, ks: Sequence[int] = (1, 5), hub_k: int = 5,
        ties: Any = "average",
    ) -> list[dict[str, float]]:  # fmt: skip
        """The metrics of each set; `vectors` [N, D] are those of all sets, one behind the other, as the labels are.

        NaN where a metric has no value: no class of two, fewer points than neighbours.
        """
        spaces = require("earmark.geometry.torch_spaces", "Measuring on a GPU", "torch")
        card = require("earmark.geometry.torch_card", "Measuring on a GPU", "torch")
        sums = require("earmark.geometry.torch_sums", "Measuring on a GPU", "torch")
        vectors = self.torch.as_tensor(vectors, device=self.device)
        if vectors.dim() != 2 or len(vectors) != self.sets.n:
            raise InputError(
                f"There are {self.sets.n} labels: give an array of {self.sets.n} vectors, not one of shape "
                f"{tuple(vectors.shape)}."
            )
        if not self.ordered:
            vectors = vectors[self.order]
        asked = card.Asked(max(*ks, hub_k), far=True)
        points = spaces.prepare(vectors, distance, self.sets, ties=ties)
        found = card.propose_and_decide(points, self.sets, asked)
        summed = sums.class_sums(points, self.sets)
        values, checks = self._reduce(points, found, summed, ks, hub_k)
        flat, open_rows, suspects, broken = (int(check) for check in checks)
        if broken:
            raise InputError("The vectors hold values that are not finite or too large: look for NaN and infinity.")
        if flat or open_rows or suspects:
            if flat:
                points = spaces.prepare(vectors, distance, self.sets, ties=ties, any_flat=True)
                found = card.propose_and_decide(points, self.sets, asked)
            card.settle_rest(points, self.sets, asked, found, self.torch.arange(self.sets.n, device=self.device))
            summed = sums.class_sums(points, self.sets, careful=bool(flat or suspects))
            values, _ = self._reduce(points, found, summed, ks, hub_k)
        names = (
            *(f"P@{k}" for k in ks), "GSR", "CSR_pointwise", "CSR", "silhouette", "CS", "CSCF",
            "hub_ratio", "antihub_rate", "hub_skew", "robin_hood",
        )  # fmt: skip
        return [dict(zip(names, row, strict=True)) for row in values]

    def _reduce(
        self, points: Any, found: Any, summed: Any, ks: Sequence[int], hub_k: int
    ) -> tuple[list[list[float]], list[float]]:
        """Metrics of each set, and how many vectors have no direction, rows are not certain, sums are suspect."""
        torch, sets = self.torch, self.sets
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
        flat = torch.tensor(0, device=sets.device) if points.any_flat else points.flat.sum()
        broken = (~torch.isfinite(points.squares)).sum()
        checks = torch.stack([flat, (~found.certain).sum(), summed.suspects, broken]).to(torch.float64)
        values = torch.cat([table.flatten(), checks]).cpu()
        return values[: table.numel()].view(table.shape).tolist(), values[table.numel() :].tolist()


def _balance(near: Tensor, wide: Tensor) -> Tensor:
    return ((near - wide) / (near + wide + EPSILON) + 1.0) / 2.0
