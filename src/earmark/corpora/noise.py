"""Noise in place of recordings: clips as long and as loud as given ones, with nothing in them to recognise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earmark.corpora.clips import Clip, Samples


@dataclass(frozen=True)
class NoiseLike:
    """White Gaussian noise with the length, the rate and the root mean square of a clip."""

    clip: Clip
    seed: int

    def __call__(self) -> tuple[Samples, int]:
        samples, rate = self.clip.read()
        rng = np.random.default_rng(int(_hashed(f"noise {self.seed} {self.clip.id}")[:32], 16))
        level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0
        return (level * rng.standard_normal(len(samples))).astype(np.float32), rate

    def digest(self) -> str:
        """A hash of what the noise depends on."""
        return _hashed(f"noise {self.seed} {self.clip.id} {self.clip.digest()}")


def noise_like(clips: Sequence[Clip], seed: int = 0) -> list[Clip]:
    """A clip of noise for each of these clips, without label and group."""
    return [Clip(id=f"noise/{clip.id}", make=NoiseLike(clip, seed)) for clip in clips]


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
