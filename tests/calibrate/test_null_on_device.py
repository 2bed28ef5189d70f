"""The null on a torch device is the CPU's: P@k to the bit, the others to rounding. CPU torch runs the same code."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases import CASES, DISTANCES, Case, names, random

from earmark.calibrate import torch_null, torch_null_rows
from earmark.calibrate._arrangements import scheme_of
from earmark.calibrate.permutation import CALIBRATED, null_distributions
from earmark.errors import UsageError
from earmark.geometry import spaces
from earmark.geometry.factors import Factors
from earmark.geometry.given import prepare_given
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep

KS = (1, 5)
DEVICE = "torch:cpu"


def both(case, distance, metrics=CALIBRATED, *, permutations=7, depth=16, kind=None, **options):
    """The nulls of the CPU and of the device, and the scheme of the shuffles."""
    codes = np.unique(case.labels, return_inverse=True)[1]
    groups = None if case.groups is None else np.unique(np.asarray(case.groups).astype(str), return_inverse=True)[1]
    layout = lay_out(codes, groups)
    space = spaces.prepare(np.asarray(case.vectors, float), distance, order=layout.order)
    factors = None if kind is None else factors_of(kind, layout.n)
    swept = sweep(space, layout, Wanted(depth, across_groups=groups is not None), factors=factors)
    given = space, layout, swept, frozenset(metrics), tuple(k for k in KS if k < layout.n), permutations
    found = [null_distributions(*given, seed=3, factors=factors, device=d, **options) for d in ("cpu", DEVICE)]
    return *found, scheme_of(layout)


def factors_of(kind, n):
    """Numbers that a correction could have found."""
    generator = np.random.default_rng(1)
    return Factors(kind, generator.uniform(0.5, 2.0, n), generator.uniform(0.1, 0.4, n if kind == "normal" else 0))


def assert_equal(found, reference):
    assert set(found) == set(reference)
    for protocol, metrics in reference.items():
        assert set(found[protocol]) == set(metrics)
        for name, values in metrics.items():
            if name.startswith("P@"):
                assert np.array_equal(found[protocol][name], values, equal_nan=True), (protocol, name)
            else:
                assert np.allclose(found[protocol][name], values, rtol=1e-11, atol=1e-13, equal_nan=True), (
                    protocol, name, np.nanmax(np.abs(found[protocol][name] - values))
                )  # fmt: skip


# Every case with and without its groups, each under one distance: the ways differ by distance, not the cases.
PAIRS = [(name, DISTANCES[i % 3], i % 2 == 0) for i, name in enumerate(CASES)]
PAIRS += [(name, DISTANCES[(i + 1) % 3], i % 2 == 1) for i, name in enumerate(CASES)]


@pytest.mark.parametrize(("name", "distance", "grouped"), PAIRS)
def test_the_device_gives_the_null_of_the_cpu(name, distance, grouped):
    case = CASES[name]()
    cpu, device, _ = both(case if grouped else case._replace(groups=None), distance)
    assert_equal(device, cpu)


def by_scheme(name, n=72):
    """A case whose labels are shuffled in a given way."""
    generator = np.random.default_rng(4)
    groups = np.repeat(np.arange(n // 4), 4)
    if name == "varied":  # groups of several sizes: class sizes vary between shuffles
        groups = np.repeat(np.arange(12), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 6])
    codes = groups % 3
    if name == "inside_groups":
        codes = generator.integers(0, 3, n)
    elif name == "blocks":
        codes = np.where(groups < 9, codes, generator.integers(0, 3, n))
    return Case(generator.normal(size=(n, 5)), names(codes), groups)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("name", ["whole_groups", "varied", "inside_groups", "blocks"])
def test_labels_are_shuffled_as_groups_allow(name, distance):
    cpu, device, scheme = both(by_scheme(name), distance)
    assert scheme.name == ("whole_groups" if name == "varied" else name)
    assert_equal(device, cpu)


def test_few_arrangements_are_all_gone_through():
    case = by_scheme("whole_groups", n=24)
    cpu, device, scheme = both(case, "spearman", permutations=1000)
    assert len(cpu["all"]["GSR"]) == scheme.arrangements - 1
    assert_equal(device, cpu)


@pytest.mark.parametrize("kind", ["scale", "local", "normal"])
@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_corrected_distances(distance, kind):
    cpu, device, _ = both(random(51, n=60, dims=4), distance, kind=kind)
    assert_equal(device, cpu)


def test_more_dimensions_than_twice_the_points_are_rotated_and_corrected():
    case = random(52, n=40, dims=120)
    case.vectors[1::2] = case.vectors[::2] + 1e-5 * case.vectors[1::2]
    cpu, device, _ = both(case, "euclidean", kind="local")
    assert_equal(device, cpu)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("metrics", [{"GSR"}, {"CS"}, {"silhouette"}, {"CSR"}, set()], ids="+".join)
def test_any_choice_of_metrics(metrics, distance):
    cpu, device, _ = both(random(53, n=60)._replace(groups=None), distance, metrics)
    assert_equal(device, cpu)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_lists_that_one_class_fills_are_searched_again(distance):
    """58 of 60 clips share a class: most lists of three hold nothing else."""
    case = random(54, n=60, dims=3)
    case = case._replace(labels=names(np.r_[np.zeros(56, int), 1, 1, 2, 2]), groups=np.arange(60) % 7)
    cpu, device, _ = both(case, distance, {"GSR"}, depth=5)
    assert_equal(device, cpu)


def test_batches_and_blocks_do_not_matter(monkeypatch):
    case = random(55, n=40)
    reference, whole, _ = both(case, "euclidean", permutations=9)
    monkeypatch.setattr(torch_null, "LABELS", 150)
    monkeypatch.setattr(torch_null_rows, "GATHERED", 1 << 15)
    monkeypatch.setattr(torch_null, "ROW_BYTES", 1)
    monkeypatch.setattr(torch_null, "CLOSED_ROWS", 16)
    _, pieces, _ = both(case, "euclidean", permutations=9)
    assert_equal(whole, reference)
    assert_equal(pieces, reference)
    _, pieces, _ = both(case._replace(groups=None), "cosine", {"GSR", "CS", "silhouette"}, permutations=9, memory=1)
    reference, _, _ = both(case._replace(groups=None), "cosine", {"GSR", "CS", "silhouette"}, permutations=9)
    assert_equal(pieces, reference)


def test_distances_that_were_given():
    case = by_scheme("varied")
    distances = np.linalg.norm(case.vectors[:, None] - case.vectors[None], axis=2)
    layout = lay_out(np.unique(case.labels, return_inverse=True)[1], np.unique(case.groups, return_inverse=True)[1])
    space = prepare_given(lambda order: (distances[np.ix_(order, order)], distances[order].max(1), lambda: None),
                          layout.order, "given")  # fmt: skip
    swept = sweep(space, layout, Wanted(16, across_groups=True))
    found = [null_distributions(space, layout, swept, CALIBRATED, KS, 7, device=device) for device in ("cpu", DEVICE)]
    assert_equal(found[1], found[0])


def test_kernels_that_cannot_be_built_are_done_without(monkeypatch):
    class Broken:
        WIDEST = 1024

        def __getattr__(self, name):
            raise type("CompilationError", (Exception,), {"__module__": "triton.compiler.errors"})(name)

    monkeypatch.setattr(torch_null, "fused_kernels", lambda device: Broken())
    cpu, device, _ = both(random(57, n=40), "cosine", {"GSR"})
    assert_equal(device, cpu)


@pytest.mark.parametrize("device", ["gpu", "cuda:first", "torch:tpu"])
def test_an_unknown_device_is_refused(device):
    case = random(56, n=20)
    layout = lay_out(np.unique(case.labels, return_inverse=True)[1])
    space = spaces.prepare(case.vectors, "cosine", order=layout.order)
    swept = sweep(space, layout, Wanted(5))
    with pytest.raises(UsageError, match="Unknown device"):
        null_distributions(space, layout, swept, frozenset({"GSR"}), (1,), 3, device=device)
