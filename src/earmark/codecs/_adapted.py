"""A stranger's codec in Earmark's shape: a card with defaults, and whatever `encode` returns made into Coded.

`encode` may return Coded, bytes, a list of bytes (packets), or whole numbers [codebooks, frames] or [frames] (tokens);
`decode` is given the same kind. What has no `decode` is a tokenizer that only encodes, and must return tokens. An
instance that has encoded nothing yet encodes a second of noise to find out which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.cards import Adapter
from earmark.codecs.contract import ENCODE_ONLY, CodecCard, CodecFailure, Coded, Waveform
from earmark.extractors.contract import as_array


class Adapted(Adapter[CodecCard]):
    """Other attributes are the codec's own (`decode_with_losses`, `thread_safe`)."""

    card_type = CodecCard

    def __init__(self, model: Any, name: str = "") -> None:
        super().__init__(model, name)
        if not callable(getattr(model, "decode", None)):
            self.card = replace(self.card, encode_only=True)
        self._kind: str | None = None

    def encode(self, waveform: Waveform) -> Coded:
        answer = self.model.encode(waveform)
        self._kind = _kind_of(answer)
        coded = _as_coded(answer, self._kind, len(waveform), self.card.name)
        if self.card.encode_only and coded.tokens is None:
            raise CodecFailure(
                f"{self.card.name}: there is no decode, and encode returned packets: return tokens "
                "[codebooks, frames], or give it decode."
            )
        return coded

    def decode(self, coded: Coded) -> Waveform:
        if self.card.encode_only:
            raise CodecFailure(f"{self.card.name}: {ENCODE_ONLY}.")
        return _waveform(self.model.decode(_as_given(coded, self.kind)))

    @property
    def kind(self) -> str:
        """What the codec speaks: coded, bytes, packets, tokens, or a row of tokens."""
        if self._kind is None:
            noise = 0.1 * np.random.default_rng(0).standard_normal(self.card.rate)
            self._kind = _kind_of(self.model.encode(noise.astype(np.float32)))
        return self._kind

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return self._decode_with_losses if name == "decode_with_losses" else value

    def _decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        return _waveform(self.model.decode_with_losses(_as_given(coded, self.kind), lost))


def _kind_of(answer: Any) -> str:
    if isinstance(answer, Coded):
        return "coded"
    if isinstance(answer, bytes | bytearray | memoryview):
        return "bytes"
    if isinstance(answer, np.ndarray) or hasattr(answer, "detach"):
        return "row" if answer.ndim == 1 else "tokens"
    if isinstance(answer, Sequence) and all(isinstance(packet, bytes) for packet in answer):
        return "packets"
    return "unknown"


def _as_coded(answer: Any, kind: str, samples: int, name: str) -> Coded:
    match kind:
        case "coded":
            coded: Coded = answer
            return coded
        case "bytes":
            return Coded(samples, (bytes(answer),))
        case "packets":
            return Coded(samples, tuple(answer))
        case "row":
            return Coded(samples, tokens=as_array(answer)[None, :])
        case "tokens":
            return Coded(samples, tokens=as_array(answer))
    raise CodecFailure(
        f"{name}: encode returned {type(answer).__name__}: return Coded, bytes, a list of bytes, or an array of tokens "
        "[codebooks, frames]."
    )


def _as_given(coded: Coded, kind: str) -> Any:
    match kind:
        case "bytes":
            return coded.packets[0]
        case "packets":
            return list(coded.packets)
        case "row":
            return None if coded.tokens is None else coded.tokens[0]
        case "tokens":
            return coded.tokens
    return coded


def _waveform(decoded: Any) -> Waveform:
    """What the codec returned, tensors as arrays; the harness says what is wrong with anything else."""
    waveform: Waveform = as_array(decoded) if hasattr(decoded, "detach") else decoded
    return waveform
