"""What a console and a notebook show of a run: its scores, what they say, and where the report lies."""

from __future__ import annotations

from typing import Any

from earmark.report.display import as_html, as_text, draw, remarks_on, table_of
from earmark.representations.runner import Run
from earmark.tables import Table
from earmark.wording import counted

__all__ = ["as_html", "as_text", "draw"]


@table_of.register
def _(run: Run) -> Table:
    return table_of(run.scores)


@remarks_on.register
def _(run: Run) -> list[str]:
    where = [f"Report: {run.report}"] if run.report else [f"Results: {run.folder}"]
    failed = [f"{counted(len(run.failures), 'failure')}: failures.csv says why."] if run.failures else []
    return [*run.answer, *run.lost, *where, *failed, *remarks_on(run.scores), *run.notes]


@draw.register
def _(run: Run, metric: str | None = None) -> Any:
    return draw(run.scores, metric=metric)
