"""Compiled streams give NumPy's numbers, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.calibrate import _streams
from earmark.errors import UsageError

SEEDS = (0, 3, 2**32 - 1, 2**32, 2**40 + 7, 2**130 + 5, 2**200 + 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_are_those_of_numpy(seed):
    words = _streams.words_of(seed)
    for shuffle in (0, 1, 999, 2**31):
        for n in (0, 1, 2, 3, 50, 1000, 70_000):
            order = np.empty(n, np.uint16 if n < 1 << 16 else np.int32)
            _streams.permutation(words, shuffle, order)
            assert np.array_equal(order, np.random.default_rng([seed, shuffle]).permutation(n))
            values = np.empty(n)
            _streams.uniforms(words, shuffle, values)
            assert np.array_equal(values, np.random.default_rng([seed, shuffle]).random(n))


def test_several_permutations_at_once():
    orders = np.empty((3, 17), np.uint16)
    _streams.permutations(_streams.words_of(5), 10, orders)
    assert np.array_equal(orders, [np.random.default_rng([5, p]).permutation(17) for p in (10, 11, 12)])


def test_a_negative_seed_is_refused():
    with pytest.raises(UsageError, match="seed must be at least 0"):
        _streams.words_of(-1)
