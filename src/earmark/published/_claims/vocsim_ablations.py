"""VocSim's Appendix H: poolings, DTW, clustering, label noise, layers; and its Appendix N."""

from __future__ import annotations

from statistics import fmean

from earmark.published._claims._printed import averages, cells, count, signed, subsets
from earmark.published._claims._record import Judged, judge
from earmark.published._papers import read
from earmark.scores import LEADING

_PADDED, _MASKED = "Mean (incl. pad)", "Masked Mean (mask-excl.)"


def _poolings(metric: str = "P@1") -> dict[str, dict[str, float]]:
    """Table 13: by subset and pooling."""
    found: dict[str, dict[str, float]] = {}
    for row in read("vocsim_table13_pooling_ablation"):
        found.setdefault(row["subset"], {})[row["pooling"]] = float(row[f"{metric}_pct"])
    return found


@judge
def padding_helps() -> Judged:
    same = [
        cells(metric)["EWMTF", "S"][subset] == found[_PADDED]
        for metric in LEADING
        for subset, found in _poolings(metric).items()
    ]
    bc = _poolings()["BC"]
    return f"BC {bc[_PADDED]} and {bc[_MASKED]}; {count(same)} values with padding are the full tables'", None


@judge
def default_pooling() -> Judged:
    found = {
        pooling: [
            cells(metric)["EWMTF", "S"][subset] == values[pooling]
            for metric in LEADING
            for subset, values in _poolings(metric).items()
        ]
        for pooling in (_MASKED, _PADDED)
    }
    said = f"with padding {count(found[_PADDED])}, without {count(found[_MASKED])}"
    return f"equal to EWMTF in the full tables: {said}", sum(found[_MASKED]) > sum(found[_PADDED])


@judge
def poolings_are_alike() -> Judged:
    ranges = {
        subset: [value for pooling, value in found.items() if pooling != _PADDED]
        for subset, found in _poolings().items()
    }
    said = ", ".join(f"{subset} {min(values):.1f} to {max(values):.1f}" for subset, values in ranges.items())
    return said, all(max(values) < 1.5 * min(values) for values in ranges.values())


@judge
def single_frames_do_worse() -> Judged:
    found = _poolings()
    worse = [found[subset][pooling] < found[subset][_MASKED] for subset in found for pooling in _FRAMES]
    equal = [found[subset][pooling] <= found[subset][_MASKED] for subset in found for pooling in _FRAMES]
    return f"worse in {count(worse)}, better in {count([not one for one in equal])}", all(equal)


_FRAMES = ("First Time", "Last Time")


@judge
def dtw_does_not_help() -> Judged:
    rows = {row["subset"]: row for row in read("vocsim_table15_dtw_per_subset")}
    change = {metric: fmean(float(row[f"delta_{metric}"]) for row in rows.values()) for metric in LEADING}
    said = ", ".join(f"{metric} {signed(value, 1)}" for metric, value in change.items())
    es1 = rows["ES1"]
    quoted = (float(es1["delta_GSR"]), float(es1["delta_P@1"])) == (1.1, -20.8)
    return f"mean change {said}; ES1 as quoted", quoted and max(change["P@1"], change["GSR"]) <= 0


@judge
def dtw_time() -> Judged:
    comparisons = 0
    for row in read("vocsim_table15_dtw_per_subset"):
        facts = subsets()[row["subset"]]
        whole = int(facts["n_classes"]) - (int(facts["min_samples_per_class"]) < 5)  # a class of two clips has not five
        clips = 5 * min(50, whole)
        comparisons += clips * min(200, clips - 1)
    minutes = comparisons * 0.6e-3 / 60
    return f"{comparisons:,} comparisons, {minutes:.1f} minutes", abs(minutes - 2.1) < 0.15


@judge
def frames_of_short_clips() -> Judged:
    frames = {name: float(subsets()[name]["avg_dur_s"]) * 50 / 3 for name in ("HP", "BS3")}
    said = ", ".join(f"{name} {number:.1f}" for name, number in frames.items())
    return said, all(1 <= number <= 2 for number in frames.values())


def _by(rows: list[dict[str, str]], column: str, name: str) -> list[str]:
    """The first words of the rows' names, from the largest value of a column to the smallest."""
    return [row[name].split()[0] for row in sorted(rows, key=lambda row: -float(row[column]))]


@judge
def clustering_agrees() -> Judged:
    rows = read("vocsim_table16_clustering")
    columns = ("NMI_pct", "Purity_pct", "ARI_pct")
    names = {tuple(_by(rows, column, "configuration")) for column in columns}
    said = "; ".join(" > ".join(ranked) for ranked in names)
    main = ", ".join(f"{name} {averages('P@1')[key]}" for name, key in _MAIN.items())
    return f"{said} in all three; public P@1 of Table 2: {main}", names == {("Whisper", "CLAP", "WavLM")}


_MAIN = {"Whisper": ("EWMTF D100", "S"), "CLAP": ("CLP D100", "S"), "WavLM": ("WLM D100", "E")}


@judge
def noise_and_precision() -> Judged:
    lost = 100 * (1 - 0.9**2)
    return f"−{lost:.1f} % follow from the share of flipped labels", abs(lost - 19.2) < 1


@judge
def noise_and_gsr() -> Judged:
    chance = next(
        float(row["baseline_mean_pct"])
        for row in read("vocsim_permutation_tests")
        if (row["metric"], row["set"]) == ("GSR", "public")
    )
    observed = cells("GSR")["EWMTF", "S"]["BC"]
    lost = 0.088 * observed
    return f"{lost:.1f} of {observed} points, {100 * lost / (observed - chance):.0f} % of a lift over {chance}", None


@judge
def noise_of_a_fifth() -> Judged:
    return "no numbers are printed", None


@judge
def layers_are_alike() -> Judged:
    return "no numbers are printed", None


@judge
def hours_add_up() -> Judged:
    total = 72 + 48 + 24
    return f"{total} h, {total / 24:g} days", total == 144


@judge
def whisper_costs_most() -> Judged:
    rows = read("vocsim_table17_efficiency")[:-1]
    columns = ("params_M", "MACs_G_per_s", "peak_memory_GB")
    first = {column: _by(rows, column, "model")[0] for column in columns}
    said = f"parameters {first['params_M']}, multiply-adds {first['MACs_G_per_s']}, memory {first['peak_memory_GB']}"
    return said, first["params_M"] == first["MACs_G_per_s"] == "Whisper-L-v3"
