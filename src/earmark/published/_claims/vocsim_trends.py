"""VocSim's Figures 2, 8 and 9: how scores go with what the subsets are like.

Configurations and p-values (on Fisher's scale) are those of `earmark figures --figure trend-correlations`.
"""

from __future__ import annotations

import math
from statistics import NormalDist, fmean, stdev

from earmark.published._claims._printed import profile, rank_correlation, signed, small, subsets
from earmark.published._claims._record import Judged, judge
from earmark.scores import LEADING

_PER_CLASS = "clips per class"  # worked out: the printed ones are rounded
_TRENDS = 15  # three metrics and five properties, as the figure is corrected for


def _trend(metric: str, column: str, share: float = 0.05, splits: str = "public blind") -> tuple[float, float]:
    values = {name: value for name, value in profile(metric, share).items() if subsets()[name]["split"] in splits}
    rho, _ = rank_correlation((_property(name, column) for name in values), values.values())
    error = math.sqrt((1 + rho**2 / 2) / (len(values) - 3))
    return rho, 2 * NormalDist().cdf(-abs(math.atanh(rho)) / error)


def _property(subset: str, column: str) -> float:
    facts = subsets()[subset]
    return int(facts["n_samples"]) / int(facts["n_classes"]) if column == _PER_CLASS else float(facts[column])


def _falls(column: str, sign: int) -> Judged:
    found = {metric: _trend(metric, column) for metric in ("P@1", "P@5")}
    said = ", ".join(f"{metric} {signed(rho)} ({_both(p)})" for metric, (rho, p) in found.items())
    return said, all(sign * rho > 0 and p < 0.05 for rho, p in found.values())


def _both(p: float) -> str:
    """A p-value, and what it is among the fifteen trends of the figure where it is small by itself."""
    return f"{small(p)}, corrected {small(min(1.0, _TRENDS * p)).removeprefix('p = ')}" if p < 0.05 else small(p)


@judge
def precision_and_clips() -> Judged:
    said, holds = _falls("n_samples", -1)
    public = {metric: _trend(metric, "n_samples", splits="public") for metric in ("P@1", "P@5")}
    alone = ", ".join(f"{metric} {signed(rho)} ({small(p)})" for metric, (rho, p) in public.items())
    return f"{said}; the 15 public subsets alone: {alone}", holds or all(
        rho < 0 and p < 0.05 for rho, p in public.values()
    )


@judge
def precision_and_classes() -> Judged:
    return _falls("n_classes", -1)


@judge
def precision_and_clips_per_class() -> Judged:
    return _falls(_PER_CLASS, 1)


@judge
def gsr_varies_little() -> Judged:
    spread = {metric: 100 * stdev(values) / fmean(values)
              for metric in ("GSR", "P@1") if (values := list(profile(metric, 0.05).values()))}  # fmt: skip
    return f"GSR {spread['GSR']:.0f} %, P@1 {spread['P@1']:.0f} %", spread["GSR"] < spread["P@1"] / 3


@judge
def gsr_and_classes() -> Judged:
    (rho, p), (other, _) = _trend("GSR", "n_classes"), _trend("P@1", "n_classes")
    return f"GSR ρ = {signed(rho)} ({small(p)}), P@1 {signed(other)}", None


@judge
def trends_of_all() -> Judged:
    columns = ("n_samples", "n_classes", _PER_CLASS)
    found = {share: [_trend("P@1", column, share)[0] for column in columns] for share in (0.05, 0.5, 1.0)}
    said = "; ".join(f"{share:.0%}: {', '.join(map(signed, values))}" for share, values in found.items())
    return said, all(abs(a - b) <= 0.15 for share in (0.5, 1.0) for a, b in zip(found[0.05], found[share], strict=True))


def _kinds(metric: str) -> dict[str, float]:
    """The mean of the best 5 % of configurations on each kind of sound, told by the first letters of its subsets."""
    found: dict[str, list[float]] = {}
    for name, value in profile(metric, 0.05).items():
        found.setdefault(name[:2], []).append(value)
    return {kind: fmean(values) for kind, values in found.items()}


@judge
def strong_kinds_of_sound() -> Judged:
    places = {}
    for metric in LEADING:
        kinds = _kinds(metric)
        order = sorted(kinds, key=kinds.__getitem__, reverse=True)
        places[metric] = (order.index("ES") + 1, f"{metric} {kinds['ES']:.1f} ({order[0]} {kinds[order[0]]:.1f})")
    said = "; ".join(f"place {place} in {words}" for place, words in places.values())
    return said, all(place <= 4 for place, _ in places.values())


@judge
def weakest_kinds_of_sound() -> Judged:
    found = {metric: _kinds(metric) for metric in ("P@1", "P@5")}
    lower = {metric: sorted(kinds, key=kinds.__getitem__)[:4] for metric, kinds in found.items()}
    said = "; ".join(
        f"{metric} {', '.join(f'{kind} {found[metric][kind]:.1f}' for kind in kinds)}"
        for metric, kinds in lower.items()
    )
    return said, all({"HW", "HU"} <= set(kinds) for kinds in lower.values())


@judge
def smallest_class() -> Judged:
    small_ones = {name: int(row["min_samples_per_class"]) for name, row in subsets().items()}
    below = {name: size for name, size in small_ones.items() if size < 6}
    said = ", ".join(f"{name} has one of {size}" for name, size in below.items())
    return f"{len(small_ones) - len(below)} of {len(small_ones)} subsets; {said}", not below


@judge
def durations_of_clips() -> Judged:
    means = [float(row["avg_dur_s"]) for row in subsets().values()]
    ends = (
        min(float(row["min_dur_s"]) for row in subsets().values()),
        max(float(row["max_dur_s"]) for row in subsets().values()),
    )
    return f"means {min(means)} to {max(means)} s, clips {ends[0]} to {ends[1]} s", (
        abs(min(means) - 0.05) <= 0.021 and max(means) == 5
    )
