"""HiFi-Codec (AcademiCodec): an encoder like HiFi-GAN turned round, group-residual codebooks, HiFi-GAN.

The latent of 512 numbers is cut into groups, each with codebooks of its own; what the first round of them leaves over
goes to a second round. Tokens are in the order round 1 group 1, round 1 group 2, round 2 group 1, round 2 group 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.quantisers import nearest

__all__ = ["HiFiCodec", "Shape"]

WIDTH = 512  # of latents, in every published config
FIRST = 32  # channels of the encoder before it halves the rate
SLOPE = 0.1


@dataclass(frozen=True)
class Shape:
    rates: tuple[int, ...]
    kernels: tuple[int, ...]
    channels: int
    residual_kernels: tuple[int, ...]
    residual_dilations: tuple[tuple[int, ...], ...]
    paired: bool  # blocks of two convolutions for each dilation ("1"), or of one ("2")
    groups: int
    size: int


def _same(inputs: int, outputs: int, kernel: int, dilation: int = 1) -> Any:
    return nn.Conv1d(inputs, outputs, kernel, dilation=dilation, padding=(kernel - 1) * dilation // 2)


class _Paired(nn.Module):  # type: ignore[misc]
    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList([_same(channels, channels, kernel, dilation) for dilation in dilations])
        self.convs2 = nn.ModuleList([_same(channels, channels, kernel) for _ in dilations])

    def forward(self, values: Any) -> Any:
        for first, second in zip(self.convs1, self.convs2, strict=True):
            bent = first(functional.leaky_relu(values, SLOPE))
            values = values + second(functional.leaky_relu(bent, SLOPE))
        return values


class _Single(nn.Module):  # type: ignore[misc]
    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.convs = nn.ModuleList([_same(channels, channels, kernel, dilation) for dilation in dilations])

    def forward(self, values: Any) -> Any:
        for convolution in self.convs:
            values = values + convolution(functional.leaky_relu(values, SLOPE))
        return values


class _Encoder(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        block = _Paired if shape.paired else _Single
        kinds = list(zip(shape.residual_kernels, shape.residual_dilations, strict=True))[::-1]
        self.conv_pre = _same(1, FIRST, 7)
        self.ups, self.resblocks, self.normalize = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        channels = FIRST
        for rate, kernel in list(zip(shape.rates, shape.kernels, strict=True))[::-1]:
            self.ups.append(nn.Conv1d(channels, 2 * channels, kernel, rate, padding=(kernel - rate) // 2))
            channels *= 2
            for width, dilations in kinds:
                self.resblocks.append(block(channels, width, dilations))
                self.normalize.append(nn.GroupNorm(channels // 16, channels, eps=1e-6))
        self.conv_post = _same(WIDTH, WIDTH, 3)
        self.kinds = len(kinds)

    def forward(self, sounds: Any) -> Any:
        values = self.conv_pre(sounds)
        for step, down in enumerate(self.ups):
            values = down(functional.leaky_relu(values, SLOPE))
            total: Any = 0.0
            for place in range(step * self.kinds, (step + 1) * self.kinds):  # the sum so far is normalised each time
                total = self.normalize[place](total + self.resblocks[place](values))
            values = total / self.kinds
        return self.conv_post(functional.leaky_relu(values))


class _Entries(nn.Module):  # type: ignore[misc]
    def __init__(self, size: int, dimension: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, dimension)


class _Quantiser(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = WIDTH // shape.groups
        self.quantizer_modules = nn.ModuleList([_Entries(shape.size, width) for _ in range(shape.groups)])
        self.quantizer_modules2 = nn.ModuleList([_Entries(shape.size, width) for _ in range(shape.groups)])

    def encode(self, latents: Any) -> Any:
        left = latents[0].T
        tokens = []
        for round_ in (self.quantizer_modules, self.quantizer_modules2):
            parts = left.chunk(len(round_), -1)
            chosen = [nearest(part, one.embedding.weight) for part, one in zip(parts, round_, strict=True)]
            left = left - self._said(round_, chosen)
            tokens += chosen
        return torch.stack(tokens)

    def decode(self, tokens: Any) -> Any:
        groups = len(self.quantizer_modules)
        first = self._said(self.quantizer_modules, tokens[:groups])
        return (first + self._said(self.quantizer_modules2, tokens[groups:])).T[None]

    def _said(self, round_: Any, tokens: Sequence[Any]) -> Any:
        return torch.cat([one.embedding(row) for row, one in zip(tokens, round_, strict=True)], -1)


class _Generator(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        block = _Paired if shape.paired else _Single
        kinds = list(zip(shape.residual_kernels, shape.residual_dilations, strict=True))
        channels = shape.channels
        self.conv_pre = _same(WIDTH, channels, 7)
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        for rate, kernel in zip(shape.rates, shape.kernels, strict=True):
            self.ups.append(nn.ConvTranspose1d(channels, channels // 2, kernel, rate, padding=(kernel - rate) // 2))
            channels //= 2
            self.resblocks.extend(block(channels, width, dilations) for width, dilations in kinds)
        self.conv_post = _same(channels, 1, 7)
        self.kinds = len(kinds)

    def forward(self, latents: Any) -> Any:
        values = self.conv_pre(latents)
        for step, up in enumerate(self.ups):
            values = up(functional.leaky_relu(values, SLOPE))
            blocks = self.resblocks[step * self.kinds : (step + 1) * self.kinds]
            values = sum(block(values) for block in blocks) / self.kinds
        return torch.tanh(self.conv_post(functional.leaky_relu(values, SLOPE)))


class HiFiCodec(nn.Module):  # type: ignore[misc]
    """Names: encoder.*, quantizer.*, generator.*, as the three parts of a checkpoint are called."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.encoder, self.quantizer, self.generator = _Encoder(shape), _Quantiser(shape), _Generator(shape)

    def encode(self, sounds: Any, codebooks: int) -> Any:
        return self.quantizer.encode(self.encoder(sounds))

    def decode(self, tokens: Any) -> Any:
        return self.generator(self.quantizer.decode(tokens))[0, 0]
