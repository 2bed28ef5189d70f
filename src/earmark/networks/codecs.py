"""SpeechTokenizer and FunCodec: SEANet around a residual quantiser, in the time domain or on magnitudes and phases."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.quantisers import ResidualQuantiser
from earmark.networks.seanet import Decoder, Encoder, Shape

__all__ = ["FunCodec", "Spectrogram", "SpeechTokenizer"]


class _Held(nn.Module):  # type: ignore[misc]
    """A module under another name, as checkpoints nest them."""

    def __init__(self, name: str, module: Any) -> None:
        super().__init__()
        setattr(self, name, module)


class SpeechTokenizer(nn.Module):  # type: ignore[misc]
    """Names: encoder.model.*, quantizer.vq.layers.*, decoder.model.*; `transform` is for training and left out."""

    def __init__(self, encoder: Shape, decoder: Shape, codebooks: int, size: int) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(encoder), Decoder(decoder)
        self.quantizer = _Held("vq", ResidualQuantiser(codebooks, size, encoder.dimension))

    def encode(self, sounds: Any, codebooks: int) -> Any:
        return self.quantizer.vq.encode(self.encoder(sounds), codebooks)

    def decode(self, tokens: Any) -> Any:
        return self.decoder(self.quantizer.vq.decode(tokens))[0, 0]


class Spectrogram(nn.Module):  # type: ignore[misc]
    """Sounds as log magnitudes and phases, and back from what a decoder says of them.

    `mag_phase` has three channels, log magnitude and the phase as a complex number of length 1; `mag_angle` has two.
    """

    def __init__(self, domain: str, size: int, hop: int) -> None:
        super().__init__()
        self.domain, self.size, self.hop = domain, size, hop
        self.register_buffer("window", torch.hann_window(size), persistent=False)

    def analyse(self, sounds: Any) -> Any:
        """[B, 1, T] to [B, channels, F, frames]."""
        found = torch.stft(sounds[:, 0], self.size, self.hop, window=self.window, return_complex=True)
        magnitude = found.abs().clamp(min=1e-6)
        if self.domain == "mag_angle":
            return torch.stack([magnitude.log(), found.angle()], 1)
        phase = found / magnitude
        return torch.stack([magnitude.log(), phase.real, phase.imag], 1)

    def synthesise(self, said: Any) -> Any:
        """[B, channels, F, frames] to [B, 1, T]."""
        magnitude = functional.softplus(said[:, 0])
        if self.domain == "mag_angle":
            found = torch.polar(magnitude, torch.sin(said[:, 1]) * torch.pi)
        else:
            found = magnitude * torch.complex(said[:, 1], said[:, 2])
        return torch.istft(found, self.size, self.hop, window=self.window)[:, None]


class FunCodec(nn.Module):  # type: ignore[misc]
    """Names: encoder.model.*, quantizer.rq.model.layers.*, decoder.model.*."""

    def __init__(
        self, encoder: Shape, decoder: Shape, codebooks: int, size: int, spectrogram: Spectrogram | None
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.spectrogram = Encoder(encoder), Decoder(decoder), spectrogram
        self.quantizer = _Held("rq", _Held("model", ResidualQuantiser(codebooks, size, encoder.dimension)))

    def encode(self, sounds: Any, codebooks: int) -> Any:
        heard = sounds if self.spectrogram is None else self.spectrogram.analyse(sounds)
        return self.quantizer.rq.model.encode(self.encoder(heard), codebooks)

    def decode(self, tokens: Any) -> Any:
        said = self.decoder(self.quantizer.rq.model.decode(tokens))
        return (said if self.spectrogram is None else self.spectrogram.synthesise(said))[0, 0]
