"""Codecs of samples, without frames: G.711, G.722 and G.726. Their bytes are cut into packets of 20 ms, as RTP does.

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
    bit_rate_of,
    decode_packets,
    encode_packets,
    no_options,
    pyav,
    spread,
)
from earmark.codecs.contract import CodecCard, Coded, Waveform

__all__ = ["G722", "G726", "SampleCodec", "make_alaw", "make_g722", "make_g726", "make_mulaw"]

_UNIT = 8  # samples: the fewest that fill whole bytes at every code size


class SampleCodec(PacketCodec):
    """A stream of bytes in packets of 20 ms."""

    def __init__(self, card: CodecCard, recipe: Recipe) -> None:
        super().__init__(card, replace(recipe, block=None, flush=0))
        self.frame = card.rate // 50
        self.bytes = bit_rate_of(card) // 50 // 8
        self.flush = recipe.flush

    def encode(self, waveform: Waveform) -> Coded:
        length = len(waveform) + self.flush
        data = self._coded(np.pad(waveform, (0, self.flush + -length % _UNIT)))
        packets = tuple(data[start : start + self.bytes] for start in range(0, len(data), self.bytes))
        return Coded(len(waveform), packets)

    def decode(self, coded: Coded) -> Waveform:
        return self._cut(self._heard(b"".join(coded.packets)), coded)

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        arrived = b"".join(packet for packet, gone in zip(coded.packets, lost, strict=True) if not gone)
        heard = self._heard(arrived) if arrived else np.zeros(0, np.float32)
        return self._cut(spread(heard, lost, self.frame), coded)

    def _coded(self, waveform: Waveform) -> bytes:
        return b"".join(encode_packets(waveform, self.card.rate, self.recipe).packets)

    def _heard(self, data: bytes) -> Waveform:
        return decode_packets([data], self.card.rate, self.recipe)


class G722(SampleCodec):
    """G.722, with the lowest bits of each byte left out in modes 2 and 3."""

    def __init__(self, card: CodecCard, recipe: Recipe) -> None:
        super().__init__(card, recipe)
        self.kept = bit_rate_of(card) // 8000

    def _coded(self, waveform: Waveform) -> bytes:
        words = np.frombuffer(super()._coded(waveform), np.uint8)
        return np.packbits(np.unpackbits(words[:, None], axis=1)[:, : self.kept]).tobytes()

    def _heard(self, data: bytes) -> Waveform:
        bits = np.unpackbits(np.frombuffer(data, np.uint8))
        words = bits[: len(bits) // self.kept * self.kept].reshape(-1, self.kept)
        return super()._heard(np.packbits(words, axis=1).tobytes())


class G726(SampleCodec):
    """G.726, decoded from a raw file in memory."""

    def _heard(self, data: bytes) -> Waveform:
        av = pyav()
        options = {"code_size": str(bit_rate_of(self.card) // 8000), "sample_rate": str(self.card.rate)}
        with av.open(io.BytesIO(data), format="g726", options=options) as container:
            frames: Iterable[Any] = container.decode(audio=0)
            pieces = [frame.to_ndarray().reshape(-1) for frame in frames]
        return (np.concatenate(pieces) / 32768.0).astype(np.float32)


def make_mulaw(card: CodecCard, checkpoint: str = "", **options: object) -> SampleCodec:
    no_options(card, checkpoint, options)
    return SampleCodec(card, Recipe("pcm_mulaw", "pcm_mulaw"))


def make_alaw(card: CodecCard, checkpoint: str = "", **options: object) -> SampleCodec:
    no_options(card, checkpoint, options)
    return SampleCodec(card, Recipe("pcm_alaw", "pcm_alaw"))


def make_g722(card: CodecCard, checkpoint: str = "", **options: object) -> G722:
    no_options(card, checkpoint, options)
    kept = str(bit_rate_of(card) // 8000)
    return G722(card, Recipe("g722", "g722", decoder_options={"bits_per_codeword": kept}, flush=22))


def make_g726(card: CodecCard, checkpoint: str = "", **options: object) -> G726:
    no_options(card, checkpoint, options)
    rate = bit_rate_of(card)
    return G726(card, Recipe("g726", "g726", bit_rate=rate, options={"code_size": str(rate // 8000)}))
