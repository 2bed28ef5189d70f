"""A stranger's codec in Earmark's shape: a card with defaults, and whatever `encode` returns made into Coded.

`encode` may return Coded, bytes, a list of bytes (packets), or whole numbers [codebooks, frames] or [frames] (tokens);
`decode` is given the same kind. An instance that has encoded nothing yet encodes a second of noise to find out which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import CodecCard, CodecFailure, Coded, Waveform
from earmark.errors import UsageError

__all__ = ["Adapted", "is_codec"]


def is_codec(thing: Any) -> bool:
    """Whether it has `encode` and `decode`."""
    return callable(getattr(thing, "encode", None)) and callable(getattr(thing, "decode", None))


class Adapted:
    """Other attributes are the codec's own (`decode_with_losses`, `thread_safe`)."""

    def __init__(self, codec: Any, name: str = "") -> None:
        self.codec = codec
        self.has_own_card = getattr(codec, "card", None) is not None
        self.card = _card_of(codec, name or type(codec).__name__)
        self._kind: str | None = None

    def encode(self, waveform: Waveform) -> Coded:
        answer = self.codec.encode(waveform)
        self._kind = _kind_of(answer)
        return _as_coded(answer, self._kind, len(waveform), self.card.name)

    def decode(self, coded: Coded) -> Waveform:
        return _waveform(self.codec.decode(_as_given(coded, self.kind)))

    @property
    def kind(self) -> str:
        """What the codec speaks: coded, bytes, packets, tokens, or a row of tokens."""
        if self._kind is None:
            noise = 0.1 * np.random.default_rng(0).standard_normal(self.card.rate)
            self._kind = _kind_of(self.codec.encode(noise.astype(np.float32)))
        return self._kind

    def __getattr__(self, name: str) -> Any:
        if name == "codec":  # while unpickling, before __init__
            raise AttributeError(name)
        if name == "decode_with_losses" and hasattr(self.codec, name):
            return self._decode_with_losses
        return getattr(self.codec, name)

    def _decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        return _waveform(self.codec.decode_with_losses(_as_given(coded, self.kind), lost))


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
            return Coded(samples, tokens=_array(answer)[None, :])
        case "tokens":
            return Coded(samples, tokens=_array(answer))
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


def _card_of(codec: Any, name: str) -> CodecCard:
    """The codec's card, a mapping of its fields, or what its attributes say."""
    given = getattr(codec, "card", None)
    if isinstance(given, CodecCard):
        return given
    known = {field.name for field in fields(CodecCard)}
    if isinstance(given, Mapping):
        unknown = sorted(set(given) - known)
        if unknown:
            raise UsageError(f"The card of {name} has unknown fields: {', '.join(unknown)}.")
        return replace(CodecCard(name=name, family=name.partition("@")[0]), **given)
    plain = (str, int, float, tuple)
    found = {field: getattr(codec, field) for field in known if isinstance(getattr(codec, field, None), plain)}
    for spelling in ("sample_rate", "sampling_rate"):
        stated = getattr(codec, spelling, None)
        if "rate" not in found and isinstance(stated, int | float):
            found["rate"] = int(stated)
    return replace(CodecCard(name=name, family=name.partition("@")[0]), **found)


def _waveform(heard: Any) -> Waveform:
    """What the codec returned, tensors as arrays; the harness says what is wrong with anything else."""
    made: Waveform = _array(heard) if hasattr(heard, "detach") else heard
    return made


def _array(thing: Any) -> Any:
    return np.asarray(thing.detach().cpu().numpy() if hasattr(thing, "detach") else thing)
