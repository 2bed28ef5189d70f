"""Where a model runs: one spelling for all of them, and no part of what the model is."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors import tiny_onnx

from earmark.errors import UsageError
from earmark.extractors.catalogue import identifying_parameters, open_on, takes_device
from earmark.extractors.torch_models import device_of
from earmark.onnx_files import _CPU, _CUDA, _providers
from earmark.representations._systems import describe_model
from earmark.representations.config import ExtractorEntry

torch = pytest.importorskip("torch", reason="torch is an extra")


class Placed:
    """A stranger's model that takes a device."""

    def __init__(self, device: str = "its own") -> None:
        self.where = device

    def extract(self, waveforms: Any) -> Any:
        return [waveform[None, :3] for waveform in waveforms]


HERE = f"{__name__}:Placed"


def test_a_device_goes_to_models_that_take_one() -> None:
    assert takes_device("whisper")
    assert takes_device("moonshine")
    assert not takes_device("logmel")
    assert open_on("cpu", "logmel").card.name == "logmel"
    assert open_on("cuda", "logmel").card.name == "logmel"
    assert open_on("cpu", HERE).where == "cpu"  # type: ignore[attr-defined]
    assert open_on("auto", HERE).where == "its own"  # type: ignore[attr-defined]
    # What a spelling or a parameter says wins.
    assert open_on("cpu", f"{HERE}?device=cuda:7").where == "cuda:7"  # type: ignore[attr-defined]
    assert open_on("cpu", HERE, device="left").where == "left"  # type: ignore[attr-defined]
    for name in ("tpu", "cuda:one", "", "CUDA"):
        with pytest.raises(UsageError, match="There is no device"):
            open_on(name, "logmel")


def test_a_device_is_part_of_what_a_strangers_class_is_and_of_no_other() -> None:
    entry = ExtractorEntry.model_validate(HERE)
    keys = {describe_model(entry, None, device).identity for device in ("auto", "cpu", "cuda", "mps")}
    assert len(keys) == 4
    assert describe_model(entry, None, "cpu").open().where == "cpu"  # type: ignore[attr-defined]
    assert identifying_parameters("cpu", HERE, {"device": "cuda"}) == {"device": "cuda"}
    for device in ("auto", "cpu", "cuda"):
        assert identifying_parameters(device, "whisper", {"layer": 3}) == {"layer": 3}
        assert identifying_parameters(device, "logmel", {}) == {}


def test_devices_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_of(torch, "cpu").type == "cpu"
    for name in ("abacus", "meta", "cuda:x"):
        with pytest.raises(UsageError, match="auto, cpu, cuda, cuda:1 or mps"):
            device_of(torch, name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert device_of(torch, "auto").type == "cpu"
    with pytest.raises(UsageError, match="no CUDA device"):
        device_of(torch, "cuda")
    with pytest.raises(UsageError, match="no GPU of Apple"):
        device_of(torch, "mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device_of(torch, "mps").type == "mps"
    assert device_of(torch, "auto").type == "cpu"  # one that is not tried by us is not chosen unasked
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert str(device_of(torch, "auto")) == "cuda"
    assert str(device_of(torch, "cuda:1")) == "cuda:1"
    with pytest.raises(UsageError, match="torch sees 2"):
        device_of(torch, "cuda:2")


def test_onnx_runs_on_a_gpu_where_onnxruntime_has_one(caplog: pytest.LogCaptureFixture) -> None:
    both = [_CUDA, _CPU]
    assert _providers(both, "cpu", "model") == [_CPU]
    for device, number in (("auto", "0"), ("cuda", "0"), ("cuda:1", "1")):
        assert _providers(both, device, "model") == [(_CUDA, {"device_id": number, "use_tf32": "0"}), _CPU]
    assert _providers([_CPU], "auto", "model") == [_CPU]
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "earmark.extractors"):
        assert _providers([_CPU], "cuda", "model.onnx") == [_CPU]
        assert _providers(both, "mps", "model.onnx") == [_CPU]
    assert [record.getMessage() for record in caplog.records] == [
        "model.onnx runs on the CPU: onnxruntime here has no cuda; pip install onnxruntime-gpu brings it",
        "model.onnx runs on the CPU: onnxruntime here has no mps",
    ]
    with pytest.raises(UsageError, match="no device 'tpu'"):
        _providers(both, "tpu", "model.onnx")


def test_an_onnx_file_on_a_device_that_is_not_there_runs_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    if _CUDA in onnxruntime.get_available_providers():
        pytest.skip("onnxruntime has CUDA here")
    nodes = [tiny_onnx.node("Tanh", ["audio"], ["frames"])]
    tiny_onnx.write(tmp_path / "model.onnx", nodes, {"audio": ["samples"]}, {"frames": ["samples"]}, {})
    with caplog.at_level(logging.WARNING, "earmark.extractors"):
        model = open_on("cuda", f"onnx:{tmp_path / 'model.onnx'}")
    assert "onnxruntime here has no cuda" in caplog.text
    noise = np.random.default_rng(0).standard_normal(16000).astype(np.float32)
    here = open_on("cpu", f"onnx:{tmp_path / 'model.onnx'}")
    assert np.array_equal(model.extract([noise])[0].values, here.extract([noise])[0].values)
