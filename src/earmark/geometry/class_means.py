"""Mean distances between classes without a pass over pairs, where a distance is half a squared one (cosine, spearman).

With d directed points of mean m in each class, and W their summed squared distances from it,

    sum over pairs of classes a and b of q / 2  =  (d_b W_a + d_a W_b + d_a d_b |m_a - m_b|^2) / 2

Every term is positive, so tight classes lose no digits; means that nearly coincide are subtracted, not multiplied. A
pair with a flat member counts 1. Memory: the means, [C, D], and a block of classes at a time; time N D + C^2 D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earmark.geometry.kernels import CLOSE, SAME_DIRECTION
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ClassMeans:
    """What the mean distances between classes are made of."""

    sizes: Floats
    directed: Floats
    means: Floats
    squares: Floats
    spreads: Floats  # W of each class

    @classmethod
    def of(cls, space: Space, layout: Layout) -> ClassMeans:
        starts = layout.starts
        directed = np.diff(starts) - np.add.reduceat(space.flat.astype(np.float64), starts[:-1])
        means, spreads = np.zeros((layout.classes, space.raw.shape[1])), np.zeros(layout.classes)
        for code in range(layout.classes):
            here = slice(starts[code], starts[code + 1])
            points = space.raw[here]
            if directed[code] < len(points):
                points = points[~space.flat[here]]
            if len(points):
                means[code] = points.mean(axis=0)
                points = points - means[code]
                spread = np.einsum("ij,ij->", points, points)
                spreads[code] = spread if spread > SAME_DIRECTION * len(points) else 0.0
        squares = np.einsum("ij,ij->i", means, means)
        return cls(layout.sizes.astype(np.float64), directed, means, squares, spreads)

    @property
    def intra(self) -> Floats:
        """Mean distance of the pairs inside each class, NaN for a class of one."""
        pairs = self.sizes * (self.sizes - 1.0)
        flats = self.sizes - self.directed
        total = self.directed * self.spreads + self.sizes**2 - self.directed**2 - flats
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(pairs > 0, total / pairs, np.nan)

    def inter(self, codes: Ints) -> Floats:
        """Mean distances of some classes to every class, [classes, C]; that of a class to itself is no number."""
        d, every = self.directed[codes][:, None], self.directed[None, :]
        both = self.squares[codes][:, None] + self.squares[None, :]
        apart = both - 2.0 * (self.means[codes] @ self.means.T)
        for a, b in np.argwhere(apart < CLOSE * both):
            gap = self.means[codes[a]] - self.means[b]
            apart[a, b] = gap @ gap if gap @ gap > SAME_DIRECTION else 0.0
        total = 0.5 * (every * self.spreads[codes][:, None] + d * self.spreads + d * every * apart)
        pairs = self.sizes[codes][:, None] * self.sizes
        means = (total + pairs - d * every) / pairs
        means[np.arange(len(codes)), codes] = np.nan
        return np.asarray(means)
