"""The papers' printed tables as score rows: `SETS` names those that are score tables, and what each holds.

Systems keep their printed names ("EWMTF D100"); distances and metrics have Earmark's spellings, and percentages are
fractions. Cells known to be wrong are flagged, never mended: a number that is no measurement has the status failed and
stands in the reason, a doubtful one keeps its value with a reason beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from earmark.published._papers import read
from earmark.scores import LEADING, Row
from earmark.scores.spelling import with_sample

_DISTANCES = {"C": "cosine", "E": "euclidean", "S": "spearman", "": ""}
_METRICS = {
    **{name: name for name in ("P@1", "P@5", "GSR", "CSR", "CS", "CSCF")},
    "Weighted Purity": "purity",
}
"""Printed name: Earmark's, in the order of Tables 19 to 25."""

_DAMAGED, _REPAIRED = "001_ocr_garbled_000_used", "only_seed001_ocr_repaired"
_READINGS = {
    _DAMAGED: "digits of the earlier version: the scan of the later one is damaged here",
    _REPAIRED: "read as 838.6 in the scan and repaired to 88.6, which the printed average confirms",
}
_NOTES = {
    "both_agree": "both versions agree",
    _DAMAGED: "earlier version only, the scan is damaged",
    "only_seed000": "earlier version only",
    "only_seed001": "later version only",
    _REPAIRED: "later version only, scan repaired",
}
_SENTINEL = "sentinel_excluded_from_printed_avg"
_DEVIATION = "interval: one standard deviation over folds"

Cell = dict[str, str]
MakeRow = Callable[..., Row]


def _printed(table: str, printed: str, **columns: Any) -> Iterator[tuple[Cell, MakeRow]]:
    """Each line of a table, and a function that makes a score row of one of its cells.

    A row's `version` says where it was printed ("published, VocSim, Table 19"), its `inputs` the file and line it was
    read from, and what is known of the reading ("vocsim_full_results:17 both versions agree").
    """
    for line, cell in enumerate(read(table), start=2):
        yield cell, partial(_row, f"{table}:{line}", printed, **columns)


def _row(source: str, printed: str, value: float | None, *, note: str = "", table: str = "", **columns: Any) -> Row:
    if value is None:
        dash = {"status": "not_applicable", "reason": "the paper prints a dash and gives no reason"}
        columns = dash | columns
    return Row(value=value, version=f"published, {printed}{table}", inputs=f"{source} {note}".rstrip(), **columns)


def _fraction(printed: str) -> float:
    """A printed percentage as the nearest fraction: "76.2" is 0.762."""
    return float(Decimal(printed) / 100)


def _around(value: float, deviation: float, top: float = float("inf")) -> dict[str, float]:
    return {"low": value - deviation, "high": min(top, value + deviation)}


# --- VocSim -----------------------------------------------------------------------------------------------------


def full_results() -> Iterator[Row]:
    """Tables 19 to 25: seven metrics of 124 to 129 configurations on 19 subsets."""
    numbers = {name: 19 + place for place, name in enumerate(_METRICS)}
    for cell, row in _printed("vocsim_full_results", "VocSim, Table ", suite="vocsim"):
        reading, _, flag = cell["check"].partition(";")
        metric, value = _METRICS[cell["metric"]], cell["value_pct"]
        key: dict[str, Any] = {
            "table": numbers[cell["metric"]],
            "subset": cell["subset"],
            "system": cell["method"],
            "distance": _DISTANCES[cell["distance"]],
            "metric": metric,
            "note": _NOTES[reading],
        }
        if not value:
            yield row(None, **key)
        elif flag == _SENTINEL:
            what = "clustering" if metric == "purity" else "run"
            reason = f"printed as {value} %: a {what} that failed, left out of the printed average"
            yield row(None, status="failed", reason=reason, **key)
        else:
            yield row(_fraction(value), reason=_READINGS.get(reading, "") or _doubt(cell, metric), **key)


def _doubt(cell: Cell, metric: str) -> str:
    if (cell["method"], cell["distance"], cell["subset"]) == ("E", "C", "BS2"):
        return "looks like a failed run: under euclidean the same model has a P@1 of 95.3 % on BS2"
    if metric == "purity" and cell["value_pct"] == "1.0":
        return "printed as 1.0 % like the clusterings that failed, but counted in the printed average"
    return ""


def _averages() -> Iterator[Row]:
    """The columns Avg and Avg (Blind) of Tables 19 to 25.

    Avg is over the 15 public subsets for P@1, P@5 and GSR, and over all 19 for the others.
    """
    numbers = {name: 19 + place for place, name in enumerate(_METRICS)}
    for cell, row in _printed("vocsim_full_results_averages", "VocSim, Table ", suite="vocsim"):
        metric = _METRICS[cell["metric"]]
        over = "mean:public" if metric in LEADING else "mean"
        for subset, column in ((over, "avg_printed"), ("mean:blind", "avg_blind_printed")):
            yield row(
                _fraction(cell[column]), table=numbers[cell["metric"]], subset=subset, system=cell["method"],
                distance=_DISTANCES[cell["distance"]], metric=metric,
            )  # fmt: skip


def _main_table() -> Iterator[Row]:
    """Table 2: means over public and blind subsets, with margins of error as intervals."""
    for cell, row in _printed("vocsim_table2_main", "VocSim, Table 2", suite="vocsim"):
        method, _, distance = cell["full_table_key"].rpartition(" ")
        value = _fraction(cell["mean_pct"])
        wrong = (method, distance, cell["split"], cell["metric"]) == ("WLM D100", "E", "public", "P@5")
        yield row(
            value, subset=f"mean:{cell['split']}", system=method, distance=_DISTANCES[distance], metric=cell["metric"],
            reason="the full table's average is 52.7 %" if wrong else "",
            **_around(value, _fraction(cell["margin_pct"])),
        )  # fmt: skip


def _permutation_tests() -> Iterator[Row]:
    """Tables 9 to 11: the best configuration against shuffled labels, means over subsets."""
    best = {"system": "EWMTF D100", "distance": "spearman"}
    for cell, row in _printed("vocsim_permutation_tests", "VocSim, Tables 9–11", suite="vocsim", **best):
        value, baseline = _fraction(cell["observed_mean_pct"]), _fraction(cell["baseline_mean_pct"])
        yield row(
            value, subset=f"mean:{cell['set']}", metric=cell["metric"], baseline=baseline, lift=value - baseline,
            baseline_low=_fraction(cell["baseline_ci95_lo"]), baseline_high=_fraction(cell["baseline_ci95_hi"]),
            reason=f"p < 0.001 on {cell['p_lt_0.001_count']} of {cell['n_subsets']} subsets",
        )  # fmt: skip


def _pooling_ablation() -> Iterator[Row]:
    """Table 13: six poolings of Whisper, five on 6 clips of each of up to 100 classes of three subsets, one on all."""
    plain = "Mean (incl. pad)"
    for cell, row in _printed(
        "vocsim_table13_pooling_ablation", "VocSim, Table 13", suite="vocsim", distance="spearman"
    ):
        for metric in LEADING:
            sample = "" if cell["pooling"] == plain else "100x6"
            reason = "computed on a sample of the subset" if sample else "of all its clips, unlike the other poolings"
            if (cell["subset"], cell["pooling"], metric) == ("HP", plain, "GSR"):
                reason += "; the full table says 32.0 %, and 39.4 % is that row's blind average"
            value, subset = _fraction(cell[f"{metric}_pct"]), with_sample(cell["subset"], sample)
            yield row(value, subset=subset, system=f"Whisper, {cell['pooling']}", metric=metric, reason=reason)


def _dtw() -> Iterator[Row]:
    """Tables 14 and 15: DTW re-ranking beside the pooled vectors it starts from, 5 clips of up to 50 classes each."""
    same = {"suite": "vocsim", "distance": "spearman"}
    reranked = "DTW re-ranking (M=200)"
    for cell, row in _printed("vocsim_table15_dtw_per_subset", "VocSim, Table 15", **same):
        for prefix, system in (("pooled", "pooled"), ("dtw", reranked)):
            for metric in LEADING:
                value, subset = _fraction(cell[f"{prefix}_{metric}"]), with_sample(cell["subset"], "50x5")
                yield row(value, subset=subset, system=system, metric=metric)
    over = {"subset": "mean", "reason": "over HP, BC, BS3, ES1 and HU2, 5 clips of up to 50 classes each"}
    known = {"Pooled (Spearman)": "pooled", "DTW Re-rank (M=200)": reranked}
    for cell, row in _printed("vocsim_table14_dtw_average", "VocSim, Table 14", **same, **over):
        for metric in LEADING if cell["method"] in known else ():
            yield row(_fraction(cell[f"{metric}_pct"]), system=known[cell["method"]], metric=metric)


def _clustering() -> Iterator[Row]:
    """Table 16: k-means with as many clusters as classes."""
    for cell, row in _printed("vocsim_table16_clustering", "VocSim, Table 16", suite="vocsim", subset="mean"):
        reason = f"over {cell['subsets'].replace(' ', ', ')}"
        for column, metric in (("NMI_pct", "NMI"), ("Purity_pct", "kmeans_purity"), ("ARI_pct", "ARI")):
            yield row(_fraction(cell[column]), system=cell["configuration"], metric=metric, reason=reason)


def _efficiency() -> Iterator[Row]:
    """Table 17: parameters (millions), multiply-adds (10^9 a second of sound) and peak memory (GB)."""
    columns = {"params_M": "parameters_m", "MACs_G_per_s": "macs_g", "peak_memory_GB": "peak_memory_gb"}
    for cell, row in _printed("vocsim_table17_efficiency", "VocSim, Table 17", suite="vocsim-efficiency"):
        for column, metric in columns.items():
            if cell[column] in ("", "Minimal"):
                yield row(None, system=cell["model"], metric=metric, reason='the paper prints "Minimal"')
            else:
                yield row(float(cell[column]), system=cell["model"], metric=metric)


def _hear() -> Iterator[Row]:
    """Table 18: logistic regression on seven HEAR tasks; the interval is one standard deviation over folds."""
    systems = {"whisper_d100": "EWMTF D100", "clap_d100": "CLP D100", "hear_sota": "best on HEAR's leaderboard"}
    for cell, row in _printed("vocsim_table18_hear", "VocSim, Table 18", suite="hear", metric="accuracy"):
        for prefix, system in systems.items():
            spread = cell.get(f"{prefix.partition('_')[0]}_std", "")
            value = _fraction(cell[f"{prefix}_acc_pct"])
            around = _around(value, _fraction(spread), 1.0) if spread else {}
            reason = f"by {cell['sota_ref']}" if prefix == "hear_sota" else _DEVIATION if spread else ""
            yield row(value, subset=cell["task"], system=system, reason=reason, **around)


def _avian() -> Iterator[Row]:
    """Table 26: the share of triplets that a distance orders as zebra finches do."""
    same = {"suite": "avian", "subset": "triplets", "metric": "triplet_accuracy"}
    for cell, row in _printed("vocsim_avian_triplet_accuracy", "VocSim, Table 26", **same):
        reason = "" if cell["source"] == "VocSim" else "quoted from Zandberg et al. 2024"
        value = _fraction(cell["triplet_acc_pct"])
        yield row(value, system=cell["method"], distance=_DISTANCES[cell["distance"]], reason=reason)


def mouse_strain() -> Iterator[Row]:
    """Which strain a mouse is of, from one call, by three classifiers; a subset is a classifier's setting."""
    columns = ("knn_k3", "knn_k10", "knn_k30", "rf_depth10", "rf_depth15", "rf_depth20", "mlp_a0.001_top1")
    for cell, row in _printed("vocsim_mouse_strain", "VocSim, mouse strain", suite="mouse-strain", metric="accuracy"):
        reason = "" if cell["source"] == "VocSim" else "quoted from Goffinet et al. 2021"
        if cell["method"] in ("EWTF", "EWT"):
            reason = "EWTF and EWT are printed with the same eight numbers"
        for column in columns:
            subset = column.removesuffix("_top1")
            yield row(_fraction(cell[column]), subset=subset, system=cell["method"], reason=reason)


def _mouse_identity() -> Iterator[Row]:
    """Which mouse called: top-1 and top-5 accuracy; the interval is one standard deviation over folds."""
    same = {"suite": "mouse-identity", "reason": _DEVIATION}
    for cell, row in _printed("vocsim_mouse_identity", "VocSim, mouse identity", **same):
        for alpha in ("0.01", "0.001", "0.0001"):
            for top, metric in (("top1", "accuracy"), ("top5", "top5_accuracy")):
                value, spread = (_fraction(cell[f"mlp_a{alpha}_{top}_{what}"]) for what in ("pct", "std"))
                key = {"subset": f"mlp_a{alpha}", "system": cell["feature_set"], "metric": metric}
                yield row(value, **key, **_around(value, spread))


# --- Codec-SUPERB and GICDM ---------------------------------------------------------------------------------------


def codec_scores() -> Iterator[Row]:
    """Tables 6 to 8 and 3: overall scores on 19 datasets and three categories, rates, and four applications."""
    numbers = {"speech": 6, "audio": 7, "music": 8}
    for cell, row in _printed("codec_superb_scores", "Codec-SUPERB, Table ", suite="codec-superb", metric="overall"):
        value, table = float(cell["overall_score"]), numbers[cell["category"]]
        yield row(value, table=table, subset=cell["dataset"], system=cell["codec"])
    applications = {
        "asr_wer_pct": ("wer", "speech recognition"),
        "asv_eer_pct": ("eer", "speaker verification"),
        "asv_mindcf": ("min_dcf", "speaker verification"),
        "er_acc_pct": ("er_accuracy", "emotion recognition"),
        "aec_map_pct": ("aec_map", "audio event classification"),
    }
    for cell, row in _printed("codec_superb_table3", "Codec-SUPERB, Table 3", suite="codec-superb"):
        system = "no codec" if cell["codec"] == "None" else cell["codec"]
        if cell["kbps"]:
            for category in numbers:
                reason = "NSynth, which enters this mean, is not printed" if category == "music" else ""
                key = {"subset": f"mean:{category}", "system": system, "metric": "overall", "reason": reason}
                yield row(float(cell[f"{category}_overall"]), **key)
            yield row(float(cell["kbps"]), system=system, metric="kbps")
        for column, (metric, task) in applications.items():
            value = _fraction(cell[column]) if column.endswith("_pct") else float(cell[column])
            yield row(value, subset=task, system=system, metric=metric)


def _hubness() -> Iterator[Row]:
    """Tables 5 and 9 to 11: hub ratio and antihub rate of image and music embeddings under corrections.

    Table 4 repeats the uncorrected rows of Tables 9 to 11 and is left to `read`.
    """
    for cell, row in _printed("gicdm_hubness_tables", "GICDM, Table ", suite="gicdm-hubness"):
        if cell["table"] == "4":
            continue
        mean = cell["table"] == "5"
        for metric in ("hub_ratio", "antihub_rate"):
            yield row(
                float(cell[metric]), table=cell["table"], metric=metric,
                subset="mean" if mean else cell["dataset"], system="17 embeddings" if mean else cell["embedding"],
                correction="none" if cell["method"] == "Original" else cell["method"].lower().removesuffix("^gauss"),
                reason=cell["note"] or (f"best of several K: {cell['K']}" if cell["K"] else ""),
            )  # fmt: skip


SETS: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "vocsim": ("7 metrics of 124–129 configurations on 19 subsets", full_results),
    "vocsim-averages": ("the columns Avg and Avg (Blind) of Tables 19–25", _averages),
    "vocsim-main": ("Table 2: means with margins of error", _main_table),
    "vocsim-permutations": ("Tables 9–11: the best configuration against chance", _permutation_tests),
    "vocsim-pooling": ("Table 13: six poolings of Whisper", _pooling_ablation),
    "vocsim-dtw": ("Tables 14 and 15: DTW re-ranking", _dtw),
    "vocsim-clustering": ("Table 16: k-means", _clustering),
    "vocsim-efficiency": ("Table 17: parameters, multiply-adds, memory", _efficiency),
    "vocsim-hear": ("Table 18: seven HEAR tasks", _hear),
    "vocsim-avian": ("Table 26: agreement with zebra finches", _avian),
    "vocsim-mouse-strain": ("which strain a mouse is of", mouse_strain),
    "vocsim-mouse-identity": ("which mouse called", _mouse_identity),
    "codec-superb": ("overall scores of 19 codecs on 19 datasets, rates and applications", codec_scores),
    "gicdm-hubness": ("hubness of 17 embeddings under eight corrections", _hubness),
}
"""Printed results that are score tables: what each holds and how it is made."""
