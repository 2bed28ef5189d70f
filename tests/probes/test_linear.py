"""Linear probes against scikit-learn pipelines that are written out here, on the same folds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from earmark.errors import InputError, UsageError
from earmark.probes._logistic import Preconditioner, Regression, Sigmoids, Softmax, with_ones
from earmark.probes._precision import (
    average_precisions,
    mean_average_precision,
    without_each_clip,
    without_each_group,
)
from earmark.probes._strengths import converge, stop_at
from earmark.probes.linear import STRENGTHS, linear, study_linear


def clips(seed: int, n: int, dimensions: int, classes: int, apart: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n)
    means = random.standard_normal((classes, dimensions)) * apart
    scales = random.exponential(1.0, dimensions)  # columns of very different sizes
    return (random.standard_normal((n, dimensions)) + means[labels]) * scales, np.array([f"c{k}" for k in labels])


def optimum(C: float):
    """scikit-learn's regression, run until it has converged."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, tol=1e-9, max_iter=50_000))


def by_scikit_learn(vectors, labels, folds, *, refit=False):
    """(C, validation accuracy, test answers) of each fold: the next fold validates, the first best C is taken."""
    names = sorted(set(folds))
    for place, name in enumerate(names):
        test, valid = folds == name, folds == names[(place + 1) % len(names)]
        train = ~test & ~valid
        best = None
        for C in STRENGTHS:
            model = optimum(C).fit(vectors[train], labels[train])
            accuracy = (model.predict(vectors[valid]) == labels[valid]).mean()
            if best is None or accuracy > best[1]:
                best = C, accuracy, model
        C, accuracy, model = best
        if refit:
            model = optimum(C).fit(vectors[train | valid], labels[train | valid])
        yield C, accuracy, model.predict(vectors[test])


@pytest.mark.parametrize(
    ("seed", "n", "dimensions", "classes", "apart"),
    [(0, 90, 8, 2, 0.4), (1, 120, 20, 4, 0.4), (2, 60, 100, 3, 0.3), (3, 160, 40, 6, 0.3)],
)
def test_choices_and_answers_are_those_of_scikit_learn(seed, n, dimensions, classes, apart):
    vectors, labels = clips(seed, n, dimensions, classes, apart)
    folds = np.random.default_rng(seed + 100).integers(1, 5, n)
    study = study_linear(vectors, labels, given=folds)
    accuracies = []
    for choice, (C, valid, answers) in zip(study.choices, by_scikit_learn(vectors, labels, folds), strict=True):
        test = folds == int(choice.fold)
        assert [study.answers[row] for row in np.flatnonzero(test)] == answers.tolist()
        assert (choice.C, choice.valid, choice.test) == (C, valid, (answers == labels[test]).mean())
        accuracies.append((answers == labels[test]).mean())
    row = study.scores.row("accuracy")
    assert row.value == float(np.mean(accuracies))
    assert f"sd over folds {np.std(accuracies):.4f}" in row.reason
    assert row.protocol == "linear given:4"
    assert row.baseline == pytest.approx(max(np.unique(labels, return_counts=True)[1]) / n)
    assert row.low < row.value < row.high
    assert row.n == n


def test_learning_again_from_training_and_validation_clips_is_scikit_learns():
    vectors, labels = clips(5, 80, 10, 3)
    folds = np.arange(80) % 4
    study = study_linear(vectors, labels, given=folds, refit=True)
    expected = list(by_scikit_learn(vectors, labels, folds, refit=True))
    assert [choice.C for choice in study.choices] == [C for C, _, _ in expected]
    for place, (_, _, answers) in enumerate(expected):
        assert [study.answers[row] for row in np.flatnonzero(folds == place)] == answers.tolist()
    assert study.scores.rows[0].protocol == "linear refit given:4"


@pytest.mark.parametrize("C", [1e-4, 1e-1, 1e4])
def test_weights_are_those_of_scikit_learn(C):
    vectors, labels = clips(7, 80, 6, 4, apart=0.3)
    rows = StandardScaler().fit_transform(vectors)
    codes = np.unique(labels, return_inverse=True)[1]
    for link, target in ((Softmax(codes, 4), labels), (Sigmoids((codes == 1)[:, None]), codes == 1)):
        regression = Regression(rows, link)
        fit = converge(regression, C, regression.start())
        model = LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(rows, target)
        logits = with_ones(rows) @ fit.weights
        expected = rows @ model.coef_.T + model.intercept_
        if logits.shape[1] > 1:  # softmax does not see what all classes share
            logits, expected = (part - part.mean(axis=1, keepdims=True) for part in (logits, expected))
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(fit.weights[:-1], model.coef_.T, rtol=1e-3, atol=1e-5)
        ours = link.loss(logits) + np.square(fit.weights[:-1]).sum() / (2 * C)
        theirs = link.loss(expected) + np.square(model.coef_).sum() / (2 * C)
        assert ours <= theirs * (1 + 1e-9)  # an optimum is no higher than where another solver stopped


def test_the_preconditioner_is_the_inverse_of_a_diagonal_with_some_rows():
    random = np.random.default_rng(11)
    rows = with_ones(random.standard_normal((50, 7)).astype(np.float32))
    squares = np.square(rows).sum(axis=0)[:, None]
    curvature = np.square(random.standard_normal((50, 3))).astype(np.float32)
    penalty = np.full((8, 1), 0.3, np.float32)
    penalty[-1] = 0
    shape = Preconditioner(rows, squares, curvature, penalty, active=10)
    right = random.standard_normal((8, 3)).astype(np.float32)
    for column in range(3):
        chosen = np.argsort(-curvature[:, column])[:10]
        mean = np.delete(curvature[:, column], chosen).mean()
        extra = rows[chosen].T @ np.diag(curvature[chosen, column] - mean) @ rows[chosen]
        matrix = np.diag(squares[:, 0] * mean + penalty[:, 0]) + extra
        solution = np.linalg.solve(matrix.astype(np.float64), right[:, column])
        np.testing.assert_allclose(shape.solve(right)[:, column], solution, rtol=1e-3, atol=1e-4)


def test_a_tolerance_stops_before_the_optimum_and_says_so():
    vectors, labels = clips(18, 90, 30, 3, apart=0.3)
    folds = np.arange(90) % 3
    row = linear(vectors, labels, given=folds, tolerance=1e-4).row("accuracy")
    assert "stopped at a gradient of 0.0001, not at the optimum" in row.reason
    assert row.inputs != linear(vectors, labels, given=folds).row("accuracy").inputs
    with pytest.raises(UsageError, match="tolerance must be a positive number"):
        linear(vectors, labels, given=folds, tolerance=0.0)
    rows = StandardScaler().fit_transform(vectors)
    codes = np.unique(labels, return_inverse=True)[1]
    regression = Regression(rows, Softmax(codes, 3))
    fit = stop_at(regression, 1.0, regression.start(), 1e-3)
    slope = regression.link.slope(regression.exact @ fit.weights)
    gradient = regression.exact.T @ slope.gradient + np.r_[fit.weights[:-1], 0 * fit.weights[-1:]]
    assert np.abs(gradient).max() / len(rows) <= 1e-3


def test_train_valid_and_test_as_given():
    vectors, labels = clips(8, 120, 12, 3)
    parts = np.array(["train", "train", "valid", "test"])[np.arange(120) % 4]
    study = study_linear(vectors, labels, given=parts)
    train, valid, test = (parts == name for name in ("train", "valid", "test"))
    models = [optimum(C).fit(vectors[train], labels[train]) for C in STRENGTHS]
    accuracies = [(model.predict(vectors[valid]) == labels[valid]).mean() for model in models]
    best = int(np.argmax(accuracies))
    assert STRENGTHS[best] == study.choices[0].C
    assert study.scores.value("accuracy") == (models[best].predict(vectors[test]) == labels[test]).mean()
    assert study.scores.rows[0].protocol == "linear train/valid/test"
    assert study.scores.rows[0].n == 30
    assert [fold for fold, part in zip(study.fold_of, parts, strict=True) if part != "test"] == [None] * 90


def test_several_labels_are_those_of_scikit_learn():
    random = np.random.default_rng(9)
    vectors = random.standard_normal((90, 8))
    present = vectors[:, :5] + random.standard_normal((90, 5)) > 0.5
    present[:, 4] = False
    present[:3, 4] = True  # a label that not every fold tests
    labels = [[f"l{k}" for k in np.flatnonzero(row)] for row in present]
    folds = np.repeat([0, 1, 2], 30)
    study = study_linear(vectors, labels, given=folds)
    values = []
    for place, choice in enumerate(study.choices):
        test, valid = folds == place, folds == (place + 1) % 3
        train = ~test & ~valid
        best = None
        for C in STRENGTHS:
            logits = np.zeros((90, 5))
            for k in range(5):
                if 0 < present[train, k].sum() < train.sum():
                    logits[:, k] = optimum(C).fit(vectors[train], present[train, k]).decision_function(vectors)
            scores = {}
            for part, rows in (("valid", valid), ("test", test)):
                tested = [k for k in range(5) if present[rows, k].any()]
                scores[part] = np.mean([average_precision_score(present[rows, k], logits[rows, k]) for k in tested])
            if best is None or scores["valid"] > best[1] + 1e-12:
                best = C, scores["valid"], scores["test"]
        assert best[0] == choice.C
        assert (choice.valid, choice.test) == pytest.approx(best[1:], abs=1e-12)
        values.append(best[2])
    row = study.scores.row("mean_average_precision")
    assert row.value == pytest.approx(np.mean(values), abs=1e-12)
    assert "2 labels without a clip in the test part" in row.reason
    assert "cannot be learnt" in row.reason
    assert row.low < row.value < row.high


def test_average_precision_without_each_clip_and_group():
    random = np.random.default_rng(10)
    scores = random.integers(0, 6, (30, 4)).astype(float)  # many ties
    present = random.random((30, 4)) < 0.3
    present[:, 3] = False
    present[4, 3] = True  # one positive clip: without it the label is not counted
    expected = [average_precision_score(present[:, k], scores[:, k]) for k in range(4)]
    np.testing.assert_allclose(average_precisions(scores, present), expected, rtol=1e-12)
    without = [mean_average_precision(np.delete(scores, row, 0), np.delete(present, row, 0)) for row in range(30)]
    np.testing.assert_allclose(without_each_clip(scores, present), without, rtol=1e-12)
    np.testing.assert_allclose(without_each_group(scores, present, np.arange(30), 30), without, rtol=1e-12)
    assert np.isnan(mean_average_precision(scores, np.zeros((30, 4), bool)))


def test_of_equal_strengths_the_smallest_is_taken_and_constant_vectors_answer_the_most_frequent_class():
    labels = np.array(["a", "a", "b"] * 20)
    study = study_linear(np.ones((60, 3)), labels, given=np.arange(60) // 12)
    assert {choice.C for choice in study.choices} == {1e-4}
    assert set(study.answers) == {"a"}
    assert study.scores.row("accuracy").lift == pytest.approx(0.0)


@pytest.mark.usefixtures("several_threads")
def test_the_number_of_threads_does_not_matter_and_rows_may_be_missing():
    vectors, labels = clips(12, 100, 10, 3)
    labels = labels.tolist()
    labels[3] = None
    folds = [str(k % 4) for k in range(100)]
    folds[7] = ""
    one, two = (study_linear(vectors, labels, given=folds, threads=threads) for threads in (1, 2))
    assert one.answers == two.answers
    assert one.answers[3] is None
    row = one.scores.rows[0]
    assert row.n == 98
    assert "1 unlabelled row dropped" in row.reason
    assert "1 row without a fold dropped" in row.reason
    assert row.inputs == two.scores.rows[0].inputs


def test_a_class_that_a_fold_does_not_learn_counts_as_wrong():
    vectors, labels = clips(13, 60, 4, 3, apart=3.0)
    folds = np.arange(60) % 3
    labels[folds == 0] = np.where(labels[folds == 0] == "c2", "rare", labels[folds == 0])
    row = linear(vectors, labels, given=folds).row("accuracy")
    assert "of a class that the fold did not learn, and count as wrong" in row.reason


def test_folds_are_made_whole_groups_and_leaks_refused():
    vectors, labels = clips(14, 90, 5, 3)
    groups = np.arange(90) // 6
    row = linear(vectors, labels, groups=groups, folds=3).row("accuracy")
    assert (row.protocol, row.unit, row.units) == ("linear group-stratified:3", "group", 15)
    assert linear(vectors, labels, folds=3).row("accuracy").protocol == "linear stratified:3"
    with pytest.raises(InputError, match="trained on and tested on"):
        linear(vectors, labels, groups=groups, given=np.arange(90) % 3)
    leaking = linear(vectors, labels, groups=groups, given=np.arange(90) % 3, allow_leaks=True)
    assert "leaks: 15 of 15 groups" in leaking.rows[0].reason


def test_a_single_strength_needs_no_validation_clips():
    vectors, labels = clips(15, 60, 5, 3)
    parts = np.where(np.arange(60) % 3 == 0, "test", "train")
    with pytest.raises(InputError, match="leave no clips to choose C on"):
        linear(vectors, labels, given=parts)
    with pytest.raises(InputError, match="2 folds leave no clips to learn from"):
        linear(vectors, labels, given=np.arange(60) % 2)
    study = study_linear(vectors, labels, given=parts, strengths=[0.1])
    model = optimum(0.1).fit(vectors[parts == "train"], labels[parts == "train"])
    answers = model.predict(vectors[parts == "test"])
    assert [study.answers[row] for row in np.flatnonzero(parts == "test")] == answers.tolist()
    assert study.scores.rows[0].protocol == "linear train/test"


def test_what_cannot_be_probed_is_refused_in_a_sentence():
    vectors, labels = clips(16, 40, 4, 2)
    folds = np.arange(40) % 4
    with pytest.raises(InputError, match=r'Fold "0" leaves one class to learn from'):
        linear(vectors, np.where(folds < 2, "a", "b"), given=np.where(folds == 3, 2, folds))
    with pytest.raises(InputError, match="All rows have the same label"):
        linear(vectors, ["a"] * 40, given=folds)
    with pytest.raises(InputError, match="No row has a label"):
        linear(vectors, [None] * 40, given=folds)
    with pytest.raises(InputError, match="40 vectors and 39 labels"):
        linear(vectors, labels[1:], given=folds)
    with pytest.raises(UsageError, match="C must be"):
        linear(vectors, labels, given=folds, strengths=[0.0])
    with pytest.raises(UsageError, match="cannot be stratified"):
        linear(vectors, [["a"]] * 40)
    broken = vectors.copy()
    broken[3, 1] = np.nan
    with pytest.raises(InputError, match="NaN"):
        linear(broken, labels, given=folds)
    with pytest.raises(InputError, match=r"numbers above 1e\+150"):
        linear(vectors * 1e300, labels, given=folds)
    with pytest.raises(InputError, match=r"numbers above 1e\+150"):
        linear(-np.abs(vectors) * 1e300, labels, given=folds)
    with pytest.raises(UsageError, match="Folds are given, and grouped ones are to be made"):
        linear(vectors, labels, given=folds, groups=folds, kind="grouped")
    with pytest.raises(InputError, match="20 ids"):
        linear(vectors, labels, given=folds, ids=[f"c{row % 20}" for row in range(40)])


def test_copies_that_are_learnt_chosen_by_and_tested_are_counted():
    vectors, labels = clips(18, 40, 4, 2)
    vectors[1] = vectors[0]  # in folds 0 and 1
    reason = linear(vectors, labels, given=np.arange(40) % 4).rows[0].reason
    assert "leaks: 2 of 40 tested clips have the vector of a clip that was learnt from" in reason
    several = linear(vectors, [[label] for label in labels], given=np.arange(40) % 4).rows[0].reason
    assert "leaks: 2 of 40 tested clips" in several


def test_large_groups_widen_the_interval_of_a_mean_average_precision():
    vectors, labels = clips(19, 120, 4, 3)
    listed, folds = [[label] for label in labels], np.arange(120) % 4
    rows = [
        linear(vectors, listed, given=folds, groups=groups, allow_leaks=True, strengths=(1.0,)).rows[0]
        for groups in (np.arange(120) % 10, np.where(np.arange(120) < 100, 0, np.arange(120) % 10))
    ]
    assert all(row.units == 10 for row in rows)
    equal, unequal = (row.high - row.low for row in rows)
    assert unequal > 2 * equal


def test_separable_clips_and_copies_with_different_labels_are_answered():
    vectors, labels = clips(17, 60, 3, 2, apart=50.0)
    vectors[1], labels[0], labels[1] = vectors[0], "c0", "c1"  # no plane tells these two apart
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = linear(vectors, labels, given=np.arange(60) % 3).row("accuracy")
    assert row.value > 0.95


def test_copies_with_as_many_clips_of_each_class_have_an_optimum_at_zero_and_end():
    points = np.repeat(np.random.default_rng(19).standard_normal((5, 3)), 6, axis=0)
    row = linear(points, np.tile(["a", "b"], 15), given=np.arange(30) % 3).row("accuracy")
    assert row.value == 0.5
    assert "on the border of two classes" in row.reason


def test_intervals_cover_the_accuracy_of_such_a_probe():
    """Short form of the simulation in docs/linear-probes.md: 95 % intervals of 40 data sets, truth from the rest."""
    rows = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        labels = np.arange(60) % 3
        vectors = random.standard_normal((60, 5)) + 1.2 * np.eye(3, 5)[labels]
        rows.append(linear(vectors, labels, given=random.permutation(60) % 5, strengths=(0.01, 1), threads=1).rows[0])
    truth = np.mean([row.value for row in rows])
    covered = np.mean([row.low <= truth <= row.high for row in rows])
    assert covered >= 0.8
