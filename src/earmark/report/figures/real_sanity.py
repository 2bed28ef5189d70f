"""Curves of the checks on real embeddings: relative scores over what was made worse, beside the ideal."""

from __future__ import annotations

from typing import Any

import numpy as np

from earmark.generated.sanity.columns import Column
from earmark.generated.sanity.on_real import TESTS, RealSanity
from earmark.report.figures import style

TOP = 1.25  # where the axis of a relative score ends
CLOSE = 0.14  # and how far it reaches around 1 where a few bad samples do little
_ROWS = {"none": "without GICDM", "gicdm": "with GICDM"}


def curves(result: RealSanity) -> Any:
    """A line of panels for each set without and with GICDM; a panel for each check and question."""
    panels = [(test, kind) for kind in ("fidelity", "coverage") for test in TESTS if _columns(result, test, kind)]
    if not panels:
        raise style.nothing("curves of checks on real embeddings")
    lines = [
        (system, correction) for system in result.systems for correction in _ROWS
        if any(column.correction == correction for column in result.columns)
    ]  # fmt: skip
    with style.look():
        figure = style.new_figure(2.05 * len(panels) + 0.5, 1.75 * len(lines) + 1.15)
        spots = figure.subplots(len(lines), len(panels), squeeze=False)
        handles: dict[str, Any] = {}
        for at, (system, correction) in enumerate(lines):
            for across, (test, kind) in enumerate(panels):
                handles |= _panel(spots[at][across], result, system, correction, test, kind)
                if at == 0:
                    spots[at][across].set_title(f"{test}\n{kind}", fontsize=8.5)
                if at == len(lines) - 1:
                    spots[at][across].set_xlabel(TESTS[test].parameter, fontsize=7)
            name = f"{style.name_of(system, 22)}\n" if system else ""
            spots[at][0].set_ylabel(f"{name}{_ROWS[correction]}", fontsize=7.5)
        names = [style.name_of(name) for name in handles]
        figure.legend(list(handles.values()), names, loc="outside lower center", ncols=5, fontsize=7)
    return figure


def _columns(result: RealSanity, test: str, kind: str, correction: str | None = None) -> list[Column]:
    measured = {column for _, which, column in result.curves if which == test}
    return [
        column for column in result.columns
        if column.name in measured and column.kind == kind and correction in (None, column.correction)
    ]  # fmt: skip


def _panel(axes: Any, result: RealSanity, system: str, correction: str, test: str, kind: str) -> dict[str, Any]:
    metrics = list(dict.fromkeys(column.metric for column in _columns(result, test, kind)))
    handles: dict[str, Any] = {}
    for column in _columns(result, test, kind, correction):
        curve = result.curves.get((system, test, column.name))
        if curve is None or not np.isfinite(curve.relative).any():
            continue
        colour, marker = style.style_of(metrics.index(column.metric))
        away = curve.scores - TESTS[test].ideal(curve.grid) * curve.scores[:, :1]  # paired with the start of its repeat
        errors = 2.0 * away.std(axis=0, ddof=1) / np.sqrt(len(away)) / curve.scores[:, 0].mean()
        most = 1.0 + CLOSE if curve.grid[-1] <= 0.1 else TOP
        shown = np.clip(curve.relative, 2.0 - most if most < TOP else 0.0, most)
        axes.vlines(
            curve.grid, shown - errors, np.minimum(shown + errors, most), color=colour, linewidth=0.8, alpha=0.5
        )
        (handles[column.metric],) = axes.plot(
            curve.grid, shown, color=colour, marker=marker, markersize=2.8, linewidth=1.1, label=column.metric
        )
    grid = next(curve.grid for (_, which, _), curve in result.curves.items() if which == test)
    ideal, limit = TESTS[test].ideal(grid), TESTS[test].limit
    axes.fill_between(grid, ideal - limit, ideal + limit, color=style.GRID, alpha=0.6, linewidth=0, zorder=0)
    axes.plot(grid, ideal, ":", color=style.INK, linewidth=1.2, zorder=4)
    if grid[-1] <= 0.1:  # a few bad samples: what they do is small
        axes.set_ylim(1.0 - CLOSE, 1.0 + CLOSE)
        axes.set_yticks([0.9, 1.0, 1.1])
        axes.set_xticks(grid, [f"{100 * value:.0f} %" for value in grid])
    else:
        axes.set_ylim(-0.06, TOP + 0.02)
        axes.set_yticks([0.0, 0.5, 1.0])
        axes.set_xticks([0.0, 0.5, 1.0], ["0", "50 %", "100 %"])
    axes.tick_params(labelsize=7)
    return handles
