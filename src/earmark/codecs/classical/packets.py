"""Packets through PyAV: what an encoder gives out, byte for byte, and what a decoder makes of those bytes alone.

No container is written, so nothing but payload is counted, and nothing that a container says about trimming reaches
the decoder: encoder delay stays in what is heard and is stated on the card. The end of a clip must get out of the
encoder: some flush themselves (Opus, MP3, AAC, AMR-NB), the others are given `flush` samples of silence behind it.

PyAV lets go of the interpreter while FFmpeg works, and every call makes its own contexts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import CodecCard, Coded, Waveform
from earmark.errors import InputError, UsageError, require


class Stream(NamedTuple):
    """What an encoder gave out."""

    packets: tuple[bytes, ...]
    header: bytes


@dataclass(frozen=True)
class Recipe:
    """How FFmpeg is asked for one setting."""

    encoder: str
    decoder: str
    sample_format: str = "s16"
    bit_rate: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)  # of the encoder
    decoder_options: Mapping[str, str] = field(default_factory=dict)
    flush: int = 0  # samples of silence behind the clip
    block: int | None = None  # samples at a time, where the encoder does not say
    fill_last: bool = False  # complete the last block with silence
    muted: int = 0  # samples of silence that stand for a lost packet, where that is all the concealment there is

    def at(self, card: CodecCard) -> Recipe:
        """The recipe at the rate of a setting."""
        return replace(self, bit_rate=bit_rate_of(card))


class PacketCodec:
    """A codec of FFmpeg, one packet for each frame."""

    thread_safe = True

    def __init__(self, card: CodecCard, recipe: Recipe) -> None:
        self.card, self.recipe = card, recipe
        check_coders(card.name, recipe.encoder, recipe.decoder)

    def encode(self, waveform: Waveform) -> Coded:
        stream = self._stream(waveform)
        return Coded(len(waveform), stream.packets, header=stream.header)

    def decode(self, coded: Coded) -> Waveform:
        return self._cut(decode_packets(coded.packets, self.card.rate, self.recipe, coded.header), coded)

    def _stream(self, waveform: Waveform) -> Stream:
        return encode_packets(waveform, self.card.rate, self.recipe)

    def _cut(self, heard: Waveform, coded: Coded) -> Waveform:
        """Without what filled the last frame; the delay's tail stays."""
        return heard[: coded.samples + (self.card.delay or 0)]


# --- FFmpeg --------------------------------------------------------------------------------------------------


def pyav() -> Any:
    """The module av, with FFmpeg's own messages switched off."""
    av = require("av", "Codecs through FFmpeg", "codecs")
    av.logging.set_level(None)
    return av


def check_coders(name: str, encoder: str, decoder: str) -> None:
    """Raise InputError unless this build of PyAV has both halves."""
    av = pyav()
    for coder, mode in ((encoder, "w"), (decoder, "r")):
        try:
            av.codec.Codec(coder, mode)
        except Exception as error:
            raise InputError(
                f"{name} needs FFmpeg's {coder}, which this build of PyAV does not have: install the wheel of the "
                "package index (pip install --force-reinstall av)."
            ) from error


def encode_packets(waveform: Waveform, rate: int, recipe: Recipe) -> Stream:
    """Every packet that the encoder gives for a waveform, and its stream header."""
    av = pyav()
    context = av.CodecContext.create(recipe.encoder, "w")
    context.sample_rate, context.layout, context.format = rate, "mono", recipe.sample_format
    context.time_base = Fraction(1, rate)
    if recipe.bit_rate is not None:
        context.bit_rate = recipe.bit_rate
    context.options = dict(recipe.options)
    context.open()
    block = recipe.block or context.frame_size or max(len(waveform) + recipe.flush, 1)
    extra = recipe.flush
    if recipe.fill_last:
        extra += -(len(waveform) + recipe.flush) % block
    sound = np.pad(waveform, (0, extra)) if extra else waveform
    values = as_int16(sound) if recipe.sample_format.startswith("s16") else np.ascontiguousarray(sound, np.float32)
    packets: list[Any] = []
    for start in range(0, len(values), block):
        frame = av.AudioFrame.from_ndarray(values[None, start : start + block], recipe.sample_format, "mono")
        frame.sample_rate, frame.pts, frame.time_base = rate, start, context.time_base
        packets += context.encode(frame)
    packets += context.encode(None)
    return Stream(tuple(bytes(packet) for packet in packets if packet.size), bytes(context.extradata or b""))


def decode_packets(packets: Iterable[bytes], rate: int, recipe: Recipe, header: bytes = b"") -> Waveform:
    """The waveform that a new decoder makes of packets."""
    pieces = decoded_pieces(packets, rate, recipe, header)
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)


def decoded_pieces(packets: Iterable[bytes], rate: int, recipe: Recipe, header: bytes = b"") -> list[Waveform]:
    """What a new decoder gives out, frame by frame."""
    av = pyav()
    context = av.CodecContext.create(recipe.decoder, "r")
    context.sample_rate, context.layout = rate, "mono"
    if header:
        context.extradata = header
    context.options = dict(recipe.decoder_options)
    frames: list[Any] = []
    for packet in packets:
        frames += context.decode(av.Packet(packet))
    frames += context.decode(None)
    return [_mono(frame) for frame in frames]


def as_int16(waveform: Waveform) -> NDArray[np.int16]:
    """Samples on the grid k / 32768, clipped."""
    return np.clip(np.rint(waveform.astype(np.float64) * 32768.0), -32768, 32767).astype(np.int16)


def _mono(frame: Any) -> Waveform:
    values = frame.to_ndarray().reshape(-1)
    if values.dtype.kind == "f":
        return np.asarray(values, np.float32)
    return np.asarray(values / -float(np.iinfo(values.dtype).min), np.float32)


def no_options(card: CodecCard, checkpoint: str, options: Mapping[str, object]) -> None:
    """Raise UsageError if a codec without weights or options was given some."""
    if checkpoint:
        raise UsageError(f"{card.name} has no weights, so {checkpoint!r} cannot be opened: leave it out.")
    if options:
        raise UsageError(f"{card.name} has no option {', '.join(map(repr, options))}: leave it out.")


def bit_rate_of(card: CodecCard) -> int | None:
    """Bits a second, or None for a codec that has no rate of its own."""
    return None if card.kbps is None else round(card.kbps * 1000)


class Muting(PacketCodec):
    """A codec whose lost frames are silence; the decoder goes on with the next packet as if nothing had been sent."""

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        arrived = [packet for packet, gone in zip(coded.packets, lost, strict=True) if not gone]
        heard = decode_packets(arrived, self.card.rate, self.recipe, coded.header)
        return self._cut(spread(heard, lost, self.recipe.muted), coded)


def spread(heard: Waveform, lost: NDArray[np.bool_] | Sequence[bool], frame: int) -> Waveform:
    """Put frames that were decoded one after the other in their places, with silence where one was lost."""
    arrived = np.flatnonzero(np.repeat(~np.asarray(lost, np.bool_), frame))[: len(heard)]
    made = np.zeros(len(lost) * frame, np.float32)
    made[arrived] = heard[: len(arrived)]
    return made


# --- families that need nothing more -------------------------------------------------------------------------

_RECIPES = {
    "aac": Recipe("aac", "aac", "fltp", muted=1024),
    "ac3": Recipe("ac3", "ac3", "fltp", flush=256, fill_last=True, muted=1536),
    "flac": Recipe("flac", "flac", "s16"),
    "mp3": Recipe("libmp3lame", "mp3float", "fltp"),
    "sbc": Recipe("sbc", "sbc", "s16", flush=73, fill_last=True, muted=128),
}


class Pcm:
    """The identity: 16-bit samples as they are, in one packet. What it scores is the ceiling of every metric."""

    thread_safe = True

    def __init__(self, card: CodecCard) -> None:
        self.card = card

    def encode(self, waveform: Waveform) -> Coded:
        return Coded(len(waveform), (as_int16(waveform).astype("<i2").tobytes(),))

    def decode(self, coded: Coded) -> Waveform:
        return (np.frombuffer(coded.packets[0], "<i2") / 32768.0).astype(np.float32)


def make(card: CodecCard, checkpoint: str = "", **options: object) -> PacketCodec | Pcm:
    no_options(card, checkpoint, options)
    if card.family == "pcm":
        return Pcm(card)
    recipe = _RECIPES[card.family].at(card)
    return (Muting if recipe.muted else PacketCodec)(card, recipe)
