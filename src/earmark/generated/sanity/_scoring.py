"""One pair of the sanity bench: drawn, and scored by the columns that share their neighbour searches.

A task's numbers depend on nothing but the task, in whichever process it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from earmark.errors import EarmarkError, InputError
from earmark.generated.balls import Reference
from earmark.generated.measure import measure
from earmark.generated.metrics import NETWORK
from earmark.generated.sanity._data import CHECKS, Floats, Pair, draw_pair, value_text
from earmark.generated.sanity.columns import Column, neighbours_of, own_values
from earmark.registry import load_path
from earmark.runs.journal import Trial, TrialScore

BATCH = 8


class Task(NamedTuple):
    """One pair, and the columns to score on it."""

    check: str
    subcase: str
    value: float
    repeat: int
    columns: tuple[Column, ...]
    n: int
    seed: int
    device: str = "cpu"

    def trial(self, column: Column) -> Trial:
        return Trial(column.key, self.check, self.subcase, value_text(self.value), self.repeat)

    @property
    def size(self) -> float:
        """How many points the check puts beyond n, for the order of work."""
        return self.value if CHECKS[self.check].sized else 0.0


def batches(waiting: Sequence[Task]) -> list[list[Task]]:
    """Neighbouring tasks that share a real set, a few at a time: its own neighbourhoods are found once for all."""
    found: list[list[Task]] = []
    for task in waiting:
        last = found[-1] if found else []
        if last and len(last) < BATCH and CHECKS[task.check].fixed and not task.size and _shared(task, last[0]):
            last.append(task)
        else:
            found.append([task])
    return found


def _shared(task: Task, other: Task) -> bool:
    return task[:2] == other[:2] and (task.repeat, task.columns) == (other.repeat, other.columns)


# --- one task ---------------------------------------------------------------------------------------------


def score(task: Task) -> list[TrialScore]:
    """The scores of one task; where a metric has none, NaN and the reason."""
    check = CHECKS[task.check]
    subcase = check.subcase(task.subcase)
    pair = draw_pair(check, subcase, task.value, task.repeat, n=task.n, seed=task.seed)
    own = [column for column in task.columns if column.own]
    found = _score_own(own, pair) if own else {}
    built_in = [column for column in task.columns if not column.own]
    if built_in:
        name = (task.check, task.subcase, task.repeat, task.n, task.seed) if check.fixed else None
        balls = [column for column in built_in if column.metric not in NETWORK]
        k = {column.family: neighbours_of(column.metric, len(pair.real)) for column in balls}
        found |= _score_built_in(built_in, _reference(pair.real, name), pair.generated, k=k, device=task.device)
    return [TrialScore(task.trial(column), *found[column.key]) for column in task.columns]


def score_all(tasks: Sequence[Task]) -> list[list[TrialScore]]:
    return [score(task) for task in tasks]


def travelling(task: Task) -> Task:
    """The task as it can travel to another process: columns there load their function by its path."""
    return task._replace(columns=tuple(replace(column, function=None) for column in task.columns))


_known: dict[Any, Reference] = {}  # the real set this process saw last, with what is known of its neighbourhoods


def _reference(real: Floats, name: tuple[Any, ...] | None) -> Reference:
    """The real set, the same object as before when it is the same set: no number depends on it, only the time."""
    if name is None or name not in _known:
        _known.clear()
        _known[name] = Reference(real)
    return _known[name]


def score_set(
    columns: Sequence[Column], real: Reference, generated: Floats, **how: Any
) -> dict[str, tuple[float, str]]:
    """By the key of each column its score of any pair of sets, or NaN and the reason; `how` as in `measure`."""
    own: dict[str, list[Column]] = {}
    groups: dict[tuple[bool, str], list[Column]] = {}
    for column in columns:
        if column.own:
            own.setdefault(column.path or column.metric.removesuffix(f".{column.kind}"), []).append(column)
        else:
            groups.setdefault((column.metric in NETWORK, column.correction), []).append(column)
    found: dict[str, tuple[float, str]] = {}
    for of_one in own.values():
        found |= _score_own(of_one, Pair(real.vectors, generated))
    for group in groups.values():
        found |= _score_built_in(group, real, generated, **how)
    return found


def _score_own(columns: Sequence[Column], pair: Pair) -> dict[str, tuple[float, str]]:
    """A user's metric gets copies: it may write into them."""
    first = columns[0]
    function: Any = first.function or load_path(first.path, "metric")
    values = own_values(first.path or first.metric, function, pair.real.copy(), pair.generated.copy())
    found = {}
    for column in columns:
        if column.part >= len(values):
            raise InputError(f"The metric {first.path!r} returned a pair at first and one number later: return either.")
        value = values[column.part]
        found[column.key] = (value, "") if abs(value) < float("inf") else (float("nan"), f"the metric returned {value}")
    return found


def _score_built_in(
    columns: Sequence[Column], real: Reference, generated: Floats, **how: Any
) -> dict[str, tuple[float, str]]:
    """All columns from shared searches; one by one where the pair is beyond one of them."""
    try:
        values = _measured(columns, real, generated, **how)
    except EarmarkError as error:
        if len(columns) == 1:
            return {columns[0].key: (float("nan"), str(error))}
        found: dict[str, tuple[float, str]] = {}
        for column in columns:
            found |= _score_built_in([column], real, generated, **how)
        return found
    return {
        column.key: (value, "" if value == value else "not defined for this pair")
        for column, value in zip(columns, values, strict=True)
    }


def _measured(columns: Sequence[Column], real: Reference, generated: Floats, **how: Any) -> list[float]:
    names = [column.metric for column in columns]
    # The smallest sets of the size grids have fewer points than the wide scale has neighbours.
    values = measure(real, generated, metrics=names, gicdm=columns[0].correction == "gicdm", shrink=True, **how)
    return [float(values[name]) for name in names]
