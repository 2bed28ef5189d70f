"""Group normalisation over the sound of each clip, not over the zeros behind it.

Wav2Vec2's small models normalise every channel of their first convolution over time. In a padded batch the library
counts the padding, and a clip's frames change with its neighbours. Counting each clip's own frames only gives in any
batch what the clip gives alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class MaskedGroupNorm(nn.Module):  # type: ignore[misc]
    """One group per channel; `lengths` [B] is set before every pass, and says how many frames are sound."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        self.lengths: Any = None

    def forward(self, values: Any) -> Any:
        wide = values.float()
        lengths = self.lengths.to(values.device)[:, None, None]
        mask = torch.arange(values.shape[-1], device=values.device) < lengths
        mean = (wide * mask).sum(-1, keepdim=True) / lengths
        centred = wide - mean
        variance = ((centred * mask) ** 2).sum(-1, keepdim=True) / lengths
        scaled = centred * torch.rsqrt(variance + self.eps)
        return (scaled * self.weight.float()[:, None] + self.bias.float()[:, None]).to(values.dtype)


def mask_group_norm(model: Any) -> MaskedGroupNorm | None:
    """Put it in the place of the group norm of a model's first convolution; None where there is none."""
    first = model.feature_extractor.conv_layers[0]
    if not isinstance(getattr(first, "layer_norm", None), nn.GroupNorm):
        return None
    masked = MaskedGroupNorm(first.layer_norm)
    first.layer_norm = masked
    return masked
