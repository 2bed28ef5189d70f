"""DTW against the textbook recursion, written out in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earmark.errors import InputError, UsageError
from earmark.evaluation.dtw import Sequences, all_distances, prepare, rerank


def dtw_distance(a: np.ndarray, b: np.ndarray, radius: float = 0.1) -> float:
    values = np.concatenate([a, b]).astype(np.float32)
    (distance,) = all_distances(Sequences(values, np.cumsum([0, len(a), len(b)])), radius=radius)
    return float(distance)


def slow_dtw(a: np.ndarray, b: np.ndarray, radius: float) -> float:
    """Every cell of the table as (cost, steps); of equal costs the fewer steps."""
    n, m = len(a), len(b)
    width = max(radius, 0.5 / max(min(n, m) - 1, 1)) + 1e-9
    table: dict[tuple[int, int], tuple[float, int]] = {(-1, -1): (0.0, 0)}
    for i in range(n):
        for j in range(m):
            if min(n, m) > 1 and abs(i / (n - 1) - j / (m - 1)) > width:
                continue
            before = [table[p] for p in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if p in table]
            cost, steps = min(before)
            table[i, j] = cost + float(np.linalg.norm(a[i] - b[j])), steps + 1
    cost, steps = table[n - 1, m - 1]
    return cost / steps


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(1, 25),
    m=st.integers(1, 25),
    radius=st.sampled_from([0.0, 0.05, 0.1, 0.33, 1.0]),
    seed=st.integers(0, 999),
    whole=st.booleans(),
)
def test_is_the_textbook_recursion_and_symmetric(n: int, m: int, radius: float, seed: int, whole: bool) -> None:
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((n, 3)), random.standard_normal((m, 3))
    if whole:  # equal costs, so that ties decide
        a, b = np.rint(a[:, :1]), np.rint(b[:, :1])
    found = dtw_distance(a, b, radius)
    assert found == pytest.approx(slow_dtw(a.astype(np.float32), b.astype(np.float32), radius), abs=1e-5)
    assert found == dtw_distance(b, a, radius)
    assert dtw_distance(a, a, radius) == 0.0


def test_a_stretched_copy_is_at_distance_zero() -> None:
    a = np.random.default_rng(0).standard_normal((20, 4))
    assert dtw_distance(a, np.repeat(a, 2, axis=0), 0.1) == 0.0


def test_one_frame_is_aligned_with_all() -> None:
    assert dtw_distance(np.zeros((1, 2)), np.array([[3.0, 4.0], [0.0, 0.0]])) == pytest.approx(2.5)


def test_a_radius_is_a_share() -> None:
    ones = np.ones((3, 2))
    for radius in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="radius"):
            dtw_distance(ones, ones, radius)


def test_prepare_scales_projects_and_thins() -> None:
    random = np.random.default_rng(1)
    clips = [random.standard_normal((t, 10)) * 5 for t in (1, 7, 30)]
    plain = prepare(clips, components=None, stride=3)
    assert [len(plain[k]) for k in range(3)] == [1, 3, 10]
    np.testing.assert_allclose(np.linalg.norm(plain.values, axis=1), 1.0, rtol=1e-6)
    units = np.concatenate([c / np.linalg.norm(c, axis=1, keepdims=True) for c in clips])
    centred = units - units.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    reduced = prepare(clips, components=4, stride=1)
    np.testing.assert_allclose(np.abs(reduced.values), np.abs(centred @ axes[:4].T), atol=1e-5)
    assert prepare(clips, components=64).values.shape[1] == 10
    np.testing.assert_array_equal(prepare([np.zeros((2, 3))], components=None, stride=1).values, 0.0)


def test_prepare_refusals() -> None:
    with pytest.raises(UsageError, match="gone through twice"):
        prepare(iter([np.ones((2, 2))]))
    with pytest.raises(UsageError, match="stride"):
        prepare([np.ones((2, 2))], stride=0)
    with pytest.raises(InputError, match="no frames"):
        prepare([], components=None)
    with pytest.raises(InputError, match="one has the shape"):
        prepare([np.ones((0, 2))])


def test_rerank_orders_each_list_by_distance_then_row() -> None:
    random = np.random.default_rng(2)
    clips = [random.standard_normal((int(t), 6)) for t in random.integers(3, 30, 12)]
    clips[5] = clips[3].copy()
    sequences = prepare(clips, components=None, stride=1)
    candidates = np.array([random.permutation(np.delete(np.arange(12), q))[:9] for q in range(12)])
    found = rerank(candidates, sequences)
    for q in range(12):
        expected = sorted((dtw_distance(sequences[q], sequences[c]), c) for c in candidates[q])
        assert found.indices[q].tolist() == [c for _, c in expected]
        np.testing.assert_array_equal(found.distances[q], [d for d, _ in expected])
    np.testing.assert_array_equal(found.indices, rerank(candidates, sequences, threads=1).indices)


def test_rerank_refusals() -> None:
    sequences = prepare([np.ones((2, 2))] * 3, components=None)
    with pytest.raises(InputError, match="2 lists of candidates and 3 sequences"):
        rerank(np.zeros((2, 1), int), sequences)
    with pytest.raises(InputError, match="rows from 0 to 2"):
        rerank(np.full((3, 1), 3), sequences)


def test_all_distances_are_those_of_every_pair() -> None:
    rng = np.random.default_rng(2)
    frames = [rng.normal(size=(rng.integers(1, 9), 3)) for _ in range(6)]
    sequences = prepare(frames, components=None, stride=1)
    wanted = [dtw_distance(sequences[i], sequences[j]) for i in range(6) for j in range(i + 1, 6)]
    assert all_distances(sequences).tolist() == wanted
