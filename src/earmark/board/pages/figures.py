"""Figures of scores as SVG: profiles over subsets, paired differences, and the spread on one subset.

A page has every number of a figure in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape

import numpy as np

from earmark.board.boards.cells import Cell
from earmark.board.boards.pairs import Comparison, Difference
from earmark.board.boards.subsets import SubsetSummary
from earmark.board.pages.drawing import (
    FAMILIES,
    Drawing,
    Frame,
    Markers,
    Rows,
    Scale,
    key,
    legend,
    percent,
    signed,
    svg,
)
from earmark.report.metric_text import facts, number
from earmark.scores import STATUS_MARKS
from earmark.submissions import SystemCard
from earmark.tables import plain
from earmark.wording import counted

_BINS = 30


# --- profiles over subsets --------------------------------------------------------------------------------------------


def profiles(comparison: Comparison, names: Sequence[str] = (), *, higher: bool | None = None) -> Drawing:
    """Every system of a comparison over the subsets, which `names` may spell out."""
    systems = [f"{each.system.card.name} {each.setting}".strip() for each in comparison.compared]
    metric = comparison.metric
    rows = _subset_rows(names or comparison.subsets, [each.cells for each in comparison.compared], metric)
    rows = rows._replace(step=max(rows.step, 9 * len(systems) + 6))
    markers, entries, drawn = Markers("profiles"), [], []
    for place, (name, each) in enumerate(zip(systems, comparison.compared, strict=True)):
        marks = _marks(markers, rows, each.cells, metric, name, place, _spread(place, len(systems)))
        drawn.append(f'<g class="c{place % FAMILIES}" data-s="{escape(each.system.slug)}">{marks}</g>')
        entries.append(key(f"c{place % FAMILIES}", plain(name, 40), place))
    return _rows_drawing(rows, axis_words(metric, higher), markers, drawn, entries)


def profile(
    name: str, subsets: Sequence[str], cells: Sequence[Cell], best: Sequence[float | None],
    median: Sequence[float | None], metric: str, higher: bool | None = None,
) -> Drawing:  # fmt: skip
    """One system over the subsets, with the best and the median of the board behind it."""
    scale = scale_of(metric)
    behind = [scale * value for value in (*best, *median) if value is not None]
    rows = _subset_rows(subsets, [cells], metric, behind)
    markers, drawn = Markers("profile"), []
    for kind, values, shape, words in (
        ("best", best, 2, "best of the board"), ("median", median, 0, "median of the board")
    ):  # fmt: skip
        marks = (
            markers.mark(
                shape, percent(rows.x.share(scale * value)), rows.middle(row), "", f"{words}: {number(value, metric)}"
            )
            for row, value in enumerate(values)
            if value is not None
        )
        drawn.append(f'<g class="{kind}">{"".join(marks)}</g>')
    drawn.append(f'<g class="c0">{_marks(markers, rows, cells, metric, name, 0, 0.5)}</g>')
    entries = [
        key("c0", plain(name, 40), 0), key("best", "best of the board", 2), key("median", "median of the board", 0)
    ]  # fmt: skip
    return _rows_drawing(rows, axis_words(metric, higher), markers, drawn, entries)


def _rows_drawing(rows: Rows, words: str, markers: Markers, drawn: Sequence[str], entries: Sequence[str]) -> Drawing:
    body = "".join([rows.axes(words), *drawn])
    return Drawing(svg(rows.height, markers.definitions(), body), legend(entries), rows.room)


def _subset_rows(
    subsets: Sequence[str], lines: Iterable[Sequence[Cell]], metric: str, more: Sequence[float] = ()
) -> Rows:
    scale = scale_of(metric)
    ends = [scale * end for cells in lines for cell in cells for end in stated_ends(cell)]
    return Rows(Scale.of([*ends, *more], ends=possible(metric)), [subset or "all clips" for subset in subsets])


def stated_ends(cell: Cell) -> list[float]:
    """The value and the ends of its interval, as far as they are known."""
    return [end for end in (cell.value, cell.low, cell.high) if end is not None] if cell.value is not None else []


def _marks(
    markers: Markers, rows: Rows, cells: Sequence[Cell], metric: str, name: str, shape: int, share: float
) -> str:
    """A mark for each cell with a value, on its interval; hollow where it was not measured."""
    scale, drawn = scale_of(metric), []
    for row, cell in enumerate(cells):
        if cell.value is None:
            continue
        if cell.low is not None and cell.high is not None:
            drawn.append(rows.interval("interval", row, scale * cell.low, scale * cell.high, share))
        hollow = ' class="hollow"' if cell.status in STATUS_MARKS else ""
        title = f"{name}, {rows.names[row]}: {cell_words(cell, metric)}"
        at = percent(rows.x.share(scale * cell.value))
        drawn.append(markers.mark(shape, at, rows.middle(row, share), hollow, title))
    return "".join(drawn)


def differences(comparison: Comparison, names: Sequence[str] = (), *, higher: bool | None = None) -> Drawing | None:
    """What the other systems have beyond the first, subset by subset, and in the mean with its corrected interval.

    None where no other has a subset in common with the first.
    """
    first, *others = comparison.compared
    scale, metric = scale_of(comparison.metric), comparison.metric
    apart = [_apart(first.cells, other.cells) for other in others]
    means = {pair.other: pair for pair in comparison.differences if pair.one == 0 and pair.mean is not None}
    ends = [scale * end for cells in apart for cell in cells for end in stated_ends(cell)]
    ends += [-scale * end for pair in means.values() for end in (pair.mean, pair.low, pair.high) if end is not None]
    if not means:
        return None
    subsets = [subset or "all clips" for subset in names or comparison.subsets]
    rows = Rows(Scale.of([*ends, 0.0]), [*subsets, "mean"], step=max(22, 9 * len(others) + 6))
    markers, drawn, entries = Markers("differences"), [], []
    for place, (other, cells) in enumerate(zip(others, apart, strict=True), start=1):
        name = f"{other.system.card.name} {other.setting}".strip()
        share = _spread(place - 1, len(others))
        mean = _turned(means.get(place))
        marks = _marks(markers, rows, [*cells, mean], metric, name, place, share)
        drawn.append(f'<g class="c{place % FAMILIES}" data-s="{escape(other.system.slug)}">{marks}</g>')
        entries.append(key(f"c{place % FAMILIES}", plain(name, 40), place))
    zero = percent(rows.x.share(0.0))
    line = f'<line class="zero" x1="{zero}" x2="{zero}" y2="{rows.height}"/>'
    rule = rows.step * len(subsets) + 3
    drawn.append(f'<line class="mark" x2="100%" y1="{rule}" y2="{rule}"/>')
    unit = " (points)" if facts(metric).percent else ""
    way = "right" if (facts(metric).higher_is_better if higher is None else higher) else "left"
    words = f"{metric} minus {plain(first.system.card.name, 20)}{unit}; {way} is better"
    body = "".join([rows.axes(words), line, *drawn])
    return Drawing(svg(rows.height, markers.definitions(), body), legend(entries), rows.room)


def _spread(place: int, count: int) -> float:
    """How far down within its row the n-th of several marks lies."""
    return 0.5 if count == 1 else 0.26 + 0.48 / (count - 1) * place


def _apart(first: Sequence[Cell], other: Sequence[Cell]) -> list[Cell]:
    """The difference on each subset that both have, with the interval that two independent scores would give it."""
    cells = []
    for mine, theirs in zip(first, other, strict=True):
        if mine.value is None or theirs.value is None or mine.status != "ok" or theirs.status != "ok":
            cells.append(Cell(None))
            continue
        value, widths = theirs.value - mine.value, [_half_width(mine), _half_width(theirs)]
        half = None if None in widths else math.hypot(*(width or 0.0 for width in widths))
        low, high = (None, None) if half is None else (value - half, value + half)
        cells.append(Cell(value, low, high, status="ok"))
    return cells


def _half_width(cell: Cell) -> float | None:
    return None if cell.low is None or cell.high is None else (cell.high - cell.low) / 2


def _turned(pair: Difference | None) -> Cell:
    """A mean difference of the first minus the other, as other minus first."""
    if pair is None or pair.mean is None:
        return Cell(None)
    known = pair.low is not None and pair.high is not None
    low, high = (-(pair.high or 0.0), -(pair.low or 0.0)) if known else (None, None)
    return Cell(-pair.mean, low, high, status="ok")


def histogram(summary: SubsetSummary, higher: bool | None = None) -> Drawing:
    """How the values of all systems lie on one subset."""
    scale = scale_of(summary.metric)
    values = (scale * summary.values).tolist()
    counts, edges = np.histogram(values, bins=min(_BINS, max(5, 2 * math.isqrt(len(values)))))
    across = Scale.of(values, ends=possible(summary.metric))
    frame = Frame(across, Scale(0.0, 1.08 * float(counts.max())), 200)
    width = percent(frame.x.share(edges[1]) - frame.x.share(edges[0]))
    bars = "".join(
        f'<rect x="{frame.across(start)}" y="{frame.down(size)}" width="{width}" '
        f'height="{frame.height - frame.down(size):.1f}">'
        f"<title>{counted(size, 'system')} from {start:.4g} to {end:.4g}</title></rect>"
        for size, start, end in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        if size
    )
    return Drawing(
        svg(frame.height, frame.axes(axis_words(summary.metric, higher), "systems"), f'<g class="bars c0">{bars}</g>')
    )


# --- words ------------------------------------------------------------------------------------------------------------


def cell_words(cell: Cell, metric: str) -> str:
    """31.8 [29.6 to 33.8], with what there is to say of it."""
    assert cell.value is not None
    scale, digits = _form(metric)
    ends = ""
    if cell.low is not None and cell.high is not None:
        ends = f" ({signed(scale * cell.low, digits)} to {signed(scale * cell.high, digits)})"
    status = f", {cell.status}" if cell.status in STATUS_MARKS else ""
    return f"{signed(scale * cell.value, digits)}{ends}{status}"


def named(card: SystemCard) -> str:
    """A system by its code, which stands in the figure, and by its title where it has another."""
    return f"{card.name} ({card.title[:60]})" if card.title not in ("", card.name) else card.name


@cache
def _form(metric: str) -> tuple[float, int]:
    """What a value is multiplied by, and its decimals: a figure has thousands of them."""
    return (100.0, 1) if facts(metric).percent else (1.0, 3)


def possible(metric: str) -> tuple[float, float]:
    """Percentages end where they can: an axis to 105 % would promise room that there is not."""
    of = facts(metric)
    low, high = of.range if of.percent else (-math.inf, math.inf)
    return 100 * low, 100 * high


def scale_of(metric: str) -> float:
    return _form(metric)[0]


def axis_words(metric: str, higher: bool | None = None) -> str:
    """A metric with its unit and direction; a board may define metrics of its own, of which `higher` (or not) is
    better."""
    of = facts(metric)
    way = "higher" if (of.higher_is_better if higher is None else higher) else "lower"
    return f"{metric}{' (%)' if of.percent else ''}, {way} is better"
