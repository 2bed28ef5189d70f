"""Codecs of telephony: G.711, G.722 and G.726 without frames, AMR-NB and G.723.1 with them.

The bytes of those without frames are cut into packets of 20 ms, as RTP does.

A lost packet is silence, and the decoder's state goes from the last packet that arrived to the next one: the simplest
receiver, without the concealment that the appendices of the standards describe.

G.722 at 56 and 48 kbps is the 64 kbps stream without the lowest one or two bits of each byte (modes 2 and 3), packed
without gaps. FFmpeg's G.726 decoder takes its code size from a container only, so the bytes are handed to it as a raw
G.726 file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.classical.packets import (
    PacketCodec,
    Recipe,
    decode_packets,
    encode_packets,
    no_options,
    pyav,
    spread,
)
from earmark.codecs.contract import CodecCard, CodecFailure, Coded, Waveform

_UNIT = 8  # samples: the fewest that fill whole bytes at every code size


class SampleCodec(PacketCodec):
    """A stream of bytes in packets of 20 ms."""

    def __init__(self, card: CodecCard, recipe: Recipe) -> None:
        super().__init__(card, replace(recipe, block=None, flush=0))
        bit_rate = round((card.kbps or 0.0) * 1000)
        self.frame = card.rate // 50
        self.bytes = bit_rate // 50 // 8
        self.bits = bit_rate // 8000  # of a code word
        self.flush = recipe.flush

    def encode(self, waveform: Waveform) -> Coded:
        length = len(waveform) + self.flush
        data = self._coded(np.pad(waveform, (0, self.flush + -length % _UNIT)))
        packets = tuple(data[start : start + self.bytes] for start in range(0, len(data), self.bytes))
        return Coded(len(waveform), packets)

    def decode(self, coded: Coded) -> Waveform:
        return self._cut(self._sound_of(b"".join(coded.packets)), coded)

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        arrived = b"".join(packet for packet, gone in zip(coded.packets, lost, strict=True) if not gone)
        heard = self._sound_of(arrived) if arrived else np.zeros(0, np.float32)
        return self._cut(spread(heard, lost, self.frame), coded)

    def _coded(self, waveform: Waveform) -> bytes:
        return b"".join(encode_packets(waveform, self.card.rate, self.recipe).packets)

    def _sound_of(self, data: bytes) -> Waveform:
        return decode_packets([data], self.card.rate, self.recipe)


class G722(SampleCodec):
    """G.722, with the lowest bits of each byte left out in modes 2 and 3."""

    def _coded(self, waveform: Waveform) -> bytes:
        words = np.frombuffer(super()._coded(waveform), np.uint8)
        return np.packbits(np.unpackbits(words[:, None], axis=1)[:, : self.bits]).tobytes()

    def _sound_of(self, data: bytes) -> Waveform:
        bits = np.unpackbits(np.frombuffer(data, np.uint8))
        words = bits[: len(bits) // self.bits * self.bits].reshape(-1, self.bits)
        return super()._sound_of(np.packbits(words, axis=1).tobytes())


class G726(SampleCodec):
    """G.726, decoded from a raw file in memory."""

    def _sound_of(self, data: bytes) -> Waveform:
        av = pyav()
        options = {"code_size": str(self.bits), "sample_rate": str(self.card.rate)}
        with av.open(io.BytesIO(data), format="g726", options=options) as container:
            frames: Iterable[Any] = container.decode(audio=0)
            pieces = [frame.to_ndarray().reshape(-1) for frame in frames]
        return (np.concatenate(pieces) / 32768.0).astype(np.float32)


_NO_DATA = b"\x7c"  # frame type 15: nothing was received


class Amr(PacketCodec):
    """AMR frames without their mode bytes. The decoder conceals lost frames itself.

    A frame in storage begins with a byte that names its mode. The mode never changes within a clip, so the byte goes to
    the header and the packets hold the speech bits alone: 244 bits each 20 ms are the 12.2 kbps of the name.
    """

    def encode(self, waveform: Waveform) -> Coded:
        stream = self._stream(waveform)
        modes = {packet[:1] for packet in stream.packets}
        if len(modes) != 1:
            raise CodecFailure(f"{self.card.name}: the encoder changed its mode within a clip, which is not expected.")
        return Coded(len(waveform), tuple(packet[1:] for packet in stream.packets), header=modes.pop())

    def decode(self, coded: Coded) -> Waveform:
        return self.decode_with_losses(coded, np.zeros(len(coded.packets), np.bool_))

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        sent = (_NO_DATA if gone else coded.header + bits for bits, gone in zip(coded.packets, lost, strict=True))
        return self._cut(decode_packets(sent, self.card.rate, self.recipe), coded)


class G7231(PacketCodec):
    """G.723.1; a frame whose pitch lag cannot be is one that FFmpeg's decoder conceals, as the standard says."""

    _ERASED = b"\xfc" + 23 * b"\xff"  # high-rate mode, all parameters at their largest

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        sent = (self._ERASED if gone else packet for packet, gone in zip(coded.packets, lost, strict=True))
        return self._cut(decode_packets(sent, self.card.rate, self.recipe), coded)


def make(card: CodecCard, checkpoint: str = "", **options: object) -> PacketCodec:
    no_options(card, checkpoint, options)
    bits = str(round((card.kbps or 0.0) * 1000) // 8000)
    match card.family:
        case "g722":
            return G722(card, Recipe("g722", "g722", decoder_options={"bits_per_codeword": bits}, flush=22))
        case "g726":
            return G726(card, Recipe("g726", "g726", options={"code_size": bits}).at(card))
        case "amr_nb":
            return Amr(card, Recipe("libopencore_amrnb", "libopencore_amrnb").at(card))
        case "g723_1":
            return G7231(card, Recipe("g723_1", "g723_1", flush=60, fill_last=True).at(card))
    return SampleCodec(card, Recipe(f"pcm_{card.family}", f"pcm_{card.family}"))
