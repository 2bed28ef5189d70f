"""External validation for people: tables of probes and of what geometry predicts of them, and the figure behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from earmark.analysis.transfer import Relation
from earmark.report.figures.style import MUTED, axis_title, class_styles, grid, look, name_of, new_figure, nothing
from earmark.report.metric_text import heading, interval, number
from earmark.scores import Row
from earmark.tables import MISSING, Cell, Column, Table

_COLUMNS = 3
_MOST_PANELS = 9
_NAMED = 24


def probe_table(rows: Iterable[Row]) -> Table:
    """A line for each subset, system, probe and metric that has a value; what is to be known of them stands below."""
    kept = [row for row in rows if row.status == "ok" and row.value is not None]
    several = len({row.subset for row in kept}) > 1
    columns = [Column(name, "left") for name in ("subset", "system", "distance", "probe", "metric")]
    columns += [Column(name) for name in ("value", "95 % interval", "chance", "n")]
    notes = {note: number for number, note in enumerate(dict.fromkeys(filter(None, map(note_of, kept))), start=1)}
    lines = [
        [
            row.subset,
            row.system,
            row.distance,
            row.protocol,
            heading(row.metric),
            Cell(number(row.value or 0.0, row.metric), note=notes.get(note_of(row))),
            interval(row) or MISSING,
            MISSING if row.baseline is None else number(row.baseline, row.metric),
            MISSING if row.n is None else str(row.n),
        ]
        for row in kept
    ]
    first = 0 if several else 1
    return Table(columns[first:], [line[first:] for line in lines], title="Probes", footnotes=list(notes))


def note_of(row: Row) -> str:
    """What a reader must know of a value: its reason without what varies from fold to fold."""
    silent = ("sd over folds", "C ", "chosen by fold")
    return "; ".join(part for part in row.reason.split("; ") if not part.startswith(silent))


def relation_table(relations: Sequence[Relation]) -> Table:
    """A line for each relation: rho with its interval, and how many systems and models it rests on.

    Columns that are the same in every line are left out.
    """
    names = ["outcome", "predictor", "measured on", "protocol", "systems", "models", "Spearman", "95 % interval", "p"]
    names += ["Kendall"]
    notes = {note: number for number, note in enumerate(dict.fromkeys(filter(None, map(_remark, relations))), start=1)}
    rows: list[list[Any]] = [
        [
            item.target,
            item.title,
            item.over,
            item.protocol,
            str(len(item.witnesses)),
            str(item.units),
            Cell(_signed(item.rho), note=notes.get(_remark(item))),
            MISSING if item.low is None else f"[{_signed(item.low)}, {_signed(item.high)}]",
            MISSING if item.p_value is None else "<.001" if item.p_value < 0.001 else f"{item.p_value:.3f}",
            _signed(item.tau),
        ]
        for item in relations
    ]
    plain = {names.index(name) for name in ("outcome", "measured on", "protocol", "95 % interval", "p")}
    shown = [at for at in range(len(names)) if at not in plain or len({row[at] for row in rows}) > 1]
    title = "; ".join(
        f"{names[at]}: {rows[0][at]}" for at in range(4) if rows and at not in shown and rows[0][at] not in ("", "all")
    )
    columns = [Column(names[at], "left") if at < 4 else Column(names[at]) for at in shown]
    return Table(columns, [[row[at] for at in shown] for row in rows], title=title, footnotes=list(notes))


def _remark(item: Relation) -> str:
    """The reason, and how many systems share a value: ranks of ties rest on the few others."""
    values = Counter(point.predictor for point in item.witnesses)
    most = max(values.values(), default=0)
    tied = f"{most} of {len(item.witnesses)} systems have the same {item.predictor}" if most > 2 else ""
    return "; ".join(filter(None, [item.reason, tied]))


def _signed(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.2f}"


def transfer_figure(relations: Sequence[Relation]) -> Any:
    """A panel for each relation: every system by predictor and outcome, a colour and a marker for each model."""
    drawn = [item for item in relations if item.rho is not None][:_MOST_PANELS]
    if not drawn:
        raise nothing("a relation; it takes five systems that have both values")
    units = list(dict.fromkeys(point.unit for item in drawn for point in item.witnesses))
    styles = dict(zip(units, class_styles(units), strict=True))
    columns = min(_COLUMNS, len(drawn))
    lines = -(-len(drawn) // columns)
    legend = 0.5 + 0.22 * -(-len(units[:_NAMED]) // 4)
    with look():
        figure = new_figure(2.8 * columns + 0.2, 2.7 * lines + legend)
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, item in zip(panels, drawn, strict=False):
            _draw(axes, item, styles)
        for axes in panels[len(drawn) :]:
            axes.remove()
        handles = [
            panels[0].plot([], [], styles[unit][1], color=styles[unit][0], label=name_of(unit, 28))[0]
            for unit in units[:_NAMED]
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)))
    return figure


def _draw(axes: Any, item: Relation, styles: dict[str, tuple[str, str]]) -> None:
    for point in item.witnesses:
        colour, marker = styles[point.unit]
        axes.plot([point.predictor], [point.outcome], marker, color=colour, markersize=5, alpha=0.85)
    base = item.predictor.removesuffix(" lift")
    for axis, metric in ((axes.xaxis, base), (axes.yaxis, item.outcome)):
        axis.set_major_formatter(lambda value, _, metric=metric: number(value, metric).removesuffix(".0"))
    protocol = "" if item.protocol == "all" else f", {item.protocol.replace('_', ' ')}"
    axes.set_xlabel(f"{item.title}{protocol}\n{item.over}")
    task = "" if item.task == "all" else f", {item.task}"
    axes.set_ylabel(f"{axis_title(item.outcome)}\n{name_of(f'{item.subset}{task}', 34)}")
    interval = "" if item.low is None else f" [{_signed(item.low)}, {_signed(item.high)}]"
    axes.set_title(f"ρ = {_signed(item.rho)}{interval}", loc="left", color=MUTED, fontsize=8)
    axes.margins(0.1)
    grid(axes)
