"""SNAC: depthwise convolutions, attention in windows, and codebooks that speak at different rates.

    level 1   A               B               one token for `stride` frames of the encoder
    level 2   a       a'      b       b'
    level 3   1   2   3   4   5   6   7   8

What a coarse level says holds for all frames under it. Tokens of one coarsest frame are one column, coarse to fine, in
order of time: A a a' 1 2 3 4. The decoder adds noise that it shapes itself; here the noise is the same every time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.padded import Snake
from earmark.networks.quantisers import nearest

__all__ = ["SNAC", "Shape"]

HEAD = 64  # numbers of an attention head


@dataclass(frozen=True)
class Shape:
    encoder_width: int
    encoder_rates: tuple[int, ...]
    latent_width: int
    decoder_width: int
    decoder_rates: tuple[int, ...]
    window: int | None  # frames that attend to each other; None: no attention
    size: int
    code_dimension: int
    strides: tuple[int, ...]  # frames of the encoder under one token, level by level
    noise: bool
    depthwise: bool

    @property
    def hop(self) -> int:
        return math.prod(self.encoder_rates)

    @property
    def slots(self) -> int:
        """Tokens in a column."""
        return sum(self.strides[0] // stride for stride in self.strides)


def _wide(inputs: int, outputs: int, groups: int = 1) -> Any:
    return nn.Conv1d(inputs, outputs, 7, padding=3, groups=groups)


class _Unit(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, dilation: int, groups: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            Snake(width),
            nn.Conv1d(width, width, 7, dilation=dilation, padding=3 * dilation, groups=groups),
            Snake(width),
            nn.Conv1d(width, width, 1),
        )

    def forward(self, values: Any) -> Any:
        return values + self.block(values)


def _units(width: int, groups: int) -> list[Any]:
    return [_Unit(width, dilation, groups) for dilation in (1, 3, 9)]


class _Down(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, stride: int, groups: int) -> None:
        super().__init__()
        change = nn.Conv1d(width, 2 * width, 2 * stride, stride=stride, padding=math.ceil(stride / 2))
        self.block = nn.Sequential(*_units(width, groups), Snake(width), change)

    def forward(self, values: Any) -> Any:
        return self.block(values)


class _Noise(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        self.linear = nn.Conv1d(width, width, 1, bias=False)
        self.seed = seed

    def forward(self, values: Any) -> Any:
        # Drawn on the CPU from a generator of its own: the same on every device, in every thread and at every call.
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn((1, 1, values.shape[-1]), generator=generator).to(values)
        return values + noise * self.linear(values)


class _Up(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, stride: int, groups: int, noise: bool, seed: int) -> None:
        super().__init__()
        narrower = width // 2
        change = nn.ConvTranspose1d(
            width, narrower, 2 * stride, stride=stride, padding=math.ceil(stride / 2), output_padding=stride % 2
        )
        shaped = [_Noise(narrower, seed)] if noise else []
        self.block = nn.Sequential(Snake(width), change, *shaped, *_units(narrower, groups))

    def forward(self, values: Any) -> Any:
        return self.block(values)


class _Attention(nn.Module):  # type: ignore[misc]
    """Heads of 64 numbers in windows that do not overlap, with rotary positions."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)
        self.heads, self.window = width // HEAD, window

    def forward(self, values: Any) -> Any:
        batch, width, frames = values.shape
        parts = self.to_qkv(self.norm(values.transpose(1, 2))).chunk(3, -1)
        shape = (batch, frames // self.window, self.window, self.heads, HEAD)
        query, key, value = (part.reshape(shape).transpose(2, 3) for part in parts)
        angles = self._angles(values)
        found = functional.scaled_dot_product_attention(_turned(query, angles), _turned(key, angles), value)
        return values + self.to_out(found.transpose(2, 3).reshape(batch, frames, width)).transpose(1, 2)

    def _angles(self, values: Any) -> Any:
        speeds = 10000.0 ** -(torch.arange(0, HEAD, 2, device=values.device) / HEAD)
        angles = torch.arange(self.window, device=values.device)[:, None] * speeds
        return torch.cat([angles, angles], -1).to(values.dtype)


def _turned(vectors: Any, angles: Any) -> Any:
    first, second = vectors.chunk(2, -1)
    return vectors * angles.cos() + torch.cat([-second, first], -1) * angles.sin()


class _Level(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, size: int, dimension: int, stride: int) -> None:
        super().__init__()
        self.in_proj, self.out_proj = nn.Conv1d(width, dimension, 1), nn.Conv1d(dimension, width, 1)
        self.codebook = nn.Embedding(size, dimension)
        self.stride = stride

    def encode(self, latents: Any) -> Any:
        if self.stride > 1:
            latents = functional.avg_pool1d(latents, self.stride, self.stride)
        vectors = functional.normalize(self.in_proj(latents)[0].T)
        return nearest(vectors, functional.normalize(self.codebook.weight))

    def decode(self, tokens: Any) -> Any:
        return self.out_proj(self.codebook(tokens).T[None]).repeat_interleave(self.stride, -1)


class _Quantiser(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.quantizers = nn.ModuleList(
            [_Level(shape.latent_width, shape.size, shape.code_dimension, stride) for stride in shape.strides]
        )


class _Half(nn.Module):  # type: ignore[misc]
    def __init__(self, name: str, modules: Sequence[Any]) -> None:
        super().__init__()
        setattr(self, name, nn.Sequential(*modules))
        self.name = name

    def forward(self, values: Any) -> Any:
        return getattr(self, self.name)(values)


def _encoder(shape: Shape) -> _Half:
    width = shape.encoder_width
    modules = [_wide(1, width)]
    for rate in shape.encoder_rates:
        modules.append(_Down(width, rate, width if shape.depthwise else 1))
        width *= 2
    if shape.window is not None:
        modules.append(_Attention(width, shape.window))
    return _Half("block", [*modules, _wide(width, width, width if shape.depthwise else 1)])


def _decoder(shape: Shape) -> _Half:
    width = shape.decoder_width
    modules = [_wide(shape.latent_width, width)]
    if shape.depthwise:
        modules = [
            _wide(shape.latent_width, shape.latent_width, shape.latent_width),
            nn.Conv1d(shape.latent_width, width, 1),
        ]
    if shape.window is not None:
        modules.append(_Attention(width, shape.window))
    for seed, rate in enumerate(shape.decoder_rates):
        modules.append(_Up(width, rate, width // 2 if shape.depthwise else 1, shape.noise, seed))
        width //= 2
    return _Half("model", [*modules, Snake(width), _wide(width, 1), nn.Tanh()])


class SNAC(nn.Module):  # type: ignore[misc]
    """Names: encoder.block.*, quantizer.quantizers.*, decoder.model.*."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.encoder, self.quantizer, self.decoder = _encoder(shape), _Quantiser(shape), _decoder(shape)
        self.shape = shape

    def encode(self, sounds: Any, codebooks: int) -> Any:
        """Sounds [1, 1, T], T a multiple of what `hop`, coarsest stride and window need, to columns of tokens."""
        left = self.encoder(sounds)
        columns = []
        for level in self.quantizer.quantizers:
            tokens = level.encode(left)
            left = left - level.decode(tokens)
            columns.append(tokens.reshape(-1, self.shape.strides[0] // level.stride).T)
        return torch.cat(columns)

    def decode(self, tokens: Any) -> Any:
        counts = [self.shape.strides[0] // stride for stride in self.shape.strides]
        levels = zip(tokens.split(counts), self.quantizer.quantizers, strict=True)
        said = torch.stack([level.decode(part.T.reshape(-1)) for part, level in levels])
        return self.decoder(said.sum(0))[0, 0]
