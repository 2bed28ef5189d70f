"""What two points measure, on a torch device: points there, and tiles of their keys and distances in float64.

The functions that turn tiles of keys into distances, order keys and corrected distances are those of `kernels` and
`pair_kernels`, whole arrays at a time. They serve sums and proposals; what is decided is decided by the pair itself
(`Points.exact`, the order of whose summation is that of `pair_kernels.pair_square`, to the last bit).

Nobody imports this module unless a device other than the CPU is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.geometry import kernels, pair_kernels
from earmark.geometry.factors import Factors, spelled_out, unsafe_under
from earmark.geometry.spaces import Space
from earmark.geometry.torch_backend import _full_precision as full_precision
from earmark.geometry.torch_backend import _numpy as to_numpy
from earmark.geometry.torch_backend import _root as root
from earmark.geometry.torch_backend import _smallest as smallest
from earmark.geometry.torch_backend import _squares as squares_of
from earmark.wording import counted

__all__ = ["Points", "Tensor", "blocks", "full_precision", "smallest", "squares_of", "to_numpy", "upload"]

Tensor = Any
Result = TypeVar("Result")

PAIR_BYTES = 1 << 28  # of vectors gathered for their distances
_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_TAU = 0.5 * math.log(2.0 * math.pi)


def upload(values: NDArray[Any], device: Any) -> Tensor:
    values = np.ascontiguousarray(values)
    # torch warns of arrays that may not be written to, as those of a mapped file.
    return torch.from_numpy(values if values.flags.writeable else values.copy()).to(device)


def blocks(
    rows: Any, height: int, least: int, device: Any, work: Callable[[Any], Result]
) -> Iterator[tuple[Any, Result]]:
    """`work` on blocks of rows, in order; blocks of a multiple of `least` are halved until one fits the device."""
    height = max(1, height // least) * least
    start = 0
    while start < len(rows):
        block = rows[start : start + height]
        try:
            result = work(block)
        except torch.OutOfMemoryError:
            if height <= least:
                raise UsageError(
                    f"The memory of {device} does not hold {counted(len(block), 'row')} of the sweep: use device cpu."
                ) from None
            height = max(1, min(height, len(block)) // 2 // least) * least
            torch.cuda.empty_cache()
            continue
        start += len(block)
        yield block, result


@dataclass(frozen=True)
class Points:
    """Points made ready for one distance, on a device, with the factors that correct their distances.

    What a `Space` holds, but the rows that decide are divided by the scale, a power of two, like the points: no bit of
    a square changes by that. `scale` is there for each point, so that sets of several scales may lie side by side.
    """

    points: Tensor
    squares: Tensor
    raw: Tensor
    flat: Tensor
    scale: Tensor
    halved: bool
    any_flat: bool
    rotation_error: float = 0.0
    unsafe: float = 0.0  # the distance under which what a rotation may have added is no longer small
    kind: int = pair_kernels.PLAIN
    first: Tensor = None
    second: Tensor = None

    @classmethod
    def of(cls, space: Space, factors: Factors | None, device: Any) -> Points:
        """A space and its factors, moved to the device."""
        kind, first, second = (part if isinstance(part, int) else upload(part, device) for part in spelled_out(factors))
        try:
            points, squares, flat = (upload(part, device) for part in (space.points, space.squares, space.flat))
            raw = points
            if space.raw is not space.points:
                raw = upload(space.raw, device).to(torch.float64) / space.scale
            scale = torch.full_like(squares, space.scale)
        except torch.OutOfMemoryError:
            raise UsageError(f"The memory of {device} does not hold the vectors: use device cpu.") from None
        return cls(
            points, squares, raw, flat, scale, space.halved, bool(space.flat.any()), space.rotation_error,
            unsafe_under(space), kind, first, second,
        )  # fmt: skip

    @property
    def device(self) -> Any:
        return self.points.device

    def exact(self, a: Tensor, b: Tensor) -> Tensor:
        """q of places a [P] and b [P] or [P, M], to the last bit as the CPU has it."""
        found = torch.empty(b.shape, dtype=torch.float64, device=self.device)
        step = max(1, PAIR_BYTES // (8 * max(1, self.raw.shape[1] * b[:1].numel())))
        for start in range(0, len(a), step):
            x = self.raw[a[start : start + step]]
            found[start : start + step] = squares_of(
                x if b.dim() == 1 else x[:, None], self.raw[b[start : start + step]], 1.0
            )
        return found

    def distances_of(self, squares: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """The distances of pairs from their exact q; places broadcast."""
        if not self.halved:
            return root(squares.clone()) * self.scale[a]
        found = torch.where(squares > pair_kernels.SAME_DIRECTION, 0.5 * squares, 0.0)
        return torch.where(self.flat[a] | self.flat[b], 1.0, found) if self.any_flat else found

    # --- a tile of rows and all columns at a time ---------------------------------------------------

    def distances_from_keys(self, tile: Tensor, at: Tensor, low: int = 0) -> None:
        """`kernels.distances_from_keys` on a float64 tile of the rows `at` with the columns from `low` on, in place."""
        columns = slice(low, low + tile.shape[1])
        mine = self.squares[at][:, None]
        tile.add_(mine).clamp_(min=0.0)
        close = tile < kernels.CLOSE * (mine + self.squares[columns])
        if self.any_flat:
            close &= ~(self.flat[at][:, None] | self.flat[columns])
        r, c = close.nonzero(as_tuple=True)
        if len(r):
            tile[r, c] = self.exact(at[r], c + low)
        if self.halved:
            tile *= 0.5
            if self.any_flat:
                tile[self.flat[at]] = 1.0
        else:
            tile.sqrt_().mul_(self.scale[at][:, None])
        tile[torch.arange(len(at), device=self.device), at - low] = 0.0

    def mend_rotated(self, tile: Tensor, at: Tensor) -> None:
        """Compute distances from their pair where what a rotation added to them is no longer small."""
        if not self.unsafe:
            return
        close = tile < self.unsafe
        if self.any_flat:
            close &= ~(self.flat[at][:, None] | self.flat)
        close[torch.arange(len(at), device=self.device), at] = False
        r, c = close.nonzero(as_tuple=True)
        if len(r):
            tile[r, c] = self.distances_of(self.exact(at[r], c), at[r], c)

    def keys_from_distances(self, tile: Tensor, at: Tensor) -> None:
        """`pair_kernels.keys_from_distances`, in place."""
        if self.halved:
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
            if self.kind == pair_kernels.SHIFT or self.halved:
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
