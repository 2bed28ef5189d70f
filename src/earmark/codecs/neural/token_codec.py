"""A codec that is a network: sound to tokens [codebooks, frames], and from the tokens alone back to sound.

    waveform -- padded to whole frames --> encoder, codebooks --> tokens -- codebooks, decoder --> waveform, cut

The config is read when a codec is opened, the weights when they are first needed. Inference keeps no state, so one
codec may serve several threads; a pickled one loads its weights again. What a decoder must know beside the tokens, the
loudness that some networks take out, travels as the header: 32 bits for a clip, counted apart.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from earmark.codecs.contract import CodecCard, CodecFailure, Coded, Waveform
from earmark.codecs.neural.checkpoints import fingerprint
from earmark.codecs.neural.naming import told
from earmark.codecs.neural.options import Options
from earmark.errors import UsageError, require
from earmark.extractors.pretrained import Checkpoint
from earmark.extractors.torch_models import device_of

__all__ = ["TokenCodec"]

AGREEMENT = 0.05
"""How far the rate of a checkpoint may lie from the rate in its name, as a share: printed rates are rounded."""

_LOADING = threading.Lock()


class TokenCodec:
    """What the families share. A family says how to `load`, make tokens (`tokens_of`) and make sound (`sound_of`)."""

    card: CodecCard
    thread_safe = True

    def __init__(
        self,
        card: CodecCard,
        checkpoint: Checkpoint,
        options: Options,
        *,
        rate: int,
        hop: int,
        sizes: Sequence[int],
        whole: int = 0,
        fewer: bool = True,
        packages: Sequence[str] = ("torch",),
    ) -> None:
        """`sizes` are of all the checkpoint's codebooks; sound is padded to multiples of `whole` samples (of none: 0).

        `fewer` says whether the last codebooks may be left out.
        """
        require("torch", "These codecs", "models")
        self.checkpoint, self.options = checkpoint, options
        self.hop, self.whole = hop, whole
        self.codebooks = _chosen(card, checkpoint, options, len(sizes), fewer)
        frame_rate = rate / hop
        kbps = frame_rate * sum(math.log2(size) for size in sizes[: self.codebooks]) / 1000
        _check_rate(card, checkpoint, options, kbps, self.codebooks)
        versions = [f"{package} {metadata.version(package)}" for package in packages]
        self.card = replace(
            card,
            name=card.name
            if options.codebooks is None or "?" in card.name
            else f"{card.name.rpartition('@')[0]}@{kbps:.4g}",
            rate=rate,
            kbps=card.kbps if options.codebooks is None else kbps,
            frame_rate=frame_rate,
            codebooks=self.codebooks,
            codebook_sizes=tuple(sizes[: self.codebooks]),
            checkpoint=told(checkpoint.name),
            version="; ".join([card.version, *versions, fingerprint(checkpoint)]),
            paper_code=card.paper_code if options.codebooks in (None, card.codebooks) else "",
        )
        self._device = device_of(require("torch", "These codecs", "models"), options.device)
        self._network: Any = None

    # --- what a family says ---

    def load(self) -> Any:
        """The network with its weights, on the CPU."""
        raise NotImplementedError

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
            given = torch.from_numpy(np.array(tokens, np.int64)).to(self._device)  # those of a cache are not writable
            sound = self.sound_of(self.network, given, coded.header)
        found: Waveform = sound[: coded.samples].float().cpu().numpy().copy()
        return found

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


def _chosen(card: CodecCard, checkpoint: Checkpoint, options: Options, most: int, fewer: bool) -> int:
    asked = int(options.codebooks or card.codebooks or most)
    if not 1 <= asked <= most:
        raise UsageError(f"{checkpoint.name} has {most} codebooks: {asked} are not possible.")
    if asked != most and not fewer:
        raise UsageError(f"{card.family} needs all of its {most} codebooks: {asked} are not possible.")
    return asked


def _check_rate(card: CodecCard, checkpoint: Checkpoint, options: Options, kbps: float, codebooks: int) -> None:
    if options.codebooks is None and card.kbps is not None and abs(kbps - card.kbps) > AGREEMENT * card.kbps:
        raise UsageError(
            f"{checkpoint.name} sends {kbps:.4g} kbps with {codebooks} codebooks, not the {card.kbps:g} of its name: "
            f"choose the codebooks yourself with ?codebooks={codebooks}, and the name will tell the rate."
        )
