"""SEANet: the encoder and decoder that EnCodec, SpeechTokenizer and FunCodec share, for sounds and for spectrograms.

    encoder   convolution, (residual blocks, downsampling) for each ratio, LSTM, convolution
    decoder   convolution, LSTM, (upsampling, residual blocks) for each ratio, convolution

A ratio is a number for sounds, and (frequency, time) for spectrograms, whose frequencies shrink to one before the
LSTM. Modules stand in one list, `model`, numbered as in the checkpoints; the encoder uses the ratios backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from earmark.networks.padded import Lstm, PaddedConvolution, PaddedTransposed, activation_of

__all__ = ["Decoder", "Encoder", "Shape"]


@dataclass(frozen=True)
class Shape:
    """What a config says about either half."""

    ratios: tuple[tuple[int, ...], ...]
    channels: int = 1
    dimension: int = 128
    filters: int = 32
    residual_layers: int = 1
    kernel: int = 7
    last_kernel: int = 7
    residual_kernel: int = 3
    dilation_base: int = 2
    compress: int = 2
    lstm: int = 2
    bidirectional: bool = False
    skip_lstm: bool = True
    true_skip: bool = False
    causal: bool = False
    trim_right_ratio: float = 1.0
    norm: str = "weight_norm"
    pad_mode: str = "reflect"
    activation: str = "ELU"
    activation_parameters: dict[str, float] = field(default_factory=lambda: {"alpha": 1.0})
    group_ratio: int = -1  # channels of a group of convolutions, halved; -1: one group
    transposed_group_ratio: int = -1
    last_kept: tuple[tuple[int, ...], ...] = ()  # edges of the last upsampling that are not cut off

    @property
    def axes(self) -> int:
        return len(self.ratios[0])

    def bend(self, channels: int) -> Any:
        return activation_of(self.activation, channels, **self.activation_parameters)

    def convolution(self, inputs: int, outputs: int, kernel: Sequence[int], **options: Any) -> Any:
        return PaddedConvolution(
            inputs, outputs, kernel, causal=self.causal, norm=self.norm, pad_mode=self.pad_mode, **options
        )

    def block(self, channels: int, layer: int) -> Any:
        return _Residual(self, channels, self.dilation_base**layer)

    def memory(self, width: int, bidirectional: bool) -> list[Any]:
        return [Lstm(width, self.lstm, bidirectional=bidirectional, skip=self.skip_lstm)] if self.lstm else []


def _groups(channels: int, ratio: int) -> int:
    return channels // 2 // ratio if ratio > 0 else 1


class _Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Shape, channels: int, dilation: int) -> None:
        super().__init__()
        hidden = channels // shape.compress
        ones, wide = (1,) * shape.axes, (shape.residual_kernel,) * shape.axes
        groups = _groups(hidden, shape.group_ratio)
        dilations = (*ones[1:], dilation)
        self.block = nn.Sequential(
            shape.bend(channels),
            shape.convolution(channels, hidden, wide, dilation=dilations, groups=groups),
            shape.bend(hidden),
            shape.convolution(hidden, channels, ones, groups=groups),
        )
        self.shortcut = nn.Identity()
        if not shape.true_skip:
            self.shortcut = shape.convolution(channels, channels, ones, groups=_groups(channels, shape.group_ratio))

    def forward(self, values: Any) -> Any:
        return self.shortcut(values) + self.block(values)


class _Squeeze(nn.Module):  # type: ignore[misc]
    """[B, C, 1, T] to [B, C, T]: no frequencies are left."""

    def forward(self, values: Any) -> Any:
        return values.squeeze(2)


class _Unsqueeze(nn.Module):  # type: ignore[misc]
    def forward(self, values: Any) -> Any:
        return values.unsqueeze(2)


class Encoder(nn.Module):  # type: ignore[misc]
    """Sounds [B, channels, T] or spectrograms [B, channels, F, T] to latents [B, dimension, frames]."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.filters
        modules = [shape.convolution(shape.channels, width, (shape.kernel,) * shape.axes)]
        for ratio in reversed(shape.ratios):
            modules += [shape.block(width, layer) for layer in range(shape.residual_layers)]
            kernel = tuple(2 * step for step in ratio)
            groups = _groups(width, shape.group_ratio)
            modules += [
                shape.bend(width),
                shape.convolution(width, 2 * width, kernel, stride=ratio, groups=groups),
            ]
            width *= 2
        if shape.axes == 2:
            modules.append(_Squeeze())
        modules += shape.memory(width, shape.bidirectional)
        width *= 2 if shape.bidirectional else 1
        modules += [shape.bend(width), shape.convolution(width, shape.dimension, (shape.last_kernel,))]
        self.model = nn.Sequential(*modules)

    def forward(self, sounds: Any) -> Any:
        return self.model(sounds)


class Decoder(nn.Module):  # type: ignore[misc]
    """Latents [B, dimension, frames] to sounds [B, channels, T] or spectrograms [B, channels, F, T]."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.filters * 2 ** len(shape.ratios)
        modules = [shape.convolution(shape.dimension, width, (shape.kernel,))]
        modules += shape.memory(width, bidirectional=False)
        if shape.axes == 2:
            modules.append(_Unsqueeze())
        for place, ratio in enumerate(shape.ratios, start=1):
            modules += [
                shape.bend(width),
                PaddedTransposed(
                    width,
                    width // 2,
                    tuple(2 * step for step in ratio),
                    ratio,
                    groups=_groups(width, shape.transposed_group_ratio),
                    causal=shape.causal,
                    trim_right_ratio=shape.trim_right_ratio,
                    norm=shape.norm,
                    kept=shape.last_kept if place == len(shape.ratios) else (),
                ),
            ]
            width //= 2
            modules += [shape.block(width, layer) for layer in range(shape.residual_layers)]
        modules += [
            shape.bend(width),
            shape.convolution(width, shape.channels, (shape.last_kernel,) * shape.axes),
        ]
        self.model = nn.Sequential(*modules)

    def forward(self, latents: Any) -> Any:
        return self.model(latents)
