"""What was asked, and how often: items, their repeated presentations, and filters of judgements.

An *item* is what is asked: X with the pair {A, B}, in either order. Judgements of one item are its presentations.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, did_you_mean, quoted
from earmark.probes._judgements import NO_CHOICE, Ints, Judgements, Mask
from earmark.vectors.columns import shortened
from earmark.vectors.texts import is_number
from earmark.wording import first_of


@dataclass(frozen=True, eq=False)
class Items:
    """Which item each judgement is a presentation of, and its choice as seen by the item: +1 for the lower place."""

    codes: Ints
    choices: Ints
    count: int

    @property
    def votes(self) -> NDArray[np.float64]:
        """[items, 2]: presentations that chose the one and the other sound."""
        return np.stack(
            [np.bincount(self.codes[self.choices == side], minlength=self.count) for side in (1, -1)], axis=1
        ).astype(float)


def items_of(judgements: Judgements) -> Items:
    """What was asked, over all judgements: X with the pair {A, B} in either order."""
    low, high = np.minimum(judgements.a, judgements.b), np.maximum(judgements.a, judgements.b)
    _, codes = np.unique(np.stack([judgements.x, low, high], axis=1), axis=0, return_inverse=True)
    codes = np.asarray(codes, np.int64).ravel()
    facing = np.where(judgements.a <= judgements.b, 1, -1)
    return Items(codes, np.where(judgements.named, judgements.choices * facing, 0), int(codes.max(initial=-1)) + 1)


def majority_of(judgements: Judgements) -> Judgements:
    """One judgement for each item: what most presentations chose; no choice where both have as many."""
    items = items_of(judgements)
    votes = items.votes
    _, rows = np.unique(items.codes, return_index=True)
    taken = judgements.take(np.asarray(rows, np.int64))
    facing = np.where(taken.a <= taken.b, 1, -1)
    winner = np.sign(votes[:, 0] - votes[:, 1]).astype(np.int64) * facing
    if judgements.kind == "triplets":  # the answer of a triplet is its first sound
        first, second = np.where(winner < 0, taken.b, taken.a), np.where(winner < 0, taken.a, taken.b)
        return replace(taken, a=first, b=second, choices=np.abs(winner), listeners=None, cells={})
    return replace(taken, choices=winner, listeners=None, cells={})


# --- filters ----------------------------------------------------------------------------------------------------------


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, "=": operator.eq, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_CONDITION = re.compile(r"\s*(?P<column>[^<>=!]+?)\s*(?P<sign>>=|<=|!=|==|=|>|<)\s*(?P<value>.*?)\s*")


class Condition(NamedTuple):
    """`Margin_Type=high`, `Consistency>=0.8`."""

    column: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.column}{self.sign}{self.value}"


def parse_where(text: str) -> tuple[Condition, ...]:
    """Conditions that hold together: `Margin_Type=high & Consistency>=0.8`."""
    conditions = []
    for part in text.split("&"):
        match = _CONDITION.fullmatch(part)
        if match is None or not match["value"]:
            raise UsageError(f"The filter {text!r} is not understood: write COLUMN=VALUE or COLUMN>=0.8.")
        sign = match["sign"].replace("==", "=")
        if sign not in ("=", "!=") and not is_number(match["value"]):
            raise UsageError(f"The filter {text!r} compares with {match['value']!r}, which is no number.")
        conditions.append(Condition(match["column"], sign, match["value"]))
    return tuple(conditions)


def fulfilling(judgements: Judgements, conditions: Sequence[Condition]) -> Mask:
    """Which judgements fulfil all conditions; a missing value fulfils none.

    Beside the columns of the table there are `agreement`, the share of an item's presentations that made its more
    frequent choice, and `repeats`, the number of its presentations with a choice.
    """
    kept = np.ones(len(judgements), bool)
    for condition in conditions:
        kept &= _holds(judgements, condition)
    return kept


def _holds(judgements: Judgements, condition: Condition) -> Mask:
    name, compare = condition.column.lower(), _OPERATORS[condition.sign]
    if name in ("agreement", "repeats") and name not in judgements.cells:
        items = items_of(judgements)
        votes = items.votes
        total = votes.sum(axis=1)
        per_item = total if name == "repeats" else votes.max(axis=1) / np.maximum(total, 1.0)
        # 4 of 5 is 0.8 whatever the last digit of the division says.
        found = compare(np.round(per_item, 12), round(float(_number(condition)), 12))
        return np.asarray(found & (total > 0))[items.codes]
    if name not in judgements.cells:
        known = [*judgements.cells, "agreement", "repeats"]
        raise InputError(
            f'{judgements.source} has no column "{condition.column}" to filter by; it has {shortened(known, 12)}.'
            f"{did_you_mean(name, known)}"
        )
    texts = judgements.cells[name]
    if condition.sign in ("=", "!="):
        wanted = _as_number(condition.value)
        same = np.array([text is not None and _as_number(text) == wanted for text in texts])
        there = np.array([text is not None for text in texts])
        if condition.sign == "=" and not same.any():
            values = sorted({text for text in texts if text is not None})
            raise InputError(
                f"{judgements.source}: no judgement has {condition}; the column holds {first_of(values, 6)}."
                f"{did_you_mean(condition.value, values)}"
            )
        return np.asarray(there & (same if condition.sign == "=" else ~same))
    wrong = next((text for text in texts if text is not None and not is_number(text) and text.lower() not in NO_CHOICE),
                 None)  # fmt: skip
    if wrong is not None:
        raise InputError(f"{judgements.source}: the column {condition.column} holds {quoted(wrong)}, no number.")
    numbers = np.array([float(text) if text is not None and is_number(text) else np.nan for text in texts])
    return np.asarray(compare(numbers, _number(condition)))


def _number(condition: Condition) -> float:
    if not is_number(condition.value):
        raise UsageError(f"The filter {condition} compares with {condition.value!r}, which is no number.")
    return float(condition.value)


def _as_number(text: str) -> float | str:
    return float(text) if is_number(text) else text
