"""VGGish: six convolutions and three linear layers over 0.96 s of 64 mel bands.

Tensors are named as in the port that most tools load (torchvggish, `vggish-10086976.pth`); `rename_tensors` brings
those of its authors' checkpoint (`vggish/conv1/weights`) to these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

FRAMES, BANDS = 96, 64
CONVOLUTIONS = ("conv1", "conv2", "conv3/conv3_1", "conv3/conv3_2", "conv4/conv4_1", "conv4/conv4_2")
LINEARS = ("fc1/fc1_1", "fc1/fc1_2", "fc2")
_POOLED = (0, 1, 3, 5)  # a maximum over 2 x 2 behind these convolutions


@dataclass(frozen=True)
class VGGishShape:
    """How wide the layers are; the published ones by default."""

    widths: tuple[int, ...] = (64, 128, 256, 256, 512, 512)
    hidden: int = 4096
    dimension: int = 128


class VGGish(nn.Module):  # type: ignore[misc]
    """Log-mel [B, 96, 64] to [B, 128]; with `activation` through a last ReLU, as it was trained."""

    def __init__(self, shape: VGGishShape, activation: bool = False) -> None:
        super().__init__()
        layers: list[Any] = []
        entering = 1
        for place, width in enumerate(shape.widths):
            layers += [nn.Conv2d(entering, width, 3, padding=1), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if place in _POOLED else []
            entering = width
        self.features = nn.Sequential(*layers)
        flat = entering * (FRAMES // 16) * (BANDS // 16)
        self.embeddings = nn.Sequential(
            nn.Linear(flat, shape.hidden), nn.ReLU(), nn.Linear(shape.hidden, shape.hidden), nn.ReLU(),
            nn.Linear(shape.hidden, shape.dimension),
        )  # fmt: skip
        self._activation = activation

    def forward(self, mel: Any) -> Any:
        patches = self.features(mel[:, None])
        # Time, then bands, then channels: the order in which its authors flatten.
        values = self.embeddings(patches.permute(0, 2, 3, 1).flatten(1))
        return values.relu() if self._activation else values


def rename_tensors(state: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors under the names of `VGGish`, from those of either publication."""
    if not any(name.startswith("vggish/") for name in state):
        return dict(state)
    torchs = [f"features.{place}" for place in (0, 3, 6, 8, 11, 13)] + [f"embeddings.{place}" for place in (0, 2, 4)]
    ours: dict[str, Any] = {}
    for theirs, name in zip((*CONVOLUTIONS, *LINEARS), torchs, strict=True):
        weights = torch.as_tensor(state.get(f"vggish/{theirs}/weights", torch.empty(0, 0)))
        # [height, width, in, out] and [in, out] there.
        ours[f"{name}.weight"] = (weights.permute(3, 2, 0, 1) if weights.dim() == 4 else weights.T).contiguous()
        if f"vggish/{theirs}/biases" in state:
            ours[f"{name}.bias"] = torch.as_tensor(state[f"vggish/{theirs}/biases"])
    return ours


def quantised(values: Any, vectors: Any, means: Any) -> Any:
    """What AudioSet's published vectors went through: whitened, cut at 2 and rounded to 0..255."""
    whitened = (values - means) @ vectors.T
    return ((whitened.clamp(-2.0, 2.0) + 2.0) * (255.0 / 4.0)).round()
