"""Compiled kernels of the jackknife: what each metric becomes when one unit is left out, without a second sweep.

A unit is a clip, or a whole group. Leaving it out takes its points away as queries and as candidates:

    neighbours      the next ones move up                        lists a little deeper than k
    nearest other   the nearest of another unit takes its place  found by the sweep
    farthest own    likewise                                     found here, in the own class
    class sums      lose the distances to the unit's points      found here, in the own class and in those that
                                                                 could become the nearest class

Every kernel adds *changes*: totals[u] is what leaving out u adds to the metric's sum, counts[u] to its number of terms.
A term that cannot be measured any more (no partner left) is taken away with its count.
"""

from __future__ import annotations

import numpy as np

from earmark.calibrate.kernels import balance
from earmark.geometry.kernels import compiled

ROUNDING = 1e-12  # what is left of a sum below this share of it is rounding


@compiled
def _contrast(own, other):
    largest = max(own, other)
    return (other - own) / largest if largest > 0.0 else 0.0


@compiled
def _rest(total, part):
    """A sum of distances without some of them; 0 where only rounding is left, for then the points coincide."""
    left = total - part
    return left if left > ROUNDING * total else 0.0


@compiled
def _farther(far, unit, second, value, its_unit):
    """The farthest value with its unit, and the farthest of any other unit, after one more (NaN: none yet)."""
    if not far >= value:
        if its_unit != unit:
            second = far
        return value, its_unit, second
    if its_unit != unit and not second >= value:
        second = value
    return far, unit, second


@compiled
def farthest_of_two_units(block, rows, c0, codes, starts, units, across, far, far_unit, second_far):
    """Take the distances `block` of `rows` to the places from c0 on into their two farthest of the own class."""
    c1 = c0 + block.shape[1]
    for r in range(rows.shape[0]):
        me = rows[r]
        for place in range(max(c0, starts[codes[me]]), min(c1, starts[codes[me] + 1])):
            if place == me or (across and units[place] == units[me]):
                continue
            far[me], far_unit[me], second_far[me] = _farther(
                far[me], far_unit[me], second_far[me], block[r, place - c0], units[place]
            )


@compiled
def leave_out_clips(
    block, rows, c0, codes, starts, near, own_sum, class_sums, lowest, second_lowest, lowest_class, needed, epsilon,
    want_gsr, want_contrast, gsr, gsr_count, contrast, contrast_count,
):  # fmt: skip
    """Changes of GSR and contrast when a place from c0 on is left out of the classes of `rows`.

    class_sums, needed: [rows, C], summed distances to every class, and the classes that could be or become the nearest
    other class of a row (want_contrast).
    """
    c1 = c0 + block.shape[1]
    for r in range(rows.shape[0]):
        me = rows[r]
        mine = codes[me]
        row = block[r]
        partners = starts[mine + 1] - starts[mine] - 1
        own = own_sum[me] / partners if partners > 0 else np.nan
        place = c0
        while place < c1:
            code = codes[place]
            stop = min(starts[code + 1], c1)
            if code == mine and partners > 0:
                has_gsr = want_gsr and np.isfinite(near[me])
                has_contrast = want_contrast and np.isfinite(lowest[me])
                before = balance(near[me], own, epsilon) if has_gsr else 0.0
                width = _contrast(own, lowest[me]) if has_contrast else 0.0
                for u in range(place, stop):
                    if u == me:
                        continue
                    if partners == 1:
                        if has_gsr:
                            gsr[u] -= before
                            gsr_count[u] -= 1.0
                        if has_contrast:
                            contrast[u] -= width
                            contrast_count[u] -= 1.0
                        continue
                    left = _rest(own_sum[me], row[u - c0]) / (partners - 1)
                    if has_gsr:
                        gsr[u] += balance(near[me], left, epsilon) - before
                    if has_contrast:
                        contrast[u] += _contrast(left, lowest[me]) - width
            elif want_contrast and code != mine and needed[r, code] and partners > 0 and np.isfinite(lowest[me]):
                size = starts[code + 1] - starts[code]
                other = second_lowest[me] if code == lowest_class[me] else lowest[me]
                width = _contrast(own, lowest[me])
                for u in range(place, stop):
                    left = other
                    if size > 1:
                        left = min(other, _rest(class_sums[r, code], row[u - c0]) / (size - 1))
                    if left < np.inf:
                        contrast[u] += _contrast(own, left) - width
                    else:
                        contrast[u] -= width
                        contrast_count[u] -= 1.0
            place = stop


@compiled
def add_cell_sums(block, c0, cells, sums):
    """sums[r, cell] += the distances of row r to the points of a cell (a class and a unit) from c0 on."""
    for r in range(block.shape[0]):
        for j in range(block.shape[1]):
            sums[r, cells[c0 + j]] += block[r, j]


@compiled
def leave_out_groups(
    cell_sums, rows, codes, units, cell_starts, cell_units, cell_counts, across, near, near_unit, second_near,
    class_sums, needed, epsilon, want_gsr, want_contrast, gsr, gsr_count, contrast, contrast_count,
):  # fmt: skip
    """Changes of GSR and contrast when a group is left out, from the sums of each row over the cells.

    cell_starts: [C + 1], the cells of each class; class_sums: [rows, C], under the protocol; needed as above.
    """
    size = gsr.shape[0]
    own_left, own_sum, lows, values = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for r in range(rows.shape[0]):
        me = rows[r]
        mine, unit = codes[me], units[me]
        partners = -1.0  # itself
        total = 0.0
        for cell in range(cell_starts[mine], cell_starts[mine + 1]):
            if across and cell_units[cell] == unit:
                partners += 1.0
                continue
            partners += cell_counts[cell]
            total += cell_sums[r, cell]
        if partners <= 0.0:
            continue
        own_left[:], own_sum[:] = partners, total
        for cell in range(cell_starts[mine], cell_starts[mine + 1]):
            own_left[cell_units[cell]] -= cell_counts[cell]
            if not (across and cell_units[cell] == unit):
                own_sum[cell_units[cell]] = _rest(total, cell_sums[r, cell])
        own = total / partners
        if want_gsr and np.isfinite(near[me]):
            before = balance(near[me], own, epsilon)
            for u in range(size):
                nearest = second_near[me] if near_unit[me] == u else near[me]
                if u == unit or own_left[u] <= 0.0 or not np.isfinite(nearest):
                    gsr[u] -= before
                    gsr_count[u] -= 1.0
                elif own_left[u] < partners or near_unit[me] == u:
                    gsr[u] += balance(nearest, own_sum[u] / own_left[u], epsilon) - before
        if not want_contrast:
            continue
        lowest = np.inf
        lows[:] = np.inf
        for code in range(cell_starts.shape[0] - 1):
            if code == mine or not needed[r, code]:
                continue
            count = 0.0
            for cell in range(cell_starts[code], cell_starts[code + 1]):
                if not (across and cell_units[cell] == unit):
                    count += cell_counts[cell]
            if count <= 0.0:
                continue
            mean = class_sums[r, code] / count
            lowest = min(lowest, mean)
            values[:] = mean
            for cell in range(cell_starts[code], cell_starts[code + 1]):
                u = cell_units[cell]
                if u != unit:
                    left = count - cell_counts[cell]
                    values[u] = _rest(class_sums[r, code], cell_sums[r, cell]) / left if left > 0.0 else np.inf
            for u in range(size):
                lows[u] = min(lows[u], values[u])
        if lowest == np.inf:
            continue
        width = _contrast(own, lowest)
        for u in range(size):
            if u == unit or own_left[u] <= 0.0 or lows[u] == np.inf:
                contrast[u] -= width
                contrast_count[u] -= 1.0
            else:
                contrast[u] += _contrast(own_sum[u] / own_left[u], lows[u]) - width


@compiled
def leave_out_of_lists(places, rows, worth, units, answerable, sole, k, hits, counts, unresolved):
    """Changes of the summed worth of the first k neighbours of `rows` when a unit is left out of their lists.

    places: [rows, K], K > k, -1 past the last candidate. worth: [rows, K], what each neighbour counts.
    sole: the unit that holds all partners of a place, or -1.
    unresolved: the unit without which a list is too short to tell, or -1.
    """
    depth = places.shape[1]
    for r in range(places.shape[0]):
        me = rows[r]
        unresolved[r] = -1
        if not answerable[me] or places[r, k - 1] < 0:
            continue
        found = 0.0
        for t in range(k):
            found += worth[r, t]
        hits[units[me]] -= found
        counts[units[me]] -= 1.0
        if sole[me] >= 0:
            hits[sole[me]] -= found
            counts[sole[me]] -= 1.0
        for t in range(k):
            u = units[places[r, t]]
            seen = u == units[me] or u == sole[me]
            for s in range(t):
                seen |= units[places[r, s]] == u
            if seen:
                continue
            left = 0.0
            taken = s = 0
            while s < depth and places[r, s] >= 0 and taken < k:
                if units[places[r, s]] != u:
                    taken += 1
                    left += worth[r, s]
                s += 1
            if taken == k:
                hits[u] += left - found
            elif s < depth:
                hits[u] -= found  # there are no more candidates
                counts[u] -= 1.0
            else:
                unresolved[r] = u


@compiled
def leave_out_pairs(
    first, last, unit_starts, unit_members, codes, class_sums, shared_sums, pair_sums, pair_counts, sizes, own_counts,
    across, rounding, overlap, confused, pairs, overlap_terms, confused_terms, pair_terms, changed, sums, shared,
):  # fmt: skip
    """CS and CSCF without each of the units first..last: `overlap`, `confused` and `pairs` are their sums of terms.

    pair_sums, pair_counts: [C, C], of all points; overlap_terms, confused_terms and pair_terms: [C, C], what each
    ordered pair of classes contributes now. own_counts: [C] scratch; sums, shared: [C, C] scratch.
    """
    classes = sizes.shape[0]
    for u in range(first, last):
        touched = 0
        for t in range(unit_starts[u], unit_starts[u + 1]):
            code = codes[unit_members[t]]
            if own_counts[code] == 0.0:
                changed[touched] = code
                touched += 1
                sums[code] = 0.0
                shared[code] = 0.0
            own_counts[code] += 1.0
            sums[code] += class_sums[unit_members[t]]
            if shared_sums.shape[0] > 0 and not across:
                shared[code] += shared_sums[unit_members[t]]
        for i in range(touched):
            a = changed[i]
            for b in range(classes):
                if b != a:
                    _replace_pair(
                        u, a, b, classes, own_counts, sums, shared, pair_sums, pair_counts, sizes, across, rounding,
                        overlap, confused, pairs, overlap_terms, confused_terms, pair_terms,
                    )  # fmt: skip
                    if own_counts[b] == 0.0:
                        _replace_pair(
                            u, b, a, classes, own_counts, sums, shared, pair_sums, pair_counts, sizes, across,
                            rounding, overlap, confused, pairs, overlap_terms, confused_terms, pair_terms,
                        )  # fmt: skip
        for i in range(touched):
            own_counts[changed[i]] = 0.0


@compiled
def _mean_without(a, b, own_counts, sums, shared, pair_sums, pair_counts, sizes, across):
    """The mean distance of classes a and b without the unit in hand; -1 where no pair is left."""
    total, count = pair_sums[a, b], pair_counts[a, b]
    left_a, left_b = sizes[a] - own_counts[a], sizes[b] - own_counts[b]
    if own_counts[a] > 0.0:
        total -= sums[a, b]
        count -= own_counts[a] * left_b if across else 0.0
    if own_counts[b] > 0.0:
        total -= sums[b, a]
        count -= own_counts[b] * left_a if across else 0.0
    if not across:
        if own_counts[a] > 0.0 and own_counts[b] > 0.0:
            total += shared[a, b]
        count = left_a * (left_b - 1.0) if a == b else left_a * left_b
    return _rest(pair_sums[a, b], pair_sums[a, b] - total) / count if count > 0.5 else -1.0


@compiled
def _replace_pair(
    u, a, b, classes, own_counts, sums, shared, pair_sums, pair_counts, sizes, across, rounding,
    overlap, confused, pairs, overlap_terms, confused_terms, pair_terms,
):  # fmt: skip
    overlap[u] -= overlap_terms[a, b]
    confused[u] -= confused_terms[a, b]
    pairs[u] -= pair_terms[a, b]
    intra = _mean_without(a, a, own_counts, sums, shared, pair_sums, pair_counts, sizes, across)
    inter = _mean_without(a, b, own_counts, sums, shared, pair_sums, pair_counts, sizes, across)
    if intra >= 0.0 and inter >= 0.0:
        pairs[u] += 1.0
        overlap[u] += intra / (intra + inter) if intra + inter > 0.0 else 0.5
        confused[u] += 1.0 if inter < intra * (1.0 - rounding) else 0.0


@compiled
def occurrence_events(places, rows, k, units, next_units, next_places, next_steps, unresolved):
    """List, for each of `rows`, which k-occurrences fall or rise by one when a unit is left out: [rows, 2 k] each.

    A query that goes takes its k neighbours' counts along; where a neighbour goes, the next in the list gains one.
    unresolved as in `leave_out_of_lists`; such a list gives no rises here.
    """
    depth = places.shape[1]
    for r in range(rows.shape[0]):
        me = rows[r]
        filled = 0
        unresolved[r] = -1
        for t in range(k):
            if places[me, t] >= 0:
                next_units[r, filled], next_places[r, filled], next_steps[r, filled] = units[me], places[me, t], -1
                filled += 1
        for t in range(k):
            if places[me, t] < 0:
                break
            u = units[places[me, t]]
            seen = u == units[me]
            for s in range(t):
                seen |= units[places[me, s]] == u
            if seen:
                continue
            lost = 0
            for s in range(t, k):
                lost += places[me, s] >= 0 and units[places[me, s]] == u
            s = k
            start = filled
            while s < depth and places[me, s] >= 0 and lost > 0:
                if units[places[me, s]] != u:
                    next_units[r, filled], next_places[r, filled], next_steps[r, filled] = u, places[me, s], 1
                    filled += 1
                    lost -= 1
                s += 1
            if lost > 0 and s == depth:
                next_units[r, start:filled] = -1
                filled = start
                unresolved[r] = u


@compiled
def leave_out_occurrences(
    unit_starts, unit_members, occurrences, event_starts, event_places, event_steps, histogram, top_share, k,
    ratio, antihubs, skew, hood,
):  # fmt: skip
    """The measures of hubness without each unit, from the changes of k-occurrences that leaving it out brings.

    histogram: zeros, longer than any k-occurrence can become.
    """
    n = occurrences.shape[0]
    counts = occurrences.copy()
    for i in range(n):
        histogram[occurrences[i]] += 1
    for u in range(unit_starts.shape[0] - 1):
        for e in range(event_starts[u], event_starts[u + 1]):
            place = event_places[e]
            histogram[counts[place]] -= 1
            counts[place] += event_steps[e]
            histogram[counts[place]] += 1
        for t in range(unit_starts[u], unit_starts[u + 1]):
            histogram[counts[unit_members[t]]] -= 1
        left = n - (unit_starts[u + 1] - unit_starts[u])
        total = 0.0
        highest = 0
        for value in range(histogram.shape[0]):
            total += value * histogram[value]
            if histogram[value] > 0:
                highest = value
        if left > k and total > 0.0:
            mean = total / left
            second = third = spread = 0.0
            for value in range(highest + 1):
                gap = value - mean
                second += histogram[value] * gap * gap
                third += histogram[value] * gap * gap * gap
                spread += histogram[value] * abs(gap)
            second, third = second / left, third / left
            skew[u] = third / second**1.5 if second > 0.0 else 0.0
            antihubs[u] = histogram[0] / left
            hood[u] = 0.5 * spread / total
            top = int(np.ceil(top_share * left))
            taken, summed, value = 0, 0.0, highest
            while taken < top and value >= 0:
                take = min(top - taken, histogram[value])
                taken, summed, value = taken + take, summed + take * value, value - 1
            ratio[u] = summed / top / k
        for t in range(unit_starts[u], unit_starts[u + 1]):
            histogram[counts[unit_members[t]]] += 1
        for e in range(event_starts[u], event_starts[u + 1]):
            place = event_places[e]
            histogram[counts[place]] -= 1
            counts[place] -= event_steps[e]
            histogram[counts[place]] += 1


@compiled
def leave_out_seen(unit_starts, unit_members, seen, event_starts, event_places, event_steps, first, second, third):
    """Sums of seen, seen (seen - 1) and seen (seen - 1) (seen - 2) over the points left without each unit.

    seen: in how many lists each place is; events as in `leave_out_occurrences`.
    """
    counts = seen.copy()
    one, two, three = 0, 0, 0
    for count in seen:
        one += count
        two += count * (count - 1)
        three += count * (count - 1) * (count - 2)
    for u in range(unit_starts.shape[0] - 1):
        a, b, c = one, two, three
        for e in range(event_starts[u], event_starts[u + 1]):
            before = counts[event_places[e]]
            after = before + event_steps[e]
            counts[event_places[e]] = after
            a += after - before
            b += after * (after - 1) - before * (before - 1)
            c += after * (after - 1) * (after - 2) - before * (before - 1) * (before - 2)
        for t in range(unit_starts[u], unit_starts[u + 1]):
            count = counts[unit_members[t]]
            a -= count
            b -= count * (count - 1)
            c -= count * (count - 1) * (count - 2)
        first[u], second[u], third[u] = a, b, c
        for e in range(event_starts[u], event_starts[u + 1]):
            counts[event_places[e]] -= event_steps[e]


@compiled
def leave_out_rows(
    codes, sums, held, sizes, intra, lines, inter, pooled, pairs, own_pooled, own_pairs, sampled, rounding,
    overlap, confused, measured,
):  # fmt: skip
    """What leaving out each of some rows changes in the summed terms of CS and CSCF and in their number: [rows, 2].

    Column 0: the clip goes, as a query and as a candidate, from all pairs of classes; column 1 (`sampled`): the row
    goes, from those that mean distances were estimated by. codes: class of each row; sums: [rows, C], its distances to
    every class; held: [rows, C], clips of each class that are no candidates of it, or [0, C]; intra: [C], mean
    distances inside classes (NaN: no pair); inter, pooled, pairs: [A, C], of the classes of these rows (lines: which),
    mean distances to all classes, pairs they were estimated by, and pairs there are; own_pooled, own_pairs: [A].
    """
    classes = intra.shape[0]
    for r in range(codes.shape[0]):
        a, line = codes[r], lines[r]
        for way in range(2 if sampled else 1):
            held_own = held[r, a] if held.shape[0] > 0 else 1.0
            partners = sizes[a] - held_own
            base = own_pairs[line] if way == 0 else own_pooled[line]
            times = 2.0 if way == 0 else 1.0
            own = np.nan
            if base - times * partners > 0.5 and intra[a] >= 0.0:
                own = _rest(base * intra[a], times * sums[r, a]) / (base - times * partners)
            for b in range(classes):
                if b == a:
                    continue
                before = inter[line, b]
                candidates = sizes[b] - (held[r, b] if held.shape[0] > 0 else 0.0)
                base = pairs[line, b] if way == 0 else pooled[line, b]
                after = np.nan
                if before >= 0.0 and base - candidates > 0.5:
                    after = _rest(base * before, sums[r, b]) / (base - candidates)
                for side in range(2):
                    was, now = (intra[a], own) if side == 0 else (intra[b], intra[b])
                    if was >= 0.0 and before >= 0.0:
                        measured[r, way] -= 1.0
                        overlap[r, way] -= was / (was + before) if was + before > 0.0 else 0.5
                        confused[r, way] -= 1.0 if before < was * (1.0 - rounding) else 0.0
                    if now >= 0.0 and after >= 0.0:
                        measured[r, way] += 1.0
                        overlap[r, way] += now / (now + after) if now + after > 0.0 else 0.5
                        confused[r, way] += 1.0 if after < now * (1.0 - rounding) else 0.0
