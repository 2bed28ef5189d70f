"""What two points measure, on a torch device: a space there, and tiles of its keys and distances in float64.

The functions that turn tiles of keys into distances, order keys and corrected distances are those of `kernels` and
`pair_kernels`, whole arrays at a time. They serve sums and proposals; what is decided is decided by the pair itself
(`squares`, the order of whose summation is that of `pair_kernels.pair_square`, to the last bit).

Nobody imports this module unless a device other than the CPU is asked for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.geometry import kernels, pair_kernels
from earmark.geometry.factors import Factors, spelled_out, unsafe_under
from earmark.geometry.spaces import Space
from earmark.geometry.torch_backend import _full_precision as full_precision
from earmark.geometry.torch_backend import _numpy as to_numpy
from earmark.geometry.torch_backend import _squares as squares_of

__all__ = ["Pairs", "Tensor", "full_precision", "smallest", "squares_of", "to_numpy", "upload"]

Tensor = Any
GROUP = 16
PAIR_BYTES = 1 << 28  # of vectors gathered for their distances
_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_TAU = 0.5 * math.log(2.0 * math.pi)


def upload(values: NDArray[Any], device: Any) -> Tensor:
    values = np.ascontiguousarray(values)
    # torch warns of arrays that may not be written to, as those of a mapped file.
    return torch.from_numpy(values if values.flags.writeable else values.copy()).to(device)


def smallest(keys: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` smallest keys of each row, in order, and where they stand.

    The smallest `count` lie in the `count` groups with the smallest minima: one pass over the keys, and the selection
    works on a sixteenth of them.
    """
    rows, width = keys.shape
    whole = width - width % GROUP
    if width <= 4 * GROUP * count:
        found = torch.topk(keys, count, dim=1, largest=False)
        return found.values, found.indices
    minima = keys[:, :whole].unflatten(1, (-1, GROUP)).amin(2)
    groups = torch.topk(minima, count, dim=1, largest=False, sorted=False).indices
    inside = torch.arange(GROUP, device=keys.device)
    places = (groups[:, :, None] * GROUP + inside).view(rows, -1)
    rest = torch.arange(whole, width, device=keys.device).expand(rows, -1)
    places = torch.cat([places, rest], 1)
    found = torch.topk(keys.gather(1, places), count, dim=1, largest=False)
    return found.values, places.gather(1, found.indices)


class Pairs:
    """A space on a device, with the factors that correct its distances."""

    def __init__(self, space: Space, factors: Factors | None, device: Any) -> None:
        self.space, self.device = space, device
        self.kind, first, second = spelled_out(factors)
        self.points, self.squares, self.flat = (
            upload(values, device) for values in (space.points, space.squares, space.flat)
        )
        raw = space.raw if space.raw.dtype in (np.float32, np.float64) else space.raw.astype(np.float64)
        self.raw = self.points if space.raw is space.points else upload(raw, device)
        self.first, self.second = upload(first, device), upload(second, device)
        self.any_flat = bool(space.flat.any())

    def exact(self, a: Tensor, b: Tensor) -> Tensor:
        """q of pairs of places, [P] each, as the CPU has it to the last bit."""
        inverse = 1.0 if self.space.halved else 1.0 / self.space.scale
        found = torch.empty(len(a), dtype=torch.float64, device=self.device)
        step = max(1, PAIR_BYTES // (8 * max(1, self.raw.shape[1])))
        for start in range(0, len(a), step):
            part = slice(start, start + step)
            found[part] = squares_of(self.raw[a[part]], self.raw[b[part]], inverse)
        return found

    def distances_from_keys(self, tile: Tensor, at: Tensor) -> None:
        """`kernels.distances_from_keys` on a float64 tile of the rows `at` with every column, in place."""
        mine = self.squares[at][:, None]
        tile.add_(mine).clamp_(min=0.0)
        close = tile < kernels.CLOSE * (mine + self.squares)
        if self.any_flat:
            close &= ~(self.flat[at][:, None] | self.flat)
        self._replace(tile, at, close)
        if self.space.halved:
            tile *= 0.5
            if self.any_flat:
                tile[self.flat[at]] = 1.0
        else:
            tile.sqrt_().mul_(self.space.scale)
        tile[torch.arange(len(at), device=self.device), at] = 0.0

    def mend_rotated(self, tile: Tensor, at: Tensor) -> None:
        """Compute distances from their pair where what a rotation added to them is no longer small."""
        least = unsafe_under(self.space)
        if least:
            close = tile < least
            if self.any_flat:
                close &= ~(self.flat[at][:, None] | self.flat)
            close[torch.arange(len(at), device=self.device), at] = False
            self._replace(tile, at, close, as_distance=True)

    def _replace(self, tile: Tensor, at: Tensor, which: Tensor, *, as_distance: bool = False) -> None:
        """Put exact values where `which` says so."""
        r, c = which.nonzero(as_tuple=True)
        if not len(r):
            return
        found = self.exact(at[r], c)
        if as_distance and self.space.halved:
            found = torch.where(found > pair_kernels.SAME_DIRECTION, 0.5 * found, 0.0)
        elif as_distance:
            found = found.sqrt() * self.space.scale
        tile[r, c] = found

    def keys_from_distances(self, tile: Tensor, at: Tensor) -> None:
        """`pair_kernels.keys_from_distances`, in place."""
        if self.space.halved:
            tile[tile <= 0.5 * pair_kernels.SAME_DIRECTION] = 0.0
        if self.kind in (pair_kernels.SCALE, pair_kernels.LOCAL):
            tile *= self.first[at][:, None] * self.first
            if self.kind == pair_kernels.LOCAL:
                tile.square_().clamp_(max=pair_kernels.LARGEST)
        elif self.kind == pair_kernels.NORMAL:
            mine = _surprise((tile - self.first[at][:, None]) / self.second[at][:, None])
            tile.sub_(self.first).div_(self.second)
            tile.copy_(_surprise(tile)).add_(mine).clamp_(max=pair_kernels.LARGEST)
        else:
            if self.kind == pair_kernels.SHIFT or self.space.halved:
                tile *= 2.0
            else:
                tile.square_()
            tile -= self.first

    def corrected_from_keys(self, tile: Tensor, at: Tensor) -> Tensor:
        """`pair_kernels.corrected_from_keys`, in place."""
        if self.kind in (pair_kernels.LOCAL, pair_kernels.NORMAL):
            tile.neg_().expm1_().neg_()
        tile[torch.arange(len(at), device=self.device), at] = 0.0
        return tile


def _surprise(z: Tensor) -> Tensor:
    """`pair_kernels.surprise` of every element."""
    below = -torch.log1p(-0.5 * torch.special.erfc(-z.clamp(max=0.0) * _ROOT_HALF))
    inside = -torch.log(0.5 * torch.special.erfc(z.clamp(0.0, 25.0) * _ROOT_HALF))
    out = z.clamp(min=25.0)
    w = 1.0 / (out * out)
    series = torch.log1p(w * (-1.0 + w * (3.0 + w * (-15.0 + w * 105.0))))
    beyond = 0.5 * out * out + torch.log(out) + _LOG_ROOT_TAU - series
    return torch.where(z < 0.0, below, torch.where(z < 25.0, inside, beyond))
