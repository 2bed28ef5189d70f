"""The torch backend gives what the CPU gives: searches to the last bit, closeness to rounding. Run on torch's CPU."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases import CASES, DISTANCES, random

from earmark.errors import UsageError
from earmark.geometry import devices
from earmark.geometry.icdm import icdm
from earmark.geometry.neighbours import ball_counts, log_closeness, nearest
from earmark.geometry.spaces import prepare, prepare_pair

torch = pytest.importorskip("torch", reason="torch is an extra")
torch_backend = pytest.importorskip("earmark.geometry.torch_backend")

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


def test_the_smallest_keys_of_groups():
    keys = torch.from_numpy(np.random.default_rng(0).integers(0, 900, (7, 160 * 16)).astype(np.float32))
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
