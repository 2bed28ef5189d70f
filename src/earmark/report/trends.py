"""Do scores follow from the subsets? A metric of the best configurations against clips, classes, duration, range.

A configuration is a system under a distance and a correction. The top x % are those with the best mean over the
subsets, chosen for each metric by itself, among the configurations that have a value on every one of them. A subset's
value is the mean over the chosen. Spearman's rho is of these values with a property of the subsets, the units:

    interval   95 %, on Fisher's scale (`analysis.transfer.rho_interval`), not corrected
    p_value    times the number of metrics and properties looked at together (Bonferroni)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.similarities import rank_correlations
from earmark.analysis.transfer import rho_interval
from earmark.errors import InputError
from earmark.report.content import SubsetFacts
from earmark.report.metric_text import facts
from earmark.report.score_index import (
    Representation,
    ScoreIndex,
    Subset,
    Values,
    as_index,
    mean_over_subsets,
)
from earmark.scores import Scores
from earmark.tables import NumberFormat, p_value_text
from earmark.wording import counted, listed

Floats = NDArray[np.float64]

TOP = 5.0
FEWEST_SUBSETS = 3
ENOUGH_SUBSETS = 5
"""Subsets below which ranks agree or disagree by chance."""
TANGLED = 0.7  # properties that correlate so far cannot be told apart
_DIGITS = 12
_RHO = NumberFormat(2)

PROPERTIES: dict[str, Callable[[SubsetFacts], float]] = {
    "clips": lambda item: float(item.clips),
    "classes": lambda item: float(item.classes),
    "clips per class": lambda item: item.clips / max(item.classes, 1),
    "mean duration (s)": lambda item: item.durations.mean if item.durations else float("nan"),
    "dynamic range (dB)": lambda item: float("nan") if item.dri is None else item.dri,
}


class Trend(NamedTuple):
    """One metric and one property over the subsets; `reason` says why there is no rho, or no interval."""

    metric: str
    fact: str
    rho: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    reason: str = ""

    @property
    def told(self) -> bool:
        """Whether it is there after the correction."""
        return self.p_value is not None and self.p_value < 0.05

    @property
    def text(self) -> str:
        """`ρ = −0.58 [−0.83, −0.13]`."""
        if self.rho is None:
            return ""
        ends = _RHO.interval(self.low, self.high, sign=True)
        return f"ρ = {_RHO.text(self.rho, sign=True)}{f' {ends}' if ends else ''}"


class BestConfigurations(NamedTuple):
    """The configurations of one metric: those chosen, best first, and from how many."""

    chosen: tuple[Representation, ...]
    complete: int  # with a value on every subset
    known: int  # with a value on some


class Trends(NamedTuple):
    """Everything of one share of the configurations. `at` has the properties, `means` the metrics, by subset."""

    top: float
    subsets: tuple[Subset, ...]
    facts: tuple[SubsetFacts, ...]
    at: Mapping[str, Floats]
    values: Mapping[str, Values]
    choices: Mapping[str, BestConfigurations]
    means: Mapping[str, Floats]
    trends: tuple[Trend, ...]
    comparisons: int

    def chosen_values(self, metric: str) -> list[list[float]]:
        """By subset, the values of the chosen configurations."""
        chosen = self.choices[metric].chosen
        return [[rows[line].value or 0.0 for line in chosen] for rows in self.values[metric].values()]

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, a line for each metric and property."""
        sizes = {metric: len(choice.chosen) for metric, choice in self.choices.items()}
        return [
            {
                "top": self.top, "metric": item.metric, "configurations": sizes[item.metric],
                "property": item.fact, "subsets": len(self.subsets), "rho": item.rho, "low": item.low,
                "high": item.high, "p_value": item.p_value, "comparisons": self.comparisons, "reason": item.reason,
            }
            for item in self.trends
        ]  # fmt: skip


def find_trends(
    scores: Scores | ScoreIndex, subsets: Sequence[SubsetFacts], metrics: Sequence[str] = (), top: float = TOP
) -> Trends:
    """The trends of the top `top` % of configurations; InputError where there is nothing to see.

    Args:
        scores: The score table.
        subsets: What is known of its subsets.
        metrics: Which; none: those of `LEADING` that were measured, else the one that leads.
        top: Share of the configurations in percent, at least one of them.
    """
    if not 0.0 < top <= 100.0:
        raise InputError(f"The top {top:g} % of configurations cannot be taken: choose more than 0 and at most 100.")
    index = as_index(scores)
    known = {(item.suite, item.subset): item for item in subsets}
    wanted = index.chosen(metrics)
    places = [place for place in index.subsets if place in known and all(place in index.values(m) for m in wanted)]
    if len(places) < FEWEST_SUBSETS:
        raise InputError(
            f"A trend takes three subsets with known properties, and there {'is' if len(places) == 1 else 'are'} "
            f"{len(places)}: give clips, classes and seconds of each as a file that `earmark corpus describe --out` "
            "writes (--facts)."
        )
    values: dict[str, Values] = {m: {place: index.values(m)[place] for place in places} for m in wanted}
    choices = {metric: _choose(found, metric, top) for metric, found in values.items()}
    described = tuple(known[place] for place in places)
    measured = {name: np.array([read(item) for item in described]) for name, read in PROPERTIES.items()}
    at = {name: value for name, value in measured.items() if _varies(value)}
    if not at and len({item.domain for item in described}) < 2:
        raise InputError("The subsets do not differ in what is known of them: there is no trend to see.")
    means = {metric: _means(values[metric], choice.chosen) for metric, choice in choices.items()}
    found = [_trend(metric, name, x, means[metric]) for metric in wanted for name, x in at.items()]
    tested = sum(item.p_value is not None for item in found)
    trends = tuple(
        item if item.p_value is None else item._replace(p_value=min(1.0, tested * item.p_value)) for item in found
    )
    return Trends(top, tuple(places), described, at, values, choices, means, trends, tested)


def _varies(at: Floats) -> bool:
    """Two values are a comparison, not a trend."""
    return bool(np.isfinite(at).all()) and len(set(at.tolist())) >= FEWEST_SUBSETS


def _choose(found: Values, metric: str, top: float) -> BestConfigurations:
    means = mean_over_subsets(found)
    known = len({line for rows in found.values() for line in rows})
    if not means:
        raise InputError(f"No configuration has {metric} on all of {len(found)} subsets: choose fewer (--subset).")
    turned = 1 if facts(metric).higher_is_better else -1
    order = sorted(means, key=lambda line: -turned * round(means[line], _DIGITS))  # equal ones as in the table
    return BestConfigurations(tuple(order[: max(1, int(len(order) * top / 100 + 0.5))]), len(means), known)


def _means(found: Values, chosen: Sequence[Representation]) -> Floats:
    return np.array([np.mean([rows[line].value or 0.0 for line in chosen]) for rows in found.values()])


def _trend(metric: str, name: str, x: Floats, y: Floats) -> Trend:
    x, y = np.round(x, _DIGITS), np.round(y, _DIGITS)
    if len(x) < ENOUGH_SUBSETS:
        return Trend(metric, name, reason=f"{counted(len(x), 'subset')}, and {ENOUGH_SUBSETS} are needed")
    if np.ptp(y) == 0:
        return Trend(metric, name, reason=f"{metric} is the same on all subsets")
    rho = float(rank_correlations(x[:, None], y[:, None])[0, 0])
    low, high, p_value, _, reason = rho_interval(x, y, np.arange(len(x)))
    return Trend(metric, name, rho, low, high, p_value, reason)


# --- in words -------------------------------------------------------------------------------------------------------


def trend_sentences(trends: Trends) -> list[str]:
    """What the figure shows, how it was made, and what it does not show."""
    sentences = [_about_choice(trends)]
    if any(item.rho is not None for item in trends.trends):
        sentences += [_about_metric(trends, metric) for metric in trends.means]
        sentences.append(
            f"ρ is Spearman's rank correlation over {len(trends.subsets)} subsets with its 95 % interval; p-values are "
            f"corrected for the {trends.comparisons} that are looked at here. Subsets from one source resemble each "
            "other, so intervals are if anything too narrow."
        )
    elif trends.trends:
        sentences.append(f"No rank correlation: {trends.trends[0].reason}.")
    sentences += _tangled(trends)
    return sentences


def _about_choice(trends: Trends) -> str:
    share = "All" if trends.top == 100 else f"The best {trends.top:g} % of"
    parts = []
    for metric, choice in trends.choices.items():
        parts.append(f"{len(choice.chosen)} of {choice.complete} by {metric}")
    shown = parts[0] if len(set(parts)) == 1 else listed(parts)
    said = f"{share} configurations (system and distance; {shown}) on {len(trends.subsets)} subsets"
    lost = max(choice.known - choice.complete for choice in trends.choices.values())
    if lost:
        said += f"; {lost} without a value on every subset are left out"
    if trends.top < 100:
        said += (
            ". They were chosen by their mean over these same subsets: how high they lie is flattered, how they differ "
            "between subsets is not"
        )
        if len(trends.choices) > 1:
            said += (
                ". Each metric has its own best configurations: the points of two metrics are not of the same systems, "
                "and P@5 can lie above P@1"
            )
    return f"{said}."


def _about_metric(trends: Trends, metric: str) -> str:
    own = [item for item in trends.trends if item.metric == metric and item.rho is not None]
    if not own:
        return f"{metric}: no rank correlation ({next(i.reason for i in trends.trends if i.metric == metric)})."
    told = [item for item in own if item.told]
    likely = [item for item in own if not item.told and (item.low or 0.0) * (item.high or 0.0) > 0]
    rest = [item for item in own if item not in told and item not in likely]
    parts = []
    if told:
        moves = [
            f"{'falls' if (item.rho or 0) < 0 else 'rises'} with {item.fact} ({item.text}, "
            f"{p_value_text(item.p_value or 0.0)})"
            for item in told
        ]
        parts.append(listed(moves))
    if likely:
        parts.append(
            f"may go with {listed([f'{item.fact} ({item.text})' for item in likely])}, which is "
            f"not sure: among {counted(trends.comparisons, 'correlation')} one like it can come up by chance"
        )
    if rest:
        shown = listed([f"{item.fact} ({item.text})" for item in rest])
        parts.append(f"shows no trend with {shown}")
    spread = trends.means[metric].std(ddof=1)
    scale = 100 if facts(metric).percent else 1
    unit = " points" if facts(metric).percent else ""
    return f"{metric} {'; it '.join(parts)}. Its standard deviation over subsets is {scale * spread:.3g}{unit}."


def _tangled(trends: Trends) -> list[str]:
    """Properties that go together, which no figure can tell apart."""
    if len(trends.subsets) < ENOUGH_SUBSETS:
        return []
    pairs = []
    for (one, x), (other, y) in combinations(trends.at.items(), 2):
        rho = float(rank_correlations(x[:, None], y[:, None])[0, 0])
        if abs(rho) >= TANGLED:
            pairs.append(f"{one} and {other} ({_RHO.text(rho, sign=True)})")
    return [f"These properties go together, so their trends are not told apart: {listed(pairs)}."] if pairs else []
