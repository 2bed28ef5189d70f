"""What models of spectrogram patches share: a Kaldi filter bank of fixed length, and the choice of tokens.

    clip, cut to the context -- filter bank [frames, bands] -- zeros behind it -- normalised -- patches, [CLS]

    tokens=cls       one vector per clip: the token(s) in front of the patches
    tokens=patches   every patch, in order of time, then of frequency
    tokens=frames    the mean over frequency of the patches of one moment

`valid` counts the patches (or moments) that heard at least one frame of sound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.extractors.contract import Waveform
from earmark.extractors.torch_models import Batch, Settings, TorchExtractor

__all__ = ["TOKENS", "FilterBank", "PatchExtractor", "frames_in"]

TOKENS = ("cls", "patches", "frames")
RATE, FRAME, HOP = 16000, 400, 160
"""Kaldi's frames: 25 ms every 10 ms, only those that lie within the clip."""


@dataclass(frozen=True)
class FilterBank:
    """The spectrogram a model was trained on. `stride` is frames from one column of patches to the next."""

    frames: int
    bands: int
    mean: float
    deviation: float  # values are divided by twice this
    patch: int = 16
    stride: int = 16
    window: str = "hanning"
    gain: float = 1.0

    @property
    def samples(self) -> int:
        return (self.frames - 1) * HOP + FRAME

    @property
    def columns(self) -> int:
        return (self.frames - self.patch) // self.stride + 1


class PatchExtractor(TorchExtractor):
    """A model of patches; a family adds `load` and `hidden`."""

    bank: FilterBank

    def __init__(self, settings: Settings, tokens: str) -> None:
        super().__init__(settings)
        if tokens not in TOKENS:
            raise UsageError(f"There are no tokens {tokens!r}: choose from {', '.join(TOKENS)}.")
        self.tokens = tokens

    def frame_rate(self, rows: int) -> float | None:
        """Answers per second, for the card."""
        moments = RATE / HOP / self.bank.stride
        return {"cls": None, "patches": moments * rows, "frames": moments}[self.tokens]

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        return np.pad(waveform, (0, self.bank.samples - len(waveform)))

    def spectrogram(self, batch: Batch) -> Any:
        """The normalised filter bank [B, frames, bands]; frames behind a clip's end are zero before normalisation."""
        from earmark.networks.spectrograms import kaldi_fbank

        torch = self._torch
        values = kaldi_fbank(batch.sounds * self.bank.gain, self.bank.bands, self.bank.window)
        own = torch.tensor([frames_in(samples) for samples in batch.samples], device=values.device)
        beyond = torch.arange(values.shape[1], device=values.device) >= own[:, None]
        values = values.masked_fill(beyond[..., None], 0.0)
        return ((values - self.bank.mean) / (2.0 * self.bank.deviation)).to(self._dtype)

    def chosen(self, hidden: Any, front: int, rows: int, *, by_time: bool = True) -> Any:
        """The tokens asked for, of hidden states [B, front + patches, D]; `by_time` says how patches are ordered."""
        if self.tokens == "cls":
            return hidden[:, :front].mean(dim=1, keepdim=True)
        batch, _, width = hidden.shape
        patches = hidden[:, front:]
        grid = patches.view(batch, -1, rows, width) if by_time else patches.view(batch, rows, -1, width).transpose(1, 2)
        return grid.mean(dim=2) if self.tokens == "frames" else grid.reshape(batch, -1, width)

    def valid(self, samples: int, frames: int) -> int:
        if self.tokens == "cls":
            return 1
        columns = math.ceil(frames_in(samples) / self.bank.stride)
        return columns * (frames // self.bank.columns)


def frames_in(samples: int) -> int:
    """Whole frames of a clip; a clip shorter than one has one, filled up with zeros."""
    return 1 + max(0, samples - FRAME) // HOP
