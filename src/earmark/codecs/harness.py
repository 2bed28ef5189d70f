"""One clip through one codec: resample, encode, count the bits, decode, resample back, with every promise checked.

    samples at the clip's rate ── resample ── codec.encode ── Coded ── codec.decode ── resample ── samples
                                                 │               └ bits counted        └ checked: kind, finite, length
                                                 └ timed                                 └ timed

What comes out is at the clip's rate again and is not aligned: it lags by the codec's delay. It is never shorter than
the clip (silence is added) and keeps what the delay pushed past the clip's end, so that moving it to the left loses
nothing. A lossless codec is given the clip at its own rate, since for it nothing depends on the rate.

Threads: the harness keeps no state. A codec may be called from one thread at a time, unless it has an attribute
`thread_safe` that is true, as all those of `earmark.codecs.classical` have; `in_threads` makes any other safe to share
by letting one thread in at a time. Seconds are of the wall clock: measure speed when nothing else runs.
"""

from __future__ import annotations

import functools
import math
import struct
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.audio import resample
from earmark.codecs.contract import Codec, CodecCard, CodecFailure, Coded, Waveform
from earmark.errors import EarmarkError, Ended, InputError, no_exit

UNSTATED_FRAME = 0.05
"""Seconds that count as a frame when the card states none."""
UNSTATED_DELAY = 0.1
"""Seconds of delay that are allowed when the card states none."""
RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000)


class Encoded(NamedTuple):
    """What a codec made of a clip, and what it took."""

    coded: Coded
    bits: int  # of the payload, and of a header that tells more than the stream's set-up
    header_bits: int  # all of the header
    seconds: float  # of sound
    encode_seconds: float

    @property
    def kbps(self) -> float:
        return self.bits / self.seconds / 1000.0


class RoundTrip(NamedTuple):
    """A clip that went through a codec: `samples` at the clip's rate, at least as long as the clip, not aligned."""

    samples: Waveform
    coded: Coded
    bits: int
    header_bits: int
    seconds: float
    encode_seconds: float
    decode_seconds: float

    @property
    def kbps(self) -> float:
        return self.bits / self.seconds / 1000.0


# --- the two halves ------------------------------------------------------------------------------------------


def round_trip(codec: Codec, samples: ArrayLike, rate: int) -> RoundTrip:
    """Encode and decode one clip. Raises InputError for a clip that cannot be coded, CodecFailure for the codec."""
    clip = _check_clip(samples)
    encoded = encode(codec, clip, rate)
    started = time.perf_counter()
    decoded = _decode(codec, encoded.coded)
    decode_seconds = time.perf_counter() - started
    heard = _bring_back(codec.card, decoded, encoded.coded, rate, len(clip))
    return RoundTrip(heard, *encoded, decode_seconds)


def encode(codec: Codec, samples: ArrayLike, rate: int) -> Encoded:
    """The first half: resample, encode, count bits. Only `codec.encode` is timed.

    A codec that opens its weights when they are first needed does so in a method `prepare`, which is called before.
    """
    clip = _check_clip(samples)
    given = np.array(resample(clip, rate, coding_rate(codec.card, rate)))  # a codec may not reach the caller's array
    prepare = getattr(codec, "prepare", None)
    if callable(prepare):
        prepare()
    set_up = _set_up(codec)  # before any clip is heard: a header that was made up afterwards could hold the clip
    started = time.perf_counter()
    coded = _call(codec, "encode", given)
    seconds = time.perf_counter() - started
    check_coded(codec.card, coded, len(given))
    coded = unpack(pack(coded))  # a subclass's other attributes are not sent
    bits = payload_bits(coded, codec.card) + counted_header_bits(coded.header, set_up)
    coded = without_unused_bits(coded, codec.card)
    return Encoded(coded, bits, 8 * len(coded.header), len(clip) / rate, seconds)


def decode(codec: Codec, coded: Coded, rate: int, length: int, *, lost: NDArray[np.bool_] | None = None) -> Waveform:
    """The second half: what was coded, at `rate`, for a clip that had `length` samples. Not aligned.

    Args:
        codec: the codec, which conceals where packets are lost (`decode_with_losses`).
        coded: what it sent.
        rate: of the clip.
        length: of the clip in samples.
        lost: marks the packets that are lost.
    """
    return _bring_back(codec.card, _decode(codec, coded, lost), coded, rate, length)


def coding_rate(card: CodecCard, rate: int) -> int:
    """The rate at which a clip of `rate` is coded: the card's, or for a lossless codec the clip's own."""
    return rate if card.lossless else card.rate


# --- what a codec sent ---------------------------------------------------------------------------------------


HEADER_BYTES = 8
"""What a header that changes with the sound may hold for free on each clip: a level, a length."""


def payload_bits(coded: Coded, card: CodecCard) -> int:
    """The bits that are sent: whole bytes, the stated bits of each packet, or log2 of the codebooks' sizes.

    A token of a codebook whose size is no power of two costs the fraction that it would in a long stream; the sum is
    rounded up. An empty packet costs a byte and a frame of tokens a bit at least: how many there are is information
    too. Raises CodecFailure when the card and what was sent contradict each other.
    """
    if coded.tokens is not None:
        return max(_token_bits(coded.tokens, card), int(coded.tokens.shape[1]))
    if card.packet_bits is None:
        return 8 * sum(max(1, len(packet)) for packet in coded.packets)
    if type(card.packet_bits) is not int or card.packet_bits < 1:
        raise CodecFailure(f"{card.name}: packet_bits is {card.packet_bits!r}; it must be a whole number from 1 up.")
    for packet in coded.packets:
        if len(packet) != -(-card.packet_bits // 8):
            raise CodecFailure(
                f"{card.name}: a packet of {len(packet)} bytes is not one of the {card.packet_bits} bits that the card "
                "states: correct packet_bits."
            )
    return card.packet_bits * len(coded.packets)


def without_unused_bits(coded: Coded, card: CodecCard) -> Coded:
    """What is sent where the bits of a packet do not fill its bytes: those beyond `packet_bits` are 0."""
    spare = -(card.packet_bits or 0) % 8
    if not spare or not coded.packets:
        return coded
    mask = 0xFF & (0xFF << spare)
    packets = tuple(packet[:-1] + bytes([packet[-1] & mask]) if packet else packet for packet in coded.packets)
    return replace(coded, packets=packets)


def counted_header_bits(header: bytes, set_up: bytes | None) -> int:
    """The bits of a header that count towards the rate: none of one that is the same for every sound, since a decoder
    may know it beforehand; of any other those beyond `HEADER_BYTES`."""
    if len(header) <= HEADER_BYTES or header == set_up:
        return 0
    return 8 * (len(header) - HEADER_BYTES)


_set_ups: weakref.WeakKeyDictionary[Codec, bytes | None] = weakref.WeakKeyDictionary()


def _set_up(codec: Codec) -> bytes | None:
    """The header of a sound that is always the same; None where there is none. Asked once, whatever comes of it."""
    try:
        if codec in _set_ups:
            return _set_ups[codec]
        _set_ups[codec] = None
        noise = 0.1 * np.random.default_rng(0).standard_normal(codec.card.rate)
        with no_exit():
            _set_ups[codec] = codec.encode(noise.astype(np.float32)).header
        return _set_ups[codec]
    except Exception:  # a stranger's codec may raise anything, or refuse to be a key
        return None


def _token_bits(tokens: NDArray[np.int64], card: CodecCard) -> int:
    sizes = card.codebook_sizes
    if len(sizes) != len(tokens):
        raise CodecFailure(
            f"{card.name}: there are tokens of {len(tokens)} codebooks and the card states {len(sizes)} "
            "codebook_sizes, so bits cannot be counted: state the size of each codebook."
        )
    for number, (row, size) in enumerate(zip(tokens, sizes, strict=True)):
        if not isinstance(size, int | np.integer) or size < 1:
            raise CodecFailure(f"{card.name}: codebook {number} has the size {size!r}; it must be a whole number.")
        if row.size and (int(row.min()) < 0 or int(row.max()) >= size):
            raise CodecFailure(
                f"{card.name}: codebook {number} has {size} entries and a token of {int(row.min())} to "
                f"{int(row.max())}: state its true size."
            )
    return math.ceil(int(tokens.shape[1]) * sum(math.log2(size) for size in sizes) - 1e-9)


_MAGIC = b"EMC1"


def pack(coded: Coded) -> bytes:
    """Bytes for a cache: equal for equal content, on every machine."""
    head = [_MAGIC, struct.pack("<QI", coded.samples, len(coded.header)), coded.header]
    if coded.tokens is None:
        sizes = np.array([len(packet) for packet in coded.packets], "<u4")
        return b"".join([*head, struct.pack("<BI", 0, len(sizes)), sizes.tobytes(), *coded.packets])
    tokens = np.ascontiguousarray(coded.tokens, "<i8")
    return b"".join([*head, struct.pack("<BII", 1, *tokens.shape), tokens.tobytes()])


def unpack(data: bytes) -> Coded:
    """What `pack` was given. Raises InputError for anything else."""
    try:
        return _unpack(data)
    except (struct.error, ValueError) as error:
        raise InputError(
            "A cached clip of a codec is damaged: remove it from the cache, or run with --cache refresh."
        ) from error


def _unpack(data: bytes) -> Coded:
    if data[:4] != _MAGIC:
        raise ValueError("not made by pack")
    samples, header_size = struct.unpack_from("<QI", data, 4)
    start = 16 + header_size
    header = data[16:start]
    (kind,) = struct.unpack_from("<B", data, start)
    if kind == 1:
        codebooks, frames = struct.unpack_from("<II", data, start + 1)
        tokens = np.frombuffer(data, "<i8", offset=start + 9).reshape(codebooks, frames).astype(np.int64)
        return Coded(samples, tokens=tokens, header=header)
    (count,) = struct.unpack_from("<I", data, start + 1)
    sizes = np.frombuffer(data, "<u4", count, start + 5)
    ends = start + 5 + 4 * count + np.cumsum(sizes, dtype=np.int64)
    if len(data) != (int(ends[-1]) if count else start + 5):
        raise ValueError("cut short")
    packets = tuple(data[int(end) - int(size) : int(end)] for end, size in zip(ends, sizes, strict=True))
    return Coded(samples, packets, header=header)


# --- threads -------------------------------------------------------------------------------------------------


class _OneAtATime:
    """A codec behind a lock."""

    thread_safe = True

    def __init__(self, codec: Codec) -> None:
        self.card, self._lock = codec.card, threading.Lock()
        for name in ("encode", "decode", "decode_with_losses"):
            method = getattr(codec, name, None)
            if method is not None:
                setattr(self, name, functools.partial(self._call, method))

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        with self._lock:
            return method(*arguments)


def in_threads(codec: Codec) -> Codec:
    """The codec itself where threads may share it, else the codec behind a lock."""
    return codec if getattr(codec, "thread_safe", False) else cast(Codec, _OneAtATime(codec))


# --- checks --------------------------------------------------------------------------------------------------


def _check_clip(samples: ArrayLike) -> Waveform:
    clip = np.asarray(samples, dtype=np.float32)
    if clip.ndim != 1:
        raise InputError(f"A clip of shape {clip.shape} cannot be coded: give one channel.")
    if not len(clip):
        raise InputError("A clip without samples cannot be coded: leave it out.")
    if not np.isfinite(clip).all():
        raise InputError("A clip with NaN or infinite samples cannot be coded: export it again or leave it out.")
    return clip


def check_coded(card: CodecCard, coded: object, length: int) -> None:
    if not isinstance(coded, Coded):
        raise CodecFailure(f"{card.name}: encode returned {type(coded).__name__}, not Coded.")
    if coded.samples != length:
        raise CodecFailure(
            f"{card.name}: encode was given {length} samples and Coded.samples says {coded.samples}: state how long "
            "the waveform was."
        )
    if coded.tokens is None:
        if not all(isinstance(packet, bytes) for packet in coded.packets):
            raise CodecFailure(f"{card.name}: packets must be bytes.")
    elif coded.packets:
        raise CodecFailure(f"{card.name}: encode returned packets and tokens: send one of them, so that it is counted.")
    elif not isinstance(coded.tokens, np.ndarray) or coded.tokens.ndim != 2 or coded.tokens.dtype.kind not in "iu":
        raise CodecFailure(f"{card.name}: tokens must be an array of whole numbers [codebooks, frames].")


def _decode(codec: Codec, coded: Coded, lost: NDArray[np.bool_] | None = None) -> Waveform:
    decoded = _call(codec, "decode", coded) if lost is None else _call(codec, "decode_with_losses", coded, lost)
    check_waveform(codec.card, decoded)
    waveform: Waveform = decoded
    return waveform


def _call(codec: Codec, method: str, *arguments: Any) -> Any:
    """What a method of a codec returns; whatever it raises becomes CodecFailure."""
    try:
        with no_exit():
            return getattr(codec, method)(*arguments)
    except Ended as error:
        raise CodecFailure(f"{codec.card.name}: {method}: {error}.") from error
    except EarmarkError:
        raise
    except Exception as error:
        text = " ".join(str(error).split()).rstrip(".")
        problem = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise CodecFailure(f"{codec.card.name}: {method} raised {problem}.") from error


def check_waveform(card: CodecCard, decoded: Any) -> None:
    """Raise CodecFailure unless this is a finite waveform of floating-point numbers."""
    if not isinstance(decoded, np.ndarray):
        raise CodecFailure(f"{card.name}: decode returned {type(decoded).__name__}, not an array.")
    if decoded.ndim != 1 or decoded.dtype.kind != "f":
        raise CodecFailure(
            f"{card.name}: decode returned {decoded.dtype} of shape {decoded.shape}, not one channel of floats in "
            "[-1, 1]."
        )
    bad = int(np.count_nonzero(~np.isfinite(decoded)))
    if bad:
        raise CodecFailure(f"{card.name}: {bad} of {len(decoded)} decoded samples are NaN or infinite.")


def allowed_lengths(card: CodecCard, samples: int, rate: int) -> tuple[int, int]:
    """The fewest and the most samples that may come out: a frame less; the delay and two frames (the last one filled
    up and one to flush the decoder) more."""
    frame = math.ceil(rate / card.frame_rate) if card.frame_rate else round(UNSTATED_FRAME * rate)
    delay = round(UNSTATED_DELAY * rate) if card.delay is None else card.delay
    return max(0, samples - frame), samples + max(delay, 0) + 2 * frame


def check_length(card: CodecCard, length: int, samples: int, rate: int) -> None:
    """Raise CodecFailure unless so many samples may come out when so many went in."""
    least, most = allowed_lengths(card, samples, rate)
    if least <= length <= most:
        return
    for other in RATES:
        fewest, longest = allowed_lengths(card, round(samples * other / rate), rate)
        if other != rate and fewest <= length <= longest:
            raise CodecFailure(
                f"{card.name}: {samples} samples went in and {length} came out, as many as at {other} Hz: decode must "
                f"return {rate} Hz, the rate on the card."
            )
    raise CodecFailure(
        f"{card.name}: {samples} samples went in and {length} came out; {least} to {most} are allowed (a frame less; "
        "delay and two frames more): cut what was padded, or state frame_rate and delay on the card."
    )


def _bring_back(card: CodecCard, decoded: Waveform, coded: Coded, rate: int, length: int) -> Waveform:
    """Check the length and go back to the clip's rate; at least `length` samples, with the delay's tail."""
    coded_rate = coding_rate(card, rate)
    check_length(card, len(decoded), coded.samples, coded_rate)
    heard = resample(np.ascontiguousarray(decoded, dtype=np.float32), coded_rate, rate)
    return np.pad(heard, (0, length - len(heard))) if len(heard) < length else heard
