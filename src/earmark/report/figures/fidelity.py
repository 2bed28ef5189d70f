"""Figures of real against generated: the fidelity-coverage plane, scores of single samples, the worst of them.

The plane needs score rows alone: of one generated set it shows every pair of metrics, of several one pair for each set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from earmark.errors import InputError
from earmark.generated.api import Fidelity
from earmark.generated.metrics import DISTANCES
from earmark.report.figures import style
from earmark.report.figures.distances import distances_drawn
from earmark.report.figures.style import COLOURS, GRID, INK, MUTED, PAPER, look, name_of, new_figure
from earmark.scores import Row, Scores

PAIRS = {
    "clipped": ("clipped_density", "clipped_coverage"),
    "density, coverage": ("density", "coverage"),
    "precision, recall": ("precision", "recall"),
    "symmetric": ("sym_precision", "sym_recall"),
    "P": ("p_precision", "p_recall"),
    "cover": ("precision_cover", "recall_cover"),
}
PLANE_CAPTION = (
    "Each pair of metrics is a point: up is more like the real, right is more of the real covered. Hollow is without "
    "GICDM, filled with it; bars are 95 % intervals."
)
SETS_CAPTION = (
    "Each generated set is a point by {up} and {right}: up is more like the real, right is more of the real covered. "
    "Hollow is without GICDM, filled with it; bars are 95 % intervals, each of a set by itself."
)
HISTOGRAM_CAPTION = (
    "Left: how many samples lie how deep among the real ones (share of k balls, per sample). Right: reach, the "
    "distance to a real point in radii of its ball; right of the line a sample is in no ball. Samples that GICDM "
    "dropped have no reach."
)
CORRECTED = (("none", "without GICDM", PAPER), ("gicdm", "with GICDM", INK))
"""How marks of a plane are filled."""
TOP = 1.25  # a density above is drawn at the edge, with its value
CLOSE = 0.5  # sets nearer to each other than this are looked at closer
WORST = 10
NEAR, FAR = 0.05, 64.0  # a reach beyond is counted in the first or the last bar

_LEFT, _RIGHT = COLOURS[0], COLOURS[1]


def overview(scores: Fidelity, distance: str | None = None, title: str = "") -> Any:
    """Everything in one picture: the plane, the scores of single samples, the worst samples by name."""
    distance = _distance(scores, distance)
    if (distance, "none", "all", "reach") not in scores.per_sample:
        if scores.leading(distance)[3] in DISTANCES:
            return distances_drawn(scores, title)
        raise InputError("There is no ball to draw samples against: the real set is too small for this k.")
    with look():
        figure = new_figure(9.6, 6.4)
        panels = figure.subplot_mosaic([["plane", "score"], ["plane", "reach"], ["worst", "worst"]],
                                       height_ratios=[1, 1, 0.95], width_ratios=[1.15, 1])  # fmt: skip
        _draw_plane(panels["plane"], scores, distance)
        _draw_scores(panels["score"], scores, distance)
        _draw_reach(panels["reach"], scores, distance)
        _draw_worst(panels["worst"], scores, distance)
        others = [name for name in dict.fromkeys(row.distance for row in scores) if name != distance]
        drawn = f"{distance} ({', '.join(others)} not drawn)" if others else distance
        figure.suptitle(" · ".join(filter(None, [name_of(title, 80), drawn])), fontsize=10.5)
    return figure


def plane(scores: Scores, distance: str | None = None, pair: str | None = None) -> Any:
    """Fidelity against coverage, with an arrow from before to after GICDM.

    Of one generated set every pair of metrics is a point. Of several, which the column `system` tells apart, each set
    is a point by one `pair` of `PAIRS`: the first that was measured where none is named.
    """
    distance = _distance(scores, distance)
    systems = systems_of(scores, distance)
    with look():
        figure = new_figure(5.2, 4.4 + 0.18 * (len(systems) // 2))
        axes = figure.add_subplot()
        if len(systems) > 1:
            draw_sets(axes, scores, distance, pair)
        else:
            _draw_plane(axes, scores, distance)
    return figure


def systems_of(scores: Scores, distance: str) -> list[str]:
    """The generated sets that have both values of some pair."""
    names = dict.fromkeys(row.system for row in scores if row.distance == distance)
    return [name for name in names if _points(scores, distance, name)]


def plane_caption(scores: Scores, distance: str) -> str:
    """What the plane of these scores shows."""
    if len(systems_of(scores, distance)) < 2:
        return PLANE_CAPTION
    up, right = PAIRS[_pair(scores, distance, None)]
    return SETS_CAPTION.format(up=up, right=right)


def histogram(scores: Fidelity, distance: str | None = None) -> Any:
    """How single samples score, and how far they are from the nearest ball, before and after GICDM."""
    distance = _distance(scores, distance)
    with look():
        figure = new_figure(7.6, 2.6)
        left, right = figure.subplots(1, 2)
        _draw_scores(left, scores, distance)
        _draw_reach(right, scores, distance)
    return figure


def drawable(scores: Scores, distance: str) -> bool:
    """Whether any pair of metrics has both its values."""
    return bool(systems_of(scores, distance))


def _pair(scores: Scores, distance: str, pair: str | None) -> str:
    """The pair of metrics that is drawn: the one asked for, or the first that most sets have."""
    counts = {
        name: sum(name in _points(scores, distance, system) for system in systems_of(scores, distance))
        for name in PAIRS
    }  # fmt: skip
    if pair is None:
        pair = max(counts, key=lambda name: counts[name])
    if not counts.get(pair):
        raise InputError(f"The scores have no pair {pair!r} to draw: there are {', '.join(PAIRS)}.")
    return pair


def _distance(scores: Scores, distance: str | None) -> str:
    known = list(dict.fromkeys(row.distance for row in scores))
    if distance is None and known:
        return known[0]
    if distance not in known:
        raise InputError(f"The scores have no distance {distance!r} to draw.")
    return distance


def _points(scores: Scores, distance: str, system: str | None = None) -> dict[str, dict[str, tuple[Row, Row]]]:
    return plane_points(row for row in scores if row.distance == distance and system in (None, row.system))


def plane_points(rows: Iterable[Row]) -> dict[str, dict[str, tuple[Row, Row]]]:
    """Per pair of metrics and correction, the rows of fidelity and coverage of one generated set."""
    known = {(row.metric, row.correction): row for row in rows if row.value is not None}
    found: dict[str, dict[str, tuple[Row, Row]]] = {}
    for pair, (up, right) in PAIRS.items():
        for correction in ("none", "gicdm"):
            if (up, correction) in known and (right, correction) in known:
                found.setdefault(pair, {})[correction] = known[up, correction], known[right, correction]
    return found


def _draw_plane(axes: Any, scores: Scores, distance: str) -> None:
    found = _points(scores, distance)
    frame_plane(axes, "coverage", "fidelity")
    for place, (pair, by_correction) in enumerate(found.items()):
        draw_on_plane(axes, by_correction, *style.style_of(place), name=pair)
    if not found:
        axes.text(0.5, 0.5, "no pair of metrics was measured", ha="center", color=MUTED)
        return
    _plane_legend(axes, {name for by_correction in found.values() for name in by_correction}, 4)


def draw_sets(axes: Any, scores: Scores, distance: str, pair: str | None = None) -> None:
    """Every set as a point of the plane of one pair of metrics."""
    pair = _pair(scores, distance, pair)
    up, right = PAIRS[pair]
    found = {
        system: points[pair] for system in systems_of(scores, distance)
        if pair in (points := _points(scores, distance, system))
    }  # fmt: skip
    frame_plane(axes, right, up)
    for system, look_of_set in style.looks(list(found)).items():
        draw_on_plane(axes, found[system], *look_of_set, name=name_of(system, 24))
    _zoom(axes, [rows for by_correction in found.values() for rows in by_correction.values()])
    longest = max(len(name_of(system, 24)) for system in found)
    _plane_legend(
        axes, {name for by_correction in found.values() for name in by_correction}, max(1, 66 // (longest + 6))
    )


def frame_plane(axes: Any, right: str, up: str) -> None:
    """The plane before anything lies on it, and the corner where all is well."""
    axes.set(xlim=(-0.04, 1.06), ylim=(-0.05, TOP + 0.04), xlabel=right, ylabel=up)
    axes.plot([0, 1, 1], [1, 1, 0], color=GRID, linewidth=1, zorder=0)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.grid(True, linewidth=0.4)
    axes.set_axisbelow(True)


def _zoom(axes: Any, rows: list[tuple[Row, Row]]) -> None:
    """Look closer where all sets lie near each other: their order is what the plane is for."""
    for which, top, setter in ((1, 1.0, axes.set_xlim), (0, TOP, axes.set_ylim)):
        of_axis = [pair[which] for pair in rows]
        ends = [float(end) for row in of_axis for end in (row.low, row.high, row.value) if end is not None]
        low, high = min(ends), min(max(ends), top)
        if high - low < CLOSE:
            margin = (max(high - low, CLOSE / 2) - (high - low)) / 2 + 0.03
            setter(max(low - margin, -0.05), min(high + margin, top + 0.02))
            axis = axes.xaxis if which else axes.yaxis
            axis.set_major_locator(style.library("matplotlib.ticker").MaxNLocator(6))


def draw_on_plane(
    axes: Any, by_correction: Mapping[str, tuple[Row, Row]], colour: str, marker: str, name: str = ""
) -> None:
    """Hollow without GICDM and filled with it, an arrow between, bars for the intervals; `name` for a legend."""
    spots = {
        correction: (float(right.value or 0.0), min(float(up.value or 0.0), TOP))
        for correction, (up, right) in by_correction.items()
    }
    if len(spots) == 2:
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.1, "alpha": 0.75, "shrinkA": 5, "shrinkB": 5}
        axes.annotate("", spots["gicdm"], spots["none"], arrowprops=arrow, zorder=2)
    for correction, (x, y) in spots.items():
        up, right = by_correction[correction]
        _bars(axes, up, right, x, y, colour)
        axes.plot(x, y, marker, markersize=7, markeredgecolor=colour, linestyle="none", clip_on=False,
                  zorder=3 if correction == "none" else 4,  # what is to be trusted lies on top
                  markerfacecolor=PAPER if correction == "none" else colour, markeredgewidth=1.4)  # fmt: skip
        if up.value is not None and up.value > TOP:
            beside = {"xytext": (9, -11), "textcoords": "offset points", "color": colour, "fontsize": 7.5}
            axes.annotate(f"{up.value:.1f}", (x, y), **beside)
    if name:
        axes.plot([], [], marker, color=colour, label=name, linestyle="none")


def _plane_legend(axes: Any, present: set[str], columns: int) -> None:
    for name, title, face in CORRECTED:
        if name in present:
            axes.plot([], [], "o", markerfacecolor=face, markeredgecolor=INK, linestyle="none", label=title)
    columns = min(columns, 4)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=columns, handletextpad=0.2, columnspacing=1.0)


def _bars(axes: Any, up: Row, right: Row, x: float, y: float, colour: str) -> None:
    if up.low is not None and up.high is not None:
        axes.plot([x, x], [min(up.low, TOP), min(up.high, TOP)], color=colour, linewidth=1, alpha=0.6, zorder=1)
    if right.low is not None and right.high is not None:
        axes.plot([right.low, right.high], [y, y], color=colour, linewidth=1, alpha=0.6, zorder=1)


def _draw_scores(axes: Any, scores: Fidelity, distance: str) -> None:
    metric = scores.leading(distance)[3]
    series = [(name, scores.per_sample[distance, name, "all", metric]) for name in ("none", "gicdm")
              if (distance, name, "all", metric) in scores.per_sample]  # fmt: skip
    levels = np.unique(np.concatenate([np.round(values, 6) for _, values in series]))
    if len(levels) > 12:
        levels = np.linspace(0.0, float(levels.max()), 11)
    width = 0.8 / len(series)
    for place, (name, values) in enumerate(series):
        nearest = np.abs(values[:, None] - levels).argmin(axis=1)
        share = np.bincount(nearest, minlength=len(levels)) / len(values)
        at = np.arange(len(levels)) + (place - (len(series) - 1) / 2) * width
        axes.bar(
            at, share, width, color=(_LEFT, _RIGHT)[place], label={"none": "without GICDM", "gicdm": "with GICDM"}[name]
        )
    axes.set_xticks(range(len(levels)), [f"{level:.2g}" for level in levels])
    axes.set(xlabel=f"{metric} of a sample", ylabel="share of samples")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2, columnspacing=1.0)


def _draw_reach(axes: Any, scores: Fidelity, distance: str) -> None:
    found = {name: scores.per_sample.get((distance, name, "all", "reach")) for name in ("none", "gicdm")}
    everyone = np.concatenate([values for values in found.values() if values is not None])
    everyone = everyone[np.isfinite(everyone)]
    low = max(NEAR, min(0.5, float(everyone.min(initial=0.5))))
    high = min(FAR, max(2.0, float(everyone.max(initial=2.0))))
    edges = np.geomspace(low, high, 33)
    for name, colour in (("none", _LEFT), ("gicdm", _RIGHT)):
        reach = found[name]
        if reach is not None:
            shown = np.clip(reach[np.isfinite(reach)], low, high)
            weights = np.full(len(shown), 1.0 / len(reach))
            axes.hist(shown, edges, weights=weights, histtype="step", color=colour, linewidth=1.4)
    axes.axvline(1.0, color=MUTED, linewidth=1, linestyle=":")
    axes.set_xscale("log")
    ticks = [2.0**power for power in range(-4, 7) if low <= 2.0**power <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="reach of a sample (radii)", ylabel="share of samples")


def _draw_worst(axes: Any, scores: Fidelity, distance: str) -> None:
    key = scores.leading(distance)
    by = "misfit" if key[1] == "gicdm" else "reach"
    rows = scores.worst(WORST, distance=distance)
    length = np.minimum(scores.per_sample[(*key[:3], by)][rows], 1e3)
    near = scores.per_sample[distance, "none", "all", "nearest_row"][rows].astype(int)
    places = np.arange(len(rows))
    axes.barh(places, length, color=COLOURS[3], height=0.62)
    axes.axvline(1.0, color=MUTED, linewidth=1, linestyle=":")
    names = [scores.sample_ids[row] if scores.sample_ids else f"row {row}" for row in rows]
    axes.set_yticks(places, [name_of(name, 40) for name in names], fontsize=7.5)
    axes.invert_yaxis()
    for place, (row, end) in enumerate(zip(near, length, strict=True)):
        beside = scores.real_ids[row] if scores.real_ids else f"row {row}"
        axes.text(end, place, f"  nearest real: {name_of(beside, 40)}", va="center", fontsize=7, color=MUTED)
    axes.set_xlim(0, max(1.2, float(length.max(initial=0.0))) * 1.6)
    meaning = {"misfit": "misfit (over 1: dropped by GICDM)", "reach": "reach (radii; over 1: in no ball)"}
    axes.set(xlabel=meaning[by], title="the worst samples")
