from __future__ import annotations

import numpy as np
import scipy.fft

from earmark.extractors.logmel import log_mel
from earmark.extractors.mfcc import MFCC, mfcc, slopes, statistics


def test_coefficients_are_the_orthonormal_dct_of_the_log_mel() -> None:
    waveform = np.random.default_rng(0).standard_normal(9000).astype(np.float32)
    expected = scipy.fft.dct(log_mel(waveform).astype(np.float64), type=2, norm="ortho", axis=1)[:, :20]
    np.testing.assert_allclose(mfcc(waveform), expected, atol=1e-9)


def test_the_slope_of_a_line_is_its_slope_away_from_the_edges() -> None:
    line = np.outer(np.arange(10.0), [1.0, -3.0])
    np.testing.assert_allclose(slopes(line)[2:-2], np.tile([1.0, -3.0], (6, 1)))


def test_the_vector_is_means_and_deviations_of_both() -> None:
    series = np.random.default_rng(1).standard_normal((12, 20))
    d = np.array([sum(n * (series[min(t + n, 11)] - series[max(t - n, 0)]) for n in (1, 2)) / 10 for t in range(12)])
    expected = np.concatenate([series.mean(0), series.std(0), d.mean(0), d.std(0)])
    np.testing.assert_allclose(statistics(series), expected, rtol=1e-6, atol=1e-6)


def test_one_frame_has_no_deviation() -> None:
    found = statistics(np.ones((1, 20)))
    np.testing.assert_array_equal(found, [1.0] * 20 + [0.0] * 60)


def test_one_vector_per_clip() -> None:
    frames = MFCC().extract([np.ones(n, np.float32) for n in (1, 300, 20000)])
    assert [(f.values.shape, f.values.dtype, f.valid) for f in frames] == [((1, 80), np.float32, 1)] * 3
