"""A model over its layers: how far each lies behind the best, how they rank, and what choosing one is worth.

rank        of a layer among all that a subset has, 1 is best, equal values share the mean of their ranks
mean rank   over the subsets that have every layer, with an interval that leaves out one subset at a time
difference  to the last layer, which is what most people take: mean over subsets, its interval corrected for the
            number of other layers
held out    the layer that is best on the other subsets, on this one, minus the last: what a choice is worth where
            it was not made
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.jackknife import LEAST_UNITS, interval
from earmark.report.effects import difference_over_subsets, mean_without_each
from earmark.report.metric_text import facts, goodness, points
from earmark.report.score_index import ScoreIndex, Subset, as_index
from earmark.scores import Row, Scores
from earmark.tables import NumberFormat
from earmark.wording import counted

Floats = NDArray[np.float64]

_NAMED = re.compile(r"(?P<model>.+)@(?P<layer>\d+)(?P<variant>( .*)?)")
_RANK = NumberFormat(1)


class Layers(NamedTuple):
    """One representation of a model over its layers: rows by subset and layer."""

    label: str
    layers: tuple[int, ...]
    rows: Mapping[Subset, Mapping[int, Row]]

    @property
    def metric(self) -> str:
        return next(iter(next(iter(self.rows.values())).values())).metric

    def goodness(self) -> Floats:
        """The values [layers, subsets], turned so that more is better; NaN where a layer was not measured."""
        rows = self.rows.values()
        good = [[goodness(own[layer]) if layer in own else np.nan for own in rows] for layer in self.layers]
        return np.array(good, np.float64)

    def behind(self) -> Floats:
        """How far each layer [layers, subsets] lies behind the best of the subset; NaN where it was not measured."""
        good = self.goodness()
        return np.asarray(np.nanmax(good, axis=0) - good)

    def ranks(self) -> Floats:
        """The rank of each layer [layers, subsets] among those of the subset; NaN where it was not measured."""
        from scipy.stats import rankdata

        found = np.asarray(rankdata(-np.round(self.goodness(), 12), axis=0, nan_policy="omit"), np.float64)
        return found

    @property
    def complete(self) -> list[int]:
        """The places of the subsets that have every layer."""
        return np.flatnonzero(np.isfinite(self.goodness()).all(axis=0)).tolist()


def layered(scores: Scores | ScoreIndex, metric: str | None = None) -> list[Layers]:
    """What was measured at two layers or more, in the order of the table; across groups where that was measured."""
    index = as_index(scores)
    found: dict[str, dict[Subset, dict[int, Row]]] = {}
    for place, rows in index.values(metric or index.headline).items():
        for line, row in rows.items():
            named = _NAMED.fullmatch(line.system) if line.distance else None  # opus@6 is a codec, at 6 kbps
            if named is not None:
                label = line._replace(system=named["model"] + named["variant"]).label
                found.setdefault(label, {}).setdefault(place, {})[int(named["layer"])] = row
    made = [
        Layers(label, tuple(sorted({layer for rows in places.values() for layer in rows})), places)
        for label, places in found.items()
    ]
    return [one for one in made if len(one.layers) > 1]


def layers_by_metric(scores: Scores | ScoreIndex, metrics: tuple[str, ...] = ()) -> dict[str, dict[str, Layers]]:
    """By representation and metric, what was measured at two layers or more."""
    index = as_index(scores)
    found: dict[str, dict[str, Layers]] = {}
    for metric in index.chosen(metrics):
        for one in layered(index, metric):
            found.setdefault(one.label, {})[metric] = one
    return found


class LayerSummary(NamedTuple):
    """One layer over the subsets that have them all: mean rank and difference to the last layer, with intervals."""

    layer: int
    rank: float
    rank_low: float | None
    rank_high: float | None
    difference: float
    low: float | None
    high: float | None
    p_value: float | None


def summaries(layers: Layers) -> list[LayerSummary]:
    """A summary for each layer; empty where no subset has every layer. Differences are in the units of the metric."""
    kept = layers.complete
    if not kept:
        return []
    ranks = layers.ranks()[:, kept]
    turned = 1 if facts(layers.metric).higher_is_better else -1
    values = turned * layers.goodness()[:, kept]
    others, ends = len(layers.layers) - 1, (1.0, float(len(layers.layers)))
    lines = []
    for place, layer in enumerate(layers.layers):
        mean, change = float(ranks[place].mean()), float((values[place] - values[-1]).mean())
        line = LayerSummary(layer, mean, None, None, change, None, None, None)
        if len(kept) >= LEAST_UNITS:
            around = interval(mean, mean_without_each(ranks[place]), ends, "subset")
            line = line._replace(rank_low=around.low, rank_high=around.high)
        if place < others:
            tested = difference_over_subsets(values[place], values[-1], layers.metric, others)
            line = line._replace(low=tested.low, high=tested.high, p_value=tested.p_value)
        lines.append(line)
    return lines


def held_out_gain(layers: Layers) -> float | None:
    """The mean over subsets of what the best layer of the other subsets gains over the last; None under three."""
    kept = layers.complete
    if len(kept) < 3:
        return None
    turned = 1 if facts(layers.metric).higher_is_better else -1
    good = layers.goodness()[:, kept]
    gains = []
    for place in range(len(kept)):
        others = np.delete(good, place, axis=1).mean(axis=1)
        gains.append(good[int(np.argmax(others)), place] - good[-1, place])
    return turned * float(np.mean(gains))


def summary_rows(by_metric: Mapping[str, Layers]) -> list[dict[str, Any]]:
    """Plain values of one representation, a line for each metric and layer."""
    return [
        {"representation": one.label, "metric": metric, "subsets": len(one.complete), **item._asdict()}
        for metric, one in by_metric.items()
        for item in summaries(one)
    ]


def layer_sentences(by_metric: Mapping[str, Layers]) -> list[str]:
    """Which layers are best, and whether choosing one is worth it."""
    sentences = []
    for metric, one in by_metric.items():
        lines = summaries(one)
        if not lines:
            sentences.append(f"{metric}: no subset has every layer, so there is no mean rank.")
            continue
        best = min(lines, key=lambda item: item.rank)
        told = [item for item in lines if item.p_value is not None and item.p_value < 0.05]
        said = (
            f"{metric}: layer {best.layer} has the best mean rank ({_RANK.text(best.rank)} of {len(lines)}, over "
            f"{counted(len(one.complete), 'subset')})"
        )
        gain = held_out_gain(one)
        if gain is not None:
            said += f"; a layer chosen on the other subsets changes {metric} by {points(gain, metric)} against the last"
        if lines[0].rank_low is None:
            said += f"; there are no intervals, which take {LEAST_UNITS} subsets"
        elif told:
            far = max(told, key=lambda item: abs(item.difference))
            said += (
                f"; {len(told)} of {len(lines) - 1} other layers are told from the last, farthest layer {far.layer} "
                f"({points(far.difference, metric)})"
            )
        else:
            said += "; no layer is told from the last"
        sentences.append(f"{said}.")
    sentences.append(
        "The best layer of a subset is picked on the clips it is scored on, which flatters it. Differences to the last "
        "layer are corrected for the number of layers."
    )
    return sentences
