"""`definitions="reference"` against Codec-SUPERB's definitions, written down a second time, on coded recordings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.codecs.recordings import READER, recording

torch = pytest.importorskip("torch")
pytest.importorskip("librosa")

from tests.codecs import published  # noqa: E402

from earmark.codecs.catalogue import open_codec  # noqa: E402
from earmark.codecs.harness import round_trip  # noqa: E402
from earmark.codecs.signal import Sound, _published, measure  # noqa: E402
from earmark.codecs.signal._julius import resampled  # noqa: E402

FIVE = ("stft_distance", "mel_distance", "pesq", "stoi", "f0_corr")
NEAR = dict.fromkeys(FIVE, 1e-6) | {"pesq": 1e-3}  # PESQ of samples that differ in the last bit differs this much
SPEECH = READER.format("0880")
RADIO = "codec2/wav/ve9qrp.wav"
CASES = {
    "16 kHz, 0.2 s": ("opus@12", SPEECH, {"start": 1.0, "seconds": 0.2}),
    "16 kHz, 0.45 s": ("mulaw@64", SPEECH, {"start": 1.0, "seconds": 0.45}),
    "16 kHz": ("codec2@1.2", READER.format("0930"), {}),
    "16 kHz, wide band": ("amr_wb@12.65", READER.format("0880"), {}),
    "8 kHz": ("amr_nb@4.75", "codec2/wav/hts1a.wav", {}),
    "8 kHz, radio": ("opus@6", "codec2/wav/vk5qi.wav", {"seconds": 6.0}),
    "22.05 kHz": ("mp3@32", SPEECH, {"rate": 22050}),
    "44.1 kHz, speech": ("g722@64", SPEECH, {"rate": 44100}),
    "48 kHz": ("opus@24", SPEECH, {"rate": 48000}),
    "44.1 kHz, guitar": ("aac@32", "sonic-pi/samples/guit_em9.flac", {"seconds": 4.0}),
    "44.1 kHz, drums": ("mp3@128", "sonic-pi/samples/loop_amen.flac", {}),
    "44.1 kHz, a drum": ("opus@24", "sonic-pi/samples/tabla_re.flac", {}),
    "ESC-50": ("mp3@32", "esc50:7", {}),
    "ESC-50, coded as speech": ("codec2@3.2", "esc50:900", {}),
    "8 kHz, 35 s": ("speex@8", RADIO, {"seconds": 35.0}),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small convolutions on many threads wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=CASES)
def pair(request):
    """A recording, what a codec made of it, and its rate."""
    codec, name, part = CASES[request.param]
    clean, rate = recording(name, **part)
    return clean, round_trip(open_codec(codec), clean, rate).samples, rate


def test_the_five_metrics_are_those_of_the_authors(pair):
    clean, heard, rate = pair
    wanted = published.expected(clean, heard, rate)
    found = measure(clean, heard, rate, FIVE, definitions="reference")
    for metric, value in wanted.items():
        if value is None:
            assert found[metric].value is None
            assert found[metric].reason.endswith(f"Codec-SUPERB's code enters {_published.ENTERED[metric]}")
        else:
            assert found[metric].value == pytest.approx(value, rel=0, abs=NEAR[metric]), metric


def test_pesq_is_called_once_with_the_samples_of_the_authors(pair, monkeypatch):
    import pesq

    clean, heard, rate = pair
    calls = []

    def noted(rate, *waveforms):
        calls.append((rate, *waveforms))
        return 2.5

    monkeypatch.setattr(pesq, "pesq", noted)
    monkeypatch.setattr(_published, "_apart", _published._wide_band)  # where it would not be seen
    assert measure(clean, heard, rate, ("pesq",), definitions="reference")["pesq"].value == 2.5
    [(at, *given, mode)] = calls
    assert (at, mode) == (16000, "wb")
    length = max(len(clean), len(heard))
    for samples, handed in zip((clean, heard), given, strict=True):
        theirs = published.at_16_khz(torch.from_numpy(np.pad(samples, (0, length - len(samples)))), rate, torch.float32)
        assert handed.dtype == np.float32
        np.testing.assert_allclose(handed, theirs.numpy(), rtol=0, atol=8e-7 * np.abs(samples).max())


def test_the_shorter_clip_is_padded():
    clean, rate = recording(SPEECH, rate=22050, seconds=2.0)
    heard = (0.9 * clean).astype(np.float32)
    for a, b in ((clean, heard[:-777]), (clean[:-777], heard)):
        wanted = published.expected(a, b, rate)
        found = measure(Sound(a, rate), b, rate, FIVE, definitions="reference")
        for metric, value in wanted.items():
            assert found[metric].value == pytest.approx(value, rel=0, abs=NEAR[metric]), metric


def test_bands_that_hold_nothing_are_rounding_to_stoi():
    """A bass note has no treble: there the code correlates what float32 left over, with itself on no two processors."""
    clean, rate = recording("sonic-pi/samples/bass_woodsy_c.flac")
    heard = round_trip(open_codec("mulaw@64"), clean, rate).samples
    value = measure(clean, heard, rate, ("stoi",), definitions="reference")["stoi"].value
    pair = [torch.from_numpy(np.pad(samples, (0, len(heard) - len(samples)))) for samples in (clean, heard)]
    values = [
        published.stoi(*(published.at_16_khz(x, rate, sums).numpy() for x in pair))
        for sums in (torch.float32, torch.float64)
    ]
    assert values[0] != pytest.approx(values[1], abs=1e-6)
    assert values == pytest.approx([value, value], abs=2e-4)


@pytest.mark.parametrize("rate", [6000, 8000, 11025, 22050, 24000, 32000, 44100, 48000, 96000])
def test_the_resampler_is_that_of_julius(rate):
    """Noise at half of full scale: one unit in the last place of the sums, and one of the taps."""
    rng = np.random.default_rng(rate)
    for length in (1, 2, 17, 3001, 2 * rate + 1):
        samples = rng.uniform(-0.5, 0.5, length).astype(np.float32)
        exact = published.at_16_khz(torch.from_numpy(samples), rate).numpy()
        np.testing.assert_allclose(resampled(samples, rate, 16000), exact, rtol=0, atol=3e-7)


def test_the_length_is_rounded_as_julius_rounds_it():
    """float32 has no room for a fraction of a sample near 1e5: 441 samples of 44.1 kHz less one round up there."""
    lengths = range(300_000, 300_441)
    sizes = {n: int(torch.floor(torch.tensor(160 * n / 441))) for n in lengths}
    assert any(sizes[n] != math.floor(160 * n / 441) for n in lengths)
    silence = np.zeros(300_441, np.float32)
    for n in lengths[::37]:
        assert len(resampled(silence[:n], 44100, 16000)) == sizes[n]


def test_a_rate_without_a_common_divisor_takes_no_more_memory():
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 4410).astype(np.float32)
    assert len(resampled(samples, 44101, 16000)) == 1599  # a matrix of all taps is 2.8 GB


def test_a_clip_that_ends_pesqs_process_has_failed(monkeypatch):
    monkeypatch.setattr(_published, "_SCORE", "import os; os.kill(os.getpid(), 11)  # %d")
    clean, rate = recording(RADIO, seconds=21.0)
    found = measure(clean, 0.5 * clean, rate, ("pesq", "stoi"), definitions="reference")
    assert found["pesq"].status == "failed"
    assert "PESQ ended its process (code -11) on a clip of 21 s" in found["pesq"].reason
    assert found["stoi"].status == "ok"


def test_what_is_no_sound_says_which_value_the_code_enters():
    clean, rate = recording(SPEECH, seconds=2.0)
    silence = np.zeros_like(clean)
    broken = np.where(np.arange(len(clean)) == 7, np.nan, clean).astype(np.float32)
    for a, b, status, values in (
        (clean, silence, "failed", {"pesq": "1.0", "stoi": "0", "f0_corr": "0.0"}),
        (silence, clean, "not_applicable", {"pesq": "1.0", "stoi": "0", "f0_corr": "0.0"}),
        (silence, silence, "not_applicable", {"stft_distance": "0", "pesq": "1.0", "stoi": "0"}),
        (clean, broken, "failed", {"mel_distance": "nan, which its means leave out", "pesq": "1.0", "stoi": "0.0"}),
        (clean, np.full_like(clean, 1e-6), "failed", {"pesq": "1.035"}),
    ):
        found = measure(a, b, rate, FIVE, definitions="reference")
        assert {one.status for one in found.values()} == {status}
        for name, value in values.items():
            assert found[name].reason.endswith(f"; Codec-SUPERB's code enters {value}")
        assert not any("SUPERB" in one.reason for one in measure(a, b, rate, FIVE).values())
