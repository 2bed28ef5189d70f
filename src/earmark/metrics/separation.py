"""How far classes keep apart: GSR, CSR, CS, CSCF, silhouette.

Notation, per point i: NID, distance to the nearest point of another class; AvgID, mean distance to the other
points of its class; MID, distance to the farthest of them. intra(a), inter(a, b): mean distance of the pairs
inside class a, and between classes a and b. EPSILON keeps 0/0 finite when everything coincides.

    GSR            ((NID - AvgID) / (NID + AvgID + eps) + 1) / 2, mean over points     [0, 1], higher is better
    CSR            the same ratio of the class means of NID and MID, classes weighted by size       [0, 1], higher
    CSR_pointwise  the same ratio of NID and MID per point, mean over points                        [0, 1], higher
    CS             intra(a) / (intra(a) + inter(a, b)), mean over ordered pairs of classes          [0, 1], lower
    CSCF           share of ordered pairs of classes with inter(a, b) < intra(a)                    [0, 1], lower
    silhouette     (b - a) / max(a, b), a = AvgID, b = lowest mean distance to another class        [-1, 1], higher

Points or classes without a same-class pair are excluded. Two classes fallen into one point score CS = 1/2.
VocSim defines all but the silhouette; its CSR is computed as in its printed results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.scores.metrics import FRACTION, METRICS, metric, register

Floats = NDArray[np.float64]

VOCSIM = "VocSim: a training-free benchmark for content identity in single-source audio embeddings"
EPSILON = 1e-9
FELT_SHARE, FELT_SHIFT = 1e-3, 1e-4  # of eps: what is told in the row
ROUNDING = 1e-12  # means closer than this share of each other are equal: rounding may not decide a strict <


def _balance(near: Floats, wide: Floats) -> Floats:
    return np.asarray(((near - wide) / (near + wide + EPSILON) + 1.0) / 2.0)


def epsilon_share(near: Floats, wide: Floats) -> float:
    """What eps is of the mean NID + AvgID (or NID + MID): 0 where it cannot be felt, infinite where all coincide.

    Points with a NaN do not count; 0 when there are no others.
    """
    sums = (near + wide)[np.isfinite(near) & np.isfinite(wide)]
    if not len(sums):
        return 0.0
    mean = float(sums.mean())
    return EPSILON / mean if mean > 0.0 else np.inf


def epsilon_shift(near: Floats, wide: Floats) -> float:
    """How far eps moves the mean of GSR or CSR_pointwise; points at which 0/0 is avoided stay at 1/2."""
    valid = np.isfinite(near) & np.isfinite(wide)
    near, wide = near[valid], wide[valid]
    if not len(near):
        return 0.0
    sums = near + wide
    free = np.where(sums > 0.0, near / np.where(sums > 0.0, sums, 1.0), 0.5)
    return float((_balance(near, wide) - free).mean())


def epsilon_note(near: Floats, wide: Floats) -> str:
    """A remark for the row of GSR, CSR or CSR_pointwise where eps can be felt, else nothing."""
    share, shift = epsilon_share(near, wide), epsilon_shift(near, wide)
    if share <= FELT_SHARE and abs(shift) <= FELT_SHIFT:
        return ""
    if np.isinf(share):
        return "all distances are 0: the value is that of eps alone"
    return (
        f"distances are so small that eps = {EPSILON:g} is {100 * share:.2g} % of the sums it is added to and moves "
        f"the value by {shift:+.2g}: subtract what all vectors have in common (cosine) or rescale them (euclidean)"
    )


@metric(
    "GSR", range=FRACTION, percent=True, standard=True, lead=2, paper=VOCSIM,
    words="global separation rate: nearest clip of another class against the mean of the own; 50 % where equal",
)  # fmt: skip
def gsr(nearest_other: Floats, own_mean: Floats) -> Floats:
    """GSR of every point."""
    return _balance(nearest_other, own_mean)


@metric("CSR_pointwise", range=FRACTION, percent=True, paper=VOCSIM, words="the same ratio clip by clip, then averaged")
def csr_pointwise(nearest_other: Floats, farthest_same: Floats) -> Floats:
    """CSR of every point, as the paper's text has it."""
    return _balance(nearest_other, farthest_same)


@metric(
    "CSR", range=FRACTION, percent=True, standard=True, paper=VOCSIM,
    words="class separation ratio: nearest clip of another class against the farthest of the own, from class means",
)  # fmt: skip
def csr(nearest_other: Floats, farthest_same: Floats, starts: NDArray[Any], weights: Floats) -> Floats:
    """CSR from class means, as printed: one value per row of `weights` [B, N] (all ones: the plain value).

    Points are sorted by class, class c at places starts[c] to starts[c + 1]. Points with a NaN do not count.
    """
    valid = np.isfinite(nearest_other) & np.isfinite(farthest_same)
    weights = weights * valid
    sizes = np.add.reduceat(weights, starts[:-1], axis=1)
    near = np.add.reduceat(weights * np.where(valid, nearest_other, 0.0), starts[:-1], axis=1)
    wide = np.add.reduceat(weights * np.where(valid, farthest_same, 0.0), starts[:-1], axis=1)
    return csr_from_class_sums(near, wide, sizes)


def csr_from_class_sums(near: Floats, wide: Floats, sizes: Floats) -> Floats:
    """CSR [B] from per-class sums [B, C] of NID and MID over `sizes` points."""
    total = sizes.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        score = np.where(sizes > 0, _balance(near / sizes, wide / sizes), 0.0)
        return np.asarray((score * sizes).sum(axis=1) / total)


def sampled_csr(
    nearest_other: Floats, farthest_same: Floats, codes: NDArray[Any], sizes: Floats, asked: Floats
) -> float:
    """CSR of all points from some of each class: what the ratio of noisy means adds is estimated and taken off.

    One value for each point that was asked, `codes` its class; `sizes` points of each class, of which `asked` were.
    With f(-i) a class's ratio without point i, (m - 1) (mean f(-i) - f) is its bias of order 1 / m (the jackknife's),
    times 1 - m / n because m of n points were drawn without replacement. NaN where nothing was measured.
    """
    valid = np.isfinite(nearest_other) & np.isfinite(farthest_same)
    codes, near, wide = codes[valid], nearest_other[valid], farthest_same[valid]
    classes = len(sizes)
    count, near_sum, wide_sum = (np.bincount(codes, values, classes) for values in (np.ones(len(near)), near, wide))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = _balance(near_sum / count, wide_sum / count)
        left = count[codes] - 1.0
        without = _balance((near_sum[codes] - near) / left, (wide_sum[codes] - wide) / left)
        bias = (count - 1.0) * (np.bincount(codes, without, classes) / count - ratio) * (1.0 - asked / sizes)
        weights = np.where(asked > 0, sizes * count / asked, 0.0)
    score = np.where(count > 0, ratio - np.where(count > 1, bias, 0.0), 0.0)
    total = float(weights.sum())
    return float(np.clip((score * weights).sum() / total, 0.0, 1.0)) if total > 0 else float("nan")


@metric(
    range=(-1.0, 1.0), standard=True, lead=4, paper="Rousseeuw, J. Comput. Appl. Math. 20, 1987",
    words="mean of (b − a) / max(a, b): a, distance to the own class; b, to the nearest other class",
)  # fmt: skip
def silhouette(own_mean: Floats, other_mean: Floats) -> Floats:
    """Silhouette of every point from its two mean distances; 0 where both are 0."""
    largest = np.maximum(own_mean, other_mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(largest > 0, (other_mean - own_mean) / largest, np.where(largest == 0, 0.0, np.nan))


class PairShares(NamedTuple):
    """Of a class against all others: summed CS terms, confused pairs, and pairs that could be measured."""

    overlap: Floats
    confused: Floats
    pairs: Floats


@metric(
    "CS", range=FRACTION, higher_is_better=False, percent=True, standard=True, needs=("class_pairs",), paper=VOCSIM,
    words="distances inside a class over those inside and between, for all pairs of classes; lower is better",
)  # fmt: skip
def pair_shares(own: NDArray[Any], means: Floats) -> PairShares:
    """CS and CSCF terms from mean distances `means` [B, C] of class own[b] to every class (its own: intra)."""
    rows = np.arange(len(means))
    intra = means[rows, own][:, None]
    measured = np.isfinite(means) & np.isfinite(intra)
    measured[rows, own] = False
    total = intra + means
    with np.errstate(invalid="ignore", divide="ignore"):
        overlap = np.where(total > 0, intra / total, 0.5)
        confused = means < intra * (1.0 - ROUNDING)
    return PairShares(
        np.where(measured, overlap, 0.0).sum(axis=1),
        (confused & measured).sum(axis=1).astype(np.float64),
        measured.sum(axis=1).astype(np.float64),
    )


_WORDS = "share of ordered pairs of classes that lie closer together than the first is wide; lower is better"
register(replace(METRICS["CS"], name="CSCF", words=_WORDS))
