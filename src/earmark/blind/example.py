"""Packages to begin with: small, complete, and taken as they are. `earmark blind new` writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earmark.blind._manifest import Kind
from earmark.errors import InputError, require
from earmark.onnx_files import message_field as block
from earmark.onnx_files import number_field as number

__all__ = ["write_example"]

_MANIFEST = """\
# What your package is. `earmark blind check {folder}` says whether it would be taken.
format: 1
kind: {kind}
{model}

# How frames become one vector for each clip, and how vectors are compared. All of it runs on the host's side.
pooling: mean_time        # or max_time, MTF, mean_time+max_time, ... as `earmark embed --pool` takes them
# pca: 100                # principal components, fitted by the host on the vectors of each blind set
distance: cosine          # or euclidean, spearman
correction: none          # or csls, icdm:k=20, ... against hubness

# The card of your entry on the board. Only the name is needed; what you leave out is shown as unknown.
system:
  name: my-model          # one entry for each model: versions of one model share a name
  title: My model
  authors: [Your Name]
  licence: MIT
  # url: https://example.org/my-model
  # parameters_m: 1.2     # millions
  # pretraining: [LibriSpeech]
"""
_MODELS: dict[Kind, str] = {
    "onnx": """\
model: model.onnx
rate: 16000               # samples a second that the model wants; the host resamples
front_end: {n_fft: 400, hop: 160, mels: 64, log: natural}   # leave it out if the model takes samples
layout: [batch, time, mel]                # axes of the input, where its shape does not tell
output_layout: [batch, time, feature]     # axes of the output
# seconds: 1.5            # for models that hear windows of fixed length; also hop, shortest, output""",
    "safetensors": """\
model: weights            # a folder with config.json, preprocessor_config.json and model.safetensors
architecture: wavlm       # one of the models that `earmark extractors` lists
# options: {layer: 9}     # of that model""",
    "code": """\
model: extractor.py:MyModel
rate: 16000               # samples a second that the model wants; the host resamples
# options: {size: 512}    # keywords of MyModel""",
}
_CODE = '''\
"""A model with one method. It runs in a sealed cell: no network, no files but those of this package.

numpy, scipy, torch, transformers and onnxruntime can be imported where the host has them. Weights lie beside this file,
as .safetensors or .npy; pickles are refused.
"""

from __future__ import annotations

import numpy as np


class MyModel:
    rate = 16000

    def __init__(self, size: int = 400) -> None:
        self.size = size
        # Weights: numpy.load(Path(__file__).parent / "weights.npy"), or safetensors.torch.load_file(...)

    def extract(self, waveforms):
        """For each waveform (float32, mono, peak 1) an array [frames, features], or one vector [features]."""
        return [self.frames(waveform) for waveform in waveforms]

    def frames(self, waveform):
        count = max(1, -(-len(waveform) // self.size))  # clips may be as short as one sample
        padded = np.pad(waveform, (0, count * self.size - len(waveform))).reshape(count, self.size)
        return np.log1p(np.abs(np.fft.rfft(padded * np.hanning(self.size)))).astype(np.float32)
'''


def write_example(folder: Path, kind: Kind) -> list[str]:
    """Write a package into a folder that is empty or not there yet; the names of its files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already and not empty: give the name of a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "onnx":
        (folder / "model.onnx").write_bytes(_onnx_model())
    elif kind == "safetensors":
        _write_checkpoint(folder / "weights")
    else:
        (folder / "extractor.py").write_text(_CODE, "utf-8")
    text = _MANIFEST.format(folder=folder.name, kind=kind, model=_MODELS[kind])
    (folder / "submission.yaml").write_text(text, "utf-8")
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _write_checkpoint(folder: Path) -> None:
    """A WavLM of a few thousand random weights, as transformers saves it."""
    import json

    torch = require("torch", "An example of safetensors", "models")
    transformers = require("transformers", "An example of safetensors", "models")
    torch.manual_seed(0)
    config = transformers.WavLMConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=[16] * 7,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
    )  # fmt: skip
    transformers.utils.logging.disable_progress_bar()
    transformers.WavLMModel(config).save_pretrained(folder)
    facts = {"sampling_rate": 16000, "do_normalize": False}
    (folder / "preprocessor_config.json").write_text(json.dumps(facts), "utf-8")


# --- a small ONNX file, field by field: numbers of fields are those of onnx.proto ------------------------------------


def _onnx_model() -> bytes:
    """Mel frames [batch, time, 64] times random weights, rectified: [batch, time, 32]."""
    weights = np.random.default_rng(0).standard_normal((64, 32)) / 8
    nodes = [_node("MatMul", ("mel", "weights"), "product"), _node("Relu", ("product",), "frames")]
    graph = b"".join(block(1, node) for node in nodes) + block(2, b"example") + block(5, _tensor("weights", weights))
    graph += block(11, _array("mel", 64)) + block(12, _array("frames", 32))
    return number(1, 8) + block(7, graph) + block(8, block(1, b"") + number(2, 17))


def _node(operator: str, inputs: tuple[str, ...], output: str) -> bytes:
    return (
        b"".join(block(1, name.encode()) for name in inputs) + block(2, output.encode()) + block(4, operator.encode())
    )


def _tensor(name: str, values: NDArray[np.float64]) -> bytes:
    sizes = b"".join(number(1, size) for size in values.shape)
    return sizes + number(2, 1) + block(8, name.encode()) + block(9, values.astype("<f4").tobytes())


def _array(name: str, features: int) -> bytes:
    sizes = block(1, number(1, 1)) + block(1, block(2, b"time")) + block(1, number(1, features))
    return block(1, name.encode()) + block(2, block(1, number(1, 1) + block(2, sizes)))
