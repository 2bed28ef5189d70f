"""SNAC: depthwise convolutions, attention in windows, and codebooks that speak at different rates.

    level 1   A               B               one token for `stride` frames of the encoder
    level 2   a       a'      b       b'
    level 3   1   2   3   4   5   6   7   8

What a coarse level says holds for all frames under it. Tokens of one coarsest frame are one column, coarse to fine, in
order of time: A a a' 1 2 3 4. The decoder adds noise that it shapes itself; here the noise is the same every time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.layers import Snake, chain, nearest, residual

HEAD = 64  # numbers of an attention head


@dataclass(frozen=True)
class SnacShape:
    """The values of a config under its own names."""

    encoder_dim: int
    encoder_rates: tuple[int, ...]
    decoder_dim: int
    decoder_rates: tuple[int, ...]
    codebook_size: int
    codebook_dim: int
    vq_strides: tuple[int, ...]  # frames of the encoder under one token, level by level
    attn_window_size: int | None = 32  # frames that attend to each other; None: no attention
    noise: bool = True
    depthwise: bool = True

    @property
    def latent_dim(self) -> int:
        return self.encoder_dim << len(self.encoder_rates)

    @property
    def hop(self) -> int:
        return math.prod(self.encoder_rates)

    @property
    def slots(self) -> tuple[int, ...]:
        """Tokens of each level in a column."""
        return tuple(self.vq_strides[0] // stride for stride in self.vq_strides)


def _wide(inputs: int, outputs: int, groups: int = 1) -> Any:
    return nn.Conv1d(inputs, outputs, 7, padding=3, groups=groups)


def _units(width: int, groups: int) -> list[Any]:
    """Three residual units of growing dilation."""
    return [
        residual(
            block=nn.Sequential(
                Snake(width),
                nn.Conv1d(width, width, 7, dilation=dilation, padding=3 * dilation, groups=groups),
                Snake(width),
                nn.Conv1d(width, width, 1),
            )
        )
        for dilation in (1, 3, 9)
    ]


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
        mixed = functional.scaled_dot_product_attention(_rotate(query, angles), _rotate(key, angles), value)
        return values + self.to_out(mixed.transpose(2, 3).reshape(batch, frames, width)).transpose(1, 2)

    def _angles(self, values: Any) -> Any:
        speeds = 10000.0 ** -(torch.arange(0, HEAD, 2, device=values.device) / HEAD)
        angles = torch.arange(self.window, device=values.device)[:, None] * speeds
        return torch.cat([angles, angles], -1).to(values.dtype)


def _rotate(vectors: Any, angles: Any) -> Any:
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


def _encoder(shape: SnacShape) -> Any:
    width = shape.encoder_dim
    modules = [_wide(1, width)]
    for stride in shape.encoder_rates:
        change = nn.Conv1d(width, 2 * width, 2 * stride, stride=stride, padding=math.ceil(stride / 2))
        units = _units(width, width if shape.depthwise else 1)
        modules.append(chain(block=nn.Sequential(*units, Snake(width), change)))
        width *= 2
    if shape.attn_window_size is not None:
        modules.append(_Attention(width, shape.attn_window_size))
    return chain(block=nn.Sequential(*modules, _wide(width, width, width if shape.depthwise else 1)))


def _decoder(shape: SnacShape) -> Any:
    width, latent = shape.decoder_dim, shape.latent_dim
    modules = (
        [_wide(latent, latent, latent), nn.Conv1d(latent, width, 1)] if shape.depthwise else [_wide(latent, width)]
    )
    if shape.attn_window_size is not None:
        modules.append(_Attention(width, shape.attn_window_size))
    for seed, stride in enumerate(shape.decoder_rates):
        change = nn.ConvTranspose1d(
            width, width // 2, 2 * stride, stride=stride, padding=math.ceil(stride / 2), output_padding=stride % 2
        )
        noise = [_Noise(width // 2, seed)] if shape.noise else []
        units = _units(width // 2, width // 2 if shape.depthwise else 1)
        modules.append(chain(block=nn.Sequential(Snake(width), change, *noise, *units)))
        width //= 2
    return chain(model=nn.Sequential(*modules, Snake(width), _wide(width, 1), nn.Tanh()))


class SNAC(nn.Module):  # type: ignore[misc]
    """Names: encoder.block.*, quantizer.quantizers.*, decoder.model.*."""

    def __init__(self, shape: SnacShape) -> None:
        super().__init__()
        self.shape, self.encoder, self.decoder = shape, _encoder(shape), _decoder(shape)
        sizes = (shape.latent_dim, shape.codebook_size, shape.codebook_dim)
        self.quantizer = chain(quantizers=nn.ModuleList([_Level(*sizes, stride) for stride in shape.vq_strides]))

    def encode(self, sounds: Any, codebooks: int) -> Any:
        """Sounds [1, 1, T], T a multiple of what `hop`, coarsest stride and window need, to columns of tokens."""
        left = self.encoder(sounds)
        columns = []
        for level, slots in zip(self.quantizer.quantizers, self.shape.slots, strict=True):
            tokens = level.encode(left)
            left = left - level.decode(tokens)
            columns.append(tokens.reshape(-1, slots).T)
        return torch.cat(columns)

    def decode(self, tokens: Any) -> Any:
        levels = zip(tokens.split(self.shape.slots), self.quantizer.quantizers, strict=True)
        latents = torch.stack([level.decode(part.T.reshape(-1)) for part, level in levels])
        return self.decoder(latents.sum(0))[0, 0]
