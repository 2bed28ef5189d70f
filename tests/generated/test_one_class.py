"""alpha_precision and beta_recall: the curves by a plain loop, and what the trained network tells apart."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from earmark.generated._one_class import LEVELS, outputs, supports
from earmark.generated.api import fidelity
from earmark.generated.measure import measure


def curves(real: Any, generated: Any) -> tuple[list[float], list[float]]:
    """Both curves, level by level and point by point."""
    between = np.linalg.norm(real[:, None] - generated[None], axis=2)
    own = np.linalg.norm(real[:, None] - real[None], axis=2)
    np.fill_diagonal(own, np.inf)
    nearest = generated[between.argmin(axis=1)]
    met = between.min(axis=1) <= own.min(axis=1)
    to_middle = np.linalg.norm(nearest - generated.mean(axis=0), axis=1)
    radius, other = np.linalg.norm(real - 1, axis=1), np.linalg.norm(generated - 1, axis=1)
    alpha = [float((other <= np.quantile(radius, level)).mean()) for level in LEVELS]
    beta = [float((met & (to_middle <= np.quantile(to_middle, level))).mean()) for level in LEVELS]
    return alpha, beta


def test_curves_and_scores_are_their_definition() -> None:
    rng = np.random.default_rng(0)
    real, generated = rng.normal(size=(90, 4)), 0.8 * rng.normal(size=(70, 4)) + 0.2
    found = supports(real, generated)
    alpha, beta = curves(real, generated)
    assert found.precision_curve == pytest.approx(alpha, abs=1e-12)
    assert found.recall_curve == pytest.approx(beta, abs=1e-12)
    gaps = sum(abs(level - share) for level, share in zip(LEVELS, alpha, strict=True))
    assert found.alpha_precision == pytest.approx(1 - 2 * gaps / 29, abs=1e-12)


def test_the_lowest_score_is_in_the_range_of_the_facts() -> None:
    real = np.random.default_rng(1).normal(size=(50, 3))
    assert supports(real, real + 1000).alpha_precision == pytest.approx(1 - 30 / 29)
    assert supports(real, real + 1000).beta_recall == pytest.approx(1 - 30 / 29)


def test_the_network_gathers_real_points_and_follows_its_seed() -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    real, good = rng.normal(size=(400, 6)), rng.normal(size=(400, 6))
    z, z_good = outputs(real, good)
    z_bad = outputs(real, 4 * good)[1]
    far = [float(np.linalg.norm(points - 1, axis=1).mean()) for points in (z, z_good, z_bad)]
    assert far[0] < 2.4  # an untrained network leaves them about as far as 0 is, 2.45
    assert far[1] < 1.5 * far[0] < far[2]
    np.testing.assert_array_equal(z, outputs(real, good)[0])
    assert (z != outputs(real, good, seed=1)[0]).any()
    found = measure(real, good, metrics=["alpha_precision", "beta_recall"])
    bad = measure(real, 4 * good, metrics=["alpha_precision", "beta_recall"])
    assert found["alpha_precision"] > 0.8 > bad["alpha_precision"]
    assert found["beta_recall"] > bad["beta_recall"]


def test_without_torch_the_row_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    rng = np.random.default_rng(3)
    scores = fidelity(rng.normal(size=(40, 3)), rng.normal(size=(40, 3)), metrics="alpha_precision", correct="none")
    row = scores.row("alpha_precision")
    assert row.status == "not_applicable"
    assert row.value is None
    assert 'pip install "earmark[torch]"' in row.reason


def test_a_constant_coordinate_has_no_say() -> None:
    """The deviation of many 0.1 is not quite 0; divided by it, a coordinate would decide by its rounding."""
    pytest.importorskip("torch", reason="torch is an extra")
    rng = np.random.default_rng(4)
    real, generated = rng.normal(size=(103, 3)), rng.normal(size=(40, 3))
    real[:, 1] = generated[:, 1] = 0.1
    moved = generated + np.array([0.0, 1e-12, 0.0])
    assert outputs(real, moved)[1] == pytest.approx(outputs(real, generated)[1], abs=1e-5)
