"""Lyra V2 on its real weights, where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.codecs.sounds import LYRA, lag, pulses, voice

from earmark.codecs.catalogue import availability, card_of, open_codec
from earmark.codecs.harness import decode, pack, round_trip, unpack
from earmark.codecs.tokens import token_statistics
from earmark.errors import InputError

weights = pytest.mark.skipif(not LYRA.is_dir(), reason="Lyra's weights are not in ../shared/weights/lyra")


def spec(kbps: str) -> str:
    return f"lyra:{LYRA}@{kbps}"


@weights
@pytest.mark.parametrize(("kbps", "codebooks"), [("3.2", 16), ("6", 30), ("9.2", 46)])
def test_rates_are_exact_and_instances_agree(kbps: str, codebooks: int) -> None:
    codec = open_codec(spec(kbps))
    clip = voice(16000)
    made = round_trip(codec, clip, 16000)
    assert made.coded.tokens is not None
    assert made.coded.tokens.shape == (codebooks, 50)
    assert made.kbps == pytest.approx(float(kbps))
    assert codec.card.name == f"lyra@{kbps}"  # where the weights lie is nobody's business
    again = round_trip(codec, clip, 16000)  # the networks have forgotten the first time
    np.testing.assert_array_equal(again.samples, made.samples)
    elsewhere = decode(open_codec(spec(kbps)), unpack(pack(made.coded)), 16000, len(clip))
    np.testing.assert_array_equal(elsewhere, made.samples)


@weights
def test_the_delay_is_none_and_more_codebooks_keep_more() -> None:
    clip = pulses(16000, 2.0)
    kept = []
    for kbps in ("3.2", "6", "9.2"):
        heard = round_trip(open_codec(spec(kbps)), clip, 16000).samples
        assert abs(lag(clip, heard, 16000)) <= 1
        kept.append(np.corrcoef(clip, heard)[0, 1])
    assert kept == sorted(kept)
    assert kept[-1] > 0.5


@weights
def test_other_rates_short_clips_and_silence() -> None:
    codec = open_codec(spec("3.2"))
    for clip, rate in ((voice(44100), 44100), (voice(8000), 8000), (voice(16000)[:1], 16000), (np.zeros(1600), 16000)):
        made = round_trip(codec, clip, rate)
        assert len(made.samples) == len(clip)


@weights
def test_codebooks_are_used() -> None:
    codec = open_codec(spec("3.2"))
    tokens = [codec.encode(voice(16000, 3.0, seed)).tokens for seed in range(2)]
    found = token_statistics([clip for clip in tokens if clip is not None], codec.card.codebook_sizes, 50.0)
    assert found.nominal_kbps == pytest.approx(3.2)
    assert 0.5 * 3.2 < found.entropy_kbps < 3.2
    assert found.n_frames == 300


@weights
def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EARMARK_LYRA", str(LYRA))
    assert availability(card_of("lyra@3.2")) == ""
    assert open_codec("lyra@3.2").card.codebooks == 16


def test_a_folder_without_weights_is_told(tmp_path: Path) -> None:
    (tmp_path / "quantizer.tflite").write_bytes(b"")
    with pytest.raises(InputError, match=r"holds no soundstream_encoder\.tflite, lyragan\.tflite: copy"):
        open_codec(f"lyra:{tmp_path}@3.2")
