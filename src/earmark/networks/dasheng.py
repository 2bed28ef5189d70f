"""Dasheng's encoder: a transformer over columns of a mel spectrogram, parameters named as in its authors' files.

    [B, 64, frames] in decibels -- batch norm of each band -- columns of 4 frames -- pieces of 10.08 s: + positions,
    blocks, norm -- [B, frames // 4, D]

Each piece of at most `length` frames is heard by itself, the last one as long as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from earmark.networks.spectrograms import mel_bank, mel_power
from earmark.networks.vision_transformer import Block, TransformerShape

RATE, FFT, HOP, BANDS = 16000, 512, 160, 64
RANGE_DB = 120.0
SMALLEST_POWER = 1e-10


@dataclass(frozen=True)
class DashengShape:
    """How large the network is."""

    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    length: int = 1008  # mel frames of a piece
    patch: int = 4  # mel frames of a column

    @property
    def columns(self) -> int:
        return self.length // self.patch


class Dasheng(nn.Module):  # type: ignore[misc]
    """Hidden states: what enters the first block, then what leaves each; the last one normalised."""

    def __init__(self, shape: DashengShape) -> None:
        super().__init__()
        self.columns = shape.columns
        self.init_bn = nn.Sequential(nn.Identity(), nn.BatchNorm2d(BANDS))
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(1, shape.width, (BANDS, shape.patch), (BANDS, shape.patch))
        self.time_pos_embed = nn.Parameter(torch.zeros(1, shape.width, 1, shape.columns))
        self.freq_pos_embed = nn.Parameter(torch.zeros(1, shape.width, 1, 1))
        block = TransformerShape(width=shape.width, heads=shape.heads, hidden=shape.hidden, eps=1e-6)
        self.blocks = nn.ModuleList([Block(block) for _ in range(shape.depth)])
        self.norm = nn.LayerNorm(shape.width, eps=1e-6)

    def forward(self, spectrogram: Any) -> list[Any]:
        normed = self.init_bn(spectrogram[:, :, None, :]).transpose(1, 2)
        pieces = self.patch_embed.proj(normed).split(self.columns, dim=-1)
        heard = [self._piece(piece) for piece in pieces]
        return [torch.cat(layer, dim=1) for layer in zip(*heard, strict=True)]

    def _piece(self, columns: Any) -> list[Any]:
        placed = columns + self.time_pos_embed[..., : columns.shape[-1]] + self.freq_pos_embed
        hidden = [placed.flatten(2).transpose(1, 2)]
        for block in self.blocks:
            hidden.append(block(hidden[-1]))
        hidden[-1] = self.norm(hidden[-1])
        return hidden


def dasheng_mel(sounds: Any) -> Any:
    """Dasheng's input [B, 64, 1 + S // 160] of sounds [B, S]: decibels, cut 120 dB below each clip's own maximum.

    Its authors' code cuts below the maximum of the whole batch, so that a clip's frames depend on its neighbours.
    """
    bank = mel_bank(FFT // 2 + 1, BANDS, 0.0, RATE / 2, RATE, None, "htk")
    decibels = 10.0 * mel_power(sounds, bank, FFT, HOP).clamp(min=SMALLEST_POWER).log10()
    return torch.maximum(decibels, decibels.amax(dim=(1, 2), keepdim=True) - RANGE_DB)
