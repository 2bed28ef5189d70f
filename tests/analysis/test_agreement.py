"""Whether metrics and distances order models alike: against SciPy, and VocSim's Table 12 beside what follows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from earmark import published
from earmark.analysis.agreement import distance_agreement, metric_agreement, table12
from earmark.scores import Row, Scores


def scores(seed: int = 0) -> tuple[Scores, dict[tuple[str, str, str], np.ndarray]]:
    """Seven systems, two distances, three metrics, two subsets; CS is better when low."""
    rng = np.random.default_rng(seed)
    values = {
        (system, distance, metric): rng.uniform(0.1, 0.9, 2)
        for system in "abcdefg"
        for distance in ("cosine", "euclidean")
        for metric in ("P@1", "GSR", "CS")
    }
    rows = [
        Row(system=system, distance=distance, metric=metric, subset=subset, value=float(value))
        for (system, distance, metric), pair in values.items()
        for subset, value in zip("xy", pair, strict=True)
    ]
    return Scores(tuple(rows)), values


def test_distances_against_scipy() -> None:
    table, values = scores()
    found = {entry.under: entry for entry in distance_agreement(table)}
    assert set(found) == {"P@1", "GSR", "CS"}
    for metric, entry in found.items():
        one, other = (np.array([values[s, d, metric].mean() for s in "abcdefg"]) for d in ("cosine", "euclidean"))
        assert (entry.one, entry.other, entry.n) == ("cosine", "euclidean", 7)
        assert entry.rho == pytest.approx(spearmanr(one, other).statistic)
        assert entry.tau == pytest.approx(kendalltau(one, other).statistic)
        assert entry.swapped == pytest.approx((1 - entry.tau) / 2)
        best = np.argmin if metric == "CS" else np.argmax
        assert entry.same_top == (best(one) == best(other))


def test_a_metric_of_which_less_is_better_is_turned_round() -> None:
    table, values = scores()
    found = {(entry.one, entry.other): entry for entry in metric_agreement(table)}
    keys = [(system, distance) for system in "abcdefg" for distance in ("cosine", "euclidean")]
    gsr, cs = (np.array([values[s, d, metric].mean() for s, d in keys]) for metric in ("GSR", "CS"))
    assert found["GSR", "CS"].rho == pytest.approx(spearmanr(gsr, -cs).statistic)
    assert found["GSR", "CS"].n == 14


def test_three_systems_and_constant_metrics_are_not_compared() -> None:
    table, _ = scores()
    few = Scores(tuple(row for row in table if row.system in "abc"))
    assert distance_agreement(few) == []
    flat = Scores(tuple(Row(system=s, distance=d, metric="P@1", value=0.5) for s in "abcde" for d in ("c", "e")))
    assert distance_agreement(flat) == []


def test_a_system_that_lacks_a_subset_is_left_out() -> None:
    table, _ = scores()
    gap = Scores(tuple(row for row in table if not (row.system == "a" and row.subset == "y")))
    assert {entry.n for entry in distance_agreement(gap)} == {6}


def test_the_printed_correlations_do_not_follow_from_the_printed_tables() -> None:
    found = {(entry.one, entry.other): entry for entry in table12()}
    assert len(found) == 15  # six metrics; silhouette is tabulated nowhere
    gsr = found["GSR", "P@1"]
    assert gsr.printed == 0.77
    assert 0.57 < min(gsr.public, gsr.all19, gsr.by_subset) < max(gsr.public, gsr.all19, gsr.by_subset) < 0.61
    cs = found["GSR", "CS"]
    assert cs.printed == 0.15
    assert cs.public == pytest.approx(-0.35, abs=0.01)
    assert sum(abs(entry.printed - entry.all19) > 0.1 for entry in found.values()) == 13
    assert found["P@1", "P@5"].all19 == pytest.approx(found["P@1", "P@5"].printed, abs=0.02)


def test_one_cell_of_table_12_by_hand() -> None:
    averages = {
        (row["metric"], row["method"], row["distance"]): float(row["avg_recomputed"])
        for row in published.read("vocsim_full_results_averages")
    }
    keys = [key[1:] for key in averages if key[0] == "P@1" and ("P@5", *key[1:]) in averages]
    one, other = ([averages[metric, *key] for key in keys] for metric in ("P@1", "P@5"))
    mine = next(entry for entry in table12() if (entry.one, entry.other) == ("P@1", "P@5"))
    assert mine.n == len(keys) == 129
    assert mine.public == pytest.approx(spearmanr(one, other).statistic, abs=1e-4)  # the file keeps three digits
