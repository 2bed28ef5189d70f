"""Columns of scores as HTML, many at once: the parts that cells are joined from.

A value with one digit behind the point, between 0 and 100, is one of a thousand texts. So a column of values is a
choice from a table of texts, which numpy makes faster than Python writes two numbers; whatever else a cell can be is
written by itself, by `cells.score_cell`, which says what all of them look like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.cells import HEATS, NO_HEAT, CellColumn
from earmark.board.pages.cells import Form, form_of, score_html, shown_number
from earmark.scores import Metric

Floats = NDArray[np.float64]
Texts = NDArray[np.object_]

_STEPS = 1000  # from 0 to 100.0, or to 1.000: both forms have three digits
_NEAR_HALF = 1e-6


def score_parts(column: CellColumn, metric: str | Metric, intervals: bool) -> list[list[str]]:
    """Lists of texts [cells] each; joined line by line they are the cells of the column."""
    form = form_of(metric)
    opened = _placed(column.value, form, column.heat, _opened, _HEATS)
    ends = np.isfinite(column.low) & np.isfinite(column.high) if intervals else np.zeros(len(opened), bool)
    alone = set(column.odd) | set(np.flatnonzero((column.heat == HEATS) | np.isnan(column.value)).tolist())
    if ends.any():
        parts = [opened, _placed(column.low, form, None, _low_end), _placed(column.high, form, None, _high_end)]
        alone |= set(np.flatnonzero(~ends).tolist())
    else:
        parts = [opened + "</td>"]
    for at in alone:
        parts[0][at] = score_html(column.cell(at), form, intervals)
        for part in parts[1:]:
            part[at] = ""
    return [part.tolist() for part in parts]


def number_texts(values: Floats, metric: str | Metric) -> list[str]:
    """Values of a metric as cells show them."""
    texts: list[str] = _placed(values, form_of(metric), None, _number).tolist()
    return texts


_HEATS = HEATS + 1


def _number(text: str, heat: int) -> str:
    return text


def _opened(text: str, heat: int) -> str:
    return f'<td class="n">{text}' if heat == NO_HEAT else f'<td class="n h{heat}">{text}'


def _low_end(text: str, heat: int) -> str:
    return f"<small>{text}–"


def _high_end(text: str, heat: int) -> str:
    return f"{text}</small></td>"


def _placed(
    values: Floats, form: Form, heat: NDArray[np.int64] | None, write: Callable[[str, int], str], heats: int = 1
) -> Texts:
    """What `write` makes of each value as it is shown, and of its heat."""
    steps, common = _steps_of(values, form)
    if heat is not None:
        steps = steps * heats + (heat - NO_HEAT) % heats
    texts: Texts = _table(form, write, heats)[steps]
    for at in np.flatnonzero(~common & np.isfinite(values)).tolist():
        own = NO_HEAT if heat is None else int(heat[at])
        texts[at] = write(shown_number(float(values[at]), form), own)
    return texts


def _steps_of(values: Floats, form: Form) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which text of the table each value has, and whether it has one: it is neither out of range nor so near to the
    middle of two steps that only the text itself tells how it is rounded."""
    with np.errstate(invalid="ignore"):
        scaled = values * (form.scale * 10**form.digits)
        rest = scaled - np.floor(scaled)
        common = (np.abs(rest - 0.5) > _NEAR_HALF) & ~np.signbit(values) & (scaled < _STEPS + 0.5)
    return np.where(common, np.rint(np.where(common, scaled, 0.0)), 0).astype(np.int64), common


@lru_cache(16)
def _table(form: Form, write: Callable[[str, int], str], heats: int) -> Texts:
    """Every text that a common value has, with each heat."""
    texts: Sequence[str] = [f"{step / 10**form.digits:.{form.digits}f}" for step in range(_STEPS + 1)]
    table = np.empty(len(texts) * heats, object)
    table[:] = [write(text, place + NO_HEAT) for text in texts for place in range(heats)]
    return table
