"""The harness: what it does to a good codec, and the one sentence it has for each kind of bad one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.codecs.sounds import voice

from earmark.codecs.catalogue import open_codec
from earmark.codecs.contract import CodecCard, CodecFailure, Coded
from earmark.codecs.harness import (
    coding_rate,
    decode,
    encode,
    in_threads,
    pack,
    payload_bits,
    round_trip,
    unpack,
)
from earmark.errors import InputError

RATE = 16000
CARD = CodecCard(name="plain@256", family="plain", rate=RATE, kbps=256.0, frame_rate=50.0, delay=0)
PLAIN = CodecCard(name="tokens", family="tokens", codebook_sizes=(1024, 1024))


class Plain:
    """16 bits a sample; what `spoil` makes of the decoded waveform is what comes out."""

    def __init__(self, spoil: Callable[[Any], Any] = lambda decoded: decoded, card: CodecCard = CARD) -> None:
        self.card, self.spoil = card, spoil

    def encode(self, waveform: Any) -> Any:
        return Coded(len(waveform), (np.rint(waveform * 32767).astype("<i2").tobytes(),))

    def decode(self, coded: Coded) -> Any:
        return self.spoil((np.frombuffer(coded.packets[0], "<i2") / 32767).astype(np.float32))


def test_a_good_codec_is_counted_and_timed() -> None:
    clip = voice(RATE)
    made = round_trip(Plain(), clip, RATE)
    assert made.bits == 16 * RATE
    assert made.header_bits == 0
    assert made.seconds == 1.0
    assert made.kbps == 256.0
    assert made.encode_seconds > 0
    assert made.decode_seconds > 0
    np.testing.assert_allclose(made.samples, clip, atol=1e-4)


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_a_clip_is_resampled_there_and_back(rate: int) -> None:
    seen: list[int] = []
    codec = Plain(lambda decoded: seen.append(len(decoded)) or decoded)
    time = np.arange(rate) / rate
    clip = (0.5 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)
    made = round_trip(codec, clip, rate)
    assert seen == [RATE]
    assert len(made.samples) == len(clip)
    middle = slice(rate // 10, -rate // 10)
    np.testing.assert_allclose(made.samples[middle], clip[middle], atol=1e-3)


def test_a_lossless_codec_hears_the_clip_at_its_own_rate() -> None:
    assert coding_rate(replace(CARD, lossless=True), 44100) == 44100
    assert coding_rate(CARD, 44100) == RATE
    assert round_trip(Plain(card=replace(CARD, lossless=True)), voice(44100), 44100).bits == 16 * 44100


def test_the_delays_tail_is_kept_and_what_is_short_is_filled_up() -> None:
    clip = voice(RATE)
    late = round_trip(Plain(lambda x: np.pad(x, (100, 0)), replace(CARD, delay=100)), clip, RATE).samples
    assert len(late) == len(clip) + 100
    short = round_trip(Plain(lambda x: x[:-50]), clip, RATE).samples
    assert len(short) == len(clip)
    assert not short[-50:].any()


def test_the_callers_array_is_out_of_reach() -> None:
    class Greedy(Plain):
        def encode(self, waveform: Any) -> Any:
            coded = super().encode(waveform)
            waveform[:] = 0
            return coded

    clip = voice(RATE)
    before = clip.copy()
    round_trip(Greedy(), clip, RATE)
    np.testing.assert_array_equal(clip, before)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda x: np.where(np.arange(len(x)) == 7, np.nan, x).astype(np.float32),
            "1 of 16000 decoded samples are NaN",
        ),
        (lambda x: x / 0.0, "NaN or infinite"),
        (lambda x: x[: len(x) // 3], "allowed"),
        (lambda x: x[:0], "allowed"),
        (lambda x: np.repeat(x, 3), "as many as at 48000 Hz"),
        (lambda x: x[::2], "as many as at 8000 Hz"),
        (lambda x: (x * 32767).astype(np.int16), "int16"),
        (lambda x: np.stack([x, x]), r"shape \(2, 16000\)"),
        (lambda x: x.astype(np.complex64), "complex64"),
        (lambda x: x.tolist(), "list, not an array"),
        (lambda x: None, "NoneType"),
        (lambda x: 1 / 0, "decode raised ZeroDivisionError"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_bad_decoder_fails_with_its_reason(spoil: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(CodecFailure, match=said) as caught:
        round_trip(Plain(spoil), voice(RATE), RATE)
    assert str(caught.value).startswith("plain@256: ")


def test_a_decoder_of_silence_is_not_the_harnesss_business() -> None:
    made = round_trip(Plain(np.zeros_like), voice(RATE), RATE)
    assert not made.samples.any()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"bytes", "not Coded"),
        (Coded(5, (b"12",)), "Coded.samples says 5"),
        (Coded(RATE, ("text",)), "must be bytes"),  # type: ignore[arg-type]
        (Coded(RATE, (b"1",), np.zeros((1, 2), np.int64)), "packets and tokens"),
        (Coded(RATE, tokens=np.zeros((1, 2))), "whole numbers"),  # type: ignore[arg-type]
        (Coded(RATE, tokens=np.zeros((1, 2), np.int64)), "codebook_sizes"),
    ],
)
def test_a_bad_encoder_fails_with_its_reason(answer: Any, said: str) -> None:
    class Odd(Plain):
        def encode(self, waveform: Any) -> Any:
            return answer

    with pytest.raises(CodecFailure, match=said):
        encode(Odd(), voice(RATE), RATE)


def test_an_encoder_that_raises_fails() -> None:
    class Raises(Plain):
        def encode(self, waveform: Any) -> Any:
            raise RuntimeError("no luck")

    with pytest.raises(CodecFailure, match=r"encode raised RuntimeError: no luck\.$"):
        round_trip(Raises(), voice(RATE), RATE)


@pytest.mark.parametrize(
    "clip", [np.zeros(0, np.float32), np.array([0.0, np.nan]), np.array([0.0, np.inf]), np.zeros((2, 100), np.float32)]
)
@pytest.mark.parametrize("name", ["pcm", "opus@12", "mp3@32", "codec2@1.2"])
def test_clips_that_cannot_be_coded_are_refused_before_any_codec_sees_them(clip: Any, name: str) -> None:
    with pytest.raises(InputError, match="cannot be coded"):
        round_trip(open_codec(name), clip, RATE)


# --- bits --------------------------------------------------------------------------------------------------------


def test_bits_are_those_that_are_sent() -> None:
    packets = Coded(100, (b"1234", b"12"), header=b"not counted")
    assert payload_bits(packets, CARD) == 48
    assert payload_bits(Coded(100, (b"12", b"34")), replace(CARD, packet_bits=13)) == 26
    for stated in (8, 13, 17):
        with pytest.raises(CodecFailure, match="is not one of"):
            payload_bits(packets, replace(CARD, packet_bits=stated))
    tokens = Coded(100, tokens=np.zeros((2, 10), np.int64))
    assert payload_bits(tokens, PLAIN) == 200
    assert payload_bits(tokens, replace(PLAIN, codebook_sizes=(3, 5))) == 40  # 10 (log2 3 + log2 5) = 39.07
    with pytest.raises(CodecFailure, match="true size"):
        payload_bits(Coded(100, tokens=np.full((2, 10), 1024)), PLAIN)


# --- packing -----------------------------------------------------------------------------------------------------

PACKETS = st.builds(
    Coded, st.integers(0, 2**40), st.lists(st.binary(max_size=20), max_size=8).map(tuple), header=st.binary(max_size=9)
)
TOKENS = st.builds(
    lambda samples, tokens: Coded(samples, tokens=tokens),
    st.integers(0, 2**40),
    arrays(np.int64, st.tuples(st.integers(0, 4), st.integers(0, 5)), elements=st.integers(-(2**63), 2**63 - 1)),
)


@given(st.one_of(PACKETS, TOKENS))
def test_what_is_packed_comes_back(coded: Coded) -> None:
    back = unpack(pack(coded))
    assert (back.samples, back.packets, back.header) == (coded.samples, coded.packets, coded.header)
    if coded.tokens is None:
        assert back.tokens is None
    else:
        np.testing.assert_array_equal(back.tokens, coded.tokens)
    assert pack(back) == pack(coded)


@given(PACKETS, st.integers(1, 30))
def test_what_is_cut_short_is_refused(coded: Coded, missing: int) -> None:
    data = pack(coded)
    with pytest.raises(InputError, match="damaged"):
        unpack(data[: max(0, len(data) - missing)])


# --- threads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["opus@24", "mp3@32", "aac@32", "amr_nb@12.2", "g726@32", "codec2@1.3", "flac"])
def test_threads_may_share_a_codec(name: str) -> None:
    codec = open_codec(name)
    assert in_threads(codec) is codec
    clips = [voice(codec.card.rate, 0.3, seed) for seed in range(4)]
    alone = [round_trip(codec, clip, codec.card.rate) for clip in clips]
    together: list[Any] = [None] * 8

    def work(place: int) -> None:
        together[place] = round_trip(codec, clips[place % 4], codec.card.rate)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, made in enumerate(together):
        np.testing.assert_array_equal(made.samples, alone[place % 4].samples)


def test_a_codec_that_is_not_safe_is_entered_by_one_thread_at_a_time() -> None:
    inside, most = [0], [0]
    pause = threading.Event()

    class Nervous(Plain):
        def encode(self, waveform: Any) -> Any:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            pause.wait(0.01)
            inside[0] -= 1
            return super().encode(waveform)

    shared = in_threads(Nervous())
    threads = [threading.Thread(target=encode, args=(shared, voice(RATE, 0.1), RATE)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert shared.card is CARD


def test_the_halves_make_the_whole() -> None:
    codec, clip = open_codec("g722@64"), voice(44100)
    first = encode(codec, clip, 44100)
    whole = round_trip(codec, clip, 44100)
    assert pack(first.coded) == pack(whole.coded)
    np.testing.assert_array_equal(decode(codec, first.coded, 44100, len(clip)), whole.samples)


# --- what a review tried -----------------------------------------------------------------------------------------


class Luggage(Coded):
    """Coded with a pocket."""


class Smuggler(Plain):
    """Sends a byte, and the sound in the pocket of what it returns."""

    def encode(self, waveform: Any) -> Coded:
        coded = Luggage(len(waveform), (b"!",))
        object.__setattr__(coded, "sound", waveform.copy())
        return coded

    def decode(self, coded: Any) -> Any:
        return coded.sound


def test_only_what_is_counted_reaches_the_decoder() -> None:
    with pytest.raises(CodecFailure, match="AttributeError"):
        round_trip(Smuggler(), voice(RATE), RATE)


def test_a_packet_of_many_bytes_is_not_counted_as_few_bits() -> None:
    """One bit stated, 640 bytes sent."""
    with pytest.raises(CodecFailure, match="640 bytes is not one of the 1 bits"):
        payload_bits(Coded(160, (bytes(640),)), replace(CARD, packet_bits=1))
    assert payload_bits(Coded(160, (bytes(12), bytes(12))), replace(CARD, packet_bits=95)) == 190


def test_a_view_of_the_callers_array_is_not_reached() -> None:
    class Spoils(Plain):
        def encode(self, waveform: Any) -> Coded:
            coded = super().encode(waveform)
            waveform[:] = 0.0
            return coded

    whole = voice(RATE)
    whole.flags.writeable = True
    given = whole.view(np.recarray)  # a subclass: the array that the codec is given is another object
    encode(Spoils(), given, RATE)
    assert np.any(whole)


def test_weights_are_loaded_before_the_clock_starts() -> None:
    order: list[str] = []

    class Late(Plain):
        def prepare(self) -> None:
            order.append("prepare")

        def encode(self, waveform: Any) -> Coded:
            order.append("encode")
            return super().encode(waveform)

    encode(Late(), voice(RATE), RATE)
    assert order == ["prepare", "encode", "encode"]  # the first for the header of the set-up
