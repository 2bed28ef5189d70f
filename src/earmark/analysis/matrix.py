"""The performance matrix: models x datasets, which way is up in each column, what chance reaches, who is kin to whom.

Everything in this room starts from a `Matrix` and works on `normalised()`, in which 0 is chance and 1 the best possible
value of a dataset, whatever its metric. A missing value is NaN inside the array and never leaves it as a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.errors import InputError, UsageError, did_you_mean, quoted
from earmark.scores import Scores, metric_facts
from earmark.scores.spelling import refuse_shared
from earmark.wording import counted

Floats = NDArray[np.float64]
Level = Mapping[str, float] | float | None
"""A number for each dataset by name, one for all, or None for the default."""

MIXED_SCALE = 1.5
"""A column whose largest value passes this is not a fraction; overall scores of codecs reach 1.03."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Scores of models on datasets.

    values            [models, datasets] as given; NaN where a model has no score
    higher_is_better  for each dataset
    chance, best      for each dataset: the value of a model that knows nothing, and the best possible value
    families          for each model; models of one family are versions of each other and are held out together
    bounds            between which every possible value lies, measured or not; infinite where the metric is not known
    """

    values: Floats
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    higher_is_better: tuple[bool, ...]
    chance: Floats
    best: Floats
    families: tuple[str, ...]
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        m, d = len(self.models), len(self.datasets)
        if self.values.shape != (m, d):
            shape = " x ".join(str(size) for size in self.values.shape)
            raise UsageError(f"The values are {shape} for {counted(m, 'model')} and {counted(d, 'dataset')}.")
        for name, column, size in (
            ("higher_is_better", self.higher_is_better, d),
            ("chance", self.chance, d),
            ("best", self.best, d),
            ("families", self.families, m),
        ):
            if len(column) != size:
                raise UsageError(f"{name} has {len(column)} entries where {size} are needed.")
        for names, kind in ((self.models, "model"), (self.datasets, "dataset")):
            for name, times in Counter(names).items():
                if times > 1:
                    raise InputError(f"The {kind} {quoted(name)} appears twice; give each {kind} a name of its own.")
        if np.isinf(self.values).any():
            row, column = np.argwhere(np.isinf(self.values))[0]
            raise InputError(
                f"{quoted(self.models[row])} has an infinite score on {quoted(self.datasets[column])}; "
                "leave a missing value empty."
            )
        for name, chance, best in zip(self.datasets, self.chance, self.best, strict=True):
            if not (np.isfinite(chance) and np.isfinite(best)) or chance == best:
                raise InputError(
                    f"Dataset {quoted(name)} has chance {chance:g} and best value {best:g}; give two different numbers."
                )

    def normalised(self, *, clip: bool = True) -> Floats:
        """(x - chance) / (best - chance) for each dataset: 0 is chance, 1 the best, larger is better.

        With `clip` (SimBA's equation 1) what is below chance becomes 0. Where lower is better, best < chance and the
        same formula turns the column round.
        """
        scaled = (self.values - self.chance) / (self.best - self.chance)
        return np.where(scaled < 0, 0.0, scaled) if clip else scaled

    def oriented(self) -> Floats:
        """The values, with the sign changed where lower is better."""
        return self.values * np.where(self.higher_is_better, 1.0, -1.0)

    def take(self, models: ArrayLike | None = None, datasets: ArrayLike | None = None) -> Matrix:
        """The matrix of some rows and some columns, by index."""
        rows = np.arange(len(self.models)) if models is None else np.asarray(models, np.int64)
        columns = np.arange(len(self.datasets)) if datasets is None else np.asarray(datasets, np.int64)
        return replace(
            self,
            values=self.values[np.ix_(rows, columns)],
            models=tuple(self.models[i] for i in rows),
            datasets=tuple(self.datasets[j] for j in columns),
            higher_is_better=tuple(self.higher_is_better[j] for j in columns),
            chance=self.chance[columns],
            best=self.best[columns],
            families=tuple(self.families[i] for i in rows),
        )

    def present(self) -> Matrix:
        """Without the models and the datasets that have no value at all."""
        known = np.isfinite(self.values)
        return self.take(np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0)))

    def complete(self, drop: Literal["auto", "models", "datasets"] = "auto") -> Matrix:
        """Without gaps: `models` drops every row that has one, `datasets` every column.

        `auto` drops, again and again, the row or the column with the largest share of gaps (a row where shares are
        equal, the first of equals), which keeps most cells of most matrices. InputError when nothing is left.
        """
        missing = ~np.isfinite(self.values)
        rows, columns = np.arange(missing.shape[0]), np.arange(missing.shape[1])
        if drop == "models":
            rows = rows[~missing.any(axis=1)]
        elif drop == "datasets":
            columns = columns[~missing.any(axis=0)]
        elif drop == "auto":
            while rows.size and columns.size and missing[np.ix_(rows, columns)].any():
                left = missing[np.ix_(rows, columns)]
                of_rows, of_columns = left.mean(axis=1), left.mean(axis=0)
                if of_rows.max() >= of_columns.max():
                    rows = np.delete(rows, of_rows.argmax())
                else:
                    columns = np.delete(columns, of_columns.argmax())
        else:
            raise UsageError(f'drop is "auto", "models" or "datasets", not {drop!r}.')
        if not rows.size or not columns.size:
            raise InputError(
                f"No part of the matrix is complete ({missing.sum()} of {counted(missing.size, 'value')} are missing); "
                "give more scores."
            )
        return self.take(rows, columns)

    @property
    def grouped(self) -> bool:
        """Whether some family has more than one model."""
        return len(set(self.families)) < len(self.families)


def from_table(
    values: ArrayLike,
    models: Iterable[str],
    datasets: Iterable[str],
    *,
    lower_is_better: Iterable[str] = (),
    chance: Level = None,
    best: Level = None,
    families: Mapping[str, str] | Sequence[str] | None = None,
) -> Matrix:
    """A matrix from an array [models, datasets] in which NaN is a missing value.

    The defaults of a dataset follow from its values: a column of fractions ends at 1, a column of percentages at 100,
    any other at its largest value; chance is 0. Where lower is better, the two change places. `families` names a family
    for some models (by model) or for all of them (in order); a model without one is a family of its own.
    """
    array = np.array(values, np.float64, ndmin=2)
    models, datasets = tuple(models), tuple(datasets)
    if array.shape != (len(models), len(datasets)):
        raise UsageError(
            f"The values are {' x '.join(map(str, array.shape))} for {counted(len(models), 'model')} and "
            f"{counted(len(datasets), 'dataset')}."
        )
    if isinstance(families, Mapping):
        families = [families.get(model, model) for model in models]
    down = set(lower_is_better)
    _known(down, datasets, "lower_is_better")
    top = np.array([_natural_end(array[:, j]) for j in range(len(datasets))])
    upward = np.array([name not in down for name in datasets], bool)
    return Matrix(
        values=array,
        models=models,
        datasets=datasets,
        higher_is_better=tuple(bool(up) for up in upward),
        chance=_level(chance, datasets, np.where(upward, 0.0, top), "chance"),
        best=_level(best, datasets, np.where(upward, top, 0.0), "best"),
        families=models if families is None else tuple(families),
    )


def from_scores(
    scores: Scores,
    metric: str | None = None,
    *,
    distance: str | None = None,
    correction: str | None = None,
    protocol: str | None = None,
    suite: str | None = None,
    chance: Level = None,
    best: Level = None,
    families: Mapping[str, str] | None = None,
) -> Matrix:
    """The matrix systems x subsets of one metric of a score table.

    A system that was measured under several distances (corrections, protocols) is several models, `system / distance`,
    and they are one family unless `families`, by system or by model, says otherwise. Rows that are means over subsets
    or that carry label noise are left out; a row that is not ok is a missing value. Direction and range are those of
    the metric; chance is its lower end (0, or for a metric that is better low, its upper end).
    """
    if metric is None:
        metrics = list(dict.fromkeys(row.metric for row in scores.rows))
        if len(metrics) != 1:
            listed = ", ".join(metrics[:8]) or "none"
            raise UsageError(f"The score table has {counted(len(metrics), 'metric')} ({listed}); choose one.")
        metric = metrics[0]
    asked = {"distance": distance, "correction": correction, "protocol": protocol, "suite": suite}
    filters: dict[str, object] = {name: wanted for name, wanted in asked.items() if wanted is not None}
    rows = [row for row in scores.select(metric=metric, **filters).rows if row.single]
    if not rows:
        scores.row(metric, **filters)  # says which filter leaves nothing
        raise InputError(f"The score table has only means over subsets for {metric}; give the rows of the subsets.")
    varying = [name for name in ("distance", "correction", "protocol") if len({getattr(r, name) for r in rows}) > 1]
    suites = list(dict.fromkeys(row.suite for row in rows))
    refuse_shared((f"{row.suite}/{row.subset}" if len(suites) > 1 else row.subset for row in rows), "datasets")
    cells: dict[tuple[str, str], float] = {}
    system_of: dict[str, str] = {}
    for row in rows:
        model = " / ".join([row.system, *(getattr(row, name) for name in varying)])
        dataset = f"{row.suite}/{row.subset}" if len(suites) > 1 else row.subset
        if (model, dataset) in cells:
            raise InputError(
                f"{quoted(model)} has two rows for {metric} on {quoted(dataset)}; merge the table, keeping one."
            )
        cells[model, dataset] = row.value if row.status == "ok" and row.value is not None else np.nan
        system_of[model] = row.system
    datasets = list(dict.fromkeys(dataset for _, dataset in cells))
    values = [[cells.get((model, dataset), np.nan) for dataset in datasets] for model in system_of]
    facts = metric_facts(metric)
    low, high = (end if np.isfinite(end) else None for end in facts.range)
    floor = 0.0 if low is None or low < 0 else low  # a range that begins below 0 has its chance at 0
    if high is not None and 1.0 < high <= MIXED_SCALE:
        high = 1.0  # `overall` may pass 1 by a little; 1 is still what is aimed at
    ends = (floor, high) if facts.higher_is_better else (high, floor)
    family = {
        model: (families or {}).get(model, (families or {}).get(system, system)) for model, system in system_of.items()
    }
    matrix = from_table(
        values,
        system_of,
        datasets,
        lower_is_better=() if facts.higher_is_better else datasets,
        chance=ends[0] if chance is None else chance,
        best=ends[1] if best is None else best,
        families=family,
    )
    return replace(matrix, bounds=facts.range)


def usable(matrix: Matrix, *, models: int = 3, datasets: int = 2) -> Matrix:
    """The matrix without empty rows and columns, or InputError when too little is left to compare."""
    left = matrix.present()
    for names, least, kind in ((left.models, models, "model"), (left.datasets, datasets, "dataset")):
        if len(names) < least:
            raise InputError(
                f"The matrix has {counted(len(names), kind)} with scores; this needs at least {least}: add {kind}s."
            )
    return left


def _natural_end(column: Floats) -> float:
    known = column[np.isfinite(column)]
    top = float(known.max()) if known.size else 1.0
    return 1.0 if top <= MIXED_SCALE else 100.0 if top <= 100.0 else top


def _level(given: Level, datasets: tuple[str, ...], default: Floats, name: str) -> Floats:
    if given is None:
        return default
    if isinstance(given, Mapping):
        _known(given, datasets, name)
        return np.array([float(given.get(dataset, usual)) for dataset, usual in zip(datasets, default, strict=True)])
    return np.full(len(datasets), float(given))


def _known(names: Iterable[str], datasets: Sequence[str], option: str) -> None:
    for name in names:
        if name not in datasets:
            raise UsageError(f"{option} names {quoted(name)}, which is not a dataset.{did_you_mean(name, datasets)}")
