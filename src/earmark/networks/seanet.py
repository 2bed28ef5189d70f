"""SEANet around a residual quantiser: SpeechTokenizer and FunCodec, on waveforms or on magnitudes and phases.

    encoder   convolution, (residual blocks, downsampling) for each ratio, LSTM, convolution
    decoder   convolution, LSTM, (upsampling, residual blocks) for each ratio, convolution

A ratio is a number for sounds, and (frequency, time) for spectrograms, whose frequencies shrink to one before the
LSTM. Modules stand in one list, `model`, numbered as in the checkpoints; the encoder uses the ratios backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.layers import Lstm, PaddedConvolution, PaddedTransposed, ResidualQuantiser, activation_of, chain


@dataclass(frozen=True)
class SeanetShape:
    """Either half, under the names of FunCodec's configs and with its values where a config says nothing."""

    ratios: tuple[tuple[int, ...], ...]
    channels: int = 1
    dimension: int = 128
    n_filters: int = 32
    activation: str = "ELU"
    # convolutions
    kernel_size: int = 7
    last_kernel_size: int = 7
    causal: bool = False
    norm: str = "weight_norm"
    pad_mode: str = "reflect"
    conv_group_ratio: int = -1  # channels of a group of convolutions, halved; -1: one group
    tr_conv_group_ratio: int = -1
    last_out_padding: tuple[tuple[int, ...], ...] = ()  # edges of the last upsampling that are not cut off
    # residual blocks
    true_skip: bool = False
    n_residual_layers: int = 1
    residual_kernel_size: int = 3
    dilation_base: int = 2
    compress: int = 2
    # the LSTM
    seq_layer_num: int = 2  # 0: none
    bidirectional: bool = False
    res_seq: bool = True  # its input is added to its output

    @property
    def axes(self) -> int:
        return len(self.ratios[0])

    def bend(self, channels: int) -> Any:
        return activation_of(self.activation, channels, **({"alpha": 1.0} if self.activation == "ELU" else {}))

    def convolution(self, inputs: int, outputs: int, kernel: Sequence[int], **options: Any) -> Any:
        return PaddedConvolution(
            inputs, outputs, kernel, causal=self.causal, norm=self.norm, pad_mode=self.pad_mode, **options
        )

    def blocks(self, channels: int) -> list[Any]:
        return [_Residual(self, channels, self.dilation_base**layer) for layer in range(self.n_residual_layers)]

    def memory(self, width: int, bidirectional: bool) -> list[Any]:
        layers = self.seq_layer_num
        return [Lstm(width, layers, bidirectional=bidirectional, skip=self.res_seq)] if layers else []


def _groups(channels: int, ratio: int) -> int:
    return channels // 2 // ratio if ratio > 0 else 1


class _Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: SeanetShape, channels: int, dilation: int) -> None:
        super().__init__()
        hidden = channels // shape.compress
        ones, wide = (1,) * shape.axes, (shape.residual_kernel_size,) * shape.axes
        groups = _groups(hidden, shape.conv_group_ratio)
        self.block = nn.Sequential(
            shape.bend(channels),
            shape.convolution(channels, hidden, wide, dilation=(*ones[1:], dilation), groups=groups),
            shape.bend(hidden),
            shape.convolution(hidden, channels, ones, groups=groups),
        )
        self.shortcut = nn.Identity()
        if not shape.true_skip:
            groups = _groups(channels, shape.conv_group_ratio)
            self.shortcut = shape.convolution(channels, channels, ones, groups=groups)

    def forward(self, values: Any) -> Any:
        return self.shortcut(values) + self.block(values)


def _encoder(shape: SeanetShape) -> Any:
    """Sounds [B, channels, T] or spectrograms [B, channels, F, T] to latents [B, dimension, frames]."""
    width = shape.n_filters
    modules = [shape.convolution(shape.channels, width, (shape.kernel_size,) * shape.axes)]
    for ratio in reversed(shape.ratios):
        kernel, groups = tuple(2 * step for step in ratio), _groups(width, shape.conv_group_ratio)
        modules += [
            *shape.blocks(width),
            shape.bend(width),
            shape.convolution(width, 2 * width, kernel, stride=ratio, groups=groups),
        ]
        width *= 2
    if shape.axes == 2:  # no frequencies are left
        modules.append(nn.Flatten(1, 2))
    modules += shape.memory(width, shape.bidirectional)
    width *= 2 if shape.bidirectional else 1
    modules += [shape.bend(width), shape.convolution(width, shape.dimension, (shape.last_kernel_size,))]
    return chain(model=nn.Sequential(*modules))


def _decoder(shape: SeanetShape) -> Any:
    """Latents [B, dimension, frames] to sounds [B, channels, T] or spectrograms [B, channels, F, T]."""
    width = shape.n_filters * 2 ** len(shape.ratios)
    modules = [shape.convolution(shape.dimension, width, (shape.kernel_size,))]
    modules += shape.memory(width, bidirectional=False)
    if shape.axes == 2:
        modules.append(nn.Unflatten(1, (width, 1)))
    for number, ratio in enumerate(shape.ratios, start=1):
        upsampling = PaddedTransposed(
            width, width // 2, tuple(2 * step for step in ratio), ratio, causal=shape.causal, norm=shape.norm,
            groups=_groups(width, shape.tr_conv_group_ratio),
            kept=shape.last_out_padding if number == len(shape.ratios) else (),
        )  # fmt: skip
        modules += [shape.bend(width), upsampling, *shape.blocks(width // 2)]
        width //= 2
    last = shape.convolution(width, shape.channels, (shape.last_kernel_size,) * shape.axes)
    return chain(model=nn.Sequential(*modules, shape.bend(width), last))


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
        spectrum = torch.stft(sounds[:, 0], self.size, self.hop, window=self.window, return_complex=True)
        magnitude = spectrum.abs().clamp(min=1e-6)
        if self.domain == "mag_angle":
            return torch.stack([magnitude.log(), spectrum.angle()], 1)
        phase = spectrum / magnitude
        return torch.stack([magnitude.log(), phase.real, phase.imag], 1)

    def synthesise(self, channels: Any) -> Any:
        """[B, channels, F, frames] to [B, 1, T]."""
        magnitude = functional.softplus(channels[:, 0])
        if self.domain == "mag_angle":
            spectrum = torch.polar(magnitude, torch.sin(channels[:, 1]) * torch.pi)
        else:
            spectrum = magnitude * torch.complex(channels[:, 1], channels[:, 2])
        return torch.istft(spectrum, self.size, self.hop, window=self.window)[:, None]


class SeanetCodec(nn.Module):  # type: ignore[misc]
    """Names: encoder.model.*, quantizer.PATH.layers.*, decoder.model.*; the path is `vq` (SpeechTokenizer) or
    `rq.model` (FunCodec). What a checkpoint has beside them is for training and left out.
    """

    def __init__(
        self, encoder: SeanetShape, decoder: SeanetShape, codebooks: int, size: int, path: str,
        spectrogram: Spectrogram | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.encoder, self.decoder, self.spectrogram = _encoder(encoder), _decoder(decoder), spectrogram
        self.path, self.quantizer = path, ResidualQuantiser(codebooks, size, encoder.dimension)
        for name in reversed(path.split(".")):
            self.quantizer = chain(**{name: self.quantizer})

    def encode(self, sounds: Any, codebooks: int) -> Any:
        inputs = sounds if self.spectrogram is None else self.spectrogram.analyse(sounds)
        return self.quantizer.get_submodule(self.path).encode(self.encoder(inputs), codebooks)

    def decode(self, tokens: Any) -> Any:
        outputs = self.decoder(self.quantizer.get_submodule(self.path).decode(tokens))
        return (outputs if self.spectrogram is None else self.spectrogram.synthesise(outputs))[0, 0]
