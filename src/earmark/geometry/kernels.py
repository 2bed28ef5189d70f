"""Compiled kernels of the sweep: what happens to a tile of the distance matrix while it is in cache.

                         columns (points sorted by class)
                 c0          own class of row r         c1
               +----------------+-------+-----------------+
        row r  | other classes  | same  |  other classes  |    one tile: ROWS x width keys from one
               +----------------+-------+-----------------+    matrix product, key = q - |z_r|^2
                       |            |            |
                       v            v            v
                  nearest of    nearest and   nearest of       per row, two short sorted lists of
                  other class   farthest of   other class      candidates and one of farthest
                                own class

Because points are sorted by class, "same" and "other" are ranges, not tests. A row is scanned in blocks of
64 keys: one vector comparison with the list's worst entry skips nearly every block.

Numeric policy
- Keys may be float32; they only *propose*. `decide` recomputes the distance of every candidate that could
  matter in float64 by `square`, whose order of summation is fixed, and orders by (distance, row). Distances that
  agree to 40 bits are ties: what rounding makes of equal distances is not an order.
- A row is certified when its lists provably hold every candidate: the last key kept is farther than the
  last key needed by more than twice the product's rounding error. Uncertified rows are swept again in
  float64, and if that cannot decide either (mass duplicates) `exact_rows` looks at every pair.
- Values that enter sums (euclidean) come from float64 tiles of one fixed shape; where the product loses
  digits to cancellation (pairs much closer than their norms) `square` replaces it.
- Under a correction (kind, first, second: see `pair_kernels`) keys are order keys from float64 tiles of the fixed
  shape, right to a share of themselves (`doubt`), and candidates are decided by their order keys. Keys that are
  differences are right to a share of what was subtracted, so there the tile holds the least each can be: a point far
  from all others is in doubt itself and puts nobody else there.
- Distances that were given need no product: a tile is read from them, and its keys are the distances themselves.
- So no result depends on tile width, threads or memory budget.
"""

from __future__ import annotations

import numpy as np

from earmark.geometry.pair_kernels import (
    HALF,
    PLAIN,
    ROOT,
    SHIFT,
    corrected,
    order_key,
    rank_of_difference,
    size_of,
    upper_bound,
)
from earmark.geometry.pair_kernels import SAME_DIRECTION as SAME_DIRECTION
from earmark.geometry.pair_kernels import TIE_SHARE as TIE_SHARE
from earmark.geometry.pair_kernels import compiled as compiled
from earmark.geometry.pair_kernels import distance as distance
from earmark.geometry.pair_kernels import rank_of as rank_of
from earmark.geometry.pair_kernels import square as square

BLOCK = 64
CLOSE = 1e-3  # below this share of the two squared norms a product's q has lost digits: recompute it
COLLAPSED = 1e-5  # the same, for closed-form class sums


@compiled
def ranks_from_sorter(values, sorter, average, middle, ranks):
    """Ranks 0..D-1 minus their middle; runs of equal values share their mean rank when `average`."""
    rows, dims = values.shape
    for r in range(rows):
        start = 0
        while start < dims:
            stop = start + 1
            if average:
                value = values[r, sorter[r, start]]
                while stop < dims and values[r, sorter[r, stop]] == value:
                    stop += 1
            rank = 0.5 * (start + stop - 1) - middle
            for t in range(start, stop):
                ranks[r, sorter[r, t]] = rank
            start = stop


@compiled
def _insert(keys, places, count, key, place):
    """Put (key, place) into a list sorted by key; the last entry falls off a full list."""
    capacity = keys.shape[0]
    at = count if count < capacity else capacity - 1
    while at > 0 and keys[at - 1] > key:
        keys[at] = keys[at - 1]
        places[at] = places[at - 1]
        at -= 1
    keys[at] = key
    places[at] = place
    return count + 1 if count < capacity else capacity


@compiled
def _any_below(values, sign, worst):
    found = False  # an "or" of booleans is the reduction that compiles to one comparison per vector
    for j in range(values.shape[0]):
        found |= sign * values[j] < worst
    return found


@compiled
def _scan(row, c0, low, high, sign, me, units, banned, keys, places, count):
    """Offer the columns [low, high) of a tile row to a candidate list; sign -1 looks for the farthest.

    Points of the two `banned` units are passed over (-1: none).
    """
    capacity = keys.shape[0]
    for start in range(low - c0, high - c0, BLOCK):
        stop = min(start + BLOCK, high - c0)
        if count == capacity and not _any_below(row[start:stop], sign, keys[capacity - 1]):
            continue
        for j in range(start, stop):
            key = sign * row[j]
            if count == capacity and key >= keys[capacity - 1]:
                continue
            place = c0 + j
            if place == me or units[place] == banned[0] or units[place] == banned[1]:
                continue
            count = _insert(keys, places, count, key, place)
    return count


@compiled
def propose(tile, c0, rows, first, last, units, banned, near, keys, places, counts, need_far):
    """Feed one tile to the candidate lists of its rows.

    units: of each point; banned: [rows, 2], the units whose points are no candidates of a row.
    keys, places: [rows, 2 * near + far]: nearest of the own class, nearest of the others, farthest of the own.
    first, last: the range of the own class, per point. counts: [rows, 3].
    """
    c1 = c0 + tile.shape[1]
    one = tile.dtype.type(1)
    for r in range(tile.shape[0]):
        me = rows[r]
        a, b = max(first[me], c0), min(last[me], c1)
        row = tile[r]
        if a < b:
            counts[r, 0] = _scan(
                row, c0, a, b, one, me, units, banned[r], keys[r, :near], places[r, :near], counts[r, 0]
            )
            if need_far:
                counts[r, 2] = _scan(
                    row, c0, a, b, -one, me, units, banned[r],
                    keys[r, 2 * near :], places[r, 2 * near :], counts[r, 2],
                )  # fmt: skip
        other_keys, other_places = keys[r, near : 2 * near], places[r, near : 2 * near]
        left, right = min(first[me], c1), max(last[me], c0)
        if c0 < left:
            counts[r, 1] = _scan(row, c0, c0, left, one, me, units, banned[r], other_keys, other_places, counts[r, 1])
        if right < c1:
            counts[r, 1] = _scan(row, c0, right, c1, one, me, units, banned[r], other_keys, other_places, counts[r, 1])


@compiled
def _rank(value, place, kind, first):
    """What a candidate is ordered by: its distance or order key, without its rounding noise."""
    return rank_of_difference(value, size_of(value, first[place])) if kind >= SHIFT else rank_of(value)


@compiled
def _keep(distances, places, count, order, value, place, kind, first):
    """Insert into a list sorted by (distance, original row)."""
    capacity = distances.shape[0]
    rank = _rank(value, place, kind, first)
    if count == capacity:
        worst = _rank(distances[capacity - 1], places[capacity - 1], kind, first)
        if rank > worst or (rank == worst and order[place] > order[places[capacity - 1]]):
            return count
    at = count if count < capacity else capacity - 1
    while at > 0:
        other = _rank(distances[at - 1], places[at - 1], kind, first)
        if other < rank or (other == rank and order[places[at - 1]] < order[place]):
            break
        distances[at] = distances[at - 1]
        places[at] = places[at - 1]
        at -= 1
    distances[at] = value
    places[at] = place
    return count + 1 if count < capacity else capacity


@compiled
def _smallest_upper(keys, places, first, doubt, uppers, count):
    """Take the upper bounds of some candidates, given by their lower ones, into a sorted list of the smallest."""
    for t in range(keys.shape[0]):
        upper = upper_bound(keys[t], first[places[t]], doubt)
        if count == uppers.shape[0] and upper >= uppers[count - 1]:
            continue
        at = count if count < uppers.shape[0] else count - 1
        while at > 0 and uppers[at - 1] > upper:
            uppers[at] = uppers[at - 1]
            at -= 1
        uppers[at] = upper
        count = min(count + 1, uppers.shape[0])
    return count


@compiled
def _reach(key, margin, doubt):
    """How far a key may lie behind `key` and still belong before it; without any candidate, nowhere."""
    return key + margin + doubt * abs(key) if doubt > 0.0 and key > -np.inf else key + margin


@compiled
def _nearer(nearest, unit, following, value, its_unit):
    """The nearest value with its unit, and the nearest of any other unit, after one more (NaN: none yet)."""
    if not nearest <= value:
        if its_unit != unit:
            following = nearest
        return value, its_unit, following
    if its_unit != unit and not following <= value:
        following = value
    return nearest, unit, following


@compiled
def decide(
    raw, flat, form, scale, kind, first, second, order, rows, bounds, doubt, keys, places, counts, near, need_far, k,
    units, need_second, out_places, out_distances, out_other, out_far, out_unit, out_second, out_open, certified,
):  # fmt: skip
    """Settle proposed candidates in float64; say which rows are certified.

    Fills, per row: the k nearest (places and distances, ordered by (distance, row)), the distance of the
    nearest other-class point and of the farthest same-class point (NaN where there is none). Under a correction
    distances are order keys. Where those are differences, `keys` holds the least they can be.

    With `need_second` also the unit of that nearest other-class point, and the distance of the nearest one of any
    other unit: what stays the nearest when the unit is left out. Where the whole list is of one unit, `out_open`.
    """
    uppers, nearest_upper = np.empty(k), np.empty(1)
    for r in range(rows.shape[0]):
        me = rows[r]
        n_same, n_other, n_far = counts[r, 0], counts[r, 1], counts[r, 2]
        margin = 2.0 * bounds[me]
        # The k-th smallest key of the two nearest lists together.
        s = o = 0
        needed = -np.inf
        for _ in range(min(k, n_same + n_other)):
            if o >= n_other or (s < n_same and keys[r, s] <= keys[r, near + o]):
                needed = np.float64(keys[r, s])
                s += 1
            else:
                needed = np.float64(keys[r, near + o])
                o += 1
        reach_same = _reach(needed, margin, doubt)
        reach_other = reach_same
        if n_other > 0:
            reach_other = max(reach_other, _reach(np.float64(keys[r, near]), margin, doubt))
        out_open[r] = False
        if need_second and n_other > 0:
            t = 1
            while t < n_other and units[places[r, near + t]] == units[places[r, near]]:
                t += 1
            if t < n_other:
                reach_other = max(reach_other, _reach(np.float64(keys[r, near + t]), margin, doubt))
            else:
                out_open[r] = n_other == near
        if kind >= SHIFT:
            found = _smallest_upper(keys[r, :n_same], places[r, :near], first, doubt, uppers, 0)
            other_keys, other_places = keys[r, near : near + n_other], places[r, near : 2 * near]
            found = _smallest_upper(other_keys, other_places, first, doubt, uppers, found)
            reach_same = reach_other = uppers[found - 1] if found > 0 else -np.inf
            if _smallest_upper(other_keys, other_places, first, doubt, nearest_upper, 0) > 0:
                reach_other = max(reach_other, nearest_upper[0])
        reach_far = np.inf
        if n_far > 0:
            reach_far = _reach(np.float64(keys[r, 2 * near]), margin, doubt)
        full_far = keys.shape[1] - 2 * near
        certified[r] = (
            (n_same < near or np.float64(keys[r, near - 1]) > reach_same)
            and (n_other < near or np.float64(keys[r, 2 * near - 1]) > reach_other)
            and (not need_far or n_far < full_far or np.float64(keys[r, keys.shape[1] - 1]) > reach_far)
        )
        if not certified[r]:
            continue
        found = 0
        for t in range(n_same):
            if np.float64(keys[r, t]) <= reach_same:
                place = places[r, t]
                value = distance(raw, flat, me, place, form, scale)
                if kind != PLAIN:
                    value = order_key(value, me, place, form, kind, first, second)
                found = _keep(out_distances[r], out_places[r], found, order, value, place, kind, first)
        nearest = following = np.nan
        unit = -1
        for t in range(n_other):
            if np.float64(keys[r, near + t]) <= reach_other:
                place = places[r, near + t]
                value = distance(raw, flat, me, place, form, scale)
                if kind != PLAIN:
                    value = order_key(value, me, place, form, kind, first, second)
                found = _keep(out_distances[r], out_places[r], found, order, value, place, kind, first)
                nearest, unit, following = _nearer(nearest, unit, following, value, units[place])
        out_other[r], out_unit[r], out_second[r] = nearest, unit, following
        farthest = np.nan
        for t in range(n_far):
            if np.float64(keys[r, 2 * near + t]) <= reach_far:
                value = distance(raw, flat, me, places[r, 2 * near + t], form, scale)
                if kind != PLAIN:
                    value = order_key(value, me, places[r, 2 * near + t], form, kind, first, second)
                if not farthest >= value:
                    farthest = value
        out_far[r] = farthest


@compiled
def exact_rows(
    raw, flat, form, scale, kind, first, second, order, rows, starts, stops, units, banned,
    out_places, out_distances, out_other, out_far, out_unit, out_second, out_open,
):  # fmt: skip
    """The same outputs as `decide` from every pair of the rows, in float64, without a product."""
    n = order.shape[0]
    for r in range(rows.shape[0]):
        me = rows[r]
        found = 0
        nearest = following = farthest = np.nan
        unit = -1
        for place in range(n):
            if place == me or units[place] == banned[r, 0] or units[place] == banned[r, 1]:
                continue
            value = distance(raw, flat, me, place, form, scale)
            if kind != PLAIN:
                value = order_key(value, me, place, form, kind, first, second)
            found = _keep(out_distances[r], out_places[r], found, order, value, place, kind, first)
            if starts[me] <= place < stops[me]:
                if not farthest >= value:
                    farthest = value
            else:
                nearest, unit, following = _nearer(nearest, unit, following, value, units[place])
        out_other[r], out_unit[r], out_second[r], out_open[r] = nearest, unit, following, False
        out_far[r] = farthest


@compiled
def distances_from_keys(tile, c0, rows, squares, raw, flat, form, scale):
    """Turn a float64 tile of keys into distances in place; a point's distance to itself is 0."""
    for r in range(tile.shape[0]):
        me = rows[r]
        mine = squares[me]
        row = tile[r]
        for j in range(row.shape[0]):
            row[j] = max(row[j] + mine, 0.0)
        close = False
        for j in range(row.shape[0]):
            close |= row[j] < CLOSE * (mine + squares[c0 + j])
        if close and not flat[me]:
            for j in range(row.shape[0]):
                if row[j] < CLOSE * (mine + squares[c0 + j]) and not flat[c0 + j]:
                    row[j] = square(raw, me, c0 + j, 1.0 / scale)
        if form == HALF:
            for j in range(row.shape[0]):
                row[j] *= 0.5
            if flat[me]:
                row[:] = 1.0
        elif form == ROOT:
            for j in range(row.shape[0]):
                row[j] = np.sqrt(row[j]) * scale
        if c0 <= me < c0 + row.shape[0]:
            row[me - c0] = 0.0


@compiled
def add_class_sums(tile, c0, codes, starts, sums):
    """sums[r, c] += the distances of row r to the points of class c inside this tile."""
    c1 = c0 + tile.shape[1]
    for r in range(tile.shape[0]):
        row = tile[r]
        place = c0
        while place < c1:
            code = codes[place]
            stop = min(starts[code + 1], c1)
            total = 0.0
            for j in range(place - c0, stop - c0):
                total += row[j]
            sums[r, code] += total
            place = stop


@compiled
def mend_collapsed_sums(sums, rows, squares, class_squares, starts, raw, flat):
    """Recompute from pairs the closed-form sums (spaces of form HALF) that cancellation has eaten.

    class_squares: mean squared norm of each class. A sum is suspect where the mean distance is a tiny
    share of the norms it was subtracted from: collapsed classes, duplicates.
    """
    for r in range(rows.shape[0]):
        me = rows[r]
        if flat[me]:
            continue
        for c in range(sums.shape[1]):
            size = starts[c + 1] - starts[c]
            if sums[r, c] < COLLAPSED * size * (squares[me] + class_squares[c]):
                total = 0.0
                for place in range(starts[c], starts[c + 1]):
                    if place != me:
                        total += distance(raw, flat, me, place, HALF, 1.0)
                sums[r, c] = total


@compiled
def mend_remainders(
    sums, remainders, counts, rows, starts, groups, raw, flat, form, scale, kind, first, second
):  # fmt: skip
    """Recompute from pairs what is left of a class sum when nearly all of it was subtracted."""
    for r in range(rows.shape[0]):
        me = rows[r]
        for c in range(sums.shape[1]):
            if counts[r, c] > 0 and remainders[r, c] < CLOSE * sums[r, c]:
                total = 0.0
                for place in range(starts[c], starts[c + 1]):
                    if groups[place] != groups[me]:
                        value = distance(raw, flat, me, place, form, scale)
                        if kind != PLAIN:
                            value = corrected(value, me, place, form, kind, first, second)
                        total += value
                remainders[r, c] = total


@compiled
def same_group_sums(
    rows, groups, group_starts, group_members, codes, raw, flat, form, scale, kind, first, second, sums, counts
):  # fmt: skip
    """Per row and class, the sum and number of distances to the *other* points of the row's group."""
    for r in range(rows.shape[0]):
        me = rows[r]
        for t in range(group_starts[groups[me]], group_starts[groups[me] + 1]):
            place = group_members[t]
            if place != me:
                value = distance(raw, flat, me, place, form, scale)
                if kind != PLAIN:
                    value = corrected(value, me, place, form, kind, first, second)
                sums[r, codes[place]] += value
                counts[r, codes[place]] += 1.0


@compiled
def summarise_sums(sums, counts, shared, codes, own_mean, own_count, other_mean):
    """Per row: mean distance to the own class, its count, and the lowest mean distance to another class.

    counts: shared, [1, C], the class sizes (the own class still counts the row itself); else [rows, C], already
    without the row itself.
    """
    for r in range(sums.shape[0]):
        own = codes[r]
        lowest = np.inf
        for c in range(sums.shape[1]):
            count = counts[0, c] if shared else counts[r, c]
            mean = sums[r, c] / count if count > 0 else np.inf
            if c != own and mean < lowest:
                lowest = mean
        count = counts[0, own] - 1.0 if shared else counts[r, own]
        own_count[r] = count
        own_mean[r] = sums[r, own] / count if count > 0 else np.nan
        other_mean[r] = lowest if lowest < np.inf else np.nan
