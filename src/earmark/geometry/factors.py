"""What a correction knows of each point: one or two numbers, enough to correct the distance of any pair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from earmark.geometry import kernels, pair_kernels
from earmark.geometry.spaces import DEPTH, Space

Floats = NDArray[np.float64]
Kind = Literal["scale", "local", "normal", "shift", "square_shift"]

_CODES: dict[str, int] = {
    "scale": pair_kernels.SCALE,
    "local": pair_kernels.LOCAL,
    "normal": pair_kernels.NORMAL,
    "shift": pair_kernels.SHIFT,
    "square_shift": pair_kernels.SQUARE_SHIFT,
}
_ROTATION_SHARE = 1e-9  # the share of a squared distance that a rotation may have added before it is recomputed
_NOTHING = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Factors:
    """Numbers per point and how they correct a distance d; see `pair_kernels` for keys and precision.

    scale         d f_i f_j                          first: f
    local         1 - exp(-(d f_i f_j)^2)            first: f
    normal        1 - SF_i(d) SF_j(d)                first: mean, second: standard deviation
    shift         2 d - a_i - a_j                    first: a
    square_shift  |x_i - x_j|^2 - a_i - a_j          first: a

    Kinds that shift are *signed*: differences, of which some fall below zero. Ratios of them mean nothing.
    """

    kind: Kind
    first: Floats
    second: Floats = field(default_factory=lambda: _NOTHING)

    @property
    def code(self) -> int:
        return _CODES[self.kind]

    @property
    def signed(self) -> bool:
        return self.kind in ("shift", "square_shift")

    def at(self, rows: NDArray[np.int64]) -> Factors:
        """The same factors for points in another order."""
        return Factors(self.kind, self.first[rows], self.second[rows] if len(self.second) else self.second)

    def distances(self, keys: Floats, rows: NDArray[np.int64]) -> Floats:
        """Corrected distances from the order keys of `rows` ([rows] or [rows, k]); NaN stays NaN."""
        if self.kind in ("local", "normal"):
            return np.asarray(-np.expm1(-keys))
        if not self.signed:
            return keys
        own = self.first[rows]
        return np.asarray(keys - (own if keys.ndim == 1 else own[:, None]))

    def doubt(self, space: Space) -> float:
        """The share of a key by which the key of a tile may lie above the needed one and still have to be decided.

        For kinds that shift it is the share of a key's size by which the key of a tile may be wrong, ties included.

        After `exact_distances` a tile's q is right to a share of itself. Roots and products keep that share, a square
        doubles it, and the normal tail multiplies it by at most (mean / deviation + 2)^2.
        """
        width = space.points.shape[1] + 2
        terms = min(width, DEPTH) + -(-width // DEPTH) + 8
        share = 4.0 * terms * float(np.finfo(np.float64).eps) / kernels.CLOSE
        share += _ROTATION_SHARE if space.rotation_error else 0.0
        if self.kind == "local":
            share *= 2.0
        elif self.kind == "normal":
            share *= float((self.first / self.second).max() + 2.0) ** 2
        if self.signed:
            return float(share + pair_kernels.TIE_SHARE)
        if share >= 0.5:
            return 1e6  # nothing is certain but lists that hold everything
        return float((1.0 + share) * (1.0 + pair_kernels.TIE_SHARE) / (1.0 - share) - 1.0)


def exact_distances(tile: Floats, c0: int, rows: NDArray[np.int64], space: Space) -> None:
    """Turn a float64 tile of products into distances in place, each right to a share of itself.

    Sums forgive what a rotation (`spaces._compact`) adds to a close pair; an order and a tail do not.
    """
    kernels.distances_from_keys(tile, c0, rows, space.squares, space.raw, space.flat, space.form, space.scale)
    least = unsafe_under(space)
    if least:
        pair_kernels.mend_rotated(tile, c0, rows, space.raw, space.flat, space.form, space.scale, least)


def unsafe_under(space: Space) -> float:
    """The distance under which what a rotation may have added is no longer small; 0 where nothing was rotated."""
    if not space.rotation_error:
        return 0.0
    square = space.rotation_error / _ROTATION_SHARE * 4.0 * float(space.squares.max(initial=0.0))
    return 0.5 * square if space.halved else float(np.sqrt(square)) * space.scale


def order_keys(tile: Floats, c0: int, rows: NDArray[np.int64], space: Space, factors: Factors) -> None:
    """Turn a float64 tile of products into order keys of corrected distances, in place."""
    exact_distances(tile, c0, rows, space)
    pair_kernels.keys_from_distances(tile, c0, rows, space.form, factors.code, factors.first, factors.second)


PLAIN = (pair_kernels.PLAIN, _NOTHING, _NOTHING)


def spelled_out(factors: Factors | None) -> tuple[int, Floats, Floats]:
    """Kind, first and second as compiled code takes them."""
    return PLAIN if factors is None else (factors.code, factors.first, factors.second)
