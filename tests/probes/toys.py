"""Small clips and an encoder that hears one number in them: what tasks are tried on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from earmark.corpora.clips import Clip
from earmark.extractors.contract import ExtractorCard, Frames
from earmark.probes._contract import Responses

RATE = 8000


class Spectrum:
    """A clip's magnitude spectrum in 32 bands, as one frame."""

    card = ExtractorCard(name="spectrum", rate=RATE, dimension=32, extra="")

    def extract(self, waveforms: Sequence[Any]) -> list[Frames]:
        return [Frames(np.log1p(_bands(waveform))[None, :], 1) for waveform in waveforms]


def _bands(waveform: np.ndarray) -> np.ndarray:
    spectrum = np.abs(np.fft.rfft(waveform, 2048))[:1024]
    return spectrum.reshape(32, 32).mean(axis=1).astype(np.float32)


def tones(labels: int = 4, groups: int = 5, takes: int = 2, seed: int = 0) -> list[Clip]:
    """Clips whose label is a pitch and whose group a colour of noise."""
    rng = np.random.default_rng(seed)
    made = []
    for label in range(labels):
        for group in range(groups):
            for take in range(takes):
                time = np.arange(RATE // 2) / RATE
                hum = np.sin(2 * np.pi * (300 + 350 * label) * time + rng.random())
                colour = 0.4 * np.sin(2 * np.pi * (2000 + 350 * group) * time)
                samples = hum + colour + 0.3 * rng.standard_normal(len(time))
                made.append(
                    Clip(f"{label}/{group}/{take}", f"pitch{label}", "toys", f"voice{group}",
                         samples=(samples / 4).astype(np.float32), rate=RATE)
                )  # fmt: skip
    return made


def noisy(clips: Sequence[Clip], level: float, seed: int = 1) -> list[Clip]:
    """The clips after a codec that adds noise."""
    rng = np.random.default_rng(seed)
    return [
        Clip(clip.id, clip.label, clip.subset, clip.group, rate=clip.rate,
             samples=(clip.samples + level * rng.standard_normal(len(clip.samples))).astype(np.float32))
        for clip in clips if clip.samples is not None
    ]  # fmt: skip


def broken(clip: Clip) -> Clip:
    """The clip as NaN."""
    assert clip.samples is not None
    return Clip(clip.id, clip.label, clip.subset, clip.group, samples=np.full_like(clip.samples, np.nan), rate=RATE)


def vectors(heard: Responses) -> np.ndarray:
    assert heard.vectors is not None
    return np.asarray(heard.vectors, np.float64)
