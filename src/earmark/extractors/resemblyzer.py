"""Resemblyzer's voice encoder: 256 numbers that say who is speaking, from 1.6 s of sound.

    waveform, 16 kHz     made louder where its mean level is under -30 dB of full scale
      40 mel powers      every 10 ms (25 ms Hann windows, Slaney bands of equal area); no logarithm
      160 mel frames     1.3 times a second, the last one if at least three quarters of it are sound
      3 LSTM layers, 256 the last state
      linear, ReLU, /norm

The package cuts silences out with a voice detector before all this; here a clip is heard as it is. A clip's
embedding is the mean over its windows (`mean_time`; the cosine distance does not need its norm).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import require
from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.mel_front_end import MelFrontEnd
from earmark.extractors.model_cards import CARDS
from earmark.extractors.wheel_weights import paths_of

__all__ = ["MEL", "Resemblyzer", "louder", "window_starts"]

MEL = MelFrontEnd(n_fft=400, hop=160, mels=40, scale="slaney", height="area", padding="zeros", log="none")
WINDOW = 160  # mel frames
STEP = 77  # mel frames: 1.3 windows a second
LEAST = 0.75  # of the last window that must be sound
LEVEL = -30.0  # dB of full scale
AT_ONCE = 256  # windows in one forward pass

Floats = NDArray[np.float32]


class Resemblyzer:
    """Frames [T, 256] of length 1, 1.3 a second. Every frame is valid."""

    card = CARDS["resemblyzer"]

    def __init__(self, *, device: str = "cpu") -> None:
        torch = require("torch", "Resemblyzer embeddings", "torch")
        state = torch.load(paths_of(self.card.name)[0], map_location="cpu", weights_only=True)["model_state"]
        self._torch, self._device = torch, device
        self._lstm = torch.nn.LSTM(MEL.mels, 256, num_layers=3, batch_first=True)
        self._linear = torch.nn.Linear(256, 256)
        for name, layer in (("lstm", self._lstm), ("linear", self._linear)):
            start = f"{name}."
            layer.load_state_dict({key[len(start) :]: value for key, value in state.items() if key.startswith(start)})
            layer.eval().to(device)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        pieces = [_mel_windows(waveform) for waveform in waveforms]
        vectors = self._embed(np.concatenate(pieces))
        ends = np.cumsum([len(piece) for piece in pieces])
        return [Frames(values, len(values)) for values in np.split(vectors, ends[:-1])]

    def _embed(self, windows: Floats) -> Floats:
        torch = self._torch
        parts: list[Any] = []
        with torch.inference_mode():
            for start in range(0, len(windows), AT_ONCE):
                given = torch.from_numpy(windows[start : start + AT_ONCE]).to(self._device)
                _, (state, _) = self._lstm(given)
                raw = torch.relu(self._linear(state[-1]))
                parts.append(torch.nn.functional.normalize(raw, dim=1).cpu().numpy())
        return np.concatenate(parts)


def _mel_windows(waveform: Waveform) -> Floats:
    """Mel powers in windows [T, 160, 40]."""
    starts = window_starts(len(waveform))
    needed = (starts[-1] + WINDOW) * MEL.hop
    samples = louder(np.asarray(waveform, np.float32))
    mels = MEL(np.pad(samples, (0, max(0, needed - len(samples)))))
    return np.stack([mels[start : start + WINDOW] for start in starts])


def window_starts(samples: int) -> list[int]:
    """The first mel frame of every window of a clip; at least one window."""
    frames = math.ceil((samples + 1) / MEL.hop)
    starts = list(range(0, max(1, frames - WINDOW + STEP + 1), STEP))
    covered = (samples - starts[-1] * MEL.hop) / (WINDOW * MEL.hop)
    return starts[:-1] if covered < LEAST and len(starts) > 1 else starts


def louder(samples: Floats) -> Floats:
    """Samples raised to -30 dB where their root mean square is under it; silence stays silence."""
    level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
    wanted = 10.0 ** (LEVEL / 20.0)
    return samples * np.float32(wanted / level) if 0.0 < level < wanted else samples
