"""Ultrasound: front ends at the rate of the files, and sounds played slowly to models of audible sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

import earmark
from earmark.corpora.clips import Clip, Corpus, CorpusCard, length_of
from earmark.embedding.hearing import settle_rate
from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.logmel import Recipe
from earmark.networks.mel_scale import mel_corners

RATE, TONE = 250_000, 60_000


@pytest.fixture
def squeak(tmp_path: Path) -> str:
    """0.2 s at 250 kHz: silence, then 60 kHz from 0.1 s on."""
    times = np.arange(RATE // 5) / RATE
    sound = 0.5 * np.sin(2 * np.pi * TONE * times) * (times >= 0.1)
    soundfile.write(tmp_path / "squeak.wav", sound, RATE, subtype="FLOAT")
    return str(tmp_path / "squeak.wav")


class Spectrum:
    """A 16 kHz model: the frequency with most energy, how much of all lies within 2 % of it, and the seconds heard."""

    card = ExtractorCard("spectrum", rate=16000, dimension=3)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [Frames(self._of(waveform)[None, :], 1) for waveform in waveforms]

    def _of(self, waveform: Waveform) -> NDArray[np.float64]:
        power = np.abs(np.fft.rfft(waveform * np.hanning(len(waveform)))) ** 2
        hertz = np.fft.rfftfreq(len(waveform), 1 / 16000)
        peak = hertz[power.argmax()]
        return np.array([peak, power[np.abs(hertz - peak) < 0.02 * peak].sum() / power.sum(), len(waveform) / 16000])


def _peak_band(frames: NDArray[np.float32], recipe: Recipe) -> tuple[float, float]:
    """Where the loudest band of the last frame begins and ends, in hertz."""
    band = int(frames[-3].argmax())
    corners = mel_corners(recipe.rate, recipe.bands, recipe.fmin, recipe.fmax)
    return float(corners[band]), float(corners[band + 2])


@pytest.mark.parametrize(
    ("spec", "recipe"),
    [
        ("logmel?rate=native", Recipe(RATE)),
        ("logmel?rate=250000", Recipe(RATE)),
        ("logmel?rate=native&fmin=30000&fmax=110000&window=1024", Recipe(RATE, 1024, fmin=30000.0, fmax=110000.0)),
    ],
)
def test_at_the_native_rate_the_energy_lies_where_it_sounds(squeak: str, spec: str, recipe: Recipe) -> None:
    clip = Clip("squeak", path=squeak)
    extractor = settle_rate(open_extractor(spec), [clip])
    assert extractor.card.rate == RATE
    assert extractor.card.frame_rate == pytest.approx(RATE / 256)
    (frames,) = extractor.extract([clip.read(extractor.card.rate)[0]])
    assert frames.values.shape == (1 + (RATE // 5) // 256, 128)
    low, high = _peak_band(frames.values, recipe)
    assert low < TONE < high
    assert high - low < 8000
    assert frames.values[:90].max() < frames.values[-3].max() - 40  # silence before 0.1 s


def test_sixteen_kilohertz_hear_nothing_of_it_and_slowed_down_they_do(squeak: str) -> None:
    clip = Clip("squeak", path=squeak, start=0.1, end=0.2)
    peak, share, seconds = earmark.embed([clip], Spectrum(), pool="mean_time", speed=0.1).vectors[0]
    assert peak == pytest.approx(TONE / 10, rel=1e-3)
    assert share > 0.99
    assert seconds == pytest.approx(1.0)
    before = earmark.embed([clip], Spectrum(), pool="mean_time").vectors[0]
    assert before[2] == pytest.approx(0.1)
    samples, rate = clip.read(16000)
    assert rate == 16000
    assert np.abs(samples[100:-100]).max() < 1e-3  # beyond half of 16 kHz: filtered out


def test_a_slow_clip_is_its_samples_at_another_rate(squeak: str) -> None:
    clip, slow = Clip("a", path=squeak, start=0.05, end=0.15), Clip("a", path=squeak, start=0.05, end=0.15, speed=0.1)
    (samples, rate), (slowed, lower) = clip.read(), slow.read()
    np.testing.assert_array_equal(samples, slowed)
    assert (rate, lower) == (RATE, RATE // 10) == (clip.native_rate(), slow.native_rate())
    assert slow.seconds() == pytest.approx(10 * clip.seconds())
    assert length_of(slow) == pytest.approx(1.0)
    assert slow.digest() != clip.digest()
    assert Clip("a", path=squeak, start=0.05, end=0.15, speed=1.0).digest() == clip.digest()
    tone = np.sin(np.arange(4410) / 5).astype(np.float32)
    odd = Clip("b", samples=tone, rate=44100, speed=0.1237)
    assert odd.native_rate() == odd.read()[1] == 5455
    assert len(odd.read(16000)[0]) == pytest.approx(len(tone) * 16000 / (44100 * 0.1237), abs=1)
    assert length_of(odd) == pytest.approx(0.1 / 0.1237)


def test_slow_sound_at_the_lower_rate_is_the_native_spectrogram(squeak: str) -> None:
    native = earmark.embed([Clip("a", path=squeak)], "logmel?rate=native").vectors
    slow = earmark.embed([Clip("a", path=squeak)], "logmel?rate=native", speed=0.1).vectors
    named = earmark.embed([Clip("a", path=squeak)], "logmel?rate=25000", speed=0.1).vectors
    np.testing.assert_array_equal(slow, named)
    assert slow.shape == native.shape


def test_clips_of_several_rates_have_no_native_one(squeak: str) -> None:
    other = Clip("b", samples=np.ones(1000, np.float32), rate=44100)
    with pytest.raises(InputError, match=r"250000 Hz \(1 clip\) and 44100 Hz \(1 clip\).*logmel\?rate=250000"):
        earmark.embed([Clip("a", path=squeak), other], "logmel?rate=native")
    with pytest.raises(InputError, match="No clip could be opened"):
        earmark.embed([Clip("a", path="nowhere.wav")], "logmel?rate=native")
    with pytest.raises(UsageError, match="needs clips that say it"):
        open_extractor("mfcc?rate=native").extract([np.ones(600, np.float32)])


def test_the_published_recipe_is_the_default() -> None:
    noise = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    for name in ("logmel", "mfcc"):
        plain, spelled = (open_extractor(spec) for spec in (name, f"{name}?rate=16000&hop=256"))
        assert plain.card == spelled.card
        np.testing.assert_array_equal(plain.extract([noise])[0].values, spelled.extract([noise])[0].values)
    assert open_extractor("mfcc?rate=96000").extract([noise])[0].values.shape == (1, 80)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf"), True, "slow"])
def test_what_is_no_speed_is_refused(speed: float) -> None:
    with pytest.raises(UsageError, match="A speed of"):
        Corpus(CorpusCard("c"), [Clip("a")]).at_speed(speed)


@pytest.mark.parametrize("options", ["rate=0", "rate=fast", "rate=16000&fmax=9000", "window=0", "fmin=-1"])
def test_what_is_no_front_end_is_refused(options: str) -> None:
    with pytest.raises(UsageError):
        open_extractor(f"logmel?{options}")
