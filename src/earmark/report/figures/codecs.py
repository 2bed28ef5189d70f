"""Figures of codecs: what is kept against the rate, what is left after passes and losses, and what a codec changed."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.rate_distortion import Point
from earmark.report.codecs._comparison import Comparison
from earmark.report.figures import style
from earmark.report.metric_text import facts
from earmark.scores import Row

_RANGE = 24.0  # dB: where the colours of a difference end
_COLUMNS = 3
_TIMES, _BANDS = 260, 96
_TICKS = 9  # more rates than this would touch each other


def rate_distortion(found: Sequence[Comparison], *, printed: bool = False) -> Any:
    """A panel for each metric: settings of a family joined, intervals as bars, the front as a thin line behind them.

    Printed settings of one codec differ in more than their rate: they are named and not joined.
    """
    drawn = [one for one in found if one.points]
    if not drawn:
        raise style.nothing("rate against quality")
    families = list(dict.fromkeys(name for one in drawn for name in one.curves))
    looks = style.looks(families)
    columns = 2 if len(drawn) == 4 else min(_COLUMNS, len(drawn))
    lines = -(-len(drawn) // columns)
    legend = -(-len(families) // (3 * columns))
    with style.look():
        figure = style.new_figure(
            (4.4 if printed else 3.6) * columns, (3.9 if printed else 2.9) * lines + 0.25 * legend
        )
        for place, one in enumerate(drawn):
            _panel(figure.add_subplot(lines, columns, place + 1), one, looks, printed)
        handles: dict[str, Any] = {}
        for axes in figure.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=min(8, 3 * columns), columnspacing=1.2,
            handlelength=1.8,
        )  # fmt: skip
    return figure


def _panel(axes: Any, found: Comparison, looks: Mapping[str, tuple[str, str]], printed: bool) -> None:
    scale = 100 if facts(found.metric).percent else 1
    axes.step(
        [point.kbps for point in found.front], [scale * point.value for point in found.front], where="post",
        color=style.MUTED, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1, label="best at that rate",
    )  # fmt: skip
    ranked = {point.system for point in found.ranked}
    for family, curve in found.curves.items():
        colour, marker = looks[family]
        shared = {
            "markersize": 6.0 if printed else 4.2,
            "elinewidth": 0.8,
            "capsize": 0,
            "zorder": 3,
            "color": colour,
            "marker": marker,
        }
        for point in curve.points:
            if point.system in found.anchors:
                _anchor(axes, found.rows[point.system], point, colour, scale)
        joined = [point for point in curve.points if point.system in ranked]
        others = [point for point in curve.points if point.system in found.left_out]
        if joined:
            axes.errorbar(
                *_drawn(joined, found, scale), linewidth=1.2, markeredgecolor=style.PAPER, markeredgewidth=0.5,
                label=style.name_of(family, 16), linestyle="none" if printed else "-", **shared,
            )  # fmt: skip
        if others:  # hollow, and joined to nothing: they are not ranked
            axes.errorbar(
                *_drawn(others, found, scale), linestyle="none", markerfacecolor=style.PAPER, markeredgecolor=colour,
                label=f"{style.name_of(family, 16)}, not ranked", **shared,
            )  # fmt: skip
    axes.set_xscale("log", base=2)
    if printed:
        _name_settings(axes, found.ranked, scale)
    low, high = axes.get_xlim()
    octaves = [power for power in range(-8, 13) if low <= 2.0**power <= high]
    ticks = [2.0**power for power in octaves if power % (1 + len(octaves) // _TICKS) == 0]
    axes.set_xticks(ticks, [f"{rate:.2g}" if rate < 1 else f"{rate:g}" for rate in ticks])
    axes.minorticks_off()
    axes.set_xlabel("kbps, as printed" if printed else "kbps, counted")
    arrow = "↑" if found.higher_is_better else "↓"
    name, _, rate = found.protocol.partition("@")
    protocol = "" if name in ("all", "reference") else f", {name}"
    protocol += f", clips at {int(rate):,} Hz" if rate else ""
    axes.set_title(f"{style.axis_title(found.metric)}{protocol} {arrow}", color=style.INK)
    style.grid(axes)


def _name_settings(axes: Any, points: Sequence[Point], scale: float) -> None:
    """The names of settings beside their points; those that lie together have theirs together.

    A name goes where it covers no point and no other name, as near as it can; a thin line leads to one further off.
    """
    figure = axes.figure
    values = [scale * point.value for point in points]
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)  # names must not move what they stand beside
    rates = np.log2([point.kbps for point in points])
    axes.set_xlim(2.0 ** (rates.min() - 0.35), 2.0 ** (rates.max() + 0.45))
    left, right = np.log2(axes.get_xlim())
    size = figure.get_size_inches() * 72
    columns, lines = axes.get_subplotspec().get_gridspec().ncols, axes.get_subplotspec().get_gridspec().nrows
    wide, tall = (
        0.86 * size[0] / columns,
        0.72 * size[1] / lines,
    )  # of the panel, in points: its room is not settled yet

    def spot(point: Point) -> tuple[float, float]:
        across = (np.log2(point.kbps) - left) / (right - left)
        return float(across * wide), float((scale * point.value - low) / (high - low) * tall)

    groups = _close(points, spot)
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in map(spot, points)]
    for group in groups:
        names = _together([style.name_of(point.system, 10) for point in group])
        x, y = spot(group[0])
        width, height = 3.7 * len(names), 8.0
        others = [spot(point) for point in points if point not in group]
        costs = {}
        for move in _SHIFTS:
            box = _box(x, y, move, width, height)
            nearer = any(_gap(box, at) <= _gap(box, (x, y)) for at in others)  # it would name another point
            costs[move] = _cost(box, taken, (wide, tall), move) + 1000 * nearer
        shift = min(costs, key=costs.__getitem__)
        box = _box(x, y, shift, width, height)
        taken.append(box)
        away = abs(shift[1]) > 9
        axes.annotate(
            names, (group[0].kbps, values[points.index(group[0])]), shift, textcoords="offset points", fontsize=6.8,
            ha="left" if shift[0] > 0 else "right" if shift[0] < 0 else "center", va="center", color=style.INK,
            arrowprops={"arrowstyle": "-", "color": style.MUTED, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
            if away else None, zorder=5,
        )  # fmt: skip


_SHIFTS = [
    (across, up)
    for up in (0, 6, -6, 9, -9, 14, -14, 20, -20, 27, -27)
    for across in (6, -6, 0)
    if across or abs(up) > 6
]
"""Where a name may stand beside its point, in points of the page."""
Box = tuple[float, float, float, float]


def _box(x: float, y: float, shift: tuple[float, float], width: float, height: float) -> Box:
    """Left, bottom, right and top of a name."""
    start = x + shift[0] - (0 if shift[0] > 0 else width if shift[0] < 0 else width / 2)
    return start, y + shift[1] - height / 2, start + width, y + shift[1] + height / 2


def _gap(box: Box, at: tuple[float, float]) -> float:
    """How far a point is from a name."""
    across, up = (max(box[k] - at[k], 0.0, at[k] - box[k + 2]) for k in (0, 1))
    return float(np.hypot(across, up))


def _cost(box: Box, taken: Sequence[Box], room: tuple[float, float], shift: tuple[float, float]) -> float:
    """How bad a place is: what it covers, what leaves the panel, and how far it is. Beside a point runs the front."""
    covered = sum(
        max(0.0, min(box[2], other[2]) - max(box[0], other[0]))
        * max(0.0, min(box[3], other[3]) - max(box[1], other[1]))
        for other in taken
    )
    outside = max(0.0, -box[0]) + max(0.0, box[2] - room[0]) + max(0.0, -box[1]) + max(0.0, box[3] - room[1] - 6)
    return 10 * covered + 30 * outside + abs(shift[0]) / 10 + (abs(shift[1]) or 9)


def _close(points: Sequence[Point], spot: Callable[[Point], tuple[float, float]]) -> list[list[Point]]:
    """Points that lie on each other, as they are drawn, together."""
    groups: list[list[Point]] = []
    for point in sorted(points, key=lambda point: (point.kbps, -point.value)):
        for group in groups:
            if max(abs(np.subtract(spot(point), spot(group[-1])))) < 4.5:
                group.append(point)
                break
        else:
            groups.append([point])
    return groups


def _together(names: Sequence[str]) -> str:
    """Names in short: F1,2,5 for F1, F2 and F5."""
    ordered = sorted(names)
    rest = [
        name[1:] if name[1:].isdigit() and name[:1] == before[:1] else f" {name}" for before, name in pairwise(ordered)
    ]
    return ",".join([ordered[0], *rest])


def _drawn(points: Sequence[Point], found: Comparison, scale: float) -> tuple[list[float], list[float], Any]:
    """Rates, values and bars of some settings."""
    bars = _bars([found.rows[point.system] for point in points], scale)
    return [point.kbps for point in points], [scale * point.value for point in points], bars


def _anchor(axes: Any, row: Row, point: Point, colour: str, scale: float) -> None:
    """What loses nothing as a line with its interval: the height counts, its rate would crowd the others out."""
    label = point.system if point.system == "no codec" else f"{style.name_of(point.system, 16)}, lossless"
    axes.axhline(scale * point.value, color=colour, linewidth=1.0, linestyle=(0, (6, 3)), zorder=2, label=label)
    if row.low is not None and row.high is not None and row.low < row.high:
        axes.axhspan(scale * row.low, scale * row.high, color=colour, alpha=0.12, linewidth=0, zorder=0)


def _bars(rows: Sequence[Row], scale: float) -> NDArray[np.float64]:
    """How far each interval reaches below and above its value; nothing where there is none."""
    known = [(row.value or 0.0, row.low, row.high) for row in rows]
    below = [scale * max(0.0, value - (value if low is None else low)) for value, low, _ in known]
    above = [scale * max(0.0, (value if high is None else high) - value) for value, _, high in known]
    return np.array([below, above])


class Line(NamedTuple):
    """One codec over passes or losses."""

    name: str
    at: tuple[float, ...]
    rows: tuple[Row, ...]


def steps(panels: Mapping[str, Sequence[Line]], along: str) -> Any:
    """What is left after several passes, or with packets lost: a panel for each metric, a line for each codec."""
    shown = {metric: lines for metric, lines in panels.items() if lines}
    if not shown:
        raise style.nothing(along)
    names = list(dict.fromkeys(line.name for lines in shown.values() for line in lines))
    looks = style.looks(names)
    with style.look():
        figure = style.new_figure(3.6 * len(shown), 2.9 + 0.25 * -(-len(names) // 6))
        for place, (metric, lines) in enumerate(shown.items()):
            axes = figure.add_subplot(1, len(shown), place + 1)
            scale = 100 if facts(metric).percent else 1
            for line in lines:
                colour, marker = looks[line.name]
                axes.errorbar(
                    line.at, [scale * (row.value or 0.0) for row in line.rows], yerr=_bars(line.rows, scale),
                    color=colour, marker=marker, markersize=4.2, elinewidth=0.8, markeredgecolor=style.PAPER,
                    markeredgewidth=0.5, label=style.name_of(line.name, 18),
                )  # fmt: skip
            axes.set_xlabel(along)
            axes.set_ylabel(style.axis_title(metric))
            axes.set_xticks(sorted({at for line in lines for at in line.at}))
            style.grid(axes)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(6, 2 * len(shown)))
    return figure


def difference_png(reference: NDArray[Any], coded: NDArray[Any], rate: int) -> bytes:
    """Where a codec added level (red) and took it away (blue), up to 24 dB; white is unchanged, low at the bottom."""
    image = style.library("PIL.Image")
    both = [_levels(samples, rate) for samples in (reference, coded)]
    top = max(levels.max() for levels in both)
    floored = [np.maximum(levels - top + 70.0, 0.0) for levels in both]
    change = np.clip((floored[1] - floored[0]) / _RANGE, -1.0, 1.0)
    colours = style.library().colormaps["RdBu_r"](0.5 + change[::-1] / 2)
    picture = image.fromarray(np.round(255 * colours[..., :3]).astype(np.uint8)).quantize(64)
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()


def _levels(samples: NDArray[Any], rate: int) -> NDArray[np.float64]:
    """Level in dB of each band [bands, columns], on a scale that both clips share."""
    size = 1 << max(6, int(0.024 * rate).bit_length() - 1)
    mono = np.pad(np.asarray(samples, np.float64).ravel(), size // 2)
    hop = max(1, len(mono) // _TIMES)
    frames = np.lib.stride_tricks.sliding_window_view(mono, size)[::hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(size), max(size, 512), axis=1)).T ** 2
    edges = np.linspace(0, len(power), min(_BANDS, len(power)) + 1).astype(int)
    return np.asarray(10.0 * np.log10(np.maximum(np.maximum.reduceat(power, edges[:-1], axis=0), 1e-20)))
