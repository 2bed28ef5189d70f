"""Log-mel against ten lines of NumPy in float64, and the properties the published numbers rest on."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.extractors.logmel import LogMel, log_mel, mel_bank


def slow_log_mel(waveform: np.ndarray) -> np.ndarray:
    """The definition, one frame after the other."""
    missing = max(0, 512 - len(waveform))
    x = np.pad(waveform.astype(np.float64), (missing // 2, missing - missing // 2))
    x = np.pad(x, 256, mode="reflect")
    window = np.hanning(513)[:512]
    hertz = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 130) / 2595) - 1)
    bank = np.array([np.interp(np.arange(257) * 31.25, hertz[m : m + 3], [0, 1, 0]) for m in range(128)])
    frames = [x[t : t + 512] * window for t in range(0, len(x) - 511, 256)]
    mel = np.array([bank @ np.abs(np.fft.rfft(frame)) ** 2 for frame in frames])
    decibels = 10 * np.log10(np.maximum(mel, 1e-10))
    return np.maximum(decibels, decibels.max() - 80)


@pytest.mark.parametrize("samples", [1, 2, 160, 511, 512, 513, 767, 768, 16000, 40001])
def test_is_the_definition_for_any_length(samples: int) -> None:
    random = np.random.default_rng(samples)
    waveform = (random.standard_normal(samples) * np.linspace(0, 1, samples)).astype(np.float32)
    found = log_mel(waveform)
    assert found.dtype == np.float32
    assert found.shape == (1 + max(samples, 512) // 256, 128)
    np.testing.assert_allclose(found, slow_log_mel(waveform), atol=2e-3)


def test_a_loud_tone_keeps_the_quiet_bands_right() -> None:
    time = np.arange(16000) / 16000
    waveform = (np.sin(2 * np.pi * 1000 * time) + 1e-3 * np.sin(2 * np.pi * 5000 * time)).astype(np.float32)
    np.testing.assert_allclose(log_mel(waveform), slow_log_mel(waveform), atol=5e-3)


def test_floor_is_80_below_the_maximum_and_exactly_tied() -> None:
    waveform = np.zeros(16000, np.float32)
    waveform[8000:8100] = 1.0
    found = log_mel(waveform)
    assert found.min() == found.max() - np.float32(80)
    assert (found == found.min()).mean() > 0.5


def test_silence_is_constant_and_finite() -> None:
    found = log_mel(np.zeros(4000, np.float32))
    assert found.min() == found.max() == pytest.approx(-100, abs=1e-4)


def test_the_bank_has_height_one_triangles_and_some_bands_between_bins() -> None:
    bank = mel_bank()
    assert bank.shape == (128, 257)
    assert bank.max() <= 1.0
    assert (bank.max(axis=1) == 0).any(), "the lowest bands are narrower than a bin"
    touched = np.flatnonzero(bank.max(axis=1) > 0)
    assert (np.diff(bank[touched].argmax(axis=1)) >= 0).all()


@pytest.mark.usefixtures("several_threads")
def test_no_result_depends_on_threads_or_company() -> None:
    random = np.random.default_rng(0)
    batch = [random.standard_normal(n).astype(np.float32) for n in (100, 5000, 70000, 16000, 16000)]
    one, many = LogMel(threads=1).extract(batch), LogMel(threads=4).extract(batch)
    for waveform, a, b in zip(batch, one, many, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.values, log_mel(waveform))
        assert a.valid == len(a.values)
    assert LogMel().extract([]) == []
