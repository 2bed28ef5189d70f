"""CNN14 of PANNs: six blocks of two convolutions over a log-mel spectrogram, pooled over the whole clip.

Tensors are named as in its authors' checkpoints, of which `rename_tensors` takes the mel bank too: they were trained
with it, whatever band a tool asks for when it opens one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

BANK = "logmel_extractor.melW"


@dataclass(frozen=True)
class Cnn14Shape:
    """How wide the layers are, and how many bins and bands the mel bank has; those of 32 kHz by default."""

    widths: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048)
    dimension: int = 2048
    bins: int = 513
    bands: int = 64


class Block(nn.Module):  # type: ignore[misc]
    """Two convolutions, and a mean over patches."""

    def __init__(self, entering: int, leaving: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(entering, leaving, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(leaving, leaving, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(leaving), nn.BatchNorm2d(leaving)

    def forward(self, values: Any, patch: int) -> Any:
        values = functional.relu(self.bn1(self.conv1(values)))
        return functional.avg_pool2d(functional.relu(self.bn2(self.conv2(values))), patch)


class Cnn14(nn.Module):  # type: ignore[misc]
    """Mel powers [B, bins, frames] to one vector per clip: what the classifier hears, behind its ReLU."""

    def __init__(self, shape: Cnn14Shape) -> None:
        super().__init__()
        self.bn0 = nn.BatchNorm2d(shape.bands)
        entering = 1
        for number, width in enumerate(shape.widths, 1):
            setattr(self, f"conv_block{number}", Block(entering, width))
            entering = width
        self.fc1 = nn.Linear(entering, shape.dimension)
        self.blocks = len(shape.widths)
        self.register_buffer("bank", torch.empty(shape.bins, shape.bands))

    def forward(self, decibels: Any) -> Any:
        values = self.bn0(decibels.transpose(1, 2)[..., None]).permute(0, 3, 2, 1)  # [B, 1, frames, bands]
        for number in range(1, self.blocks + 1):
            values = getattr(self, f"conv_block{number}")(values, 1 if number == self.blocks else 2)
        over_bands = values.mean(dim=3)
        return functional.relu(self.fc1(over_bands.amax(dim=2) + over_bands.mean(dim=2)))


def rename_tensors(state: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors under the names of `Cnn14`: the mel bank is one of them."""
    return {"bank" if name == BANK else name: value for name, value in state.items()}
