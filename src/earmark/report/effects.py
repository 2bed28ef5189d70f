"""What one choice does to a score, all else equal: the pooling, the PCA, re-ranking by DTW.

Two configurations are a pair if they differ in that choice alone: same model, layer, distance, correction and clips.
Differences of pairs are averaged inside a subset (over distances, and over poolings or PCA sizes), so that a subset
counts once; the effect is the mean over subsets. Its interval leaves out one subset at a time
(`calibrate.jackknife.difference`), and is corrected for the number of effects of the metric that are shown together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis import parts_of
from earmark.calibrate.jackknife import LEAST_UNITS, Difference, difference
from earmark.errors import InputError
from earmark.report.metric_text import facts, points
from earmark.report.score_index import Representation, ScoreIndex, Subset, as_index
from earmark.scores import Row, Scores
from earmark.tables import p_value_text
from earmark.wording import counted, listed

MANY = 0.2  # share of the values that a remark must concern to be repeated
_RERANKED = "+dtw"
_PRINTED = ("pooled", "DTW re-ranking")  # how VocSim's Tables 14 and 15 name the two

Floats = NDArray[np.float64]
Level = tuple[str, int]
"""The name of what was chosen, and its place among the choices that sort by number."""


class Aspect(NamedTuple):
    """A choice: which level a configuration has, what of it is all else, and what to run to have two levels."""

    name: str
    words: str
    level: Callable[[Representation], Level]
    rest: Callable[[Representation], tuple[Any, ...]]
    pairs: str  # "first": each level against the first one; "all": every pair
    remedy: str


def _pooling(line: Representation) -> Level:
    return parts_of(line.system).pooling or "unpooled", 0


def _pca(line: Representation) -> Level:
    parts = parts_of(line.system)
    return ("no PCA", 0) if parts.pca is None else (f"D{parts.pca}{'W' * parts.whiten}", parts.pca)


def _dtw(line: Representation) -> Level:
    reranked = line.distance.endswith(_RERANKED) or line.system.startswith(_PRINTED[1])
    return ("DTW", 1) if reranked else ("pooled", 0)


def _without_pooling(line: Representation) -> tuple[Any, ...]:
    parts = parts_of(line.system)
    return parts.model, parts.layer, parts.pca, parts.whiten, line.distance, line.correction


def _without_pca(line: Representation) -> tuple[Any, ...]:
    parts = parts_of(line.system)
    return parts.model, parts.layer, parts.pooling, line.distance, line.correction


def _without_dtw(line: Representation) -> tuple[Any, ...]:
    if line.system.startswith(_PRINTED):
        return "Whisper", "", line.distance, line.correction
    return parts_of(line.system).model, line.system, line.distance.removesuffix(_RERANKED), line.correction


ASPECTS: dict[str, Aspect] = {
    aspect.name: aspect
    for aspect in (
        Aspect("pooling", "pooling", _pooling, _without_pooling, "first", "earmark run --pool mean_time,max_time"),
        Aspect("pca", "PCA", _pca, _without_pca, "all", "earmark run --pca none,30,100"),
        Aspect("dtw", "re-ranking by DTW", _dtw, _without_dtw, "all", "earmark run --distance spearman --dtw"),
    )
}


class Effect(NamedTuple):
    """One level minus another for one model and metric; `by_subset` has the differences of the subsets."""

    model: str
    level: str
    reference: str
    metric: str
    by_subset: Mapping[Subset, float]
    pairs: int
    mean: float
    low: float | None
    high: float | None
    p_value: float | None
    reason: str = ""

    @property
    def label(self) -> str:
        return f"{self.level} − {self.reference}"

    @property
    def told(self) -> bool:
        return self.p_value is not None and self.p_value < 0.05


class Effects(NamedTuple):
    """The effects of one aspect, by model and metric, and how many are corrected for in each metric."""

    aspect: Aspect
    metrics: tuple[str, ...]
    effects: tuple[Effect, ...]
    comparisons: int
    repeated: int = 0  # printed values left out because they repeat another system's
    remarks: tuple[str, ...] = ()  # what the table says beside values that were used

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, a line for each effect."""
        return [
            {
                "aspect": self.aspect.name, "model": item.model, "level": item.level, "reference": item.reference,
                "metric": item.metric, "subsets": len(item.by_subset), "pairs": item.pairs, "mean": item.mean,
                "low": item.low, "high": item.high, "p_value": item.p_value, "comparisons": self.comparisons,
                "reason": item.reason,
            }
            for item in self.effects
        ]  # fmt: skip


def find_effects(
    scores: Scores | ScoreIndex, name: str, metrics: Sequence[str] = (), *, table: Scores | None = None
) -> Effects:
    """The effects of an aspect of `ASPECTS`; InputError that says what to run where no model has two levels.

    Args:
        scores: The score table, or its index.
        name: The aspect.
        metrics: Which; none: those of `LEADING` that were measured, else the one that leads.
        table: The rows behind an index, where some of them may repeat others.
    """
    aspect, index = ASPECTS[name], as_index(scores)
    wanted = index.chosen(metrics)
    found: dict[tuple[str, str, str], dict[str, dict[Subset, list[tuple[float, float]]]]] = {}
    first: dict[str, str] = {}
    for line in index.representations:
        first.setdefault(aspect.rest(line)[0], aspect.level(line)[0])
    for metric in wanted:
        for place, rows in index.values(metric).items():
            for (model, level, reference), pair in _pairs(aspect, rows, first):
                own = found.setdefault((model, level, reference), {}).setdefault(metric, {})
                own.setdefault(place, []).append(pair)
    if not found:
        raise InputError(
            f"No model was measured with two kinds of {aspect.words}: make some with `{aspect.remedy}`."
            if name != "dtw"
            else f"No configuration was measured with and without DTW: make some with `{aspect.remedy}`."
        )
    shown = tuple(metric for metric in wanted if any(metric in own for own in found.values()))
    tested = [sum(len(own.get(metric, ())) >= LEAST_UNITS for own in found.values()) for metric in shown]
    comparisons = max([1, *tested])
    cells = [(key, metric, found[key].get(metric, {})) for key in _in_order(aspect, index, found) for metric in shown]
    effects = tuple(_effect(*cell, comparisons) for cell in cells if cell[2])
    of = scores if isinstance(scores, Scores) else table
    repeated = sum(row.status == "repeated" and row.metric in shown for row in of) if of is not None else 0
    used = [row for metric in shown for rows in index.values(metric).values() for row in rows.values()]
    return Effects(aspect, shown, effects, comparisons, repeated, _remarks(used))


def _in_order(aspect: Aspect, index: ScoreIndex, keys: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Models, references and levels in the order of the table."""
    order = dict.fromkeys((aspect.rest(line)[0], aspect.level(line)[0]) for line in index.representations)
    levels = {key: place for place, key in enumerate(order)}
    models = {model: place for place, model in reversed(list(enumerate(model for model, _ in order)))}
    return sorted(keys, key=lambda key: (models[key[0]], levels[key[0], key[1]], levels[key[0], key[2]]))


def _remarks(rows: Sequence[Row]) -> tuple[str, ...]:
    """What a printed table says beside many of its values."""
    reasons = Counter(row.reason for row in rows if row.reason and row.version.startswith("published"))
    return tuple(reason for reason, count in reasons.items() if count >= MANY * len(rows))


def _pairs(
    aspect: Aspect, rows: Mapping[Representation, Row], first: Mapping[str, str]
) -> Iterator[tuple[tuple[str, str, str], tuple[float, float]]]:
    """(model, level, reference) and the two values, for all rows that differ in nothing else."""
    alike: dict[tuple[Any, ...], dict[Level, float]] = {}
    for line, row in rows.items():
        if row.value is not None:
            alike.setdefault(aspect.rest(line), {}).setdefault(aspect.level(line), row.value)
    for rest, values in alike.items():
        for one, other in combinations(values, 2):
            low, high = sorted((one, other), key=lambda level: level[1])  # stable: the order of the table
            if aspect.pairs == "first":
                names = one[0], other[0]
                if first[rest[0]] not in names:
                    continue
                low, high = (one, other) if one[0] == first[rest[0]] else (other, one)
            yield (rest[0], high[0], low[0]), (values[high], values[low])


def _effect(
    key: tuple[str, str, str], metric: str, found: Mapping[Subset, Sequence[tuple[float, float]]], comparisons: int
) -> Effect:
    levels = np.array([np.mean(own, axis=0) for own in found.values()])
    by_subset = {place: float(high - low) for place, (high, low) in zip(found, levels, strict=True)}
    pairs, mean = sum(map(len, found.values())), float(np.mean(list(by_subset.values())))
    tested = difference_over_subsets(levels[:, 0], levels[:, 1], metric, comparisons)
    return Effect(*key, metric, by_subset, pairs, mean, tested.low, tested.high, tested.p_value, tested.reason)


def difference_over_subsets(values: Floats, others: Floats, metric: str, comparisons: int) -> Difference:
    """The mean over subsets of some values minus that of others; its interval leaves out one subset at a time."""
    means = float(values.mean()), float(others.mean())
    if len(values) < LEAST_UNITS:
        few = f"no interval: fewer than {LEAST_UNITS} subsets"
        return Difference(means[0] - means[1], None, None, None, len(values), few)
    without = mean_without_each(values), mean_without_each(others)
    return difference(*means, *without, facts(metric).range, unit="subset", comparisons=comparisons)


def mean_without_each(values: Floats) -> Floats:
    return np.asarray((values.sum() - values) / (len(values) - 1))


# --- in words -------------------------------------------------------------------------------------------------------


def effect_sentences(effects: Effects) -> list[str]:
    """What the figure shows, how it was made, and what is doubtful about it."""
    told = [item for item in effects.effects if item.told]
    several = f", corrected for {effects.comparisons} effects of each metric" if effects.comparisons > 1 else ""
    sentences = [
        f"Grey dots are subsets: the mean difference of pairs of configurations that differ in the "
        f"{effects.aspect.words} alone. In colour: the mean over subsets, filled where it is beyond chance, with its "
        f"95 % interval, which leaves out one subset at a time{several}."
    ]
    if told:
        shown = [
            f"{item.label} of {item.model}: {item.metric} {points(item.mean, item.metric)} "
            f"({p_value_text(item.p_value or 0.0)})"
            for item in sorted(told, key=lambda item: -abs(item.mean))[:4]
        ]
        more = f", and {len(told) - 4} more" if len(told) > 4 else ""
        sentences.append(f"Beyond chance: {listed(shown)}{more}.")
    elif any(item.p_value is not None for item in effects.effects):
        sentences.append("No effect is beyond chance.")
    missing = [item for item in effects.effects if item.low is None]
    if missing:
        reasons = dict.fromkeys(item.reason.removeprefix("no interval: ") for item in missing)
        sentences.append(f"{counted(len(missing), 'effect')} without an interval: {'; '.join(reasons)}.")
    sentences += [f"Of many of the values the table says: {remark}." for remark in effects.remarks]
    if effects.repeated:
        said = (
            f"{effects.repeated} printed values are left out because they repeat another configuration's digit by digit"
        )
        if effects.aspect.name == "pca":
            said += (
                ", most of them rows without PCA on 16 of the 19 subsets: where the paper finds that PCA changes "
                "nothing, the rows are copies"
            )
        sentences.append(f"{said} (--with-repeats counts them).")
    return sentences
