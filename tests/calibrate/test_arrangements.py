"""Which labels may change places: the scheme of a design, its arrangements, and p-values that hold under its null."""

from __future__ import annotations

import itertools
from math import inf

import numpy as np
import pytest

import earmark
from earmark.calibrate._arrangements import arrangements, scheme_of
from earmark.geometry.layout import lay_out

METRICS = ["P@1", "P@5", "GSR", "CSR", "CS", "CSCF", "silhouette"]


def scheme(codes, groups=None):
    return scheme_of(lay_out(np.asarray(codes), None if groups is None else np.asarray(groups)))


# --- the choice -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "groups", "name", "count"),
    [
        ([0, 0, 1, 1], None, "clips", inf),
        ([0, 0, 1, 1], [0, 1, 2, 3], "clips", inf),
        (np.repeat([0, 0, 1, 1, 2, 2], 3), np.repeat(np.arange(6), 3), "whole_groups", 15),
        (np.tile([0, 1, 2], 5), np.repeat(np.arange(5), 3), "inside_groups", 6**4),
        ([0, 0, 1, 1, 2, 2, 0, 1, 2], [0, 0, 1, 1, 2, 2, 3, 3, 3], "blocks", 6),
        ([0, 0, 1, 1, 0, 1, 1], [0, 0, 1, 1, 2, 2, 2], "blocks", 6),
        ([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2], "", 1),
        ([0, 0, 0, 1, 1], [0, 0, 0, 0, 0], "inside_groups", 10),
    ],
    ids=["no groups", "groups of one", "constant", "crossed", "one of each", "some of each", "bound", "one group"],
)
def test_the_scheme_follows_from_labels_and_groups(codes, groups, name, count):
    found = scheme(codes, groups)
    assert (found.name, found.arrangements) == (name, count)
    assert found.testable == (name == "clips" or count >= 20)
    assert bool(found.reason) == (not found.testable)


def test_groups_of_one_size_exchange_where_that_is_enough():
    """Then classes keep their sizes, and labels that go with size are no evidence."""
    sizes = np.repeat([3, 8], 7)
    groups = np.repeat(np.arange(14), sizes)
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1])[groups]
    alike = scheme(codes, groups)
    for p in range(20):
        assert np.array_equal(np.bincount(alike.labels(0, p, exact=False)[alike.units]), np.bincount(codes))
    varied = scheme(
        np.array([0, 1, 2, 0, 1, 2, 0])[np.repeat(np.arange(7), np.arange(2, 9))],
        np.repeat(np.arange(7), np.arange(2, 9)),
    )
    assert "class sizes vary" in varied.reason
    assert len({tuple(np.bincount(varied.labels(0, p, exact=False)[varied.units])) for p in range(20)}) > 5


def test_what_moves_stays_in_its_block_and_goes_as_a_whole():
    rng = np.random.default_rng(3)
    groups = np.r_[np.repeat(np.arange(6), 5), np.repeat(np.arange(6, 10), 8)]
    codes = np.r_[np.repeat(np.arange(6) % 3, 5), rng.integers(0, 3, 32)]
    layout = lay_out(codes, groups)
    found = scheme_of(layout)
    assert found.name == "blocks"
    for p in range(10):
        moved = layout.to_rows(found.labels(1, p, exact=False)[found.units])
        for group in range(6):
            assert len(set(moved[groups == group])) == 1
        assert sorted(moved[groups < 6]) == sorted(codes[groups < 6])
        for group in range(6, 10):
            assert sorted(moved[groups == group]) == sorted(codes[groups == group])


@pytest.mark.parametrize("seed", range(8))
def test_counted_and_enumerated_arrangements_agree(seed):
    """By brute force: every permutation inside blocks, one of each set that differs by names of classes alone."""
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(0, 3, 8))
    codes = np.unique(rng.integers(0, 3, 8), return_inverse=True)[1]
    found = scheme(codes, groups)

    def anonymous(labels):
        seen = {}
        return tuple(seen.setdefault(label, len(seen)) for label in labels)

    blocks = [found.unit_codes[a:b].tolist() for a, b in itertools.pairwise(found.starts)]
    every = {
        anonymous(itertools.chain(*choice))
        for choice in itertools.product(*(itertools.permutations(b) for b in blocks))
    }
    listed = [anonymous(labels) for labels in found.enumerated.tolist()]
    assert arrangements(found.unit_codes, found.starts, codes.max() + 1) == len(every)
    assert len(set(listed)) == len(listed)
    assert set(listed) == every - {anonymous(found.unit_codes.tolist())}


def test_shuffles_reach_every_arrangement_alike():
    found = scheme([0, 0, 1, 1, 2], [0, 0, 0, 0, 0])
    seen = [tuple(found.labels(0, p, exact=False)) for p in range(3000)]
    counts = np.unique(seen, axis=0, return_counts=True)[1]
    assert len(counts) == 30
    assert ((counts - 100) ** 2 / 100).sum() < 60  # chi-squared with 29 degrees of freedom: once in 1500


# --- the null -------------------------------------------------------------------------------------


def one_label(rng):
    groups = np.repeat(np.arange(15), 6)
    return groups, rng.permutation(np.arange(15) % 5)[groups]


def two_labels(rng):
    groups = np.repeat(np.arange(15), 6)
    pairs = [rng.permutation(np.repeat(rng.choice(5, 2, replace=False), 3)) for _ in range(15)]
    return groups, np.concatenate(pairs)


def crossed(rng):
    return np.repeat(np.arange(8), 12), np.tile(np.repeat(np.arange(4), 3), 8)


def with_size(rng):
    """One label has the larger groups."""
    labels = np.r_[rng.permutation([0] * 6 + [1] * 2), rng.permutation([0] * 2 + [1] * 6)]
    groups = np.repeat(np.arange(16), np.repeat([3, 9], 8))
    return groups, labels[groups]


@pytest.mark.parametrize("design", [one_label, two_labels, crossed, with_size], ids=lambda design: design.__name__)
def test_p_values_hold_where_vectors_have_groups_and_labels_mean_nothing(design):
    """Shuffling single clips rejected up to two thirds of such sets; now about one p in five is under 0.2."""
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(60):
        rng = np.random.default_rng([4, seed])
        groups, codes = design(rng)
        vectors = rng.normal(size=(groups.max() + 1, 6))[groups] + rng.normal(size=(len(groups), 6))
        options = {"groups": groups, "across_groups": True, "metrics": METRICS, "permutations": 39, "seed": seed}
        for row in earmark.evaluate(vectors, codes, **options):
            found.setdefault((row.protocol, row.metric), []).append(row.p_value)
    for key, values in found.items():
        # Binomial(60, 0.2) passes 24 once in 5000, binomial(60, 0.05) passes 10 as rarely.
        assert sum(p <= 0.2 for p in values) <= 24, key
        assert sum(p <= 0.05 for p in values) <= 10, key
        if key[1] in ("GSR", "CSR", "CS", "silhouette"):  # values without ties
            assert 0.35 < np.mean(values) < 0.65, key
