"""Lyra V2: a real neural codec whose three weight files run with ai-edge-litert, without torch.

    320 samples ── soundstream_encoder ── 64 features ── quantizer ── 16, 30 or 46 tokens of 4 bits
    tokens ── quantizer ── 64 features ── lyragan ── 320 samples

The networks remember the frames before, so every clip gets new ones; opening them takes two milliseconds. Weights:
`lyra:FOLDER@3.2`, or the folder in EARMARK_LYRA.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from earmark.codecs.contract import CodecCard, CodecFailure, Coded, Waveform
from earmark.errors import InputError, UsageError, require

ENCODER, QUANTIZER, GENERATOR = FILES = ("soundstream_encoder.tflite", "quantizer.tflite", "lyragan.tflite")
FRAME = 320
STAGES = 46
_UNUSED = -1  # marks a stage that was not sent


class Lyra:
    """One rate of Lyra V2."""

    thread_safe = True

    def __init__(self, card: CodecCard, folder: Path) -> None:
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise InputError(f"{folder} holds no {', '.join(missing)}: {card.how_to_get}.")
        self.card, self.folder = card, folder
        self._interpreter = require("ai_edge_litert.interpreter", "Lyra models", "codecs").Interpreter

    def encode(self, waveform: Waveform) -> Coded:
        features_of, quantise = self._network(ENCODER), self._network(QUANTIZER, "encode")
        frames = np.pad(waveform, (0, -len(waveform) % FRAME)).reshape(-1, 1, FRAME).astype(np.float32)
        codebooks = self.card.codebooks or STAGES
        tokens = np.empty((codebooks, len(frames)), np.int64)
        for number, frame in enumerate(frames):
            features = features_of(input_audio=frame)["output_0"]
            made = quantise(input_frames=features, num_quantizers=np.int32(codebooks))["output_0"]
            tokens[:, number] = made[:codebooks, 0, 0]
        return Coded(len(waveform), tokens=tokens)

    def decode(self, coded: Coded) -> Waveform:
        if coded.tokens is None:
            raise CodecFailure(f"{self.card.name}: there are no tokens to decode.")
        restore, sound_of = self._network(QUANTIZER, "decode"), self._network(GENERATOR)
        frames = int(coded.tokens.shape[1])
        indices = np.full((STAGES, 1, 1), _UNUSED, np.int32)
        heard = np.empty((frames, FRAME), np.float32)
        for number in range(frames):
            indices[: len(coded.tokens), 0, 0] = coded.tokens[:, number]
            features = restore(encoding_indices=indices)["output_0"]
            heard[number] = sound_of(input_audio=features)["output_0"][0]
        return heard.reshape(-1)[: coded.samples]

    def _network(self, name: str, signature: str | None = None) -> Any:
        """A function that runs one network, without memory of other clips: resetting one does not clear it."""
        interpreter = self._interpreter(model_path=str(self.folder / name), num_threads=1)
        return interpreter.get_signature_runner(signature)


def weights_folder(named: str = "") -> Path | None:
    """The folder that was named, or that EARMARK_LYRA names."""
    folder = named or os.environ.get("EARMARK_LYRA", "")
    return Path(folder).expanduser() if folder else None


def make(card: CodecCard, checkpoint: str = "", **options: object) -> Lyra:
    if options:
        raise UsageError(f"{card.name} has no option {', '.join(map(repr, options))}: leave it out.")
    folder = weights_folder(checkpoint)
    if folder is None:
        raise InputError(f"{card.name} needs weights: {card.how_to_get}.")
    return Lyra(card, folder)
