"""The sets that the sanity checks draw: their moments, sizes, grids and seeds."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.generated.sanity._data import CHECKS, INVENTION_CENTRES, Check, Subcase, draw_pair, generator, standardised

N = 4000


def drawn(check: str, subcase: str, value: float, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """The two sets before they are standardised."""
    found = CHECKS[check]
    case = found.subcase(subcase)
    return (
        found.real(case, value, n, np.random.default_rng(1)),
        found.generated(case, value, n, np.random.default_rng(2)),
    )


def every_case() -> list[tuple[Check, Subcase]]:
    return [(check, case) for check in CHECKS.values() for case in check.subcases]


def test_shifted_gaussians() -> None:
    real, generated = drawn("mean", "d=8", -1.5)
    assert real.mean(axis=0) == pytest.approx(np.zeros(8), abs=0.07)
    assert generated.mean(axis=0) == pytest.approx(np.full(8, -1.5), abs=0.07)
    assert generated.std(axis=0) == pytest.approx(np.ones(8), abs=0.06)


def test_the_outlier_is_one_point_more_in_one_of_the_sets() -> None:
    for role, sizes in (("real", (101, 100)), ("generated", (100, 101))):
        sets = drawn("mean_outlier", f"outlier in {role}, d=8", 0.5, 100)
        assert tuple(map(len, sets)) == sizes
        assert (sets[role == "generated"][-1] == 3.0).all()
    plain = drawn("mean_outlier", "outlier in real, d=8", 0.5, 100)[1]
    assert (drawn("mean_outlier", "outlier in generated, d=8", 0.5, 100)[1][:100] == plain).all()


def test_the_pareto_column_has_its_tail_and_does_not_move() -> None:
    real, generated = drawn("mean_pareto", "", 2.0)
    for points in (real, generated):
        assert points[:, 1].min() >= 1.0
        assert (points[:, 1] > 10).mean() == pytest.approx(10**-1.01, abs=0.02)
    assert generated[:, 0].mean() == pytest.approx(2.0, abs=0.07)
    assert abs(real[:, 0].mean()) < 0.07


def test_spread_scale_and_one_disjoint_dimension() -> None:
    assert drawn("std", "d=64", 0.5)[1].std() == pytest.approx(0.5, rel=0.02)
    real, generated = drawn("scaling", "", 100.0)
    assert real.std(axis=0) == pytest.approx([1, 100], rel=0.05)
    assert generated.mean(axis=0) == pytest.approx([6, 0], abs=6)
    assert generated[:, 0].mean() == pytest.approx(6, abs=0.07)
    real, generated = drawn("one_disjoint", "", 12.0)
    assert real.shape == generated.shape == (N, 13)
    assert generated.mean(axis=0) == pytest.approx([6.0] + [0.0] * 12, abs=0.08)


def test_rounding_is_of_one_set() -> None:
    real, generated = drawn("discrete", "real rounded", 3.0)
    assert (real == np.round(real)).all()
    assert (generated != np.round(generated)).all()
    real, generated = drawn("discrete", "generated rounded", 3.0)
    assert (real != np.round(real)).all()
    assert (generated == np.round(generated)).all()


@pytest.mark.parametrize("d", [1, 8, 64])
def test_cubes_share_a_fifth_of_their_volume(d: int) -> None:
    real, generated = drawn("cube_size", f"d={d}", 10_000)
    assert real.shape == generated.shape == (10_000, d)
    low, high = generated.min(axis=0), real.max(axis=0)
    assert np.prod(high - low) == pytest.approx(0.2, abs=0.03)
    assert (generated <= 1.0).all(axis=1).mean() == pytest.approx(0.2, abs=0.015)
    real, generated = drawn("cube_generated_size", f"d={d}", 158.0)
    assert (len(real), len(generated)) == (1000, 158)


def test_spheres_have_their_radius() -> None:
    real, generated = drawn("sphere", "d=16", 1.7)
    assert np.linalg.norm(real, axis=1) == pytest.approx(np.ones(N))
    assert np.linalg.norm(generated, axis=1) == pytest.approx(np.full(N, 1.7))
    assert real.mean(axis=0) == pytest.approx(np.zeros(16), abs=0.03)


def test_collapsed_modes() -> None:
    real, generated = drawn("mode_collapse", "d=8", 5.0)
    assert np.sort(np.abs(real.mean(axis=1)))[[400, -400]] == pytest.approx([2.5, 2.5], abs=0.6)
    assert real.var(axis=0) == pytest.approx(np.full(8, 1 + 25 / 4), rel=0.1)
    assert generated.var(axis=0) == pytest.approx(np.full(8, 26), rel=0.1)


def test_modes_are_dropped_one_by_one_or_fade_together() -> None:
    real, generated = drawn("modes_one_by_one", "d=1", 7)
    modes = np.arange(10) * 10 / 9

    def shares(points: np.ndarray) -> np.ndarray:
        return np.bincount(np.abs(points - modes).argmin(axis=1), minlength=10) / len(points)

    assert shares(real) == pytest.approx(np.full(10, 0.1), abs=0.02)
    assert shares(generated) == pytest.approx([1 / 3] * 3 + [0] * 7, abs=0.03)
    fading = shares(drawn("modes_together", "d=1", 0.5)[1])
    assert fading == pytest.approx([1 / 5.5] + [0.5 / 5.5] * 9, abs=0.03)
    assert shares(drawn("modes_together", "d=1", 1.0)[1])[0] == pytest.approx(1.0, abs=0.01)


def test_invented_modes() -> None:
    real, generated = drawn("invention", "", 8)
    for points, count in ((real, 5), (generated, 8)):
        nearest = np.linalg.norm(points[:, None] - INVENTION_CENTRES, axis=2)
        assert np.bincount(nearest.argmin(axis=1), minlength=10)[count:].sum() == 0
        assert nearest.min(axis=1).mean() == pytest.approx(0.25 * np.sqrt(np.pi / 2), rel=0.05)


def test_ball_and_torus_are_disjoint_and_swap_roles() -> None:
    for subcase, ball_first in (("real ball", True), ("real torus", False)):
        sets = drawn("torus", subcase, 251.0)
        assert (len(sets[0]), len(sets[1])) == (1000, 251)
        ball, torus = sets if ball_first else sets[::-1]
        assert np.linalg.norm(ball, axis=1).max() <= 0.8
        assert np.mean(np.linalg.norm(ball, axis=1) ** 3) == pytest.approx(0.8**3 / 2, rel=0.15)  # uniform in volume
        ring = np.hypot(torus[:, 0], torus[:, 1]) - 1
        assert np.hypot(ring, torus[:, 2]).max() <= 0.1


def test_grids_are_those_of_the_benchmark() -> None:
    def grid(check: str, subcase: str = "", which: str = "full") -> list[float]:
        return CHECKS[check].grid(CHECKS[check].subcase(subcase), which).tolist()  # type: ignore[arg-type]

    sizes = "100 127 162 206 263 335 428 545 695 885 1128 1438 1832 2335 2976 3792 4832 6158 7847 10000"
    dimensions = "1 2 4 6 8 12 18 26 37 54 78 112 162 233 335 483 695 1000"
    assert grid("torus", "real ball") == [float(word) for word in sizes.split()]
    assert grid("one_disjoint") == [float(word) for word in dimensions.split()]
    assert (len(grid("mean", "d=8")), grid("mean", "d=8")[0], grid("mean", "d=8")[-1]) == (51, -3, 3)
    assert (grid("std", "d=1")[0], grid("std", "d=1")[25], grid("std", "d=1")[-1]) == (0.001, 1, 1000)
    assert (len(grid("modes_together", "d=1")), grid("invention")) == (50, [float(c) for c in range(1, 11)])
    for check, case in every_case():
        full, thin = (check.grid(case, which) for which in ("full", "thin"))
        assert (full[[0, -1]] == thin[[0, -1]]).all()
        assert len(thin) <= 11
        assert len(thin) <= len(full)
        assert (np.diff(full) > 0).all()


def test_sets_are_standardised_by_the_real_one() -> None:
    real, generated = np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([[4.0, 7.0]])
    pair = standardised(real, generated)
    assert pair.real.tolist() == [[-1, 0], [1, 0]]
    assert pair.generated.tolist() == [[3, 2]]  # a constant coordinate keeps its scale


def test_standardising_cancels_the_scale_of_a_dimension() -> None:
    check = CHECKS["scaling"]
    case = check.subcases[0]
    pairs = [
        standardised(
            check.real(case, c, 50, np.random.default_rng(3)), check.generated(case, c, 50, np.random.default_rng(4))
        )
        for c in (0.001, 1000.0)
    ]
    assert pairs[0].generated == pytest.approx(pairs[1].generated)


def test_a_pair_is_named_by_its_place_alone() -> None:
    check = CHECKS["mean"]
    one, other = check.subcases[:2]
    first = draw_pair(check, one, 0.0, 3, n=50)
    draw_pair(check, other, 1.0, 0, n=50)
    again = draw_pair(check, one, 0.0, 3, n=50)
    assert (first.real == again.real).all()
    assert (first.generated == again.generated).all()
    elsewhere = draw_pair(check, one, 0.24, 3, n=50)
    assert (elsewhere.real == first.real).all()  # real fixed over the grid
    assert not np.isclose(elsewhere.generated, first.generated).any()
    assert not np.isclose(draw_pair(check, one, 0.0, 4, n=50).real, first.real).any()
    assert not np.isclose(draw_pair(check, one, 0.0, 3, n=50, seed=1).real, first.real).any()
    redrawn = CHECKS["scaling"]
    sets = [draw_pair(redrawn, redrawn.subcases[0], c, 0, n=50).real for c in (1.0, 10.0)]
    assert not np.isclose(*sets).any()


def test_both_outlier_scenarios_share_their_draws() -> None:
    check = CHECKS["mean_outlier"]
    in_real, in_generated = (
        draw_pair(check, check.subcase(f"outlier in {role}, d=1"), 0.6, 0, n=30) for role in ("real", "generated")
    )
    spread, mean = in_generated.real.std(), in_generated.real.mean()
    assert (mean, spread) == pytest.approx((0, 1))
    assert np.corrcoef(in_real.real[:30, 0], in_generated.real[:, 0])[0, 1] == pytest.approx(1)


def test_seeds_follow_names_and_not_pythons_hashes() -> None:
    # Python's hash of a text is another in every process: this number would be too.
    assert generator(0, "mean", "d=1").integers(10**12) == 164231397301
    assert generator(0, "mean", "d=8").integers(10**12) != 164231397301
