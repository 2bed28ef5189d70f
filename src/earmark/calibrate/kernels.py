"""Compiled kernels of the permutation null: the N x N work is never repeated for a permutation.

`serve_rows`, for any distance and protocol: while a row of distances is in cache, it serves every permutation.

      members[p]      a shuffle of the places; the class in slot t of the sorted layout falls to members[p, t],
                      so the places of class c under p are members[p, starts[c]:starts[c + 1]]: no sorting
      codes[place, p] the class of a place under p, permutations side by side

      row i of distances  --(gather members of i's class under p)-->  sum, farthest    for each p
      neighbours of i     --(walk until the class under p differs)-->  nearest other   for each p

`score_shuffle`, where the distance has a closed form (cosine, spearman) and the vectors are not too long: one
permutation at a time, a class at a time. The class's points are summed while they are in cache, and each point's
summed distance to its class is then one dot product: N x D work instead of N x (class size) gathers.

A permutation belongs to one worker, which meets the rows in order: sums do not depend on the threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from earmark.geometry.kernels import compiled, distance


@compiled
def transpose_codes(members, sorted_codes, p0, p1, codes):
    """Fill codes[place, p] from members[p, slot] and the class of each slot."""
    for p in range(p0, p1):
        for t in range(members.shape[1]):
            codes[members[p, t], p] = sorted_codes[t]


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
    peak = 0.0
    for t in range(start, stop):
        peak = max(peak, row[members[t]])
    return peak


@compiled
def _nearest_other(row, me, code, p, members, starts, groups, across):
    """The slow way, for a query whose whole neighbour list shares its shuffled class."""
    nearest = np.inf
    for t in range(members.shape[1]):
        if starts[code] <= t < starts[code + 1]:
            continue
        place = members[p, t]
        if not (across and groups[place] == groups[me]):
            nearest = min(nearest, row[place])
    return nearest


@compiled
def serve_rows(
    block, rows, p0, p1, codes, members, starts, near_places, near_distances, groups, group_starts,
    group_members, across, ks, want_balance, want_far, want_all, epsilon,
    valid, hits, balanced, gsr, csr_point, near_sum, wide_sum, class_count, inter, inter_count,
    silhouette, silhouette_count,
):  # fmt: skip
    """Add the rows of `block` to the statistics of permutations p0..p1.

    block: [rows, N] distances, 0 for the row itself and (across groups) for its group; [rows, 0] when only
    P@k is wanted. valid, hits: [P, len(ks)]; near_sum, wide_sum, class_count: [P, C] (want_far); inter and
    inter_count [P, C, C] and silhouette [P] (want_all).
    """
    classes = starts.shape[0] - 1
    left_out = np.zeros(p1 - p0, np.int64)
    shared = np.zeros(classes, np.int64)
    for r in range(rows.shape[0]):
        me = rows[r]
        left_out[:] = 1
        if across:
            left_out[:] = 0
            for t in range(group_starts[groups[me]], group_starts[groups[me] + 1]):
                place = group_members[t]
                for p in range(p0, p1):
                    left_out[p - p0] += codes[place, p] == codes[me, p]
        for p in range(p0, p1):
            code = codes[me, p]
            partners = starts[code + 1] - starts[code] - left_out[p - p0]
            if partners <= 0:
                continue
            for q in range(ks.shape[0]):
                if near_places[me, ks[q] - 1] < 0:
                    continue  # its group leaves it fewer than k candidates
                valid[p, q] += 1
                found = 0
                for t in range(ks[q]):
                    place = near_places[me, t]
                    found += codes[place, p] == code
                hits[p, q] += found
            if not want_balance:
                continue
            nearest = np.inf
            settled = False
            for t in range(near_places.shape[1]):
                place = near_places[me, t]
                if place < 0:
                    break
                if codes[place, p] != code:
                    nearest = near_distances[me, t]
                    settled = True
                    break
            if not settled:
                nearest = _nearest_other(block[r], me, code, p, members, starts, groups, across)
            if want_all:
                if across:
                    shared[:] = 0
                    for t in range(group_starts[groups[me]], group_starts[groups[me] + 1]):
                        shared[codes[group_members[t], p]] += 1
                else:
                    shared[code] = 1
                lowest = np.inf
                own = 0.0
                for c in range(classes):
                    total = _sum(block[r], members[p], starts[c], starts[c + 1])
                    count = starts[c + 1] - starts[c] - shared[c]
                    inter[p, code, c] += total
                    inter_count[p, code, c] += count
                    if c == code:
                        own = total / partners
                    elif count > 0:
                        lowest = min(lowest, total / count)
                if not across:
                    shared[code] = 0
                largest = max(own, lowest)
                if lowest < np.inf:
                    silhouette_count[p] += 1
                    silhouette[p] += (lowest - own) / largest if largest > 0 else 0.0
            else:
                own = _sum(block[r], members[p], starts[code], starts[code + 1]) / partners
            if nearest < np.inf:
                balanced[p] += 1
                gsr[p] += ((nearest - own) / (nearest + own + epsilon) + 1.0) / 2.0
                if want_far:
                    farthest = _peak(block[r], members[p], starts[code], starts[code + 1])
                    csr_point[p] += ((nearest - farthest) / (nearest + farthest + epsilon) + 1.0) / 2.0
                    near_sum[p, code] += nearest
                    wide_sum[p, code] += farthest
                    class_count[p, code] += 1.0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(a, b):
    total = 0.0
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return total


@compiled
def score_shuffle(
    members, starts, points, squares, flat, raw, near_places, near_distances, ks, epsilon,
    codes, own, sums, total_squares, flats, hits,
):  # fmt: skip
    """One permutation of a halved space under protocol "all".

    Fills codes and own (mean distance to the shuffled class) per place, the class totals sums [C, D],
    total_squares, flats, and hits per k; returns the number of queries with a partner and their summed GSR.
    """
    classes = starts.shape[0] - 1
    for c in range(classes):
        start, stop = starts[c], starts[c + 1]
        total = sums[c]
        total[:] = 0.0
        norm = 0.0
        missing = 0.0
        for t in range(start, stop):
            place = members[t]
            codes[place] = c
            if flat[place]:
                missing += 1.0
            else:
                norm += squares[place]
                total += points[place]
        total_squares[c], flats[c] = norm, missing
        size = float(stop - start)
        for t in range(start, stop):
            place = members[t]
            if size < 2.0:
                own[place] = np.nan
            elif flat[place]:
                own[place] = 1.0
            else:
                inner = 0.5 * ((size - missing) * squares[place] + norm) - _dot(points[place], total) + missing
                own[place] = max(inner, 0.0) / (size - 1.0)
    valid = 0
    gsr = 0.0
    for me in range(near_places.shape[0]):
        code = codes[me]
        if starts[code + 1] - starts[code] < 2:
            continue
        valid += 1
        for q in range(ks.shape[0]):
            for t in range(ks[q]):
                hits[q] += codes[near_places[me, t]] == code
        nearest = np.inf
        for t in range(near_places.shape[1]):
            if codes[near_places[me, t]] != code:
                nearest = near_distances[me, t]
                break
        if nearest == np.inf:
            for place in range(codes.shape[0]):
                if codes[place] != code:
                    nearest = min(nearest, distance(raw, flat, me, place, True, 1.0))
        gsr += ((nearest - own[me]) / (nearest + own[me] + epsilon) + 1.0) / 2.0
    return valid, gsr
