"""Coded queries among clean clips, against loops over every pair, scikit-learn, and `earmark.evaluate`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import earmark
from earmark.probes.events import average_precision
from earmark.probes.retrieval import answers, chance


def case(seed: int = 0, n: int = 37, kinds: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, kinds, n)
    labels[:2] = kinds, -1  # alone of its kind; without label
    clean = rng.normal(size=(kinds + 1, 6))[labels] + rng.normal(size=(n, 6))
    return clean, clean + 0.5 * rng.normal(size=(n, 6)), labels


def distance(one: np.ndarray, two: np.ndarray) -> float:
    return float(1 - one @ two / np.linalg.norm(one) / np.linalg.norm(two))


def test_every_query_is_answered_as_by_hand() -> None:
    clean, coded, labels = case()
    found = answers(coded, clean, labels)
    for i in range(len(labels)):
        others = [j for j in range(len(labels)) if j != i and labels[j] >= 0]
        own = [distance(coded[i], clean[j]) for j in others if labels[j] == labels[i]]
        if labels[i] < 0 or not own:
            assert all(np.isnan(values[i]) for values in found.values())
            continue
        nearness = -np.array([distance(coded[i], clean[j]) for j in others])
        kin = np.array([labels[j] == labels[i] for j in others])
        assert found["hit"][i] == kin[np.argmax(nearness)]
        assert found["ap"][i] == pytest.approx(average_precision_score(kin, nearness), abs=1e-12)
        near, mean = -nearness[~kin].max(), np.mean(own)
        assert found["gsr"][i] == pytest.approx(((near - mean) / (near + mean) + 1) / 2, abs=1e-8)


def test_clean_clips_among_themselves_are_earmarks_own_scores() -> None:
    clean, _, labels = case(1, n=300)  # more than one block
    kept = labels >= 0
    scores = earmark.evaluate(clean[kept], labels[kept], metrics=("P@1", "GSR"), k=1)
    found = answers(clean, clean, labels, ("hit", "gsr"))
    # `evaluate` drops the clip that is alone of its kind; here it may still be someone's nearest.
    assert np.nanmean(found["hit"]) == pytest.approx(scores.value("P@1"), abs=0.01)
    whole = kept & (labels < 5)
    found = answers(clean[whole], clean[whole], labels[whole], ("hit", "gsr"))
    assert found["hit"].mean() == pytest.approx(scores.value("P@1"), abs=1e-12)
    assert found["gsr"].mean() == pytest.approx(scores.value("GSR"), abs=1e-6)


def test_ties_go_to_the_lower_row_and_a_vector_without_direction_is_like_no_other() -> None:
    same = np.ones((4, 2))
    assert answers(same, same, np.array([0, 1, 0, 1]), ("hit",))["hit"].tolist() == [0, 0, 1, 0]
    flat = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.1], [-1.0, 0.0]])
    assert np.isfinite(answers(flat, flat, np.array([0, 0, 1, 1]))["gsr"]).all()


def test_chance_is_what_shuffled_labels_reach() -> None:
    clean, coded, labels = case(2, n=80, kinds=4)
    means = {name: float(np.nanmean(values)) for name, values in answers(coded, clean, labels, ("hit", "gsr")).items()}
    found = chance(coded, clean, labels, means, 60, 0)
    counts = np.bincount(labels[labels >= 0])
    expected = (counts * (counts - 1)).sum() / (counts.sum() - 1) / counts[counts > 1].sum()
    assert found["hit"].baseline == pytest.approx(expected, abs=0.03)
    assert found["hit"].low <= found["hit"].baseline <= found["hit"].high
    assert found["hit"].p_value == pytest.approx(1 / 61)
    blind = chance(coded, clean, labels, {"hit": 0.0}, 20, 0)["hit"]
    assert blind.p_value == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_average_precision_is_scikit_learns_with_ties_and_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, truth = rng.integers(0, 6, 40).astype(float), rng.random(40) < 0.3
    weights = np.vstack([np.ones(40), rng.integers(0, 4, 40)]).astype(float)
    found = average_precision(scores, truth, weights)
    for row, value in zip(weights, found, strict=True):
        expected = average_precision_score(truth, scores, sample_weight=row)
        assert value == pytest.approx(expected, abs=1e-12)
    assert np.isnan(average_precision(scores, np.zeros(40, bool), weights)).all()
