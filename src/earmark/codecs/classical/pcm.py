"""The identity: 16-bit samples as they are. What it scores is the ceiling of every metric."""

from __future__ import annotations

import numpy as np

from earmark.codecs.classical.packets import as_int16, no_options
from earmark.codecs.contract import CodecCard, Coded, Waveform

__all__ = ["Pcm", "make"]


class Pcm:
    """Two bytes a sample, in one packet."""

    thread_safe = True

    def __init__(self, card: CodecCard) -> None:
        self.card = card

    def encode(self, waveform: Waveform) -> Coded:
        return Coded(len(waveform), (as_int16(waveform).astype("<i2").tobytes(),))

    def decode(self, coded: Coded) -> Waveform:
        samples = np.frombuffer(coded.packets[0], "<i2")
        return (samples / 32768.0).astype(np.float32)


def make(card: CodecCard, checkpoint: str = "", **options: object) -> Pcm:
    no_options(card, checkpoint, options)
    return Pcm(card)
