"""What two points measure: their distance, and what a hubness correction makes of it.

A correction gives every pair an *order key* by which a row ranks its candidates, and the corrected distance follows
from the key. Both are computed from the distance d and from a few numbers per point:

    kind           order key of (i, j)              corrected distance           first, second
    PLAIN          d                                the key
    SCALE          d f_i f_j                        the key                      f
    LOCAL          (d f_i f_j)^2                    1 - exp(-key)                f
    NORMAL         -log SF_i(d) - log SF_j(d)       1 - exp(-key)                mean, deviation
    SHIFT          2 d - a_j                        key - a_i                    a
    SQUARE_SHIFT   |x_i - x_j|^2 - a_j              key - a_i                    a

Keys of kinds that do not shift are at least 0 and keep their relative precision where the corrected distance cannot:
exponentials that round to 1 are no tie. Those that shift are differences of either sign: such a key is known to a share
of its *size*, the sum of what was subtracted, 2 d + a_j or |x_i - x_j|^2 + a_j. So a tie is as wide as the two points
make it, and a point far from all others blurs no other pair.

The distance itself has one of three forms: sqrt(q) or q / 2 of the squared Euclidean distance q of two rows of `raw`
(ROOT, HALF), or it is given, raw[a, b] (GIVEN).
"""
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False

from __future__ import annotations

import math

import numpy as np
from numba import njit

SAME_DIRECTION = 1e-30  # q of two unit vectors that differ by their rounding alone: x and 3x
SPLIT = 2.0**13 + 1.0  # Veltkamp's constant: leaves 53 - 13 bits
TIE_SHARE = 5e-12  # no less than the share of q by which `rank_of` may call two distances equal
LARGEST = 1e300  # of an order key: products with it stay finite

PLAIN, SCALE, LOCAL, NORMAL, SHIFT, SQUARE_SHIFT = range(6)
ROOT, HALF, GIVEN = range(3)

_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_TAU = 0.5 * math.log(2.0 * math.pi)
_FAINT_EXPONENT = -960  # of a size whose 40th bit is hardly a number
_FAR_OUT = 25.0  # deviations from which the tail of the normal distribution is its asymptotic series

compiled = njit(cache=True, nogil=True)


@compiled
def pair_square(x, y, inverse_scale):
    """q of two rows: eight interleaved float64 partial sums, added in a fixed order."""
    dims = x.shape[0]
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = dims - dims % 8
    for d in range(0, whole, 8):
        d0 = (np.float64(x[d]) - np.float64(y[d])) * inverse_scale
        d1 = (np.float64(x[d + 1]) - np.float64(y[d + 1])) * inverse_scale
        d2 = (np.float64(x[d + 2]) - np.float64(y[d + 2])) * inverse_scale
        d3 = (np.float64(x[d + 3]) - np.float64(y[d + 3])) * inverse_scale
        d4 = (np.float64(x[d + 4]) - np.float64(y[d + 4])) * inverse_scale
        d5 = (np.float64(x[d + 5]) - np.float64(y[d + 5])) * inverse_scale
        d6 = (np.float64(x[d + 6]) - np.float64(y[d + 6])) * inverse_scale
        d7 = (np.float64(x[d + 7]) - np.float64(y[d + 7])) * inverse_scale
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
        s4 += d4 * d4
        s5 += d5 * d5
        s6 += d6 * d6
        s7 += d7 * d7
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    for d in range(whole, dims):
        rest = (np.float64(x[d]) - np.float64(y[d])) * inverse_scale
        total += rest * rest
    return total


@compiled
def square(raw, a, b, inverse_scale):
    """q of rows a and b of `raw`."""
    return pair_square(raw[a], raw[b], inverse_scale)


@compiled
def distance(raw, flat, a, b, form, scale):
    """The distance of rows a and b, as reported."""
    if form == GIVEN:
        return np.float64(raw[a, b])
    if form == HALF:
        if flat[a] or flat[b]:
            return 1.0
        q = square(raw, a, b, 1.0)
        return 0.5 * q if q > SAME_DIRECTION else 0.0
    return np.sqrt(square(raw, a, b, 1.0 / scale)) * scale


@compiled
def rank_of(value):
    """What distances are compared by: the value rounded to 40 bits, so that rounding noise does not break a tie."""
    spread = value * SPLIT
    return spread - (spread - value)


@compiled
def size_of(key, amount):
    """What the key of a kind that shifts is a difference of, added up; `amount` is the a that was subtracted."""
    return key + 2.0 * amount


@compiled
def rank_of_difference(key, size):
    """`rank_of` for the key of a kind that shifts: rounded to 40 bits of its size."""
    # The size is rounded first, so that one that lies at a power of two has the same unit whatever rounding did.
    _, exponent = math.frexp(rank_of(size))
    if exponent < _FAINT_EXPONENT:
        return key
    unit = math.ldexp(1.0, exponent - 40)
    return np.rint(key / unit) * unit


@compiled
def surprise(z):
    """-log of the upper tail of the standard normal distribution, with relative precision on both sides."""
    if z < 0.0:
        return -math.log1p(-0.5 * math.erfc(-z * _ROOT_HALF))
    if z < _FAR_OUT:
        return -math.log(0.5 * math.erfc(z * _ROOT_HALF))
    w = 1.0 / (z * z)
    return 0.5 * z * z + math.log(z) + _LOG_ROOT_TAU - math.log1p(w * (-1.0 + w * (3.0 + w * (-15.0 + w * 105.0))))


@compiled
def order_key(value, a, b, form, kind, first, second):
    """What row a ranks candidate b by, from their distance."""
    if kind == PLAIN:
        return value
    if kind == SCALE:
        return value * (first[a] * first[b])
    if kind == LOCAL:
        x = value * (first[a] * first[b])
        return min(x * x, LARGEST)
    if kind == NORMAL:
        key = surprise((value - first[a]) / second[a]) + surprise((value - first[b]) / second[b])
        return min(key, LARGEST)
    if kind == SHIFT or form == HALF:
        return 2.0 * value - first[b]  # where d = q / 2, the squared distance is 2 d
    return value * value - first[b]


@compiled
def corrected(value, a, b, form, kind, first, second):
    """The corrected distance of rows a and b from their distance (kinds that do not shift)."""
    key = order_key(value, a, b, form, kind, first, second)
    return -math.expm1(-key) if kind in (LOCAL, NORMAL) else key


# --- a tile at a time ------------------------------------------------------------------------------------------


@compiled
def mend_rotated(tile, c0, rows, raw, flat, form, scale, least):
    """Compute distances under `least` from their pair, in place: what a rotation added to them is no longer small."""
    for r in range(tile.shape[0]):
        me = rows[r]
        row = tile[r]
        if not flat[me]:
            for j in range(row.shape[0]):
                if row[j] < least and not flat[c0 + j] and c0 + j != me:
                    row[j] = distance(raw, flat, me, c0 + j, form, scale)


@compiled
def keys_from_distances(tile, c0, rows, form, kind, first, second):
    """Turn a tile of distances into order keys in place."""
    for r in range(tile.shape[0]):
        me = rows[r]
        row = tile[r]
        if form == HALF:
            for j in range(row.shape[0]):
                if row[j] <= 0.5 * SAME_DIRECTION:
                    row[j] = 0.0
        # A loop for each kind, not a test for each pair: all but the normal tail are a few vector instructions.
        if kind == SCALE:
            for j in range(row.shape[0]):
                row[j] *= first[me] * first[c0 + j]
        elif kind == LOCAL:
            for j in range(row.shape[0]):
                x = row[j] * (first[me] * first[c0 + j])
                row[j] = min(x * x, LARGEST)
        elif kind == SHIFT or (kind == SQUARE_SHIFT and form == HALF):
            for j in range(row.shape[0]):
                row[j] = 2.0 * row[j] - first[c0 + j]
        elif kind == SQUARE_SHIFT:
            for j in range(row.shape[0]):
                row[j] = row[j] * row[j] - first[c0 + j]
        else:
            for j in range(row.shape[0]):
                row[j] = order_key(row[j], me, c0 + j, form, kind, first, second)


@compiled
def lower_bounds(tile, c0, first, doubt):
    """Turn a tile of keys of a kind that shifts into what they are at least, in place: less a share of their size."""
    for r in range(tile.shape[0]):
        row = tile[r]
        for j in range(row.shape[0]):
            row[j] -= doubt * size_of(row[j], first[c0 + j])


@compiled
def upper_bound(bound, amount, doubt):
    """What a key is at most, from what `lower_bounds` made of it."""
    key = (bound + 2.0 * doubt * amount) / (1.0 - doubt)
    return key + doubt * size_of(key, amount)


@compiled
def corrected_from_keys(tile, c0, rows, kind):
    """Turn a tile of order keys into corrected distances in place; a point's distance to itself is 0."""
    for r in range(tile.shape[0]):
        row = tile[r]
        if kind in (LOCAL, NORMAL):
            for j in range(row.shape[0]):
                row[j] = -math.expm1(-row[j])
        if c0 <= rows[r] < c0 + row.shape[0]:
            row[rows[r] - c0] = 0.0


@compiled
def add_moments(tile, c0, rows, counts, means, squares):
    """Take a tile of distances into the mean and the summed squared deviation of each row, itself left out."""
    for r in range(tile.shape[0]):
        me = rows[r] - c0
        row = tile[r]
        count = 0.0
        total = 0.0
        for j in range(row.shape[0]):
            if j != me:
                total += row[j]
                count += 1.0
        if count == 0.0:
            continue
        mean = total / count
        spread = 0.0
        for j in range(row.shape[0]):
            if j != me:
                spread += (row[j] - mean) ** 2
        both = counts[r] + count
        gap = mean - means[r]
        means[r] += gap * count / both
        squares[r] += spread + gap * gap * counts[r] * count / both
        counts[r] = both


@compiled
def centroid_squares(points, places, raw, flat, form, scale, out):
    """Squared distance of each point to the mean of its listed neighbours, from squared distances of pairs alone.

    |x - c|^2 = mean_k |x - y_k|^2 - (1 / K^2) sum_{k < l} |y_k - y_l|^2, so a vector without direction (at distance 1
    from everything, as a direction of its own would be) needs no coordinates.
    """
    count = places.shape[1]
    for i in range(places.shape[0]):
        to_all = 0.0
        among = 0.0
        for k in range(count):
            d = distance(raw, flat, points[i], places[i, k], form, scale)
            to_all += 2.0 * d if form == HALF else d * d
            for m in range(k):
                d = distance(raw, flat, places[i, m], places[i, k], form, scale)
                among += 2.0 * d if form == HALF else d * d
        out[i] = max(to_all / count - among / (count * count), 0.0)
