"""The BEATs encoder: spectrogram patches through a transformer with gated relative positions.

    [B, frames, bands] -- patches -- norm, projection -- + convolution over neighbours -- norm -- blocks --> [B, T, D]

A block normalises after each half, with residuals scaled by (2 x blocks)^(1/4) ("deep norm"). The bias that a query
gives to a key's distance comes from one table for all blocks, weighed by a gate of the query itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.layers import transformer_block


@dataclass(frozen=True)
class BeatsShape:
    """A checkpoint's own description of its encoder, under its own names; defaults are BEATs iter3+."""

    input_patch_size: int = 16
    embed_dim: int = 512
    conv_bias: bool = False
    encoder_layers: int = 12
    encoder_embed_dim: int = 768
    encoder_ffn_embed_dim: int = 3072
    encoder_attention_heads: int = 12
    deep_norm: bool = True
    layer_norm_first: bool = False
    conv_pos: int = 128
    conv_pos_groups: int = 16
    relative_position_embedding: bool = True
    num_buckets: int = 320
    max_distance: int = 800
    gru_rel_pos: bool = True

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> BeatsShape:
        return cls(**{field.name: config[field.name] for field in fields(cls) if field.name in config})


class BEATs(nn.Module):  # type: ignore[misc]
    """Hidden states: what enters the first block, then what leaves each."""

    def __init__(self, shape: BeatsShape) -> None:
        super().__init__()
        width = shape.encoder_embed_dim
        patch = shape.input_patch_size
        self.patch_embedding = nn.Conv2d(1, shape.embed_dim, patch, patch, bias=shape.conv_bias)
        self.layer_norm = nn.LayerNorm(shape.embed_dim)
        self.post_extract_proj = nn.Linear(shape.embed_dim, width) if shape.embed_dim != width else nn.Identity()
        self.encoder = Encoder(shape)

    def forward(self, spectrogram: Any) -> list[Any]:
        patches = self.patch_embedding(spectrogram[:, None]).flatten(2).transpose(1, 2)
        hidden: list[Any] = self.encoder(self.post_extract_proj(self.layer_norm(patches)))
        return hidden


class Encoder(nn.Module):  # type: ignore[misc]
    """The transformer: a convolution says where a patch is, then the blocks."""

    def __init__(self, shape: BeatsShape) -> None:
        super().__init__()
        width, kernel = shape.encoder_embed_dim, shape.conv_pos
        self.pos_conv = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=shape.conv_pos_groups)
        self.layer_norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList([Block(shape) for _ in range(shape.encoder_layers)])
        heads = shape.encoder_attention_heads
        self.distances = nn.Embedding(shape.num_buckets, heads) if shape.relative_position_embedding else None
        self.shape = shape

    def forward(self, values: Any) -> list[Any]:
        tokens = values.shape[1]
        # An even kernel with padding on both sides gives one token too many.
        near = self.pos_conv(values.transpose(1, 2))[..., :tokens].transpose(1, 2)
        values = values + functional.gelu(near)
        hidden = [values if self.shape.layer_norm_first else self.layer_norm(values)]
        bias = None
        if self.distances is not None:
            buckets = distance_buckets(tokens, self.shape.num_buckets, self.shape.max_distance)
            bias = self.distances(buckets.to(values.device)).permute(2, 0, 1)
        for layer in self.layers:
            hidden.append(layer(hidden[-1], bias))
        if self.shape.layer_norm_first:
            hidden[-1] = self.layer_norm(hidden[-1])
        return hidden


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: BeatsShape) -> None:
        super().__init__()
        width, inner = shape.encoder_embed_dim, shape.encoder_ffn_embed_dim
        self.self_attn = Attention(shape)
        self.self_attn_layer_norm, self.final_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm_first = shape.layer_norm_first
        self.scale = (2 * shape.encoder_layers) ** 0.25 if shape.deep_norm else 1.0

    def forward(self, values: Any, bias: Any) -> Any:
        return transformer_block(
            values, lambda inputs: self.self_attn(inputs, bias),
            lambda inputs: self.fc2(functional.gelu(self.fc1(inputs))),
            (self.self_attn_layer_norm, self.final_layer_norm), norm_first=self.norm_first, scale=self.scale,
        )  # fmt: skip


class Attention(nn.Module):  # type: ignore[misc]
    """Self-attention; `bias` [H, T, T] is what distance adds before a query's gate weighs it."""

    def __init__(self, shape: BeatsShape) -> None:
        super().__init__()
        width, self.heads = shape.encoder_embed_dim, shape.encoder_attention_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))
        self.gated = shape.gru_rel_pos
        if self.gated:
            self.grep_linear = nn.Linear(width // self.heads, 8)
            self.grep_a = nn.Parameter(torch.ones(1, self.heads, 1, 1))

    def forward(self, values: Any, bias: Any) -> Any:
        batch, tokens, width = values.shape
        query, key, value = (
            project(values).view(batch, tokens, self.heads, -1).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        if bias is not None:
            bias = bias[None].expand(batch, -1, -1, -1)
            if self.gated:
                bias = self._gate(query) * bias
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        return self.out_proj(mixed.transpose(1, 2).reshape(batch, tokens, width))

    def _gate(self, query: Any) -> Any:
        """How much distance counts for each query, [B, H, T, 1], between 1 and 3 or so."""
        sums = self.grep_linear(query).unflatten(-1, (2, 4)).sum(-1)
        update, reset = torch.sigmoid(sums).chunk(2, dim=-1)
        return update * (reset * self.grep_a - 1.0) + 2.0


def distance_buckets(tokens: int, buckets: int, most: int) -> Any:
    """The bucket [T, T] of every distance key - query: half of them for each direction.

    Of a half, the first half are single distances; the rest grow with the logarithm up to `most`, and hold all beyond.
    """
    positions = torch.arange(tokens)
    distance = positions[None, :] - positions[:, None]
    half = buckets // 2
    single = half // 2
    far = distance.abs().clamp(min=1).float()
    grown = single + (torch.log(far / single) / math.log(most / single) * (half - single)).long()
    near = torch.where(distance.abs() < single, distance.abs(), grown.clamp(max=half - 1))
    return near + half * (distance > 0)


def rename_tensors(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Our names for the tensors of a published file: its convolution made plain, the shared table once."""
    ours = dict(tensors)
    direction, length = (ours.pop(f"encoder.pos_conv.0.weight_{part}", None) for part in ("v", "g"))
    if direction is not None and length is not None:
        norm = direction.float().norm(dim=(0, 1), keepdim=True)
        ours["encoder.pos_conv.weight"] = direction * (length / norm)
    if "encoder.pos_conv.0.bias" in ours:
        ours["encoder.pos_conv.bias"] = ours.pop("encoder.pos_conv.0.bias")
    table = "encoder.layers.0.self_attn.relative_attention_bias.weight"
    if table in ours:
        ours["encoder.distances.weight"] = ours[table]
    return ours
