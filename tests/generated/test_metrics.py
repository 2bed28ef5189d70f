"""Ball metrics against their definitions on whole matrices, and the properties that users rely on."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import betabinom
from tests.generated import dense

from earmark.errors import InputError, UsageError
from earmark.generated.measure import measure
from earmark.generated.metrics import BALLS, METRICS, clipped_coverage, expected_filling

Sets = tuple[Any, Any]

CORRECTED = [name for name in BALLS if METRICS[name].gicdm]


def gaussian() -> Sets:
    rng = np.random.default_rng(0)
    return rng.normal(size=(62, 9)), 0.9 * rng.normal(size=(55, 9)) + 0.2


def single_precision() -> Sets:
    real, generated = gaussian()
    return real.astype(np.float32), generated.astype(np.float32)


def grid() -> Sets:
    """Whole numbers: distances tie everywhere, and radii are met exactly."""
    rng = np.random.default_rng(1)
    return rng.integers(0, 7, (60, 3)).astype(float), rng.integers(1, 8, (52, 3)).astype(float)


def copies() -> Sets:
    """Points repeated inside a set and shared by both."""
    rng = np.random.default_rng(2)
    real, generated = rng.normal(size=(60, 6)), rng.normal(size=(58, 6))
    real[10:13] = real[0]
    generated[5:8] = generated[4]
    generated[20:30] = real[20:30]
    return real, generated


def far_from_zero() -> Sets:
    real, generated = gaussian()
    return real + 1000.0, generated + 1000.0


def outlier() -> Sets:
    real, generated = gaussian()
    real[3] *= 1e4
    generated[7] *= 1e3
    return real, generated


CASES: dict[str, Callable[[], Sets]] = {
    make.__name__: make for make in (gaussian, single_precision, grid, copies, far_from_zero, outlier)
}


def agree(found: dict[str, float], expected: dict[str, float], tolerance: float = 1e-9) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=tolerance), name


# Ranks of three small numbers put nearly all points of the grid in one place, where the definitions divide by 0.
PAIRS = [
    (case, distance)
    for case in CASES
    for distance in ("euclidean", "cosine", "spearman")
    if (case, distance) != ("grid", "spearman")
]


@pytest.mark.parametrize(("case", "distance"), PAIRS)
def test_every_metric_is_its_definition(case: str, distance: str) -> None:
    real, generated = CASES[case]()
    found = measure(real, generated, metrics=BALLS, k=4, distance=distance)
    agree(found, dense.all_metrics(real, generated, 4, distance))


@pytest.mark.parametrize(("case", "distance"), PAIRS)
def test_every_corrected_metric_is_its_definition(case: str, distance: str) -> None:
    real, generated = CASES[case]()
    for reading in ("corrected", "literal"):
        found = measure(
            real, generated, metrics=CORRECTED, k=2, gicdm=True, distance=distance, reading=reading, cap=False
        )
        literal = reading == "literal"
        agree(found, dense.all_metrics(real, generated, 2, distance, correct=True, literal=literal, cap=False))


def test_both_readings_can_be_had_at_once() -> None:
    real, generated = gaussian()
    found = measure(real, generated, k=2, gicdm=True, metrics=["clipped_coverage", "clipped_coverage_literal"])
    literal = measure(real, generated, k=2, gicdm=True, metrics="clipped_coverage", reading="literal")
    assert found["clipped_coverage_literal"] == literal["clipped_coverage"] < found["clipped_coverage"]


def test_a_lonely_real_point_is_believed_only_where_radii_are_not_cut() -> None:
    """The ablation of the GICDM paper: what the cut of the radii is good for."""
    rng = np.random.default_rng(6)
    real, bad = rng.normal(size=(60, 4)), rng.normal(size=(40, 4)) + 20.0
    names = ["clipped_density", "clipped_density_unclipped_radii"]
    apart = measure(real, bad, metrics=names)
    assert apart == dict.fromkeys(names, 0.0)
    real[:5] = np.eye(5, 4) + 30.0  # five far points, whose fifth neighbour is on the other side of the bad samples
    fooled = measure(real, bad, metrics=names)
    assert fooled["clipped_density"] == 0.0
    assert fooled["clipped_density_unclipped_radii"] == 1.0


def test_each_metric_has_its_own_k() -> None:
    real, generated = gaussian()
    found = measure(real, generated, k={"precision": 1, "density": 3, "recall_cover": 2})
    for name, k, cover in (("precision", 1, 3), ("density", 3, 3), ("coverage", 5, 3), ("precision_cover", 5, 3),
                           ("recall_cover", 5, 2)):  # fmt: skip
        expected = dense.all_metrics(real, generated, k, cover=cover)[name]
        assert found[name] == pytest.approx(expected, abs=1e-12), name


def test_a_point_on_the_edge_of_a_ball_is_inside_but_not_strictly() -> None:
    real = np.array([[0.0], [1.0], [2.0], [3.0]])
    generated = np.array([[4.0], [-1.0], [9.0], [9.0]])
    found = measure(real, generated, k=1, metrics=["precision", "density", "coverage", "sym_precision"])
    assert found["precision"] == 0.5
    assert found["density"] == 0.5
    assert found["coverage"] == 0.5
    assert found["sym_precision"] == 0.0


@pytest.mark.parametrize(("k", "real", "generated"), [(5, 120, 90), (3, 10, 60), (1, 2, 20), (5, 6, 40)])
def test_the_normaliser_of_clipped_coverage_is_a_beta_binomial_sum(k: int, real: int, generated: int) -> None:
    found = [float(expected_filling(m, k, real)) for m in range(generated + 1)]
    assert found[:k] == [0.0] * k
    assert found == sorted(found)
    for m in range(k, generated + 1):
        j = np.arange(m + 1)
        assert found[m] == pytest.approx((np.minimum(j, k) * betabinom.pmf(j, m, k, real - k)).sum() / k, abs=1e-10)


@pytest.mark.parametrize(
    ("k", "real", "generated", "fitting"),
    [(1, 100, 100, 100), (1, 60, 90, 60), (1, 84, 126, 70), (2, 45, 60, 90), (2, 30, 30, 47), (5, 21, 36, 105)],
)
def test_clipped_coverage_is_exact_where_the_filling_lies_on_a_step(
    k: int, real: int, generated: int, fitting: int
) -> None:
    """Every filling there can be, against fractions: rounding decided 6 of 8 ties at k = 1 and N = M = 100."""
    steps = dense.filling_steps(k, real, generated)
    fillings = np.arange(fitting + 1)
    expected = [sum(step < Fraction(int(filled), fitting) for step in steps) / (generated + 1) for filled in fillings]
    found = clipped_coverage(fillings / (k * real), k, real, generated, fitting / (k * real))
    assert found.tolist() == expected
    assert found[-1] == 1.0


def test_clipped_coverage_of_everything_filled_is_1_however_many_samples_there_are() -> None:
    """f(m) comes nearer to 1 than float64 can tell, and stays below."""
    assert clipped_coverage(np.array(1.0), 5, 60, 2_000_000) == 1.0
    assert clipped_coverage(np.array([0.0, 1.0]), 5, 300, 200).tolist() == [0.0, 1.0]


# --- what must not matter ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gicdm", [False, True])
def test_scale_place_and_order_do_not_matter(gicdm: bool) -> None:
    rng = np.random.default_rng(3)
    real, generated = gaussian()
    expected = measure(real, generated, k=2, gicdm=gicdm)
    agree(measure(1e150 * real, 1e150 * generated, k=2, gicdm=gicdm), expected)
    agree(measure(real / 3e5, generated / 3e5, k=2, gicdm=gicdm), expected)
    agree(measure(real - 7.0, generated - 7.0, k=2, gicdm=gicdm), expected)
    agree(measure(rng.permutation(real), rng.permutation(generated), k=2, gicdm=gicdm), expected)


@pytest.mark.parametrize("gicdm", [False, True])
@pytest.mark.usefixtures("several_threads")
def test_threads_and_memory_do_not_matter(gicdm: bool) -> None:
    rng = np.random.default_rng(4)
    real, generated = rng.normal(size=(300, 20)), rng.normal(size=(250, 20))
    alone = measure(real, generated, k=3, gicdm=gicdm)
    assert measure(real, generated, k=3, gicdm=gicdm, threads=3, memory="1MB") == alone


# --- what the numbers say ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [1, 8, 64])
def test_equal_distributions_score_about_one(dims: int) -> None:
    rng = np.random.default_rng(5)
    real, generated = rng.normal(size=(500, dims)), rng.normal(size=(500, dims))
    plain = measure(real, generated, cap=False)
    corrected = measure(real, generated, gicdm=True, cap=False)
    assert plain["density"] == pytest.approx(1.0, abs=0.12)
    assert corrected["clipped_density"] == pytest.approx(1.0, abs=0.08)
    assert corrected["clipped_coverage"] == pytest.approx(1.0, abs=0.12)
    assert corrected["precision"] > 0.8


def test_half_of_the_samples_bad_is_about_half_the_score() -> None:
    rng = np.random.default_rng(6)
    real, generated = rng.normal(size=(600, 32)), rng.normal(size=(600, 32))
    generated[:300] += 6.0
    found = measure(real, generated, gicdm=True, cap=False)
    assert 0.45 < found["clipped_density"] < 0.6
    assert 0.42 < found["clipped_coverage"] < 0.6


def spheres(rng: np.random.Generator, n: int, dims: int, radii: tuple[float, float]) -> Any:
    """Two spheres far apart, half of the points on each."""
    points = rng.normal(size=(n, dims))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points[: n // 2] *= radii[0]
    points[n // 2 :] *= radii[1]
    points[n // 2 :, 0] += 6.0
    return points


@pytest.mark.parametrize("dims", [2, 8, 16, 64, 512])
def test_disjoint_spheres_fool_every_metric_and_none_with_gicdm(dims: int) -> None:
    rng = np.random.default_rng(dims)
    real, generated = spheres(rng, 500, dims, (1.0, 1.0)), spheres(rng, 500, dims, (0.5, 1.5))
    if dims >= 16:
        assert min(measure(real, generated).values()) >= 0.5
    assert max(measure(real, generated, gicdm=True).values()) == 0.0


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = np.random.default_rng(7).normal(size=(40, 4))


@pytest.mark.parametrize(
    ("real", "generated", "options", "said"),
    [
        (GOOD, GOOD[:, :3], {}, "4 dimensions and generated ones 3"),
        (GOOD, np.where(np.arange(40)[:, None] == 5, np.nan, GOOD), {}, "generated vectors hold NaN.*first: 5"),
        (np.where(np.arange(40)[:, None] == 5, np.inf, GOOD), GOOD, {}, "real vectors hold NaN or infinity"),
        (GOOD[:0], GOOD, {}, "real vectors are empty"),
        (GOOD, GOOD[:1], {}, "1 generated vector: a neighbourhood needs at least 2"),
        (GOOD[:1], GOOD, {}, "1 real vector"),
        (np.ones((40, 4)), GOOD, {}, "All 40 real vectors are identical"),
        (GOOD, GOOD[:5], {}, "k = 5 needs more than 5 generated points, and there are 5: use k = 4"),
        (GOOD[:8], GOOD, {}, r"k = 3 of the cover pair .* 8 real points: use --k recall_cover=2"),
        (GOOD, GOOD, {"gicdm": True}, "looks at 100 neighbours, and there are 40 real points: the largest k .* is 1"),
        (GOOD[:15], GOOD, {"gicdm": True, "k": 1}, "15 real points: k = 1 needs 21"),
        (GOOD, GOOD, {"k": 0}, "at least 1"),
        (GOOD, GOOD, {"k": 2.5}, "whole number"),
        (GOOD, GOOD, {"k": {"precison": 3}}, 'Did you mean "precision"'),
        (GOOD, GOOD, {"metrics": ["precison"]}, 'Did you mean "precision"'),
        (GOOD, GOOD, {"metrics": []}, "No metric"),
        (GOOD, GOOD, {"metrics": "recall_cover", "gicdm": True}, "not defined for recall_cover"),
        (GOOD, GOOD, {"distance": "manhattan"}, "Unknown distance"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(real: Any, generated: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, UsageError), match=said) as caught:
        measure(real, generated, **options)
    assert "\n" not in str(caught.value)


def test_neighbourhoods_can_be_shrunk_to_fit() -> None:
    rng = np.random.default_rng(8)
    real, generated = rng.normal(size=(100, 5)), rng.normal(size=(100, 5))
    found = measure(real, generated, metrics=CORRECTED, gicdm=True, shrink=True)
    agree(found, dense.all_metrics(real, generated, 5, correct=True, scales=(10, 99)))


def test_points_that_all_have_copies() -> None:
    """Balls of radius 0 hold copies alone; what divides by a radius is not a number."""
    rng = np.random.default_rng(9)
    real = np.repeat(rng.normal(size=(12, 3)), 6, axis=0)
    found = measure(real, np.concatenate([real[:30], real[:30] + 0.5]))
    assert found["precision"] == 0.5
    assert found["coverage"] == pytest.approx(30 / 72)
    assert np.isnan(found["p_precision"])
    corrected = measure(real, real[:60], k=2, gicdm=True)
    assert all(np.isfinite(value) or name.startswith("p_") for name, value in corrected.items())


def test_a_generator_that_repeats_one_point_covers_nothing() -> None:
    rng = np.random.default_rng(10)
    real = rng.normal(size=(60, 5))
    generated = np.repeat(real[:1] + 0.01, 50, axis=0)
    for gicdm in (False, True):
        found = measure(real, generated, k=2, gicdm=gicdm)
        assert found["recall"] == 0.0
        assert found["coverage"] < 0.2
        assert np.isnan(found["p_recall"])
