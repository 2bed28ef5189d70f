"""Perch 2.0 and BirdNET V3 from files with the signatures that are published, in each of their formats.

The files are small: means of samples stand for the network. What is tested is the whole way from a clip to its vectors:
windows, scaling, which input, which of several outputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors import tiny_onnx as onnx

from earmark.corpora.clips import CorpusCard
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.extractors import conformance
from earmark.extractors.catalogue import CARDS, open_extractor, weights_of
from earmark.extractors.overlap import audit

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

PERCH = {"spectrogram": [500, 128], "spatial_embedding": [16, 4, 1536], "label": [14795], "embedding": [1536]}
"""Perch's outputs behind the batch; the embedding is not the first."""


def noise(samples: int, seed: int = 1) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal(samples)
    return (made / np.abs(made).max()).astype(np.float32)


def embedded(windows: np.ndarray, blocks: int, dimension: int) -> np.ndarray:
    """What the files compute as embedding: the mean over blocks of samples, its first numbers."""
    values: np.ndarray = windows.reshape(len(windows), blocks, -1).mean(axis=1)[:, :dimension]
    return values


def onnx_file(path: Path, given: str, length: Any, blocks: int, outputs: dict[str, list[int]], embedding: str) -> Path:
    """Samples [batch, length] to outputs of these shapes; the others are cut from the input."""
    samples = length if isinstance(length, int) else 96000
    size = samples // blocks
    nodes = [
        onnx.node("Reshape", [given, "blocks"], ["blocked"]),
        onnx.node("ReduceMean", ["blocked"], ["mean"], axes=[1], keepdims=0),
    ]
    weights = {"blocks": np.array([-1, blocks, size]), "one": np.array([1]), "zero": np.array([0])}
    for name, shape in outputs.items():
        count = int(np.prod(shape))
        source = "mean" if name == embedding else given
        weights |= {f"{name}_end": np.array([count]), f"{name}_shape": np.array([-1, *shape])}
        nodes.append(onnx.node("Slice", [source, "zero", f"{name}_end", "one"], [f"{name}_cut"]))
        nodes.append(onnx.node("Reshape", [f"{name}_cut", f"{name}_shape"], [name]))
    described = {name: ["batch", *shape] for name, shape in outputs.items()}
    return onnx.write(path, nodes, {given: ["batch", length]}, described, weights)


def perch_onnx(path: Path) -> Path:
    return onnx_file(path, "inputs", 160000, 100, PERCH, "embedding")


def birdnet_onnx(path: Path, names: tuple[str, str] = ("predictions", "embeddings")) -> Path:
    return onnx_file(path, "input", "samples", 75, {names[0]: [11560], names[1]: [1280]}, names[1])


def scaled(windows: np.ndarray) -> np.ndarray:
    centred = windows - windows.mean(axis=1, keepdims=True)
    values: np.ndarray = 0.25 * centred / np.abs(centred).max(axis=1, keepdims=True)
    return values


def test_perch_from_onnx_hears_windows_of_five_seconds_at_a_quarter_of_full_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = open_extractor(f"perch:{perch_onnx(tmp_path / 'perch_v2.onnx')}")
    assert (made.card.rate, made.card.dimension, made.card.frame_rate) == (32000, 1536, 0.2)
    clip = 0.1 * noise(320000) + 0.01
    expected = embedded(scaled(clip.reshape(2, 160000)), 100, 1536)
    np.testing.assert_allclose(made.extract([clip])[0].values, expected, atol=1e-6)
    hopped = open_extractor(f"perch:{tmp_path / 'perch_v2.onnx'}?hop=2.5").extract([clip])[0].values
    assert hopped.shape == (3, 1536)
    np.testing.assert_allclose(hopped[[0, 2]], expected, atol=1e-6)
    short = made.extract([clip[:100000]])[0].values
    np.testing.assert_allclose(short, embedded(scaled(np.pad(clip[:100000], 30000)[None]), 100, 1536), atol=1e-6)
    monkeypatch.setattr(conformance, "LONG_SECONDS", 11.0)
    assert {one.name: one.sentence for one in conformance.check_extractor(made) if one.status != "pass"} == {}


@pytest.mark.parametrize("names", [("predictions", "embeddings"), ("output_0", "output_1")])
def test_birdnet_v3_from_onnx_gives_its_second_output(
    tmp_path: Path, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = open_extractor(f"birdnet_v3:{birdnet_onnx(tmp_path / 'BirdNET+_V3.0_FP32.onnx', names)}")
    assert (made.card.rate, made.card.dimension) == (32000, 1280)
    clip = noise(2 * 96000)
    expected = embedded(clip.reshape(2, 96000), 75, 1280)
    np.testing.assert_allclose(made.extract([clip])[0].values, expected, atol=1e-6)
    monkeypatch.setattr(conformance, "LONG_SECONDS", 7.0)
    assert {one.name: one.sentence for one in conformance.check_extractor(made) if one.status != "pass"} == {}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_birdnet_v3_from_torchscript(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Tiny(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[name-defined]
            blocks = samples.view(samples.shape[0], 75, -1).mean(1)
            return samples[:, :11560].sigmoid(), blocks[:, :1280]

    torch.jit.trace(Tiny(), torch.zeros(1, 96000)).save(tmp_path / "birdnet.pt")
    made = open_extractor(f"birdnet_v3:{tmp_path / 'birdnet.pt'}")
    clip = noise(96000)
    np.testing.assert_allclose(made.extract([clip])[0].values, embedded(clip[None], 75, 1280), atol=1e-6)


# --- TFLite ---------------------------------------------------------------------------------------------------


def tflite_file(path: Path, length: int, blocks: int, outputs: dict[str, list[int]], embedding: str) -> Path:
    """The same as a flat buffer of TFLite's schema: reshape, mean over blocks, slices."""
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    kinds, types = schema.BuiltinOperator, schema.TensorType
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.description, model.buffers = 3, "tiny", [schema.BufferT()]
    graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], [], []
    codes = [kinds.RESHAPE, kinds.MEAN, kinds.SLICE]
    model.operatorCodes = []
    for code in codes:
        entry = schema.OperatorCodeT()
        entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, code, 1
        model.operatorCodes.append(entry)

    def tensor(name: str, shape: list[int], values: Any = None) -> int:
        made = schema.TensorT()
        made.name, made.shape, made.buffer = name, shape, 0
        made.type = types.FLOAT32 if values is None else types.INT32
        if values is not None:
            buffer = schema.BufferT()
            buffer.data = np.array(values, np.int32).view(np.uint8)
            model.buffers.append(buffer)
            made.buffer = len(model.buffers) - 1
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    def operator(code: int, given: list[int], into: int) -> int:
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = codes.index(code), given, [into]
        if code == kinds.MEAN:
            made.builtinOptionsType = schema.BuiltinOptions.ReducerOptions
            made.builtinOptions = schema.ReducerOptionsT()
        graph.operators.append(made)
        return into

    size = length // blocks
    samples = tensor("serving_default_inputs:0", [1, length])
    shape = tensor("blocks", [3], [1, blocks, size])
    blocked = operator(kinds.RESHAPE, [samples, shape], tensor("blocked", [1, blocks, size]))
    mean = operator(kinds.MEAN, [blocked, tensor("axis", [1], [1])], tensor("mean", [1, size]))
    for number, (name, wanted) in enumerate(outputs.items()):
        count = int(np.prod(wanted))
        begin, end = tensor(f"begin{number}", [2], [0, 0]), tensor(f"end{number}", [2], [1, count])
        cut = tensor(f"cut{number}", [1, count])
        operator(kinds.SLICE, [mean if name == embedding else samples, begin, end], cut)
        target = tensor(f"shape{number}", [1 + len(wanted)], [1, *wanted])
        full = tensor(f"StatefulPartitionedCall:{number}", [1, *wanted])
        graph.outputs.append(operator(kinds.RESHAPE, [cut, target], full))
    graph.inputs, model.subgraphs = [samples], [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())
    return path


def test_perch_from_tflite_whose_outputs_have_lost_their_names(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    file = tflite_file(tmp_path / "perch_v2_fp16.tflite", 160000, 100, PERCH, "embedding")
    made, other = (open_extractor(f"perch:{path}") for path in (file, perch_onnx(tmp_path / "perch_v2.onnx")))
    clip = noise(200000)
    np.testing.assert_allclose(made.extract([clip])[0].values, other.extract([clip])[0].values, atol=1e-6)


# --- what is wrong --------------------------------------------------------------------------------------------


def test_files_that_are_not_there_or_another_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"birdnet_v3 has no weights of its own: download BirdNET\+_V3.0-preview3.1"):
        open_extractor("birdnet_v3")
    with pytest.raises(InputError, match=r"none.onnx does not exist: download perch_v2.onnx"):
        open_extractor(f"perch:{tmp_path / 'none.onnx'}")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(EarmarkError, match=r"cannot be fetched|earmark\[models\]"):
        open_extractor("perch?local_files_only=true")
    (tmp_path / "perch.h5").write_text("no model")
    with pytest.raises(UsageError, match=r"is none of .onnx, .tflite, .pt and a SavedModel folder"):
        open_extractor(f"perch:{tmp_path / 'perch.h5'}")
    with pytest.raises(InputError, match=r"holds no saved_model.pb"):
        open_extractor(f"perch:{tmp_path}")
    birds = birdnet_onnx(tmp_path / "birds.onnx")
    with pytest.raises(InputError, match=r"no embedding of 1536 numbers but predictions \['batch', 11560\]"):
        open_extractor(f"perch:{birds}")
    with pytest.raises(InputError, match="not windows of 96000 samples"):
        open_extractor(f"birdnet_v3:{perch_onnx(tmp_path / 'perch.onnx')}")
    for hop in (0, 3.5, -1):
        with pytest.raises(UsageError, match="The hop of birdnet_v3 must be above 0 and at most 3 s"):
            open_extractor(f"birdnet_v3:{birds}?hop={hop}")
    (tmp_path / "text.tflite").write_text("no model")
    pytest.importorskip("ai_edge_litert")
    with pytest.raises(InputError, match="cannot be opened as a TFLite model"):
        open_extractor(f"perch:{tmp_path / 'text.tflite'}")


def test_cards_say_where_weights_come_from_and_what_they_have_heard() -> None:
    assert (weights_of(CARDS["perch"]), weights_of(CARDS["birdnet_v3"])) == ("hub", "yours")
    birds = CorpusCard("birds", domain="bird song", drawn_from="iNaturalist", status="real")
    assert audit(CARDS["perch"], birds).verdict == "confirmed"
    mine = CorpusCard("mine", domain="bird song", status="real")
    assert audit(CARDS["perch"], mine).verdict == audit(CARDS["birdnet_v3"], mine).verdict == "likely"
