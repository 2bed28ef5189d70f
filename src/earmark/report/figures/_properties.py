"""Figures of what scores follow from: the metric against clips, classes, clips per class, duration and domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from earmark.analysis.similarities import rank_correlations
from earmark.report.content import SubsetFacts
from earmark.report.figures.style import COLOURS, INK, MUTED, axis_title, grid, look, name_of, new_figure, nothing
from earmark.report.metric_text import number
from earmark.report.score_index import Representation, ScoreIndex, as_index, best_on_average
from earmark.scores import Row, Scores
from earmark.tables import MINUS, MISSING

ENOUGH_SUBSETS = 4
_WIDTH = 7.6
_PROPERTIES: dict[str, Callable[[SubsetFacts], float]] = {
    "clips": lambda item: float(item.clips),
    "classes": lambda item: float(item.classes),
    "clips per class": lambda item: item.clips / max(item.classes, 1),
    "mean duration (s)": lambda item: item.durations.mean if item.durations else float("nan"),
}


def trends(scores: Scores | ScoreIndex, subsets: Sequence[SubsetFacts], metric: str | None = None) -> Any:
    """The metric against what is known of the subsets: clips, classes, clips per class, duration, domain.

    Small grey points are representations; the coloured ones, named, are the best over all subsets. rho is their
    rank correlation with the property, over as many subsets as n says.
    """
    index = as_index(scores)
    metric = metric or index.headline
    found = index.values(metric)
    known = {(item.suite, item.subset): item for item in subsets}
    pairs = [(place, known[place], rows) for place, rows in found.items() if place in known]
    if len(pairs) < 2:
        raise nothing("a trend; it takes two subsets with known properties")
    best = best_on_average({place: rows for place, _, rows in pairs}, metric)
    domains = list(dict.fromkeys(item.domain for _, item, _ in pairs if item.domain))
    measured = {name: [read(item) for _, item, _ in pairs] for name, read in _PROPERTIES.items()}
    panels = [(name, at) for name, at in measured.items() if _varies(at)]
    count = len(panels) + (len(domains) > 1)
    if not count:
        raise nothing("a trend; the subsets do not differ in what is known of them")
    columns = 2 if count in (2, 4) else min(3, count)
    with look():
        figure = new_figure(_WIDTH, (2.9 if domains[1:] else 2.5) * -(-count // columns))
        spots = figure.subplots(-(-count // columns), columns, sharey=True, squeeze=False).ravel()
        for axes, (name, at) in zip(spots, panels, strict=False):
            _draw_trend(axes, name, at, [rows for *_, rows in pairs], [place.label for place, *_ in pairs], best)
        if len(domains) > 1:
            _draw_domains(spots[len(panels)], domains, [(item.domain, rows) for _, item, rows in pairs], best)
        for axes in spots[count:]:
            axes.remove()
        for axes in spots[:count:columns]:
            axes.set_ylabel(axis_title(metric))
        spots[0].yaxis.set_major_formatter(lambda value, _: number(value, metric).removesuffix(".0"))
    return figure


def _varies(at: list[float]) -> bool:
    """Two values are a comparison, not a trend."""
    return bool(np.isfinite(at).all()) and len(set(at)) >= min(3, len(at))


def _draw_trend(
    axes: Any, name: str, at: list[float], rows: list[dict[Representation, Row]], places: list[str],
    best: Representation | None,
) -> None:  # fmt: skip
    for x, found in zip(at, rows, strict=True):
        axes.plot([x] * len(found), [row.value for row in found.values()], "o", color=MUTED, markersize=2, alpha=0.5)
    wide = max(at) > 8 * max(min(at), 1e-9)
    if wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
    if best is not None:
        values = [found[best].value or 0.0 for found in rows]
        axes.plot(at, values, "o", color=COLOURS[0], markersize=5)
        _name_points(axes, at, values, places, wide)
        if len(at) >= ENOUGH_SUBSETS:
            axes.set_title(f"ρ = {_rank_correlation(at, values)} (n = {len(at)})", loc="right", color=MUTED, fontsize=8)
    axes.margins(x=0.18, y=0.18)
    axes.set_xlabel(name)
    grid(axes)


def _name_points(axes: Any, at: list[float], values: list[float], places: list[str], wide: bool) -> None:
    """Names beside their points; one that would cover another is left out."""
    across = np.log(at) if wide else np.asarray(at)
    spread = float(np.ptp(across)) or 1.0
    rise = max((axes.get_ylim()[1] - axes.get_ylim()[0]), 1e-9)
    taken: list[tuple[float, float]] = []
    for x, place, value, name in sorted(zip(across, at, values, places, strict=True), key=lambda item: -item[2]):
        if all(abs(x - a) / spread > 0.25 or abs(value - b) / rise > 0.07 for a, b in taken):
            axes.annotate(
                name_of(name, 12), (place, value), (4, 4), textcoords="offset points", fontsize=7, color=MUTED
            )
            taken.append((x, value))


def _rank_correlation(one: Sequence[float], other: Sequence[float]) -> str:
    if min(np.ptp(one), np.ptp(other)) == 0:
        return MISSING
    rho = rank_correlations(np.array(one)[:, None], np.array(other)[:, None])[0, 0]
    return f"{rho:+.2f}".replace("-", MINUS)


def _draw_domains(
    axes: Any, domains: list[str], found: list[tuple[str, dict[Representation, Row]]], best: Representation | None
) -> None:
    for place, domain in enumerate(domains):
        values = [row.value or 0.0 for name, rows in found if name == domain for row in rows.values()]
        muted = {part: {"color": MUTED} for part in ("boxprops", "whiskerprops", "capprops")}
        axes.boxplot(values, positions=[place], widths=0.5, showfliers=False, medianprops={"color": INK}, **muted)
        shift = np.linspace(-0.12, 0.12, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(place + shift, values, "o", color=MUTED, markersize=2, alpha=0.5)
        mine = [rows[best].value for name, rows in found if name == domain and best is not None and best in rows]
        axes.plot([place] * len(mine), mine, "o", color=COLOURS[0], markersize=5)
    counts = {name: sum(name == domain for domain, _ in found) for name in domains}
    axes.set_xticks(range(len(domains)), [f"{name_of(name, 20)} ({counts[name]})" for name in domains])
    axes.tick_params(axis="x", rotation=25 if len(domains) > 2 else 0, length=0)
    for label in axes.get_xticklabels():
        label.set_ha("right" if len(domains) > 2 else "center")
    axes.set_xlabel("domain")
    grid(axes)
