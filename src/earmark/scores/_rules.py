"""Means over subsets: VocSim's subsets, the named rules that choose among them, and the aggregation."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.scores._combining import UNBOUNDED, Around, combine
from earmark.scores._table import Scores
from earmark.scores.metrics import metric_facts
from earmark.scores.rows import Row, distinct
from earmark.scores.spelling import mean_over, refuse_shared


class VocSimSubset(NamedTuple):
    """One of VocSim's 19 subsets. Blind ones are low-resource languages that nobody outside may listen to."""

    name: str
    domain: str
    status: str
    title: str


VOCSIM_SUBSETS: tuple[VocSimSubset, ...] = (
    VocSimSubset("BC", "birdsong", "public", "Bird Calls (Zebra Finch)"),
    VocSimSubset("BS1", "birdsong", "public", "Bird Syllables (Zebra Finch)"),
    VocSimSubset("BS2", "birdsong", "public", "Bird Syllables (Zebra Finch)"),
    VocSimSubset("BS3", "birdsong", "public", "Bird Syllables (Bengalese)"),
    VocSimSubset("BS4", "birdsong", "public", "Bird Syllables (Bengalese)"),
    VocSimSubset("BS5", "birdsong", "public", "Bird Syllables (Canary)"),
    VocSimSubset("ES1", "environmental_sounds", "public", "Env. Events (ESC-50)"),
    VocSimSubset("HP", "human_speech", "public", "Phones (LibriSpeech)"),
    VocSimSubset("HS1", "human_speech", "public", "Non-Verbal (AMI)"),
    VocSimSubset("HS2", "human_speech", "public", "Vocal Imitations"),
    VocSimSubset("HU1", "human_speech", "public", "Utterances (VCTK)"),
    VocSimSubset("HU2", "human_speech", "public", "Utterances (AMI)"),
    VocSimSubset("HU3", "human_speech", "blind", "Utter. (Shipibo-Conibo)"),
    VocSimSubset("HU4", "human_speech", "blind", "Utter. (Chintang)"),
    VocSimSubset("HW1", "human_speech", "public", "Words (LibriSpeech)"),
    VocSimSubset("HW2", "human_speech", "public", "Words (AMI)"),
    VocSimSubset("HW3", "human_speech", "blind", "Words (Shipibo-Conibo)"),
    VocSimSubset("HW4", "human_speech", "blind", "Words (Chintang)"),
    VocSimSubset("OC1", "otter_calls", "public", "Otter Calls"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A named set of subsets to average over, as data: their names, or conditions on `VOCSIM_SUBSETS`.

    `where` maps a field of `VocSimSubset` to the values it may have. A rule with neither takes every subset.
    """

    name: str
    description: str
    subsets: tuple[str, ...] = ()
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def required(self) -> tuple[str, ...]:
        """The subsets that must have a value; empty when the rule takes what there is."""
        if self.subsets or not self.where:
            return self.subsets
        return tuple(
            subset.name
            for subset in VOCSIM_SUBSETS
            if all(getattr(subset, name) in allowed for name, allowed in self.where.items())
        )

    @property
    def label(self) -> str:
        """What stands in the `subset` column: "mean", "mean:public", "mean:domain:birdsong"…"""
        return mean_over(self.name)


def _domain_rule(name: str, description: str, *domains: str) -> Rule:
    # Without the blind subsets: only their host could fill the mean, and "blind" is that mean for speech.
    return Rule(f"domain:{name}", description, where={"domain": domains or (name,), "status": ("public",)})


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("mean", "All subsets in the table."),
        Rule("public", "VocSim's 15 public subsets.", where={"status": ("public",)}),
        Rule("blind", "VocSim's 4 blind subsets.", where={"status": ("blind",)}),
        _domain_rule("birdsong", "Calls and syllables of zebra finches, Bengalese finches and canaries."),
        _domain_rule("otter_calls", "Otter calls."),
        _domain_rule("animal_vocalizations", "Birds and otters.", "birdsong", "otter_calls"),
        _domain_rule("human_speech", "Public human speech: phones, words, utterances, non-verbal sounds, imitations."),
        _domain_rule("environmental_sounds", "Environmental events."),
    )
}


def find_rule(name: str) -> Rule:
    """The rule of that name; "domain:human speech" and "domain:human-speech" find "domain:human_speech"."""
    spelled = re.sub(r"[\s-]+", "_", name.strip().lower())
    if spelled in RULES:
        return RULES[spelled]
    hint = did_you_mean(name, RULES)
    raise UsageError(f'There is no aggregation rule "{name}"; the rules are {", ".join(RULES)}.{hint}')


_NEXT_TO_NOTHING = 1e-150


def harmonic_mean(values: Sequence[float]) -> float | None:
    """count / sum of 1 / value; 0, to which it tends, where one is 0 (or below 1e-150, whose 1 / value has no square
    that a number holds), and None of none or with a negative one.

    How Codec-SUPERB makes the overall score of a category from those of its datasets.
    """
    if not values or min(values) < 0.0:
        return None
    return 0.0 if min(values) < _NEXT_TO_NOTHING else len(values) / math.fsum(1.0 / value for value in values)


def aggregate(
    scores: Scores,
    rule: str | Rule,
    *,
    harmonic: bool = False,
    missing: Literal["refuse", "skip"] | None = None,
) -> Scores:
    """Average over the subsets of a rule: one row for each combination of the other key columns.

    value      The plain mean over subsets, each counting once whatever its size. n is the sum of the n.
    low, high  Combined as if the subsets were independent (see `_combining`). Only when every subset has an interval.
               The interval of the baseline is combined by sqrt(sum of h_i^2) / count of the half-widths h_i on a side.
    others     baseline and lift are means and seconds is a sum, when every subset has them. A p value is not
               combined.

    A subset that the rule requires and that has no ok row makes the result not_applicable, with a reason that
    names it. The rule "mean" requires nothing: it averages the ok rows, and its reason names the subsets of
    the same suite that it lacks. Rows that are means already, and rows under label noise, are left out. A subset and a
    sample of it share clips: InputError, because they are no two subsets of one mean.

    Args:
        scores: The rows of the subsets.
        rule: Which subsets, or the name of one of `RULES`.
        harmonic: Take the harmonic mean, as Codec-SUPERB does; such a mean has no baseline and no lift.
        missing: What to do without a subset: `refuse` the mean, or `skip` it and say so in the reason; None is as the
            rule says.
    """
    if isinstance(rule, str):
        rule = find_rule(rule)
    required = rule.required()
    strict = bool(required) if missing is None else missing == "refuse"
    groups: dict[tuple[str, ...], dict[str, Row]] = {}
    in_suite: dict[str, dict[str, None]] = {}
    for row in scores.rows:
        if not row.single:
            continue
        in_suite.setdefault(row.suite, {})[row.subset] = None
        members = groups.setdefault((row.suite, *row.key[2:]), {})
        if row.subset in members:
            raise InputError(f'Subset "{row.subset}" has two rows for {row.metric}; merge the table first.')
        members[row.subset] = row
    return Scores(
        tuple(
            _aggregated(rule, members, required or tuple(in_suite[suite]), strict, harmonic)
            for (suite, *_), members in groups.items()
        ),
        notes=scores.notes,
    )


def _aggregated(rule: Rule, members: Mapping[str, Row], wanted: Sequence[str], strict: bool, harmonic: bool) -> Row:
    rows = [members[name] for name in wanted if name in members and members[name].status == "ok"]
    refuse_shared((row.subset for row in rows), "subsets of one mean")
    values = [row.value for row in rows if row.value is not None]
    have = {row.subset for row in rows if row.value is not None}
    missing = [
        f"{name} ({members[name].status.replace('_', ' ')})"
        if name in members and members[name].status != "ok"
        else name
        for name in wanted
        if name not in have
    ]
    like = next(iter(members.values()))
    common = Row(
        suite=like.suite,
        subset=rule.label,
        system=like.system,
        distance=like.distance,
        correction=like.correction,
        protocol=like.protocol,
        metric=like.metric,
        version=_shared(members.values(), "version"),
    )
    if not values or (strict and missing):
        return replace(common, status="not_applicable", reason=f"missing subsets: {', '.join(missing)}")
    reason = f"{len(values)} of {len(wanted)} subsets; missing: {', '.join(missing)}" if missing else ""
    rows = [row for row in rows if row.value is not None]
    mean = harmonic_mean(values) if harmonic else math.fsum(values) / len(values)
    if mean is None:
        return replace(common, status="not_applicable", reason="there is no harmonic mean with a negative value")
    low, high = _combined(rows, mean, "value", "low", "high", harmonic)
    baseline = None if harmonic else _mean(rows, "baseline")
    baseline_low, baseline_high = _combined(rows, baseline, "baseline", "baseline_low", "baseline_high")
    counts = [row.n for row in rows if row.n is not None]
    return replace(
        common,
        value=mean,
        low=low,
        high=high,
        baseline=baseline,
        lift=None if harmonic else _mean(rows, "lift"),
        n=sum(counts) if len(counts) == len(rows) else None,
        reason=reason,
        seconds=_total(rows, "seconds"),
        inputs=_combined_hash(rule, rows),
        baseline_low=baseline_low,
        baseline_high=baseline_high,
        interval=_shared(rows, "interval") if low is not None else "",
        unit=_shared(rows, "unit") if low is not None else "",
        shuffle=_shared(rows, "shuffle"),
    )


def _total(rows: Sequence[Row], name: str) -> float | None:
    numbers = [getattr(row, name) for row in rows]
    return None if None in numbers else math.fsum(numbers)


def _mean(rows: Sequence[Row], name: str) -> float | None:
    total = _total(rows, name)
    return None if total is None else total / len(rows)


def _combined(
    rows: Sequence[Row], mean: float | None, middle: str, lower: str, upper: str, harmonic: bool = False
) -> tuple[float | None, float | None]:
    triples = [(getattr(row, middle), getattr(row, lower), getattr(row, upper)) for row in rows]
    if mean is None or any(None in triple for triple in triples):
        return None, None
    ends = UNBOUNDED
    counts: list[int | None] = [None] * len(rows)
    # A difference that is corrected for the number of comparisons has another quantile.
    if middle == "value" and all(row.interval == "jackknife" and (row.comparisons or 1) == 1 for row in rows):
        ends, counts = _range(rows[0].metric), [row.units for row in rows]
    parts = [Around(*triple, units) for triple, units in zip(triples, counts, strict=True)]
    weights = [(mean / part.value) ** 2 if part.value else 0.0 for part in parts] if harmonic else None
    down, up = combine(parts, ends, weights)
    return mean - down, mean + up


def _range(metric: str) -> tuple[float, float]:
    try:
        return metric_facts(metric).range
    except InputError:  # a metric that nobody knows has no ends
        return UNBOUNDED


def _shared(rows: Iterable[Row], name: str) -> str:
    present = distinct(rows, name)
    return present[0] if len(present) == 1 else ""


def _combined_hash(rule: Rule, rows: Sequence[Row]) -> str:
    if not all(row.inputs for row in rows):
        return ""
    parts = [rule.label, *sorted(f"{row.subset}={row.inputs}" for row in rows)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
