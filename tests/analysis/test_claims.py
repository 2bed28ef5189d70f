"""What SimBA's text says beside what comes out when it is computed again; docs/simba-parity.md shows the numbers.

The matrices lie in a folder beside the repository. The text beside the printed tables alone: tests/published.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.analysis.test_parity import PAGE, SIMBA, benchmark, found, needs_data

from earmark.analysis.beams import beam_changes
from earmark.analysis.pounce import pounce, random_split
from earmark.analysis.prowl import coverage_curve, first_size, greedy
from earmark.analysis.similarities import NINE, similarity_matrix
from earmark.analysis.study import Study, analyze

FILES = {
    "HELM": "helm_core_29x16.csv",
    "HELM, 67 models": "helm_classic_accuracy_67x16_with_missing.csv",
    "MMLU": "helm_mmlu_79x58.csv",
    "BBLite, 24 tasks": "bigbench_lite_55x24_task_level.csv",
}


@functools.cache
def study(name: str) -> Study:
    """As `earmark analyze FILE --paper --regressors ridge,knn,mean --draws 5`, without ranks and verdicts."""
    return analyze(
        SIMBA / FILES[name], without=["Mean win rate"] if "HELM" in name else [], paper=True,
        regressors=["ridge", "knn", "mean"], draws=5, core=True,
    )  # fmt: skip


@needs_data
@pytest.mark.parametrize("name", FILES)
def test_the_spread_over_folds(name: str) -> None:
    """ "Low standard deviations (< 0.01)": so it is for HELM; but the spread is as large as the error itself."""
    page = PAGE.read_text(encoding="utf-8")
    rows = study(name).fold_rows()
    for row in rows:
        cells = " | ".join(f"{row[key]:.4f}" for key in ("auc_mse", "deviation", "lowest", "highest"))
        assert f"| {row['folds']} | {row['regressor']} | {cells} |" in page, row
    spread = {row["regressor"]: row["deviation"] for row in rows}
    error = {row["regressor"]: row["auc_mse"] for row in rows}
    if name.startswith("HELM"):
        assert max(spread["ridge"], spread["knn"]) < 0.01
    else:
        assert spread["knn"] > 0.01
        assert spread["knn"] > error["knn"]


@needs_data
def test_the_split_of_table_4_is_a_lucky_one_on_mmlu() -> None:
    values = [
        pounce(benchmark("MMLU"), ("ridge",), split="random", seed=seed).forecasts[0].auc_mse for seed in range(50)
    ]
    printed = pounce(benchmark("MMLU"), ("ridge",), split="random").forecasts[0].auc_mse
    assert np.mean(np.array(values) <= printed) <= 0.1
    assert np.median(values) > 1.4 * printed


@needs_data
@pytest.mark.parametrize("name", FILES)
def test_a_wider_beam_does_not_cover_better(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    tried = study(name)
    scatter = float(tried.prowl.random.scauc.std())
    for change in beam_changes(tried.beams):
        cells = f"{change.beam} | {change.proxy:+.4f} | {change.scauc:+.4f} | {change.better} | {change.worse}"
        assert f"| {cells.replace('-', '−')} |" in page, change
        assert abs(change.scauc) < 0.35 * scatter
    assert f"| {scatter:.4f} |" in page


@needs_data
def test_a_wider_beam_does_not_help_on_models_that_did_not_choose() -> None:
    helm = benchmark("HELM")
    rng = np.random.default_rng(0)
    changes = []
    for _ in range(12):
        halves = np.array_split(rng.permutation(29), 2)
        chooses, judges = (helm.take(half).normalised() for half in halves)
        for name in NINE:
            similarity = similarity_matrix(chooses, name)
            covered = [float(np.mean(coverage_curve(judges, greedy(similarity, width)))) for width in (1, 10)]
            changes.append(covered[1] - covered[0])
    assert abs(np.mean(changes)) < 0.002


@needs_data
@pytest.mark.parametrize(("name", "enough", "stable"), [("HELM", 4, {2, 3, 4}), ("MMLU", 11, {1})])
def test_one_dataset_is_enough_for_some_and_not_for_good(name: str, enough: int, stable: set[int]) -> None:
    matrix = benchmark(name)
    values = matrix.take(random_split(len(matrix.models))[0].train).normalised()
    alone = [coverage_curve(values, [j])[0] for j in range(values.shape[1])]
    assert sum(coverage >= 0.95 for coverage in alone) == enough
    chosen = [found(name).selection(similarity) for similarity in NINE]
    assert {selection.stable_size for selection in chosen} == stable
    swapped = [selection.swapped for selection in chosen]
    # "Preserve model ranks": at a coverage of 0.95 one pair of models in 50 to one in 12 changes places.
    assert 0.02 < min(swapped) < max(swapped) < 0.09
    assert sum(selection.same_best for selection in chosen) == {"HELM": 1, "MMLU": 3}[name]


@needs_data
def test_a_subset_chosen_by_some_models_covers_less_for_others() -> None:
    helm = benchmark("HELM")
    rng = np.random.default_rng(0)
    held = []
    for _ in range(40):
        chooses, judges = (helm.take(half).normalised() for half in np.array_split(rng.permutation(29), 2))
        for name in ("pearson", "spearman", "minkowski"):
            order = greedy(similarity_matrix(chooses, name))
            size = first_size(coverage_curve(chooses, order))
            held.append(coverage_curve(judges, order[:size])[-1] >= 0.95)
    assert 0.35 < np.mean(held) < 0.65


@needs_data
@pytest.mark.parametrize("name", ["HELM", "MMLU"])
def test_predictions_under_noise(name: str) -> None:
    """Robust, says the text; kNN is no better than the training mean already at 0.05."""
    clean = study(name).pounce
    assert clean is not None
    some, more = ({row.regressor: row.auc_mse for row in level.forecasts} for level in study(name).noise)
    assert clean.forecast("ridge").auc_mse < some["ridge"] < more["ridge"] < more["mean"]
    assert clean.forecast("knn").auc_mse < some["knn"] < more["knn"]
    assert some["knn"] > 0.95 * some["mean"]
    assert more["knn"] > 1.3 * more["mean"]
    assert 1.5 < some["knn"] / some["ridge"] < 3.5


@needs_data
@pytest.mark.parametrize("name", ["HELM", "MMLU"])
def test_one_dataset_leaves_a_good_part_of_the_means_error(name: str) -> None:
    """ "Negligible error with just one dataset": a quarter to a half of what the training mean leaves."""
    clean = study(name).pounce
    assert clean is not None
    knn, mean = clean.forecast("knn").curve, clean.forecast("mean").curve
    assert 0.2 < knn[0] / mean[0] < 0.5
    # Errors fall as the subset grows; so do those of the mean, which learns nothing from it.
    assert mean[-1] < 0.3 * mean[0]


@needs_data
def test_bigbenchlite_is_the_hardest_to_represent() -> None:
    """As the text says, on the 24-task version of it too."""
    small, helm, mmlu = (study(name) for name in ("BBLite, 24 tasks", "HELM", "MMLU"))

    def unrelated(one: Study) -> float:
        counts = one.stalk.datasets.counts
        return counts["NONE"] / sum(counts.values())

    assert unrelated(small) > 0.6 > unrelated(helm) > unrelated(mmlu)
    needed = [min(s.size for s in one.prowl.selections if s.name in NINE) for one in (small, helm, mmlu)]
    assert needed == [7, 1, 1]
