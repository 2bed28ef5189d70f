"""A whole tile in one compiled call: its products, candidate lists and class sums, strip after strip.

With sixteen threads at work, going back to the interpreter after each strip costs more than the strip: threads queue
for its lock. Products are those of NumPy to the last bit (both call the same BLAS). Only for operands that lie in
memory and have no more than DEPTH dimensions: others go strip by strip (sweep.py), with the same results.
"""

from __future__ import annotations

import numpy as np

from earmark.geometry.kernels import add_class_sums, compiled, distances_from_keys, propose


@compiled
def order_strips(
    left, columns, width, strip, rows, first, last, units, near, need_far,
    banned, keys, places, counts, more_banned, more_keys, more_places, more_counts,
):  # fmt: skip
    """Feed all strips to the candidate lists of `rows`: see `kernels.propose`.

    left, columns: the operands of the product; strip: room for rows * width keys. The arrays from more_banned on are
    those of a second protocol; with no rows where there is none.
    """
    n, height = columns.shape[0], rows.shape[0]
    for c0 in range(0, n, width):
        c1 = min(c0 + width, n)
        tile = strip[: height * (c1 - c0)].reshape((height, c1 - c0))
        np.dot(left, columns[c0:c1].T, tile)
        propose(tile, c0, rows, first, last, units, banned, near, keys, places, counts, need_far)
        if more_keys.shape[0] > 0:
            propose(
                tile, c0, rows, first, last, units, more_banned, near, more_keys, more_places, more_counts, need_far
            )


@compiled
def value_strips(
    left, columns, width, strip, rows, first, last, units, near, need_far,
    banned, keys, places, counts, more_banned, more_keys, more_places, more_counts,
    codes, starts, squares, raw, flat, form, scale, class_sums,
):  # fmt: skip
    """As `order_strips`, in float64, and add the distances to the sums of `rows` over classes."""
    n, height = columns.shape[0], rows.shape[0]
    for c0 in range(0, n, width):
        c1 = min(c0 + width, n)
        tile = strip[: height * (c1 - c0)].reshape((height, c1 - c0))
        np.dot(left, columns[c0:c1].T, tile)
        propose(tile, c0, rows, first, last, units, banned, near, keys, places, counts, need_far)
        if more_keys.shape[0] > 0:
            propose(
                tile, c0, rows, first, last, units, more_banned, near, more_keys, more_places, more_counts, need_far
            )
        distances_from_keys(tile, c0, rows, squares, raw, flat, form, scale)
        add_class_sums(tile, c0, codes, starts, class_sums)
