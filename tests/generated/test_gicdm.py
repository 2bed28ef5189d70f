"""GICDM against its definition on whole matrices, its independence of companions, and scikit-learn's manner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from tests.generated import dense

from earmark.errors import InputError, UsageError
from earmark.generated import GICDM, api
from earmark.generated.balls import Reference
from earmark.generated.measure import measure


def points(seed: int, n: int, dims: int = 16) -> Any:
    return np.random.default_rng(seed).normal(size=(n, dims))


@pytest.mark.parametrize("distance", ["euclidean", "cosine", "spearman"])
def test_factors_and_verdicts_are_their_definition(distance: str) -> None:
    real, generated = points(0, 130), np.concatenate([points(1, 40), 1.6 * points(2, 30), 0.5 * points(3, 30)])
    judge = GICDM(k=3, distance=distance).fit(real)
    found = judge.transform(generated)
    expected = dense.gicdm(dense.among(real, distance), dense.distances(real, generated, distance), 3)
    np.testing.assert_allclose(judge.factors_, expected["factors"], rtol=1e-9)
    np.testing.assert_allclose(found.factors, expected["queries"], rtol=1e-9)
    np.testing.assert_array_equal(found.kept, expected["kept"])
    np.testing.assert_array_equal(judge.kept_, expected["fitting"])
    assert judge.scales_ == (6, 60)
    assert 0 < found.kept.sum() < len(generated)


@pytest.mark.parametrize("distance", ["euclidean", "cosine", "spearman"])
def test_a_sample_is_judged_alone(distance: str) -> None:
    """Bit for bit the same verdict alone, among others, and beside absurd companions."""
    real, generated = points(4, 120).astype(np.float32), points(5, 25).astype(np.float32)
    judge = GICDM(k=2, distance=distance).fit(real)
    among = judge.transform(generated)
    crowd = judge.transform(np.concatenate([1e3 * points(6, 70).astype(np.float32), generated]))
    for row in range(0, 25, 6):
        alone = judge.transform(generated[row : row + 1])
        for found, place in ((among, row), (crowd, 70 + row)):
            assert alone.factors[0] == found.factors[place]
            assert alone.kept[0] == found.kept[place]
            assert [rho[0] for rho in alone.discrepancies] == [rho[place] for rho in found.discrepancies]


@pytest.mark.parametrize("correction", ["none", "gicdm"])
def test_far_samples_leave_the_fidelity_of_others_alone(correction: str) -> None:
    real, generated = points(7, 120), points(8, 90)
    names = ["precision", "density", "p_precision", "clipped_density"]
    options: dict[str, Any] = {"k": 3, "metrics": names, "correct": correction, "bootstrap": 0}
    few = api.fidelity(real, generated, **options).per_sample
    many = api.fidelity(real, np.concatenate([generated, 50 + points(9, 60)]), **options).per_sample
    for name in names:
        before, after = few["euclidean", correction, "all", name], many["euclidean", correction, "all", name]
        np.testing.assert_array_equal(after[:90], before)
        assert (after[90:] == 0).all()


def test_good_samples_are_kept_like_real_points_and_others_dropped() -> None:
    real = points(10, 600, 64)
    judge = GICDM(k=3).fit(real)
    assert 0.88 <= judge.kept_.mean() <= 0.96
    assert judge.transform(points(11, 300, 64)).kept.mean() == pytest.approx(judge.kept_.mean(), abs=0.07)
    assert judge.transform(0.5 * points(12, 300, 64)).kept.mean() < 0.01  # too far in
    assert judge.transform(1.5 * points(13, 300, 64)).kept.mean() < 0.01  # too far out


def test_misfit_says_who_is_dropped() -> None:
    found = GICDM(k=2).fit(points(14, 100)).transform(np.concatenate([points(15, 40), 2 * points(16, 20)]))
    np.testing.assert_array_equal(found.misfit <= 1.0, found.kept)


def test_a_sample_on_top_of_many_copies_is_one_of_them() -> None:
    real = np.concatenate([points(17, 60, 4), np.zeros((70, 4))])
    found = GICDM(k=3).fit(real).transform(np.concatenate([np.zeros((2, 4)), np.full((1, 4), 1e-9)]))
    assert np.isfinite(found.factors).all()
    assert found.kept.tolist() == [True, True, False]


def test_a_reference_is_only_faster() -> None:
    real = points(18, 110)
    reference = Reference(real)
    for seed in (19, 20):
        generated = points(seed, 105)
        for options in ({"k": 2}, {"k": 3, "gicdm": True}, {"k": 5, "gicdm": True}):
            assert measure(reference, generated, **options) == measure(real, generated, **options)  # type: ignore[arg-type]


# --- scikit-learn's manner ------------------------------------------------------------------------------------------


def test_parameters_are_got_set_and_cloned() -> None:
    judge = GICDM(k=3, distance="cosine")
    copy = clone(judge.set_params(quantile=0.9, scales=(5, 20)))
    assert copy is not judge
    assert copy.get_params() == judge.get_params()
    assert copy.get_params()["quantile"] == 0.9
    fitted = copy.fit(points(21, 60))
    assert fitted is copy
    assert fitted.scales_ == (5, 20)
    assert len(fitted.thresholds_) == 2
    with pytest.raises(UsageError, match='Did you mean "quantile"'):
        judge.set_params(quantil=0.5)


def test_one_scale_and_any_quantile() -> None:
    real, generated = points(22, 80), 1.2 * points(23, 50)
    strict = GICDM(scales=[10], quantile=0.5).fit(real).transform(generated)
    mild = GICDM(scales=[10], quantile=1.0).fit(real)
    assert mild.kept_.all()
    assert strict.kept.sum() < mild.transform(generated).kept.sum()
    expected = dense.gicdm(dense.among(real), dense.distances(real, generated), 5, quantile=0.5, scales=(10,))
    np.testing.assert_array_equal(strict.kept, expected["kept"])


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: GICDM().transform(points(0, 5)), UsageError, r"call fit\(real\) before"),
        (lambda: GICDM().fit(np.ones((120, 4))), InputError, "All 120 real vectors are identical"),
        (lambda: GICDM(k=5).fit(points(0, 90)), UsageError, "100 neighbours, and there are 90 real .* fits is 4"),
        (lambda: GICDM(k=1).fit(points(0, 20)), UsageError, "20 real points: k = 1 needs 21"),
        (lambda: GICDM(scales=(5, 50)).fit(points(0, 40)), UsageError, "50 neighbours, and there are 40"),
        (lambda: GICDM(scales=()).fit(points(0, 40)), UsageError, "at least one scale"),
        (lambda: GICDM(quantile=0).fit(points(0, 101)), UsageError, "quantile must be above 0"),
        (lambda: GICDM(iterations=0).fit(points(0, 101)), UsageError, "iterations must be at least 1"),
        (lambda: GICDM(k=1).fit(points(0, 40)).transform(points(0, 5, 3)), InputError, "16 and 3"),
        (lambda: GICDM(k=1).fit(points(0, 40)).transform([[np.nan] * 16]), InputError, "generated vectors hold NaN"),
        (lambda: GICDM(k=1, distance="taxi").fit(points(0, 40)), UsageError, "Unknown distance"),
    ],
)  # fmt: skip
def test_misuse_is_one_sentence(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()
