"""HiFi-Codec (AcademiCodec): an encoder like HiFi-GAN turned round, group-residual codebooks, HiFi-GAN.

The latent of 512 numbers is cut into groups, each with codebooks of its own; what the first round of them leaves over
goes to a second round. Tokens are in the order round 1 group 1, round 1 group 2, round 2 group 1, round 2 group 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.layers import DilatedBlock, chain, nearest

WIDTH = 512  # of latents, in every published config
FIRST = 32  # channels of the encoder before it halves the rate
SLOPE = 0.1


@dataclass(frozen=True)
class HiFiCodecShape:
    """The values of a config under its own names."""

    upsample_rates: tuple[int, ...]
    upsample_kernel_sizes: tuple[int, ...]
    upsample_initial_channel: int
    resblock_kernel_sizes: tuple[int, ...]
    resblock_dilation_sizes: tuple[tuple[int, ...], ...]
    paired: bool  # blocks of two convolutions for each dilation (resblock "1"), or of one ("2")
    n_code_groups: int
    n_codes: int

    def blocks(self, channels: int) -> list[DilatedBlock]:
        """A residual block of each kernel."""
        kinds = zip(self.resblock_kernel_sizes, self.resblock_dilation_sizes, strict=True)
        return [
            DilatedBlock(partial(_same, channels, channels, kernel), dilations, self.paired, SLOPE, "convs")
            for kernel, dilations in kinds
        ]

    @property
    def steps(self) -> list[tuple[int, int]]:
        """The rate and the kernel of each upsampling."""
        return list(zip(self.upsample_rates, self.upsample_kernel_sizes, strict=True))


def _same(inputs: int, outputs: int, kernel: int, dilation: int = 1) -> Any:
    return nn.Conv1d(inputs, outputs, kernel, dilation=dilation, padding=(kernel - 1) * dilation // 2)


class _Encoder(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: HiFiCodecShape) -> None:
        super().__init__()
        self.conv_pre = _same(1, FIRST, 7)
        self.ups, self.resblocks, self.normalize = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        channels = FIRST
        for rate, kernel in reversed(shape.steps):
            self.ups.append(nn.Conv1d(channels, 2 * channels, kernel, rate, padding=(kernel - rate) // 2))
            channels *= 2
            for block in reversed(shape.blocks(channels)):
                self.resblocks.append(block)
                self.normalize.append(nn.GroupNorm(channels // 16, channels, eps=1e-6))
        self.conv_post = _same(WIDTH, WIDTH, 3)
        self.kinds = len(shape.resblock_kernel_sizes)

    def forward(self, sounds: Any) -> Any:
        values = self.conv_pre(sounds)
        for step, down in enumerate(self.ups):
            values = down(functional.leaky_relu(values, SLOPE))
            total: Any = 0.0
            for number in range(step * self.kinds, (step + 1) * self.kinds):  # the sum so far is normalised each time
                total = self.normalize[number](total + self.resblocks[number](values))
            values = total / self.kinds
        return self.conv_post(functional.leaky_relu(values))


class _Quantiser(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: HiFiCodecShape) -> None:
        super().__init__()
        width = WIDTH // shape.n_code_groups
        self.quantizer_modules, self.quantizer_modules2 = (
            nn.ModuleList([chain(embedding=nn.Embedding(shape.n_codes, width)) for _ in range(shape.n_code_groups)])
            for _ in range(2)
        )

    def encode(self, latents: Any) -> Any:
        left = latents[0].T
        tokens = []
        for groups in (self.quantizer_modules, self.quantizer_modules2):
            parts = left.chunk(len(groups), -1)
            chosen = [nearest(part, group.embedding.weight) for part, group in zip(parts, groups, strict=True)]
            left = left - _entries(groups, chosen)
            tokens += chosen
        return torch.stack(tokens)

    def decode(self, tokens: Any) -> Any:
        groups = len(self.quantizer_modules)
        first = _entries(self.quantizer_modules, tokens[:groups])
        return (first + _entries(self.quantizer_modules2, tokens[groups:])).T[None]


def _entries(groups: Any, tokens: Sequence[Any]) -> Any:
    return torch.cat([group.embedding(row) for row, group in zip(tokens, groups, strict=True)], -1)


class _Generator(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: HiFiCodecShape) -> None:
        super().__init__()
        channels = shape.upsample_initial_channel
        self.conv_pre = _same(WIDTH, channels, 7)
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        for rate, kernel in shape.steps:
            self.ups.append(nn.ConvTranspose1d(channels, channels // 2, kernel, rate, padding=(kernel - rate) // 2))
            channels //= 2
            self.resblocks.extend(shape.blocks(channels))
        self.conv_post = _same(channels, 1, 7)
        self.kinds = len(shape.resblock_kernel_sizes)

    def forward(self, latents: Any) -> Any:
        values = self.conv_pre(latents)
        for step, up in enumerate(self.ups):
            values = up(functional.leaky_relu(values, SLOPE))
            blocks = self.resblocks[step * self.kinds : (step + 1) * self.kinds]
            values = sum(block(values) for block in blocks) / self.kinds
        return torch.tanh(self.conv_post(functional.leaky_relu(values, SLOPE)))


class HiFiCodec(nn.Module):  # type: ignore[misc]
    """Names: encoder.*, quantizer.*, generator.*, as the three parts of a checkpoint are called."""

    def __init__(self, shape: HiFiCodecShape) -> None:
        super().__init__()
        self.encoder, self.quantizer, self.generator = _Encoder(shape), _Quantiser(shape), _Generator(shape)

    def encode(self, sounds: Any, codebooks: int) -> Any:
        return self.quantizer.encode(self.encoder(sounds))

    def decode(self, tokens: Any) -> Any:
        return self.generator(self.quantizer.decode(tokens))[0, 0]
