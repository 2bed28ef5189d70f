"""VocSim's printed tables as score rows.

The full tables keep their methods as printed ("EWMTF D100"); distances and metrics have Earmark's spellings and
percentages are fractions. Cells known to be wrong are flagged, never mended: a number that is no measurement has the
status failed and stands in the reason, a doubtful one keeps its value with a reason beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from earmark.published.catalogue import read
from earmark.published.cells import DISTANCES, failed_row, fraction, printed_row
from earmark.scores import Row

SUITE = "vocsim"
METRICS = {
    "P@1": "P@1",
    "P@5": "P@5",
    "GSR": "GSR",
    "CSR": "CSR",
    "CS": "CS",
    "CSCF": "CSCF",
    "Weighted Purity": "purity",
}
"""Printed name: Earmark's, in the order of Tables 19 to 25."""

ALL_SUBSETS = ("CSR", "CS", "CSCF", "purity")
"""Metrics whose printed average is over all 19 subsets; the others' is over the 15 public ones."""

_READINGS = {
    "001_ocr_garbled_000_used": "digits of the earlier version: the scan of the later one is damaged here",
    "only_seed001_ocr_repaired": "read as 838.6 in the scan and repaired to 88.6, which the printed average confirms",
}
_SENTINEL = "sentinel_excluded_from_printed_avg"
_NOTES = {
    "both_agree": "both versions agree",
    "001_ocr_garbled_000_used": "earlier version only, the scan is damaged",
    "only_seed000": "earlier version only",
    "only_seed001": "later version only",
    "only_seed001_ocr_repaired": "later version only, scan repaired",
}
_HP_GSR = "the full table says 32.0 %; 39.4 % is that row's blind average"
_DOUBTFUL_RUN = "looks like a failed run: under euclidean the same model has a P@1 of 95.3 % on BS2"


def full_results() -> Iterator[Row]:
    """Tables 19 to 25: seven metrics of 124 to 129 configurations on 19 subsets."""
    numbers = {name: 19 + place for place, name in enumerate(METRICS)}
    for line, cell in enumerate(read("vocsim_full_results"), start=2):
        reading, _, flag = cell["check"].partition(";")
        metric = METRICS[cell["metric"]]
        source = f"vocsim_full_results:{line}"
        printed = f"VocSim, Table {numbers[cell['metric']]}"
        key = {
            "suite": SUITE,
            "subset": cell["subset"],
            "system": cell["method"],
            "distance": DISTANCES[cell["distance"]],
            "metric": metric,
        }
        note = _NOTES[reading]
        value = cell["value_pct"]
        if not value:
            yield printed_row(source, printed, None, note=note, **key)
        elif flag == _SENTINEL:
            why = "a clustering that failed" if metric == "purity" else "a run that failed"
            why += ", left out of the printed average"
            yield failed_row(source, printed, f"{value} %", why, note=note, **key)
        else:
            reason = _READINGS.get(reading, "") or _doubt(cell, metric)
            yield printed_row(source, printed, fraction(value), note=note, reason=reason, **key)


def _doubt(cell: dict[str, str], metric: str) -> str:
    if (cell["method"], cell["distance"], cell["subset"]) == ("E", "C", "BS2"):
        return _DOUBTFUL_RUN
    if metric == "purity" and cell["value_pct"] == "1.0":
        return "printed as 1.0 % like the clusterings that failed, but counted in the printed average"
    return ""


def main_table() -> Iterator[Row]:
    """Table 2: means over public and blind subsets, with margins of error as intervals."""
    for line, cell in enumerate(read("vocsim_table2_main"), start=2):
        method, _, distance = cell["full_table_key"].rpartition(" ")
        value, margin = fraction(cell["mean_pct"]), fraction(cell["margin_pct"])
        wrong = (method, distance, cell["split"], cell["metric"]) == ("WLM D100", "E", "public", "P@5")
        yield printed_row(
            f"vocsim_table2_main:{line}", "VocSim, Table 2", value,
            suite=SUITE, subset=f"mean:{cell['split']}", system=method, distance=DISTANCES[distance],
            metric=cell["metric"], low=value - margin, high=value + margin,
            reason="the full table's average is 52.7 %" if wrong else "",
        )  # fmt: skip


def permutation_tests() -> Iterator[Row]:
    """Tables 9 to 11: the best configuration against shuffled labels, means over subsets."""
    for line, cell in enumerate(read("vocsim_permutation_tests"), start=2):
        value, baseline = fraction(cell["observed_mean_pct"]), fraction(cell["baseline_mean_pct"])
        yield printed_row(
            f"vocsim_permutation_tests:{line}", "VocSim, Tables 9–11", value,
            suite=SUITE, subset=f"mean:{cell['set']}", system="EWMTF D100", distance="spearman", metric=cell["metric"],
            baseline=baseline, lift=value - baseline,
            baseline_low=fraction(cell["baseline_ci95_lo"]), baseline_high=fraction(cell["baseline_ci95_hi"]),
            reason=f"p < 0.001 on {cell['p_lt_0.001_count']} of {cell['n_subsets']} subsets",
        )  # fmt: skip


def pooling_ablation() -> Iterator[Row]:
    """Table 13: six poolings of Whisper on three subsets."""
    for line, cell in enumerate(read("vocsim_table13_pooling_ablation"), start=2):
        for metric in ("P@1", "P@5", "GSR"):
            wrong = (cell["subset"], cell["pooling"], metric) == ("HP", "Mean (incl. pad)", "GSR")
            reason = "computed on a sample of the subset" if cell["pooling"] != "Mean (incl. pad)" else ""
            yield printed_row(
                f"vocsim_table13_pooling_ablation:{line}", "VocSim, Table 13", fraction(cell[f"{metric}_pct"]),
                suite=SUITE, subset=cell["subset"], system=f"Whisper, {cell['pooling']}", distance="spearman",
                metric=metric, reason=_HP_GSR if wrong else reason,
            )  # fmt: skip


def dtw() -> Iterator[Row]:
    """Tables 14 and 15: DTW re-ranking beside the pooled vectors it starts from."""
    for line, cell in enumerate(read("vocsim_table15_dtw_per_subset"), start=2):
        for prefix, system in (("pooled", "pooled"), ("dtw", "DTW re-ranking (M=200)")):
            for metric in ("P@1", "P@5", "GSR"):
                yield printed_row(
                    f"vocsim_table15_dtw_per_subset:{line}", "VocSim, Table 15", fraction(cell[f"{prefix}_{metric}"]),
                    suite=SUITE, subset=cell["subset"], system=system, distance="spearman", metric=metric,
                )  # fmt: skip
    for line, cell in enumerate(read("vocsim_table14_dtw_average"), start=2):
        known = {"Pooled (Spearman)": "pooled", "DTW Re-rank (M=200)": "DTW re-ranking (M=200)"}
        for metric in ("P@1", "P@5", "GSR") if cell["method"] in known else ():
            yield printed_row(
                f"vocsim_table14_dtw_average:{line}", "VocSim, Table 14", fraction(cell[f"{metric}_pct"]),
                suite=SUITE, subset="mean", system=known[cell["method"]], distance="spearman", metric=metric,
                reason="over HP, BC, BS3, ES1 and HU2",
            )  # fmt: skip


def clustering() -> Iterator[Row]:
    """Table 16: k-means with as many clusters as classes."""
    for line, cell in enumerate(read("vocsim_table16_clustering"), start=2):
        for column, metric in (("NMI_pct", "NMI"), ("Purity_pct", "kmeans_purity"), ("ARI_pct", "ARI")):
            yield printed_row(
                f"vocsim_table16_clustering:{line}", "VocSim, Table 16", fraction(cell[column]),
                suite=SUITE, subset="mean", system=cell["configuration"], metric=metric,
                reason=f"over {cell['subsets'].replace(' ', ', ')}",
            )  # fmt: skip


def efficiency() -> Iterator[Row]:
    """Table 17: parameters (millions), multiply-adds (10^9 a second of sound) and peak memory (GB)."""
    columns = {"params_M": "parameters_m", "MACs_G_per_s": "macs_g", "peak_memory_GB": "peak_memory_gb"}
    for line, cell in enumerate(read("vocsim_table17_efficiency"), start=2):
        for column, metric in columns.items():
            number = cell[column] if cell[column] != "Minimal" else ""
            why = {} if number else {"reason": 'the paper prints "Minimal"'}
            yield printed_row(
                f"vocsim_table17_efficiency:{line}", "VocSim, Table 17", float(number) if number else None,
                suite="vocsim-efficiency", system=cell["model"], metric=metric, **why,
            )  # fmt: skip


def hear() -> Iterator[Row]:
    """Table 18: logistic regression on seven HEAR tasks; the interval is one standard deviation over folds."""
    systems = {"whisper_d100": "EWMTF D100", "clap_d100": "CLP D100", "hear_sota": "best on HEAR's leaderboard"}
    for line, cell in enumerate(read("vocsim_table18_hear"), start=2):
        for prefix, system in systems.items():
            spread = cell.get(f"{prefix.partition('_')[0]}_std", "")
            value = fraction(cell[f"{prefix}_acc_pct"])
            around: dict[str, Any] = (
                {"low": value - fraction(spread), "high": min(1.0, value + fraction(spread))} if spread else {}
            )
            named = f"by {cell['sota_ref']}" if prefix == "hear_sota" else ""
            deviation = "interval: one standard deviation over folds" if spread else ""
            yield printed_row(
                f"vocsim_table18_hear:{line}", "VocSim, Table 18", value,
                suite="hear", subset=cell["task"], system=system, metric="accuracy",
                reason=named or deviation, **around,
            )  # fmt: skip


def avian() -> Iterator[Row]:
    """Table 26: the share of triplets that a distance orders as zebra finches do."""
    for line, cell in enumerate(read("vocsim_avian_triplet_accuracy"), start=2):
        theirs = cell["source"] != "VocSim"
        yield printed_row(
            f"vocsim_avian_triplet_accuracy:{line}", "VocSim, Table 26", fraction(cell["triplet_acc_pct"]),
            suite="avian", subset="triplets", system=cell["method"], distance=DISTANCES[cell["distance"]],
            metric="triplet_accuracy", reason="quoted from Zandberg et al. 2024" if theirs else "",
        )  # fmt: skip


def mouse_strain() -> Iterator[Row]:
    """Which strain a mouse is of, from one call, by three classifiers; a subset is a classifier's setting."""
    for line, cell in enumerate(read("vocsim_mouse_strain"), start=2):
        copied = cell["method"] in ("EWTF", "EWT")
        reason = "quoted from Goffinet et al. 2021" if cell["source"] != "VocSim" else ""
        reason = "EWTF and EWT are printed with the same eight numbers" if copied else reason
        for column in ("knn_k3", "knn_k10", "knn_k30", "rf_depth10", "rf_depth15", "rf_depth20", "mlp_a0.001_top1"):
            yield printed_row(
                f"vocsim_mouse_strain:{line}", "VocSim, mouse strain", fraction(cell[column]),
                suite="mouse-strain", subset=column.removesuffix("_top1"), system=cell["method"], metric="accuracy",
                reason=reason,
            )  # fmt: skip


def mouse_identity() -> Iterator[Row]:
    """Which mouse called: top-1 and top-5 accuracy; the interval is one standard deviation over folds."""
    for line, cell in enumerate(read("vocsim_mouse_identity"), start=2):
        for alpha in ("0.01", "0.001", "0.0001"):
            for top, metric in (("top1", "accuracy"), ("top5", "top5_accuracy")):
                value, spread = (fraction(cell[f"mlp_a{alpha}_{top}_{what}"]) for what in ("pct", "std"))
                yield printed_row(
                    f"vocsim_mouse_identity:{line}", "VocSim, mouse identity", value,
                    suite="mouse-identity", subset=f"mlp_a{alpha}", system=cell["feature_set"], metric=metric,
                    low=value - spread, high=value + spread, reason="interval: one standard deviation over folds",
                )  # fmt: skip
