"""Signal metrics: ceilings, statuses, directions, and the packages and definitions they stand for."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from tests.codecs.pairs import chord, delayed, low_passed, noise, noisy, voice

from earmark.codecs import kernels
from earmark.codecs.signal import CORE, EXTRA, METRICS, Sound, measure, require_packages
from earmark.errors import InputError, MissingExtra, UsageError
from earmark.scores import METRICS as FACTS

RATE = 16000
VOICE = voice(RATE)
FIVE = ("stft_distance", "mel_distance", "pesq", "stoi", "f0_corr")


def statuses(measured):
    return {name: found.status for name, found in measured.items()}


def test_every_metric_is_known_to_score_tables():
    assert set(METRICS) == {*CORE, *EXTRA}
    assert set(METRICS) <= set(FACTS)


# --- the ceiling ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definitions", ["mended", "reference"])
def test_a_codec_that_changes_nothing_scores_the_ceiling(definitions):
    found = measure(VOICE, VOICE.copy(), RATE, definitions=definitions)
    assert found["stft_distance"].value == 0.0
    assert found["mel_distance"].value == 0.0
    assert found["pesq"].value == pytest.approx(4.644, abs=5e-4)
    # The reference adds 1e-10 to denominators.
    assert found["stoi"].value == pytest.approx(1.0, abs=1e-12 if definitions == "mended" else 1e-7)
    assert found["f0_corr"].value == pytest.approx(1.0, abs=1e-12)
    assert found["f0_voicing_error"].value == 0.0
    assert found["si_sdr"].status == "not_applicable"
    assert "infinite" in found["si_sdr"].reason


def test_visqol_and_zimtohrli_reach_their_ceilings_and_fall_below_them():
    metrics = ("visqol", "zimtohrli")
    same, worse = (measure(VOICE, heard, RATE, metrics) for heard in (VOICE.copy(), noisy(VOICE, 0.1)))
    assert same["zimtohrli"].value == pytest.approx(5.0, abs=0.01)
    assert same["visqol"].value > 4.0
    assert all(worse[name].value < same[name].value - 0.5 for name in metrics)
    audio = measure(VOICE, noisy(VOICE, 0.1), RATE, ("visqol",), category="audio")["visqol"].value
    assert audio != worse["visqol"].value


def test_dnsmos_hears_the_decoded_clip_alone():
    clip = voice(RATE, 4.6)  # twice that is one window of the model
    found = measure(clip, noisy(clip, 0.1), RATE, ("dnsmos", "dnsmos_p808"))
    assert all(1.0 <= one.value <= 5.0 for one in found.values())
    # Beyond full scale, which the package refuses; the reference plays no part.
    loud = measure(0.1 * clip, 9.0 * noisy(clip, 0.1), RATE, ("dnsmos",))["dnsmos"]
    assert loud.value != found["dnsmos"].value


# --- worse is worse ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["stft_distance", "mel_distance", "pesq", "stoi", "si_sdr"])
def test_more_noise_is_worse(metric):
    values = [measure(VOICE, noisy(VOICE, level), RATE, (metric,))[metric].value for level in (0.003, 0.03, 0.3)]
    better_first = values if FACTS[metric].higher_is_better else values[::-1]
    assert better_first == sorted(better_first, reverse=True)
    assert len(set(values)) == 3


def test_pitch_that_goes_its_own_way_is_seen_frame_by_frame():
    other = voice(RATE, seed=2)
    found = measure(VOICE, other, RATE, ("f0_corr", "f0_voicing_error"))
    assert found["f0_corr"].value < 0.5
    # Warping finds a way through it: that is why the default is another.
    warped = measure(VOICE, other, RATE, ("f0_corr",), definitions="reference")["f0_corr"].value
    assert warped > found["f0_corr"].value + 0.3


def test_voicing_error_counts_frames_that_lost_their_voice():
    half = VOICE.copy()
    half[len(half) // 2 :] = 0.05 * noise(len(half) - len(half) // 2, 9)
    found = measure(VOICE, half, RATE, ("f0_voicing_error", "f0_corr"))
    assert 0.2 < found["f0_voicing_error"].value < 0.6
    assert found["f0_corr"].value > 0.99


def test_si_sdr_is_what_noise_of_a_known_level_makes_it():
    rng = np.random.default_rng(3)
    clean = rng.standard_normal(RATE)
    error = rng.standard_normal(RATE)
    clean -= clean.mean()
    error -= error.mean()
    error -= (error @ clean) / (clean @ clean) * clean
    error *= np.sqrt((clean @ clean) / (error @ error)) / 10  # 20 dB below
    value = measure(clean, 0.3 * (clean + error), RATE, ("si_sdr",))["si_sdr"].value
    assert value == pytest.approx(20.0, abs=1e-4)


def test_six_decibels_less_are_a_distance_and_with_gain_matched_none():
    quieter = 0.5 * VOICE
    plain = measure(VOICE, quieter, RATE)
    matched = measure(VOICE, quieter, RATE, gain_match=True)
    # Two resolutions, each 20 log10 2 dB = 0.602 in units of log10 of power, plus a linear term.
    assert plain["stft_distance"].value > 2 * 2 * np.log10(2) - 0.2
    assert matched["stft_distance"].value < 1e-4
    assert matched["mel_distance"].value < 1e-4
    for found in (plain, matched):
        assert found["pesq"].value == pytest.approx(4.644, abs=5e-4)
        assert found["stoi"].value == pytest.approx(1.0, abs=1e-6)
        assert found["f0_corr"].value == pytest.approx(1.0, abs=1e-6)


def test_an_inverted_waveform_sounds_the_same_to_all_but_the_waveform():
    found = measure(VOICE, -VOICE, RATE, ("stft_distance", "stoi", "f0_voicing_error"))
    assert found["stft_distance"].value == pytest.approx(0.0, abs=1e-5)
    assert found["stoi"].value == pytest.approx(1.0, abs=1e-9)


def test_fifty_milliseconds_ruin_stoi_which_is_why_clips_are_aligned():
    found = measure(VOICE, delayed(VOICE, 800), RATE, ("stoi", "stft_distance"))
    assert found["stoi"].value < 0.8
    assert found["stft_distance"].value > 1.0


# --- what has no number -----------------------------------------------------------------------------------------

SILENCE = np.zeros(RATE, np.float32)
SHORT = VOICE[4000:4160]  # 10 ms


@pytest.mark.parametrize("definitions", ["mended", "reference"])
@pytest.mark.parametrize(
    ("clean", "heard", "status", "said"),
    [
        (SILENCE, SILENCE, "not_applicable", "reference is silent"),
        (SILENCE, VOICE[:RATE], "not_applicable", "reference is silent"),
        (VOICE, np.zeros_like(VOICE), "failed", "decoded clip is silent"),
        (VOICE, np.full_like(VOICE, 1e-6), "failed", "decoded clip is silent"),
        (VOICE, np.where(np.arange(len(VOICE)) == 7, np.nan, VOICE), "failed", "1 decoded samples are NaN"),
        (VOICE, np.full_like(VOICE, np.inf), "failed", "infinite"),
        (VOICE, np.stack([VOICE, VOICE]), "failed", "shape (2, 32000)"),
        (VOICE, (VOICE * 32767).astype(np.int16), "failed", "int16"),
        (VOICE, np.empty(0, np.float32), "failed", ""),
    ],
    ids=["silence", "sound-from-silence", "silent", "nearly-silent", "nan", "inf", "stereo", "int16", "empty"],
)
def test_what_is_no_sound_has_a_status_everywhere_and_no_number(clean, heard, status, said, definitions):
    found = measure(clean, heard, RATE, (*CORE, *EXTRA), definitions=definitions)
    assert set(statuses(found).values()) == {status}
    assert all(one.value is None and said in one.reason for one in found.values())


def test_a_wrong_length_fails_and_the_reference_pads_it():
    assert set(statuses(measure(VOICE, VOICE[:-5], RATE)).values()) == {"failed"}
    padded = measure(VOICE, VOICE[:-5], RATE, FIVE, definitions="reference")
    assert set(statuses(padded).values()) == {"ok"}
    assert padded["stft_distance"].value > 0.0


@pytest.mark.parametrize("definitions", ["mended", "reference"])
def test_ten_milliseconds_are_too_short_for_all_but_the_waveform(definitions):
    found = measure(SHORT, noisy(SHORT), RATE, (*CORE, *EXTRA), definitions=definitions)
    numbers = {name for name, one in found.items() if one.status == "ok"}
    assert numbers == {"si_sdr"}
    assert all(one.status == "not_applicable" for name, one in found.items() if name != "si_sdr")


@pytest.mark.parametrize("seconds", [0.03, 0.1, 0.2, 0.24, 0.3, 0.5])
def test_no_length_between_a_moment_and_a_second_ends_in_a_failure(seconds):
    clip = voice(RATE)[4000 : 4000 + round(seconds * RATE)]
    found = measure(clip, noisy(clip, 0.003), RATE)
    assert "failed" not in statuses(found).values(), found
    assert (found["pesq"].status == "ok") <= (seconds >= 0.25)


def test_noise_against_itself_has_no_pitch_and_a_perfect_spectrum():
    hiss = (0.3 * noise(2 * RATE, 5)).astype(np.float32)
    found = measure(hiss, hiss.copy(), RATE)
    assert found["f0_corr"].status == "not_applicable"
    assert "voiced" in found["f0_corr"].reason
    assert found["f0_voicing_error"].value == 0.0
    assert found["stft_distance"].value == 0.0


def test_a_tone_that_does_not_move_has_no_pitch_correlation():
    tone = (0.3 * np.sin(2 * np.pi * 200 * np.arange(RATE) / RATE)).astype(np.float32)
    found = measure(tone, noisy(tone, 1e-4), RATE, ("f0_corr",))["f0_corr"]
    assert (found.status, found.reason) == ("not_applicable", "the pitch of the reference does not move")


def test_a_decoder_that_whispers_has_failed_at_pitch():
    whisper = (VOICE != 0) * 0.1 * noise(len(VOICE), 4)
    for definitions in ("mended", "reference"):
        found = measure(VOICE, whisper, RATE, ("f0_corr",), definitions=definitions)["f0_corr"]
        assert found.status == "failed"
        assert "voiced" in found.reason


def test_long_clips_are_scored_in_parts_by_pesq():
    parts = [voice(RATE, 12.0, seed=seed) for seed in (0, 1)]
    heard = [noisy(part, 0.02, seed) for seed, part in enumerate(parts, 7)]
    whole = measure(np.concatenate(parts), np.concatenate(heard), RATE, ("pesq",))["pesq"].value
    each = [measure(a, b, RATE, ("pesq",))["pesq"].value for a, b in zip(parts, heard, strict=True)]
    assert whole == pytest.approx(np.mean(each), abs=1e-9)


def test_one_metric_that_breaks_does_not_lose_the_others(monkeypatch):
    import pesq

    def broken(*_):
        raise ValueError("cannot convert float NaN to integer")

    monkeypatch.setattr(pesq, "pesq", broken)
    found = measure(VOICE, noisy(VOICE), RATE)
    assert found["pesq"].status == "failed"
    assert "cannot convert float NaN" in found["pesq"].reason
    assert found["stoi"].status == found["stft_distance"].status == "ok"


# --- the call ---------------------------------------------------------------------------------------------------


def test_a_prepared_reference_gives_the_same_numbers_for_every_codec_and_order():
    clean = Sound(VOICE, RATE)
    for heard in (noisy(VOICE), low_passed(VOICE, RATE)):
        assert measure(clean, heard, RATE) == measure(VOICE, heard, RATE)
    forwards = measure(VOICE, noisy(VOICE), RATE, FIVE)
    for order in itertools.islice(itertools.permutations(FIVE), 0, None, 31):
        assert measure(VOICE, noisy(VOICE), RATE, order, definitions="mended") == forwards


def test_a_missing_package_is_an_error_of_the_call_and_not_of_the_clip(monkeypatch):
    monkeypatch.setitem(sys.modules, "pesq", None)
    with pytest.raises(MissingExtra, match=r'PESQ scores need `pip install "earmark\[codecs\]"`'):
        measure(VOICE, noisy(VOICE), RATE, ("stoi", "pesq"))
    with pytest.raises(MissingExtra, match="PESQ"):
        require_packages(CORE)
    require_packages(("stoi", "si_sdr"))


def test_wrong_calls_are_refused_with_the_remedy():
    with pytest.raises(UsageError, match=r'"pesk".*Did you mean "pesq"'):
        measure(VOICE, VOICE, RATE, ("pesk",))
    with pytest.raises(UsageError, match="definitions"):
        measure(VOICE, VOICE, RATE, definitions="exact")
    with pytest.raises(UsageError, match="category"):
        measure(VOICE, VOICE, RATE, category="birds")
    with pytest.raises(UsageError, match="8000 Hz"):
        measure(Sound(VOICE, 8000), VOICE, RATE)
    with pytest.raises(InputError, match="NaN"):
        measure(np.full(RATE, np.nan), VOICE[:RATE], RATE)
    with pytest.raises(InputError, match="one row"):
        Sound(np.zeros((2, 8)), RATE)


# --- against the packages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [8000, 10000, 16000, 22050, 44100])
def test_stoi_is_that_of_pystoi(rate):
    import pystoi

    for level, seed in ((0.01, 1), (0.2, 2)):
        clean = voice(rate, 1.5, seed=seed)
        heard = noisy(clean, level, seed)
        value = measure(clean, heard, rate, ("stoi",))["stoi"].value
        assert value == pytest.approx(pystoi.stoi(clean, heard, rate), abs=1e-6)


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100, 48000])
def test_the_way_to_10_khz_is_that_of_scipy(rate):
    from scipy.signal import resample_poly

    from earmark.codecs.signal._intelligibility import _at_10_khz, _low_pass

    up, down = (number // np.gcd(10000, rate) for number in (10000, rate))
    for length in (1, 17, 5000, 12345):
        samples = noise(length, rate).astype(np.float32)
        theirs = resample_poly(samples.astype(np.float64), up, down, window=_low_pass(up, down))
        np.testing.assert_allclose(_at_10_khz(samples, rate), theirs, atol=1e-12)


def test_stoi_is_not_applicable_where_pystoi_warns():
    import pystoi

    clean = voice(RATE, 0.45)
    heard = noisy(clean)
    with pytest.warns(RuntimeWarning, match="Not enough STFT frames"):
        assert pystoi.stoi(clean, heard, RATE) == 1e-5
    assert measure(clean, heard, RATE, ("stoi",))["stoi"].status == "not_applicable"


def test_warping_follows_the_path_of_librosa():
    librosa = pytest.importorskip("librosa")
    rng = np.random.default_rng(6)
    for n, m in ((1, 1), (1, 7), (9, 4), (60, 75)):
        # Whole numbers make ties, which must be broken the same way.
        a, b = rng.integers(0, 6, n).astype(float), rng.integers(0, 6, m).astype(float)
        _, path = librosa.sequence.dtw(a[None], b[None])
        np.testing.assert_array_equal(kernels.warping_path(a, b), path[::-1])


def test_mel_bands_are_those_of_librosa():
    librosa = pytest.importorskip("librosa")
    from earmark.codecs.signal._spectral import mel_bank

    for rate, window, bands in ((16000, 2048, 150), (44100, 512, 80)):
        theirs = librosa.filters.mel(sr=rate, n_fft=window, n_mels=bands)
        np.testing.assert_allclose(mel_bank(rate, window, bands).T, theirs, atol=1e-7)


def test_music_has_all_five():
    music = chord(44100)
    found = measure(music, noisy(music, 0.001), 44100, FIVE, category="music")
    assert set(statuses(found).values()) == {"ok"}, found


# --- what a review tried -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.1, -1e-3])
def test_a_constant_is_silence_at_any_level(level):
    """Its mean gone, nothing is left: a ratio of nothing to nothing must not be called a perfect copy."""
    heard = measure(VOICE, np.full_like(VOICE, level), RATE)
    assert set(statuses(heard).values()) == {"failed"}
    clean = measure(np.full_like(VOICE, level), VOICE, RATE)
    assert set(statuses(clean).values()) == {"not_applicable"}


@pytest.mark.parametrize("gain", [0.3, 3.0, -0.7, 1.0])
def test_a_copy_at_another_level_has_no_ratio_but_sixteen_bits_have(gain):
    """float32 rounds a product: 152 dB that would rule the mean over clips."""
    found = measure(VOICE, (np.float32(gain) * VOICE), RATE, ["si_sdr"])["si_sdr"]
    assert (found.value, found.status) == (None, "not_applicable")
    rounded = measure(VOICE, (np.rint(VOICE * 32768) / 32768).astype(np.float32), RATE, ["si_sdr"])["si_sdr"]
    assert 60 < rounded.value < 110


def test_who_is_to_blame_for_a_pitch_that_does_not_move():
    """The reference glides and then holds a note; a decoder that keeps the note alone has failed."""
    time = np.arange(2 * RATE) / RATE
    pitch = np.where(time < 1.0, 110.0 + 90.0 * time, 200.0)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    clean = (0.1 * sum(np.sin(k * phase) / k for k in range(1, 15))).astype(np.float32)
    heard = np.where(time > 1.1, clean, 1e-3 * noise(len(clean), 0)).astype(np.float32)
    found = measure(clean, heard, RATE, ["f0_corr"])["f0_corr"]
    assert (found.value, found.status) == (None, "failed")
    assert "does not move" in found.reason
    held = np.tile(clean[RATE + RATE // 4 : 2 * RATE], 2)
    assert measure(held, held.copy(), RATE, ["f0_corr"])["f0_corr"].status == "not_applicable"
