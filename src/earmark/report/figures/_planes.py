"""Several generated sets on the fidelity-coverage plane, from score rows alone: a panel for each pair of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from earmark.errors import InputError
from earmark.report.figures import style
from earmark.report.figures.fidelity import CORRECTED, PAIRS, draw_on_plane, frame_plane, plane_points
from earmark.report.score_index import Subset, subset
from earmark.scores import Row, Scores
from earmark.wording import counted

MOST_SYSTEMS = 28
_COLUMNS = 3

Points = Mapping[str, Mapping[str, tuple[Row, Row]]]
"""By pair of metrics and correction, the rows of fidelity and coverage."""


class Plane(NamedTuple):
    """One real set under one distance: the generated sets that were judged by it, in the order of the table."""

    real: Subset
    distance: str
    sets: Mapping[str, Points]

    @property
    def pairs(self) -> list[str]:
        return [pair for pair in PAIRS if any(pair in points for points in self.sets.values())]

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, a line for each generated set, pair of metrics and correction."""
        return [
            {
                "real": self.real.label, "distance": self.distance, "system": system, "pair": pair,
                "correction": correction, "fidelity": up.value, "fidelity_low": up.low, "fidelity_high": up.high,
                "coverage": right.value, "coverage_low": right.low, "coverage_high": right.high,
            }
            for system, points in self.sets.items()
            for pair, by_correction in points.items()
            for correction, (up, right) in by_correction.items()
        ]  # fmt: skip


def find_planes(scores: Scores) -> list[Plane]:
    """A plane for each real set and distance; InputError where no generated set has a pair of metrics."""
    rows: dict[tuple[Subset, str], dict[str, list[Row]]] = {}
    for row in scores:
        if row.status == "ok" and row.single and not row.statistic and row.protocol == "all":
            rows.setdefault((subset(row), row.distance), {}).setdefault(row.system, []).append(row)
    planes = []
    for (real, distance), systems in rows.items():
        sets = {name: points for name, own in systems.items() if (points := plane_points(own))}
        if sets:
            planes.append(Plane(real, distance, sets))
    if not planes:
        raise InputError(
            "No row has fidelity and coverage of a generated set: make some with `earmark fidelity REAL GENERATED "
            "--out scores.csv`."
        )
    return planes


def draw_planes(found: Plane) -> Any:
    """Each generated set in its own colour and marker, hollow without GICDM and filled with it."""
    names = list(found.sets)[:MOST_SYSTEMS]
    looks = style.looks(names)
    pairs = found.pairs
    columns = min(_COLUMNS, len(pairs))
    lines = -(-len(pairs) // columns)
    with style.look():
        figure = style.new_figure(
            max(2.9 * columns + 0.2, 4.6), 2.75 * lines + 0.2 * -(-(len(names) + 2) // (2 * columns)) + 0.3
        )
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, pair in zip(panels, pairs, strict=False):
            up, right = PAIRS[pair]
            frame_plane(axes, right, up)
            for name in names:
                if pair in found.sets[name]:
                    draw_on_plane(axes, found.sets[name][pair], *looks[name])
        for axes in panels[len(pairs) :]:
            axes.remove()
        figure.legend(
            handles=_handles(names, looks, _corrections(found)), loc="outside lower center",
            ncols=max(1, min(2 * columns, len(names) + 2)), handletextpad=0.3, columnspacing=1.2, fontsize=7.5,
        )  # fmt: skip
    return figure


def _corrections(found: Plane) -> set[str]:
    return {name for points in found.sets.values() for by_correction in points.values() for name in by_correction}


def _handles(names: Sequence[str], looks: Mapping[str, tuple[str, str]], present: set[str]) -> list[Any]:
    line = style.library("matplotlib.lines").Line2D
    labels = style.names_of([name or "set" for name in names], 30)
    handles = [
        line([], [], color=looks[name][0], marker=looks[name][1], linestyle="none", label=label)
        for name, label in zip(names, labels, strict=True)
    ]
    handles += [
        line([], [], marker="o", markerfacecolor=face, markeredgecolor=style.INK, linestyle="none", label=title)
        for correction, title, face in CORRECTED
        if correction in present
    ]
    return handles


def plane_sentences(found: Plane) -> list[str]:
    """What the figure shows."""
    sentences = [
        f"{counted(len(found.sets), 'generated set')} judged by {found.real.label} ({found.distance}): up is more like "
        "the real, right is more of the real covered, and the corner is where real data lie. Bars are 95 % intervals "
        "of each metric by itself; whether two sets differ is read from their paired difference, not from their bars."
    ]
    if len(found.sets) > MOST_SYSTEMS:
        sentences.append(f"The first {MOST_SYSTEMS} are drawn.")
    if {"none", "gicdm"} <= _corrections(found):
        sentences.append("Hollow is without GICDM, filled with it; where the two differ, trust the second.")
    return sentences
