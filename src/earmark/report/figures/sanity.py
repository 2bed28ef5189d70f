"""Figures of the sanity bench: the table of outcomes, the curves of a check, and one for each study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from earmark.generated.sanity import CHECKS, Sanity
from earmark.generated.sanity.studies import Components, Convergence, Corrections, Crossover, Dimension, Hypersphere
from earmark.report.figures import style
from earmark.report.figures.gradient import gradient as gradient

_WIDTH = 7.6
_CUT = 1.15  # where the axis of a score ends: density has no upper bound
_FILLS = {"T": "#12997c", "L": "#4fb0e0", "H": "#2b83c4", "F": "#e9edf0"}
_MEANINGS = {"T": "passed", "L": "passed, low", "H": "passed, high", "F": "failed"}


def outcomes(result: Sanity) -> Any:
    """The letters of every column and cell; a frame marks those that differ from the published table."""
    if not result.cells:
        raise style.nothing("a table of outcomes")
    kinds = [kind for kind in ("fidelity", "coverage") if any(column.kind == kind for column in result.columns)]
    lines = list(dict.fromkeys((cell.desideratum, cell.check) for cell in result.cells))
    groups = list(dict.fromkeys(desideratum for desideratum, _ in lines))
    # A group's name has a line of its own above its checks.
    places = {line: at + 1 + groups.index(line[0]) for at, line in enumerate(lines)}
    counts = [sum(column.kind == kind for column in result.columns) for kind in kinds]
    names = [(place, style.name_of(check), style.INK) for (_, check), place in places.items()]
    names += [(min(at for line, at in places.items() if line[0] == group) - 1, group, style.MUTED) for group in groups]
    names.sort()
    with style.look():
        from matplotlib.patches import Patch

        figure = style.new_figure(2.6 + 0.4 * sum(counts), 1.9 + 0.19 * (len(lines) + len(groups)))
        first, *others = figure.subplots(1, len(kinds), squeeze=False, width_ratios=counts).ravel()
        for axes, kind in zip([first, *others], kinds, strict=True):
            _letters(axes, result, kind, places)
        first.set_yticks([at for at, *_ in names], [name for _, name, _ in names], fontsize=7)
        for label, (_, _, colour) in zip(first.get_yticklabels(), names, strict=True):
            label.set_color(colour)
        for axes in others:
            axes.set_yticks([])
        marks = [Patch(facecolor=fill, label=f"{letter} {_MEANINGS[letter]}") for letter, fill in _FILLS.items()]
        marks.append(Patch(facecolor="none", edgecolor=style.COLOURS[3], linewidth=1.6, label="not as published"))
        figure.legend(handles=marks, loc="outside lower center", ncols=5, fontsize=7.5)
    return figure


def _letters(axes: Any, result: Sanity, kind: str, places: Mapping[tuple[str, str], int]) -> None:
    from matplotlib.patches import Rectangle

    columns = [column for column in result.columns if column.kind == kind]
    for x, column in enumerate(columns):
        for cell in result.of(column.name):
            if cell.outcome is None:
                continue
            y, fill = places[cell.desideratum, cell.check], _FILLS[cell.outcome]
            frame = {"edgecolor": style.COLOURS[3], "linewidth": 1.4} if cell.agrees is False else {"edgecolor": "none"}
            axes.add_patch(Rectangle((x - 0.44, y - 0.42), 0.88, 0.84, facecolor=fill, **frame))
            red, green, blue = (int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5))
            axes.text(
                x, y, cell.outcome, ha="center", va="center_baseline", fontsize=7, color=style.ink_on(red, green, blue)
            )
    axes.set_xlim(-0.6, len(columns) - 0.4)
    axes.set_ylim(max(places.values()) + 0.6, -0.6)
    names = [style.name_of(column.name, 30) for column in columns]
    axes.set_xticks(range(len(columns)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
    axes.set_title(kind)
    style.bare(axes)


def curves(result: Sanity, check: str) -> Any:
    """Mean scores of one check over its grid, a panel for each sub-case, fidelity above coverage."""
    found = [key for key in result.curves if key[1] == check]
    if not found:
        raise style.nothing(f"curves of {check}")
    subcases = list(dict.fromkeys(key[2] for key in found))
    kinds = [kind for kind in ("fidelity", "coverage") if any(column.kind == kind for column in result.columns)]
    across = min(3, len(subcases))
    down = -(-len(subcases) // across)
    with style.look():
        figure = style.new_figure(2.3 * across + 2.0, 2.1 * down * len(kinds) + 0.9)
        spots = figure.subplots(down * len(kinds), across, squeeze=False, sharey=True)
        for part, kind in enumerate(kinds):
            columns = [column for column in result.columns if column.kind == kind]
            for at, subcase in enumerate(subcases):
                axes = spots[part * down + at // across][at % across]
                for column, (colour, marker) in zip(columns, _column_styles([c.name for c in columns]), strict=True):
                    curve = result.curves[column.name, check, subcase].curve
                    dashed = "--" if column.correction == "gicdm" else "-"
                    axes.plot(curve.grid, curve.values, dashed, color=colour, marker=marker, markersize=2.5,
                              linewidth=1.1, label=column.name)  # fmt: skip
                if CHECKS[check].logarithmic:
                    _logarithmic(axes)
                    # Some of these axes span less than a decade, where only one number would be written.
                    ends = result.curves[columns[0].name, check, subcase].curve.grid[[0, -1]]
                    axes.set_xticks([ends[0], (ends[0] * ends[1]) ** 0.5, ends[1]])
                _cut(axes)
                axes.set_title(subcase, fontsize=8.5)
                axes.grid(axis="y")
                if at // across == down - 1:
                    axes.set_xlabel(CHECKS[check].parameter)
            for row in range(down):
                spots[part * down + row][0].set_ylabel(kind)
            handles, labels = spots[part * down][0].get_legend_handles_labels()
            spots[part * down][across - 1].legend(
                handles,
                [style.name_of(label) for label in labels],
                loc="center left",
                bbox_to_anchor=(1.02, 0.5),
                fontsize=7,
            )
        for row in spots:
            for axes in row:
                if not axes.lines:
                    axes.set_axis_off()
        figure.suptitle(CHECKS[check].title, fontsize=10)
    return figure


def _cut(axes: Any) -> None:
    """End the axis above 1 and say what lies beyond: density has no upper bound and would flatten all others."""
    beyond = []
    for line in axes.lines:
        values = np.asarray(line.get_ydata())
        if (values > _CUT).any():
            beyond.append(f"{style.name_of(line.get_label())} to {np.nanmax(values):.3g}")
    if beyond:
        axes.set_ylim(-0.08, _CUT)
        axes.text(
            0.98,
            0.98,
            "\n".join(beyond),
            transform=axes.transAxes,
            ha="right",
            va="top",
            fontsize=6.5,
            color=style.MUTED,
        )


def _column_styles(names: Sequence[str]) -> list[tuple[str, str]]:
    """A metric has one colour and marker, with and without its correction."""
    metrics = list(dict.fromkeys(name.split("+")[0] for name in names))
    return [style.style_of(metrics.index(name.split("+")[0])) for name in names]


# --- studies ----------------------------------------------------------------------------------------------


def hypersphere(found: Hypersphere) -> Any:
    """Scores of disjoint spheres by dimension: all should be 0."""
    with style.look():
        figure = style.new_figure(_WIDTH, 3.3)
        panels = figure.subplots(1, 2, sharey=True)
        dashes = ["--" if at % 2 else "-" for at in range(len(found.metrics))]
        styles = [(style.style_of(at)[0], style.style_of(at // 2)[1], dash) for at, dash in enumerate(dashes)]
        for axes, title, values in zip(
            panels, ("without GICDM", "with GICDM"), (found.plain, found.corrected), strict=True
        ):
            for name, (colour, marker, dash), line in zip(found.metrics, styles, values, strict=True):
                if np.isnan(line).all():
                    continue
                axes.plot(found.dimensions, line, dash, color=colour, marker=marker, markersize=3, label=name)
                if line.max() > _CUT:
                    at = int(np.argmax(line > _CUT))
                    axes.annotate(f"{name} rises to {line.max():.0f}", (found.dimensions[at], _CUT - 0.03), (4, 0),
                                  textcoords="offset points", fontsize=7, color=colour, va="top")  # fmt: skip
            _powers(axes, found.dimensions)
            axes.set_title(title)
            axes.grid(axis="y")
            axes.set_ylim(-0.04, _CUT)
        panels[0].set_ylabel("score of disjoint sets")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", fontsize=7)
    return figure


def components(found: Components) -> Any:
    """Precision of disjoint spheres as GICDM is put together."""
    with style.look():
        figure = style.new_figure(5.4, 3.0)
        axes = figure.subplots()
        # Stages that coincide are still seen: the later line is thinner and lies above.
        for at, (stage, line) in enumerate(zip(found.stages, found.precision, strict=True)):
            _line(axes, found.dimensions, line, at, markersize=6 - at, linewidth=3.2 - 0.8 * at, label=stage)
        _powers(axes, found.dimensions)
        axes.set_ylabel("precision of disjoint sets")
        axes.set_ylim(-0.05, 1.08)
        axes.grid(axis="y")
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def dimension(found: Dimension) -> Any:
    """Hub ratio and antihub rate against the dimension."""
    with style.look():
        figure = style.new_figure(_WIDTH, 2.9)
        panels = figure.subplots(1, 2)
        for axes, title, values in zip(
            panels, ("hub ratio", "antihub rate"), (found.hub_ratio, found.antihub_rate), strict=True
        ):
            for at, (name, line) in enumerate(zip(found.data, values, strict=True)):
                _line(axes, found.dimensions, line, at, markersize=4, label=name)
            _logarithmic(axes)
            axes.set(xlabel="dimension", ylabel=title)
            axes.set_ylim(bottom=0)
            axes.grid(axis="y")
        panels[0].legend(loc="upper left")
    return figure


def convergence(found: Convergence) -> Any:
    """The largest deviation of a point's mean neighbour distance from the mean of all, by iteration."""
    with style.look():
        figure = style.new_figure(5.4, 3.0)
        axes = figure.subplots()
        steps = np.arange(1, found.low.shape[1] + 1)
        largest = np.maximum(np.abs(found.low), np.abs(found.high))
        for at, (case, line) in enumerate(zip(found.cases, largest, strict=True)):
            _line(axes, steps, np.where(line > 0.0, 100.0 * line, np.nan), at, label=case)
        axes.axhline(0.1, color=style.MUTED, linewidth=0.8, linestyle=":")
        axes.axvline(10, color=style.MUTED, linewidth=0.8, linestyle=":")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xticks(steps[[0, *range(4, len(steps), 5)]])
        axes.set(xlabel="iterations of ICDM", ylabel="largest deviation (%)")
        axes.grid(axis="y")
        axes.legend(loc="upper right")
    return figure


def crossover(found: Crossover) -> Any:
    """The crossover dimension against the number of points, a line for each neighbourhood."""
    with style.look():
        figure = style.new_figure(5.4, 3.0)
        axes = figure.subplots()
        for at, (k, line) in enumerate(zip(found.k, found.dimension, strict=True)):
            _line(axes, found.n, line, at)
            axes.annotate(f"K = {k}", (found.n[-1], line[-1]), (5, 0), textcoords="offset points", va="center",
                          fontsize=8, color=style.INK)  # fmt: skip
        _logarithmic(axes)
        axes.set_xlim(right=found.n[-1] * 2.6)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="points", ylabel="crossover dimension")
        axes.grid(axis="y")
    return figure


def _line(axes: Any, x: Any, y: Any, place: int, markersize: float = 3.5, **options: Any) -> None:
    colour, marker = style.style_of(place)
    axes.plot(x, y, color=colour, marker=marker, markersize=markersize, **options)


def corrections(found: Corrections) -> Any:
    """Hub ratio and antihub rate after each correction: published means beside a mixture of ours."""
    with style.look():
        figure = style.new_figure(_WIDTH, 3.2)
        panels = figure.subplots(1, 2, sharey=True)
        y = np.arange(len(found.corrections))
        pairs = (
            ("hub ratio", found.published_hub_ratio, found.hub_ratio, "{:.1f}"),
            ("antihub rate", found.published_antihub_rate, found.antihub_rate, "{:.2f}"),
        )
        for axes, (title, published, ours, form) in zip(panels, pairs, strict=True):
            for shift, values, colour, label in ((-0.19, published, style.MUTED, "published, mean of 17 embeddings"),
                                                 (0.19, ours, style.COLOURS[0], "a Gaussian mixture")):  # fmt: skip
                axes.barh(y + shift, values, 0.36, color=colour, label=label)
                for place, value in zip(y + shift, values, strict=True):
                    axes.annotate(form.format(value), (value, place), (3, 0), textcoords="offset points", va="center",
                                  fontsize=7, color=style.INK)  # fmt: skip
            axes.set_xlabel(title)
            axes.margins(x=0.12)
            axes.locator_params(axis="x", nbins=5)
            style.grid(axes, "x")
        panels[0].set_yticks(y, found.corrections)
        panels[0].invert_yaxis()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _logarithmic(axes: Any) -> None:
    """A logarithmic axis whose numbers are written out."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 100 else f"{value:.3g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")


def _powers(axes: Any, dimensions: Any) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(dimensions), [str(d) for d in dimensions])
    axes.minorticks_off()
    axes.set_xlabel("dimension")
