"""What sets of labels share: they lie one after the other in `members`, set s from starts[s] to starts[s + 1]."""

from __future__ import annotations

from earmark.geometry.pair_kernels import compiled


@compiled
def count_shared(first, second, starts, members, shared):
    """How many labels the sets of each pair share; -1 stands for no set. Labels of a set rise."""
    for p in range(first.shape[0]):
        shared[p] = 0
        if first[p] < 0 or second[p] < 0:
            continue
        a, b = starts[first[p]], starts[second[p]]
        last_a, last_b = starts[first[p] + 1], starts[second[p] + 1]
        while a < last_a and b < last_b:
            if members[a] == members[b]:
                shared[p] += 1
                a += 1
                b += 1
            elif members[a] < members[b]:
                a += 1
            else:
                b += 1


@compiled
def find_labels(codes, labels, starts, members, held):
    """Whether each set has a label; -1 stands for no set."""
    for p in range(codes.shape[0]):
        held[p] = False
        if codes[p] >= 0:
            for t in range(starts[codes[p]], starts[codes[p] + 1]):
                held[p] |= members[t] == labels[p]
