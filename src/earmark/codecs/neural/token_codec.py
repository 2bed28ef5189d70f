"""A codec that is a network: sound to tokens [codebooks, frames], and from the tokens alone back to sound.

    waveform -- padded to whole frames --> encoder, codebooks --> tokens -- codebooks, decoder --> waveform, cut

The config is read when a codec is opened, the weights when they are first needed. Inference keeps no state, so one
codec may serve several threads; a pickled one loads its weights again. What a decoder must know beside the tokens, the
loudness that some networks take out, travels as the header: 32 bits for a clip, counted apart.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from importlib import metadata
from typing import Any, ClassVar, NamedTuple

import numpy as np

from earmark.codecs.contract import CodecCard, CodecFailure, Coded, Waveform
from earmark.codecs.neural.checkpoints import (
    Config,
    Layout,
    Options,
    fill_exactly,
    find,
    fingerprint,
    published_name,
    read_config,
    read_tensors,
)
from earmark.errors import UsageError, require
from earmark.extractors.pretrained import Checkpoint
from earmark.extractors.torch_models import device_of

AGREEMENT = 0.05
"""How far the rate of a checkpoint may lie from the rate in its name, as a share: printed rates are rounded."""

UNSEEN = "its layout follows the published code; it was tested here on random weights, not on the published ones"

_LOADING = threading.Lock()


def settings(
    family: str, codebooks: Mapping[Any, int], *, size: int = 1024, codes: Mapping[Any, str] | None = None,
    **facts: Any,
) -> Iterator[CodecCard]:  # fmt: skip
    """The cards of a family, one for each rate in kbps: so many codebooks of one size.

    `codes` are the letters and numbers of Codec-SUPERB's Table 3. Lower rates of the same weights leave out the last
    codebooks; kbps = frames a second x sum of log2(codebook sizes) / 1000.
    """
    for kbps, count in codebooks.items():
        yield CodecCard(
            name=f"{family}@{kbps:g}", family=family, extra="models", kbps=float(kbps), codebooks=count,
            codebook_sizes=(size,) * count, paper_code=(codes or {}).get(kbps, ""), **facts,
        )  # fmt: skip


class TokenFormat(NamedTuple):
    """What a checkpoint says of its tokens."""

    rate: int
    hop: int  # samples of a frame
    sizes: tuple[int, ...]  # of all the checkpoint's codebooks
    whole: int = 0  # sound is padded to multiples of so many samples; 0: it is not
    fewer: bool = True  # whether the last codebooks may be left out
    remark: str = ""  # what a reader of the card should know of this checkpoint


class TokenCodec:
    """What the families share. A family must `describe` its tokens and make the `empty` network of a config; it may
    replace `tokens_of` and `sound_of`, which call `encode` and `decode` of the network.
    """

    card: CodecCard
    thread_safe = True
    layout: ClassVar[Layout] = Layout()
    packages: ClassVar[tuple[str, ...]] = ("torch",)

    def __init__(self, card: CodecCard, checkpoint: Checkpoint, options: Options) -> None:
        torch = require("torch", "These codecs", "models")
        self.checkpoint, self.options = checkpoint, options
        form = self.open_config(card, checkpoint)
        chosen = options.codebooks
        self.hop, self.whole = form.hop, form.whole
        self.codebooks = _codebooks(card, checkpoint, chosen, form)
        frame_rate, sizes = form.rate / form.hop, form.sizes[: self.codebooks]
        kbps = frame_rate * sum(map(math.log2, sizes)) / 1000
        if chosen is None and card.kbps is not None and abs(kbps - card.kbps) > AGREEMENT * card.kbps:
            raise UsageError(
                f"{checkpoint.name} sends {kbps:.4g} kbps with {self.codebooks} codebooks, not the {card.kbps:g} of "
                f"its name: choose the codebooks yourself with ?codebooks={self.codebooks}, and the name will tell the "
                "rate."
            )
        versions = [f"{package} {metadata.version(package)}" for package in self.packages]
        renamed = chosen is not None and "?" not in card.name
        self.card = replace(
            card,
            name=f"{card.name.rpartition('@')[0]}@{kbps:.4g}" if renamed else card.name,
            rate=form.rate,
            kbps=card.kbps if chosen is None else kbps,
            frame_rate=frame_rate,
            codebooks=self.codebooks,
            codebook_sizes=sizes,
            checkpoint=published_name(checkpoint.name),
            version="; ".join([card.version, *versions, fingerprint(checkpoint)]),
            notes="; ".join(filter(None, [card.notes, form.remark])),
            paper_code=card.paper_code if chosen in (None, card.codebooks) else "",
        )
        self._device = device_of(torch, options.device)
        self._network: Any = None

    @classmethod
    def make(cls, card: CodecCard, checkpoint: str = "", **options: Any) -> TokenCodec:
        """The codec of a card with the weights of a folder, a file or a name on the hub."""
        given = Options.of(card.family, options)
        return cls(card, find(card, checkpoint, cls.layout_of(card), given), given)

    # --- what a family says ---

    @classmethod
    def layout_of(cls, card: CodecCard) -> Layout:
        return cls.layout

    def open_config(self, card: CodecCard, checkpoint: Checkpoint) -> TokenFormat:
        """Find the config of the checkpoint and read it."""
        return self.describe(read_config(checkpoint, self.layout_of(card)))

    def describe(self, config: Config) -> TokenFormat:
        """What a config says of the tokens; what it says of the network is kept for `empty`."""
        raise NotImplementedError

    def empty(self) -> Any:
        """The network without its weights."""
        raise NotImplementedError

    def tensors(self) -> Mapping[str, Any]:
        """The weights under the names of the network."""
        return read_tensors(self.checkpoint)

    def load(self) -> Any:
        """The network with its weights, on the CPU."""
        return fill_exactly(self.empty(), self.tensors(), self.checkpoint)

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        """Tokens [codebooks, frames] of a sound [1, 1, samples], and the header."""
        return network.encode(sound, self.codebooks), b""

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        """Samples [samples] of tokens [codebooks, frames]."""
        return network.decode(tokens)

    # --- what a codec does ---

    def encode(self, waveform: Waveform) -> Coded:
        samples = len(waveform)
        if not samples:
            return Coded(0, tokens=np.zeros((self.codebooks, 0), np.int64))
        whole = max(samples, self.hop)
        whole += -whole % self.whole if self.whole else 0
        torch = require("torch", "These codecs", "models")
        with torch.inference_mode(), self._exact(torch):
            sound = torch.from_numpy(np.pad(np.asarray(waveform, np.float32), (0, whole - samples)))
            tokens, header = self.tokens_of(self.network, sound[None, None].to(self._device))
        return Coded(samples, tokens=np.ascontiguousarray(tokens.cpu().numpy().astype(np.int64)), header=header)

    def decode(self, coded: Coded) -> Waveform:
        tokens = self._checked(coded)
        if not tokens.shape[1]:
            return np.zeros(0, np.float32)
        torch = require("torch", "These codecs", "models")
        with torch.inference_mode(), self._exact(torch):
            copy = torch.from_numpy(np.array(tokens, np.int64)).to(self._device)  # those of a cache are not writable
            sound = self.sound_of(self.network, copy, coded.header)
        waveform: Waveform = sound[: coded.samples].float().cpu().numpy().copy()
        return waveform

    def prepare(self) -> None:
        """Load the weights now, so that no clip is timed with them."""
        _ = self.network

    @property
    def network(self) -> Any:
        """The network on its device, loaded when it is first needed."""
        with _LOADING:
            if self._network is None:
                self._network = self.load().to(self._device)
        return self._network

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_network": None}

    def _checked(self, coded: Coded) -> Any:
        tokens = coded.tokens
        if tokens is None or tokens.ndim != 2 or len(tokens) != self.codebooks:
            shape = "none" if tokens is None else list(tokens.shape)
            raise CodecFailure(f"{self.card.name} decodes tokens [{self.codebooks}, frames], and was given {shape}.")
        sizes = np.asarray(self.card.codebook_sizes)[:, None]
        if ((tokens < 0) | (tokens >= sizes)).any():
            raise CodecFailure(
                f"{self.card.name} was given a token that no codebook has: from 0 to size - 1 there are."
            )
        return tokens

    def _exact(self, torch: Any) -> Any:
        """float32 means float32, and the same kernels every time, where the device would choose otherwise."""
        if torch.device(self._device).type != "cuda":
            return nullcontext()
        return torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)


def _codebooks(card: CodecCard, checkpoint: Checkpoint, chosen: int | None, form: TokenFormat) -> int:
    most = len(form.sizes)
    count = int(chosen or card.codebooks or most)
    if not 1 <= count <= most:
        raise UsageError(f"{checkpoint.name} has {most} codebooks: {count} are not possible.")
    if count != most and not form.fewer:
        raise UsageError(f"{card.family} needs all of its {most} codebooks: {count} are not possible.")
    return count
