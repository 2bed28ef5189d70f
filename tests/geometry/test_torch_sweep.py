"""A sweep on a torch device finds what the CPU finds: places and distances to the last bit, sums to rounding."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cases import CASES, DISTANCES, Case, names, random

from earmark.errors import UsageError
from earmark.geometry import devices, spaces
from earmark.geometry.corrections import Neighbourhoods, factors_of, parse_all
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, search_without, sweep

torch = pytest.importorskip("torch", reason="torch is an extra")
torch_card = pytest.importorskip("earmark.geometry.torch_card")
torch_sweep = pytest.importorskip("earmark.geometry.torch_sweep")

DEVICES = ["torch:cpu", *(["cuda"] if torch.cuda.is_available() else [])]
SAME = ("nearest_other", "farthest_same", "own_count", "second_other")
CLOSE = ("own_mean", "other_mean", "class_sums")
CORRECTIONS = ("ls", "nicdm", "mp", "csls", "dsl")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of one tile, so that there is more than one."""
    monkeypatch.setattr(torch_sweep, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(torch_card, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(torch_sweep, "SEARCHED", 100)


def both(case, distance, device, *, neighbours=7, correct="none", alone=False, **options):
    """What the CPU and the device find of a case, with the class means each handed out."""
    layout = lay_out(*(np.unique(part, return_inverse=True)[1] for part in (case.labels, case.groups)))
    space = spaces.prepare(case.vectors, distance, order=layout.order)
    (correction,) = parse_all(correct)
    factors = None if correct == "none" else factors_of(correction, Neighbourhoods(space, layout, (correction,)))
    plain = not (factors is not None and factors.signed)
    weights = np.random.default_rng(0).integers(0, 3, (2, layout.n)).astype(np.uint16)
    found = []
    for where in ("cpu", device):
        means = {}
        wanted = Wanted(
            neighbours, farthest=plain, class_sums=plain, across_groups=not alone, units=layout.groups, keep_sums=plain,
            weights=None if alone else weights,
            visit_class=lambda protocol, code, mean, kept=means: kept.update({(protocol, code): mean}),
        )  # fmt: skip
        swept = sweep(space, layout, wanted, factors=factors, device=where, **options)
        found.append((swept, means))
    return found


def assert_same(found, rel=1e-12):
    (here, here_means), (there, there_means) = found
    assert here.keys() == there.keys()
    assert here_means.keys() == there_means.keys()
    for protocol, one in here.items():
        other = there[protocol]
        assert np.array_equal(one.neighbours.places, other.neighbours.places)
        assert np.array_equal(one.neighbours.distances, other.neighbours.distances, equal_nan=True)
        for name in SAME:
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name
        # Of several at the same distance any may be called the nearest: what is left without it is the same.
        alone = one.second_other != one.nearest_other
        assert np.array_equal(one.nearest_unit[alone], other.nearest_unit[alone])
        for name in CLOSE:
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=rel, abs=1e-15, nan_ok=True), name
    for key, means in here_means.items():
        assert there_means[key] == pytest.approx(means, rel=rel, abs=1e-15, nan_ok=True), key


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CASES)
def test_every_case_and_distance(name, distance, device):
    assert_same(both(CASES[name](), distance, device), rel=1e-9 if name in ("offset", "tight_classes") else 1e-11)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", ["float32", "duplicates", "collapsed_class", "zero_vectors", "outlier", "two_places"])
def test_sums_that_never_leave_the_device(name, distance, device):
    """One protocol and no resamples: class means come from sums over pairs of classes."""
    assert_same(both(CASES[name](), distance, device, alone=True), rel=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("correct", CORRECTIONS)
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", ["duplicates", "zero_vectors"])
def test_every_correction(name, distance, correct, device):
    assert_same(both(CASES[name](), distance, device, correct=correct), rel=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [2, 3, 5, 128, 129, 300])
def test_any_number_of_rows(n, device):
    case = random(n, n=max(n, 8), dims=12, classes=3)
    assert_same(both(Case(case.vectors[:n], case.labels[:n], case.groups[:n]), "euclidean", device))


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=8, deadline=None, suppress_health_check=[*HealthCheck])
@given(st.integers(0, 10**6), st.integers(2, 150), st.integers(1, 9), st.integers(1, 90), st.integers(1, 30))
def test_any_grid_of_ties(device, seed, n, dims, classes, neighbours):
    """Small integer coordinates: most distances tie, many are 0, and (distance, row) decides."""
    rng = np.random.default_rng(seed)
    case = Case(rng.integers(0, 3, (n, dims)).astype(float), names(rng.integers(0, classes, n)), rng.integers(0, 9, n))
    assert_same(both(case, "euclidean", device, neighbours=neighbours), rel=1e-11)


@pytest.mark.parametrize("device", DEVICES)
def test_some_rows(device):
    case = random(5, n=300, dims=20)
    assert_same(both(case, "cosine", device, rows=np.array([3, 4, 170, 299])))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("across", [False, True])
def test_without_a_unit(across, device):
    case = random(6, n=200, dims=20)
    layout = lay_out(*(np.unique(part, return_inverse=True)[1] for part in (case.labels, case.groups)))
    space = spaces.prepare(case.vectors, "cosine", order=layout.order)
    rows = np.arange(0, 200, 3)
    left_out = np.random.default_rng(0).integers(0, 9, len(rows))
    here, there = (
        search_without(space, layout, rows, left_out, layout.groups, 4, across_groups=across, device=where)
        for where in ("cpu", device)
    )
    assert np.array_equal(here.neighbours.places, there.neighbours.places)
    assert np.array_equal(here.nearest_other, there.nearest_other, equal_nan=True)


def test_a_block_that_does_not_fit_is_halved(monkeypatch):
    case, heights = random(7, n=600, dims=9), []
    monkeypatch.setattr(torch_sweep, "BLOCK_BYTES", 1 << 30)
    monkeypatch.setattr(torch_card, "BLOCK_BYTES", 1 << 30)
    products, lists = torch_sweep.TorchRun.keys, torch_card._from_products

    def short_of_memory(function, height, which):
        def limited(*arguments):
            heights.append(len(arguments[which]))
            if len(arguments[which]) > height:
                raise torch.OutOfMemoryError
            return function(*arguments)

        return limited

    monkeypatch.setattr(torch_sweep.TorchRun, "keys", short_of_memory(products, 128, 1))
    monkeypatch.setattr(torch_card, "_from_products", short_of_memory(lists, 50, 3))
    assert_same(both(case, "euclidean", "torch:cpu"))
    assert_same(both(case, "euclidean", "torch:cpu", correct="ls"))
    assert max(heights) == 600
    monkeypatch.setattr(torch_card, "_from_products", short_of_memory(lists, 0, 3))
    with pytest.raises(UsageError, match="does not hold 1 row "):
        both(case, "euclidean", "torch:cpu")
    monkeypatch.setattr(torch_sweep.TorchRun, "keys", short_of_memory(products, 0, 1))
    with pytest.raises(UsageError, match="does not hold 128 rows"):
        both(case, "euclidean", "torch:cpu", correct="ls")


def test_a_triton_that_cannot_build_is_done_without(monkeypatch):
    """No C compiler, a card with too little memory for a program: torch's own operations find the same."""
    card = SimpleNamespace(type="cuda")

    def refuses(*_, **__):
        raise type("OutOfResources", (Exception,), {"__module__": "triton.runtime.errors"})

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(torch, "arange", lambda *_, **__: torch.ones(2))
    for build, works in ((refuses, False), (lambda *_: None, True)):
        fused = SimpleNamespace(segment_sums=build)
        monkeypatch.setattr(torch_card, "require", lambda *_, fused=fused: fused)
        assert torch_card._tried(card) is (fused if works else None)
    monkeypatch.undo()
    here = torch.device("cpu")
    monkeypatch.setitem(torch_card._fused_on, here, SimpleNamespace(parts_of=refuses))
    points, layout = random(8, n=50, dims=9), lay_out(np.arange(50) % 3)
    space = spaces.prepare(points.vectors, "cosine", order=layout.order)
    found = sweep(space, layout, Wanted(3, farthest=True), device="torch:cpu")["all"]
    expected = sweep(space, layout, Wanted(3, farthest=True))["all"]
    assert np.array_equal(found.neighbours.places, expected.neighbours.places)
    assert torch_card._fused_on[here] is None


def test_what_auto_means(monkeypatch):
    monkeypatch.setenv(devices.VARIABLE, "cpu")
    assert devices.resolve("auto", 1e30) == "cpu"
    with devices.preferring("torch:cpu"):
        assert devices.resolve("auto", 0) == "torch:cpu"
        assert devices.resolve("cpu", 0) == "cpu"
        with devices.preferring(None):
            assert devices.resolve("auto", 0) == "torch:cpu"
    assert devices.resolve("auto", 1e30) == "cpu"
    monkeypatch.setenv(devices.VARIABLE, "mps")
    with pytest.raises(UsageError, match="mps"):
        devices.resolve("auto", 0)


def test_devices_by_name():
    assert devices.resolve("cpu", 1e30) == "cpu"
    assert devices.resolve("torch:cpu", 0) == "torch:cpu"
    with pytest.raises(UsageError, match="mps does not have"):
        devices.resolve("mps", 0)
    for wrong in ("tpu", "cuda:x", "", "torch:mps"):
        with pytest.raises(UsageError, match="Unknown device"):
            devices.resolve(wrong, 0)
    if not torch.cuda.is_available():
        assert devices.resolve("auto", 1e30) == "cpu"
        with pytest.raises(UsageError, match="sees no CUDA"):
            devices.resolve("cuda", 0)
