"""SimBA: percentages, totals and comparisons of its text, against Tables 1 to 6."""

from __future__ import annotations

from statistics import fmean

from earmark.published._claims._printed import count
from earmark.published._claims._record import Judged, judge
from earmark.published._papers import read

_BENCHMARKS = ("HELM", "MMLU", "BBLite")
_BASELINES = ("RANDOM (n = 1000)", "GREEDY MINIMUM", "GREEDY MAXIMUM")
_DATASETS = {"HELM": 16, "MMLU": 58, "BBLite": 74}
_MODELS = {"HELM": 29, "MMLU": 79, "BBLite": 45}


def _relations(kind: str) -> dict[str, dict[str, int]]:
    """Table 1 ("dataset") or 2 ("model"): by relationship and benchmark."""
    rows = [row for row in read("simba_tables1_2") if row["table"].endswith(kind)]
    return {row["relationship"]: {name: int(row[name]) for name in _BENCHMARKS} for row in rows}


def _shares(kind: str, wanted: dict[tuple[str, str], float]) -> Judged:
    found = _relations(kind)
    totals = {name: sum(row[name] for row in found.values()) for name in _BENCHMARKS}
    held = [round(100 * found[relation][name] / totals[name], 1) == value for (relation, name), value in wanted.items()]
    return f"{count(held)} percentages", all(held)


@judge
def shares_of_datasets() -> Judged:
    helm = {("LINEAR", "HELM"): 5.0, ("NONE", "HELM"): 37.5}
    mmlu = {("LINEAR", "MMLU"): 4.1, ("NONE", "MMLU"): 7.7, ("EXPONENTIAL", "MMLU"): 39.3, ("POWER-LAW", "MMLU"): 49.0}
    return _shares("dataset", helm | mmlu | {("LINEAR", "BBLite"): 27.9, ("NONE", "BBLite"): 61.6})


@judge
def shares_of_models() -> Judged:
    helm = {("LINEAR", "HELM"): 4.9, ("POWER-LAW", "HELM"): 72.4, ("NONE", "HELM"): 4.9}
    mmlu = {("LINEAR", "MMLU"): 9.4, ("EXPONENTIAL", "MMLU"): 40.8, ("POWER-LAW", "MMLU"): 42.3, ("NONE", "MMLU"): 7.5}
    lite = {("LINEAR", "BBLite"): 7.6, ("POWER-LAW", "BBLite"): 55.5, ("NONE", "BBLite"): 32.8}
    return _shares("model", helm | mmlu | lite)


@judge
def sizes_of_benchmarks() -> Judged:
    held, said = [], []
    for kind, sizes in (("dataset", {**_DATASETS, "HELM": 17}), ("model", _MODELS)):
        for name, size in sizes.items():
            pairs = sum(row[name] for row in _relations(kind).values())
            held.append(pairs == size * (size - 1) // 2)
            if not held[-1]:
                said.append(f"{name} has {pairs} pairs of {kind}s, not {size * (size - 1) // 2}")
    return f"{count(held)}; {'; '.join(said)}", all(held)


@judge
def sizes_of_splits() -> Judged:
    splits = {"HELM": (23, 6), "MMLU": (63, 16), "BBLite": (36, 9)}
    held = [
        sum(split) == _MODELS[name] and abs(split[0] / _MODELS[name] - 0.8) < 0.01 for name, split in splits.items()
    ]
    return f"{count(held)} add up to the models of Table 2, with 79 to 80 % for training", all(held)


@judge
def everything_is_related() -> Judged:
    said, held = [], []
    for kind in ("dataset", "model"):
        found = _relations(kind)
        for name in _BENCHMARKS:
            share = 1 - found["NONE"][name] / sum(row[name] for row in found.values())
            said.append(f"{name} {kind}s {share:.0%}")
            held.append(share > 0.5)
    return ", ".join(said), all(held)


def _scauc() -> dict[str, dict[str, float]]:
    return {
        row["similarity"]: {name: float(row[f"{name}_SCAUC"]) for name in _BENCHMARKS} for row in read("simba_table3")
    }


@judge
def smallest_sets() -> Judged:
    rows = [row for row in read("simba_table3") if row["similarity"] not in _BASELINES]
    sizes = {name: min(int(row[f"{name}_Sstar"]) for row in rows) for name in _BENCHMARKS}
    said = ", ".join(
        f"{sizes[name]} of {_DATASETS[name]} ({100 * sizes[name] / _DATASETS[name]:.2f} %)" for name in sizes
    )
    return said, list(sizes.values()) == [1, 1, 21]


@judge
def most_beat_baselines() -> Judged:
    mean = {name: fmean(row.values()) for name, row in _scauc().items()}
    bar = max(mean[name] for name in _BASELINES)
    ahead = [value > bar for name, value in mean.items() if name not in _BASELINES]
    return f"{count(ahead)} similarities above {bar:.3f} (random)", sum(ahead) > len(ahead) / 2


@judge
def sizes_on_bigbench() -> Judged:
    sizes = {row["similarity"]: float(row["BBLite_Sstar"]) for row in read("simba_table3")}
    found = [int(sizes[name]) for name in ("WASSERSTEIN", "PEARSON", "SPEARMAN")]
    return ", ".join(map(str, found)), found == [21, 42, 41] and min(sizes.values()) == 21


def _better_than_random(benchmark: str, column: str) -> list[bool]:
    rows = [row for row in read("simba_table6") if not row["similarity"].startswith("GREEDY")]
    return [float(row[f"{benchmark}_{column}"]) > 0.5 for row in rows]


@judge
def mmlu_beats_random() -> Judged:
    whole, early = _better_than_random("MMLU", "AUC"), _better_than_random("MMLU", "Max2")
    return f"AUC {count(whole)}, Max2 {count(early)}", all(whole)


@judge
def half_beat_random() -> Judged:
    found = {name: _better_than_random(name, "AUC") for name in ("HELM", "BBLite")}
    said = ", ".join(f"{name} {count(held)}" for name, held in found.items())
    return said, all(3 <= sum(held) <= 6 for held in found.values())


@judge
def greedy_loses() -> Judged:
    rows = {row["similarity"]: [float(row[f"{name}_{column}"]) for name in _BENCHMARKS for column in ("AUC", "Max2")]
            for row in read("simba_table6") if row["similarity"].startswith("GREEDY")}  # fmt: skip
    said = ", ".join(f"{name.split()[1].lower()} {count([value < 0.5 for value in row])}" for name, row in rows.items())
    return f"{said}; maximum on BigBenchLite {rows['GREEDY MAXIMUM'][4]} and {rows['GREEDY MAXIMUM'][5]}", all(
        value < 0.5 for row in rows.values() for value in row
    )


def _errors(noise: str) -> dict[str, list[float]]:
    rows = [row for row in read("simba_tables4_5") if row["noise_sigma"] == noise]
    return {row["regressor"]: [float(row[name]) for name in _BENCHMARKS] for row in rows}


_NOISES = ("0.05", "0.1")


@judge
def noise_is_small() -> Judged:
    worst = max(value for noise in _NOISES for name in ("RIDGE", "KNN") for value in _errors(noise)[name])
    return f"largest {worst}", worst < 0.03


@judge
def ridge_under_noise() -> Judged:
    values = [value for noise in _NOISES for value in _errors(noise)["RIDGE"]]
    return f"from {min(values)} to {max(values)}", len(set(values)) == 1


@judge
def knn_over_ridge() -> Judged:
    return _ratio("KNN", 2, 3)


@judge
def networks_over_ridge() -> Judged:
    found = [_ratio(name, 5, 10) for name in ("MLP (1 layer)", "MLP (2 layer)")]
    return "; ".join(f"{layers} layer {said}" for layers, (said, _) in enumerate(found, 1)), all(h for _, h in found)


def _ratio(name: str, low: int, high: int) -> Judged:
    ratios = [a / b for noise in _NOISES for a, b in zip(_errors(noise)[name], _errors(noise)["RIDGE"], strict=True)]
    return f"{min(ratios):.1f} to {max(ratios):.1f}", all(low <= round(ratio) <= high for ratio in ratios)


@judge
def errors_grow() -> Judged:
    before, after = _errors("0"), _errors("0.1")
    held = [b >= a for name in before for a, b in zip(before[name], after[name], strict=True)]
    return count(held), sum(held) >= 0.8 * len(held)


@judge
def errors_near_zero() -> Judged:
    found = _errors("0")
    simple, networks = ("RIDGE", "KNN"), ("MLP (1 layer)", "MLP (2 layer)")
    said = "; ".join(f"{name} {', '.join(map(str, found[name]))}" for name in simple)
    worse = all(found[net][at] > found[name][at] for net in networks for name in simple for at in range(3))
    return said, worse and found["RIDGE"] == [0.005, 0.002, 0.002] and found["KNN"] == [0.004, 0.002, 0.002]


@judge
def beams_bring_nothing() -> Judged:
    return "no numbers are printed", None


@judge
def folds_are_alike() -> Judged:
    return "no numbers are printed", None
