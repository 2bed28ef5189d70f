"""Small packages of the three kinds, written as participants write them, and a small blind set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import yaml
from tests.extractors import tiny_onnx

from earmark.blind.example import write_example

CODE = '''
"""A model: mean and deviation of the spectrum, frame by frame."""
import numpy as np


class Spectrum:
    rate = 16000

    def __init__(self, size=256):
        self.size = size

    def extract(self, waveforms):
        return [self.frames(waveform) for waveform in waveforms]

    def frames(self, waveform):
        count = max(1, -(-len(waveform) // self.size))
        padded = np.pad(waveform, (0, count * self.size - len(waveform))).reshape(count, self.size)
        return np.log1p(np.abs(np.fft.rfft(padded))).astype(np.float32)
'''


def write_manifest(folder: Path, **changes: Any) -> Path:
    """A submission.yaml; None removes a key."""
    facts: dict[str, Any] = {"format": 1, "system": {"name": "tiny", "title": "Tiny model", "licence": "MIT"}}
    facts |= changes
    folder.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in facts.items() if value is not None}
    (folder / "submission.yaml").write_text(yaml.safe_dump(kept, sort_keys=False), "utf-8")
    return folder


def code_package(folder: Path, source: str = CODE, model: str = "extractor.py:Spectrum", **changes: Any) -> Path:
    write_manifest(folder, **{"kind": "code", "model": model, **changes})
    (folder / "extractor.py").write_text(source, "utf-8")
    return folder


def write_onnx(path: Path, seed: int = 0) -> Path:
    """Samples [1, T] through eight filters, rectified: [1, 8, T']."""
    filters = np.random.default_rng(seed).standard_normal((8, 1, 64)).astype(np.float32)
    nodes = [
        tiny_onnx.node("Unsqueeze", ["x", "axis"], ["wide"]),
        tiny_onnx.node("Conv", ["wide", "filters"], ["heard"], strides=[160]),
        tiny_onnx.node("Relu", ["heard"], ["y"]),
    ]
    weights = {"filters": filters, "axis": np.array([1], np.int64)}
    return tiny_onnx.write(path, nodes, {"x": [1, "time"]}, {"y": [1, 8, "frames"]}, weights)


def onnx_package(folder: Path, **changes: Any) -> Path:
    facts = {"kind": "onnx", "model": "model.onnx", "rate": 16000, "output_layout": ["batch", "feature", "time"]}
    write_manifest(folder, **{**facts, **changes})
    write_onnx(folder / "model.onnx")
    return folder


def safetensors_package(folder: Path, **changes: Any) -> Path:
    """The example that `earmark blind new` writes, with another manifest."""
    write_example(folder, "safetensors")
    return write_manifest(folder, **{"kind": "safetensors", "model": "weights", "architecture": "wavlm", **changes})


def write_recordings(folder: Path, classes: int = 4, each: int = 6) -> Path:
    """A folder of folders: tones of a few pitches in noise, of different lengths, a folder for each label."""
    random = np.random.default_rng(3)
    for label in range(classes):
        place = folder / f"word{label}"
        place.mkdir(parents=True)
        for number in range(each):
            time = np.arange(round(16000 * random.uniform(0.15, 0.4))) / 16000
            pitch = 200 * 1.4**label * random.uniform(0.97, 1.03)
            sound = 0.3 * np.sin(2 * np.pi * pitch * time) + 0.1 * random.standard_normal(len(time))
            soundfile.write(place / f"{number}.wav", sound, 16000)
    return folder
