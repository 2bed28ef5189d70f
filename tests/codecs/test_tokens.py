"""Statistics of tokens against counting by hand."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from earmark.codecs.tokens import token_statistics
from earmark.errors import InputError


def test_against_counting_one_by_one() -> None:
    random = np.random.default_rng(0)
    sizes = (4, 16, 10)
    clips = [
        np.stack([random.integers(0, 3, n), random.binomial(15, 0.3, n), random.integers(0, 10, n)])
        for n in (7, 40, 100)
    ]
    found = token_statistics(clips, sizes, 50.0)
    entropies = []
    for book, size in enumerate(sizes):
        counts = Counter(int(token) for clip in clips for token in clip[book])
        total = sum(counts.values())
        entropy = -sum(count / total * math.log2(count / total) for count in counts.values())
        entropies.append(entropy)
        assert found.usage_of[book] == pytest.approx(len(counts) / size, abs=1e-12)
        assert found.entropy_of[book] == pytest.approx(entropy, abs=1e-9)
        assert found.perplexity_of[book] == pytest.approx(2**entropy, abs=1e-9)
    assert found.n_frames == 147
    assert found.entropy_kbps == pytest.approx(50 * sum(entropies) / 1000)
    assert found.nominal_kbps == pytest.approx(50 * (2 + 4 + math.log2(10)) / 1000)
    assert found.usage == pytest.approx(found.usage_of.mean())
    assert found.entropy_bits == pytest.approx(np.mean(entropies))
    assert found.perplexity == pytest.approx(found.perplexity_of.mean())


def test_the_ends_of_the_scale() -> None:
    constant = token_statistics([np.zeros((1, 9), np.int64)], (8,), 50.0)
    assert (constant.entropy_bits, constant.perplexity, constant.usage) == (0.0, 1.0, 1 / 8)
    even = token_statistics([np.arange(8)[None].repeat(3, axis=1)], (8,), 50.0)
    assert even.entropy_bits == pytest.approx(3.0)
    assert even.perplexity == pytest.approx(8.0)
    assert even.entropy_kbps == pytest.approx(even.nominal_kbps)
    assert even.usage == 1.0


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([], "no tokens"),
        ([np.zeros((1, 0), np.int64)], "no tokens"),
        ([np.zeros((2, 3), np.int64)], "do not fit"),
        ([np.zeros((1, 3))], "do not fit"),
        ([np.full((1, 3), 8)], "true size"),
        ([np.full((1, 3), -1)], "true size"),
    ],
)
def test_what_cannot_be_counted_is_refused(tokens: list[np.ndarray], said: str) -> None:
    with pytest.raises(InputError, match=said):
        token_statistics(tokens, (8,), 50.0)
