"""Compiled kernels of the permutation null: the N x N work is never repeated for a permutation.

A *unit* carries one label (a clip, or a group whose clips move together: see arrangements.py).

      codes[unit, p]   the class of a unit under p, permutations side by side: one comparison serves many of them
      shuffles[p, u]   the same by permutation
      members[p]       units sorted by class under p; those of class c from starts[p, c] to starts[p, c + 1]

`serve_rows`, for any distance and protocol: a row of distances to all units serves every permutation.

      neighbours of i      --(compare codes, farthest first)-->   hits, nearest other class          for each p
      distances of i       --(gather members of i's class)----->  sum and farthest of the own class  for each p
      distances of 32 rows --(add to the class of each unit)-->  sums by class, 32 rows at once     for each p

`class_totals` and what follows it, where the distance has a closed form (cosine, spearman) and nothing is left out: the
points of each shuffled class are summed, and summed distances are products with those totals.

A permutation belongs to one worker, which meets the rows in order: sums do not depend on the threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from earmark.geometry.kernels import compiled, distance
from earmark.geometry.pair_kernels import HALF

LANES = 32  # rows whose distances to a unit lie side by side
COLUMNS = 256  # units at a time, so that their lanes stay in the first cache
NOWHERE = 255  # lists are at most this long: a place in them is a byte
BUCKETS = 1024
CHUNK = 1 << 18  # bytes of class sums in flight


@compiled
def exchange(uniforms, starts, labels):
    """Shuffle labels[starts[b]:starts[b + 1]] of every block: Fisher and Yates, last slot first."""
    for b in range(starts.shape[0] - 1):
        for t in range(starts[b + 1] - 1, starts[b], -1):
            other = starts[b] + int(uniforms[t] * (t - starts[b] + 1))
            labels[t], labels[other] = labels[other], labels[t]


@compiled
def sort_units(labels, starts, members):
    """Units by class, in their own order inside each; starts: [C + 1]."""
    starts[:] = 0
    for u in range(labels.shape[0]):
        starts[labels[u] + 1] += 1
    for c in range(1, starts.shape[0]):
        starts[c] += starts[c - 1]
    for u in range(labels.shape[0]):
        members[starts[labels[u]]] = u
        starts[labels[u]] += 1
    for c in range(starts.shape[0] - 1, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0


@compiled
def transpose_codes(shuffles, p0, p1, codes):
    """Fill codes[unit, p] from shuffles[p, unit], a few units at a time."""
    for u0 in range(0, shuffles.shape[1], 64):
        for p in range(p0, p1):
            for u in range(u0, min(u0 + 64, shuffles.shape[1])):
                codes[u, p] = shuffles[p, u]


# --- rows of distances ------------------------------------------------------------------------------------


@compiled
def collapse(block, units, sums, peaks, lowest):
    """Distances [R, N] to places become sums, peaks and lowest distances [R, U] to units."""
    sums[:] = 0.0
    peaks[:] = 0.0
    lowest[:] = np.inf
    for r in range(block.shape[0]):
        for place in range(block.shape[1]):
            value, u = block[r, place], units[place]
            sums[r, u] += value
            peaks[r, u] = max(peaks[r, u], value)
            lowest[r, u] = min(lowest[r, u], value)


@compiled
def shortest(lowest, own, barred, unit_groups, units, distances):
    """The nearest units of each row, nearest first: all but its own and those of a barred group; -1 past the last."""
    length = units.shape[1]
    units[:] = -1
    distances[:] = np.inf
    for r in range(lowest.shape[0]):
        for u in range(lowest.shape[1]):
            value = lowest[r, u]
            if value >= distances[r, length - 1] or u == own[r] or unit_groups[u] == barred[r]:
                continue
            t = length - 1
            while t > 0 and distances[r, t - 1] > value:
                units[r, t], distances[r, t] = units[r, t - 1], distances[r, t - 1]
                t -= 1
            units[r, t], distances[r, t] = u, value


@compiled
def farthest_units(peaks, units, distances):
    """The farthest units of each row, farthest first; -1 past the last.

    What lies beyond a threshold is sorted; a threshold that suited the row before is tried first, and found by counting
    into buckets where it does not suit. A list may be shorter than it could be: all that matters is that nothing
    farther is missing from it.
    """
    length, count = units.shape[1], peaks.shape[1]
    buckets = np.empty(BUCKETS, np.int64)
    kept = np.empty(count + 1, np.int64)
    threshold = np.inf
    for r in range(peaks.shape[0]):
        row = peaks[r]
        found = _beyond(row, threshold, kept)
        if found < length - length // 4 or found > 2 * length:
            threshold = _threshold(row, length, buckets)
            found = _beyond(row, threshold, kept)
        order = np.argsort(-row[kept[:found]])
        for t in range(length):
            units[r, t] = kept[order[t]] if t < found else -1
            distances[r, t] = row[kept[order[t]]] if t < found else 0.0


@compiled
def _beyond(row, threshold, kept):
    """Units at least so far away, into `kept`; how many there are."""
    found = 0
    for u in range(row.shape[0]):
        kept[found] = u
        found += row[u] >= threshold
    return found


@compiled
def _threshold(row, length, buckets):
    """A distance that at least `length` units reach, and few more."""
    top = 0.0
    for u in range(row.shape[0]):
        top = row[u] if row[u] > top else top
    scale = (BUCKETS - 1) / top if top > 0.0 else 0.0
    buckets[:] = 0
    for u in range(row.shape[0]):
        buckets[int(row[u] * scale)] += 1
    cut, above = BUCKETS - 1, buckets[BUCKETS - 1]
    while above < length and cut > 0:
        cut -= 1
        above += buckets[cut]
    return cut / scale * (1.0 - 1e-12) if cut > 0 else 0.0


@compiled
def _sum(row, members, start, stop):
    """Sum of row[members[start:stop]]: four chains, so that additions overlap."""
    s0 = s1 = s2 = s3 = 0.0
    whole = start + (stop - start) // 4 * 4
    for t in range(start, whole, 4):
        s0 += row[members[t]]
        s1 += row[members[t + 1]]
        s2 += row[members[t + 2]]
        s3 += row[members[t + 3]]
    for t in range(whole, stop):
        s0 += row[members[t]]
    return (s0 + s1) + (s2 + s3)


@compiled
def _peak(row, members, start, stop):
    p0 = p1 = p2 = p3 = 0.0
    whole = start + (stop - start) // 4 * 4
    for t in range(start, whole, 4):
        p0 = max(p0, row[members[t]])
        p1 = max(p1, row[members[t + 1]])
        p2 = max(p2, row[members[t + 2]])
        p3 = max(p3, row[members[t + 3]])
    for t in range(whole, stop):
        p0 = max(p0, row[members[t]])
    return max(max(p0, p1), max(p2, p3))


@compiled
def _nearest_other(row, code, labels, barred, unit_groups):
    """The slow way, for a query whose whole list of neighbours shares its shuffled class."""
    nearest = np.inf
    for u in range(row.shape[0]):
        if labels[u] != code and unit_groups[u] != barred:
            nearest = min(nearest, row[u])
    return nearest


@compiled
def _matches(codes, p0, mine, units, count, found):
    """How many of the first `count` units share the query's class, for each permutation."""
    found[:] = 0
    for t in range(count):
        row = codes[units[t], p0 : p0 + mine.shape[0]]
        for p in range(mine.shape[0]):
            found[p] += row[p] == mine[p]


@compiled
def _first(codes, p0, mine, units, same, rank):
    """Where in a list of units the first of the same (or of another) class stands, for each permutation.

    NOWHERE if in no place. From the last to the first, so that the first has the last word: comparisons of bytes
    without a branch, 32 at a time.
    """
    last = 0
    while last < units.shape[0] and last < NOWHERE and units[last] >= 0:
        last += 1
    rank[:] = NOWHERE
    for t in range(last - 1, -1, -1):
        row = codes[units[t], p0 : p0 + mine.shape[0]]
        here = np.uint8(t)
        for p in range(mine.shape[0]):
            place = rank[p]
            if (row[p] == mine[p]) == same:
                place = here
            rank[p] = place


@compiled
def _add_lanes(lanes, shuffles, p0, p1, totals):
    """Add distances lanes[unit, LANES] to totals[p, class, LANES] of the unit's class under each permutation."""
    for u0 in range(0, lanes.shape[0], COLUMNS):
        u1 = min(u0 + COLUMNS, lanes.shape[0])
        for p in range(p0, p1):
            labels, total = shuffles[p], totals[p - p0]
            for u in range(u0, u1):
                values, sums = lanes[u], total[labels[u]]
                for q in range(values.shape[0]):
                    sums[q] += values[q]


@compiled
def balance(near, wide, epsilon):
    return ((near - wide) / (near + wide + epsilon) + 1.0) / 2.0


@compiled
def serve_rows(
    p0, p1, own, barred, aside, cells, codes, shuffles, members, starts, sizes, unit_groups,
    hit_units, ks, near_units, near_distances, far_units, far_distances, sums, peaks, lowest, lanes,
    want_balance, want_mean, want_far, want_all, epsilon,
    valid, hits, balanced, gsr, csr_point, near_sum, wide_sum, class_count, inter, contrast, contrast_count,
):  # fmt: skip
    """Add a block of rows to the statistics of permutations p0..p1.

    Per row: own, its unit; barred, the group left out for it (-1: none); aside, how many clips of its class are left
    out with it, itself among them, or 0 where cells [R, C] counts those of each class (a group that is shuffled
    inside). hit_units [R, K]: the units of its neighbours; near_units, near_distances [R, T]: where its nearest of
    another class is looked for; far_units, far_distances [R, L]: where its farthest of the same class is looked for
    before its class is gathered. sums, peaks, lowest [R, U]: distances to units, 0 to what is left out; lanes
    [R / LANES, U, LANES]: the sums again, for want_all. starts and sizes have a row for every permutation, or one
    for all. Outputs are per permutation: valid, hits [P, len(ks)]; near_sum, wide_sum, class_count [P, C]
    (want_far); inter [P, C, C] and contrast [P] (want_all).
    """
    classes, span = starts.shape[1] - 1, p1 - p0
    varied = starts.shape[0] > 1
    mine = np.empty((LANES, span), codes.dtype)
    partners = np.empty((LANES, span))
    nearest = np.empty((LANES, span))
    found, rank = np.empty(span, np.int32), np.empty(span, np.uint8)
    far_rank = np.empty(span, np.uint8)
    chunk = max(1, min(span, CHUNK // (classes * LANES * 8))) if want_all else 0
    totals = np.empty((chunk, classes, LANES))
    for r0 in range(0, own.shape[0], LANES):
        height = min(LANES, own.shape[0] - r0)
        for q in range(height):
            r = r0 + q
            mine[q] = codes[own[r], p0:p1]
            for p in range(span):
                code = mine[q, p]
                left_out = aside[r] if aside[r] > 0 else cells[r, code]
                partners[q, p] = sizes[p0 + p if varied else 0, code] - left_out
            for t in range(ks.shape[0]):
                if hit_units[r, ks[t] - 1] < 0:
                    continue  # its group leaves it fewer than k candidates
                _matches(codes, p0, mine[q], hit_units[r], ks[t], found)
                for p in range(span):
                    if partners[q, p] > 0:
                        valid[p0 + p, t] += 1
                        hits[p0 + p, t] += found[p]
            if not want_balance:
                continue
            _first(codes, p0, mine[q], near_units[r], False, rank)
            if want_far:
                _first(codes, p0, mine[q], far_units[r], True, far_rank)
            for p in range(span):
                if partners[q, p] <= 0:
                    continue
                if rank[p] < NOWHERE:
                    nearest[q, p] = near_distances[r, rank[p]]
                else:
                    nearest[q, p] = _nearest_other(lowest[r], mine[q, p], shuffles[p0 + p], barred[r], unit_groups)
                if want_far:
                    first = starts[p0 + p if varied else 0]
                    code = mine[q, p]
                    if far_rank[p] < NOWHERE:
                        farthest = far_distances[r, far_rank[p]]
                    else:
                        farthest = _peak(peaks[r], members[p0 + p], first[code], first[code + 1])
                    if nearest[q, p] < np.inf:
                        csr_point[p0 + p] += balance(nearest[q, p], farthest, epsilon)
                        near_sum[p0 + p, code] += nearest[q, p]
                        wide_sum[p0 + p, code] += farthest
                        class_count[p0 + p, code] += 1.0
                if want_mean and not want_all and nearest[q, p] < np.inf:
                    first = starts[p0 + p if varied else 0]
                    code = mine[q, p]
                    total = _sum(sums[r], members[p0 + p], first[code], first[code + 1])
                    balanced[p0 + p] += 1
                    gsr[p0 + p] += balance(nearest[q, p], total / partners[q, p], epsilon)
        if not want_all:
            continue
        for s0 in range(0, span, chunk):
            s1 = min(s0 + chunk, span)
            totals[:] = 0.0
            _add_lanes(lanes[r0 // LANES], shuffles, p0 + s0, p0 + s1, totals)
            for p in range(s0, s1):
                total = totals[p - s0]
                size = sizes[p0 + p if varied else 0]
                for q in range(height):
                    r = r0 + q
                    if partners[q, p] <= 0:
                        continue
                    code = mine[q, p]
                    row = inter[p0 + p, code]
                    lowest_mean = np.inf
                    for c in range(classes):
                        row[c] += total[c, q]
                        count = size[c] - (0 if aside[r] > 0 else cells[r, c])
                        if c != code and count > 0:
                            lowest_mean = min(lowest_mean, total[c, q] / count)
                    mean = total[code, q] / partners[q, p]
                    if lowest_mean < np.inf:
                        largest = max(mean, lowest_mean)
                        contrast_count[p0 + p] += 1
                        contrast[p0 + p] += (lowest_mean - mean) / largest if largest > 0 else 0.0
                    if want_mean and nearest[q, p] < np.inf:
                        balanced[p0 + p] += 1
                        gsr[p0 + p] += balance(nearest[q, p], mean, epsilon)


# --- closed forms -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(a, b):
    total = 0.0
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return total


@compiled
def class_totals(labels, points, squares, flat, sums, total_squares, flats):
    """Per class of each of B labellings [B, N]: summed points [B, C, D], squared norms and points without direction."""
    sums[:] = 0.0
    total_squares[:] = 0.0
    flats[:] = 0.0
    for place in range(points.shape[0]):
        point = points[place]
        for b in range(labels.shape[0]):
            c = labels[b, place]
            if flat[place]:
                flats[b, c] += 1.0
                continue
            total_squares[b, c] += squares[place]
            total = sums[b, c]
            for d in range(point.shape[0]):
                total[d] += point[d]


@compiled
def own_means(labels, sizes, points, squares, flat, sums, total_squares, flats, own):
    """The mean distance of every place to its class, one labelling [N]; NaN for a class of one."""
    for place in range(labels.shape[0]):
        c = labels[place]
        if sizes[c] < 2.0:
            own[place] = np.nan
        elif flat[place]:
            own[place] = 1.0
        else:
            inner = 0.5 * ((sizes[c] - flats[c]) * squares[place] + total_squares[c]) + flats[c]
            own[place] = max(inner - _dot(points[place], sums[c]), 0.0) / (sizes[c] - 1.0)


@compiled
def lowest_means(keys, margins, first, labels, sizes, points, squares, flat, sums, total_squares, flats, lowest):
    """The lowest mean distance of the places first.. to another class than their own; inf where there is none.

    keys [C, rows], float32: mean distances to every class, each within half of margins[place] of the truth. They only
    propose: every class that could be the nearest is measured in float64.
    """
    rows = keys.shape[1]
    best, second = np.full(rows, np.inf, np.float32), np.full(rows, np.inf, np.float32)
    nearest = np.zeros(rows, np.int32)
    for r in range(rows):
        keys[labels[first + r], r] = np.inf
    for c in range(keys.shape[0]):
        if sizes[c] == 0.0:
            continue
        row, here = keys[c], np.int32(c)
        for r in range(rows):
            key, low = row[r], best[r]
            worse = key if key > low else low
            second[r] = worse if worse < second[r] else second[r]
            nearest[r] = here if key < low else nearest[r]
            best[r] = key if key < low else low
    for r in range(rows):
        place = first + r
        if best[r] == np.inf or flat[place]:
            lowest[place] = 1.0 if best[r] < np.inf else np.inf
            continue
        limit = best[r] + margins[place]
        value = np.inf
        for c in range(nearest[r], nearest[r] + 1) if second[r] > limit else range(keys.shape[0]):
            if sizes[c] > 0.0 and keys[c, r] <= limit:
                inner = 0.5 * ((sizes[c] - flats[c]) * squares[place] + total_squares[c]) + flats[c]
                value = min(value, max(inner - _dot(points[place], sums[c]), 0.0) / sizes[c])
        lowest[place] = value


@compiled
def mean_contrast(own, lowest):
    """The mean over places that have both means; NaN without any."""
    total, count = 0.0, 0
    for place in range(own.shape[0]):
        a, b = own[place], lowest[place]
        if a >= 0.0 and b < np.inf:
            largest = max(a, b)
            total += (b - a) / largest if largest > 0.0 else 0.0
            count += 1
    return total / count if count else np.nan


@compiled
def judge_neighbours(labels, sizes, near_places, near_distances, ks, own, raw, flat, epsilon, hits):
    """hits per k of one labelling [N]; the number of queries with a partner and their summed GSR (own [N])."""
    valid = 0
    gsr = 0.0
    for me in range(near_places.shape[0]):
        code = labels[me]
        if sizes[code] < 2.0:
            continue
        valid += 1
        for q in range(ks.shape[0]):
            for t in range(ks[q]):
                hits[q] += labels[near_places[me, t]] == code
        if own.shape[0] == 0:
            continue
        nearest = np.inf
        for t in range(near_places.shape[1]):
            if labels[near_places[me, t]] != code:
                nearest = near_distances[me, t]
                break
        if nearest == np.inf:
            for place in range(labels.shape[0]):
                if labels[place] != code:
                    nearest = min(nearest, distance(raw, flat, me, place, HALF, 1.0))
        gsr += balance(nearest, own[me], epsilon)
    return valid, gsr
