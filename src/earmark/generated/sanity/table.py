"""The table of the sanity checks: an outcome for each cell and column, beside the published one.

Scores are averaged over repeats first, and the tests look at the mean curves, never at single repeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from earmark.generated.sanity import rules
from earmark.generated.sanity._criteria import PASSED, Curve, Outcome, merge
from earmark.generated.sanity._data import CHECKS, Grid, value_text
from earmark.generated.sanity.columns import Column
from earmark.generated.sanity.rules import GROUPS, CellName, Edition, Line
from earmark.published import read
from earmark.runs.journal import Trial, TrialScore
from earmark.tables import csv_text

TABLES = {"fidelity": "gicdm_table6_fidelity", "coverage": "gicdm_table7_coverage"}
HEADER = (
    "metric", "correction", "desideratum", "check", "outcome", "published", "slack", "decided_by", "repeats",
)  # fmt: skip


class Cell(NamedTuple):
    """One desideratum of one check for one column.

    `outcome` is empty while scores are missing. `slack` is that of the line that decides: how far the mean curve is
    from the threshold, negative when it failed; `decided_by` names this line. `repeats` is the smallest number of
    repeats behind a mean that the cell looks at.
    """

    column: Column
    desideratum: str
    check: str
    outcome: Outcome | None
    published: str
    slack: float | None
    decided_by: str
    repeats: int

    @property
    def agrees(self) -> bool | None:
        """Whether the outcome is the published one; None where one of the two is missing."""
        return None if self.outcome is None or not self.published else self.outcome == self.published

    def row(self) -> dict[str, Any]:
        return {
            "metric": self.column.metric,
            "correction": self.column.correction,
            "desideratum": self.desideratum,
            "check": self.check,
            "outcome": self.outcome,
            "published": self.published or None,
            "slack": None if self.slack is None else round(self.slack, 6),
            "decided_by": self.decided_by or None,
            "repeats": self.repeats,
        }


class Tally(NamedTuple):
    """How many cells have passed, of how many."""

    passed: int
    of: int


class MeanCurve(NamedTuple):
    """A curve of means with the number of repeats behind each."""

    curve: Curve
    repeats: np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Sanity:
    """The outcome of a sanity run: cells in the order of the published tables, and the mean curves behind them."""

    columns: tuple[Column, ...]
    cells: tuple[Cell, ...]
    curves: Mapping[tuple[str, str, str], MeanCurve]  # by (column name, check, sub-case)

    def of(self, column: str) -> list[Cell]:
        """The cells of one column, by its name: `precision` or `precision+gicdm`."""
        return [cell for cell in self.cells if cell.column.name == column]

    def outcome(self, column: str, desideratum: str, check: str) -> Outcome | None:
        return next(c.outcome for c in self.of(column) if (c.desideratum, c.check) == (desideratum, check))

    def agreement(self, column: str) -> Tally:
        """Cells equal to the published ones, of those that both have."""
        known = [cell.agrees for cell in self.of(column) if cell.agrees is not None]
        return Tally(sum(known), len(known))

    def passed(self, column: str, group: str, *, published: bool = False) -> Tally:
        """Passed cells (T, L or H) of `Purpose`, `Bounds` or `Other`, here or as published."""
        cells = [cell for cell in self.of(column) if cell.desideratum in GROUPS[group]]
        letters = [cell.published if published else cell.outcome for cell in cells]
        return Tally(sum(letter in PASSED for letter in letters), sum(bool(letter) for letter in letters))

    def to_csv(self) -> str:
        """Every cell as a line."""
        return csv_text(HEADER, [cell.row() for cell in self.cells])

    def differences(self) -> list[Cell]:
        """The cells that are not as published."""
        return [cell for cell in self.cells if cell.agrees is False]


def judged(
    columns: Sequence[Column],
    checks: Sequence[str],
    scores: Mapping[Trial, TrialScore],
    *,
    edition: Edition = "amended",
    grid: Grid = "full",
    repeats: int = 10,
) -> Sanity:
    """Mean curves from scores, and what the tests say of them."""
    curves = {
        (column.name, check, subcase): _mean_curve(column, check, subcase, scores, grid, repeats)
        for column in columns
        for check in checks
        for subcase in rules.subcases(check, edition)
    }
    cells = [
        _cell(column, name, lines, curves)
        for column in columns
        for name, lines in rules.cells(column.kind, edition).items()
        if name.check in checks
    ]
    return Sanity(tuple(columns), tuple(cells), curves)


def _mean_curve(
    column: Column, check: str, subcase: str, scores: Mapping[Trial, TrialScore], grid: Grid, repeats: int
) -> MeanCurve:
    values = CHECKS[check].grid(CHECKS[check].subcase(subcase), grid)
    means, counts = np.full(len(values), np.nan), np.zeros(len(values), np.int64)
    for at, value in enumerate(values):
        trials = [Trial(column.key, check, subcase, value_text(value), repeat) for repeat in range(repeats)]
        found = [scores[trial].score for trial in trials if trial in scores]
        counts[at] = len(found)
        if found:
            means[at] = float(np.mean(found))  # NaN when a repeat has no score: then neither has the mean
    return MeanCurve(Curve(values, means), counts)


def _cell(
    column: Column, name: CellName, lines: Sequence[Line], curves: Mapping[tuple[str, str, str], MeanCurve]
) -> Cell:
    published = _published()[column.kind].get((name.desideratum, CHECKS[name.check].title, *column.printed), "")
    looked_at = {line.subcase: curves[column.name, name.check, line.subcase] for line in lines}
    repeats = min(int(found.repeats.min()) for found in looked_at.values())
    if repeats == 0:
        return Cell(column, name.desideratum, name.check, None, published, None, "", 0)
    verdicts = [line.test.judge(looked_at[line.subcase].curve) for line in lines]
    outcome = merge(verdict.outcome for verdict in verdicts)
    if outcome == "F" and all(verdict.outcome != "F" for verdict in verdicts):
        said = {verdict.outcome: line.subcase for line, verdict in zip(lines, verdicts, strict=True)}
        both = f"L ({said['L']}) beside H ({said['H']})"
        return Cell(column, name.desideratum, name.check, outcome, published, None, both, repeats)
    slacks = [-np.inf if verdict.slack != verdict.slack else verdict.slack for verdict in verdicts]
    least = int(np.argmin(slacks))
    line, slack = lines[least], verdicts[least].slack
    decided = f"{line.subcase}: {line.test.name}" if line.subcase else line.test.name
    return Cell(
        column, name.desideratum, name.check, outcome, published, None if slack != slack else slack, decided, repeats
    )  # fmt: skip


@lru_cache(maxsize=1)
def _published() -> dict[str, dict[tuple[str, str, str, str], str]]:
    """Published letters by (desideratum, title of the check, printed metric, "0" or "1" for GICDM)."""
    return {
        kind: {(row["desideratum"], row["check"], row["metric"], row["gicdm"]): row["cell"] for row in read(name)}
        for kind, name in TABLES.items()
    }
