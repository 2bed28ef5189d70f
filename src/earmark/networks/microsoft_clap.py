"""The audio side of Microsoft's CLAP of 2023: the HTSAT that transformers has, under another projection.

The published files of both makers of CLAP name their tensors as HTSAT's authors did, with queries, keys and values in
one matrix; `rename_tensors` and `rename_laion_tensors` bring them to the names of transformers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.nn import functional

from earmark.errors import require

BASE = "audio_encoder.base.htsat."
PROJECTION = "audio_encoder.projection."
LAION = "audio_branch."

_NAMES = (
    (r"^bn0\.", "batch_norm."),
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.attn\.proj\.", ".attention.output.dense."),
    (r"\.attn\.relative", ".attention.self.relative"),
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
)


class Projection(nn.Module):  # type: ignore[misc]
    """A linear layer and a residual one, normalised."""

    def __init__(self, features: int, projected: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(features, projected, bias=False)
        self.linear2 = nn.Linear(projected, projected, bias=False)
        self.layer_norm = nn.LayerNorm(projected)

    def forward(self, features: Any) -> Any:
        first = self.linear1(features)
        return self.layer_norm(first + self.linear2(functional.gelu(first)))


class MicrosoftClap(nn.Module):  # type: ignore[misc]
    """Log-mel [B, 1, frames, 64] to one vector per clip; `config` is a ClapAudioConfig."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        library = require("transformers", "These models", "models")
        self.htsat = library.ClapAudioModel(config).audio_encoder
        self.projection = Projection(config.hidden_size, config.projection_dim)

    def forward(self, mel: Any) -> Any:
        return self.projection(self.htsat(input_features=mel).pooler_output)


def rename_tensors(state: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of the published file under the names of `MicrosoftClap`; what it does not have is left out."""
    projection = {
        "projection." + name.removeprefix(PROJECTION): value
        for name, value in state.items()
        if name.startswith(PROJECTION)
    }
    return projection | _renamed_htsat(state, BASE, "htsat.")


def rename_laion_tensors(state: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of LAION's published files under the names of `ClapAudioModelWithProjection`."""
    projection = {
        f"audio_projection.{ours}.{kind}": state[f"audio_projection.{theirs}.{kind}"]
        for ours, theirs in (("linear1", 0), ("linear2", 2))
        for kind in ("weight", "bias")
        if f"audio_projection.{theirs}.{kind}" in state
    }
    return projection | _renamed_htsat(state, LAION, "audio_model.audio_encoder.")


def _renamed_htsat(state: Mapping[str, Any], theirs: str, prefix: str) -> dict[str, Any]:
    ours: dict[str, Any] = {}
    for name, value in state.items():
        if not name.startswith(theirs):
            continue
        short = name.removeprefix(theirs)
        for pattern, replacement in _NAMES:
            short = re.sub(pattern, replacement, short)
        whole = re.match(r"(.*)\.attn\.qkv\.(weight|bias)$", short)
        if whole is None:
            ours[prefix + short] = value
            continue
        for part, piece in zip(("query", "key", "value"), value.chunk(3), strict=True):
            ours[f"{prefix}{whole[1]}.attention.self.{part}.{whole[2]}"] = piece.clone()
    return ours
