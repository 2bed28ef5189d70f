"""A vision transformer over the patches of one spectrogram, as AudioMAE and EAT have it.

    [B, 1, frames, bands] -- patches 16 x 16 -- + positions -- [CLS] in front -- blocks --> [B, 1 + patches, D]

AudioMAE normalises before each half of a block and once at the end; EAT after each half, and once before the first
block. Patches are in order of time, then of frequency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.layers import chain, transformer_block


@dataclass(frozen=True)
class TransformerShape:
    """How large the network is."""

    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    eps: float = 1e-6
    norm_first: bool = True
    patch: int = 16
    frames: int = 1024
    bands: int = 128

    @property
    def grid(self) -> tuple[int, int]:
        """Columns in time, rows in frequency."""
        return self.frames // self.patch, self.bands // self.patch


class SpectrogramTransformer(nn.Module):  # type: ignore[misc]
    """Hidden states: what enters the first block, then what leaves each; the last one normalised, if it ever is."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        columns, rows = shape.grid
        self.patch_embed = nn.Conv2d(1, shape.width, shape.patch, shape.patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, shape.width))
        self.positions = nn.Parameter(torch.zeros(1, 1 + columns * rows, shape.width), requires_grad=False)
        self.blocks = nn.ModuleList([Block(shape) for _ in range(shape.depth)])
        self.norm = nn.LayerNorm(shape.width, eps=shape.eps)
        self.norm_first = shape.norm_first

    def forward(self, spectrogram: Any) -> list[Any]:
        patches = self.patch_embed(spectrogram).flatten(2).transpose(1, 2)
        token = self.cls_token.expand(len(patches), -1, -1)
        values = torch.cat([token, patches], dim=1) + self.positions
        hidden = [values if self.norm_first else self.norm(values)]
        for block in self.blocks:
            hidden.append(block(hidden[-1]))
        if self.norm_first:
            hidden[-1] = self.norm(hidden[-1])
        return hidden


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(shape.width, eps=shape.eps) for _ in range(2))
        self.attn = Attention(shape.width, shape.heads)
        self.mlp = chain(
            fc1=nn.Linear(shape.width, shape.hidden), bend=nn.GELU(), fc2=nn.Linear(shape.hidden, shape.width)
        )
        self.norm_first = shape.norm_first

    def forward(self, values: Any) -> Any:
        norms = (self.norm1, self.norm2)
        return transformer_block(values, self.attn, self.mlp, norms, norm_first=self.norm_first)


class Attention(nn.Module):  # type: ignore[misc]
    """Self-attention with queries, keys and values from one matrix."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, values: Any) -> Any:
        batch, tokens, width = values.shape
        parts = self.qkv(values).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts)
        return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))


def sine_positions(width: int, columns: int, rows: int) -> Any:
    """Fixed positions [1, columns * rows, width] of patches in order of time, then frequency.

    The first half of the features says where in frequency, the second where in time; each half is sines, then
    cosines, of the place over wavelengths from 2 pi to 20000 pi.
    """
    speeds = torch.exp(torch.arange(width // 4) * (-math.log(10000.0) / (width // 4)))
    time = torch.arange(columns).repeat_interleave(rows)[:, None] * speeds
    band = torch.arange(rows).repeat(columns)[:, None] * speeds
    return torch.cat([band.sin(), band.cos(), time.sin(), time.cos()], dim=1)[None]
