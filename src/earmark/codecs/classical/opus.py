"""Opus at the level of packets.

The header is the OpusHead of RFC 7845 (19 bytes), which states the pre-skip; FFmpeg's decoder cuts that off, so what
is heard does not lag. Rates are targets of a variable-rate encoder: quiet or simple sounds cost less. The variable rate
is constrained, as libopus has it by default and FFmpeg has not: unconstrained (`?vbr=on`), 64 kbps became 103 on tonal
speech. `?vbr=off` holds the rate. Clips are coded at 48 kHz whatever their own rate, as in a call; libopus narrows the
band by itself.

A lost packet is given to libopus as a packet with a table-of-contents byte and nothing behind it, for which RFC 6716
has the decoder conceal a frame: libopus's own concealment, in the mode of the packet before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.classical.packets import PacketCodec, Recipe, decode_packets
from earmark.codecs.contract import CodecCard, Coded, Waveform
from earmark.errors import UsageError

_CHOICES: dict[str, tuple[str, ...]] = {
    "application": ("audio", "voip", "lowdelay"),
    "frame_duration": ("2.5", "5", "10", "20", "40", "60"),
    "vbr": ("on", "off", "constrained"),
}
_ONE_FRAME = 0xFC  # clears the two bits that say how many frames a packet holds


class Opus(PacketCodec):
    """libopus, with its own concealment."""

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        sent: list[bytes] = []
        contents = next((packet[:1] for packet, gone in zip(coded.packets, lost, strict=True) if not gone), b"\0")
        for packet, gone in zip(coded.packets, lost, strict=True):
            if not gone:
                contents = packet[:1]
            sent.append(bytes([contents[0] & _ONE_FRAME]) if gone else packet)
        return decode_packets(sent, self.card.rate, self.recipe, coded.header)[: coded.samples]


def make(card: CodecCard, checkpoint: str = "", **options: object) -> Opus:
    if checkpoint:
        raise UsageError(f"{card.name} has no weights, so {checkpoint!r} cannot be opened: leave it out.")
    chosen = {"vbr": "constrained", "application": "audio", "frame_duration": "20"}
    for name, value in options.items():
        # YAML reads on and off as true and false.
        choice = {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
        if choice not in _CHOICES.get(name, ()):
            known = "; ".join(f"{option}={'|'.join(values)}" for option, values in _CHOICES.items())
            raise UsageError(f"{card.name} has no option {name}={value}: there are {known}.")
        chosen[name] = choice
    frame_rate = 1000.0 / float(chosen["frame_duration"])
    card = replace(card, frame_rate=frame_rate, variable_rate=chosen["vbr"] != "off")
    return Opus(card, Recipe("libopus", "libopus", "flt", options=chosen).at(card))
