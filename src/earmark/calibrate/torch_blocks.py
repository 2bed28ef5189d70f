"""Float64 distances of blocks of rows on a torch device: the device's twin of `geometry.sweep.pair_distances`.

      rows x all places   keys = left @ right.T in float64, DEPTH dimensions at a time
           |              q = keys + |z|^2; pairs that lost digits are computed again from their rows
           v
      distances           root or half, then what a hubness correction makes of them (geometry/torch_pairs.py)

Values are those of the CPU to a few units of the last place. Nobody imports this module unless a device other than the
CPU is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.geometry import pair_kernels
from earmark.geometry.factors import Factors
from earmark.geometry.spaces import DEPTH, Space
from earmark.geometry.torch_pairs import Points, upload
from earmark.metrics import separation

Tensor = Any


class Blocks:
    """The points of a space on a device; `distances` of some of them to all."""

    def __init__(self, space: Space, factors: Factors | None, device: Any) -> None:
        self.space, self.factors, self.device = space, factors, device
        self.given = space.form == pair_kernels.GIVEN
        # Distances that were given are read as they are needed.
        self.on_device = Points.of(replace(space, raw=space.points) if self.given else space, factors, device)
        self.points, self.squares, self.flat = self.on_device.points, self.on_device.squares, self.on_device.flat
        self.any_flat = self.on_device.any_flat

    def upload(self, values: NDArray[Any]) -> Tensor:
        """An array on the device."""
        return upload(values, self.device)

    @cached_property
    def columns(self) -> Tensor:
        """The right operand of products."""
        return self.upload(self.space.columns(np.float64))

    def distances(self, start: int, stop: int, columns: slice | None = None) -> Tensor:
        """Distances [R, N] of the places start..stop to all (or to some `columns`, the rows themselves among them).

        They are corrected where there are factors. A place is at 0 from itself.
        """
        return self.distances_of(np.arange(start, stop), columns)

    def distances_of(self, rows: NDArray[np.int64], columns: slice | None = None) -> Tensor:
        """Distances of some places to all (or to some `columns`, the places themselves among them)."""
        if columns is not None and self.factors is not None:
            return self.distances_of(rows)[:, columns]
        columns, at = columns or slice(0, self.space.n), self.upload(rows)
        if self.given:
            tile = self.upload(np.asarray(self.space.raw[rows, columns], np.float64)).clamp_(min=0.0)
            tile[torch.arange(len(rows), device=self.device), at - columns.start] = 0.0
        else:
            tile = self._keys(rows, columns)
            self.on_device.distances_from_keys(tile, at, columns.start)
        if self.factors is not None:
            self.on_device.mend_rotated(tile, at)
            self.on_device.keys_from_distances(tile, at)
            self.on_device.corrected_from_keys(tile, at)
        return tile

    def _keys(self, rows: NDArray[np.int64], columns: slice) -> Tensor:
        left, right = self.upload(self.space.operands(np.float64, rows)), self.columns[columns]
        tile = left[:, :DEPTH] @ right[:, :DEPTH].T
        for start in range(DEPTH, right.shape[1], DEPTH):
            tile.addmm_(left[:, start : start + DEPTH], right[:, start : start + DEPTH].T)
        return tile


def segment_sums(values: Tensor, order: Tensor, offsets: Tensor) -> Tensor:
    """Sums [S, D] of values[order[offsets[s]:offsets[s + 1]]] (the last segment ends where `order` does).

    One thread adds a column of a segment from first to last, so sums do not change from call to call.
    """
    return torch.nn.functional.embedding_bag(order, values, offsets, mode="sum")


def balance(near: Tensor, wide: Tensor) -> Tensor:
    return ((near - wide) / (near + wide + separation.EPSILON) + 1.0) / 2.0
