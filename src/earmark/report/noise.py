"""What label noise costs: each metric relative to its value with the labels as they are.

    of the value      value(share) / value(0)
    above chance      (value(share) - chance(share)) / (value(0) - chance(0)), where labels were shuffled

A metric that is far above zero by chance, as GSR is, cannot fall to nothing, and looks steadier of the value than it is
above chance: both are given. Where a share of the labels is exchanged, two clips that had one label still share it with
a probability of about (1 - share)^2, which is what P@1 would keep if nothing else mattered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from earmark.analysis import parts_of
from earmark.errors import InputError
from earmark.report.metric_text import facts, goodness
from earmark.report.score_index import PROTOCOLS, Representation, ScoreIndex, as_index, representation
from earmark.scores import Row, Scores
from earmark.wording import counted, listed

METRICS = ("P@1", "GSR")
MOST_SYSTEMS = 4
MOST_SUBSETS = 4
OF_VALUE, ABOVE_CHANCE = "of the value", "above chance"


class NoiseCurve(NamedTuple):
    """One configuration and metric on one subset: shares of labels, and what is left of the metric at each."""

    line: Representation
    metric: str
    subset: str
    shares: tuple[float, ...]
    left: Mapping[str, tuple[float, ...]]  # by OF_VALUE and ABOVE_CHANCE, as far as there is one


class NoiseCurves(NamedTuple):
    """The curves that are drawn: a panel for each subset, or one for their mean."""

    metrics: tuple[str, ...]
    lines: tuple[Representation, ...]
    subsets: tuple[str, ...]
    shares: tuple[float, ...]
    curves: tuple[NoiseCurve, ...]
    averaged: int  # over so many subsets, where there are too many for a panel each
    known: int  # configurations with label noise, drawn or not
    protocol: str

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in (OF_VALUE, ABOVE_CHANCE) if any(kind in curve.left for curve in self.curves)]

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, a line for each point of a curve."""
        return [
            {
                "subset": curve.subset, "system": curve.line.system, "distance": curve.line.distance,
                "correction": curve.line.correction, "metric": curve.metric, "share": share, "relative_to": kind,
                "left": value,
            }
            for curve in self.curves
            for kind, values in curve.left.items()
            for share, value in zip(curve.shares, values, strict=True)
        ]  # fmt: skip


def find_noise(
    scores: Scores | ScoreIndex, metrics: Sequence[str] = (), *, most: int = MOST_SYSTEMS
) -> NoiseCurves:
    """The curves of the best configuration of each model, best models first; InputError where there is no noise."""
    index = as_index(scores)
    noisy = [row for row in index.ablations if row.value is not None and row.status == "ok"]
    if not noisy:
        raise InputError(
            "No row was measured under label noise: add `--label-noise 0.01,0.05,0.1,0.2` to `earmark run`."
        )
    measured = dict.fromkeys(row.metric for row in noisy)
    wanted = tuple(metrics) or tuple(m for m in METRICS if m in measured) or (next(iter(measured)),)
    found = {metric: _by_cell(index, noisy, metric) for metric in wanted}
    shown = tuple(metric for metric in wanted if found[metric])
    if not shown:
        raise InputError(f"{listed(wanted)} has no value both with and without label noise.")
    ranked = _best_first(found[shown[0]])
    lines = _of_each_model(ranked, most)
    cells = {cell for metric in shown for cell in found[metric] if cell[0] in lines}
    subsets = list(dict.fromkeys(place for _, place in sorted(cells, key=lambda cell: lines.index(cell[0]))))
    protocols = {row.protocol for metric in shown for rows in found[metric].values() for row in rows.values()}
    protocol = PROTOCOLS.get(next(iter(protocols)), "") if len(protocols) == 1 else "across groups where that was measured"
    curves = [
        _curve(line, metric, place, found[metric][line, place])
        for metric in shown
        for line in lines
        for place in subsets
        if (line, place) in found[metric]
    ]
    shares = tuple(sorted({share for curve in curves for share in curve.shares}))
    averaged = 0
    if len(subsets) > MOST_SUBSETS:
        averaged = len(subsets)
        curves = [
            mean
            for metric in shown
            for line in lines
            if (mean := _mean([one for one in curves if (one.line, one.metric) == (line, metric)], averaged))
        ]
        subsets = [f"mean of {averaged} subsets"]
    return NoiseCurves(shown, lines, tuple(subsets), shares, tuple(curves), averaged, len(ranked), protocol)


def _by_cell(index: ScoreIndex, noisy: Sequence[Row], metric: str) -> dict[tuple[Representation, str], dict[float, Row]]:
    """By configuration and subset, the rows by share; across groups where both were measured so."""
    clean = [row for row in index.rows if row.metric == metric and row.status == "ok" and row.value]
    cells: dict[tuple[Representation, str, str], dict[float, Row]] = {}
    for row in [*clean, *(row for row in noisy if row.metric == metric)]:
        cells.setdefault((representation(row), row.labelled_subset, row.protocol), {})[row.label_noise] = row
    whole = {key: rows for key, rows in cells.items() if 0.0 in rows and len(rows) > 1}
    order = sorted(whole, key=lambda key: key[2] == "all")  # across groups first
    best: dict[tuple[Representation, str], dict[float, Row]] = {}
    for line, place, protocol in order:
        best.setdefault((line, place), whole[line, place, protocol])
    return best


def _best_first(found: Mapping[tuple[Representation, str], Mapping[float, Row]]) -> list[Representation]:
    values: dict[Representation, list[float]] = {}
    for (line, _), rows in found.items():
        values.setdefault(line, []).append(goodness(rows[0.0]))
    most = max(map(len, values.values()))
    return sorted(values, key=lambda line: (len(values[line]) < most, -float(np.mean(values[line]))))


def _of_each_model(ranked: Sequence[Representation], most: int) -> tuple[Representation, ...]:
    best: dict[str, Representation] = {}
    for line in ranked:
        best.setdefault(parts_of(line.system).model, line)
    chosen = list(best.values())[:most]
    return tuple([*chosen, *(line for line in ranked if line not in chosen and len(best) == 1)][:most])


def _curve(line: Representation, metric: str, place: str, rows: Mapping[float, Row]) -> NoiseCurve:
    shares = tuple(sorted(rows))
    first = rows[0.0]
    left = {OF_VALUE: tuple((rows[share].value or 0.0) / (first.value or 1.0) for share in shares)}
    lifts = [rows[share].lift for share in shares]
    if facts(metric).higher_is_better and lifts[0] and all(lift is not None for lift in lifts):
        left[ABOVE_CHANCE] = tuple((lift or 0.0) / lifts[0] for lift in lifts)
    return NoiseCurve(line, metric, place, shares, left)


def _mean(curves: Sequence[NoiseCurve], count: int) -> NoiseCurve | None:
    """The mean over subsets, at the shares that all of them have; None for a configuration that lacks a subset."""
    if len(curves) < count:
        return None
    first = curves[0]
    shares = tuple(share for share in first.shares if all(share in curve.shares for curve in curves))
    left = {
        kind: tuple(
            float(np.mean([curve.left[kind][curve.shares.index(share)] for curve in curves])) for share in shares
        )
        for kind in (OF_VALUE, ABOVE_CHANCE)
        if all(kind in curve.left for curve in curves)
    }
    return NoiseCurve(first.line, first.metric, f"mean of {count} subsets", shares, left)


def noise_sentences(found: NoiseCurves) -> list[str]:
    """What the figure shows, and what it does not."""
    where = f"the mean over {found.averaged} subsets" if found.averaged else counted(len(found.subsets), "subset")
    sentences = [
        f"What is left of {listed(found.metrics)} ({found.protocol}) when a share of the labels is exchanged for others;"
        f" {where}. Dotted: (1 − share)², the probability that two clips of one label still share it."
    ]
    if len(found.lines) < found.known:
        sentences.append(
            f"Drawn are {len(found.lines)} of {found.known} configurations, the best of each model by "
            f"{found.metrics[0]} without noise (--system chooses others)."
        )
    top = max(found.shares)
    for kind in found.kinds:
        parts = []
        for metric in found.metrics:
            ends = [
                curve.left[kind][-1] for curve in found.curves
                if curve.metric == metric and kind in curve.left and curve.shares[-1] == top
            ]  # fmt: skip
            if ends:
                low, high = 100 * min(ends), 100 * max(ends)
                parts.append(f"{metric} {low:.0f} %" if round(low) == round(high) else f"{metric} {low:.0f} to {high:.0f} %")
        if parts:
            sentences.append(f"At {100 * top:g} % noise there is left, {kind}: {listed(parts)}.")
    if ABOVE_CHANCE in found.kinds:
        sentences.append(
            "Chance is what shuffled labels give. A metric with a high chance level, such as GSR, cannot fall far below"
            " it and therefore looks steadier of its value than above chance."
        )
    else:
        sentences.append("Chance was not measured (--permutations), so how far a metric can fall at all is not shown.")
    sentences.append("One draw of the exchanged labels, the same for every configuration; there are no intervals.")
    return sentences
