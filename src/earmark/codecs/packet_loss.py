"""Packets that do not arrive, and what a codec makes of the rest.

Which are lost is drawn once for a clip and a seed, so that all codecs with as many packets lose the same. Who conceals
is the codec: `decode_with_losses`, where it has that. For tokens without it, a lost frame repeats the last one that
arrived (frames before the first arrival repeat that one). Anything else is not applicable, and says why.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import Codec, Coded, Measured, Waveform
from earmark.codecs.harness import decode
from earmark.errors import UsageError


def lose(n: int, percent: float, seed: int, burst: float = 1.0) -> NDArray[np.bool_]:
    """Mark which of n packets are lost: `percent` of them on average.

    With burst = 1 every packet is lost or not by itself. Otherwise losses come in runs that are `burst` times as long
    on average (two states that follow each other, after Gilbert). The same n, percent, burst and seed lose the same.
    """
    if not 0 <= percent < 100 or burst < 1 or n < 0:
        raise UsageError(
            f"Losing {percent} % of {n} packets with bursts of {burst} is not possible: give less than 100 % and a "
            "burst of 1 or more."
        )
    share = percent / 100.0
    leave = min(1.0, (1.0 - share) / burst)
    enter = share * leave / (1.0 - share)
    draws = np.random.default_rng([seed, 0x10_55]).random(n + 1)
    lost = np.empty(n, np.bool_)
    state = bool(draws[0] < share)
    for packet in range(n):
        lost[packet] = state
        state = bool(draws[packet + 1] >= leave) if state else bool(draws[packet + 1] < enter)
    return lost


def frames_of(coded: Coded) -> int:
    """How many packets, or frames of tokens, can be lost."""
    return len(coded.packets) if coded.tokens is None else int(coded.tokens.shape[1])


def decode_lossy(codec: Codec, coded: Coded, lost: NDArray[np.bool_], rate: int, length: int) -> Waveform | Measured:
    """What is heard when the marked packets are lost, not aligned, or Measured.not_applicable with the reason."""
    if len(lost) != frames_of(coded):
        raise UsageError(f"{len(lost)} marks do not fit {frames_of(coded)} packets: give one for each.")
    name = codec.card.name
    if frames_of(coded) < 2:
        return Measured.not_applicable(f"{name} sends one packet for this clip: there are no frames to lose.")
    if lost.all():
        return Measured.not_applicable("Every frame of the clip is lost: there is nothing to conceal with.")
    # Not isinstance(codec, Concealing): from Python 3.12 on that does not see what an adapter passes on.
    if callable(getattr(codec, "decode_with_losses", None)):
        return decode(codec, _without(coded, lost), rate, length, lost=lost)
    if coded.tokens is None:
        return Measured.not_applicable(f"{name} does not say how it conceals lost packets (decode_with_losses).")
    kept = Coded(coded.samples, tokens=coded.tokens[:, repeat_last(lost)], header=coded.header)
    return decode(codec, kept, rate, length)


def _without(coded: Coded, lost: NDArray[np.bool_]) -> Coded:
    """What arrives: lost packets and frames of tokens are all 0, so that nobody conceals by looking at them."""
    if coded.tokens is not None:
        return Coded(coded.samples, tokens=np.where(lost[None, :], 0, coded.tokens), header=coded.header)
    packets = tuple(bytes(len(packet)) if gone else packet for packet, gone in zip(coded.packets, lost, strict=True))
    return Coded(coded.samples, packets, header=coded.header)


def repeat_last(lost: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each packet the place of the last one that arrived; before the first arrival, that of the first."""
    arrived = np.flatnonzero(~lost)
    places = np.where(lost, -1, np.arange(len(lost)))
    return np.asarray(np.maximum(np.maximum.accumulate(places), arrived[0]), np.int64)
