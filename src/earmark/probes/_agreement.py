"""Ceilings: how far listeners agree with each other, and with themselves, where judgements are repeated.

A judgement is compared with the other presentations of its item: those of other listeners (`agreement_between`), those
of the same listener (`agreement_within`), or all of them where nobody says who judged (`agreement_repeats`). The share
of them that made the same choice, averaged over the judgements that have any, is how well one judgement predicts
another: what a model that is as good as a listener reaches. Each judgement has one weight, as in the accuracy.

`attainable_accuracy` is a bound of another kind: one answer for each item cannot agree with judgements that contradict
each other, so no distance agrees with more than the more frequent choice of every item.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.probes._items import Items, items_of
from earmark.probes._judgements import Ints, Judgements

Floats = NDArray[np.float64]


class Ceiling(NamedTuple):
    """A level that no model, or no listener, goes beyond; None with the reason where there is none."""

    metric: str
    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    listeners: int | None = None
    reason: str = ""


def ceilings(judgements: Judgements) -> list[Ceiling]:
    """What repeated judgements say: agreement between and within listeners, and what is attainable at all."""
    usable = judgements.take(judgements.usable)
    if not len(usable):
        return []
    items = items_of(usable)
    votes = items.votes
    attainable = Ceiling("attainable_accuracy", float(votes.max(axis=1).sum() / votes.sum()), len(usable))
    if usable.listeners is None:
        everyone = np.zeros(len(usable), np.int64)
        return [_agreement("agreement_repeats", items, everyone, same=True), attainable]
    known = np.array([name is not None for name in usable.listeners])
    if not known.any():
        return [attainable]
    _, listeners = np.unique([name or "" for name, there in zip(usable.listeners, known, strict=True) if there],
                             return_inverse=True)  # fmt: skip
    named = Items(items.codes[known], items.choices[known], items.count)
    codes = np.asarray(listeners, np.int64).ravel()
    return [
        _agreement("agreement_between", named, codes, same=False),
        _agreement("agreement_within", named, codes, same=True),
        attainable,
    ]


_NO_REPEATS = {
    "agreement_between": "no item was put to two listeners",
    "agreement_within": "no item was put to one listener twice",
    "agreement_repeats": "no item was asked twice",
}


def _agreement(metric: str, items: Items, listeners: Ints, *, same: bool) -> Ceiling:
    """How often judgements make the choice of another presentation, by the same listener or by other ones."""
    shares, owners = _shares(items, listeners, same=same)
    if not len(shares):
        return Ceiling(metric, None, 0, reason=_NO_REPEATS[metric])
    value = float(shares.mean())
    if metric == "agreement_repeats":
        return Ceiling(metric, value, len(shares), reason="nothing says who judged")
    without = np.array([_without(items, listeners, unit, same=same) for unit in np.unique(owners)], np.float64)
    freedom = jackknife.freedom_of(np.unique(owners, return_counts=True)[1].astype(np.float64))
    interval = jackknife.interval(value, without, (0.0, 1.0), "listener", freedom=freedom)
    return Ceiling(metric, value, len(shares), interval.low, interval.high, interval.units, interval.reason)


def _without(items: Items, listeners: Ints, unit: int, *, same: bool) -> float:
    left = listeners != unit
    shares, _ = _shares(Items(items.codes[left], items.choices[left], items.count), listeners[left], same=same)
    return float(shares.mean()) if len(shares) else float("nan")


def _shares(items: Items, listeners: Ints, *, same: bool) -> tuple[Floats, Ints]:
    """Of each judgement that has partners, the share of them that made its choice; and whose judgement it is."""
    chose = np.where(items.choices > 0, 1.0, 0.0)
    in_cell, a_in_cell = _sums(items.codes * (int(listeners.max(initial=0)) + 1) + listeners, chose)
    if same:
        partners, a_partners = in_cell - 1.0, a_in_cell - chose
    else:
        in_item, a_in_item = _sums(items.codes, chose)
        partners, a_partners = in_item - in_cell, a_in_item - a_in_cell
    has = partners > 0.0
    agreeing = np.where(chose > 0.0, a_partners, partners - a_partners)
    return agreeing[has] / partners[has], listeners[has]


def _sums(codes: Ints, values: Floats) -> tuple[Floats, Floats]:
    """For each entry: how many have its code, and the sum of their values."""
    _, places = np.unique(codes, return_inverse=True)
    places = np.asarray(places, np.int64).ravel()
    sums = np.asarray(np.bincount(places, values), np.float64)
    return np.bincount(places)[places].astype(np.float64), sums[places]
