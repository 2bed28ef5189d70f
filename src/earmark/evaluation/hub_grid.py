"""Every hubness correction at the neighbourhood that serves it best, on several data sets, with mean ranks over them.

    best K          of a grid, the K with the lowest hub ratio on that data set: as the GICDM paper reports it. The K is
                    chosen by the very number that is reported, so the number is too good
    K from others   the K with the lowest mean hub ratio over the *other* data sets: what one would have taken without
                    looking at this one. It needs two data sets
    mean rank       over data sets, 1 for the lowest value, equals share the mean of their ranks

The same table from printed values: `published_grid`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.evaluation._verbs import study_hubness
from earmark.geometry.correction_names import CORRECTIONS, Correction
from earmark.progress import progress_bar
from earmark.published import load, read
from earmark.scores import Row, Scores

Floats = NDArray[np.float64]

GRID = (5, 10, 20, 50)
MEASURES = ("hub_ratio", "antihub_rate")


class BestSize(NamedTuple):
    """A correction on a data set at its best K (None where it has none), and at the K that other data sets choose."""

    dataset: str
    distance: str
    correction: str
    k: int | None
    hub_ratio: float | None
    antihub_rate: float | None
    k_elsewhere: int | None = None
    hub_ratio_elsewhere: float | None = None
    reason: str = ""


class MeanRank(NamedTuple):
    """A correction over all data sets that have every correction: mean ranks, and mean values."""

    correction: str
    hub_rank: float
    hub_ratio: float
    antihub_rank: float
    antihub_rate: float


@dataclass(frozen=True, eq=False)
class HubGrid:
    """The best of each correction by data set, the data sets, and the rows of everything that was tried."""

    best: tuple[BestSize, ...]
    scores: Scores
    grid: tuple[int, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.dataset for line in self.best))

    @property
    def distances(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.distance for line in self.best))

    def whole_sets(self, distance: str | None = None) -> dict[str, dict[str, BestSize]]:
        """The data sets on which every correction was measured, by name: those that means and ranks are over."""
        lines = [line for line in self.best if distance in (None, line.distance)]
        corrections = {line.correction for line in lines}
        by_set: dict[str, dict[str, BestSize]] = {}
        for line in lines:
            if line.hub_ratio is not None and line.antihub_rate is not None:
                by_set.setdefault(line.dataset, {})[line.correction] = line
        return {name: found for name, found in by_set.items() if len(found) == len(corrections)}

    def mean_ranks(self, distance: str | None = None) -> list[MeanRank]:
        """Best first, over the `whole_sets`."""
        whole = list(self.whole_sets(distance).values())
        if not whole:
            return []
        corrections = list(dict.fromkeys(line.correction for line in self.best if distance in (None, line.distance)))
        tables = {
            name: np.array([[float(getattr(found[one], name)) for one in corrections] for found in whole])
            for name in MEASURES
        }
        ranks = {name: np.mean([_ranks(line) for line in table], axis=0) for name, table in tables.items()}
        found = [
            MeanRank(
                name, float(ranks["hub_ratio"][at]), float(tables["hub_ratio"][:, at].mean()),
                float(ranks["antihub_rate"][at]), float(tables["antihub_rate"][:, at].mean()),
            )
            for at, name in enumerate(corrections)
        ]  # fmt: skip
        return sorted(found, key=lambda line: (line.hub_rank, line.hub_ratio))


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values))


def hubness_grid(
    sets: Mapping[str, Any], *, grid: Sequence[int] = GRID, k: int = 5, distance: str | Sequence[str] = "cosine",
    correct: Sequence[str] = CORRECTIONS, progress: bool = False, **options: Any,
) -> HubGrid:  # fmt: skip
    """Measure every correction at every K of a grid on every data set.

    Args:
        sets: Vectors by the name of the data set or model.
        grid: Neighbourhoods that are tried, for corrections that have one.
        k: Length of the neighbour lists that hubness is measured on.
        distance: One or several of cosine, euclidean, spearman.
        correct: Names of corrections, without parameters.
        progress: Whether a bar on stderr shows how far the work is.
        options: Further arguments of `earmark.hubness`: ties, device, memory, threads, suite.
    """
    sizes = tuple(dict.fromkeys(grid))
    if not sizes or min(sizes) < 1:
        raise UsageError(f"The grid needs whole numbers from 1 on, not {list(grid)}.")
    if unknown := [name for name in correct if name not in CORRECTIONS]:
        raise UsageError(
            f"{unknown[0]!r} is no correction without parameters: the grid varies K itself; choose from "
            f"{', '.join(CORRECTIONS)}."
        )
    rows: list[Row] = []
    tried = [Correction(name, k=size) for name in correct for size in (sizes if Correction(name).local else (10,))]
    with progress_bar(progress, len(sets) * len(tried), "hubness", "correction") as tick:
        for name, vectors in sets.items():
            for one in tried:
                study = study_hubness(vectors, k=k, distance=distance, correct=[one], subset=name, **options)
                rows += study.scores.rows
                tick(1)
    best = _best(rows, list(sets), [Correction(name) for name in correct], sizes)
    return HubGrid(tuple(best), Scores(rows=tuple(rows)), sizes)


def _best(
    rows: Sequence[Row], datasets: Sequence[str], corrections: Sequence[Correction], sizes: Sequence[int]
) -> list[BestSize]:
    found = {(row.distance, row.subset, row.correction, row.metric): row for row in rows}
    lines = []
    for distance in dict.fromkeys(row.distance for row in rows):
        for one in corrections:
            choices = [Correction(one.name, k=size) for size in sizes] if one.local else [one]
            ratios = np.array([
                [_value(found[distance, name, str(choice), "hub_ratio"]) for choice in choices] for name in datasets
            ])  # fmt: skip
            for at, name in enumerate(datasets):
                lines.append(_line(found, distance, name, choices, ratios, at))
    return sorted(lines, key=lambda line: (datasets.index(line.dataset), line.distance))


def _line(
    found: Mapping[tuple[str, str, str, str], Row], distance: str, name: str, choices: Sequence[Correction],
    ratios: Floats, at: int,
) -> BestSize:  # fmt: skip
    one = choices[0]
    if np.isnan(ratios[at]).all():
        reason = found[distance, name, str(one), "hub_ratio"].reason
        return BestSize(name, distance, one.name, None, None, None, reason=reason)
    antihubs = np.array([_value(found[distance, name, str(choice), "antihub_rate"]) for choice in choices])
    place = int(np.lexsort((antihubs, ratios[at]))[0])  # NaN comes last
    line = BestSize(
        name,
        distance,
        one.name,
        choices[place].k if one.local else None,
        float(ratios[at, place]),
        float(antihubs[place]),
    )
    others = np.delete(ratios, at, axis=0)
    usable = np.flatnonzero(np.isfinite(others).all(axis=0) & np.isfinite(ratios[at]))
    if not one.local or not len(others) or not len(usable):
        return line
    taken = int(usable[np.argmin(others[:, usable].mean(axis=0))])
    return line._replace(k_elsewhere=choices[taken].k, hub_ratio_elsewhere=float(ratios[at, taken]))


def _value(row: Row) -> float:
    return np.nan if row.value is None else row.value


def published_grid() -> HubGrid:
    """Tables 9 to 11 of the GICDM paper: the best K of each correction on 17 pairs of embedding and data set."""
    best = [
        BestSize(
            f"{cell['embedding']} {cell['dataset']}", "euclidean", spelled(cell["method"]),
            int(cell["K"]) if cell["K"] else None, float(cell["hub_ratio"]), float(cell["antihub_rate"]),
        )
        for cell in read("gicdm_hubness_tables") if cell["table"] in ("9", "10", "11")
    ]  # fmt: skip
    rows = tuple(row for row in load("gicdm-hubness") if row.subset != "mean")
    return HubGrid(tuple(best), Scores(rows=rows), GRID)


def spelled(method: str) -> str:
    """A method of the paper as corrections are spelled here."""
    return "none" if method == "Original" else method.lower().removesuffix("^gauss")
