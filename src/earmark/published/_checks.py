"""Every printed number that follows from other printed numbers, recomputed.

A printed average is reproduced when the mean of the printed cells lies within what rounding explains: half a unit of
the average's last digit and half a unit of the cells'. `expected` is how many the papers reproduce; a finding with
another count means that a file of this package has changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, harmonic_mean
from typing import NamedTuple

from earmark.published._claims import claims
from earmark.published._claims._printed import permuted_means
from earmark.published._papers import PAPERS, read, tables
from earmark.published._printed_rows import codec_scores, full_results, mouse_strain
from earmark.published._repeats import NEARLY_ALL, flagged
from earmark.published.families import vocsim_family, vocsim_kind
from earmark.scores import LEADING, Row

_ROUNDED = 0.1 + 1e-9  # percent: 0.05 of the average and 0.05 of its cells
_SENTINEL = "sentinel_excluded_from_printed_avg"


@dataclass(frozen=True, slots=True)
class Recomputation:
    """How many of the printed numbers of one kind are reproduced, and what the others are."""

    name: str
    paper: str
    reproduced: int
    total: int
    expected: int
    remark: str = ""

    @property
    def as_known(self) -> bool:
        return self.reproduced == self.expected


def check() -> list[Recomputation]:
    """Recompute whatever the printed tables allow: one finding for each kind of number."""
    return [finding for findings in _CHECKS for finding in findings()]


def _counted(name: str, paper: str, agreed: Sequence[bool], expected: int, remark: str = "") -> Recomputation:
    return Recomputation(name, paper, sum(agreed), len(agreed), expected, remark)


def _sizes() -> Iterator[Recomputation]:
    agreed = [len(read(card.name)) == card.lines for card in tables()]
    yield _counted("tables with all their rows", "all", agreed, len(tables()))
    total = sum(int(cell["n_samples"]) for cell in read("vocsim_table1_subsets"))
    yield _counted("Table 1: clips of 19 subsets add up to 125,382", "VocSim", [total == 125_382], 1)


# --- VocSim -----------------------------------------------------------------------------------------------------


def _averages() -> Iterator[Recomputation]:
    """The columns Avg and Avg (Blind) of Tables 19 to 25."""
    cells: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for cell in read("vocsim_full_results"):
        if cell["value_pct"]:
            cells.setdefault((cell["metric"], cell["method"], cell["distance"]), []).append(cell)
    public, blind, without, rescued = [], [], [], 0
    for printed in read("vocsim_full_results_averages"):
        mine = cells[printed["metric"], printed["method"], printed["distance"]]
        scope = ("public",) if printed["metric"] in LEADING else ("public", "blind")
        average = printed["avg_printed"]
        public.append(_is_mean(average, mine, scope))
        rescued += public[-1] and not _is_mean(average, mine, scope, failed=True)
        without.append(_is_mean(average, mine, ("public",)))
        blind.append(_is_mean(printed["avg_blind_printed"], mine, ("blind",)))
    scope_note = "15 public subsets for P@1, P@5 and GSR, all 19 for the others; the paper does not say so"
    remark = f"{scope_note}; {rescued} of them only without the cells of failed runs"
    yield _counted("Tables 19–25: Avg", "VocSim", public, 882, remark)
    yield _counted("Tables 19–25: Avg (Blind)", "VocSim", blind, 882)
    name = "Tables 19–25: Avg, if it were over the public subsets everywhere"
    yield _counted(name, "VocSim", without, 404, "shown to settle what Avg is a mean of")


def _is_mean(printed: str, cells: Iterable[dict[str, str]], splits: Sequence[str], *, failed: bool = False) -> bool:
    counted = [cell for cell in cells if cell["split"] in splits and (failed or _SENTINEL not in cell["check"])]
    return abs(fmean(float(cell["value_pct"]) for cell in counted) - float(printed)) <= _ROUNDED


def _other_tables() -> Iterator[Recomputation]:
    """Tables 2, 9 to 11 and 13 against Tables 19 to 25."""
    averages = {
        (row["metric"], f"{row['method']} {row['distance']}", split): float(row[column])
        for row in read("vocsim_full_results_averages")
        for split, column in (("public", "avg_printed"), ("blind", "avg_blind_printed"))
    }
    main = [
        math.isclose(float(cell["mean_pct"]), averages[cell["metric"], cell["full_table_key"], cell["split"]])
        for cell in read("vocsim_table2_main")
    ]
    remark = "WavLM D100 under euclidean, public P@5: 54.4 here, 52.7 there"
    yield _counted("Table 2: equal to the full tables", "VocSim", main, 59, remark)
    permuted = permuted_means()
    remark = "; ".join(f"{row['set']} {row['metric']} is {row['observed_mean_pct']} here and {mean:.2f} there"
                       for row, mean, follows in permuted if not follows)  # fmt: skip
    name = "Tables 9–11: observed means equal the full tables"
    yield _counted(name, "VocSim", [follows for _, _, follows in permuted], 5, remark)
    cells = {
        (cell["metric"], cell["method"], cell["distance"], cell["subset"]): cell["value_pct"]
        for cell in read("vocsim_full_results")
    }
    pooled = [
        cells[metric, "EWMTF", "S", row["subset"]] == row[f"{metric}_pct"]
        for row in read("vocsim_table13_pooling_ablation")
        if row["pooling"] == "Mean (incl. pad)"
        for metric in LEADING
    ]
    remark = "HP GSR is 39.4 here and 32.0 there; 39.4 is that row's blind average"
    yield _counted("Table 13: the mean with padding equals EWMTF under spearman", "VocSim", pooled, 8, remark)


def _dtw() -> Iterator[Recomputation]:
    """Table 15's differences, and Table 14 as its means."""
    rows = [
        {name: float(value) for name, value in row.items() if "_" in name}
        for row in read("vocsim_table15_dtw_per_subset")
    ]
    deltas = [
        math.isclose(row[f"dtw_{name}"] - row[f"pooled_{name}"], row[f"delta_{name}"], abs_tol=1e-6)
        for row in rows
        for name in LEADING
    ]
    yield _counted("Table 15: differences", "VocSim", deltas, 15)
    means = [
        abs(fmean(row[f"{prefix}_{name}"] for row in rows) - float(printed[f"{name}_pct"])) <= 0.05
        for prefix, printed in zip(("pooled", "dtw", "delta"), read("vocsim_table14_dtw_average"), strict=True)
        for name in LEADING
    ]
    yield _counted("Table 14: means of Table 15", "VocSim", means, 9)


def _correlations() -> Iterator[Recomputation]:
    """Table 12 is symmetric; whether it follows from the full tables is for `earmark.analysis.agreement`."""
    rows = read("vocsim_table12_metric_correlations")
    values = {(row["metric"], other): row[other] for row in rows for other in row if other != "metric"}
    agreed = [values[a, b] == values[b, a] for a, b in values if a < b]
    yield _counted("Table 12: symmetric", "VocSim", agreed, 21, "it does not follow from Tables 19–25")


# --- rows that repeat others ------------------------------------------------------------------------------------

_REPEATED = {
    "raw equals D100 on HU3, HU4, HW3, HW4 (blind)": 1005,
    "raw equals D100 on BS4, ES1, HU1, HW2, OC1 (public)": 1257,
    "raw equals D30 on BC, BS3, HP, HS1, HS2, HW1 (public)": 1439,
    "D30 equals D100, raw equals D100, raw equals D30 on HU2 (public)": 576,
    "Tables 19–25: values flagged as repeats": 5099,
    "mouse strain: values flagged as repeats": 7,
    "Tables 3 and 6–8: values flagged as repeats": 4,
}
"""What was found when the tables were read; what `_repeats` finds is found by counting."""
_MANY = 0.75


def _repeats() -> Iterator[Recomputation]:
    """Kinds of one method (raw, D30, D100) that agree in nearly all cells of a subset, and the rows that are flagged.

    A finding of this kind counts what is repeated: the fewer the better.
    """
    for name, equal, total in _equal_kinds():
        yield Recomputation(
            name, "VocSim", equal, total, _REPEATED.get(name, 0), "at most one of them was measured here"
        )
    sets: tuple[tuple[str, str, Iterable[Row], Callable[[str], str]], ...] = (
        ("VocSim", "Tables 19–25", full_results(), vocsim_kind),
        ("VocSim", "mouse strain", mouse_strain(), vocsim_kind),
        ("Codec-SUPERB", "Tables 3 and 6–8", codec_scores(), str),
    )
    for paper, where, rows, kind in sets:
        marked = flagged(rows, kind)
        name = f"{where}: values flagged as repeats"
        copies = sum(row.status == "repeated" for row in marked)
        total = sum(row.value is not None for row in marked)
        yield Recomputation(name, paper, copies, total, _REPEATED.get(name, 0), "they count in no mean or rank")


def _equal_kinds() -> Iterator[tuple[str, int, int]]:
    """What is equal on which subsets, in how many printed cells of how many."""
    cells: dict[str, dict[tuple[str, str, str], dict[str, str]]] = {}
    splits = {}
    for cell in read("vocsim_full_results"):
        if cell["value_pct"]:
            key = (vocsim_family(cell["method"]), cell["distance"], cell["metric"])
            here = cells.setdefault(cell["subset"], {}).setdefault(key, {})
            here[vocsim_kind(cell["method"])] = cell["value_pct"]
            splits[cell["subset"]] = cell["split"]
    together: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
    for subset in sorted(cells):
        counts = _equal_pairs(cells[subset].values())
        if any(equal >= NEARLY_ALL * total for equal, total in counts.values()):
            many = {pair: count for pair, count in counts.items() if count[0] >= _MANY * count[1]}
            what = ", ".join(f"{a} equals {b}" for a, b in sorted(many))
            totals = tuple(sum(part) for part in zip(*many.values(), strict=True))
            together.setdefault((what, splits[subset]), {})[subset] = (totals[0], totals[1])
    for (what, split), by_subset in sorted(together.items(), key=lambda item: (item[0][1], -len(item[1]))):
        equal, total = (sum(part) for part in zip(*by_subset.values(), strict=True))
        yield f"{what} on {', '.join(by_subset)} ({split})", equal, total


def _equal_pairs(cells: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], tuple[int, int]]:
    """For each pair of kinds: in how many cells they are equal, of how many that have both."""
    equal, total = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for kinds in cells:
        for pair in combinations(sorted(kinds, key=lambda kind: (kind != "raw", kind.zfill(5))), 2):
            total[pair] += 1
            equal[pair] += kinds[pair[0]] == kinds[pair[1]]
    return {pair: (equal[pair], total[pair]) for pair in total}


# --- Codec-SUPERB and GICDM ---------------------------------------------------------------------------------------


def _codecs() -> Iterator[Recomputation]:
    """The column Overall of Tables 6 to 8: equal to Table 3, and the harmonic mean of the datasets."""
    cells: dict[tuple[str, str], list[float]] = {}
    for cell in read("codec_superb_scores"):
        cells.setdefault((cell["codec"], cell["category"]), []).append(float(cell["overall_score"]))
    table3 = {row["codec"]: row for row in read("codec_superb_table3")}
    rows = read("codec_superb_category_overall_check")
    equal = [row["overall_printed"] == table3[row["codec"]][f"{row['category']}_overall"] for row in rows]
    yield _counted("Tables 6–8: Overall equals Table 3", "Codec-SUPERB", equal, 57)
    harmonic: dict[bool, list[bool]] = {True: [], False: []}
    for row in rows:
        mean = harmonic_mean(cells[row["codec"], row["category"]])
        harmonic[row["category"] == "music"].append(abs(mean - float(row["overall_printed"])) <= 0.0015)
    yield _counted("Tables 6–7: Overall is the harmonic mean", "Codec-SUPERB", harmonic[False], 38)
    remark = "NSynth, which enters the music score, is not printed"
    yield _counted("Table 8: Overall is the harmonic mean", "Codec-SUPERB", harmonic[True], 2, remark)


_PASSED = {
    ("gicdm_table6_fidelity", "Precision", "0"): (6, 3, 2),
    ("gicdm_table6_fidelity", "Clipped Density", "0"): (8, 8, 2),
    ("gicdm_table6_fidelity", "Clipped Density", "1"): (10, 11, 2),
    ("gicdm_table7_coverage", "Recall", "0"): (5, 2, 0),
    ("gicdm_table7_coverage", "Clipped Coverage", "0"): (8, 9, 1),
    ("gicdm_table7_coverage", "Clipped Coverage", "1"): (10, 11, 1),
}
"""Table 1 of GICDM: how many of 14 checks of Purpose, 13 of Bounds and 3 others are passed."""


def _gicdm() -> Iterator[Recomputation]:
    agreed = []
    for (name, metric, corrected), wanted in _PASSED.items():
        passed = Counter(
            row["desideratum"] if row["desideratum"] in ("Purpose", "Bounds") else "other"
            for row in read(name)
            if (row["metric"], row["gicdm"]) == (metric, corrected) and row["cell"] != "F"
        )
        agreed += [passed[kind] == number for kind, number in zip(("Purpose", "Bounds", "other"), wanted, strict=True)]
    yield _counted("Table 1: checks passed, counted from Tables 6 and 7", "GICDM", agreed, 18)
    rows = read("gicdm_hubness_tables")
    full = [row for row in rows if row["table"] in ("9", "10", "11")]
    plain = {(row["embedding"], row["dataset"]): row for row in full if row["method"] == "Original"}
    equal = [
        row[column] == plain[row["embedding"], row["dataset"]][column]
        for row in rows
        if row["table"] == "4"
        for column in ("hub_ratio", "antihub_rate")
    ]
    yield _counted("Table 4: equal to the uncorrected rows of Tables 9–11", "GICDM", equal, 34)
    means = []
    for printed in (row for row in rows if row["table"] == "5"):
        mine = [row for row in full if row["method"] == printed["method"]]
        for column, rounding in (("hub_ratio", 0.1), ("antihub_rate", 0.01)):
            mean = fmean(float(row[column]) for row in mine)
            means.append(abs(mean - float(printed[column])) <= rounding + 1e-9)
    yield _counted("Table 5: means of Tables 9–11", "GICDM", means, 16)
    ranks = mean_rank_limits().values()
    remark = "the rank of CSLS by hub ratio, 3.7, is at most 3.65 whichever way equal values are put"
    yield _counted("Table 5: mean ranks of Tables 9–11", "GICDM", [rank.follows for rank in ranks], 15, remark)


class RankLimits(NamedTuple):
    """A printed mean rank, and the least and the most that the printed values allow."""

    printed: float
    least: float
    most: float

    @property
    def follows(self) -> bool:
        """Within what rounding to one decimal explains."""
        return self.least - 0.05 <= self.printed <= self.most + 0.05


def mean_rank_limits() -> dict[tuple[str, str], RankLimits]:
    """GICDM's Table 5 by method and column, as it follows from Tables 9 to 11.

    The paper ranks unrounded values: where two are equal as printed, either may have been before the other.
    """
    rows = read("gicdm_hubness_tables")
    found = {}
    sets: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for row in rows:
        if row["table"] in ("9", "10", "11"):
            sets.setdefault((row["embedding"], row["dataset"]), []).append(row)
    for printed in (row for row in rows if row["table"] == "5"):
        for column, rank in (("hub_ratio", "hub_rank"), ("antihub_rate", "antihub_rank")):
            least, most = [], []
            for lines in sets.values():
                own = next(float(row[column]) for row in lines if row["method"] == printed["method"])
                values = [float(row[column]) for row in lines]
                least.append(1 + sum(value < own for value in values))
                most.append(sum(value <= own for value in values))
            found[printed["method"], rank] = RankLimits(float(printed[rank]), fmean(least), fmean(most))
    return found


# --- what the texts say -------------------------------------------------------------------------------------------


def _texts() -> Iterator[Recomputation]:
    """The claims of the texts that agree with the tables, of those that the tables decide."""
    judged = claims()
    for paper in PAPERS:
        mine = [claim for claim in judged if claim.paper == paper]
        verdicts = Counter(claim.verdict for claim in mine)
        undecided = f" ({verdicts['cannot be told']} cannot be told)" if verdicts["cannot be told"] else ""
        known = sum(claim.known == "agrees" for claim in mine)
        agreed = [claim.verdict == "agrees" for claim in mine if claim.verdict != "cannot be told"]
        name = f"claims of the text that its tables bear out{undecided}"
        yield _counted(name, paper, agreed, known, f"{verdicts['differs']} differ: see `published claims`")


_CHECKS = (_sizes, _averages, _other_tables, _dtw, _correlations, _repeats, _codecs, _gicdm, _texts)
