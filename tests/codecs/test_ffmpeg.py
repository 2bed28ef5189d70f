"""Codecs whose encoders are FFmpeg as a program: AMR-WB, Speex, Vorbis."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
from tests.codecs.sounds import pulses, voice

from earmark.codecs.catalogue import open_codec
from earmark.codecs.classical.ffmpeg_program import run_program
from earmark.codecs.contract import CodecFailure
from earmark.codecs.harness import encode, round_trip


def test_amr_wb_packets_are_speech_bits_alone() -> None:
    """132 bits each 20 ms at 6.6 kbps: 17 bytes, without the byte that names the mode."""
    made = encode(open_codec("amr_wb@6.6"), voice(16000), 16000)
    assert {len(packet) for packet in made.coded.packets} == {17}
    assert made.header_bits == 8
    assert made.bits == 132 * 51  # 50 frames, and one for the delay's tail


@pytest.mark.parametrize("name", ["speex_wb@28", "amr_wb@23.85"])
def test_wide_band_is_wide_and_of_the_right_length(name: str) -> None:
    """FFmpeg as a program decodes wide-band Speex to twice its length; here it is what went in, at its pitch."""
    clip = pulses(16000, 2.0)
    heard = round_trip(open_codec(name), clip, 16000).samples
    frequencies, clean = scipy.signal.welch(clip, 16000, nperseg=1024)
    _, coded = scipy.signal.welch(heard, 16000, nperseg=1024)
    above = (frequencies > 4500) & (frequencies < 6000)
    assert 0.1 < coded[above].sum() / clean[above].sum() < 10
    assert np.corrcoef(np.log(clean[2:300]), np.log(coded[2:300]))[0, 1] > 0.9


def test_vorbis_codebooks_are_header_and_rates_rise() -> None:
    made = [encode(open_codec(f"vorbis@{rate}"), voice(44100, 2.0), 44100) for rate in (48, 64, 96, 128)]
    assert all(8 * 2000 < one.header_bits < 8 * 8000 for one in made)
    rates = [one.kbps for one in made]
    assert rates == sorted(rates)
    assert all(0.5 * nominal < rate < 1.2 * nominal for rate, nominal in zip(rates, (48, 64, 96, 128), strict=True))


def test_a_program_that_fails_is_a_failure_of_the_codec() -> None:
    import imageio_ffmpeg

    with pytest.raises(CodecFailure, match="could not encode"):
        run_program(imageio_ffmpeg.get_ffmpeg_exe(), voice(8000), 8000, ["-c:a", "no_such_encoder"], "ogg")
