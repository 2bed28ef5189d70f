"""What a codec is: a card, `encode` and `decode`. No base class is needed; anything of this shape will do.

    waveform at card.rate -- encode --> Coded -- decode --> waveform at card.rate

A tokenizer that cannot make sound of its tokens has no `decode` (`card.encode_only`): its rate and its tokens are
measured, and nothing of its sound.

`decode` is given what `encode` returned and nothing else: runs decode later, in another process that sees nothing of
what the encoder wrote, with another instance of the codec (`earmark.codecs.cells`). Resampling, counting bits, timing
and alignment are the harness's work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from earmark.cards import Card
from earmark.errors import InputError
from earmark.scores import Measurement as Measured

__all__ = [
    "CATEGORIES",
    "ENCODE_ONLY",
    "Category",
    "Codec",
    "CodecCard",
    "CodecFailure",
    "Coded",
    "Concealing",
    "Measured",
    "Waveform",
]

Waveform = NDArray[np.float32]
Category = Literal["speech", "audio", "music"]
CATEGORIES: tuple[Category, ...] = ("speech", "audio", "music")
ENCODE_ONLY = "encode only: it makes tokens, and no sound of them"
"""Why nothing that needs a decoded sound is measured of such a codec."""


@dataclass(frozen=True)
class Coded:
    """What a codec sends: packets of bytes, or tokens [codebooks, frames]; never both.

    `samples` is how long the waveform was at the codec's rate, which any container or call set-up would say.
    `header` is what a decoder must be told once and for all (a stream's set-up); where it changes with the sound, all
    of it beyond 8 bytes counts towards the rate.
    """

    samples: int
    packets: tuple[bytes, ...] = ()
    tokens: NDArray[np.int64] | None = None
    header: bytes = b""


@dataclass(frozen=True)
class CodecCard(Card):
    """Facts about one setting of a codec that listing, planning and reports need without loading it."""

    name: str  # family@kbps, as on the command line
    family: str
    title: str = ""
    rate: int = 16000
    kbps: float | None = None  # nominal; what is sent is counted
    frame_rate: float | None = None  # packets or token frames per second
    codebooks: int | None = None
    codebook_sizes: tuple[int, ...] = ()  # one size for each codebook
    packet_bits: int | None = None  # the first so many bits of each packet are used, where they do not fill its bytes
    causal: bool | None = None
    delay: int | None = None  # samples at `rate` by which the decoded waveform lags; None: to be calibrated
    lossless: bool = False
    encode_only: bool = False  # makes tokens and no sound of them; set by itself where there is no `decode`
    variable_rate: bool = False
    licence: str = ""
    citation: str = ""
    extra: str = ""  # the optional dependency group it needs
    checkpoint: str = ""  # the weights that are opened when no others are named
    how_to_get: str = ""  # where its weights come from, when they cannot be had by name
    paper_code: str = ""  # its letter and number in Codec-SUPERB, e.g. E3
    version: str = "1"  # part of the cache key: raise it when the output changes
    notes: str = ""

    attribute_types = (str, int, float, tuple)

    @classmethod
    def blank(cls, name: str) -> Self:
        return cls(name=name, family=name.partition("@")[0])


@runtime_checkable
class Codec(Protocol):
    """Mono float32 waveforms at card.rate in and out. What comes out may be longer or shorter by less than a frame."""

    card: CodecCard

    def encode(self, waveform: Waveform) -> Coded: ...

    def decode(self, coded: Coded) -> Waveform: ...


@runtime_checkable
class Concealing(Codec, Protocol):
    """A codec that can decode when packets (or token frames) are lost; `lost` marks them."""

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform: ...


class CodecFailure(InputError):
    """A codec did not keep its contract on one clip: the clip's rows are `failed`, with this sentence as the reason."""
