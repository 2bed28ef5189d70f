"""What a console and a notebook show of an analysis: what each dataset adds, and the map of relations."""

from __future__ import annotations

from typing import Any

from earmark.analysis.study import Study
from earmark.report.analysis._figures import relation_map
from earmark.report.display import MOST_LINES, as_html, as_text, draw, remarks_on, table_of
from earmark.tables import Column, Table
from earmark.wording import counted

__all__ = ["as_html", "as_text", "draw"]


@table_of.register
def _(study: Study) -> Table:
    columns = [Column("dataset", "left"), Column("verdict", "left"), Column("closest", "left")]
    rows = [[verdict.dataset, verdict.verdict, verdict.closest or ""] for verdict in study.verdicts]
    models, datasets = study.matrix.values.shape
    title = f"Analysis of {counted(models, 'model')} on {counted(datasets, 'dataset')}"
    return Table(columns, rows[:MOST_LINES], title=title)


@remarks_on.register
def _(study: Study) -> list[str]:
    return list(study.warnings)


@draw.register
def _(study: Study) -> Any:
    return relation_map(study)
