"""Figures as SVG text: scales, axes, marks, rows of dots and labels that do not cover each other.

Across, positions are shares of the width (`37.2%`), so that one drawing fits a phone and a wide screen with letters of
the same size; up and down they are pixels. Lines of several points lie in an inner `<svg>` that is stretched, with
strokes that are not. Colours are classes of `figures.css`, which follow the page, light or dark. Every text passes
`escape`.

    frame = Frame(Scale.of([1.0, 900.0], log=True), Scale.of([20.0, 80.0]), height=320)
    frame.axes("Parameters (million)", "P@1 (%)") + frame.path("line c0", points)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from earmark.tables import plain

FAMILIES = 7
"""Colours that are told apart, each with a marker of its own."""
WIDE, NARROW = 760.0, 330.0
"""Widths at which labels must not cover each other, in pixels."""
ROW = 22
_ZERO_ROOM = 0.08
_LETTER, _LINE, _AWAY = 6.7, 13.0, 9.0
_SHAPES = (
    "M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0", "M-3.7 -3.7h7.4v7.4h-7.4z", "M0 -5L5 0L0 5L-5 0z",
    "M0 -4.8L4.6 3.5H-4.6z", "M-1.6 -4.8h3.2v3.2h3.2v3.2h-3.2v3.2h-3.2v-3.2h-3.2v-3.2h3.2z", "M0 4.8L4.6 -3.5H-4.6z",
    "M0 -5.2L3.7 -3.7L5.2 0L3.7 3.7L0 5.2L-3.7 3.7L-5.2 0L-3.7 -3.7z",
)  # fmt: skip


class Drawing(NamedTuple):
    """A figure for the macro `figure`: its SVG, its legend, how much room stands left of it for names, and whether it
    holds links (`group`) or is one picture (`img`)."""

    svg: Markup
    legend: Markup = Markup("")
    room: str = "numbers"
    role: str = "img"


class Tick(NamedTuple):
    at: float
    text: str


class Scale(NamedTuple):
    """An axis from `low` to `high`; `share` is how far along it a value lies, from 0 to 1. On a logarithmic one 0 has a
    place of its own before all others, where `zero` says that there is one."""

    low: float
    high: float
    log: bool = False
    zero: bool = False

    @classmethod
    def of(cls, values: Iterable[float], *, log: bool = False, ends: tuple[float, float] | None = None) -> Scale:
        """A scale with some air around the values; `ends` are the least and the largest value that there can be."""
        finite = [value for value in values if math.isfinite(value)]
        given = [value for value in finite if value > 0 or not log]
        low, high = (min(given), max(given)) if given else (1.0, 10.0) if log else (0.0, 1.0)
        if log:
            air = max((high / low) ** 0.06, 1.15)
            return cls(low / air, high * air, True, zero=len(given) < len(finite))
        air = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
        low, high = low - air, high + air
        if ends is not None:
            low, high = max(low, ends[0]), min(high, ends[1])
        return cls(low, high)

    def share(self, value: float) -> float:
        if self.log:
            start = _ZERO_ROOM if self.zero else 0.0
            if value <= 0:
                return start / 3
            return start + (1 - start) * math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shares of many values."""
        if not self.log:
            return (values - self.low) / (self.high - self.low)
        start = _ZERO_ROOM if self.zero else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            along = start + (1 - start) * np.log(values / self.low) / math.log(self.high / self.low)
        return np.where(values <= 0, start / 3, along)

    def ticks(self, most: int = 6) -> list[Tick]:
        """Round numbers on the axis, at most about `most`."""
        return self._log_ticks(most) if self.log else self._even_ticks(most)

    def _even_ticks(self, most: int) -> list[Tick]:
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * part for part in (1, 2, 2.5, 5, 10) if power * part >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        digits = next(few for few in range(15) if few == 14 or math.isclose(round(step, few), step))
        return [Tick(number * step, signed(number * step, digits)) for number in range(first, last + 1)]

    def _log_ticks(self, most: int) -> list[Tick]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for parts in ((1, 2, 5), (1, 3), (1,)):
            values = [part * 10.0**power for power in powers for part in parts]
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) <= most + 2:
                break
        step = max(1, -(-len(inside) // (most + 2)))
        zero = [Tick(0.0, "0")] if self.zero else []
        return zero + [Tick(value, short(value)) for value in inside[::step]]


class Label(NamedTuple):
    """A name beside a mark; `address` makes it a link, `key` names the system that is highlighted with it."""

    x: float  # share of the width
    y: float  # pixels
    text: str
    address: str = ""
    key: str = ""


class Frame(NamedTuple):
    """A plane with two axes."""

    x: Scale
    y: Scale
    height: int = 340

    def across(self, value: float) -> str:
        return percent(self.x.share(value))

    def down(self, value: float) -> float:
        return round(self.height * (1 - self.y.share(value)), 1)

    def axes(self, across: str, up: str) -> str:
        """Grid, numbers and titles of both axes. Every second number across is left out where there is little room."""
        lines, texts = [], []
        for tick in self.y.ticks():
            at = self.down(tick.at)
            lines.append(f'<line x2="100%" y1="{at}" y2="{at}"/>')
            texts.append(f'<text x="-6" y="{at + 4:.1f}" text-anchor="end">{tick.text}</text>')
        for number, tick in enumerate(self.x.ticks(8)):
            place = self.across(tick.at)
            lines.append(f'<line x1="{place}" x2="{place}" y2="{self.height}"/>')
            odd = ' class="wide"' if number % 2 else ""
            texts.append(f'<text{odd} x="{place}" y="{self.height + 16}" text-anchor="middle">{tick.text}</text>')
        titles = (
            f'<text class="title" x="50%" y="{self.height + 36}" text-anchor="middle">{escape(across)}</text>'
            f'<text class="title" x="-40" y="-10">{escape(up)}</text>'
        )
        return f'<g class="grid">{"".join(lines)}</g><g class="ticks">{"".join(texts)}{titles}</g>'

    def path(self, kind: str, points: Iterable[tuple[float, float]], *, steps: bool = False) -> str:
        """A line through points; with `steps`, first across and then up or down."""
        parts: list[str] = []
        for x, y in points:
            across, down = f"{1000 * self.x.share(x):.1f}", self.down(y)
            parts.append(f"M{across} {down}" if not parts else f"H{across}V{down}" if steps else f"L{across} {down}")
        return f'<path class="{kind}" d="{"".join(parts)}"/>' if len(parts) > 1 else ""

    def bars(self, kind: str, intervals: Iterable[tuple[float, float, float]]) -> str:
        """Upright intervals, one path for all of them: where across, from, to."""
        parts = (
            f"M{1000 * self.x.share(x):.1f} {self.down(low)}V{self.down(high)}" for x, low, high in intervals
        )  # fmt: skip
        drawn = "".join(parts)
        return f'<path class="{kind}" d="{drawn}"/>' if drawn else ""

    def stretched(self, *paths: str) -> str:
        """The paths of this frame as wide as the figure is."""
        return stretched(self.height, *paths)


def stretched(height: float, *paths: str) -> str:
    """Paths whose units across are thousandths of the width."""
    drawn = "".join(paths)
    if not drawn:
        return ""
    box = f'viewBox="0 0 1000 {height}" preserveAspectRatio="none"'
    return f'<svg width="100%" height="{height}" {box} overflow="visible">{drawn}</svg>'


def svg(height: float, *parts: str) -> Markup:
    """A whole figure of so many pixels, as wide as the place it is put in."""
    return Markup(f'<svg class="chart" width="100%" height="{height:g}" overflow="visible">{"".join(parts)}</svg>')


class Markers:
    """The markers of one figure: shapes defined once and used by number. `name` tells the figures of a page apart."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._used: set[int] = set()

    def mark(self, number: int, x: str, y: float, rest: str = "", title: str = "") -> str:
        """A marker; with a title it says what it is when a pointer rests on it."""
        inner = f"<title>{escape(title)}</title></use>" if title else "</use>"
        return f'{self.opened(number)} x="{x}" y="{y}"{rest}>{inner}'

    def opened(self, number: int) -> str:
        """The beginning of a marker, for those who write many."""
        shape = number % len(_SHAPES)
        self._used.add(shape)
        return f'<use href="#{self._name}-{shape}"'

    def definitions(self) -> str:
        drawn = (f'<path id="{self._name}-{shape}" d="{_SHAPES[shape]}"/>' for shape in sorted(self._used))
        return f"<defs>{''.join(drawn)}</defs>"


def key(kind: str, words: str, shape: int | None = None) -> str:
    """An entry of a legend: a marker, or a line where there is no shape."""
    picture = '<path d="M-9 0H9"/>' if shape is None else f'<path d="{_SHAPES[shape % len(_SHAPES)]}"/>'
    drawing = f'<svg class="{kind}" width="22" height="14" viewBox="-11 -7 22 14" aria-hidden="true">{picture}</svg>'
    return f"<li>{drawing}{escape(words)}</li>"


def legend(entries: Sequence[str]) -> Markup:
    return Markup(f'<ul class="legend">{"".join(entries)}</ul>') if entries else Markup("")


def labels(wanted: Sequence[Label], marks: Sequence[tuple[float, float]], height: float) -> str:
    """Names beside their marks where they cover no other name and no mark that matters; a name that finds no room is
    left out (its mark still tells it). Those that would collide on a phone are shown on wide screens only."""
    boxes: dict[float, list[tuple[float, float, float, float]]] = {
        width: [(width * x - 5, y - 5, width * x + 5, y + 5) for x, y in marks] for width in (WIDE, NARROW)
    }
    drawn = []
    for label in wanted:
        text = plain(label.text, 30)
        for anchor, across, below in _sides(label):
            spots = {width: _box(label, text, anchor, across, below, width) for width in boxes}
            if not _is_free(spots[WIDE], boxes[WIDE], WIDE, height):
                continue
            fits = _is_free(spots[NARROW], boxes[NARROW], NARROW, height)
            boxes[WIDE].append(spots[WIDE])
            if fits:
                boxes[NARROW].append(spots[NARROW])
            drawn.append(_label(label, text, anchor, across, below, narrow=fits))
            break
    return f'<g class="labels">{"".join(drawn)}</g>' if drawn else ""


def _sides(label: Label) -> list[tuple[str, float, float]]:
    right, left = ("start", _AWAY), ("end", -_AWAY)
    beside = [right, left] if label.x < 0.6 else [left, right]
    # Above the line before on it: lines that join marks run to the right of them, level or rising.
    diagonal = [(anchor, across, below) for below in (-9.0, 9.0) for anchor, across in reversed(beside)]
    level = [(anchor, across, 0.0) for anchor, across in beside]
    return [*diagonal[:2], *level, ("middle", 0.0, -_LINE - 3), ("middle", 0.0, _LINE + 3), *diagonal[2:]]


def _box(
    label: Label, text: str, anchor: str, across: float, below: float, width: float
) -> tuple[float, float, float, float]:
    length = _LETTER * len(text)
    start = width * label.x + across - {"start": 0.0, "middle": length / 2, "end": length}[anchor]
    return start, label.y + below - _LINE / 2, start + length, label.y + below + _LINE / 2


def _is_free(
    box: tuple[float, float, float, float], taken: Sequence[tuple[float, float, float, float]], width: float,
    height: float,
) -> bool:  # fmt: skip
    left, top, right, bottom = box
    if left < 0 or right > width + 8 or top < -4 or bottom > height:
        return False
    return not any(
        left < other_right and other_left < right and top < other_bottom and other_top < bottom
        for other_left, other_top, other_right, other_bottom in taken
    )


def _label(label: Label, text: str, anchor: str, across: float, below: float, *, narrow: bool) -> str:
    kind = "" if narrow else ' class="wide"'
    system = f' data-s="{escape(label.key)}"' if label.key else ""
    place = f'x="{percent(label.x)}" dx="{across:g}" y="{label.y + below + 4:.1f}" text-anchor="{anchor}"'
    drawn = f"<text {place}>{escape(text)}</text>"
    if label.address:
        return f'<a href="{escape(label.address)}"{kind}{system}>{drawn}</a>'
    return f"<g{kind}{system}>{drawn}</g>"


# --- rows: a name on the left, something along a scale on the right ---------------------------------------------------


class Rows(NamedTuple):
    """Lines with a name each, above a scale that they share."""

    x: Scale
    names: Sequence[str]
    titles: Sequence[str] = ()
    step: int = ROW

    @property
    def height(self) -> int:
        return self.step * len(self.names) + 6

    @property
    def room(self) -> str:
        """How much room the names need."""
        longest = max((len(name) for name in self.names), default=0)
        return "codes" if longest <= 8 else "words" if longest <= 18 else "names"

    def middle(self, row: int, share: float = 0.5) -> float:
        """How far down the middle of a row is; `share` is how far down within it."""
        return round(self.step * (row + share) + 3, 1)

    def axes(self, across: str, ticks: int = 6) -> str:
        lines, texts = [], []
        for row, name in enumerate(self.names):
            at = self.middle(row)
            lines.append(f'<line x2="100%" y1="{at}" y2="{at}"/>')
            title = self.titles[row] if row < len(self.titles) else ""
            more = f"<title>{escape(title)}</title>" if title else ""
            texts.append(f'<text x="-8" y="{at + 4:.1f}" text-anchor="end">{more}{escape(plain(name, 24))}</text>')
        for number, tick in enumerate(self.x.ticks(ticks)):
            place = percent(self.x.share(tick.at))
            lines.append(f'<line class="up" x1="{place}" x2="{place}" y2="{self.height}"/>')
            odd = ' class="wide"' if number % 2 else ""
            texts.append(f'<text{odd} x="{place}" y="{self.height + 16}" text-anchor="middle">{tick.text}</text>')
        # It ends where the rows end: on a phone a long one goes on to the left, into the room of the names.
        title = f'<text class="title" x="100%" y="{self.height + 36}" text-anchor="end">{escape(across)}</text>'
        return f'<g class="grid rows">{"".join(lines)}</g><g class="ticks">{"".join(texts)}{title}</g>'

    def interval(self, kind: str, row: int, low: float, high: float, share: float = 0.5) -> str:
        at = self.middle(row, share)
        ends = (percent(self.x.share(end)) for end in (low, high))
        return '<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>'.format(kind, *ends, at, at)

    def bar(self, kind: str, row: int, value: float, title: str) -> str:
        """A bar from the start of the scale."""
        width = percent(max(0.0, self.x.share(value)))
        return (
            f'<rect class="{kind}" y="{self.middle(row) - 6}" width="{width}" height="12"><title>{escape(title)}'
            "</title></rect>"
        )


def percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def signed(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if text.strip("-0.") else text.lstrip("-")


def short(value: float) -> str:
    """A round number in few letters: 0.05, 20, 3000."""
    return f"{value:g}" if 1e-4 <= value < 1e6 else f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e")
