"""The tables of a study, each by the name of its file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from earmark.analysis.beams import beam_changes
from earmark.analysis.matrix import Matrix
from earmark.analysis.pounce import Pounce
from earmark.analysis.stalk import KINDS
from earmark.analysis.suite import LiteSuite

if TYPE_CHECKING:
    from earmark.analysis.study import Study

Rows = Sequence[Sequence[object]]


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: Rows


def study_tables(study: Study) -> dict[str, Table]:
    """Every table that has rows."""
    coverage = [(selection.name, selection.coverage) for selection in study.prowl.selections]
    if study.prowl.random.coverage.size:
        coverage.insert(0, ("random", study.prowl.random.coverage.mean(axis=0)))
    exact = [
        [len(s.members), s.value, s.swapped, " ".join(study.prowl.datasets[j] for j in s.members)] for s in study.exact
    ]
    tables = {
        "matrix": _matrix_table(study.matrix),
        "relations_of_datasets": _relations(study.stalk.datasets),
        "relations_of_models": _relations(study.stalk.models),
        "representative_subsets": _records(study.prowl.rows()),
        "coverage_curves": _curves(coverage),
        "exact_subsets": Table(("size", "coverage", "swapped", "datasets"), exact),
        "beam_widths": _records(study.beam_rows()),
        "beam_changes": _records(beam_changes(study.beams)),
        "prediction_errors": _records(study.pounce_rows()),
        "prediction_curves": _curves(_errors(study)),
        "prediction_noise": _records(study.noise_rows()),
        "prediction_folds": _records(study.fold_rows()),
        "fold_errors": _folds(study.folds),
        "interval_coverage": _records(study.coverage.rows() if study.coverage else ()),
        "ranks": _records(study.ranks.rows if study.ranks else ()),
        "novelty": _records(study.verdicts),
        "agreement_of_distances": _records(study.distances),
        "agreement_of_metrics": _records(study.metrics),
        "vocsim_table12": _records(study.printed_metrics),
        "lite_suite": _combinations(study.lite),
    }
    return {name: table for name, table in tables.items() if table.rows}


def finite(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record for JSON, which has no NaN."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in record.items()
    }


def _errors(study: Study) -> list[tuple[str, Any]]:
    """The curve of each regressor: `ridge`; and under noise: `ridge, noise 0.05`."""
    curves = [(forecast.regressor, forecast.curve) for forecast in (study.pounce.forecasts if study.pounce else ())]
    for found in study.noise:
        curves += [(f"{forecast.regressor}, noise {found.noise:g}", forecast.curve) for forecast in found.forecasts]
    return curves


def _folds(found: Pounce | None) -> Table:
    """A line for each fold, a column for each regressor."""
    forecasts = found.forecasts if found else ()
    folds = list(forecasts[0].by_split) if forecasts else []
    rows = [[fold, *(forecast.by_split[fold] for forecast in forecasts)] for fold in folds]
    return Table(("fold", *(forecast.regressor for forecast in forecasts)), rows)


def _matrix_table(matrix: Matrix) -> Table:
    rows = [
        [model, family, *("" if np.isnan(value) else float(value) for value in line)]
        for model, family, line in zip(matrix.models, matrix.families, matrix.values, strict=True)
    ]
    return Table(("model", "family", *matrix.datasets), rows)


def _relations(found: Any) -> Table:
    names = found.names
    rows = [
        [names[i], names[j], KINDS[found.kind[i, j]], float(found.r2[i, j])]
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]
    return Table(("one", "other", "relation", "r2"), rows)


def _curves(curves: Sequence[tuple[str, Any]]) -> Table:
    """A line for each size of subset, a column for each curve."""
    sizes = range(len(curves[0][1]) if curves else 0)
    rows = [[size + 1, *(float(curve[size]) for _, curve in curves)] for size in sizes]
    return Table(("size", *(name for name, _ in curves)), rows)


def _records(records: Sequence[Any]) -> Table:
    """A line for each record: a mapping, or a named tuple."""
    rows = [record if isinstance(record, Mapping) else record._asdict() for record in records]
    header = tuple(rows[0]) if rows else ()
    return Table(header, [[_plain(row[name]) for name in header] for row in rows])


def _combinations(lite: LiteSuite | None) -> Table:
    entries = dict.fromkeys((*lite.front, lite.chosen, lite.whole)) if lite else {}
    chosen = lite.chosen.members if lite else ()
    rows = [[" ".join(e.members), e.seconds, e.coverage, e.error, int(e.members == chosen)] for e in entries]
    return Table(("subsets", "seconds_of_sound", "coverage", "error_share", "chosen"), rows)


def _plain(cell: object) -> object:
    if cell is None:
        return ""
    return " ".join(str(item) for item in cell) if isinstance(cell, list | tuple) else cell
