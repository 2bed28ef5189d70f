"""What varies between studies: the unit of each judgement, and errors from leaving out units of one or of two kinds.

    judgement      judgements are independent of each other
    listener       judgements of one listener go together: another study has other listeners and the same sounds
    anchor         judgements about one X go together
    pair           judgements about one {A, B} go together
    listener+pair  both: another study has other listeners and other pairs

Two kinds that cross each other, listeners who judge the same pairs, have the variance

    v = v_listener + v_pair - v_cell        at least the larger of the two

each from leaving out one unit of its kind; a cell is what one listener says about one pair, which the other two terms
count twice. Degrees of freedom are those of the kind that has fewer.

Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29(2), 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.errors import UsageError, did_you_mean
from earmark.probes._judgements import Judgements, Mask
from earmark.wording import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNITS = ("judgement", "listener", "anchor", "pair", "listener+pair", "listener+anchor")


def kinds_of(unit: str) -> tuple[str, ...]:
    """The kinds of a unit: `listener+pair` has two."""
    return tuple(unit.split("+"))


def unit_of(unit: str | None, known: Judgements, majority: bool) -> str:
    """The unit that is asked for, or the one in which judgements hang together."""
    listeners = any(name is not None for name in known.listeners or ()) and not majority
    if unit is None:
        shared = _shared_kind(known, listeners)
        return "+".join(filter(None, ["listener", shared])) if listeners else shared or "judgement"
    if unit not in UNITS:
        raise UsageError(f"Unknown unit {unit!r}: choose {', '.join(UNITS)}.{did_you_mean(unit, UNITS)}")
    if "listener" in kinds_of(unit) and majority:
        raise UsageError("The majority of several listeners is nobody's judgement: choose another unit.")
    if "listener" in kinds_of(unit) and not listeners:
        raise UsageError("The unit listener needs to know who judged: name the column of listeners.")
    return unit


def scope_of(unit: str, known: Judgements, majority: bool) -> str:
    """For what a conclusion holds, where it is less than other listeners and other sounds."""
    listeners = any(name is not None for name in known.listeners or ()) and not majority
    if not listeners or len(kinds_of(unit)) > 1 or unit == "judgement" or not _shared_kind(known, True):
        return ""
    return "holds for these sounds only" if unit == "listener" else "holds for these listeners only"


def _shared_kind(known: Judgements, across_listeners: bool) -> str:
    """Pairs, else anchors, that several judgements share, or several listeners; empty where neither does."""
    usable = known.take(known.usable)
    if across_listeners:
        usable = usable.take(with_listener(usable))
    for kind in ("pair", "anchor"):
        codes = unit_codes(usable, kind)
        shares = _numbered(unit_codes(usable, "listener"), codes) if across_listeners else np.arange(len(usable))
        if len(np.unique(codes)) < len(np.unique(shares)):
            return kind
    return ""


def with_listener(judgements: Judgements) -> Mask:
    """Which judgements are of a known listener."""
    return np.array([name is not None for name in judgements.listeners or ()], bool)


def unit_codes(judgements: Judgements, kind: str) -> Ints:
    """The number of the unit of each judgement. Listeners must be known."""
    if kind == "listener":
        return _numbered(np.array([str(name) for name in judgements.listeners or ()]))
    if kind == "anchor":
        return _numbered(judgements.x)
    if kind == "pair":
        return _numbered(np.minimum(judgements.a, judgements.b), np.maximum(judgements.a, judgements.b))
    return np.arange(len(judgements))


def _numbered(*keys: NDArray[np.generic]) -> Ints:
    """Numbers from 0 of what is the same in all keys."""
    columns = [np.asarray(np.unique(key, return_inverse=True)[1], np.int64).ravel() for key in keys]
    if len(columns) == 1:
        return columns[0]
    return np.asarray(np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1], np.int64).ravel()


# --- errors -----------------------------------------------------------------------------------------------------------


class Units(NamedTuple):
    """The units of some judgements: a number for each judgement and kind; of two kinds, also for each cell."""

    kinds: tuple[str, ...]
    codes: tuple[Ints, ...]

    @classmethod
    def of(cls, kinds: Sequence[str], codes: Sequence[Ints]) -> Units:
        own = [_numbered(numbers) for numbers in codes]
        return cls(tuple(kinds), tuple([*own, _numbered(*own)] if len(own) > 1 else own))

    @property
    def words(self) -> str:
        """`rests on 8 listeners and 38 pairs`, of two kinds."""
        parts = [counted(len(np.unique(codes)), kind) for kind, codes in zip(self.kinds, self.codes, strict=False)]
        return f"rests on {' and '.join(parts)}: holds for others of both" if len(parts) > 1 else ""


class Deletions(NamedTuple):
    """Values without each unit of the kind that has fewest, with the standard error and its degrees of freedom."""

    unit: str
    without: Floats
    error: float | None
    freedom: float


def deletions(units: Units, without: Sequence[Floats]) -> Deletions:
    """The error of a metric from its values without each unit, as many arrays as `units.codes`."""
    freedoms = [jackknife.freedom_of(np.bincount(codes).astype(np.float64)) for codes in units.codes]
    sides = list(zip(units.kinds, without, freedoms, strict=False))
    refused = [side for side in sides if jackknife.refusal(side[1], side[0])]
    kind, values, freedom = min(refused or sides, key=lambda side: len(side[1]))
    if refused or len(sides) == 1:
        return Deletions(kind, values, None, freedom)
    one, other, cell = (jackknife.standard_error(of_kind) ** 2 for of_kind in without)
    error = float(np.sqrt(np.fmax(max(one, other), one + other - cell)))
    return Deletions(kind, values, error, min(freedom for _, _, freedom in sides))
