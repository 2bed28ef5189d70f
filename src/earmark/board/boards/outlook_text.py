"""What a board would show if a submission were accepted, as lines for a terminal and as plain values for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from earmark.board.boards.outlook import Outlook, Place, RowChange, Standing
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


def outlook_text(seen: Outlook, notes: Sequence[str] = ()) -> Iterator[str]:
    """The outlook as lines for a terminal, the risks first."""
    yield from (f"look  {text}" for text in dict.fromkeys([*seen.warnings, *notes]))
    if seen.standings:
        head = ["system", "metric", "rank now", "rank then", "mean now", "mean then", "best so far"]
        yield from aligned([head, *map(_standing_cells, seen.standings)])
    if seen.moved:
        parts = [f"{each.system} {each.metric} {each.before} → {each.after}" for each in seen.moved]
        yield f"ranks of others: {first_of(parts, _NAMED)}"
    yield from (f"{each.system}: settings tried {each.before} → {each.after}" for each in seen.tried)
    yield from (f"{each.system}: isolation {each.isolation}; check {each.check}" for each in seen.codecs)
    if seen.rows:
        head = ["system", "subset", "metric", "setting", "now", "new", "difference", "best so far"]
        yield from aligned([head, *map(_row_cells, seen.rows)])


def _standing_cells(each: Standing) -> list[str]:
    ranks = [f"{place.rank or '–'} of {place.among}" if place else "–" for place in (each.before, each.after)]
    means = [_number(place.mean if place else None) for place in (each.before, each.after)]
    best = f"{each.best} {_number(each.best_mean)}" if each.best else "–"
    return [each.system, each.metric, *ranks, *means, best]


def _row_cells(change: RowChange) -> list[str]:
    row = change.row
    setting = "+".join(part for part in (row.distance, row.correction) if part and part != "none")
    best = f"{_number(change.best)} {change.best_system}" if change.best is not None else "–"
    difference = "–" if change.difference is None else f"{change.difference:+.4g}"
    values = [_number(change.old), _number(row.value), difference]
    return [row.system, row.subset or "all clips", row.metric, setting or "–", *values, best]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
