"""What a board would show if a submission were accepted, as lines for a terminal and as plain values for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from earmark.board.boards.outlook import Outlook, Place, RowChange, Standing
from earmark.report.metric_text import facts, number
from earmark.scores import Metric
from earmark.tables import aligned
from earmark.wording import first_of

_NAMED = 5


def plain_outlook(seen: Outlook) -> dict[str, Any]:
    """The outlook as values that JSON can hold."""
    standings = [
        each._asdict() | {"before": _plain_place(each.before), "after": _plain_place(each.after)}
        for each in seen.standings
    ]
    rows = [
        each._asdict() | {"row": each.row.as_dict(), "difference": each.difference, "leads": each.leads}
        for each in seen.rows
    ]
    others = {name: [each._asdict() for each in getattr(seen, name)] for name in ("moved", "tried", "codecs")}
    return {"warnings": list(seen.warnings), "standings": standings, **others, "rows": rows}


def _plain_place(place: Place | None) -> dict[str, Any] | None:
    return place and place._asdict()


def outlook_text(seen: Outlook, notes: Sequence[str] = (), known: Callable[[str], Metric] = facts) -> Iterator[str]:
    """The outlook as lines for a terminal, the risks first; `known` is what the board knows of its metrics."""
    yield from (f"look  {text}" for text in dict.fromkeys([*seen.warnings, *notes]))
    if seen.standings:
        head = ["system", "metric", "rank now", "rank then", "mean now", "mean then", "best so far"]
        yield from aligned([head, *(_standing_cells(each, known(each.metric)) for each in seen.standings)])
    if seen.moved:
        parts = [f"{each.system} {each.metric} {each.before} → {each.after}" for each in seen.moved]
        yield f"ranks of others: {first_of(parts, _NAMED)}"
    yield from (f"{each.system}: settings tried {each.before} → {each.after}" for each in seen.tried)
    yield from (f"{each.system}: isolation {each.isolation}; check {each.check}" for each in seen.codecs)
    if seen.rows:
        head = ["system", "subset", "metric", "setting", "now", "new", "difference", "best so far"]
        yield from aligned([head, *(_row_cells(each, known(each.row.metric)) for each in seen.rows)])


def _standing_cells(each: Standing, metric: Metric) -> list[str]:
    ranks = [f"{place.rank or '–'} of {place.among}" if place else "–" for place in (each.before, each.after)]
    means = [_number(place.mean if place else None, metric) for place in (each.before, each.after)]
    best = f"{each.best} {_number(each.best_mean, metric)}" if each.best else "–"
    return [each.system, _heading(each.metric, metric), *ranks, *means, best]


def _row_cells(change: RowChange, metric: Metric) -> list[str]:
    row = change.row
    setting = "+".join(part for part in (row.distance, row.correction) if part and part != "none")
    best = f"{_number(change.best, metric)} {change.best_system}" if change.best is not None else "–"
    values = [_number(change.old, metric), _number(row.value, metric), _number(change.difference, metric, sign=True)]
    return [row.system, row.subset or "all clips", _heading(row.metric, metric), setting or "–", *values, best]


def _heading(name: str, metric: Metric) -> str:
    return f"{name} (%)" if metric.percent else name


def _number(value: float | None, metric: Metric, *, sign: bool = False) -> str:
    """A value as every table of Earmark writes it: a fraction in percent."""
    return "–" if value is None else number(value, metric, sign=sign)
