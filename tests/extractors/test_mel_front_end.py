"""The describable mel front end and windows, against their definitions written out frame by frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from earmark.errors import UsageError
from earmark.extractors.mel_front_end import MelFrontEnd
from earmark.extractors.windows import cover, windows
from earmark.networks.mel_scale import mel_filters


def slow(x: np.ndarray, n_fft: int, hop: int, bank: np.ndarray, window: np.ndarray, power: float = 2.0) -> np.ndarray:
    starts = range(0, len(x) - n_fft + 1, hop)
    return np.array([bank @ np.abs(np.fft.rfft(x[start : start + n_fft] * window)) ** power for start in starts])


def triangles(hertz: np.ndarray, rate: int, n_fft: int) -> np.ndarray:
    bins = np.arange(n_fft // 2 + 1) * rate / n_fft
    return np.array([np.interp(bins, hertz[m : m + 3], [0, 1, 0]) for m in range(len(hertz) - 2)])


def htk(low: float, high: float, count: int) -> np.ndarray:
    ends = 2595 * np.log10(1 + np.array([low, high]) / 700)
    return 700 * (10 ** (np.linspace(*ends, count + 2) / 2595) - 1)


def test_is_the_definition_with_every_knob_turned() -> None:
    x = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    made = MelFrontEnd(
        rate=8000, n_fft=256, window=200, hop=80, mels=20, fmin=60, fmax=3800, taper="hamming", power=1.0,
        padding="reflect", log="log10", offset=0.01, mean=-4, std=2,
    )  # fmt: skip
    window = np.pad(0.54 - 0.46 * np.cos(2 * np.pi * np.arange(200) / 200), 28)
    expected = slow(np.pad(x, 128, "reflect"), 256, 80, triangles(htk(60, 3800, 20), 8000, 256), window, 1.0)
    np.testing.assert_allclose(made(x), (np.log10(expected + 0.01) + 4) / 2, atol=1e-5)


def test_slaney_bands_of_equal_area_are_those_of_auditory_toolboxes() -> None:
    """13 linear bands of 66.7 Hz and then logarithmic ones: corners by the rule, areas of 1."""
    made = MelFrontEnd(n_fft=2048, mels=40, scale="slaney", height="area", log="none", padding="zeros")
    linear, steps = 200 / 3, np.log(6.4) / 27
    top = 15 + np.log(8000 / 1000) / steps
    corners = [m * linear if m < 15 else 1000 * np.exp((m - 15) * steps) for m in np.linspace(0, top, 42)]
    bank = triangles(np.array(corners), 16000, 2048) * (2 / (np.array(corners)[2:] - np.array(corners)[:-2]))[:, None]
    x = np.random.default_rng(1).standard_normal(5000).astype(np.float32)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(2048) / 2048)
    np.testing.assert_allclose(made(x), slow(np.pad(x, 1024), 2048, 160, bank, window), rtol=2e-4)
    wide = bank[30]
    assert np.sum(wide) * 16000 / 2048 == pytest.approx(1, abs=0.01)


def test_filters_peak_at_one_between_neighbouring_corners() -> None:
    bank = mel_filters(16000, 4096, 30, 100, 7000)
    np.testing.assert_allclose(bank, triangles(htk(100, 7000, 30), 16000, 4096), atol=1e-9)


@pytest.mark.parametrize("samples", [1, 2, 100, 399, 400, 401])
@pytest.mark.parametrize("padding", ["none", "zeros", "reflect"])
def test_any_length_gives_a_frame(samples: int, padding: Any) -> None:
    found = MelFrontEnd(padding=padding)(np.ones(samples, np.float32))
    assert len(found) >= 1
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"melz": 64}, 'Did you mean "mels"'),
        ({"log": "natural2"}, 'Did you mean "natural"'),
        ({"scale": "bark"}, "choose from htk, slaney"),
        ({"fmax": 9000}, "fmax <= rate / 2"),
        ({"window": 500}, "at most n_fft"),
        ({"mels": 0}, "positive lengths"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MelFrontEnd.of(given)


@pytest.mark.parametrize("samples", [1, 5, 7, 8, 9, 12, 13, 100])
@pytest.mark.parametrize(("size", "hop"), [(8, 8), (8, 3), (8, 1)])
def test_windows_hold_every_sample_in_order_and_nothing_but_zeros_beside(samples: int, size: int, hop: int) -> None:
    x = np.arange(1, samples + 1, dtype=np.float32)
    found = windows(x, size, hop)
    covered = cover(x, size, hop)
    assert (len(covered) - size) % hop == 0
    assert len(covered) - samples < max(size, hop) or samples < size
    np.testing.assert_array_equal(covered[covered > 0], x)
    assert abs(int(np.argmax(covered > 0)) - int(np.argmax(covered[::-1] > 0))) <= 1  # in the middle
    np.testing.assert_array_equal(found, [covered[i : i + size] for i in range(0, len(covered) - size + 1, hop)])
