"""Several generated sets against one real set: rows of each, differences of every pair, and ranks with their intervals.

All sets are judged by the same real points, and lose their own points together with the same real ones (`_jackknife`),
so what another real set would do to all of them alike is not in the error of a difference:

    error of A - B    se^2 = (g - 1) * variance of A's value minus B's over the smaller collections
    p-value           two-sided, Student's t, and for a share bent at its ends as in `earmark.compare`
    pairs             intervals and p-values corrected for the number of pairs (Bonferroni); p < 0.05 tells apart
    rank              by the value; from one plus the number that are told apart and ahead to the number that are not
                      told apart and behind. All verdicts, and so all intervals of ranks, hold at once with 95 %

A metric that is cut at 1 is tested as it was before the cut; two sets that are both cut are equal. Some metrics grow
with the number of samples (`GROW`): sets of unlike sizes are not tested by them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from earmark._version import __version__
from earmark.analysis.ranks import ranks_from_verdicts
from earmark.calibrate import jackknife as tests
from earmark.errors import UsageError
from earmark.generated import _jackknife as jackknife
from earmark.generated._asked import CORRECTIONS, Asked
from earmark.generated._findings import Fidelity
from earmark.generated._judging import GeneratedSet, Judged, judge_sets
from earmark.generated.metrics import METRICS, facts
from earmark.geometry import spaces
from earmark.scores import Row, Scores, metric_facts
from earmark.wording import listed

GROW = (*(name for name, record in METRICS.items() if record.asks == "coverage"), "sym_precision", "precision_cover",
        "frechet_distance")  # fmt: skip
"""Metrics whose value depends on how many samples there are: all of coverage (clipped_coverage is made not to, and does
where the generator is not perfect), those of fidelity whose balls are those of the samples, and the biased distance."""
LEVEL = 0.05
UNLIKE = 1.1  # sizes that differ by more than this factor


class GeneratorRank(NamedTuple):
    """Where a generator stands by one metric.

    `low` and `high` are the ends of the rank's 95 % interval; 0 where there is none, for the `reason`. `may_lead` is
    whether nobody is told apart from it and ahead.
    """

    distance: str
    correction: str
    metric: str
    system: str
    value: float | None
    rank: int
    low: int
    high: int
    may_lead: bool
    reason: str = ""


@dataclass(frozen=True, eq=False)
class RankedGenerators:
    """Several generated sets against one real set.

    `scores` has the rows of all of them, `fidelities` each set's own result with its single points, `pairs` a row
    `metric:difference` for every two of them, `ranks` a line for every metric, correction and generator.
    """

    scores: Scores
    fidelities: Mapping[str, Fidelity]
    pairs: Scores
    ranks: tuple[GeneratorRank, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(self.fidelities)

    def ranking(self, metric: str, correction: str, distance: str | None = None) -> list[GeneratorRank]:
        """The generators by one metric, best first; those without a value last."""
        found = [
            line for line in self.ranks
            if (line.metric, line.correction) == (metric, correction) and distance in (None, line.distance)
        ]  # fmt: skip
        return sorted(found, key=lambda line: line.rank or len(found) + 1)

    def __repr__(self) -> str:
        return f"RankedGenerators({', '.join(self.systems)})"


def rank_generators(
    real: Any, generated: Mapping[str, Any], *, metrics: str | Sequence[str] | None = None,
    k: int | Mapping[str, int] = 5, correct: str | Sequence[str] = CORRECTIONS,
    reading: Literal["both", "corrected", "literal"] = "both", distance: str | Sequence[str] = "euclidean",
    intervals: str | None = None, bootstrap: int | None = None, groups: Mapping[str, jackknife.Groups] | None = None,
    real_groups: jackknife.Groups = None, seed: int = 0, cap: bool = True,
    ids: Mapping[str, Sequence[str] | None] | None = None, real_ids: Sequence[str] | None = None,
    ties: spaces.Ties = "average", bandwidth: float | str = "real", device: str = "auto", memory: str | int = "2GB",
    threads: int | None = None, subset: str = "", suite: str = "", progress: bool = False,
) -> RankedGenerators:  # fmt: skip
    """Judge several generated sets by one real set, and rank them: which differences would other draws show again?

    Args:
        real: One row for each real clip.
        generated: By the generator's name, one row for each of its clips. Sets may have different sizes.
        groups: By the generator's name, the recording, speaker or prompt of each row. A name of a group means the same
            in every set: what several generators made of one prompt leaves all of them together.
        ids: By the generator's name, names of the rows.

    The other arguments are those of `earmark.fidelity`. Differences need intervals by the jackknife; with others there
    are ranks and no verdicts.

    >>> ranked = rank_generators(real, {"gan": first, "diffusion": second})
    >>> ranked.ranking("clipped_density", "gicdm")[0].system
    """
    if len(generated) < 2:
        raise UsageError("There is nothing to rank: give at least two generated sets, or call earmark.fidelity.")
    for name, given in (("groups", groups), ("ids", ids)):
        if unknown := set(given or ()) - set(generated):
            raise UsageError(f"{name} are given for {listed(sorted(unknown))}, which is no generated set.")
    asked = Asked.make(
        metrics=metrics, k=k, correct=correct, reading=reading, distance=distance, intervals=intervals,
        bootstrap=bootstrap, seed=seed, cap=cap, ties=ties, device=device, memory=memory, threads=threads,
        bandwidth=bandwidth,
    )  # fmt: skip
    sets = [
        GeneratedSet(name, vectors, (groups or {}).get(name), (ids or {}).get(name))
        for name, vectors in generated.items()
    ]
    about = {"suite": suite, "subset": subset}
    judged = dict(
        zip(generated, judge_sets(real, sets, asked, real_groups, real_ids, about, progress=progress), strict=True)
    )
    sizes = {name: len(one.vectors) for name, one in zip(generated, sets, strict=True)}
    pairs = _pairs(judged, sizes)
    scores = Scores(rows=tuple(row for one in judged.values() for row in one.fidelity.rows))
    own = (f"{name}: {note}" for name, one in judged.items() for note in one.fidelity.notes)
    scores = replace(scores, notes=(*_unlike_sizes(scores, sizes), *own))
    return RankedGenerators(
        scores, {name: one.fidelity for name, one in judged.items()}, Scores(rows=tuple(pairs.values())),
        tuple(_ranks(judged, pairs)), sizes,
    )  # fmt: skip


_Setting = tuple[str, str, str]  # distance, correction, metric


def _settings(judged: Mapping[str, Judged]) -> list[_Setting]:
    return list(dict.fromkeys(
        (row.distance, row.correction, row.metric) for one in judged.values() for row in one.fidelity.rows
    ))  # fmt: skip


def _row_of(one: Judged, setting: _Setting) -> Row:
    distance, correction, metric = setting
    return one.fidelity.row(metric, distance=distance, correction=correction)


def _pairs(judged: Mapping[str, Judged], sizes: Mapping[str, int]) -> dict[tuple[_Setting, str, str], Row]:
    """A row for every setting and pair."""
    couples = list(combinations(judged, 2))
    return {
        (setting, a, b): _pair(judged[a], judged[b], setting, len(couples), (sizes[a], sizes[b]))
        for setting in _settings(judged)
        for a, b in couples
    }


def _pair(first: Judged, second: Judged, setting: _Setting, comparisons: int, sizes: tuple[int, int]) -> Row:
    """One difference, its interval and p-value corrected for the number of pairs."""
    rows = _row_of(first, setting), _row_of(second, setting)
    distance, correction, metric = setting
    cells: dict[str, Any] = {
        "suite": rows[0].suite, "subset": rows[0].subset, "system": f"{rows[0].system} - {rows[1].system}",
        "distance": distance, "correction": correction, "metric": f"{metric}:difference", "version": __version__,
        "inputs": hashlib.sha256(f"{rows[0].inputs} {rows[1].inputs} {comparisons}".encode()).hexdigest(),
    }  # fmt: skip
    lacking = next((row for row in rows if row.value is None), None)
    if lacking is not None:
        return Row(status=lacking.status, reason=f"{lacking.system}: {lacking.reason}", **cells)
    value = float(rows[0].value or 0.0) - float(rows[1].value or 0.0)
    if reason := _incomparable(metric, sizes):
        return Row(value=value, reason=reason, **cells)
    if not all(len(one.sampled[setting].smaller) for one in (first, second)):
        reason = next((row.reason for row in rows if row.reason), "no intervals by the jackknife were asked for")
        return Row(value=value, reason=reason, **cells)
    if value == 0.0 and all(
        row.value != one.sampled[setting].value for row, one in zip(rows, (first, second), strict=True)
    ):
        return Row(value=0.0, p_value=1.0, reason="both are cut at 1", comparisons=comparisons, **cells)
    outcome = _difference(first, second, setting, comparisons)
    if outcome.low is None or outcome.high is None:
        return Row(value=value, p_value=outcome.p_value, reason=outcome.reason, **cells)
    beyond = "" if abs(outcome.value - value) <= tests.EQUAL else "interval and p-value before the cut at 1"
    ends = metric_facts(metric).range
    width = ends[1] - ends[0]
    deal = first.deal if first.deal.units <= second.deal.units else second.deal
    return Row(
        value=value, low=max(min(outcome.low, value), -width), high=min(max(outcome.high, value), width),
        p_value=outcome.p_value, reason=beyond, interval="jackknife", unit=deal.unit, units=deal.units,
        comparisons=comparisons, **cells,
    )  # fmt: skip


def _difference(first: Judged, second: Judged, setting: _Setting, comparisons: int) -> tests.Difference:
    a, b = first.sampled[setting], second.sampled[setting]
    ends = metric_facts(setting[2]).range
    cut = _row_of(first, setting).value != a.value or _row_of(second, setting).value != b.value
    return tests.difference(
        a.value, b.value, a.smaller, b.smaller, (-math.inf, math.inf) if cut else ends, unit=first.deal.unit,
        comparisons=comparisons, freedom=min(first.deal.freedom, second.deal.freedom),
        error=jackknife.error_of(a.smaller - b.smaller, first.deal.parts),
        units=min(first.deal.units, second.deal.units),
    )  # fmt: skip


def _incomparable(metric: str, sizes: tuple[int, int]) -> str:
    if facts(metric).name not in GROW or max(sizes) <= UNLIKE * min(sizes):
        return ""
    return f"not tested: {sizes[0]} and {sizes[1]} samples, and {metric} changes with their number"


def _ranks(judged: Mapping[str, Judged], pairs: Mapping[tuple[_Setting, str, str], Row]) -> list[GeneratorRank]:
    names = list(judged)
    found = []
    for setting in _settings(judged):
        rows = [_row_of(one, setting) for one in judged.values()]
        if all(row.value is None for row in rows):
            continue
        sign = 1.0 if metric_facts(setting[2]).higher_is_better else -1.0
        values = np.array([np.nan if row.value is None else sign * row.value for row in rows])
        p_values = np.full((len(names), len(names)), np.nan)
        for (a, first), (b, second) in combinations(enumerate(names), 2):
            p_value = pairs[setting, first, second].p_value
            p_values[a, b] = p_values[b, a] = np.nan if p_value is None else p_value
        ranked = ranks_from_verdicts(values, p_values < LEVEL)
        for place, (name, row) in enumerate(zip(names, rows, strict=True)):
            known = bool(np.isfinite(p_values[place]).any())
            low, high = (int(ranked.low[place]), int(ranked.high[place])) if known else (0, 0)
            may_lead = bool(np.isfinite(values[place])) and ranked.low[place] == 1
            found.append(
                GeneratorRank(*setting, name, row.value, int(ranked.rank[place]), low, high, may_lead, row.reason)
            )
    return found


def _unlike_sizes(scores: Scores, sizes: Mapping[str, int]) -> list[str]:
    """A remark where sets differ in size and metrics were measured that change with it."""
    smallest, largest = min(sizes.values()), max(sizes.values())
    measured = {row.metric for row in scores if row.value is not None}
    grown = [metric for metric in GROW if metric in measured]
    if largest <= UNLIKE * smallest or not grown:
        return []
    it, verb = ("it", "changes") if len(grown) == 1 else ("them", "change")
    return [
        f"the generated sets have {smallest} to {largest} samples, and {listed(grown)} {verb} with their number: sets "
        f"whose sizes differ by more than a tenth are not told apart by {it}; give equally many samples of each"
    ]
