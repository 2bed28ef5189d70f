"""What is pooled where it was computed is what the CPU makes of the same frames. Tensors on the CPU play the GPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earmark.corpora.clips import Clip
from earmark.embedding import embed as embed_module
from earmark.embedding import hearing, on_device, pooling
from earmark.embedding.hearing import hear
from earmark.errors import InputError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.representations import _layers as layers

torch = pytest.importorskip("torch", reason="torch is an extra")
torch_models = pytest.importorskip("earmark.extractors.torch_models")

SELECTIONS = ("max_time", "first_time", "last_time", "first_feature", "flatten")


def assert_close(one: Sequence[Any], other: Sequence[Any]) -> None:
    """Equal but for the last bit of a float32."""
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=2.0**-22, atol=1e-30)


def test_every_pooling_has_both_ways() -> None:
    assert list(on_device.POOLINGS) == list(pooling.POOLINGS)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16", "float64", "int64"])
@pytest.mark.parametrize(("frames", "features", "valid"), [(1, 1, 1), (7, 5, 3), (40, 3, 40), (3, 1, 2)])
def test_the_poolings_are_those_of_arrays(kind: str, frames: int, features: int, valid: int) -> None:
    given = 20 * torch.randn((frames, features), generator=torch.Generator().manual_seed(frames), dtype=torch.float64)
    tensor = given.to(getattr(torch, kind))
    array = tensor.float().numpy() if kind in ("bfloat16", "float16") else tensor.numpy()
    names = list(pooling.POOLINGS)
    here, there = pooling.pool(Frames(array, valid), names), pooling.pool(Frames(tensor, valid), names)
    assert_close(here, there)
    for name, one, other in zip(names, here, there, strict=True):
        assert name not in SELECTIONS or np.array_equal(one, other)


def test_frames_of_zeros_have_no_weights() -> None:
    (vector,) = pooling.pool(Frames(torch.zeros((4, 3)), 4), ["attention_time"])
    assert vector.tolist() == [0.0] * 3


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float64"])
def test_one_bad_clip_costs_only_itself(bad: float, kind: str) -> None:
    good = torch.ones((5, 2), dtype=getattr(torch, kind))
    broken = good.clone()
    broken[3, 1] = bad
    wanted = [(Frames(values, 2), ["mean_time"]) for values in (good, broken, good)]  # the fault is past the valid ones
    wanted.append((Frames(good, 9), ["mean_time"]))
    wanted.append((Frames(np.ones((5, 2), np.float32), 5), ["mean_time"]))  # an array among tensors
    started = pooling.start_pooling(wanted)
    for number in (0, 2, 4):
        assert started[number]()[0].tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match="NaN or infinity"):
        started[1]()
    with pytest.raises(InputError, match="9 of 5 frames"):
        started[3]()


def test_the_largest_numbers_are_numbers() -> None:
    largest = torch.full((300, 4), torch.finfo(torch.float32).max)
    assert on_device.are_finite(largest[None]).tolist() == [True]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.extractors import tiny_models

    return tiny_models.whisper(tmp_path_factory.mktemp("whisper"))


def clips(count: int = 7) -> list[Clip]:
    random = np.random.default_rng(0)
    return [
        Clip(str(n), samples=random.standard_normal(4000 + 900 * (n % 3)).astype(np.float32), rate=16000)
        for n in range(count)
    ]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_embedding_with_frames_that_stay(tiny: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [*pooling.POOLINGS, "mean_time+mean_feature"]
    here = embed_module.embed(clips(), open_extractor(f"whisper:{tiny}", device="cpu", dtype=dtype), names, batch=3)
    stayed = []

    def stay(extractor: Any) -> Any:
        stayed.append(torch_models.OnDevice(extractor))
        return stayed[-1]

    monkeypatch.setattr(embed_module, "on_device", stay)
    there = embed_module.embed(clips(), open_extractor(f"whisper:{tiny}", device="cpu", dtype=dtype), names, batch=3)
    assert stayed
    assert here.ids == there.ids
    assert_close(list(here.vectors.values()), list(there.vectors.values()))


def test_layers_and_frames_of_a_run(tiny: Path) -> None:
    """Side by side on the device: poolings of two layers, and the frames that a DTW wants."""
    parts = ["@1/mean_time", "@3/max_time", *layers.frame_parts(3, 1), "@3/masked_mean_time"]
    model = open_extractor(f"whisper:{tiny}", device="cpu")
    waveforms = [clip.samples for clip in clips()]
    found = []
    for extractor in (model, torch_models.OnDevice(model)):
        answers = layers.sweep_layers(extractor, parts).extract(waveforms)
        assert hasattr(answers[0].values, "detach") == (extractor is not model)
        found.append([started() for started in layers.start_taking(answers, parts)])
    for one, other in zip(*found, strict=True):
        assert one.features == other.features == 32
        assert list(one.vectors) == list(other.vectors)
        assert_close(list(one.vectors.values()), list(other.vectors.values()))


def test_frames_stay_only_on_a_gpu(tiny: Path) -> None:
    model = open_extractor(f"whisper:{tiny}", device="cpu")
    assert torch_models.on_device(model) is model
    logmel = open_extractor("logmel")
    assert torch_models.on_device(logmel) is logmel
    assert isinstance(model.extract([clips(1)[0].samples])[0].values, np.ndarray)


def test_the_next_window_begins_before_this_one_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last batch of a window is not the end of the line: the model has work while its answers are used."""
    monkeypatch.setattr(hearing._Window, "decoded", lambda self: all(one.result() for one in self._decoding))
    begun = threading.Event()

    class Noting:
        card = ExtractorCard("noting", rate=16000)

        def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
            if len(waveforms) == 1:  # the second window
                begun.set()
            return [Frames(np.ones((1, 1), np.float32), 1) for _ in waveforms]

    def start(frames: Sequence[Frames]) -> list[Any]:
        return [lambda: begun.wait(20)] * len(frames)

    found = [[one.answer for one in window] for window in hear([clips(2), clips(1)], Noting(), batch=2, start=start)]
    assert found == [[True] * 2, [True]]
