"""Fidelity of several generators against what people said of them, with the correlation of each metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earmark.analysis.human import HumanAgreement, HumanRelation
from earmark.report.figures import style
from earmark.report.figures.fidelity import draw_sets, drawable
from earmark.report.metric_text import facts
from earmark.scores import Row, Scores
from earmark.tables import p_value_text

CAPTION = (
    "Each generated set by {metric} and by what people said of it, hollow without GICDM and filled with it; bars are "
    "95 % intervals of the metric."
)


def against_judgements(
    scores: Scores, judgements: Mapping[str, float], human: HumanAgreement, distance: str, *, plane: bool = False
) -> Any:
    """The leading metric against the judgements; with `plane`, beside the plane of fidelity and coverage, if any."""
    metric = leading_metric(human, distance)
    plane = plane and drawable(scores, distance)
    with style.look():
        figure = style.new_figure(9.4 if plane else 4.8, 4.6)
        axes = figure.subplots(1, 2)[1] if plane else figure.add_subplot()
        if plane:
            draw_sets(figure.axes[0], scores, distance)
        _draw(axes, scores, judgements, human, distance, metric)
    return figure


def leading_metric(human: HumanAgreement, distance: str) -> str:
    """Clipped density, or the first metric that has a correlation."""
    known = [item.metric for item in human.relations if item.distance == distance and item.pearson is not None]
    if not known:
        raise style.nothing("a correlation with judgements")
    return "clipped_density" if "clipped_density" in known else known[0]


def _draw(
    axes: Any, scores: Scores, judgements: Mapping[str, float], human: HumanAgreement, distance: str, metric: str
) -> None:
    rows = {
        (row.correction, row.system): row for row in scores
        if row.distance == distance and row.metric == metric and row.value is not None and row.system in judgements
    }  # fmt: skip
    percent = 100.0 if facts(metric).percent else 1.0
    for name, (colour, marker) in style.looks(list(dict.fromkeys(system for _, system in rows))).items():
        for correction in ("none", "gicdm"):
            row = rows.get((correction, name))
            if row is not None:
                _mark(axes, row, judgements[name], percent, colour, marker)
    for item in human.relations:
        if (item.distance, item.metric) == (distance, metric) and item.pearson is not None:
            face = style.PAPER if item.correction == "none" else style.INK
            axes.plot([], [], "o", markerfacecolor=face, markeredgecolor=style.INK, linestyle="none", label=_said(item))
    axes.set(xlabel="judgement", ylabel=style.axis_title(metric))
    style.grid(axes, "both")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), handletextpad=0.2)


def _mark(axes: Any, row: Row, judged: float, percent: float, colour: str, marker: str) -> None:
    value = percent * (row.value or 0.0)
    if row.low is not None and row.high is not None:
        axes.plot([judged, judged], [percent * row.low, percent * row.high], color=colour, linewidth=1, alpha=0.6)
    face = style.PAPER if row.correction == "none" else colour
    axes.plot(judged, value, marker, markersize=7, markeredgecolor=colour, markerfacecolor=face, markeredgewidth=1.4)


def _said(item: HumanRelation) -> str:
    found = item.pearson
    assert found is not None
    ends = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
    p_value = "" if found.p_adjusted is None else f", {p_value_text(found.p_adjusted)}"  # for all metrics together
    return f"{'with' if item.correction == 'gicdm' else 'without'} GICDM: r = {found.value:.2f}{ends}{p_value}"
