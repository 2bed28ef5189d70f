"""Generated sets against a real one: rows and intervals, with searches and smaller sets shared by all of them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.evaluation.data import check_ids, digest_of
from earmark.generated import _bootstrap as resampling
from earmark.generated import _jackknife as jackknife
from earmark.generated import metrics as rules
from earmark.generated._asked import Asked
from earmark.generated._findings import Fidelity, Findings, IntervalCells, Outcomes, Sampled
from earmark.generated.balls import Reference
from earmark.generated.measure import Missing, check_sets
from earmark.generated.metrics import Judgement
from earmark.progress import progress_bar
from earmark.scores import metric_facts
from earmark.scores.spelling import refuse_reserved

Array = NDArray[Any]
Floats = NDArray[np.float64]

NO_INTERVAL = (
    "no interval: from smaller sets another network is learned, and none that was tried holds in 32 dimensions"
)


class GeneratedSet(NamedTuple):
    """A set to be judged: the generator's name, one row for each clip, and what is known of the rows."""

    system: str
    vectors: Any
    groups: jackknife.Groups = None
    ids: Sequence[str] | None = None


class Judged(NamedTuple):
    """One set's scores; by (distance, correction, metric) what its intervals come from; and the deal of its units."""

    fidelity: Fidelity
    sampled: Mapping[tuple[str, str, str], Sampled]
    deal: jackknife.Deal


def judge_sets(
    real: Any, sets: Sequence[GeneratedSet], asked: Asked, real_groups: jackknife.Groups = None,
    real_ids: Sequence[str] | None = None, about: Mapping[str, str] | None = None, *, progress: bool = False,
) -> list[Judged]:  # fmt: skip
    """Every generated set against the real one. What is known of the real points is found once for all sets.

    Intervals come from smaller sets, the same smaller real sets for all, so that differences are paired. A set of too
    few units for an interval takes no part in the deal.
    """
    about = dict(about or {})
    refuse_reserved(about.get("subset", ""), "subset")
    reference = real if isinstance(real, Reference) else Reference(real)
    values = [check_sets(reference, one.vectors)[1] for one in sets]
    real_names = check_ids(real_ids, len(reference.vectors), "real ")
    names = [check_ids(one.ids, len(own), "generated ") for one, own in zip(sets, values, strict=True)]
    deals, together, dealt = _deals(len(reference.vectors), [len(own) for own in values], sets, real_groups, asked.seed)
    results = [Findings(asked.seed) for _ in sets]
    for result, own in zip(results, values, strict=True):
        if "clipped_coverage" in {rules.facts(name).name for name in asked.names}:
            result.notes += _unlike_sizes(len(reference.vectors), len(own))
    wanted = asked.wanted
    total = (len(wanted) + (jackknife.SETS if asked.kind == "jackknife" else 0)) * len(asked.distances) * len(sets)
    with progress_bar(progress, total, "fidelity", "metric") as tick:
        for space in asked.distances:
            outcomes: list[Outcomes] = []
            spent: list[float] = []
            for result, own, deal in zip(results, values, deals, strict=True):
                started = time.perf_counter()
                meter = asked.meter(reference, own, space, deal.codes)
                outcomes.append([])
                for which, name in wanted:
                    outcomes[-1].append((which, meter.measured(name, corrected=which == "gicdm")))
                    tick(1)
                result.points(meter, space, outcomes[-1])
                spent.append(time.perf_counter() - started)
            started = time.perf_counter()
            smaller: list[dict[jackknife.Key, Floats]] = [{} for _ in sets]
            if asked.kind == "jackknife" and together is not None:
                arrays = [values[place] for place in dealt]
                asking = [_resampled(outcomes[place]) for place in dealt]
                found = _on_smaller(together, asking, reference.vectors, arrays, asked, space, tick)
                smaller = [found[dealt.index(place)] if place in dealt else {} for place in range(len(sets))]
            shared = (time.perf_counter() - started) / len(sets)
            for place, (result, own) in enumerate(zip(results, values, strict=True)):
                cells = _cells(asked, outcomes[place], deals[place], smaller[place], len(reference.vectors), len(own))
                cells_about = {
                    **about, "system": sets[place].system, "distance": space, "version": __version__,
                    "seconds": spent[place] + shared,
                }  # fmt: skip
                options = _options(asked, digest_of(reference.vectors, own), space, deals[place], len(sets))
                result.take(
                    outcomes[place], cells, smaller[place], options, len(reference.vectors) + len(own), cells_about
                )
    return [
        Judged(result.fidelity(own_names, real_names), result.sampled, deal)
        for result, own_names, deal in zip(results, names, deals, strict=True)
    ]


def _deals(
    real: int, sizes: Sequence[int], sets: Sequence[GeneratedSet], real_groups: jackknife.Groups, seed: int
) -> tuple[list[jackknife.Deal], jackknife.Deal | None, list[int]]:
    """The deal of each set; the one of all that have units enough, and which these are."""
    deals = [
        jackknife.deal((real, size), (real_groups, one.groups), seed) for size, one in zip(sizes, sets, strict=True)
    ]
    dealt = [place for place, deal in enumerate(deals) if not deal.reason]
    if not dealt:
        return deals, None, dealt
    groups = [real_groups, *(sets[place].groups for place in dealt)]
    together = jackknife.deal([real, *(sizes[place] for place in dealt)], groups, seed)
    for at, place in enumerate(dealt, start=1):
        deals[place] = together.of(at)
    return deals, together, dealt


def _options(asked: Asked, digest: str, space: str, deal: jackknife.Deal, sets: int) -> str:
    """Everything that a row depends on, in words."""
    units = hashlib.sha256(b"".join(codes.tobytes() for codes in deal.codes)).hexdigest()[:16]
    chosen = f"{asked.kind} {asked.bootstrap} {units}" + (f" {sets} sets" if sets > 1 else "")
    k = sorted(rules.neighbours_of(asked.k, asked.names).items())
    return f"{digest} {space} {k} {chosen} {asked.seed} {asked.cap} {asked.ties} {asked.bandwidth} {__version__}"


def _unlike_sizes(real: int, generated: int) -> list[str]:
    if real <= 2 * generated and generated <= 2 * real:
        return []
    more = ", and coverage is the share of real points that are met" if generated < real else ""
    return [
        f"{generated} generated points and {real} real ones: clipped_coverage compares with what {generated} samples "
        f"of the real distribution would cover{more}"
    ]


def _cells(
    asked: Asked, outcomes: Outcomes, deal: jackknife.Deal, smaller: Mapping[jackknife.Key, Floats], real: int,
    generated: int,
) -> Mapping[jackknife.Key, IntervalCells]:  # fmt: skip
    """The intervals of one set under one distance."""
    if asked.kind == "bootstrap":
        return _bootstrapped(outcomes, resampling.draw(real, generated, asked.bootstrap, asked.seed), deal)
    return _jackknifed(outcomes, deal, smaller) if asked.kind == "jackknife" else {}


def _bootstrapped(
    outcomes: Outcomes, draws: resampling.Draws, deal: jackknife.Deal
) -> dict[jackknife.Key, IntervalCells]:
    cells = {}
    for which, score in outcomes:
        low, high = (None, None) if isinstance(score, Missing) else resampling.interval(score, draws)
        if low is None:
            cells[which, score.metric] = IntervalCells(
                {}, "no interval: it is no mean over points that could be drawn again"
            )
            continue
        interval_cells = {"low": low, "high": high, "interval": "bootstrap_points", "unit": "clip"}
        cells[which, score.metric] = IntervalCells({**interval_cells, "units": min(map(len, deal.codes))})
    return cells


def _resampled(outcomes: Outcomes) -> list[jackknife.Key]:
    """What is measured again on smaller sets."""
    return [
        (which, score.metric) for which, score in outcomes
        if isinstance(score, Judgement) and score.metric not in rules.NETWORK
    ]  # fmt: skip


def _on_smaller(
    deal: jackknife.Deal, keys: Sequence[Sequence[jackknife.Key]], real: Array, sets: Sequence[Array], asked: Asked,
    space: str, tick: Any,
) -> list[dict[jackknife.Key, Floats]]:  # fmt: skip
    """The same metrics of smaller sets: every generated one against the same smaller real one."""

    def measure(rows: tuple[NDArray[np.int64], ...]) -> list[dict[jackknife.Key, float]]:
        first = real[rows[0]]
        if (first == first[0]).all():
            tick(len(sets))
            return [{} for _ in sets]
        reference = Reference(first)
        found = []
        for place, (generated, kept, wanted) in enumerate(zip(sets, rows[1:], keys, strict=True), start=1):
            units = deal.codes[0][rows[0]], deal.codes[place][kept]
            # The wide scale of GICDM is as wide as a smaller set allows.
            meter = asked.meter(reference, generated[kept], space, units, shrink=True)
            again = {key: meter.measured(key[1], corrected=key[0] == "gicdm") for key in wanted}
            values = {key: score for key, score in again.items() if isinstance(score, Judgement)}
            found.append({key: score.value if score.uncut is None else score.uncut for key, score in values.items()})
            tick(1)
        return found

    return jackknife.values_on_smaller(deal, keys, measure)


def _jackknifed(
    outcomes: Outcomes, deal: jackknife.Deal, smaller: Mapping[jackknife.Key, Floats]
) -> dict[jackknife.Key, IntervalCells]:
    """The intervals that follow from how much a metric varies over smaller sets."""
    cells = {}
    for which, score in outcomes:
        key = which, score.metric
        if isinstance(score, Missing):
            continue
        if score.metric in rules.NETWORK:
            cells[key] = IntervalCells({}, NO_INTERVAL)
            continue
        ends = metric_facts(score.metric).range
        low, high, reason = jackknife.interval(
            score.value, smaller.get(key, np.empty(0)), deal, ends, uncut=score.uncut
        )
        interval_cells = {"low": low, "high": high, "interval": "jackknife", "unit": deal.unit, "units": deal.units}
        cells[key] = IntervalCells({} if low is None else interval_cells, reason)
    return cells
