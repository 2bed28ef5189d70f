"""Float64 distances of blocks of rows on a torch device: the device's twin of `geometry.sweep.pair_distances`.

      rows x all places   keys = left @ right.T in float64, DEPTH dimensions at a time
           |              q = keys + |z|^2; pairs that lost digits are computed again from their rows
           v
      distances           root or half, then what a hubness correction makes of them

Values are those of the CPU to a few units of the last place. Nobody imports this module unless a device other than the
CPU is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.geometry import factors as corrections
from earmark.geometry import kernels, pair_kernels, torch_backend
from earmark.geometry.factors import Factors
from earmark.geometry.spaces import DEPTH, Space

Tensor = Any

PAIRS = 1 << 26  # bytes of vectors gathered at once for pairs that are computed again
_ROOT_HALF = 0.5**0.5
_LOG_ROOT_TAU = 0.5 * float(np.log(2.0 * np.pi))


class Blocks:
    """The points of a space on a device; `distances` of some of them to all."""

    def __init__(self, space: Space, factors: Factors | None, device: Any) -> None:
        self.space, self.factors, self.device = space, factors, device
        self.squares, self.flat = self.upload(space.squares), self.upload(space.flat)
        self.points = self.upload(space.points)
        self.any_flat = bool(space.flat.any())
        self.first: Tensor = None
        self.second: Tensor = None
        if factors is not None:
            self.first, self.second = self.upload(factors.first), self.upload(factors.second)
        self._raw: Tensor = None
        self._columns: Tensor = None

    def upload(self, values: NDArray[Any]) -> Tensor:
        return moved(values, self.device)

    @property
    def columns(self) -> Tensor:
        if self._columns is None:
            self._columns = self.upload(self.space.columns(np.float64))
        return self._columns

    @property
    def raw(self) -> Tensor:
        if self._raw is None:
            same = self.space.raw is self.space.points
            self._raw = self.points if same else self.upload(self.space.raw)
        return self._raw

    def distances(self, start: int, stop: int, columns: slice | None = None) -> Tensor:
        """Distances [R, N] of the places start..stop to all (or to some `columns`), corrected where there are factors.

        A place is at 0 from itself.
        """
        return self.distances_of(np.arange(start, stop), columns)

    def distances_of(self, rows: NDArray[np.int64], columns: slice | None = None) -> Tensor:
        """Distances of some places to all (or to some `columns`)."""
        return _Tile(self, rows, columns or slice(0, self.space.n)).distances()


class _Tile:
    """Some rows and a range of columns."""

    def __init__(self, blocks: Blocks, rows: NDArray[np.int64], columns: slice) -> None:
        self.blocks, self.space, self.rows, self.columns = blocks, blocks.space, rows, columns
        self.at = blocks.upload(rows)
        here = np.flatnonzero((rows >= columns.start) & (rows < columns.stop))
        self.self_rows, self.self_columns = blocks.upload(here), blocks.upload(rows[here] - columns.start)

    def distances(self) -> Tensor:
        space, blocks = self.space, self.blocks
        if space.form == pair_kernels.GIVEN:
            tile = blocks.upload(np.asarray(space.raw[self.rows, self.columns], np.float64))
            tile.clamp_(min=0.0)
        else:
            tile = self._squares()
            if space.halved:
                tile *= 0.5
                if blocks.any_flat:
                    tile[blocks.flat[self.at]] = 1.0
            else:
                tile.sqrt_().mul_(space.scale)
        self._forget_selves(tile, 0.0)
        if blocks.factors is not None:
            self._correct(tile, blocks.factors)
            self._forget_selves(tile, 0.0)
        return tile

    def _forget_selves(self, tile: Tensor, value: float) -> None:
        tile[self.self_rows, self.self_columns] = value

    def _squares(self) -> Tensor:
        """q of every pair, right to a share of itself."""
        blocks = self.blocks
        left, right = blocks.upload(self.space.operands(np.float64, self.rows)), blocks.columns[self.columns]
        tile = left[:, :DEPTH] @ right[:, :DEPTH].T
        for start in range(DEPTH, right.shape[1], DEPTH):
            tile.addmm_(left[:, start : start + DEPTH], right[:, start : start + DEPTH].T)
        mine = blocks.squares[self.at][:, None]
        tile += mine
        tile.clamp_(min=0.0)
        self._recompute(tile, tile < kernels.CLOSE * (mine + blocks.squares[self.columns]))
        return tile

    def _recompute(self, tile: Tensor, close: Tensor) -> None:
        """Put the q of the `close` pairs, from their rows, in place of those of the product."""
        blocks = self.blocks
        self._forget_selves(close, False)
        if blocks.any_flat:
            close &= ~blocks.flat[self.columns]
            close[blocks.flat[self.at]] = False
        a, b = close.nonzero(as_tuple=True)
        step = max(1, PAIRS // (8 * max(1, blocks.raw.shape[1])))
        for start in range(0, len(a), step):
            r, c = a[start : start + step], b[start : start + step]
            x, y = blocks.raw[self.at[r]], blocks.raw[c + self.columns.start]
            tile[r, c] = torch_backend._squares(x, y, 1.0 / self.space.scale)

    def _correct(self, tile: Tensor, factors: Factors) -> None:
        """Distances become corrected ones, in place (kinds that do not shift)."""
        space, blocks = self.space, self.blocks
        assert not factors.signed
        if space.rotation_error:  # what a rotation added to a close pair is felt by an order and a tail
            square = space.rotation_error / corrections._ROTATION_SHARE * 4.0 * float(space.squares.max(initial=0.0))
            close, exact = tile < (0.5 * square if space.halved else square**0.5 * space.scale), torch.zeros_like(tile)
            self._recompute(exact, close)
            if space.halved:
                exact = torch.where(exact > kernels.SAME_DIRECTION, 0.5 * exact, 0.0)
            else:
                exact = exact.sqrt() * space.scale
            tile.copy_(torch.where(close, exact, tile))
        if space.halved:
            tile.masked_fill_(tile <= 0.5 * kernels.SAME_DIRECTION, 0.0)
        first, second = blocks.first, blocks.second
        if factors.kind == "normal":
            keys = surprise((tile - first[self.at][:, None]) / second[self.at][:, None])
            keys += surprise((tile - first[self.columns]) / second[self.columns])
        else:
            keys = tile * (first[self.at][:, None] * first[self.columns])
            if factors.kind == "scale":
                tile.copy_(keys)
                return
            keys *= keys
        tile.copy_(-torch.expm1(-keys.clamp(max=pair_kernels.LARGEST)))


def surprise(z: Tensor) -> Tensor:
    """-log of the upper tail of the standard normal distribution, as `pair_kernels.surprise`."""
    low = -torch.log1p(-0.5 * torch.erfc(-z * _ROOT_HALF))
    high = -torch.log(0.5 * torch.erfc(z * _ROOT_HALF))
    w = 1.0 / (z * z)
    series = w * (-1.0 + w * (3.0 + w * (-15.0 + w * 105.0)))
    far = 0.5 * z * z + torch.log(z) + _LOG_ROOT_TAU - torch.log1p(series)
    return torch.where(z < 0.0, low, torch.where(z < pair_kernels._FAR_OUT, high, far))


def moved(values: NDArray[Any], device: Any) -> Tensor:
    """An array on the device."""
    values = np.ascontiguousarray(values)
    # torch warns of arrays that may not be written to, as those of a mapped file.
    return torch.from_numpy(values if values.flags.writeable else values.copy()).to(device)


def segment_sums(values: Tensor, order: Tensor, offsets: Tensor) -> Tensor:
    """Sums [S, D] of values[order[offsets[s]:offsets[s + 1]]] (the last segment ends where `order` does).

    One thread adds a column of a segment from first to last, so sums do not change from call to call.
    """
    return torch.nn.functional.embedding_bag(order, values, offsets, mode="sum")
