"""What must not grow with the square of the clips, counted: pairs aligned, pairs drawn, numbers kept."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.calibrate import _deletion_pairs
from earmark.calibrate.deletions import depth_needed, leave_out, units_of
from earmark.evaluation import dtw
from earmark.geometry import spaces
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep
from earmark.probes import _trials
from earmark.report import _neighbours
from earmark.report._neighbours import Confusions, confusions, most_confused, top_confusions

# --- DTW --------------------------------------------------------------------------------------------------


def lists_of(n, width, seed=0):
    rng = np.random.default_rng(seed)
    frames = [rng.normal(size=(int(rng.integers(2, 5)), 3)) for _ in range(n)]
    candidates = np.array([rng.permutation(np.delete(np.arange(n), i))[:width] for i in range(n)])
    return dtw.prepare(frames, components=None, stride=1), candidates


def test_lists_in_parts_and_of_some_queries_are_those_of_all(monkeypatch):
    sequences, candidates = lists_of(40, 6)
    whole = dtw.rerank(candidates, sequences, threads=1)
    monkeypatch.setattr(dtw, "PAIRS", 20)
    parts = dtw.rerank(candidates, sequences, threads=1)
    assert np.array_equal(whole.indices, parts.indices)
    assert np.array_equal(whole.distances, parts.distances)
    asking = np.array([3, 11, 30])
    some = dtw.rerank(candidates[asking], sequences, queries=asking, threads=1)
    assert np.array_equal(some.indices, whole.indices[asking])


def test_alignments_grow_with_the_lists(monkeypatch):
    aligned = []
    count = dtw._pair_distances

    def counting(first, *rest):
        aligned.append(len(first))
        return count(first, *rest)

    monkeypatch.setattr(dtw, "_pair_distances", counting)
    monkeypatch.setattr(dtw, "PAIRS", 200)
    totals = []
    for n in (50, 200):
        aligned.clear()
        sequences, candidates = lists_of(n, 5)
        dtw.rerank(candidates, sequences, threads=1)
        totals.append(sum(aligned))
        assert max(aligned) <= 200
    assert totals[1] <= 4.2 * totals[0]


# --- speaker verification ---------------------------------------------------------------------------------


def test_trials_that_are_drawn_do_not_grow_with_the_clips(monkeypatch):
    looked_at = []
    among = _trials._not_among
    monkeypatch.setattr(
        _trials, "_not_among", lambda own, numbers: looked_at.append(len(own) + len(numbers)) or among(own, numbers)
    )
    totals = []
    for speakers in (200, 800):
        looked_at.clear()
        chosen = _trials.choose_trials(np.repeat(np.arange(speakers), 5), 2000, 0)
        totals.append(sum(looked_at))
        assert len(chosen.first) == 2000
        assert chosen.same.sum() == 1000
        assert (chosen.first != chosen.second).all()
    assert totals[1] <= 4.2 * totals[0]


def test_rows_that_are_not_among_some():
    rng = np.random.default_rng(0)
    for n in range(2, 25):
        own = np.sort(rng.choice(n, int(rng.integers(1, n)), replace=False))
        others = np.setdiff1d(np.arange(n), own)
        assert np.array_equal(_trials._not_among(own, np.arange(len(others))), others)


# --- the report -------------------------------------------------------------------------------------------


def test_confusions_of_many_classes_keep_no_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    clips = 4000
    labels = [f"class {i // 2:04}" for i in range(clips)]
    nearest = np.where(rng.random(clips) < 0.5, np.arange(clips) ^ 1, rng.integers(0, clips, clips))
    drawn = []
    dense = Confusions.counts.fget
    monkeypatch.setattr(
        _neighbours.Confusions, "counts", property(lambda self: drawn.append(len(self.classes)) or dense(self))
    )
    found = confusions(labels, nearest)
    assert len(found.clips) <= clips
    assert found.clips.sum() == clips
    assert found.sizes.sum() == clips
    shown = most_confused(found, 20)
    assert len(shown.classes) == 20
    assert top_confusions(found, 8)[0].clips >= 1
    assert max(drawn) <= 20


def test_confusions_are_those_of_the_matrix():
    rng = np.random.default_rng(1)
    labels = [f"c{i}" for i in rng.integers(0, 9, 300)]
    nearest = rng.integers(0, 300, 300)
    matrix = np.zeros((9, 9), int)
    for i, j in enumerate(nearest):
        matrix[int(labels[i][1]), int(labels[j][1])] += 1
    found = confusions(labels, nearest)
    assert np.array_equal(found.counts, matrix)
    assert found.wrong == matrix.sum() - np.trace(matrix)
    chosen = np.array([4, 1, 7])
    assert np.array_equal(found.among(chosen).counts, matrix[np.ix_(chosen, chosen)])


# --- the jackknife ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
def test_changes_are_added_up_a_fixed_number_of_times(grouped, monkeypatch):
    """Each is as long as there are units: one for every tile would be N / 128 times N numbers."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_deletion_pairs, "ROWS", 8)
    labels = rng.integers(0, 4, 900)
    layout = lay_out(labels, rng.integers(0, 30, 900) if grouped else None)
    units = units_of(layout)
    space = spaces.prepare(rng.normal(size=(900, 4)), "euclidean", order=layout.order)
    wanted = Wanted(depth_needed(5, units), farthest=True, class_sums=True, units=units.of, keep_sums=True)
    swept = sweep(space, layout, wanted)
    made = []
    zeros = _deletion_pairs.Sums.zeros.__func__
    monkeypatch.setattr(_deletion_pairs.Sums, "zeros", classmethod(lambda cls, n: made.append(n) or zeros(cls, n)))
    few = leave_out(space, layout, swept, units, ("GSR", "silhouette"), (1,), hub_k=5)
    assert len(made) <= 2 * (_deletion_pairs.SPANS + 2)
    monkeypatch.setattr(_deletion_pairs, "SPANS", 10_000)
    many = leave_out(space, layout, swept, units, ("GSR", "silhouette"), (1,), hub_k=5)
    for metric, values in few["all"].items():
        assert values == pytest.approx(many["all"][metric], rel=1e-12)
