"""Compiled kernels of the label-free search: candidate lists that outlive the tile they came from.

        tile row r   | . . x . | . . . . | . x x . | ...      keys = c_j q_rj from one matrix product
                           \\______________/  /
                            gather: keys under the row's limit, appended to a buffer of twice the list's length;
                            a full buffer is halved (quickselect) and the limit falls
        list of r    (place, lower bound of d) x length, and a floor: d * weight of anything unlisted is no less
                            |
                            v
        settle       value = d * weight[place] -> the k smallest, for *any* weights, until the floor forbids it

Numeric policy, that of `kernels`
- Keys may be float32; they only give lower bounds (key minus rounding error). `settle` replaces a bound by the float64
  distance of the pair where the bound could matter, once: distances do not depend on weights, so a list may be settled
  again under other weights for the price of a multiplication for each entry.
- A row is certified when its k-th value lies below what the floor leaves possible for unlisted points.
- Values that agree to 40 bits are ties, ordered by row.
"""

from __future__ import annotations

import numpy as np

from earmark.geometry.kernels import BLOCK, CLOSE, SAME_DIRECTION, TIE_SHARE, compiled, rank_of
from earmark.geometry.pair_kernels import GIVEN, HALF, ROOT, pair_square

FAINT = 1e-290  # a key under this may have lost digits to underflow
AHEAD = 1e-4  # distances this much (as a share) beyond the last one needed are looked up with it


@compiled
def pair_distance(raw_a, flat_a, a, raw_b, flat_b, b, form, scale):
    """The distance of row a of one space and row b of another, as reported."""
    if form == GIVEN:
        return np.float64(raw_a[a, b])
    if form == HALF:
        if flat_a[a] or flat_b[b]:
            return 1.0
        q = pair_square(raw_a[a], raw_b[b], 1.0)
        return 0.5 * q if q > SAME_DIRECTION else 0.0
    return np.sqrt(pair_square(raw_a[a], raw_b[b], 1.0 / scale)) * scale


@compiled
def _select(keys, places, count, keep):
    """Bring the `keep` smallest of the first `count` keys to the front, places with them; return the largest kept."""
    low, high, target = 0, count - 1, keep - 1
    while low < high:
        middle = (low + high) >> 1
        a, b, c = keys[low], keys[middle], keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                places[i], places[j] = places[j], places[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    return keys[target]


@compiled
def _smallest(values, count, nth):
    """The nth smallest (from 0) of the first `count` values, which it rearranges."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) >> 1
        a, b, c = values[low], values[middle], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if nth <= j:
            high = j
        elif nth >= i:
            low = i
        else:
            break
    return values[nth]


@compiled
def _any_under(values, limit):
    found = False  # an "or" of booleans is the reduction that compiles to one comparison per vector
    for j in range(values.shape[0]):
        found |= values[j] < limit
    return found


@compiled
def gather(tile, c0, own, limits, length, keys, places, counts):
    """Feed one tile to the buffers [rows, 2 * length + BLOCK] of its rows; own[r] is the column to leave out, or -1."""
    room = keys.shape[1] - BLOCK
    for r in range(tile.shape[0]):
        row, limit, count, me = tile[r], limits[r], counts[r], own[r] - c0
        for start in range(0, row.shape[0], BLOCK):
            stop = min(start + BLOCK, row.shape[0])
            if not _any_under(row[start:stop], limit):
                continue
            for j in range(start, stop):  # writing what may not count is cheaper than a branch nobody can predict
                keys[r, count] = row[j]
                places[r, count] = c0 + j
                count += (row[j] < limit) & (j != me)
            if count > room:
                limit = _select(keys[r], places[r], count, length)
                count = length
        limits[r] = limit
        counts[r] = count


@compiled
def value_of_key(key, form, scale, key_scale):
    """The d * weight that a key stands for; keys are c_j q (given: c_j d / scale) times `key_scale`."""
    share = max(key, 0.0) / key_scale
    if form == GIVEN:
        return share * scale
    return 0.5 * share if form == HALF else np.sqrt(share) * scale


@compiled
def close_lists(keys, limits, counts, places, errors, weights, form, scale, key_scale, dist, known, listed, floors):
    """Turn buffers into lists: at most `dist.shape[1]` places, a lower bound of each distance, and the row's floor."""
    length = dist.shape[1]
    for r in range(keys.shape[0]):
        count, limit = counts[r], limits[r]
        if count > length:
            limit = _select(keys[r], places[r], count, length)
            count = length
        counts[r] = count
        error = errors[r]
        floors[r] = np.inf
        if limit < np.inf:
            floors[r] = value_of_key(np.float64(limit) - error, form, scale, key_scale)
        for t in range(count):
            place = places[r, t]
            listed[r, t] = place
            value = value_of_key(np.float64(keys[r, t]) - error, form, scale, key_scale)
            dist[r, t] = value / weights[place]
            known[r, t] = False


@compiled
def settle(
    raw_a, flat_a, rows, raw_b, flat_b, form, scale, listed, dist, known, counts, floors,
    weights, k, ordered, out_places, out_values, certified,
):  # fmt: skip
    """The k smallest values d * weight of each row's list, in float64, ordered by (value, row).

    A row is certified if its floor, taken under these weights, lies above the k-th value. `ordered` asks for the right
    places; without it the floor may be the k-th value itself: only the order of points at the very same value is then
    open, which their sum does not feel. The k smallest are moved to the front of the list.
    """
    length = listed.shape[1]
    values, scratch = np.empty(length), np.empty(length)
    picked, rest = np.empty(length, np.int64), np.empty(length, np.int64)
    for r in range(rows.shape[0]):
        count = counts[r]
        wanted = min(k, count)
        if wanted == 0:
            certified[r] = floors[r] == np.inf
            continue
        for t in range(count):
            values[t] = dist[r, t] * weights[listed[r, t]]
        kth = 0.0
        opened = True
        while opened:
            scratch[:count] = values[:count]
            kth = _smallest(scratch, count, wanted - 1)
            opened = False
            for t in range(count):
                opened |= not known[r, t] and values[t] <= kth * (1.0 + TIE_SHARE)
            if opened:
                for t in range(count):
                    if not known[r, t] and values[t] <= kth * (1.0 + AHEAD):
                        place = listed[r, t]
                        dist[r, t] = pair_distance(raw_a, flat_a, rows[r], raw_b, flat_b, place, form, scale)
                        known[r, t] = True
                        values[t] = dist[r, t] * weights[place]
        reach = kth * (1.0 + TIE_SHARE)
        floor = floors[r] * (1.0 - TIE_SHARE)
        certified[r] = floors[r] == np.inf or (wanted == k and (reach < floor or (not ordered and kth <= floor)))
        found = left = 0
        for t in range(count):
            if values[t] <= reach:
                picked[found] = t
                found += 1
            else:
                rest[left] = t
                left += 1
        _sort_picked(picked, found, values, listed[r])
        picked[found:count] = rest[:left]
        for t in range(wanted):
            out_places[r, t] = listed[r, picked[t]]
            out_values[r, t] = values[picked[t]]
        _rearrange(picked, count, listed[r], dist[r], known[r])


@compiled
def visit(tile, c0, columns, own, limits, places, dist, known, counts, changed):
    """Add to the lists of a tile's rows the columns whose key is under the row's limit and that are not listed yet.

    changed[r] becomes 1 where something was added and 2 where the list had no room for it.
    """
    for r in range(tile.shape[0]):
        row, limit = tile[r], limits[r]
        for start in range(0, row.shape[0], BLOCK):
            stop = min(start + BLOCK, row.shape[0])
            if not _any_under(row[start:stop], limit):
                continue
            for j in range(start, stop):
                place = columns[c0 + j]
                if row[j] < limit and place != own[r] and not _has(places[r, : counts[r]], place):
                    if counts[r] == places.shape[1]:
                        changed[r] = 2
                        break
                    changed[r] = max(changed[r], 1)
                    places[r, counts[r]] = place
                    dist[r, counts[r]] = 0.0
                    known[r, counts[r]] = False
                    counts[r] += 1


@compiled
def _has(places, place):
    found = False
    for t in range(places.shape[0]):
        found |= places[t] == place
    return found


@compiled
def _rearrange(order, count, places, dist, known):
    old_places, old_dist, old_known = places[:count].copy(), dist[:count].copy(), known[:count].copy()
    for t in range(count):
        places[t] = old_places[order[t]]
        dist[t] = old_dist[order[t]]
        known[t] = old_known[order[t]]


@compiled
def _sort_picked(picked, count, values, places):
    """Insertion sort by (value to 40 bits, place): short lists, in nearly the right order from the second time on."""
    for t in range(1, count):
        one = picked[t]
        rank, place = rank_of(values[one]), places[one]
        at = t
        while at > 0:
            other = picked[at - 1]
            other_rank = rank_of(values[other])
            if other_rank < rank or (other_rank == rank and places[other] < place):
                break
            picked[at] = other
            at -= 1
        picked[at] = one


@compiled
def count_inside(
    tile, c0, own, rows, lows, highs, raw_a, flat_a, raw_b, flat_b, form, scale,
    radii, row_weights, columns, weights, strict, per_column, per_row,
):  # fmt: skip
    """Count the pairs of a tile with d * weight * row weight <= radius (< when `strict`).

    Keys under lows[r] are inside and keys over highs[r] outside whatever rounding did; between them float64 decides.
    """
    for r in range(tile.shape[0]):
        row, me, high = tile[r], own[r] - c0, highs[r]
        radius = rank_of(radii[r])
        for start in range(0, row.shape[0], BLOCK):
            stop = min(start + BLOCK, row.shape[0])
            if not _any_under(row[start:stop], high):
                continue
            for j in range(start, stop):
                key = np.float64(row[j])
                if not key < high or j == me:
                    continue
                if not key < lows[r]:
                    at = columns[c0 + j]
                    value = pair_distance(raw_a, flat_a, rows[r], raw_b, flat_b, at, form, scale) * weights[c0 + j]
                    rank = rank_of(value * row_weights[r])
                    if rank > radius or (strict and rank == radius):
                        continue
                per_column[c0 + j] += 1
                per_row[r] += 1


@compiled
def add_logs(
    tile, c0, own, rows, limits, errors, row_squares, column_squares, raw_a, flat_a, raw_b, flat_b, form, scale,
    key_scale, reaches, weights, totals,
):  # fmt: skip
    """totals[r] += sum over the tile's columns of log(min(d * weight / reaches[r], 1)), -inf for a distance of 0.

    tile holds float64 keys, wrong by errors[r] at most, and limits[r] the key of reaches[r]. A running product stands
    for the sum: one logarithm for many pairs. Where a key has lost digits to cancellation the pair's own distance takes
    its place, also in the question whether it is within reach: a reach may be smaller than the error of a key.
    """
    linear = form != ROOT
    power = 1.0 if linear else 0.5
    for r in range(tile.shape[0]):
        row, limit, me, reach = tile[r], limits[r], own[r] - c0, reaches[r]
        bound = limit + errors[r]
        usable = FAINT < limit < np.inf
        running, total = 1.0, 0.0
        for j in range(row.shape[0]):
            if not row[j] < bound or j == me:
                continue
            place = c0 + j
            factor = weights[place] if linear else weights[place] * weights[place]
            lost = max(CLOSE * (row_squares[r] + column_squares[place]) * factor * key_scale, FAINT)
            if usable and not row[j] < lost:
                if not row[j] < limit:
                    continue
                share = row[j] / limit
            else:
                value = pair_distance(raw_a, flat_a, rows[r], raw_b, flat_b, place, form, scale) * weights[place]
                if value == 0.0:
                    total = -np.inf
                    continue
                if not value < reach:
                    continue
                part = value / reach
                if part < 1e-50:
                    total += np.log(part)
                    continue
                share = part if linear else part * part
            running *= share
            if running < 1e-100:
                total += power * np.log(running)
                running = 1.0
        totals[r] += total + power * np.log(running)
