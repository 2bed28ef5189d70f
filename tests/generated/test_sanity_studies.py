"""The studies: their numbers against the formulas and the printed values, and their figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import integrate, stats

from earmark.errors import UsageError
from earmark.generated.sanity import studies, study_tables
from earmark.generated.sanity.gradient import gradient, shares


@pytest.mark.parametrize(
    ("n", "wanted"),
    [
        (1000, {5: 30.3, 10: 25.0, 20: 20.0, 100: 9.2}),
        (10_000, {5: 47.5, 10: 41.9, 20: 36.6, 100: 24.7}),
        (50_000, {5: 59.8, 10: 54.1, 20: 48.7, 100: 36.5}),
    ],
)
def test_crossover_dimensions(n: int, wanted: dict[int, float]) -> None:
    found = {k: studies.crossover_dimension(n, k) for k in wanted}
    assert found == pytest.approx(wanted, abs=0.051)


def test_the_crossover_solves_the_proposition() -> None:
    """The integral of Proposition 5.3 by another quadrature, with SciPy's distributions."""
    n, k = 300, 8
    d = studies.crossover_dimension(n, k)

    def inner(s: float) -> float:
        return float(stats.chi2.pdf(s, d) * stats.binom.sf(k - 1, n - 1, stats.ncx2.cdf(d, d, s)))

    assert integrate.quad(inner, 0, 20 * d, limit=200)[0] == pytest.approx(0.5, abs=1e-5)


def test_the_crossover_is_where_neighbours_are_as_far_as_the_centre() -> None:
    """Simulated: half the points have their k-th neighbour within sqrt(d)."""
    n, k = 200, 5
    below, above = int(studies.crossover_dimension(n, k)), int(studies.crossover_dimension(n, k)) + 1
    shares = []
    for d in (below, above):
        rng = np.random.default_rng(d)
        inside = []
        for _ in range(20):
            points = rng.standard_normal((n, d))
            squares = ((points[:, None] - points) ** 2).sum(axis=2)
            inside.append((np.sort(squares, axis=1)[:, k] <= d).mean())
        shares.append(np.mean(inside))
    assert shares[1] - 0.03 < 0.5 < shares[0] + 0.03


def test_the_crossover_needs_neighbours() -> None:
    with pytest.raises(UsageError, match="needs 1 <= k < n - 1"):
        studies.crossover_dimension(10, 9)


def test_disjoint_spheres_do_not_touch() -> None:
    real, generated = studies.disjoint_spheres(8, 400, np.random.default_rng(0))
    centre = np.zeros(8)
    centre[0] = studies.CENTRES_APART
    assert np.linalg.norm(real[:200], axis=1) == pytest.approx(np.ones(200))
    assert np.linalg.norm(real[200:] - centre, axis=1) == pytest.approx(np.ones(200))
    assert np.linalg.norm(generated[:200], axis=1) == pytest.approx(np.full(200, 0.5))
    assert np.linalg.norm(generated[200:] - centre, axis=1) == pytest.approx(np.full(200, 1.5))


def test_every_metric_is_fooled_by_spheres_and_none_with_gicdm() -> None:
    found = studies.hypersphere((32, 128), n=400)
    assert found.plain.min() >= 0.5
    judged = ~np.isnan(found.corrected).any(axis=1)
    assert judged.sum() == 10
    assert found.corrected[judged].max() == 0.0


def test_each_component_of_gicdm_is_needed() -> None:
    found = studies.components((8, 64), n=400)
    uncorrected, factors, filtered, both = found.precision
    assert uncorrected[1] >= 0.5
    assert (factors == 1.0).all()
    assert filtered[0] > 0.3
    assert filtered[1] == 0.0
    assert (both == 0.0).all()


def test_hubness_grows_with_the_dimension_of_a_gaussian_and_not_of_a_sphere() -> None:
    found = studies.dimension((1, 20, 200), n=800)
    gaussian, sphere = found.hub_ratio
    assert (np.diff(gaussian) > 1).all()
    assert gaussian[0] == pytest.approx(1.8, abs=0.15)
    assert np.isnan(sphere[0])
    assert sphere[2] < 3
    assert found.antihub_rate[0, 2] > 0.3
    assert found.antihub_rate[1, 2] < 0.05


def test_icdm_has_converged_after_ten_iterations() -> None:
    found = studies.convergence(n=400, d=256, scales=(10, 60), iterations=12)
    assert found.cases == ("Gaussian, K = 10", "Gaussian, K = 60", "mixture, K = 10", "mixture, K = 60")
    largest = np.maximum(np.abs(found.low), np.abs(found.high))
    assert (largest[:, 9] < 1e-3).all()
    assert (largest[:, 0] > largest[:, 4]).all()
    assert (largest[:, 4] > largest[:, 9]).all()


def test_icdm_is_the_best_correction_of_a_mixture_as_published() -> None:
    found = studies.corrections(n=500, d=200, k=(5, 10, 20))
    assert found.corrections[found.hub_ratio.argmin()] == "icdm"
    assert found.corrections[found.published_hub_ratio.argmin()] == "icdm"
    assert found.published_hub_ratio[0] == 8.8
    assert found.published_antihub_rate[0] == 0.20
    assert found.k[0] == 0
    assert found.k[-1] in (5, 10, 20)


def test_hubs_follow_the_gradient_of_density() -> None:
    found = gradient(n=800, many=60)
    near = np.corrcoef(found.distance[1], found.occurrences[1])[0, 1]
    assert near < -0.5  # in many dimensions the points nearest to the centre are in most lists
    assert found.occurrences[1].max() > 2 * found.occurrences[2].max()  # and a sphere has none that is nearer
    assert (found.occurrences.sum(axis=1) == 800 * found.k).all()
    assert (found.corrected.sum(axis=2) == 800 * found.plane_k).all()
    spread = found.corrected.std(axis=2)
    assert (spread[:, 1:] < 0.8 * spread[:, :1]).all()  # NICDM and ICDM beside no correction


def test_lists_of_the_gradient_by_brute_force() -> None:
    found = gradient(n=60, k=4)
    points = found.points[1]
    order = np.argsort(np.linalg.norm(points[:, None] - points[None], axis=2) + 1e9 * np.eye(60), axis=1)
    assert (found.corrected[1, 0] == np.bincount(order[:, : found.plane_k].ravel(), minlength=60)).all()
    shown = shares(np.array([0, 0, 1, 2, 4, 9, 40]), 4)
    assert shown[:-1] == pytest.approx(100 / 7 * np.array([2, 2, 1, 0, 1, 1]))
    assert shown[-1] == 10


def test_a_study_needs_enough_points() -> None:
    with pytest.raises(UsageError, match="at least 101, not 100"):
        studies.hypersphere((2,), n=100)


@pytest.fixture(scope="module")
def small() -> dict[str, study_tables.Study]:
    """A result of each study, as cheap as can be."""
    one, two = np.linspace(0, 1, 3), np.linspace(1, 0, 3)
    names = tuple(studies.PRINTED_CORRECTIONS)
    eight = np.arange(8.0)
    return {
        "hypersphere": studies.Hypersphere(
            np.array([2, 4, 8]), ("precision", "recall_cover"), np.stack([one, two]), np.stack([two, two * np.nan])
        ),
        "components": studies.Components(np.array([2, 4, 8]), studies.STAGES, np.stack([one, two, one, two])),
        "dimension": studies.Dimension(
            np.array([1, 10, 100]), ("Gaussian", "sphere"), np.stack([one, two]) + 1, np.stack([one, two])
        ),
        "convergence": studies.Convergence(("a", "b"), -np.stack([one, two]), np.stack([one, two])),
        "crossover": studies.crossover((100, 1000), (5, 99)),
        "corrections": studies.Corrections(names, eight, eight / 8, eight, eight / 8, np.arange(8)),
        "gradient": gradient(n=40, many=8),
    }  # fmt: skip


def test_tables_of_studies_say_where_there_is_no_value(small: dict[str, study_tables.Study]) -> None:
    text = study_tables.to_text(small["hypersphere"])
    assert text.splitlines()[0] == "without GICDM"
    assert text.splitlines()[-1].split() == ["recall_cover", "–", "–", "–"]
    for found in small.values():
        rows = json.loads(study_tables.to_json(found))
        lines = study_tables.to_csv(found).splitlines()
        assert len(lines) == 1 + len(rows) == 1 + sum(panel.values.size for panel in study_tables.panels(found))
    assert json.loads(study_tables.to_json(small["hypersphere"]))[-1]["value"] is None
    assert study_tables.panels(small["crossover"])[0].values[0, 1] == pytest.approx(30.3, abs=0.05)
    assert np.isnan(study_tables.panels(small["crossover"])[0].values[1, 0])


def test_every_study_has_a_figure(small: dict[str, study_tables.Study]) -> None:
    pytest.importorskip("matplotlib")
    from earmark.report.figures import sanity as figures
    from earmark.report.figures.style import as_svg

    for name, found in small.items():
        drawn = as_svg(getattr(figures, name)(found), name, name)
        assert "<svg" in drawn
    assert "precision" in as_svg(figures.hypersphere(small["hypersphere"]), "x", "x")
