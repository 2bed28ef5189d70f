"""One delay for a codec: found on shifted clips, on clips without a waveform, and on real codecs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codecs.pairs import delayed, noisy, scrambled, voice

from earmark.codecs.alignment import FEWEST_CLIPS, aligned, calibrate, declared
from earmark.codecs.contract import CodecCard
from earmark.codecs.signal import measure
from earmark.errors import InputError

RATE = 16000
CLIPS = [voice(RATE, 1.5, pitch, seed) for seed, pitch in enumerate((95.0, 120.0, 150.0, 190.0, 230.0))]


def shifted(samples, lag):
    """Later by `lag` samples, whole or not, by a turn of every frequency in a long silence."""
    size = 2 * len(samples)
    turns = 2 * np.pi * np.arange(size // 2 + 1) / size
    spectrum = np.fft.rfft(np.pad(samples.astype(np.float64), (size // 4, size - len(samples) - size // 4)))
    moved = np.fft.irfft(spectrum * np.exp(-1j * turns * lag), size)
    return moved[size // 4 : size // 4 + len(samples)].astype(np.float32)


# --- finding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [0, 1, 22, 552.5, 40.25, -17, -300.75])
def test_a_shift_is_found_to_a_hundredth_of_a_sample(lag):
    found = calibrate([(clip, shifted(clip, lag)) for clip in CLIPS], RATE)
    assert found.method == "waveform"
    assert found.seconds * RATE == pytest.approx(lag, abs=0.02)
    assert found.n == 5
    assert found.spread_seconds < 1e-5
    assert found.reason == ""


@pytest.mark.parametrize("gain", [0.1, -1.0, 30.0])
def test_neither_gain_nor_polarity_nor_noise_hides_a_shift(gain):
    pairs = [(clip, gain * noisy(delayed(clip, 123), 0.02, seed)) for seed, clip in enumerate(CLIPS)]
    found = calibrate(pairs, RATE)
    assert (found.method, found.seconds) == ("waveform", pytest.approx(123 / RATE, abs=0.1 / RATE))


def test_whole_samples_stay_whole():
    assert calibrate([(clip, delayed(clip, 40)) for clip in CLIPS], RATE).seconds == 40 / RATE
    assert calibrate([(clip, clip) for clip in CLIPS], RATE).seconds == 0.0


@pytest.mark.parametrize("lag", [0, 320])
def test_a_vocoder_is_aligned_by_its_envelope(lag):
    pairs = [(clip, delayed(scrambled(clip, RATE, seed), lag)) for seed, clip in enumerate(CLIPS)]
    found = calibrate(pairs, RATE)
    assert found.method == "envelope"
    assert found.seconds == pytest.approx(lag / RATE, abs=0.002)
    assert found.reason


def test_the_median_of_the_clips_survives_one_that_is_wrong():
    pairs = [(clip, delayed(clip, 80)) for clip in CLIPS]
    pairs[2] = (CLIPS[2], CLIPS[3])
    found = calibrate(pairs, RATE)
    assert found.seconds == 80 / RATE


def test_few_clips_are_said_to_be_few_and_silent_ones_left_out():
    silence = np.zeros(RATE, np.float32)
    found = calibrate([(CLIPS[0], delayed(CLIPS[0], 9)), (silence, silence), (CLIPS[1], silence[:1])], RATE)
    assert (found.n, found.seconds) == (1, 9 / RATE)
    assert found.n < FEWEST_CLIPS
    assert found.reason == "calibrated on 1 clip only"
    with pytest.raises(InputError, match="silent"):
        calibrate([(silence, silence)], RATE)


@pytest.mark.parametrize("lag", [4000, 4800])
def test_a_delay_beyond_the_search_is_not_made_up(lag):
    """The best lag is then an end of the search, the same on every clip: agreement that means nothing."""
    late = [np.pad(noisy(clip), (lag, 0)) for clip in CLIPS]
    found = calibrate(list(zip(CLIPS, late, strict=True)), RATE)
    assert found.seconds == 0.0
    assert "no lag within 200 ms fits" in found.reason
    near = calibrate([(clip, np.pad(noisy(clip), (3100, 0))) for clip in CLIPS], RATE)
    assert (near.seconds * RATE, near.reason) == (pytest.approx(3100, abs=0.01), "")


def test_a_declared_delay_is_taken_as_it_is():
    assert declared(CodecCard(name="a@1", family="a")) is None
    found = declared(CodecCard(name="mp3@32", family="mp3", rate=32000, delay=1105))
    assert (found.method, found.seconds) == ("declared", 1105 / 32000)


# --- applying -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [0, 37, 300, 552.5, -12, -3.3])
def test_alignment_undoes_a_shift(lag):
    clip = CLIPS[0]
    back = aligned(shifted(clip, lag), lag / RATE, RATE, len(clip))
    inner = slice(400, len(clip) - 700)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back[inner], clip[inner], atol=2e-3 if lag % 1 else 1e-6)


def test_whole_samples_are_moved_and_not_touched():
    clip = CLIPS[1]
    np.testing.assert_array_equal(aligned(clip, 0.0, RATE, len(clip)), clip)
    np.testing.assert_array_equal(aligned(clip, 5 / RATE, RATE, len(clip)), np.pad(clip[5:], (0, 5)))
    np.testing.assert_array_equal(aligned(clip, -5 / RATE, RATE, len(clip)), np.pad(clip[:-5], (5, 0)))


def test_the_length_is_what_was_asked_for():
    clip = CLIPS[1]
    for length in (1, 100, len(clip), len(clip) + 333):
        for lag in (0, 7, -7, 4.5, 10 * len(clip), -10 * len(clip)):
            assert len(aligned(clip, lag / RATE, RATE, length)) == length
    assert not aligned(clip, 10.0, RATE, 100).any()


# --- real codecs ----------------------------------------------------------------------------------------------------


def coded(name, rate, clip, **options):
    """A clip through an encoder and a decoder of FFmpeg by packets alone: what nobody has trimmed."""
    av = pytest.importorskip("av")
    encoder = av.CodecContext.create(name, "w")
    encoder.sample_rate, encoder.layout, encoder.format = rate, "mono", options.get("format", "s16")
    encoder.bit_rate = options.get("bit_rate", 32000)
    encoder.open()
    frame_size = encoder.frame_size or 320
    kind = encoder.format.name
    samples = np.round(clip * 32767).astype(np.int16) if kind.startswith("s16") else clip.astype(np.float32)
    packets = []
    for start in range(0, len(samples), frame_size):
        block = samples[start : start + frame_size]
        block = np.pad(block, (0, frame_size - len(block)))
        frame = av.AudioFrame.from_ndarray(block[None], format=kind, layout="mono")
        frame.sample_rate, frame.pts = rate, start
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    decoder = av.CodecContext.create(options.get("decoder", name), "r")
    decoder.sample_rate, decoder.layout = rate, "mono"
    if encoder.extradata:
        decoder.extradata = encoder.extradata
    frames = []
    for packet in packets:
        frames += decoder.decode(av.Packet(bytes(packet)))
    frames += decoder.decode(None)
    pieces = [frame.to_ndarray().reshape(-1) for frame in frames]
    heard = np.concatenate(pieces)
    return heard.astype(np.float32) / (32768 if heard.dtype == np.int16 else 1)


@pytest.mark.parametrize(
    ("name", "rate", "options", "lag"),
    [
        ("libmp3lame", 32000, {"format": "s16p", "decoder": "mp3float"}, 1105),
        ("aac", 32000, {"format": "fltp"}, 1024),
        ("g722", 16000, {"bit_rate": 64000}, 22),
    ],
)
def test_the_delay_of_real_codecs(name, rate, options, lag):
    clips = [voice(rate, 1.5, pitch, seed) for seed, pitch in enumerate((95.0, 120.0, 150.0, 190.0, 230.0))]
    found = calibrate([(clip, coded(name, rate, clip, **options)) for clip in clips], rate)
    assert found.method == "waveform"
    assert found.seconds * rate == pytest.approx(lag, abs=0.25)


def test_codec2_keeps_its_intelligibility_after_alignment_only():
    pycodec2 = pytest.importorskip("pycodec2")
    rate = 8000
    clips = [voice(rate, 1.6, pitch, seed) for seed, pitch in enumerate((95.0, 110.0, 130.0, 150.0, 190.0))]
    pairs = []
    for clip in clips:
        codec = pycodec2.Codec2(3200)
        size = codec.samples_per_frame()
        samples = (clip[: len(clip) // size * size] * 32767).astype(np.int16)
        heard = [codec.decode(codec.encode(samples[at : at + size])) for at in range(0, len(samples), size)]
        pairs.append((clip[: len(samples)], np.concatenate(heard).astype(np.float32) / 32768))
    found = calibrate(pairs, rate)
    assert found.method == "envelope"
    assert 0.010 < found.seconds < 0.030

    def mean_stoi(delay):
        return np.mean([measure(a, aligned(b, delay, rate, len(a)), rate, ("stoi",))["stoi"].value for a, b in pairs])

    assert mean_stoi(found.seconds) > mean_stoi(0.0) + 0.05
