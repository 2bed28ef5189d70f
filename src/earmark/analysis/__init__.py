"""A matrix of scores, models by datasets: relations, representative subsets, ranks, predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.analysis._naming import SystemParts, families_of, parts_of
    from earmark.analysis.intervals import interval_coverage, predict_rows
    from earmark.analysis.matrix import Matrix, from_scores, from_table
    from earmark.analysis.pareto import pareto_front
    from earmark.analysis.ranks import RankIntervals, rank_intervals, rank_models
    from earmark.analysis.sources import open_matrix
    from earmark.analysis.study import Study, analyze

__all__ = [
    "Matrix",
    "RankIntervals",
    "Study",
    "SystemParts",
    "analyze",
    "families_of",
    "from_scores",
    "from_table",
    "interval_coverage",
    "open_matrix",
    "pareto_front",
    "parts_of",
    "predict_rows",
    "rank_intervals",
    "rank_models",
]

__getattr__ = lazy_names(
    "earmark.analysis",
    {
        "Matrix": "matrix",
        "RankIntervals": "ranks",
        "Study": "study",
        "SystemParts": "_naming",
        "analyze": "study",
        "families_of": "_naming",
        "from_scores": "matrix",
        "from_table": "matrix",
        "interval_coverage": "intervals",
        "open_matrix": "sources",
        "pareto_front": "pareto",
        "parts_of": "_naming",
        "predict_rows": "intervals",
        "rank_intervals": "ranks",
        "rank_models": "ranks",
    },
)
