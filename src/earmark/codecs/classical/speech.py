"""Narrow-band speech coders with frames: AMR-NB and G.723.1. Both conceal lost frames themselves.

An AMR frame in storage begins with a byte that names its mode. The mode never changes within a clip, so the byte goes
to the header and the packets hold the speech bits alone: 244 bits each 20 ms are the 12.2 kbps of the name.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.classical.packets import (
    PacketCodec,
    Recipe,
    Stream,
    bit_rate_of,
    decode_packets,
    encode_packets,
    no_options,
)
from earmark.codecs.contract import CodecCard, CodecFailure, Coded, Waveform

__all__ = ["G7231", "Amr", "make_amr_nb", "make_g723_1"]

_NO_DATA = b"\x7c"  # frame type 15: nothing was received


class Amr(PacketCodec):
    """AMR frames without their mode bytes."""

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

    def _stream(self, waveform: Waveform) -> Stream:
        return encode_packets(waveform, self.card.rate, self.recipe)


class G7231(PacketCodec):
    """G.723.1; a frame whose pitch lag cannot be is one that FFmpeg's decoder conceals, as the standard says."""

    _ERASED = b"\xfc" + 23 * b"\xff"  # high-rate mode, all parameters at their largest

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        sent = (self._ERASED if gone else packet for packet, gone in zip(coded.packets, lost, strict=True))
        return self._cut(decode_packets(sent, self.card.rate, self.recipe), coded)


def make_amr_nb(card: CodecCard, checkpoint: str = "", **options: object) -> Amr:
    no_options(card, checkpoint, options)
    return Amr(card, Recipe("libopencore_amrnb", "libopencore_amrnb", "s16", bit_rate_of(card)))


def make_g723_1(card: CodecCard, checkpoint: str = "", **options: object) -> G7231:
    no_options(card, checkpoint, options)
    return G7231(card, Recipe("g723_1", "g723_1", "s16", bit_rate_of(card), flush=60, fill_last=True))
