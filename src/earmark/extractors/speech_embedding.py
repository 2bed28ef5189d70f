"""Google's speech embedding: one vector of 96 numbers every 80 ms, from 0.78 s of sound around it.

    waveform, 16 kHz       scaled to 16-bit numbers; zeros on both sides up to a whole number of windows
      melspectrogram.onnx  32 bands every 10 ms in decibels, cut 80 dB below the clip's own maximum
      x / 10 + 2           as the network was trained
      embedding_model.onnx 76 mel frames -> 96 numbers, one every 8 frames

A clip shorter than 0.78 s lies in the middle of one window. Both files come with the package openwakeword 0.4.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.model_cards import CARDS
from earmark.extractors.wheel_weights import paths_of
from earmark.extractors.windows import clip_by_clip, cover
from earmark.onnx_files import open_session
from earmark.workers import thread_count

__all__ = ["SpeechEmbedding"]

MEL_WINDOW, MEL_HOP = 512, 160  # samples
WINDOW, HOP = 76, 8  # mel frames
FULL_SCALE = 32767.0
AT_ONCE = 64  # windows in one call: memory stays bounded on long clips

Floats = NDArray[np.float32]


class SpeechEmbedding:
    """Frames [T, 96], 12.5 a second. Every frame is valid."""

    card = CARDS["speech_embedding"]

    def __init__(self, *, threads: int | None = None) -> None:
        self.threads = thread_count(threads)
        files = paths_of(self.card.name)
        self._mel, self._embedding = (open_session(file, "Speech embeddings", self.card.extra) for file in files)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms, self.threads)

    def _clip(self, waveform: Waveform) -> Floats:
        mels = self._mel_frames(cover(waveform, MEL_WINDOW + (WINDOW - 1) * MEL_HOP, HOP * MEL_HOP))
        pieces = np.lib.stride_tricks.sliding_window_view(mels, WINDOW, axis=0)[::HOP].transpose(0, 2, 1)
        parts = [
            self._embedding.run(None, {"input_1": np.ascontiguousarray(pieces[start : start + AT_ONCE, :, :, None])})[0]
            for start in range(0, len(pieces), AT_ONCE)
        ]
        return np.concatenate(parts).reshape(len(pieces), -1)

    def _mel_frames(self, samples: Floats) -> Floats:
        # One clip at a time: the floor lies below the maximum of everything in a call.
        scaled = np.round(np.clip(samples, -1.0, 1.0) * np.float32(FULL_SCALE))
        (decibels,) = self._mel.run(None, {"input": scaled[None, :]})
        frames: Floats = decibels.reshape(-1, decibels.shape[-1]) / np.float32(10) + np.float32(2)
        return frames
