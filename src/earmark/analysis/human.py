"""Do metrics order generators as people do? Correlations of each metric with a number that people gave each generator.

Metric and judgement are turned so that more is better: a positive correlation is agreement. Over n generators:

    Pearson's r      interval on Fisher's scale, atanh(r) +- 1.96 / sqrt(n - 3), which takes values for normal: none
                     where all lie on a line. p by exchanging the judgements, all ways of it up to seven generators:
                     two clumps of generators make a large r, and no small p
    Spearman's rho   interval and p as in `earmark.analysis.transfer` (Bonett and Wright)
    p_adjusted       Holm's correction for all the metrics that were tried
    a correction's gain   r with it minus r without, of the same generators: Zou's interval, which knows that the two
                     correlations share the judgements and go together themselves

The unit is the generator: intervals say what other generators of the same kind would show. Versions of one generator
(with and without guidance) are no independent witnesses. With fewer than five generators nothing is said but r and rho.

Zou, Psychological Methods 12(4), 2007.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.similarities import correlations, rank_correlations
from earmark.analysis.transfer import FEWEST, rho_interval
from earmark.errors import InputError
from earmark.scores import Scores, metric_facts
from earmark.wording import counted, first_of

Floats = NDArray[np.float64]

_QUANTILE = 1.959963984540054
_ON_A_LINE = 1e-9  # nearer to 1 than this, r leaves nothing to estimate an error from
_EXCHANGES = 10_000
_DIGITS = 12  # values that differ by rounding alone are equal


class Correlation(NamedTuple):
    """A correlation with its 95 % interval, its p-value, and that corrected for the number of metrics."""

    value: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None


class HumanRelation(NamedTuple):
    """How one metric goes with the judgements over `systems`; both correlations are None for the `reason`."""

    distance: str
    correction: str
    metric: str
    systems: tuple[str, ...]
    pearson: Correlation | None
    spearman: Correlation | None
    reason: str = ""


class Gain(NamedTuple):
    """Pearson's r of a metric with a correction minus that without it, over the same systems."""

    distance: str
    correction: str
    metric: str
    systems: int
    without: float
    corrected: float
    low: float | None
    high: float | None

    @property
    def value(self) -> float:
        return self.corrected - self.without


class HumanAgreement(NamedTuple):
    """Every metric's relation to the judgements, what corrections gain, and remarks on systems that were left out."""

    relations: tuple[HumanRelation, ...]
    gains: tuple[Gain, ...]
    notes: tuple[str, ...] = ()


def human_agreement(
    scores: Scores, judgements: Mapping[str, float], *, higher_is_better: bool = True
) -> HumanAgreement:
    """Correlate every metric of a score table with judgements of its systems.

    Args:
        scores: Rows of several systems on one subset.
        judgements: A number for each system by name, such as how often people took its samples for real.
        higher_is_better: Whether a higher judgement is a better system.
    """
    systems = list(dict.fromkeys(row.system for row in scores))
    known = [name for name in systems if name in judgements]
    if not known:
        raise InputError(
            f"No judged system is among those measured ({first_of(systems, 3)}): name them as in the score table."
        )
    sign = 1.0 if higher_is_better else -1.0
    relations = []
    settings = dict.fromkeys((row.distance, row.correction, row.metric) for row in scores)
    for setting in settings:
        values = _values(scores, setting, known)
        if values:
            shared = tuple(name for name in known if name in values)
            relations.append(_relation(setting, shared, values, {name: sign * judgements[name] for name in shared}))
    adjusted = _adjusted(relations)
    notes = []
    if lacking := [name for name in systems if name not in judgements]:
        notes.append(f"no judgement of {counted(len(lacking), 'system')}: {first_of(lacking, 5)}")
    if unknown := [name for name in judgements if name not in systems]:
        notes.append(f"{counted(len(unknown), 'judged system')} not measured: {first_of(unknown, 5)}")
    if len(known) < FEWEST:
        notes.append(f"{counted(len(known), 'system')}: too few to conclude from r (intervals and p need {FEWEST})")
    return HumanAgreement(tuple(adjusted), tuple(_gains(scores, settings, known, judgements, sign)), tuple(notes))


def _values(scores: Scores, setting: tuple[str, str, str], known: Sequence[str]) -> dict[str, float]:
    distance, correction, metric = setting
    sign = 1.0 if metric_facts(metric).higher_is_better else -1.0
    found: dict[str, float] = {}
    for row in scores.select(distance=distance, correction=correction):
        if row.metric == metric and row.value is not None and row.system in known:
            if row.system in found:
                raise InputError(f"{row.system} has two values of {metric}: give the rows of one subset.")
            found[row.system] = sign * row.value
    return found


def _relation(
    setting: tuple[str, str, str], systems: tuple[str, ...], values: Mapping[str, float], judged: Mapping[str, float]
) -> HumanRelation:
    x = np.round([values[name] for name in systems], _DIGITS)
    y = np.round([judged[name] for name in systems], _DIGITS)
    if len(x) < 3:
        reason = f"{counted(len(x), 'system')} with both values: a correlation needs three"
        return HumanRelation(*setting, systems, None, None, reason)
    if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        reason = f"the {'metric' if np.ptp(x) == 0.0 else 'judgement'} is the same for all systems"
        return HumanRelation(*setting, systems, None, None, reason)
    r = float(correlations(x[:, None], y[:, None])[0, 0])
    rho = float(rank_correlations(x[:, None], y[:, None])[0, 0])
    if len(x) < FEWEST:
        return HumanRelation(*setting, systems, Correlation(r), Correlation(rho))
    low, high, p_value, _, _ = rho_interval(x, y, np.arange(len(x)))
    pearson = Correlation(r, p_value=exchanged_p(x, y))
    if abs(r) < 1.0 - _ON_A_LINE:
        ends = pearson_interval(r, len(x))
        pearson = pearson._replace(low=ends[0], high=ends[1])
    return HumanRelation(*setting, systems, pearson, Correlation(rho, low, high, p_value))


def pearson_interval(r: float, n: int) -> tuple[float, float]:
    """The 95 % interval of Pearson's r on Fisher's scale."""
    if abs(r) >= 1.0:
        return r, r
    reach = _QUANTILE / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)


def exchanged_p(x: Floats, y: Floats, seed: int = 0) -> float:
    """The two-sided p-value of Pearson's r: how often exchanged values of y go with x at least as closely."""
    centred = (x - x.mean()) / np.linalg.norm(x - x.mean())
    if math.factorial(len(y)) <= _EXCHANGES:
        exchanged, own = np.array(list(itertools.permutations(y))), 0
    else:
        rng = np.random.default_rng(seed)
        exchanged, own = rng.permuted(np.tile(y, (_EXCHANGES - 1, 1)), axis=1), 1
    closeness = np.abs(exchanged @ centred)
    reached = int((closeness >= abs(float(y @ centred)) * (1.0 - 1e-9)).sum())
    return (reached + own) / (len(exchanged) + own)


def _adjusted(relations: Sequence[HumanRelation]) -> list[HumanRelation]:
    """Holm's correction over all metrics, for each of the two correlations."""
    found = list(relations)
    for kind in ("pearson", "spearman"):
        tested = [
            (correlation.p_value, place) for place, relation in enumerate(found)
            if (correlation := getattr(relation, kind)) is not None and correlation.p_value is not None
        ]  # fmt: skip
        largest = 0.0
        for at, (p_value, place) in enumerate(sorted(tested)):
            largest = max(largest, min(1.0, p_value * (len(tested) - at)))
            correlation = getattr(found[place], kind)
            found[place] = found[place]._replace(**{kind: correlation._replace(p_adjusted=largest)})
    return found


def _gains(
    scores: Scores, settings: Mapping[tuple[str, str, str], None], known: Sequence[str], judged: Mapping[str, float],
    sign: float,
) -> list[Gain]:  # fmt: skip
    gains = []
    for distance, correction, metric in settings:
        if correction == "none" or (distance, "none", metric) not in settings:
            continue
        plain = _values(scores, (distance, "none", metric), known)
        corrected = _values(scores, (distance, correction, metric), known)
        systems = [name for name in known if name in plain and name in corrected]
        columns = [[plain[name], corrected[name], sign * judged[name]] for name in systems]
        table = np.round(np.array(columns, np.float64).reshape(-1, 3), _DIGITS)
        if len(systems) < 3 or (np.ptp(table, axis=0) == 0.0).any():
            continue
        r = correlations(table, table)
        low, high = gain_interval(r[1, 2], r[0, 2], r[0, 1], len(systems)) if len(systems) >= FEWEST else (None, None)
        gains.append(Gain(distance, correction, metric, len(systems), float(r[0, 2]), float(r[1, 2]), low, high))
    return gains


def gain_interval(one: float, other: float, between: float, n: int) -> tuple[float, float]:
    """Zou's interval of r(x, z) - r(y, z), where `between` is r(x, y), over the same n systems."""
    (low_1, high_1), (low_2, high_2) = pearson_interval(one, n), pearson_interval(other, n)
    room = (1.0 - one * one) * (1.0 - other * other)
    together = (between - one * other / 2.0) * (1.0 - one * one - other * other - between * between) + between**3
    c = min(max(together / room, -1.0), 1.0) if room > 0.0 else 0.0
    value = one - other

    def reach(mine: float, its: float) -> float:
        return math.sqrt(max(mine * mine + its * its - 2.0 * c * mine * its, 0.0))

    return value - reach(one - low_1, high_2 - other), value + reach(high_1 - one, other - low_2)
