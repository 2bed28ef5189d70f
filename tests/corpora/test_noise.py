"""Noise as long and as loud as clips."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from earmark.corpora.clips import Clip
from earmark.corpora.noise import noise_like

RNG = np.random.default_rng(0)
CLIPS = [
    Clip(id=f"a{number}", label="x", samples=(0.1 * (number + 1) * RNG.normal(size=2000 + number)).astype(np.float32),
         rate=8000)
    for number in range(3)
]  # fmt: skip


def test_noise_has_the_length_the_rate_and_the_loudness_of_its_clip() -> None:
    for clip, noise in zip(CLIPS, noise_like(CLIPS, seed=4), strict=True):
        (sound, rate), (own, _) = noise.read(), clip.read()
        assert (len(sound), rate, noise.label) == (len(own), 8000, None)
        assert np.sqrt(np.mean(sound**2)) == pytest.approx(np.sqrt(np.mean(own**2)), rel=0.1)
        assert abs(np.corrcoef(sound, own)[0, 1]) < 0.1


def test_noise_is_the_same_everywhere_and_another_for_each_clip_and_seed() -> None:
    first, second = noise_like(CLIPS, seed=1), noise_like(CLIPS, seed=2)
    assert first[0].digest() == noise_like(CLIPS, seed=1)[0].digest() != second[0].digest()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first[0])).read()[0], first[0].read()[0])
    sounds = [clip.read()[0][:2000] for clip in (*first, *second)]
    assert len({sound.tobytes() for sound in sounds}) == len(sounds)


def test_silence_makes_silence() -> None:
    (noise,) = noise_like([Clip(id="s", samples=np.zeros(100, np.float32), rate=8000)])
    assert not noise.read()[0].any()
