"""The torch backend gives what the CPU gives: searches to the last bit, closeness to rounding. Run on torch's CPU."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from tests.cases import CASES, DISTANCES, random

from earmark.errors import UsageError
from earmark.generated import GICDM
from earmark.geometry import devices
from earmark.geometry import icdm as icdm_module
from earmark.geometry.icdm import icdm
from earmark.geometry.neighbours import ball_counts, log_closeness, nearest
from earmark.geometry.spaces import prepare, prepare_pair

torch = pytest.importorskip("torch", reason="torch is an extra")
torch_backend = pytest.importorskip("earmark.geometry.torch_backend")
torch_lists = pytest.importorskip("earmark.geometry.torch_lists")

HERE = "torch:cpu"


def assert_same(one, other):
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of few rows, and few pairs at once, so that there is more than one."""
    monkeypatch.setattr(torch_backend, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(torch_backend, "PAIR_BYTES", 1 << 16)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", ["float32", "duplicates", "zero_vectors", "outlier"])
def test_the_same_to_the_last_bit(name, distance):
    vectors = CASES[name]().vectors
    base, queries = prepare_pair(vectors[:40], vectors[40:], distance)
    rng = np.random.default_rng(0)
    weights, others = rng.uniform(0.5, 2.0, 40), rng.uniform(0.5, 2.0, len(vectors) - 40)
    others[2] = np.inf
    assert_same(
        nearest(base, 6, queries=queries, weights=weights),
        nearest(base, 6, queries=queries, weights=weights, device=HERE),
    )
    plain = nearest(base, 6)
    assert_same(plain, nearest(base, 6, device=HERE))
    radii = plain.distances[:, -1]
    for strict in (False, True):
        options = {"centre_weights": weights, "point_weights": others, "strict": strict}
        assert_same(
            ball_counts(base, radii, queries, **options), ball_counts(base, radii, queries, device=HERE, **options)
        )
        options = {"strict": strict, "exclude_same_row": True}
        assert_same(ball_counts(base, radii, base, **options), ball_counts(base, radii, base, device=HERE, **options))
    radius = float(radii.mean()) or 1.0
    options = {"centre_weights": weights, "point_weights": others}
    here = log_closeness(base, radius, queries, **options)
    assert log_closeness(base, radius, queries, device=HERE, **options) == pytest.approx(here, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("dims", [3, 8, 70, 300])
def test_many_columns_and_any_width(dims, monkeypatch):
    """More columns than are looked at one by one; dimensions that leave a rest of eight and of a strip."""
    monkeypatch.setattr(torch_backend, "BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr(torch_backend, "PAIR_BYTES", 1 << 22)
    vectors = random(dims, n=1100, dims=dims).vectors.astype(np.float32)
    base, queries = prepare_pair(vectors[:1000], vectors[1000:], "euclidean")
    assert_same(nearest(base, 4, queries=queries), nearest(base, 4, queries=queries, device=HERE))
    assert_same(nearest(base, 4), nearest(base, 4, device=HERE, threads=2))


def test_icdm_is_the_same_to_the_last_bit(monkeypatch):
    monkeypatch.setattr(torch_backend, "BLOCK_BYTES", 1 << 19)
    monkeypatch.setattr(torch_backend, "PAIR_BYTES", 1 << 20)
    rng = np.random.default_rng(0)
    space = prepare(rng.normal(size=(500, 20)) * np.exp(0.5 * rng.normal(size=(500, 1))), "euclidean")
    here, there = icdm(space, 7), icdm(space, 7, device=HERE)
    assert_same((here.factors, here.mean, *here.neighbours), (there.factors, there.mean, *there.neighbours))


@pytest.mark.parametrize("name", ["random", "float32", "outlier", "zero_vectors", "duplicates", "two_places"])
@pytest.mark.parametrize("distance", DISTANCES)
def test_icdm_of_odd_points_is_the_same(name, distance, monkeypatch):
    monkeypatch.setattr(torch_backend, "BLOCK_BYTES", 1 << 13)
    monkeypatch.setattr(torch_backend, "PAIR_BYTES", 1 << 20)
    space = prepare(CASES[name]().vectors, distance)
    here, there = icdm(space, 5, 4), icdm(space, 5, 4, device=HERE)
    assert_same((here.factors, here.mean, *here.neighbours), (there.factors, there.mean, *there.neighbours))


@pytest.mark.parametrize(("n", "dims", "k"), [(3, 1, 1), (3, 1, 2), (12, 1, 5), (40, 2, 39)])
def test_icdm_of_few_points_is_the_same(n, dims, k):
    space = prepare(np.random.default_rng(n).normal(size=(n, dims)), "euclidean")
    here, there = icdm(space, k, 3), icdm(space, k, 3, device=HERE)
    assert_same((here.factors, here.mean, *here.neighbours), (there.factors, there.mean, *there.neighbours))


def test_no_schedule_of_icdm_changes_a_bit_on_a_device(monkeypatch):
    """Lists too short, without room, without a guess: rows visit columns, are searched alone or listed anew."""
    monkeypatch.setattr(torch_backend, "BLOCK_BYTES", 1 << 19)
    monkeypatch.setattr(torch_backend, "PAIR_BYTES", 1 << 20)
    monkeypatch.setattr(torch_lists, "SETTLED", 5000)
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(300, 12)) * np.exp(0.5 * rng.normal(size=(300, 1)))
    vectors[50:80] = vectors[50]  # more copies than a short list holds
    visited = []
    add = torch_lists.TorchLists.add
    monkeypatch.setattr(torch_lists.TorchLists, "add", lambda *args: visited.append(add(*args)) or visited[-1])
    space = prepare(vectors, "euclidean")
    here = icdm(space, 8, 5)
    for settings in (
        {"LONGER": 1, "EXTRA": 3, "ROOM": 1},
        {"LONGER": 1, "EXTRA": 20, "REHEARSALS": 0},
        {"ALONE": 1e9, "EXTRA": 5},
        {"EXTRA": 1000},
    ):
        with monkeypatch.context() as patch:
            for name, value in settings.items():
                patch.setattr(icdm_module, name, value)
            there = icdm(space, 8, 5, device=HERE)
        assert_same((here.factors, here.mean, *here.neighbours), (there.factors, there.mean, *there.neighbours))
    assert {0, 1, 2} <= set(np.concatenate(visited).tolist())  # nothing new, something new, no room


def test_gicdm_is_the_same_on_a_device():
    rng = np.random.default_rng(5)
    real, generated = rng.normal(size=(90, 9)), 1.2 * rng.normal(size=(40, 9))
    generated[3] = real[7]
    here, there = (GICDM(k=2, device=device).fit(real) for device in ("cpu", HERE))
    assert_same((here.factors_, here.thresholds_, here.kept_), (there.factors_, there.thresholds_, there.kept_))
    one, other = here.transform(generated), there.transform(generated)
    assert_same((one.factors, one.kept, one.misfit), (other.factors, other.kept, other.misfit))


def test_a_space_is_moved_once_and_let_go_with_it():
    space = prepare(random(4, n=50, dims=5).vectors, "euclidean")
    before = len(torch_backend._there)
    nearest(space, 3, device=HERE)
    nearest(space, 5, device=HERE)
    assert len(torch_backend._there) == before + 1
    del space
    gc.collect()
    assert len(torch_backend._there) == before


def test_lists_of_few_and_of_none():
    """Rows with fewer candidates than are asked for, with none, and with ties at the edge."""
    part = torch_lists.Part(
        torch.tensor([[4, 2, 9, 0], [3, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.int32),
        torch.tensor([[2.0, 2.0, 1.0, 2.0], [5.0, 0.0, 0.0, 0.0], [0.0] * 4], dtype=torch.float64),
        torch.ones((3, 4), dtype=torch.bool),
        torch.tensor([4, 1, 0]),
        torch.tensor([2.5, np.inf, 0.0], dtype=torch.float64),
    )
    found = torch_lists.settle(part, torch.ones(10, dtype=torch.float64), 3, lambda *_: pytest.fail("all is known"))
    assert found.places.tolist() == [[9, 0, 2], [3, -1, -1], [-1, -1, -1]]
    assert found.certified.tolist() == [True, True, False]


def test_the_smallest_keys_of_groups():
    keys = torch.from_numpy(np.random.default_rng(0).integers(0, 900, (7, 160 * 16 + 5)).astype(np.float32))
    values, places = torch_backend._smallest(keys, 20)
    expected = np.sort(keys.numpy(), axis=1)[:, :20]
    assert np.array_equal(values.numpy(), expected)
    assert np.array_equal(np.take_along_axis(keys.numpy(), places.numpy(), axis=1), expected)
    assert all(len(set(row)) == 20 for row in places.numpy())


def test_a_block_that_does_not_fit_is_halved(monkeypatch):
    """A device with room for 13 rows, played by the product that refuses more."""
    monkeypatch.setattr(torch_backend, "BLOCK_BYTES", 1 << 20)
    space = prepare(random(1, n=200, dims=10).vectors, "euclidean")
    here, heights = nearest(space, 5), []
    products = torch_backend.Torch._keys

    def keys(self, rows, folded):
        if len(rows) > 13:
            raise torch.OutOfMemoryError
        heights.append(len(rows))
        return products(self, rows, folded)

    monkeypatch.setattr(torch_backend.Torch, "_keys", keys)
    assert_same(here, nearest(space, 5, device=HERE))
    assert max(heights) > 5
    assert sum(heights) == 200


def test_a_device_without_room_is_named(monkeypatch):
    def keys(self, rows, folded):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(torch_backend.Torch, "_keys", keys)
    with pytest.raises(UsageError, match="does not hold one row"):
        nearest(prepare(np.eye(9), "euclidean"), 3, device=HERE)


def test_products_keep_their_precision_and_settings():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with torch_backend._full_precision():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_devices_that_are_not_there(monkeypatch):
    space = prepare(np.eye(9), "euclidean")
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="no CUDA device"):
            nearest(space, 3, device="cuda")
        monkeypatch.setattr(devices, "WORTH_WAKING", 1)
        assert nearest(space, 3, device="auto").places.shape == (9, 3)
    else:
        with pytest.raises(UsageError, match="There is no device"):
            nearest(space, 3, device="cuda:99")
