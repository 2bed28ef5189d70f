"""Figures of what scores follow from: metrics against clips, classes, clips per class, duration, range and domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from earmark.report.content import SubsetFacts
from earmark.report.figures import style
from earmark.report.metric_text import facts, number
from earmark.report.trends import Trend, Trends

_WIDTH = 8.4
MANY = 8  # configurations of which the middle half is drawn, not the whole range
_NAMED = 24  # subsets; the names of more would hide the points
_LONGEST = 20


def trends(found: Trends) -> Any:
    """A panel for each property, a point for each subset and metric, and the domains last.

    A point is the mean of the chosen configurations; the thin line through it goes from their worst to their best, or
    spans their middle half where there are many. A slope is drawn only where the rank correlation holds after its
    correction.
    """
    domains = list(dict.fromkeys(item.domain for item in found.facts if item.domain))
    count = len(found.at) + (len(domains) > 1)
    columns = 2 if count in (2, 4) else min(3, count)
    lines = -(-count // columns)
    metrics = list(found.means)
    title = 0.16 * len(metrics)
    with style.look():
        figure = style.new_figure(_WIDTH, (2.35 + title) * lines + 0.35 + 0.3 * (len(domains) > 3))
        spots = figure.subplots(lines, columns, sharey=len(_scales(metrics)) == 1, squeeze=False).ravel()
        for axes, name in zip(spots, found.at, strict=False):
            _draw_trend(axes, found, name)
        if len(domains) > 1:
            _draw_domains(spots[len(found.at)], found, domains)
        for axes in spots[count:]:
            axes.remove()
        for axes in spots[:count]:
            axes.yaxis.set_major_formatter(lambda value, _: number(value, metrics[0]).removesuffix(".0"))
        for axes in spots[:count:columns]:
            axes.set_ylabel(style.axis_title(metrics[0]) if len(metrics) == 1 else _unit(metrics))
        if len(metrics) > 1:
            own = found.top < 100  # then the metrics are not of the same configurations
            figure.legend(
                handles=_handles(metrics), loc="outside upper right", ncols=len(metrics),
                title="each metric of its own best configurations" if own else None, title_fontsize=7.5,
            )  # fmt: skip
    return figure


def reach(values: Sequence[float]) -> tuple[float, float]:
    """From the worst to the best, or the middle half where there are many."""
    few = len(values) < MANY
    return (min(values), max(values)) if few else (float(np.quantile(values, 0.25)), float(np.quantile(values, 0.75)))


def _scales(metrics: Sequence[str]) -> set[bool]:
    return {facts(metric).percent for metric in metrics}


def _unit(metrics: Sequence[str]) -> str:
    return "%" if _scales(metrics) == {True} else "value"


def _handles(metrics: Sequence[str]) -> list[Any]:
    line = style.library("matplotlib.lines").Line2D
    looks = [style.style_of(place) for place in range(len(metrics))]
    return [
        line([], [], color=colour, marker=marker, linestyle="none", markersize=5, label=style.name_of(name))
        for name, (colour, marker) in zip(metrics, looks, strict=True)
    ]


def _draw_trend(axes: Any, found: Trends, name: str) -> None:
    at = found.at[name]
    wide = bool(at.min() > 0 and at.max() > 8 * at.min())
    if wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
    across = np.log10(at) if wide else at
    by_metric = {item.metric: item for item in found.trends if item.fact == name}
    said: list[tuple[str, str]] = []
    for place, (metric, values) in enumerate(found.means.items()):
        colour, marker = style.style_of(place)
        for x, own in zip(at, found.chosen_values(metric), strict=True):
            axes.plot([x, x], reach(own), color=colour, linewidth=0.9, alpha=0.45, zorder=1)
        axes.plot(at, values, marker, color=colour, markersize=4.2, alpha=0.9, zorder=3)
        item = by_metric.get(metric, Trend(metric, name))
        if item.told:
            slope, level = np.polyfit(across, values, 1)
            steps = np.linspace(across.min(), across.max(), 50)
            line, (low, high) = level + slope * steps, facts(metric).range
            kept = (line >= low) & (line <= high)
            axes.plot((10**steps if wide else steps)[kept], line[kept], color=colour, linewidth=1.4, zorder=2)
        if item.rho is not None:
            said.append((f"{item.text}{' *' * item.told}", colour))
    for height, (text, colour) in enumerate(reversed(said)):
        axes.annotate(
            text, (1.0, 1.02), (0, 9.5 * height), xycoords="axes fraction", textcoords="offset points", ha="right",
            va="bottom", fontsize=7.5, color=colour if len(said) > 1 else style.MUTED,
        )  # fmt: skip
    axes.margins(x=0.12, y=0.12)
    if len(found.subsets) <= _NAMED:
        first = next(iter(found.means.values()))
        _name_points(axes, across, at, first, [place.label for place in found.subsets])
    axes.set_xlabel(name)
    style.grid(axes)


def _name_points(axes: Any, across: Any, at: Any, values: Any, places: list[str]) -> None:
    """Names beside their points; one that would cover another is left out."""
    spread = float(np.ptp(across)) or 1.0
    rise = max((axes.get_ylim()[1] - axes.get_ylim()[0]), 1e-9)
    taken: list[tuple[float, float]] = []
    for x, place, value, name in sorted(zip(across, at, values, places, strict=True), key=lambda item: -item[2]):
        if all(abs(x - a) / spread > 0.16 or abs(value - b) / rise > 0.065 for a, b in taken):
            axes.annotate(
                style.name_of(name, 12), (place, value), (3, 3), textcoords="offset points", fontsize=6.5,
                color=style.MUTED, zorder=4,
            )  # fmt: skip
            taken.append((x, value))


def _draw_domains(axes: Any, found: Trends, domains: list[str]) -> None:
    """A box for each domain and metric: the chosen configurations on its subsets; dots are subsets."""
    count = len(found.means)
    width = 0.8 / count
    for place, metric in enumerate(found.means):
        colour, marker = style.style_of(place)
        values = found.chosen_values(metric)
        for column, domain in enumerate(domains):
            own = [place for place, item in enumerate(found.facts) if item.domain == domain]
            middle = column + (place - (count - 1) / 2) * width
            lines = {part: {"color": colour, "linewidth": 0.9} for part in ("boxprops", "whiskerprops", "capprops")}
            axes.boxplot(
                [value for spot in own for value in values[spot]], positions=[middle], widths=0.72 * width,
                showfliers=False, medianprops={"color": style.INK, "linewidth": 1.1}, **lines,
            )  # fmt: skip
            shift = np.linspace(-0.18, 0.18, len(own)) * width if len(own) > 1 else np.zeros(1)
            axes.plot(middle + shift, found.means[metric][own], marker, color=colour, markersize=2.8, alpha=0.9)
    counts = [sum(item.domain == domain for item in found.facts) for domain in domains]
    names = [f"{style.name_of(name, _LONGEST)} ({n})" for name, n in zip(domains, counts, strict=True)]
    axes.set_xticks(range(len(domains)), names)
    slanted = len(domains) > 2
    axes.tick_params(axis="x", rotation=35 if slanted else 0, length=0, labelsize=7 if len(domains) > 4 else 8.5)
    for label in axes.get_xticklabels():
        label.set_ha("right" if slanted else "center")
        label.set_rotation_mode("anchor")
    axes.set_xlabel("domain (subsets)")
    style.grid(axes)


def trend_forest(found: Sequence[Trends]) -> Any:
    """A panel for each property: the rank correlation of each metric, one below the other for each share."""
    names = list(dict.fromkeys(name for one in found for name in one.at))
    metrics = list(dict.fromkeys(metric for one in found for metric in one.means))
    lines = [(metric, one) for metric in metrics for one in found if metric in one.means]
    with style.look():
        figure = style.new_figure(1.6 + 1.55 * len(names), 0.9 + 0.24 * len(lines) + 0.1 * len(metrics))
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        heights = [place + 0.5 * metrics.index(metric) for place, (metric, _) in enumerate(lines)]
        for axes, name in zip(panels, names, strict=True):
            axes.axvline(0, color=style.MUTED, linewidth=1)
            for height, (metric, one) in zip(heights, lines, strict=True):
                item = next((own for own in one.trends if (own.metric, own.fact) == (metric, name)), None)
                if item is None or item.rho is None:
                    continue
                colour, marker = style.style_of(metrics.index(metric))
                if item.low is not None and item.high is not None:
                    axes.plot([item.low, item.high], [height, height], color=colour)
                axes.plot(
                    [item.rho], [height], marker, markersize=5, color=colour,
                    markerfacecolor=colour if item.told else style.PAPER,
                )  # fmt: skip
            axes.set_xlim(-1.05, 1.05)
            axes.set_xticks([-1, 0, 1], ["−1", "0", "+1"])
            axes.set_title(name, loc="center", fontsize=8.5)
            style.grid(axes, "x")
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        labels = [f"{metric}, {'all' if one.top == 100 else f'best {one.top:g} %'}" for metric, one in lines]
        panels[0].set_yticks(heights, [style.name_of(label, 30) for label in labels])
        panels[0].set_ylim(heights[-1] + 0.7, -0.7)
        figure.supxlabel("rank correlation (ρ)", fontsize=8.5)
    return figure


# --- what there is --------------------------------------------------------------------------------------------------


def composition(subsets: Sequence[SubsetFacts]) -> Any:
    """Subsets by their mean duration and number of classes; the area of a dot is the number of clips."""
    known = [item for item in subsets if item.durations is not None and item.classes > 0 and item.durations.mean > 0]
    if not known:
        raise style.nothing("the make-up of subsets; it takes their clips, classes and durations")
    domains = list(dict.fromkeys(item.domain for item in known))
    looks = dict(zip(domains, style.class_styles(domains), strict=True))
    most = max(item.clips for item in known)
    classes = [item.classes for item in known]
    by_duration = sorted(known, key=lambda item: item.durations.mean if item.durations else 0.0)
    with style.look():
        figure = style.new_figure(6.6, 4.2)
        axes = figure.add_subplot()
        for item in sorted(known, key=lambda item: -item.clips):
            seconds = item.durations.mean if item.durations else 0.0
            blind = item.status == "blind"
            colour, marker = looks[item.domain]
            area = 30 + 650 * item.clips / most
            axes.scatter(
                [seconds], [item.classes], s=area, color=colour, marker=marker, alpha=0.75, zorder=2,
                edgecolors=style.INK if blind else style.PAPER, linewidths=1.6 if blind else 0.8,
            )  # fmt: skip
            name = style.name_of(item.subset or item.suite, 14)
            above = 0.0 if area > 25.0 * len(name) ** 2 else 0.5 * area**0.5 + 4.5
            above *= -1 if by_duration.index(item) % 2 and len(set(classes)) == 1 else 1
            axes.annotate(
                name, (seconds, item.classes), (0, above), textcoords="offset points", ha="center", va="center",
                fontsize=7, color=style.INK, zorder=3,
            )  # fmt: skip
        for axis, values in (
            ("x", [item.durations.mean for item in known if item.durations]),
            ("y", [float(item.classes) for item in known]),
        ):
            if max(values) > 4 * min(values):
                getattr(axes, f"set_{axis}scale")("log")
                getattr(axes, f"{axis}axis").set_major_formatter(lambda value, _: f"{value:g}")
                getattr(axes, f"{axis}axis").set_minor_formatter(lambda value, _: "")
        axes.set(xlabel="mean duration (s)", ylabel="classes")
        axes.margins(0.12)
        if len(set(classes)) == 1:
            axes.set_yticks(classes[:1])
        style.grid(axes, "both")
        line = style.library("matplotlib.lines").Line2D
        handles = [
            line([], [], color=looks[name][0], marker=looks[name][1], linestyle="none", markersize=7,
                 label=style.name_of(name or "no domain", 24))
            for name in domains
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside right upper")
    return figure
