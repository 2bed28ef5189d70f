"""How often the intervals of fidelity metrics hold what they promise, by simulation.

A design says how a real and a generated set are drawn. The target is what the metric is on average over such pairs of
sets, of these sizes: not the value of two infinite sets. Pairs are drawn `repeats` times; each is measured with its
intervals, and coverage is the share of intervals that hold the target. The target is the mean over these pairs and
over `more` further ones that are measured without intervals.

>>> table = coverage(designs=["same 8-D"], repeats=200)
>>> print(table.to_text())
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from earmark.errors import UsageError, did_you_mean
from earmark.evaluation.options import whole
from earmark.generated.api import CORRECTIONS, INTERVALS, fidelity
from earmark.scores import Row
from earmark.tables import aligned

Floats = NDArray[np.float64]
Rng = np.random.Generator

REPEATS, MORE = 100, 300
KINDS = ("jackknife", "bootstrap")
MODES = 4
CLIPS = 10  # of a group


class Drawn(NamedTuple):
    """A real and a generated set, and the group of each point where points are not independent."""

    real: Floats
    generated: Floats
    real_groups: Sequence[Any] | None = None
    groups: Sequence[Any] | None = None


@dataclass(frozen=True)
class Design:
    """How a pair of sets is drawn."""

    name: str
    means: str
    draw: Callable[[Rng], Drawn]


def _cloud(rng: Rng, n: int, dims: int) -> Floats:
    return rng.normal(size=(n, dims))


def _same(n: int, dims: int) -> Callable[[Rng], Drawn]:
    return lambda rng: Drawn(_cloud(rng, n, dims), _cloud(rng, n, dims))


def _shifted(real: int, generated: int, dims: int) -> Callable[[Rng], Drawn]:
    step = 1.4 / math.sqrt(dims)
    return lambda rng: Drawn(_cloud(rng, real, dims), 0.9 * _cloud(rng, generated, dims) + step)


def _missing_mode(n: int, dims: int) -> Callable[[Rng], Drawn]:
    centres = 3.0 * np.random.default_rng(99).normal(size=(MODES, dims))

    def draw(rng: Rng) -> Drawn:
        picked = rng.integers(MODES, size=n), rng.integers(MODES - 1, size=n)
        real, generated = (centres[modes] + _cloud(rng, n, dims) for modes in picked)
        return Drawn(real, generated)

    return draw


def _grouped(units: int, dims: int) -> Callable[[Rng], Drawn]:
    """Clips of one group lie together: as many independent things as groups, ten times as many points."""

    def one(rng: Rng) -> Floats:
        return 0.6 * np.repeat(_cloud(rng, units, dims), CLIPS, axis=0) + 0.8 * _cloud(rng, units * CLIPS, dims)

    def draw(rng: Rng) -> Drawn:
        names = np.repeat(np.arange(units), CLIPS)
        return Drawn(one(rng), one(rng) + 0.2, [f"r{name}" for name in names], [f"g{name}" for name in names])

    return draw


def _paired(n: int, dims: int) -> Callable[[Rng], Drawn]:
    """Every generated point is a real one that was changed, as by a codec: a pair is one unit."""

    def draw(rng: Rng) -> Drawn:
        real = _cloud(rng, n, dims)
        return Drawn(real, 0.9 * real + 0.5 * _cloud(rng, n, dims), range(n), range(n))

    return draw


DESIGNS: dict[str, Design] = {
    design.name: design
    for design in (
        Design("same 8-D", "200 and 200 draws of one Gaussian", _same(200, 8)),
        Design("same 32-D", "the same in 32 dimensions", _same(200, 32)),
        Design("shifted 8-D", "400 and 400, the generator moved and narrower", _shifted(400, 400, 8)),
        Design("shifted 32-D", "200 and 200, the same in 32 dimensions", _shifted(200, 200, 32)),
        Design("missing mode 8-D", "200 and 200, the generator lacks one of four clusters", _missing_mode(200, 8)),
        Design("missing mode 32-D", "120 and 120, the same in 32 dimensions", _missing_mode(120, 32)),
        Design("few 8-D", "110 and 110, moved and narrower", _shifted(110, 110, 8)),
        Design("unequal 8-D", "300 real and 120 generated, moved and narrower", _shifted(300, 120, 8)),
        Design("20 groups 8-D", "20 groups of ten clips in each set, the generator moved", _grouped(20, 8)),
        Design("pairs 8-D", "200 real points and a changed version of each", _paired(200, 8)),
        Design("very few 8-D", "40 and 40, moved and narrower; too few for GICDM", _shifted(40, 40, 8)),
    )
}


class Cell(NamedTuple):
    """One kind of interval of one metric under one design.

    `coverage` is the share of intervals that hold `target`, `error` its Monte-Carlo standard error; `below` and `above`
    are the shares that lie wholly below and above it. `width` is the mean width over that of 2 * 1.96 true deviations:
    1 is as narrow as an honest interval can be. `missing` counts data sets without an interval.
    """

    design: str
    metric: str
    correction: str
    interval: str
    target: float
    deviation: float
    sets: int
    missing: int
    coverage: float
    error: float
    below: float
    above: float
    width: float


@dataclass(frozen=True)
class Coverage:
    """Coverage of intervals, a cell for each design, metric, correction and kind."""

    cells: tuple[Cell, ...]

    def select(self, **wanted: str) -> list[Cell]:
        return [cell for cell in self.cells if all(getattr(cell, name) == value for name, value in wanted.items())]

    def least(self, **wanted: str) -> Cell | None:
        """The cell that covers least."""
        return min((cell for cell in self.select(**wanted) if cell.sets), key=lambda cell: cell.coverage, default=None)

    def to_text(self) -> str:
        """A line for a metric, a column for a design; coverage in percent, `-` where there was no interval."""
        designs = list(dict.fromkeys(cell.design for cell in self.cells))
        blocks = []
        for kind in dict.fromkeys(cell.interval for cell in self.cells):
            lines = [[f"coverage of 95 % intervals, {kind}", *designs]]
            rows = dict.fromkeys((cell.correction, cell.metric) for cell in self.cells if cell.interval == kind)
            for correction, metric in rows:
                line = [metric + (" with GICDM" if correction == "gicdm" else "")]
                for design in designs:
                    found = self.select(design=design, metric=metric, correction=correction, interval=kind)
                    line.append(f"{100 * found[0].coverage:.0f}" if found and found[0].sets else "-")
                lines.append(line)
            blocks.append("\n".join(aligned(lines)))
        return "\n\n".join(blocks) + "\n"


def coverage(
    metrics: str | Sequence[str] | None = None,
    *,
    designs: Iterable[str] | None = None,
    correct: Sequence[str] = CORRECTIONS,
    intervals: Sequence[str] = KINDS,
    repeats: int = REPEATS,
    more: int = MORE,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[str, int], None] | None = None,
) -> Coverage:
    """Draw pairs of sets under every design, measure them with intervals, and count how often the target is held.

    `metrics` and `correct` are those of `earmark.fidelity`, `intervals` the kinds to try. `progress` is called with the
    design and the number of pairs drawn so far.
    """
    repeats, more = whole("repeats", repeats, 2), whole("more", more, 0)
    for kind in intervals:
        if kind not in INTERVALS[:-1]:
            raise UsageError(f"Unknown kind of intervals {kind!r}: choose from {', '.join(INTERVALS[:-1])}.")
    options: dict[str, Any] = {"metrics": metrics, "correct": correct, "threads": threads}
    cells: list[Cell] = []
    with threadpool_limits(threads, user_api="blas"):
        for design in _chosen(designs):
            found: dict[tuple[str, str], dict[str, list[Row]]] = {}
            values: dict[tuple[str, str], list[float]] = {}
            for number in range(repeats + more):
                # The sets of a design do not depend on how many are drawn.
                drawn = design.draw(np.random.default_rng([seed, number]))
                kinds = tuple(intervals) if number < repeats else ("none",)
                for kind in kinds:
                    scores = fidelity(
                        drawn.real, drawn.generated, intervals=kind, groups=drawn.groups,
                        real_groups=drawn.real_groups, seed=number, **options,
                    )  # fmt: skip
                    for row in scores:
                        key = row.correction, row.metric
                        if number < repeats:
                            found.setdefault(key, {}).setdefault(kind, []).append(row)
                        if kind == kinds[0] and row.value is not None:
                            values.setdefault(key, []).append(row.value)
                if progress is not None:
                    progress(design.name, number + 1)
            for key, measured in values.items():
                for kind, rows in found.get(key, {}).items():
                    cells.append(_cell(design.name, kind, rows, np.asarray(measured)))
    return Coverage(tuple(sorted(cells, key=lambda cell: intervals.index(cell.interval))))


def _cell(design: str, kind: str, rows: list[Row], values: Floats) -> Cell:
    target, deviation = float(values.mean()), float(values.std(ddof=1))
    held = np.array([(row.low, row.high) for row in rows if row.low is not None and row.high is not None], np.float64)
    about = design, rows[0].metric, rows[0].correction, kind, target, deviation
    if not len(held):
        return Cell(*about, 0, len(rows), math.nan, math.nan, math.nan, math.nan, math.nan)
    # A target that all values share is met although it was summed up.
    slack = 1e-9 * max(abs(target), 1.0)
    above, below = held[:, 0] > target + slack, held[:, 1] < target - slack
    share = 1.0 - float((above | below).mean())
    width = float(np.diff(held, axis=1).mean()) / (2 * 1.96 * deviation) if deviation > 0.0 else math.nan
    error = math.sqrt(share * (1.0 - share) / len(held))
    missing = len(rows) - len(held)
    return Cell(*about, len(held), missing, share, error, float(below.mean()), float(above.mean()), width)


def _chosen(names: Iterable[str] | None) -> list[Design]:
    if names is None:
        return list(DESIGNS.values())
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        if name not in DESIGNS:
            raise UsageError(f"There is no design {name!r}.{did_you_mean(name, DESIGNS)} Known: {', '.join(DESIGNS)}.")
    if not asked:
        raise UsageError("No design is left to draw from: name at least one.")
    return [DESIGNS[name] for name in asked]
