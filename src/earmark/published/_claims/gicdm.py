"""GICDM: counts of the synthetic benchmark and the tables of hubness."""

from __future__ import annotations

from typing import TypeAlias

from earmark.published._claims._printed import count
from earmark.published._claims._record import Judged, judge
from earmark.published._papers import read

_FIDELITY, _COVERAGE, _HUBS = "gicdm_table6_fidelity", "gicdm_table7_coverage", "gicdm_hubness_tables"
_Key: TypeAlias = tuple[str, str]


def _checks(table: str, metric: str, corrected: str) -> dict[_Key, bool]:
    """Which checks a metric passes: by desideratum and check."""
    rows = (row for row in read(table) if (row["metric"], row["gicdm"]) == (metric, corrected))
    return {(row["desideratum"], row["check"]): row["cell"] != "F" for row in rows}


def _metrics(table: str, corrected: str) -> list[str]:
    return list(dict.fromkeys(row["metric"] for row in read(table) if row["gicdm"] == corrected))


@judge
def passed_checks() -> Judged:
    found = [sum(_checks(table, metric, corrected).values())
             for table, metric in ((_FIDELITY, "Clipped Density"), (_COVERAGE, "Clipped Coverage"))
             for corrected in ("0", "1")]  # fmt: skip
    return "{} → {}, {} → {}".format(*found), found == [18, 23, 18, 22]


@judge
def nothing_is_lost() -> Judged:
    lost = {}
    for table in (_FIDELITY, _COVERAGE):
        for metric in _metrics(table, "1"):
            before, after = _checks(table, metric, "0"), _checks(table, metric, "1")
            lost[metric] = sum(before[key] and not after[key] for key in before)
    others = sum(number for metric, number in lost.items() if not metric.startswith("Clipped"))
    clipped = sum(number for metric, number in lost.items() if metric.startswith("Clipped"))
    return f"clipped metrics lose {clipped}; the other {len(lost) - 2} lose {others} together", clipped == 0


@judge
def two_tests_improve() -> Judged:
    parts, shares = [], []
    for check in ("Gaussian Std. Deviation Difference", "Hypersphere Surface"):
        failing, mended = 0, 0
        for table in (_FIDELITY, _COVERAGE):
            for metric in _metrics(table, "1"):
                key = ("Purpose", check)
                if not _checks(table, metric, "0")[key]:
                    failing += 1
                    mended += _checks(table, metric, "1")[key]
        parts.append(f"{check}: {mended} of {failing}")
        shares.append(mended / failing)
    return "; ".join(parts), min(shares) >= 0.8


@judge
def symmetric_metrics() -> Judged:
    sphere = [
        _checks(table, metric, "0")["Purpose", "Hypersphere Surface"]
        for table, metric in ((_FIDELITY, "symPrecision"), (_COVERAGE, "symRecall"))
    ]
    gaussian = [
        _checks(_FIDELITY, "symPrecision", corrected)["Purpose", "Gaussian Std. Deviation Difference"]
        for corrected in ("0", "1")
    ]
    return f"hypersphere passed {count(sphere)}, Gaussian {count(gaussian)}", all(sphere) and not any(gaussian)


@judge
def bounds_of_clipped_metrics() -> Judged:
    found = {}
    for table in (_FIDELITY, _COVERAGE):
        for metric in _metrics(table, "1"):
            found[metric] = [
                sum(passed for (kind, _), passed in _checks(table, metric, corrected).items() if kind == "Bounds")
                for corrected in ("0", "1")
            ]
    clipped = {metric: numbers for metric, numbers in found.items() if metric.startswith("Clipped")}
    others = [numbers[1] <= numbers[0] for metric, numbers in found.items() if metric not in clipped]
    said = ", ".join(f"{metric} {before} → {after}" for metric, (before, after) in clipped.items())
    return f"{said}; {count(others)} others do not gain", all(a < b for a, b in clipped.values()) and all(others)


@judge
def all_metrics_fail() -> Judged:
    passed = {
        metric: sum(_checks(table, metric, "0").values())
        for table in (_FIDELITY, _COVERAGE)
        for metric in _metrics(table, "0")
    }
    most = max(passed.values())
    best = ", ".join(metric for metric, number in passed.items() if number == most)
    return f"the best ({best}) pass {most} of 30 and fail {30 - most}", 30 - most >= 0.4 * 30


# --- hubness ------------------------------------------------------------------------------------------------------


def _hubs() -> dict[_Key, dict[str, tuple[float, float, str]]]:
    """Tables 9 to 11: by embedding and dataset, the hub ratio, antihub rate and K of each method."""
    found: dict[_Key, dict[str, tuple[float, float, str]]] = {}
    for row in read(_HUBS):
        if row["table"] in ("9", "10", "11"):
            value = (float(row["hub_ratio"]), float(row["antihub_rate"]), row["K"])
            found.setdefault((row["embedding"], row["dataset"]), {})[row["method"]] = value
    return found


@judge
def icdm_is_best() -> Judged:
    ratio = [
        all(row["ICDM"][0] < value[0] for name, value in row.items() if name != "ICDM") for row in _hubs().values()
    ]
    rate = [row["ICDM"][1] == min(value[1] for value in row.values()) for row in _hubs().values()]
    return f"hub ratio {count(ratio)}, antihub rate {count(rate)}", all(ratio) and all(rate)


@judge
def icdm_k_is_stable() -> Judged:
    best = {pair: row["ICDM"][2] for pair, row in _hubs().items()}
    others = {" on ".join(pair): k for pair, k in best.items() if k != "20"}
    said = ", ".join(f"{pair} {k}" for pair, k in others.items())
    return f"20 in {count([k == '20' for k in best.values()])}; {said}", list(others) == ["Inceptionv3 on ImageNet"]


@judge
def corrections_that_harm() -> Judged:
    row = _hubs()["DINOv2", "ImageNet"]
    names = ("DSL", "LS", "Sphere")
    said = ", ".join(f"{name} {row[name][0]}" for name in names)
    return f"{said}, original {row['Original'][0]}", all(row[name][0] >= row["Original"][0] for name in names)


def _uncorrected() -> dict[_Key, tuple[float, float]]:
    rows = (row for row in read(_HUBS) if row["table"] == "4")
    return {(row["embedding"], row["dataset"]): (float(row["hub_ratio"]), float(row["antihub_rate"])) for row in rows}


@judge
def dinov2_is_least_affected() -> Judged:
    table = _uncorrected()
    held = []
    for dataset in dict.fromkeys(dataset for embedding, dataset in table if embedding == "DINOv2"):
        for at in (0, 1):
            values = {name: value[at] for (name, where), value in table.items() if where == dataset}
            held.append(values["DINOv2"] == min(values.values()))
    return count(held), all(held)


@judge
def least_affected_case() -> Judged:
    ratio, rate = _uncorrected()["DINOv2", "ImageNet"]
    least = min(_uncorrected().values())
    return f"{ratio}, {rate:.0%}", (ratio, rate) == least and ratio > 4 and rate == 0.10


@judge
def generated_sets() -> Judged:
    named = (13, 11, 9, 9)
    return " + ".join(map(str, named)) + f" = {sum(named)}", sum(named) == 42


@judge
def gpu_hours() -> Judged:
    parts = [42 * 4 * 0.5, 46 * (4 + 4 + 5 + 54) / 60, 17 * 1.5, 50, 25]
    return f"{', '.join(f'{hours:.1f}' for hours in parts)}, together {sum(parts):.0f}", abs(sum(parts) - 250) <= 25


@judge
def human_correlations() -> Judged:
    return "the numbers are lost", None
