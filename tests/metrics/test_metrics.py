"""Every metric of `evaluate` equals brute force or scikit-learn to 1e-9; properties that hold for any input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import rankdata, spearmanr
from sklearn import metrics as sk
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from tests import brute
from tests.cases import CASES, DISTANCES, WIDE, Case, names, random

import earmark
from earmark.metrics import catalogue, clustering, retrieval, separation
from earmark.scores import METRICS as FACTS

CLOSE = 1e-9
HUBNESS = ("hub_ratio", "antihub_rate", "hub_skew", "robin_hood")
SEPARATION = ("GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette")
SWEPT = ("P@k", *SEPARATION, *HUBNESS)
RATIOS = ("P@1", "P@5", *SEPARATION)
# Tight classes have ranks that differ in a few places only: true ties, which test_true_ties covers.
RUNS = [(case, d) for case in CASES for d in DISTANCES if (case, d) != ("tight_classes", "spearman")]

few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def measured(case: Case, distance: str, protocol: str = "all", **options):
    """{metric: value or None} of `evaluate`."""
    options = {"metrics": SWEPT, "threads": 2} | options
    groups = case.groups if protocol == "across_groups" else None
    scores = earmark.evaluate(
        case.vectors,
        case.labels,
        distance=distance,
        groups=groups,
        across_groups=groups is not None,
        **options,
    )
    return {row.metric: row.value for row in scores.rows if row.protocol == protocol}


def expected(case: Case, distance: str, protocol: str = "all", **options):
    """The same from brute force; a metric that nothing can be measured for is None."""
    groups = case.groups if protocol == "across_groups" else None
    found = brute.values(case.vectors, case.labels, distance, groups=groups, **options)
    return {name: None if np.isnan(value) else value for name, value in found.items()}


def assert_equal(found, reference, tolerance=CLOSE):
    assert set(found) == set(reference)
    for name, value in reference.items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=tolerance)), name


# --- the reference itself -------------------------------------------------------------------------


def test_the_reference_distances_are_those_of_scipy():
    x = random(n=20, dims=30).vectors
    assert brute.distance_matrix(x, "cosine") == pytest.approx(cdist(x, x, "cosine"), abs=1e-13)
    assert brute.distance_matrix(x, "euclidean") == pytest.approx(cdist(x, x), abs=1e-12)
    assert brute.distance_matrix(x, "spearman") == pytest.approx(1 - spearmanr(x, axis=1).statistic, abs=1e-13)
    tied = np.round(x)
    assert brute.distance_matrix(tied, "spearman") == pytest.approx(1 - spearmanr(tied, axis=1).statistic, abs=1e-13)
    ordinal = np.array([rankdata(row, method="ordinal") for row in tied])
    assert brute.distance_matrix(tied, "spearman", "ordinal") == pytest.approx(1 - np.corrcoef(ordinal), abs=1e-13)


def test_a_set_small_enough_to_work_out_by_hand():
    """Four points on a line: a at 0 and 1, b at 10 and 14."""
    found = measured(Case(np.array([[0.0], [1], [10], [14]]), np.array(list("aabb")), None), "euclidean", k=(1, 2, 3))
    gsr = [(10 - 1) / 11, (9 - 1) / 10, (9 - 4) / 13, (13 - 4) / 17]
    inter = (10 + 14 + 9 + 13) / 4
    assert found["P@1"] == 1.0
    assert found["P@2"] == 0.5
    assert found["P@3"] == pytest.approx(1 / 3)
    assert found["GSR"] == pytest.approx((np.mean(gsr) + 1) / 2, abs=1e-9)
    assert found["CSR_pointwise"] == pytest.approx((np.mean(gsr) + 1) / 2, abs=1e-9)  # pairs: MID is AvgID
    assert found["CSR"] == pytest.approx(((9.5 - 1) / 10.5 + (11 - 4) / 15 + 2) / 4, abs=1e-9)
    assert found["CS"] == pytest.approx((1 / (1 + inter / 1) + 1 / (1 + inter / 4)) / 2, abs=1e-12)
    assert found["CSCF"] == 0.0
    silhouette = [(12 - 1) / 12, (11 - 1) / 11, (9.5 - 4) / 9.5, (13.5 - 4) / 13.5]
    assert found["silhouette"] == pytest.approx(np.mean(silhouette), abs=1e-12)


# --- against brute force --------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["all", "across_groups"])
@pytest.mark.parametrize(("name", "distance"), RUNS)
def test_every_metric_equals_brute_force(name, distance, protocol):
    case = CASES[name]()
    assert_equal(measured(case, distance, protocol), expected(case, distance, protocol))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("n", [4, 5, 6, 7, 31, 63, 64, 65, 127, 128, 129, 200, 256, 257, 300, 513])
def test_sizes_that_are_no_multiple_of_a_tile(n, distance):
    case = random(n, n=n, dims=64 if n > 100 else WIDE, classes=2, groups=max(2, n // 4))
    case = case._replace(labels=np.random.default_rng(n).permutation(names(np.arange(n) % 2)))
    for protocol in ("all", "across_groups"):
        found, reference = measured(case, distance, protocol), expected(case, distance, protocol)
        found = {name: value for name, value in found.items() if name in reference}  # hubness needs six points
        if distance == "spearman":  # rank ties are for test_true_ties
            reference = {name: value for name, value in reference.items() if name in SEPARATION}
            found = {name: found[name] for name in reference}
        if n < 6:
            assert found.pop("P@5", None) is None
            reference.pop("P@5", None)
        assert_equal(found, reference)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("dims", [1, 2, 3, 7, 8, 9, 64, 1000, 5000])
def test_dimensions_from_one_to_five_thousand(dims, distance):
    case = random(dims, n=40, dims=dims)
    found, reference = measured(case, distance), expected(case, distance)
    if distance == "spearman" and dims < WIDE:
        found, reference = ({k: v[k] for k in SEPARATION} for v in (found, reference))
    if distance == "cosine" and dims == 1:  # distances are 0 or 2: ties
        found, reference = ({k: v[k] for k in SEPARATION} for v in (found, reference))
    assert_equal(found, reference)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e150, 1e300])
@pytest.mark.parametrize("distance", DISTANCES)
def test_values_of_any_size(scale, distance):
    case = random(20)
    case = case._replace(vectors=case.vectors * scale)
    assert_equal(measured(case, distance, "across_groups"), expected(case, distance, "across_groups"))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("distance", DISTANCES)
def test_float32_values_of_any_size(scale, distance):
    case = random(21)
    case = case._replace(vectors=(case.vectors * scale).astype(np.float32))
    assert_equal(measured(case, distance), expected(case, distance))


@pytest.mark.parametrize(("offset", "distance"), [(1e6, "euclidean"), (1e9, "euclidean"), (1e5, "cosine")])
def test_a_mean_far_beyond_the_spread(offset, distance):
    case = random(22)
    case = case._replace(vectors=case.vectors + offset)
    assert_equal(measured(case, distance, "across_groups"), expected(case, distance, "across_groups"))


@pytest.mark.parametrize("protocol", ["all", "across_groups"])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("smallest", [1, 2, 4])
def test_small_classes(smallest, distance, protocol):
    """A class under min_class_size leaves rows and columns; a class of one is a candidate but not a query."""
    case = random(23)
    codes = np.repeat([0, 1, 2, 3, 4, 5, 6], [1, 30, 1, 3, 20, 5, 1])
    case = case._replace(labels=names(np.random.default_rng(0).permutation(codes)))
    assert_equal(
        measured(case, distance, protocol, min_class_size=smallest),
        expected(case, distance, protocol, min_class_size=smallest),
    )


@pytest.mark.parametrize("ties", ["average", "ordinal"])
def test_both_ways_with_ties_in_spearman(ties):
    case = random(24, dims=400)
    floor = np.maximum(case.vectors, 0.3)  # more than half of the entries tie, as log-mel values at the floor do
    case = case._replace(vectors=floor)
    assert_equal(measured(case, "spearman", ties=ties), expected(case, "spearman", ties=ties))


@pytest.mark.parametrize("k", [(1,), (3, 2), (1, 5, 10, 60), range(1, 8)])
def test_any_set_of_k(k):
    case = random(25)
    found, reference = measured(case, "cosine", k=k), expected(case, "cosine", ks=tuple(k))
    assert_equal(found, reference)


def test_k_is_the_denominator():
    """A class of two cannot pass 1/5 at k = 5."""
    case = CASES["classes_of_two"]()
    best = case._replace(vectors=np.eye(WIDE)[np.unique(case.labels, return_inverse=True)[1]])
    assert measured(best, "cosine")["P@1"] == 1.0
    assert measured(best, "cosine")["P@5"] == pytest.approx(0.2)


# --- ties -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["all", "across_groups"])
@pytest.mark.parametrize("dims", [1, 2, 3, 6])
def test_true_ties_on_a_grid_go_to_the_earlier_row(dims, protocol):
    rng = np.random.default_rng(dims)
    case = Case(rng.integers(-2, 3, (130, dims)), names(rng.integers(0, 4, 130)), rng.integers(0, 20, 130))
    assert_equal(measured(case, "euclidean", protocol), expected(case, "euclidean", protocol))


@pytest.mark.parametrize("dims", [3, 6, 12, 24])
def test_true_ties_of_spearman_go_to_the_earlier_row(dims):
    """rho takes few values when D is small: random vectors tie all the time, and rounding may not decide."""
    rng = np.random.default_rng(dims)
    case = Case(rng.normal(size=(80, dims)), names(rng.integers(0, 4, 80)), rng.integers(0, 20, 80))
    assert_equal(measured(case, "spearman"), expected(case, "spearman"))


@pytest.mark.parametrize("dims", [2, 3, 5, 8])
def test_true_ties_of_cosine_go_to_the_earlier_row(dims):
    rng = np.random.default_rng(dims)
    case = Case(rng.integers(-2, 3, (80, dims)), names(rng.integers(0, 4, 80)), rng.integers(0, 20, 80))
    assert_equal(measured(case, "cosine"), expected(case, "cosine"))


def test_multiples_of_one_vector_are_one_direction():
    """Under cosine x, 3x and 1.1x coincide: distance 0, so CS is 1/2, CSCF 0 and the silhouette 0."""
    vector = np.random.default_rng(0).normal(size=7)
    factors = np.array([1, 3, 5, 7, 1.1, 1.3, 9, 11])
    found = measured(Case(np.outer(factors, vector), np.array(list("aabbabab")), None), "cosine")
    assert (found["CS"], found["CSCF"], found["silhouette"]) == (0.5, 0.0, 0.0)


def test_everything_in_one_point():
    case = Case(np.ones((12, 3)), names(np.arange(12) % 3), None)
    for distance in ("cosine", "euclidean"):
        found = measured(case, distance)
        assert {name: found[name] for name in SEPARATION} == {
            "GSR": 0.5, "CSR": 0.5, "CSR_pointwise": 0.5, "CS": 0.5, "CSCF": 0.0, "silhouette": 0.0,
        }  # fmt: skip


def test_cscf_is_strict_but_not_decided_by_rounding():
    """inter < intra by one part in 1e10 counts; equality does not."""
    line = np.array([[0.0], [1.0], [0.5], [0.5 + 1e-10]])  # intra(a) = 1, inter(a, b) = 1/2; intra(b) = 1e-10
    assert measured(Case(line, np.array(list("aabb")), None), "euclidean")["CSCF"] == 0.5
    for nudge, share in ((0.0, 0.0), (1e-10, 0.5)):
        # a at the ends of a unit segment; b at the corners of a cross through it, so that inter(a, b) is 1 - nudge
        height = np.sqrt((1 - nudge) ** 2 - 0.25)
        points = np.array([[0, 0.5], [0, -0.5], [height, 0], [-height, 0]])
        found = measured(Case(points, np.array(list("aabb")), None), "euclidean")
        intra_b = 2 * height
        assert intra_b > 1  # so that (b, a) is confused and only (a, b) is in question
        assert found["CSCF"] == 0.5 + share


# --- against scikit-learn -------------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
def test_silhouette_is_scikit_learns(distance):
    case = random(30, n=150)
    matrix = brute.distance_matrix(case.vectors, distance)
    found = measured(case, distance, metrics=("silhouette",))
    assert found["silhouette"] == pytest.approx(
        sk.silhouette_score(matrix, case.labels, metric="precomputed"), abs=CLOSE
    )


def test_precision_is_that_of_scikit_learns_neighbours():
    case = random(31, n=150, dims=12)
    _, rows = NearestNeighbors(n_neighbors=6, algorithm="brute").fit(case.vectors).kneighbors(case.vectors)
    same = case.labels[rows[:, 1:]] == case.labels[:, None]
    assert measured(case, "euclidean")["P@5"] == pytest.approx(same.mean(), abs=CLOSE)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_three_thousand_points(distance):
    """Many tiles, float32 candidates: neighbours and silhouette are still those of scikit-learn in float64."""
    case = random(33, n=3000, dims=16, classes=40)
    found = measured(case, distance, metrics=("P@5", "silhouette"))
    _, rows = NearestNeighbors(n_neighbors=6, algorithm="brute", metric=distance).fit(case.vectors).kneighbors()
    hits = case.labels[rows[:, :5]] == case.labels[:, None]
    assert found["P@5"] == pytest.approx(hits.mean(), abs=CLOSE)
    matrix = cdist(case.vectors, case.vectors, distance)
    np.fill_diagonal(matrix, 0.0)
    expected_silhouette = sk.silhouette_score(matrix, case.labels, metric="precomputed")
    assert found["silhouette"] == pytest.approx(expected_silhouette, abs=CLOSE)


def unit_points(vectors, distance):
    """What k-means clusters: unit vectors (cosine), unit ranks (spearman), the vectors (euclidean)."""
    if distance == "euclidean":
        return vectors
    if distance == "spearman":
        vectors = np.array([rankdata(row) for row in vectors])
        vectors = vectors - vectors.mean(axis=1, keepdims=True)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("distance", DISTANCES)
def test_kmeans_metrics_are_scikit_learns(distance):
    """The mean over a few clusterings, each the best of many starts: here scikit-learn always finds the same one."""
    case = random(32, n=120, dims=60)  # enough dimensions for ranks without ties, which rounding would decide
    vectors = case.vectors + 9.0 * np.eye(60)[np.unique(case.labels, return_inverse=True)[1]]
    clusters = KMeans(4, n_init=100, random_state=1).fit(unit_points(vectors, distance)).labels_
    found = measured(case._replace(vectors=vectors), distance, metrics=catalogue.CLUSTERING)
    table = sk.cluster.contingency_matrix(case.labels, clusters)
    assert found["NMI"] == pytest.approx(sk.normalized_mutual_info_score(case.labels, clusters), abs=CLOSE)
    assert found["ARI"] == pytest.approx(sk.adjusted_rand_score(case.labels, clusters), abs=CLOSE)
    assert found["kmeans_purity"] == pytest.approx(table.max(axis=0).sum() / table.sum(), abs=CLOSE)


@pytest.mark.parametrize("shape", [(300, 12), (40, 100)], ids=["long", "wide"])
@pytest.mark.parametrize("distance", DISTANCES)
def test_kmeans_metrics_keep_still(distance, shape):
    """From one start ARI ranged over a third of its scale with the seed, and moved with the order of the rows."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 8, shape[0])
    vectors = 1.5 * rng.normal(size=(8, shape[1]))[codes] + rng.normal(size=shape)

    def ari(seed: int, order: np.ndarray) -> earmark.Row:
        scores = earmark.evaluate(vectors[order], codes[order], distance=distance, metrics="ARI", seed=seed)
        return scores.row("ARI")

    given = np.arange(shape[0])
    rows = [ari(seed, given) for seed in range(6)]
    assert np.ptp([row.value for row in rows]) < 0.05
    assert all("k-means seeds of 20 starts, sd 0" in row.reason for row in rows)
    assert ari(0, rng.permutation(shape[0])).value == pytest.approx(rows[0].value, abs=1e-12)


def test_kmeans_metrics_of_clean_clusters_are_one():
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 4
    case = Case(100 * rng.normal(size=(4, 10))[codes] + rng.normal(size=(60, 10)), names(codes), None)
    for distance in DISTANCES:
        assert measured(case, distance, metrics=catalogue.CLUSTERING) == {
            name: pytest.approx(1.0) for name in catalogue.CLUSTERING
        }


def test_purity_weighs_clusters_by_size_and_leaves_out_noise():
    clusters = np.array([0, 0, 0, 1, 1, -1, -1])
    codes = np.array([0, 0, 1, 1, 1, 0, 0])
    assert clustering.purity(clusters, codes) == pytest.approx((2 + 2) / 5)
    assert np.isnan(clustering.purity(np.full(3, -1), np.zeros(3, int)))


# --- pure functions -------------------------------------------------------------------------------


def test_precision_at_k_counts_hits_among_the_first_k():
    neighbours = np.array([[0, 1, 0], [1, 1, 0]])
    assert retrieval.precision_at_k(neighbours, np.array([0, 0]), 2).tolist() == [0.5, 0.0]
    assert retrieval.precision_at_k(neighbours, np.array([0, 0]), 3) == pytest.approx([2 / 3, 1 / 3])


def test_ratios_of_distances():
    assert separation.gsr(np.array([3.0]), np.array([1.0])) == pytest.approx([0.75], abs=1e-9)
    assert separation.gsr(np.zeros(1), np.zeros(1)).tolist() == [0.5]
    assert separation.csr_pointwise(np.array([1.0]), np.array([3.0])) == pytest.approx([0.25], abs=1e-9)
    assert separation.silhouette(np.array([1.0, 2, 0]), np.array([2.0, 1, 0])).tolist() == [0.5, -0.5, 0.0]


def test_csr_takes_class_means_first():
    near, far = np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 4.0])
    starts = np.array([0, 2, 3])
    plain = (2 * (2 - 1) / (2 + 1) + (2 - 4) / (2 + 4)) / 3
    assert separation.csr(near, far, starts, np.ones((1, 3))) == pytest.approx([(plain + 1) / 2], abs=1e-9)
    weighted = (1 * (1 - 1) / 2 + 3 * (2 - 4) / (2 + 4)) / 4
    assert separation.csr(near, far, starts, np.array([[1.0, 0, 3]])) == pytest.approx([(weighted + 1) / 2], abs=1e-9)


# --- properties -----------------------------------------------------------------------------------


WIDTHS = st.integers(1, 12)
VERY_WIDE = 1500  # so many ranks that spearman distances do not tie by chance, whatever the seed


@st.composite
def sets(draw, dims=WIDTHS):
    """Random sets: a few classes and groups, sometimes duplicates, any width."""
    seed, n, width = draw(st.integers(0, 2**31)), draw(st.integers(6, 70)), draw(dims)
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, width))
    if draw(st.booleans()):
        vectors[rng.integers(0, n, n // 3)] = vectors[rng.integers(0, n, n // 3)]
    labels = names(np.concatenate([[0, 0, 1, 1], rng.integers(0, draw(st.integers(2, 6)), n - 4)]))
    return Case(vectors, labels, rng.integers(0, draw(st.integers(2, 12)), n))


def pick(values, chosen):
    return {name: values[name] for name in chosen if name in values}


@few
@given(sets(), st.sampled_from(DISTANCES), st.sampled_from(["all", "across_groups"]))
def test_any_set_equals_brute_force(case, distance, protocol):
    chosen = SEPARATION if distance != "euclidean" else (*RATIOS, *HUBNESS)
    found, reference = measured(case, distance, protocol), expected(case, distance, protocol)
    assert_equal(pick(found, [name for name in chosen if name in reference]), pick(reference, chosen))


@few
@given(st.integers(0, 10**6), st.integers(9, 70), st.sampled_from(DISTANCES))
def test_row_order_does_not_matter(seed, n, distance):
    case = random(seed, n=n, dims=VERY_WIDE)  # no ties: where distances tie, the row is what decides
    order = np.random.default_rng(seed).permutation(n)
    here = measured(case, distance, "across_groups")
    there = Case(case.vectors[order], case.labels[order], case.groups[order])
    assert_equal(measured(there, distance, "across_groups"), here, 1e-12)


@pytest.mark.parametrize("chosen", [SWEPT, catalogue.CLUSTERING], ids=["swept", "kmeans"])
@few
@given(sets(dims=st.just(VERY_WIDE)), st.sampled_from(DISTANCES), st.permutations(range(6)))
def test_label_names_do_not_matter(chosen, case, distance, renamed):
    other = np.array([f"{renamed[int(label.split()[1])]} anew" for label in case.labels])
    here = measured(case, distance, metrics=chosen)
    assert_equal(measured(case._replace(labels=other), distance, metrics=chosen), here, 1e-12)


@few
@given(sets(dims=st.integers(2, 12)), st.integers(0, 1000))
def test_cosine_ignores_the_length_of_each_vector(case, seed):
    factors = np.exp(np.random.default_rng(seed).uniform(-5, 5, (len(case.vectors), 1)))
    distinct = case.vectors + np.random.default_rng(seed).normal(size=case.vectors.shape)
    here = measured(case._replace(vectors=distinct), "cosine")
    assert_equal(measured(case._replace(vectors=distinct * factors), "cosine"), here, 1e-9)


@few
@given(sets(dims=st.integers(2, 12)), st.floats(1e-3, 1e3), st.integers(0, 1000))
def test_euclidean_ignores_scale_translation_and_rotation(case, scale, seed):
    rng = np.random.default_rng(seed)
    distinct = case.vectors + rng.normal(size=case.vectors.shape)
    turn, _ = np.linalg.qr(rng.normal(size=(distinct.shape[1],) * 2))
    moved = scale * (distinct @ turn) + 10 * scale * rng.normal(size=distinct.shape[1])
    here = measured(case._replace(vectors=distinct), "euclidean")
    # The constant 1e-9 in GSR and CSR is not scaled: allow for its share of a small distance.
    assert_equal(measured(case._replace(vectors=moved), "euclidean"), here, 1e-6)


@few
@given(sets(), st.integers(0, 1000))
def test_spearman_ignores_monotone_maps_of_each_vector(case, seed):
    powers = np.random.default_rng(seed).choice([1, 3, 5], (len(case.vectors), 1))
    mapped = np.sign(case.vectors) * np.abs(case.vectors) ** powers + np.linspace(-9, 9, len(powers))[:, None]
    same_ranks = np.array([rankdata(row) for row in case.vectors])
    assert np.array_equal(same_ranks, np.array([rankdata(row) for row in mapped]))
    assert measured(case._replace(vectors=mapped), "spearman") == measured(case, "spearman")


@few
@given(sets(), st.sampled_from(DISTANCES), st.sampled_from(["all", "across_groups"]))
def test_values_stay_in_their_ranges(case, distance, protocol):
    found = measured(case, distance, protocol, metrics=(*SWEPT, *catalogue.CLUSTERING), k=(1, 2, 5))
    for name, value in found.items():
        low, high = FACTS["P@1" if name.startswith("P@") else name].range
        assert value is None or low <= value <= high, name


@few
@given(sets(), st.sampled_from(DISTANCES))
def test_hits_among_more_neighbours_are_no_fewer(case, distance):
    kept = brute.kept_rows(case.labels)
    every_k = range(1, len(kept))
    found = measured(case, distance, k=every_k, metrics=("P@k",))
    hits = [k * found[f"P@{k}"] for k in every_k]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(hits))
    partners = [(case.labels == label).sum() - 1 for label in case.labels[kept]]
    assert hits[-1] == pytest.approx(np.mean(partners), abs=1e-9)  # the last k meets every partner


@few
@given(st.integers(0, 1000), st.sampled_from(DISTANCES))
def test_a_copy_of_every_point_is_its_nearest_neighbour(seed, distance):
    case = random(seed, n=30, dims=VERY_WIDE)
    twice = Case(np.vstack([case.vectors] * 2), np.tile(case.labels, 2), np.tile(case.groups, 2))
    assert measured(twice, distance, metrics=("P@1",))["P@1"] == 1.0
    # With each point and its copy in one group, copies are no evidence any more: only who else is near.
    barred = twice._replace(groups=np.tile(np.arange(30), 2))
    alone = measured(case, distance, metrics=("P@1",))
    assert measured(barred, distance, "across_groups", metrics=("P@1",)) == pytest.approx(alone)


# --- eps ------------------------------------------------------------------------------------------


def parts(vectors, labels, distance="cosine"):
    found = brute.point_parts(brute.distance_matrix(vectors, distance), np.asarray(labels))
    return np.asarray(found[0], float), np.asarray(found[1], float)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e6])
def test_eps_is_told_where_a_common_offset_makes_it_felt(offset):
    """Under cosine an offset makes all distances small: GSR goes to 1/2 and nothing said so."""
    rng = np.random.default_rng(15)
    labels = np.repeat(["a", "b", "c"], 10)
    vectors = rng.normal(size=(30, 6)) + 3 * rng.normal(size=(3, 6)).repeat(10, axis=0)
    vectors[:, 0] += offset
    near, wide = parts(vectors, labels)
    exact = (near / (near + wide)).mean()
    moved = separation.gsr(near, wide).mean() - exact
    assert separation.epsilon_shift(near, wide) == pytest.approx(moved, abs=1e-12)
    assert separation.epsilon_share(near, wide) == pytest.approx(1e-9 / (near + wide).mean())
    felt = abs(moved) > 1e-4 or separation.epsilon_share(near, wide) > 1e-3
    assert felt == (offset > 1e4)
    assert bool(separation.epsilon_note(near, wide)) == felt


def test_eps_of_points_that_coincide_or_cannot_be_measured():
    zero, gap = np.zeros(4), np.array([np.nan, 1.0, np.nan, 2.0])
    assert separation.epsilon_share(zero, zero) == np.inf
    assert separation.epsilon_shift(zero, zero) == 0.0
    assert separation.epsilon_note(zero, zero) == "all distances are 0: the value is that of eps alone"
    assert separation.epsilon_share(gap, gap) == pytest.approx(1e-9 / 3)
    assert separation.epsilon_note(gap, gap) == ""
    assert separation.epsilon_note(np.full(3, np.nan), np.ones(3)) == ""
    # Some points coincide, the rest are far apart: eps decides nothing.
    assert separation.epsilon_note(np.array([0.0, 1.0]), np.array([0.0, 2.0])) == ""
