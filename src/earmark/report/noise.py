"""What label noise costs: each metric relative to its value with the labels as they are.

    of the value      value(share) / value(0)
    above chance      (value(share) - chance(share)) / (value(0) - chance(0)), where labels were shuffled and the
                      value without noise lies above 97.5 % of the shuffles

Only metrics of which more is better are drawn: of one of which less is better, nothing is left or lost. All values of a
figure are of one protocol, the one that has most of them.

Over several subsets the means are divided, not the quotients averaged: a subset near zero would drown the others.

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
from earmark.report.score_index import ALL, PROTOCOLS, Representation, ScoreIndex, Subset, as_index, representation
from earmark.scores import Row, Scores
from earmark.wording import counted, listed

METRICS = ("P@1", "GSR")
MOST_SYSTEMS = 4
MOST_SUBSETS = 4
Cells = dict[tuple[Representation, Subset], dict[float, Row]]
"""By configuration and subset, the rows by share of exchanged labels."""
OF_VALUE, ABOVE_CHANCE = "of the value", "above chance"
_LEFT = {OF_VALUE: "of the clean score are left", ABOVE_CHANCE: "of the clean score's lead over chance are left"}


class NoiseCurve(NamedTuple):
    """One configuration and metric on one subset, or the mean over subsets: value and lift at each share of labels.

    `lifts` is empty where chance was not measured, or where the value without noise is no better than chance.
    """

    line: Representation
    metric: str
    subset: str
    shares: tuple[float, ...]
    values: tuple[float, ...]
    lifts: tuple[float, ...] = ()

    @property
    def left(self) -> dict[str, tuple[float, ...]]:
        """What is left at each share, by OF_VALUE and ABOVE_CHANCE."""
        kinds = {OF_VALUE: self.values, ABOVE_CHANCE: self.lifts}
        return {kind: tuple(one / own[0] for one in own) for kind, own in kinds.items() if own}


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
    reversed: tuple[str, ...] = ()  # metrics that were asked for, and of which less is better
    elsewhere: int = 0  # subsets that were measured under another protocol only
    clips: tuple[int, ...] = ()  # of each subset, fewest first

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


def find_noise(scores: Scores | ScoreIndex, metrics: Sequence[str] = (), *, most: int = MOST_SYSTEMS) -> NoiseCurves:
    """The curves of the best configuration of each model, best models first; InputError where there is no noise."""
    index = as_index(scores)
    noisy = [row for row in index.ablations if row.value is not None and row.status == "ok"]
    if not noisy:
        raise InputError(
            "No row was measured under label noise: add `--label-noise 0.01,0.05,0.1,0.2` to `earmark run`."
        )
    measured = sorted(dict.fromkeys(row.metric for row in noisy), key=lambda name: not facts(name).higher_is_better)
    asked = tuple(metrics) or tuple(m for m in METRICS if m in measured) or (measured[0],)
    wanted = tuple(metric for metric in asked if facts(metric).higher_is_better)
    if not wanted:
        raise InputError(
            f"Less is better in {listed(asked)}, so that nothing is left or lost of it under label noise: choose a "
            "metric of which more is better, such as P@1, or read its values with `earmark compare RUN --vary noise`."
        )
    cells = {metric: _by_cell(index, noisy, metric) for metric in wanted}
    protocol = _one_protocol(cells)
    found = {metric: own.get(protocol, {}) for metric, own in cells.items()}
    shown = tuple(metric for metric in wanted if found[metric])
    if not shown:
        raise InputError(f"{listed(wanted)} has no value both with and without label noise.")
    ranked = _best_first(found[shown[0]])
    lines = _of_each_model(ranked, most)
    lines = lines if _shared_places(index, found, shown, lines) else lines[:1]
    shown = shown if _shared_places(index, found, shown, lines) else shown[:1]
    places = _shared_places(index, found, shown, lines)
    measured_on = {place for own in cells.values() for cell in own.values() for line, place in cell if line in lines}
    kept = {place for own in found.values() for _, place in own}
    drawn = [
        (line, metric, place, found[metric][line, place])
        for metric in shown
        for line in lines
        for place in places
        if (line, place) in found[metric]
    ]
    curves = [_curve(*cell) for cell in drawn]
    shares = tuple(sorted({share for curve in curves for share in curve.shares}))
    averaged = len(places) if len(places) > MOST_SUBSETS else 0
    if averaged:
        curves = [
            _mean([one for one in curves if (one.line, one.metric) == (line, metric)])
            for metric in shown
            for line in lines
        ]
    return NoiseCurves(
        shown, lines, tuple(dict.fromkeys(curve.subset for curve in curves)), shares, tuple(curves), averaged,
        len(ranked), PROTOCOLS.get(protocol, protocol), tuple(name for name in asked if name not in wanted),
        len(measured_on - kept), tuple(sorted({own[0.0].n or 0 for *_, own in drawn} - {0})),
    )  # fmt: skip


def _shared_places(
    index: ScoreIndex, found: Mapping[str, Cells], metrics: Sequence[str], lines: Sequence[Representation]
) -> list[Subset]:
    """The subsets on which every configuration has every metric."""
    known = [{place for one, place in found[metric] if one == line} for line in lines for metric in metrics]
    return [place for place in index.subsets if place in set.intersection(*known)]


def _by_cell(index: ScoreIndex, noisy: Sequence[Row], metric: str) -> dict[str, Cells]:
    """By protocol, then by configuration and subset: the rows by share."""
    clean = [row for row in index.rows if row.metric == metric and row.status == "ok" and row.value]
    cells: dict[tuple[Representation, Subset, str], dict[float, Row]] = {}
    for row in [*clean, *(row for row in noisy if row.metric == metric)]:
        key = representation(row), Subset(row.suite, row.labelled_subset), row.protocol
        cells.setdefault(key, {})[row.label_noise] = row
    found: dict[str, Cells] = {}
    for (line, place, protocol), rows in cells.items():
        if 0.0 in rows and len(rows) > 1:
            found.setdefault(protocol, {})[line, place] = rows
    return found


def _one_protocol(cells: Mapping[str, Mapping[str, Cells]]) -> str:
    """The protocol with most metrics, then with most values; across groups where two have as many."""
    names = dict.fromkeys(name for own in cells.values() for name in own)

    def worth(name: str) -> tuple[int, int, bool]:
        sizes = [len(own[name]) for own in cells.values() if name in own]
        return len(sizes), sum(sizes), name != ALL

    return max(names, key=worth, default=ALL)


def _best_first(found: Cells) -> list[Representation]:
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


def _curve(line: Representation, metric: str, place: Subset, rows: Mapping[float, Row]) -> NoiseCurve:
    shares = tuple(sorted(rows))
    first = rows[0.0]
    floor = first.baseline if first.baseline_high is None else first.baseline_high
    lifts = tuple(rows[share].lift for share in shares)
    above = facts(metric).higher_is_better and floor is not None and (first.value or 0.0) > floor
    kept = tuple(lift for lift in lifts if lift is not None) if above and None not in lifts else ()
    return NoiseCurve(line, metric, place.label, shares, tuple(rows[share].value or 0.0 for share in shares), kept)


def _mean(curves: Sequence[NoiseCurve]) -> NoiseCurve:
    """The mean over subsets at the shares that all of them have; lifts only where every subset has some."""
    first = curves[0]
    shares = tuple(share for share in first.shares if all(share in curve.shares for curve in curves))
    places = [[curve.shares.index(share) for share in shares] for curve in curves]
    values = np.mean([np.take(curve.values, own) for curve, own in zip(curves, places, strict=True)], axis=0)
    lifts: list[float] = []
    if all(curve.lifts for curve in curves):
        lifts = np.mean([np.take(curve.lifts, own) for curve, own in zip(curves, places, strict=True)], axis=0).tolist()
    name = f"mean of {len(curves)} subsets"
    return NoiseCurve(first.line, first.metric, name, shares, tuple(values.tolist()), tuple(lifts))


def _realised(found: NoiseCurves) -> str:
    """Where a share of few clips is another one, since only whole clips can be exchanged."""
    said = []
    for clips in found.clips[:1]:  # the smallest subset differs most
        for share in found.shares:
            real = round(share * clips) / clips
            if f"{100 * real:.1f}" != f"{100 * share:.1f}":
                said.append(f"{100 * share:g} % of {clips} clips is {100 * real:.1f} %")
    return listed(said)


def noise_sentences(found: NoiseCurves) -> list[str]:
    """What the figure shows, and what it does not."""
    where = f"the mean over {found.averaged} subsets" if found.averaged else counted(len(found.subsets), "subset")
    sentences = [
        f"What is left of {listed(found.metrics)} ({found.protocol}) when a share of the labels is exchanged for "
        f"others; {where}. Dotted: (1 − share)², the probability that two clips of one label still share it."
    ]
    if found.reversed:
        sentences.append(f"Not drawn: {listed(found.reversed)}, of which less is better.")
    if found.elsewhere:
        sentences.append(f"Left out: {counted(found.elsewhere, 'subset')} measured under another protocol only.")
    if realised := _realised(found):
        sentences.append(f"Shares are rounded to whole clips: {realised}.")
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
                parts.append(
                    f"{metric} {low:.0f} %" if round(low) == round(high) else f"{metric} {low:.0f} to {high:.0f} %"
                )
        if parts:
            sentences.append(f"At {100 * top:g} % noise {listed(parts)} {_LEFT[kind]}.")
    if ABOVE_CHANCE in found.kinds:
        sentences.append(
            "Chance is what shuffled labels give. A metric with a high chance level, such as GSR, cannot fall far below"
            " it: as a share of its clean score it can look steadier than its lead over chance is."
        )
    else:
        sentences.append(
            "Chance was not measured (--permutations), or scores are not above it: how far a metric can fall at all is "
            "not shown."
        )
    sentences.append("One draw of the exchanged labels, the same for every configuration; there are no intervals.")
    return sentences
