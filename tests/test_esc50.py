"""The figures of formulas/vocsim.md on ESC-50: log-mel vectors of 2000 clips, written out here, six metrics."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import earmark

ESC50 = Path(__file__).resolve().parents[2] / "shared" / "data" / "esc50"
METRICS = ("P@1", "P@5", "GSR", "CSR", "CS", "CSCF")
PERCENT = {
    ("cosine", "average"): (31.75, 22.73, 27.89, 17.09, 40.11, 20.73),
    ("spearman", "average"): (21.00, 15.07, 31.18, 23.74, 45.52, 17.06),
}
"""The other figures, and cosine once more, are those of a whole run: tests/representations/test_esc50.py."""
RATE, WINDOW, HOP, BANDS = 16_000, 512, 256, 128

pytestmark = pytest.mark.skipif(not (ESC50 / "manifest.csv").is_file(), reason=f"no ESC-50 at {ESC50}")


def mel_bands() -> np.ndarray:
    """[BANDS, WINDOW / 2 + 1]: triangles on the HTK mel scale from 0 to 8 kHz, peak 1."""
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, top, BANDS + 2) / 2595) - 1)
    bins = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    left, centre, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rising, falling = (bins - left) / (centre - left), (right - bins) / (right - centre)
    return np.maximum(0, np.minimum(rising, falling))


def log_mel(samples: np.ndarray, bands: np.ndarray) -> np.ndarray:
    """One clip as a flat vector, band by band: peak 1, power spectrogram, dB, floor 80 dB under the maximum."""
    samples = samples / max(np.abs(samples).max(), 1e-9)
    padded = np.pad(samples, WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    hann = np.hanning(WINDOW + 1)[:-1]
    power = np.abs(np.fft.rfft(frames * hann)) ** 2
    decibels = 10 * np.log10(np.maximum(bands @ power.T, 1e-10))
    return np.maximum(decibels, decibels.max() - 80).ravel()


@pytest.fixture(scope="module")
def clips() -> tuple[np.ndarray, list[str]]:
    soundfile = pytest.importorskip("soundfile", reason="reading FLAC needs soundfile")
    with (ESC50 / "manifest.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    bands = mel_bands()
    vectors = None
    for i, row in enumerate(rows):
        samples, rate = soundfile.read(ESC50 / row["path"])
        assert rate == RATE
        vector = log_mel(samples, bands)
        if vectors is None:  # every clip of ESC-50 lasts five seconds, so none needs padding
            vectors = np.empty((len(rows), len(vector)), np.float32)
        vectors[i] = vector
    assert vectors is not None
    return vectors, [row["label"] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("distance", "ties"), PERCENT)
def test_the_published_figures(clips: tuple[np.ndarray, list[str]], distance: str, ties: str) -> None:
    vectors, labels = clips
    scores = earmark.evaluate(vectors, labels, distance=distance, ties=ties, metrics=METRICS, intervals="none")
    found = [100 * scores.value(name) for name in METRICS]
    assert found == pytest.approx(PERCENT[distance, ties], abs=0.15)
