"""Compiled loops of the codec metrics.

    warping_path: cost of step (i, j) = |a_i - b_j| + the least of its three predecessors

        (i-1, j-1)  (i-1, j)          one row of costs is kept; of every step only which predecessor it came from,
        (i,   j-1)  (i,   j)          one byte: two clips of two minutes with 7,500 voiced frames take 56 MB

Ties go to the diagonal, then to (i, j-1), then to (i-1, j), as in librosa, whose path the reference follows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

compiled = njit(cache=True, nogil=True)


@compiled
def warping_path(a, b):
    """The cheapest monotone path from (0, 0) to the last frames, as pairs of indices [steps, 2], first step first."""
    n, m = len(a), len(b)
    came = np.empty((n, m), np.uint8)
    row = np.empty(m, np.float64)
    for i in range(n):
        diagonal = 0.0  # the cost of (i-1, j-1)
        for j in range(m):
            cost = abs(a[i] - b[j])
            above = row[j]
            if i == 0 and j == 0:
                best, direction = 0.0, 0
            elif i == 0:
                best, direction = row[j - 1], 1
            elif j == 0:
                best, direction = above, 2
            else:
                best, direction = diagonal, 0
                if row[j - 1] < best:
                    best, direction = row[j - 1], 1
                if above < best:
                    best, direction = above, 2
            diagonal = above
            row[j] = best + cost
            came[i, j] = direction
    path = np.empty((n + m - 1, 2), np.int64)
    step = n + m - 2
    i, j = n - 1, m - 1
    while True:
        path[step, 0], path[step, 1] = i, j
        if i == 0 and j == 0:
            return path[step:]
        direction = came[i, j]
        if direction != 1:
            i -= 1
        if direction != 2:
            j -= 1
        step -= 1
