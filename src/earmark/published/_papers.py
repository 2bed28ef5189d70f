"""What was printed where: the papers, their tables as they lie in this package, and how to read one as it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from earmark.errors import UsageError, did_you_mean
from earmark.tables import read_csv_records


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose printed numbers are kept here, and how to cite it.

    `licence` says under which terms the numbers stand: they are facts taken from a text, to be cited.
    """

    key: str
    title: str
    citation: str
    versions: str
    licence: str = "printed results, quoted with their source; the papers' texts state no licence for their tables"


PAPERS: dict[str, Paper] = {
    paper.key: paper
    for paper in (
        Paper("VocSim", "VocSim: a training-free benchmark for content identity in single-source audio embeddings",
              "Institute of Neuroinformatics, University of Zurich and ETH Zurich, preprint of 12 December 2025",
              "two: an earlier one (under review, 2026) in clean text, and the preprint, which was scanned"),
        Paper("Codec-SUPERB", "Codec-SUPERB: codec sound processing universal performance benchmark",
              "Wu et al., Codec-SUPERB: an in-depth analysis of sound codec models, 2024", "one"),
        Paper("SimBA", "SimBA: simplifying benchmark analysis using performance matrices alone",
              "Subramani, Gomez and Diab, Carnegie Mellon University, 2025", "one"),
        Paper("GICDM", "GICDM: mitigating hubness for reliable distance-based generative model evaluation",
              "arXiv 2602.16449, 2026", "one; its text lost the formulas and some row names"),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A file of printed numbers. `lines` counts its rows, `known` says what is wrong with what was printed."""

    name: str
    paper: str
    printed: str
    title: str
    lines: int
    known: str = ""


_TABLES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "VocSim": (
        ("vocsim_full_results", "Tables 19–25 (earlier version: 11–17)",
         "P@1, P@5, GSR, CSR, CS, CSCF and weighted purity of every configuration on every subset", 16758,
         "Weighted purity 1.0 of CC, MAE and their PCA variants marks 19 failed clusterings, and CS of E under cosine "
         "on BS2 another failure: all are left out of the printed averages. E under cosine on BS2 looks like a failed "
         "run in every metric. BEATs and EAT exist only for P@1, P@5 and GSR; GSR lacks CC under euclidean. The rows "
         "without PCA repeat those of D100 or D30 on 16 subsets, and D30 repeats D100 on HU2."),
        ("vocsim_full_results_averages", "Tables 19–25, columns Avg and Avg (Blind)",
         "printed averages of every configuration", 882,
         "Avg is over the 15 public subsets for P@1, P@5 and GSR, and over all 19 for the other metrics; the paper "
         "does not say so."),
        ("vocsim_table1_subsets", "Table 1", "clips, classes, durations, dynamic range of each subset", 19),
        ("vocsim_table2_main", "Table 2", "main results with their margins of error", 60,
         "WavLM D100 under euclidean, public P@5: 54.4 here, 52.7 in the full table. The row BEATs \"D100 (PCA)\" "
         "equals the full table's BEATs without PCA."),
        ("vocsim_table5_overlap", "Table 5 (later version)", "what models may have heard of subsets before", 105,
         "The scan lost the heads of the columns: the models are named by the order of the text below the table and "
         "by the verdicts. The text calls likely what the table marks as confirmed for ES1."),
        ("vocsim_permutation_tests", "Tables 9–11 (earlier version: 6–8)", "permutation tests", 6),
        ("vocsim_table12_metric_correlations", "Table 12 (earlier version: 9)", "correlations of metrics", 7,
         "It does not follow from the printed full tables: GSR with P@1 is printed as 0.77 and recomputed as 0.6."),
        ("vocsim_table13_pooling_ablation", "Table 13", "poolings of Whisper on three subsets", 18,
         "HP, mean with padding, GSR 39.4 contradicts the full table (32.0); 39.4 is that row's blind average. The "
         "other poolings were computed on samples of the subsets."),
        ("vocsim_table14_dtw_average", "Table 14", "DTW re-ranking, means over five subsets", 3),
        ("vocsim_table15_dtw_per_subset", "Table 15", "DTW re-ranking on each of five subsets", 5),
        ("vocsim_table16_clustering", "Table 16", "k-means clustering, mean over HP, BC and BS3", 3),
        ("vocsim_table17_efficiency", "Table 17", "parameters, multiply-adds and memory of the models", 9),
        ("vocsim_table18_hear", "Table 18 (the same as Table 3)", "seven HEAR tasks", 7),
        ("vocsim_avian_triplet_accuracy", "Table 26 (earlier version: 18)",
         "agreement with zebra finches' judgements of similarity", 73),
        ("vocsim_mouse_strain", "mouse strain classification", "mouse strain from one call", 18,
         "The rows EWTF and EWT without PCA are equal in all eight numbers: probably one was copied."),
        ("vocsim_mouse_identity", "mouse identity classification", "which mouse called", 13),
    ),
    "Codec-SUPERB": (
        ("codec_superb_scores", "Tables 6–8", "overall score of 19 codecs on 19 datasets", 361,
         "Table 1 lists a sixth music set, NSynth, that Table 8 does not print."),
        ("codec_superb_table3", "Table 3", "rates, overall scores and four applications", 20,
         "The emotion accuracies of F1 to F4 repeat those of E2 to E5 exactly: probably a copying error."),
        ("codec_superb_category_overall_check", "Tables 6–8, column Overall",
         "printed overall score of each category", 57),
        ("codec_superb_table4_correlations", "Table 4", "correlations of the overall score's parts", 11),
    ),
    "SimBA": (
        ("simba_tables1_2", "Tables 1 and 2", "relations between datasets and between models", 8),
        ("simba_table3", "Table 3", "coverage of representative subsets", 12),
        ("simba_tables4_5", "Tables 4 and 5", "prediction errors, without and with noise", 12),
        ("simba_table6", "Table 6", "how often a similarity beats random orders", 11),
    ),
    "GICDM": (
        ("gicdm_table6_fidelity", "Table 6", "sanity checks that fidelity metrics pass", 360),
        ("gicdm_table7_coverage", "Table 7", "sanity checks that coverage metrics pass", 360),
        ("gicdm_hubness_tables", "Tables 4, 5 and 9–11", "hubness before and after corrections", 161,
         "One method's name is missing in the text (Gaussian mutual proximity) and dataset names are missing in half "
         "of two tables; both are filled in by order and noted in each row."),
        ("gicdm_appendix_f", "Tables below Figures 13 and 14, and the text of appendix F",
         "checks on real embeddings that metrics pass with GICDM, and what is said of those without", 32,
         "The names of the metrics were pictures and the panels have no titles: both are filled in by the order of the "
         "metrics everywhere else in the paper and by what the text says of single ones."),
    ),
}  # fmt: skip
"""By paper: name of the file, where it was printed, what it holds, its rows, and what is wrong with it."""


@cache
def tables() -> tuple[PrintedTable, ...]:
    """Every table in this package, by paper."""
    return tuple(PrintedTable(name, paper, *rest) for paper, rows in _TABLES.items() for name, *rest in rows)


def table(name: str) -> PrintedTable:
    """The card of a table."""
    cards = {card.name: card for card in tables()}
    if name not in cards:
        near = did_you_mean(name, cards)
        raise UsageError(f'There is no published table "{name}"; `earmark published` lists them.{near}')
    return cards[name]


def read(name: str) -> list[dict[str, str]]:
    """The rows of a table exactly as printed: every cell is text, and a printed dash is empty."""
    return [dict(row) for row in _rows(table(name).name)]


@cache
def _rows(name: str) -> tuple[dict[str, str], ...]:
    text = (files("earmark.published") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return tuple(read_csv_records(text, name))
