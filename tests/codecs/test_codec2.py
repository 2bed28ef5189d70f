"""Codec 2: bits that do not fill bytes, and a decoder with a generator that cannot be seeded."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.codecs.sounds import voice

from earmark.codecs.catalogue import card_of, open_codec
from earmark.codecs.classical import codec2_decoder
from earmark.codecs.classical.codec2 import Codec2
from earmark.codecs.harness import encode, round_trip

BITS = {0.7: 28, 1.2: 48, 1.3: 52, 1.4: 56, 1.6: 64, 2.4: 48, 3.2: 64}


@pytest.mark.parametrize(("kbps", "bits"), BITS.items())
def test_bits_are_those_of_the_mode_and_not_of_its_bytes(kbps: float, bits: int) -> None:
    name = f"codec2@{kbps:g}"
    made = encode(open_codec(name), voice(8000, 2.0), 8000)
    frames = 2.0 * (card_of(name).frame_rate or 0) + 1  # and one to flush the synthesis
    assert made.bits == bits * frames
    assert all(len(packet) == (bits + 7) // 8 for packet in made.coded.packets)
    # The bits behind the last are not used: nothing would be lost by not sending them.
    assert all(packet[-1] & ((1 << (-bits % 8)) - 1) == 0 for packet in made.coded.packets)


def test_decoding_twice_in_one_process_gives_the_same() -> None:
    codec = open_codec("codec2@0.7")
    clip = (0.1 * np.random.default_rng(0).standard_normal(8000)).astype(np.float32)
    first = round_trip(codec, clip, 8000).samples
    np.testing.assert_array_equal(round_trip(codec, clip, 8000).samples, first)


def test_both_ways_to_the_library_agree(capfd: pytest.CaptureFixture[str]) -> None:
    """By ctypes, and by pycodec2 where ctypes does not find it: the latter is the reference."""
    codec = open_codec("codec2@1.3")
    assert isinstance(codec, Codec2)
    coded = codec.encode(voice(8000, 0.5))
    fast = codec.decode(coded)
    codec._library = "no such library"
    np.testing.assert_array_equal(codec.decode(coded), fast)


def test_the_worker_names_every_mode() -> None:
    assert set(codec2_decoder._MODES) == {round(1000 * kbps) for kbps in BITS}
    assert sys.executable
