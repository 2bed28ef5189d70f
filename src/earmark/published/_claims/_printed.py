"""The printed tables as the claims look them up, and the few sums they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import TypeAlias

from earmark.published._papers import read
from earmark.published.families import vocsim_family

Configuration: TypeAlias = tuple[str, str]
"""Method and distance as printed: ("EWMTF D100", "S")."""

BEST: Configuration = ("EWMTF D100", "S")
_ROUNDED_CELLS = 0.06  # points: 0.05 of the cells, 0.005 of their mean, and a little for the arithmetic
_SENTINEL = "sentinel_excluded_from_printed_avg"


@cache
def subsets() -> Mapping[str, Mapping[str, str]]:
    """Table 1 of VocSim, by subset."""
    return {row["subset"]: row for row in read("vocsim_table1_subsets")}


def members(split: str) -> list[str]:
    """The public or the blind subsets."""
    return [name for name, row in subsets().items() if row["split"] == split]


@cache
def cells(metric: str) -> Mapping[Configuration, Mapping[str, float]]:
    """A full table of VocSim, without the cells of runs that failed: by configuration and subset, in percent."""
    found: dict[Configuration, dict[str, float]] = {}
    for cell in read("vocsim_full_results"):
        if cell["metric"] == metric and cell["value_pct"] and _SENTINEL not in cell["check"]:
            found.setdefault((cell["method"], cell["distance"]), {})[cell["subset"]] = float(cell["value_pct"])
    return found


@cache
def averages(metric: str, split: str = "public") -> Mapping[Configuration, float]:
    """The column Avg, or Avg (Blind), of a full table of VocSim."""
    column = "avg_printed" if split == "public" else "avg_blind_printed"
    rows = (row for row in read("vocsim_full_results_averages") if row["metric"] == metric)
    return {(row["method"], row["distance"]): float(row[column]) for row in rows}


def means(metric: str, split: str) -> dict[Configuration, float]:
    """The mean of a full table over the public or the blind subsets, whatever its column Avg is over."""
    names = set(members(split))
    return {
        key: fmean(value for subset, value in row.items() if subset in names)
        for key, row in cells(metric).items()
        if names & set(row)
    }


def best_of_models(metric: str, split: str = "public") -> dict[str, tuple[float, Configuration]]:
    """By model: its best printed average and the configuration that has it."""
    found: dict[str, tuple[float, Configuration]] = {}
    for key, value in averages(metric, split).items():
        model = vocsim_family(key[0], "model")
        if model not in found or value > found[model][0]:
            found[model] = (value, key)
    return found


def place(values: Mapping[Configuration, float], key: Configuration) -> int:
    """1 + how many are larger."""
    return 1 + sum(value > values[key] for value in values.values())


def top(metric: str, share: float) -> list[Configuration]:
    """The best share of configurations, as `earmark figures --with-repeats` chooses them for the trends.

    They have a value on every subset, and are sorted by their mean over all of these.
    """
    values = {key: fmean(row.values()) for key, row in cells(metric).items() if len(row) == len(subsets())}
    order = sorted(values, key=lambda key: -round(values[key], 9))  # equal ones as printed
    return order[: max(1, int(share * len(order) + 0.5))]


def profile(metric: str, share: float) -> dict[str, float]:
    """The mean of the best share of configurations on each subset."""
    chosen = [cells(metric)[key] for key in top(metric, share)]
    return {name: round(fmean(row[name] for row in chosen), 9) for name in subsets()}  # ties stay ties


def permuted_means() -> list[tuple[Mapping[str, str], float, bool]]:
    """The rows of Tables 9 to 11, the mean of the full table, and whether rounding explains the difference.

    Both are means of the same cells; these are rounded to 0.1 and the observed mean to 0.01.
    """
    rows = read("vocsim_permutation_tests")
    found = [(row, means(row["metric"], row["set"])[BEST]) for row in rows]
    return [(row, mean, abs(mean - float(row["observed_mean_pct"])) <= _ROUNDED_CELLS) for row, mean in found]


def rank_correlation(one: Iterable[float], other: Iterable[float]) -> tuple[float, float]:
    """Spearman's ρ and its two-sided p."""
    from scipy.stats import spearmanr

    found = spearmanr(list(one), list(other))
    return float(found.statistic), float(found.pvalue)


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign, without the 0 before the point: +.09."""
    text = f"{value:+.{digits}f}"
    return text[0].replace("-", "−") + text[1:].removeprefix("0")


def small(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


def count(holding: Sequence[bool]) -> str:
    return f"{sum(holding)} of {len(holding)}"


@cache
def codecs() -> Mapping[str, Mapping[str, float]]:
    """Table 3 of Codec-SUPERB: by codec, its numbers; "None" is the sound before coding."""
    return {
        row["codec"]: {name: float(value) for name, value in row.items() if value and name not in _WORDS}
        for row in read("codec_superb_table3")
    }


_WORDS = ("codec", "family", "configuration")
