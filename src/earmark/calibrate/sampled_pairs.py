"""CS and CSCF where not every clip asks: their values, and what they would be without each clip.

Mean distances between classes are exact where there is a closed form (class_means.py), else estimated: intra(a) from
the queries of class a, inter(a, b) from those of a and of b together. Two things make a value err:

    the clips      leaving out a clip, as query and as candidate, changes the means of its class; each query stands for
                   as many clips of its class as there are to a query
    the queries    leaving out a query changes the estimates; counted class by class and less the share of the class
                   that was asked, because queries are drawn without replacement

The mean change of the second kind is the bias of estimated means in a ratio, and is taken off the value. Both changes
of a query go into one number, the root of the sum of their squares, so that the spread of all N numbers is the error of
the value, and the difference of two systems has the spread of the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import deletion_kernels as kernels
from earmark.calibrate.sample import Sample
from earmark.geometry.class_means import ClassMeans
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import ROWS, Swept, closed_form_sums, summed_operand
from earmark.metrics import separation
from earmark.workers import Workers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 256  # classes at a time


@dataclass(frozen=True)
class SampledShare:
    """CS or CSCF of a sample: the value, its pairs of classes, and its values without each clip (None: not known)."""

    value: float
    pairs: int
    without: Floats | None


@dataclass(frozen=True)
class _Means:
    """Mean distances of classes: `intra` [C]; `rows(codes)` gives inter, and the pairs behind it and in all, [A, C]."""

    intra: Floats
    rows: Callable[[Ints], tuple[Floats, Floats, Floats]]
    own_pooled: Floats
    own_pairs: Floats
    sums: Callable[[Ints], Floats]  # of some places, to every class
    held: Callable[[Ints], Floats]  # clips of each class that are no candidates of some places; [0, C]: themselves
    estimated: bool


def exact_means(space: Space, layout: Layout) -> _Means:
    """Of all pairs, from means of vectors."""
    means = ClassMeans.of(space, layout)
    operand = summed_operand(space, layout.starts)
    sizes = means.sizes

    def rows(codes: Ints) -> tuple[Floats, Floats, Floats]:
        pairs = sizes[codes][:, None] * sizes
        return means.inter(codes), pairs, pairs

    own = sizes * (sizes - 1.0)
    nothing = np.zeros((0, layout.classes))
    return _Means(
        means.intra, rows, own, own, lambda places: closed_form_sums(space, layout, places, *operand),
        lambda _: nothing, estimated=False,
    )  # fmt: skip


def estimated_means(layout: Layout, swept: Swept, sample: Sample, protocol: str) -> _Means:
    """From the class sums of the places that asked."""
    classes, sizes = layout.classes, layout.sizes.astype(np.float64)
    codes, asked = layout.codes[sample.rows], sample.asked
    edges = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
    present = codes[edges[:-1]]
    totals, counts = np.zeros((classes, classes)), np.zeros((classes, classes))
    totals[present] = np.add.reduceat(swept.class_sums, edges[:-1], axis=0)
    nothing = np.zeros((0, classes))
    held: Callable[[Ints], Floats] = lambda _: nothing  # noqa: E731
    if protocol == "all":
        counts[:] = asked[:, None] * sizes
        counts[np.arange(classes), np.arange(classes)] = asked * (sizes - 1.0)
    else:
        held = _group_counts(layout)
        for (start, stop), code in zip(pairwise(edges), present, strict=True):
            counts[code] = (sizes - held(sample.rows[start:stop])).sum(axis=0)
    own, own_pooled = np.diagonal(totals).copy(), np.diagonal(counts).copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        intra = np.where(own_pooled > 0.5, np.maximum(own, 0.0) / own_pooled, np.nan)
        scale = np.where(asked > 0, sizes / asked, 0.0)
    full = counts * scale[:, None]  # the pairs that all clips of a class would have
    own_pairs = np.diagonal(full).copy()
    full += full.T
    full /= 2.0
    totals += totals.T
    counts += counts.T
    with np.errstate(invalid="ignore", divide="ignore"):
        totals /= counts

    def rows(wanted: Ints) -> tuple[Floats, Floats, Floats]:
        return totals[wanted], counts[wanted], full[wanted]

    return _Means(
        intra, rows, own_pooled, own_pairs, lambda places: swept.class_sums[sample.slots(places)], held, estimated=True
    )


def _group_counts(layout: Layout) -> Callable[[Ints], Floats]:
    """How many clips of each class share the group of some places, themselves among them: [places, C]."""
    assert layout.groups is not None
    groups, starts, members, codes = layout.groups, layout.group_starts, layout.group_members, layout.codes

    def held(places: Ints) -> Floats:
        counts = np.zeros((len(places), layout.classes))
        for line, group in enumerate(groups[places]):
            counts[line] = np.bincount(codes[members[starts[group] : starts[group + 1]]], minlength=layout.classes)
        return counts

    return held


def share_metrics(
    layout: Layout, sample: Sample, means: _Means, *, threads: int, jackknife: bool
) -> dict[str, SampledShare]:
    """CS and CSCF; `jackknife` says whether their values without each clip are wanted."""
    terms = np.zeros(3)
    for start in range(0, layout.classes, BLOCK):
        codes = np.arange(start, min(start + BLOCK, layout.classes))
        inter = means.rows(codes)[0].copy()
        inter[np.arange(len(codes)), codes] = means.intra[codes]
        terms += [term.sum() for term in separation.pair_shares(codes, inter)]
    if not terms[2]:
        return {}
    values = terms[:2] / terms[2]
    names, pairs = ("CS", "CSCF"), int(terms[2])
    if not (jackknife or means.estimated):
        return {name: SampledShare(float(value), pairs, None) for name, value in zip(names, values, strict=True)}
    changes = np.concatenate(list(_changes(layout, sample, means, threads)))  # [queries, 2 ways, 3 terms]
    with np.errstate(invalid="ignore", divide="ignore"):
        without = (terms[:2] + changes[:, :, :2]) / (terms[2] + changes[:, :, 2:])
    found = {}
    for i, name in enumerate(names):
        value, left = _combined(layout, sample, float(values[i]), without[:, :, i], estimated=means.estimated)
        found[name] = SampledShare(min(max(value, 0.0), 1.0), pairs, left if jackknife else None)
    return found


def _changes(layout: Layout, sample: Sample, means: _Means, threads: int) -> Iterator[Floats]:
    sizes = layout.sizes.astype(np.float64)

    def work(places: Ints) -> Floats:
        codes = layout.codes[places]
        present, lines = np.unique(codes, return_inverse=True)
        inter, pooled, pairs = means.rows(present)
        changes = np.zeros((3, len(places), 2))
        kernels.leave_out_rows(
            codes, means.sums(places), means.held(places), sizes, means.intra, lines, inter, pooled, pairs,
            means.own_pooled[present], means.own_pairs[present], means.estimated, separation.ROUNDING, *changes,
        )  # fmt: skip
        return changes.transpose(1, 2, 0)

    with Workers(threads) as workers:
        yield from workers.map(work, (sample.rows[start : start + ROWS] for start in range(0, len(sample.rows), ROWS)))


def _combined(
    layout: Layout, sample: Sample, value: float, without: Floats, *, estimated: bool
) -> tuple[float, Floats]:
    """The value less its bias, and its values without each clip: the value itself of those that did not ask."""
    codes, asked = layout.codes[sample.rows], sample.asked
    weight = (layout.sizes / np.maximum(asked, 1.0))[codes]
    clips = without[:, 0] - np.average(without[:, 0], weights=weight)
    squares, sign = weight * clips**2, clips
    if estimated:
        count = np.maximum(asked, 1.0)
        mean = np.bincount(codes, without[:, 1], layout.classes) / count
        rest = (1.0 - asked / layout.sizes) * (asked - 1.0)
        value -= float((rest * (mean - value))[asked > 1].sum())
        sign = without[:, 1] - mean[codes]
        squares = squares + (rest / count)[codes] * sign**2
    left = np.full(layout.n, value)
    left[sample.rows] += np.sign(sign) * np.sqrt(squares)
    return value, left
