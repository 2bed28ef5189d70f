"""Does a system put sounds together that listeners put together? Choices between two sounds, and triplets.

    agreement     2afc: the nearer of A and B to X is the one that was chosen; triplets: d(anchor, positive) <
                  d(anchor, negative). Both strictly: a tie agrees with nobody, and ties are counted.
    correlations  of d(X, A) - d(X, B) with the choice, +1 for A and -1 for B. The nearer sound has the smaller
                  distance, so a perfect system has a negative correlation. In triplets the choice is constant: none.

What varies between studies is the unit of intervals and tests (`_units.py`). Judgements that are independent of each
other have the exact binomial interval and the exact two-sided test against 1/2; of listeners, pairs and anchors, and of
listeners and pairs together, each is left out in turn (jackknife).

VocSim, both versions, and Zandberg et al. 2024: the protocol and its ceilings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.calibrate import jackknife
from earmark.calibrate.binomial import against_half, exact_interval, paired_difference
from earmark.errors import UsageError, did_you_mean
from earmark.evaluation.data import digest_of
from earmark.evaluation.options import GIVEN, as_names
from earmark.geometry import spaces
from earmark.probes._agreement import Ceiling, ceilings
from earmark.probes._answers import Answer, JudgementSet, answers_of, filters_of, remarks_of
from earmark.probes._choice_statistics import Correlation, correlations, shares_without
from earmark.probes._judgements import Judgements, read_judgements
from earmark.probes._sounds import Sounds, systems_of
from earmark.probes._units import UNITS, Deletions, deletions, scope_of, unit_codes, unit_of
from earmark.progress import tracked
from earmark.scores import Row, Scores
from earmark.scores.spelling import refuse_reserved
from earmark.wording import counted
from earmark.workers import thread_count

__all__ = ["UNITS", "Judgements", "known_sounds", "perception", "read_judgements"]

Ints = NDArray[np.int64]

ACCURACY = {"2afc": "choice_accuracy", "triplets": "triplet_accuracy"}
LISTENERS = "listeners"
"""The system column of rows that say how far listeners agree with each other."""
ABOVE = {
    "agreement_between": "the agreement between listeners",
    "agreement_within": "the agreement of listeners with themselves",
    "agreement_repeats": "the agreement of repeated judgements",
}
SIGN = "below 0 agrees with the listeners: choosing A counts +1"
ALL_PAIRS = 5
"""Up to so many systems are compared with each other unless a reference is named."""
LEAST_APART = 10
"""Judgements of either choice, and in agreement and in contradiction, that the interval of a correlation needs."""


def perception(
    judgements: Any, source: Any, *, distance: str | Sequence[str] = "cosine", distance_name: str = GIVEN,
    ids: Sequence[str] | None = None, columns: Mapping[str, str] | None = None, where: str | Sequence[str] = (),
    min_agreement: float | None = None, min_repeats: int | None = None, majority: bool = False,
    unit: str | None = None, ceiling: float | Sequence[float] = (), reference: str | None = None,
    compare: bool | None = None, ties: spaces.Ties = "average", threads: int | None = None, system: str = "",
    subset: str = "", suite: str = "", progress: bool = False,
) -> Scores:  # fmt: skip
    """Measure how far distances agree with judgements of listeners; returns Scores.

    Rows `choice_accuracy`, `choice_spearman` and `choice_kendall` (or `triplet_accuracy`) for every system, distance
    and set of judgements; rows of the system `listeners` for what repeated judgements allow; rows
    `choice_accuracy:difference` of one system minus another on the judgements that both can answer. Judgements without
    a choice, and those with a sound that a system lacks, are left out and counted in the reason.

    Args:
        judgements: What `read_judgements` gives, or what it takes: a file, a mapping of columns, a data frame.
        source: Vectors with ids, distances with ids, or a mapping of names to several systems. A name of a sound fits
            an id where one of the two leaves out folders at the front, or the ending.
        distance: One or several of cosine, euclidean, spearman; for vectors.
        distance_name: What distances that were computed elsewhere are called in the column `distance`.
        ids: The sounds of the rows, where the source does not name them.
        columns: Options of `read_judgements`, where the judgements are not read yet: {"listener": "bird"}.
        where: Filters, such as "Margin_Type=high" or "Consistency>=0.8 & Cycle=2". Each gives rows of its own, beside
            those of all judgements.
        min_agreement: Also: only items of which at least this share of presentations made the same choice.
        min_repeats: Also: only items with at least so many presentations.
        majority: One judgement for each item, the more frequent choice, in place of all presentations.
        unit: What varies: judgement, listener, anchor, pair, listener+pair or listener+anchor. None is what the
            judgements share: listeners, where they are known, and pairs, or else anchors, that recur (over listeners),
            since no system answers such judgements independently; else judgement.
        ceiling: Levels of agreement between listeners that are known from elsewhere, such as (0.8, 0.9).
        reference: The system that every other one is compared with, instead of all pairs.
        compare: Whether systems are compared; None is yes, for up to five of them or with a reference.
        ties: Ranks of equal values under spearman: "average", or "ordinal".
        threads: Threads at work; None is one for each core. No result depends on it.
        system: Name of the system, where it is one.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.

    >>> perception("triplets.csv", read_vectors("wavlm.npz"), where="Margin_Type=high").value("triplet_accuracy")
    """
    refuse_reserved(subset, "subset")
    known = judgements if isinstance(judgements, Judgements) else read_judgements(judgements, **(columns or {}))
    systems = systems_of(source, system, ids)
    names = as_names(distance, "distance")
    levels = _levels(ceiling)
    filters = filters_of(where, min_agreement, min_repeats)
    unit = unit_of(unit, known, majority)
    pairs = _pairs([one.name for one in systems], reference, compare)
    scope = scope_of(unit, known, majority)
    sets = [JudgementSet.of(known, conditions, majority, unit, scope) for conditions in ((), *filters)]
    work = [(one, name) for one in systems for name in (names if one.vectors is not None else [distance_name])]
    answers = [
        answers_of(one, name, ties, thread_count(threads), sets)
        for one, name in tracked(work, "distances", "system", progress=progress)
    ]
    rows: list[Row] = []
    for place, chosen in enumerate(sets):
        bounds = [] if majority else ceilings(chosen.judgements)
        limits = [("the ceiling given", level) for level in levels]
        limits += [(ABOVE[bound.metric], bound.value) for bound in bounds if bound.value and bound.metric in ABOVE]
        for of_system in answers:
            rows += _rows(of_system[place], chosen, limits)
        rows += [_ceiling_row(bound, chosen) for bound in bounds]
        rows += _differences([of_system[place] for of_system in answers], chosen, pairs)
    notes = [*known.notes]
    notes += list(dict.fromkeys(note for of_system in answers for note in remarks_of(of_system)))
    if compare is None and reference is None and len(systems) > ALL_PAIRS:
        notes.append(f"{len(systems)} systems were not compared with each other: name a reference to do so")
    return Scores(tuple(replace(row, suite=suite, subset=subset) for row in rows), notes=tuple(notes))


def known_sounds(judgements: Judgements, ids: Sequence[str], source: str = "") -> int:
    """How many of the sounds that were judged are among the ids; one that fits several is refused, naming `source`."""
    return int((Sounds(source, tuple(dict.fromkeys(ids))).rows(judgements.sounds) >= 0).sum())


def _levels(ceiling: float | Sequence[float]) -> list[float]:
    levels = [ceiling] if isinstance(ceiling, int | float) else list(ceiling)
    for level in levels:
        if not 0.0 < level <= 1.0:
            raise UsageError(f"A ceiling is a share between 0 and 1, such as 0.8, not {level:g}.")
    return [float(level) for level in levels]


def _pairs(names: list[str], reference: str | None, compare: bool | None) -> list[tuple[str, str]]:
    if len(set(names)) < len(names):
        raise UsageError("Two systems have the same name: rename one of them.")
    if reference is not None:
        if reference not in names:
            hint = did_you_mean(reference, names) or f" There are {', '.join(names)}."
            raise UsageError(f"There is no system {reference!r} to compare with.{hint}")
        return [(name, reference) for name in names if name != reference]
    if compare is False or (compare is None and len(names) > ALL_PAIRS):
        return []
    return list(combinations(names, 2))


# --- rows -------------------------------------------------------------------------------------------------------------


def _rows(answer: Answer, chosen: JudgementSet, limits: Sequence[tuple[str, float]]) -> Iterator[Row]:
    """Agreement and correlations of one system."""
    metric = ACCURACY[chosen.judgements.kind]
    cells = _cells(answer, chosen)
    nothing = _nothing(answer, chosen)
    if nothing:
        yield Row(metric=metric, status="not_applicable", reason=nothing, **cells)
    else:
        value = float(answer.hits.mean())
        interval, p_value = _spread(answer, chosen, value)
        reasons = [*answer.reasons, *_above(value, limits), *_rests_on(answer.rows, chosen, interval)]
        yield Row(
            metric=metric, value=value, low=interval.low, high=interval.high, baseline=0.5, lift=value - 0.5,
            p_value=p_value, status="incomplete" if answer.incomplete else "ok",
            reason="; ".join(filter(None, reasons)), **_of_unit(chosen, interval), **cells,
        )  # fmt: skip
    names = ("choice_spearman", "choice_kendall")
    choices = chosen.judgements.choices[answer.rows]
    constant = "the choice of a triplet is constant, and nothing correlates with a constant"
    if not nothing and len(np.unique(choices)) < 2:
        nothing = constant if chosen.judgements.kind == "triplets" else "every choice is the same: no correlation"
    if not nothing and len(np.unique(answer.differences)) < 2:
        nothing = "all differences of distances are the same: no correlation"
    if nothing:
        yield from (Row(metric=name, status="not_applicable", reason=nothing, **cells) for name in names)
        return
    units = chosen.units(answer.rows)
    by_kind = [correlations(answer.differences, choices, codes) for codes in units.codes]
    for place, name in enumerate(names):
        found, *_ = of_kind = [both[place] for both in by_kind]
        left_out = deletions(units, [one.without for one in of_kind])
        ends = -found.most, found.most
        interval = _correlation_interval(answer, choices, found, left_out)
        p_value = jackknife.p_value(
            found.value, left_out.without, ends, 0.0, freedom=left_out.freedom, error=left_out.error
        )
        p_value = None if interval.low is None else p_value
        sign = f"{SIGN}; a perfect system has -{found.most:.3f}"
        yield Row(
            metric=name, value=found.value, low=interval.low, high=interval.high, baseline=0.0, lift=found.value,
            p_value=p_value,
            status="incomplete" if answer.incomplete else "ok",
            reason="; ".join(filter(None, [sign, *answer.reasons, *_rests_on(answer.rows, chosen, interval)])),
            **_of_unit(chosen, interval, "jackknife"), **cells,
        )  # fmt: skip


def _correlation_interval(answer: Answer, choices: Ints, found: Correlation, left_out: Deletions) -> jackknife.Interval:
    """The jackknife interval, where enough judgements stand on either side for it to hold."""
    for few, words in (
        (min((choices > 0).sum(), (choices < 0).sum()), "fewer than {} judgements chose one of the two sides"),
        (min(answer.hits.sum(), (~answer.hits).sum()), "fewer than {} judgements agree, or disagree"),
    ):
        if few < LEAST_APART:
            return jackknife.Interval(None, None, 0, f"no interval: {words.format(LEAST_APART)}")
    unit, without, error, freedom = left_out
    return jackknife.interval(found.value, without, (-found.most, found.most), unit, freedom=freedom, error=error)


def _nothing(answer: Answer, chosen: JudgementSet) -> str:
    """Why nothing can be measured; empty where something can."""
    if not len(answer.rows):
        return chosen.empty or "; ".join(answer.reasons) or "there is no judgement"
    if answer.all_tied:
        return "; ".join(["every judgement is a tie: the system does not tell the sounds apart", *answer.reasons])
    return ""


def _spread(answer: Answer, chosen: JudgementSet, value: float) -> tuple[jackknife.Interval, float | None]:
    """Interval and p-value of the agreement, by the unit that varies."""
    n = len(answer.hits)
    if chosen.unit == "judgement":
        hits = int(answer.hits.sum())
        return jackknife.Interval(*exact_interval(hits, n), n), against_half(hits, n)
    units = chosen.units(answer.rows)
    unit, without, error, freedom = deletions(units, [shares_without(answer.hits, codes) for codes in units.codes])
    interval = jackknife.interval(value, without, (0.0, 1.0), unit, freedom=freedom, error=error)
    return interval, jackknife.p_value(value, without, (0.0, 1.0), 0.5, freedom=freedom, error=error)


def _of_unit(
    chosen: JudgementSet, interval: jackknife.Interval | jackknife.Difference, kind: str = ""
) -> dict[str, Any]:
    if interval.low is None:
        return {}
    kind = kind or ("binomial" if chosen.unit == "judgement" else "jackknife")
    return {"interval": kind, "unit": chosen.unit, "units": interval.units}


def _rests_on(rows: Ints, chosen: JudgementSet, interval: jackknife.Interval | jackknife.Difference) -> Iterator[str]:
    """Why there is no interval; or what it holds for, and whether judgements are taken for independent in it."""
    if interval.reason or interval.low is None:
        yield interval.reason
    elif chosen.unit != "judgement":
        yield chosen.scope or chosen.units(rows).words
    else:
        pairs = len(np.unique(unit_codes(chosen.judgements, "pair")[rows]))
        if pairs < len(rows):
            yield f"judgements taken as independent, though they share {counted(pairs, 'pair')}"


def _above(value: float, limits: Sequence[tuple[str, float]]) -> list[str]:
    return [f"above {what}, {100 * limit:.1f} %" for what, limit in limits if value > limit + jackknife.EQUAL]


def _ceiling_row(bound: Ceiling, chosen: JudgementSet) -> Row:
    reason = bound.reason
    if bound.value is not None and "agreement" in chosen.protocol:
        reason = "; ".join(filter(None, ["the items were selected by this very agreement", reason]))
    inputs = digest_of(chosen.judgements.choices, chosen.judgements.x, chosen.judgements.a, chosen.judgements.b)
    unit: dict[str, Any] = {}
    if bound.low is not None:
        unit = {"interval": "jackknife", "unit": "listener", "units": bound.listeners}
    return Row(
        system=LISTENERS, protocol=chosen.protocol, metric=bound.metric, value=bound.value, low=bound.low,
        high=bound.high, n=bound.n, status="ok" if bound.value is not None else "not_applicable", reason=reason,
        version=__version__, inputs=inputs, **unit,
    )  # fmt: skip


def _cells(answer: Answer, chosen: JudgementSet) -> dict[str, Any]:
    settings = f"{answer.digest} {chosen.protocol} {answer.distance} {chosen.unit}"
    return {
        "system": answer.system, "distance": answer.distance, "protocol": chosen.protocol, "n": len(answer.rows),
        "seconds": answer.seconds, "version": __version__, "inputs": hashlib.sha256(settings.encode()).hexdigest(),
    }  # fmt: skip


# --- one system against another ---------------------------------------------------------------------------------------


def _differences(answers: Sequence[Answer], chosen: JudgementSet, pairs: Sequence[tuple[str, str]]) -> Iterator[Row]:
    """One system minus another on the judgements that both can answer.

    Under one distance; distances that were given are compared with every one.
    """
    couples = [
        (one, other)
        for first, second in pairs
        for one in answers
        for other in answers
        if (one.system, other.system) == (first, second)
        and (one.distance == other.distance or not {one.distance, other.distance} <= set(spaces.DISTANCES))
    ]
    counts: dict[str, int] = {}
    for one, other in couples:
        counts[_both(one, other)] = counts.get(_both(one, other), 0) + 1
    for one, other in couples:
        yield _difference(one, other, chosen, counts[_both(one, other)])


def _both(one: Answer, other: Answer) -> str:
    return one.distance if one.distance == other.distance else f"{one.distance} - {other.distance}"


def _difference(one: Answer, other: Answer, chosen: JudgementSet, comparisons: int) -> Row:
    rows, first, second = np.intersect1d(one.rows, other.rows, assume_unique=True, return_indices=True)
    inputs = hashlib.sha256(f"{one.digest} {other.digest} {chosen.unit} {comparisons}".encode()).hexdigest()
    cells: dict[str, Any] = {
        "system": f"{one.system} - {other.system}", "distance": _both(one, other), "protocol": chosen.protocol,
        "metric": f"{ACCURACY[chosen.judgements.kind]}:difference", "n": len(rows), "version": __version__,
        "seconds": one.seconds + other.seconds, "inputs": inputs,
    }  # fmt: skip
    refused = [(of, words) for of in (one, other) if (words := _nothing(of, chosen))]
    if refused or not len(rows):
        reason = f"{refused[0][0].system}: {refused[0][1]}" if refused else "no judgement can be answered by both"
        return Row(status="not_applicable", reason=reason, **cells)
    a, b = one.hits[first], other.hits[second]
    if chosen.unit == "judgement":
        outcome = paired_difference(int((a & ~b).sum()), int((b & ~a).sum()), len(rows), comparisons=comparisons)
    else:
        units = chosen.units(rows)
        gains = [shares_without(a, codes) - shares_without(b, codes) for codes in units.codes]
        unit, without, error, freedom = deletions(units, gains)
        outcome = jackknife.difference(
            float(a.mean()), float(b.mean()), without, np.zeros(len(without)), (0.0, 1.0), unit=unit,
            comparisons=comparisons, freedom=freedom, error=error,
        )  # fmt: skip
    shared = "" if len(rows) == max(len(one.rows), len(other.rows)) else "on the judgements that both can answer"
    made = _of_unit(chosen, outcome)
    if outcome.p_value is not None:
        made["comparisons"] = comparisons
    return Row(
        value=outcome.value, low=outcome.low, high=outcome.high, p_value=outcome.p_value,
        status="incomplete" if one.incomplete or other.incomplete else "ok",
        reason="; ".join(filter(None, [shared, *_reason_of_incomplete(one, other), *_rests_on(rows, chosen, outcome)])),
        **made, **cells,
    )  # fmt: skip


def _reason_of_incomplete(one: Answer, other: Answer) -> list[str]:
    return [f"{of.system} lacks most of the sounds" for of in (one, other) if of.incomplete]
