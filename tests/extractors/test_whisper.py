"""Whisper and WhisperSeg against direct calls of the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors import tiny_models
from tests.extractors.tiny_models import sound, torch, transformers

from earmark.errors import UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.whisper import fft_size


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    return tiny_models.whisper(tmp_path_factory.mktemp("whisper") / "tiny")


def library(place: Path, clips: list[Any]) -> Any:
    """Hidden states of the library's own encoder, from its own features."""
    encoder = transformers.WhisperModel.from_pretrained(place).encoder.eval()
    features = transformers.WhisperFeatureExtractor.from_pretrained(place)
    with torch.inference_mode():
        mel = features(clips, sampling_rate=16000, return_tensors="pt").input_features
        return encoder(mel, output_hidden_states=True)


def test_every_layer_is_the_librarys(tiny: Path) -> None:
    clips = [sound(16000, 0.5), sound(16000, 1.7, 1), np.zeros(4000, np.float32)]
    expected = library(tiny, clips)
    model: Any = open_extractor(f"whisper:{tiny}")
    for place, layers in model.extract_layers(clips, [0, 1, 2, 3]):
        for layer, frames in layers.items():
            assert frames.values.shape == (100, 32)
            np.testing.assert_allclose(frames.values, expected.hidden_states[layer][place], atol=2e-5)
    np.testing.assert_allclose(model.extract(clips)[1].values, expected.last_hidden_state[1], atol=2e-5)


@pytest.mark.parametrize(("samples", "valid"), [(1, 1), (320, 1), (321, 2), (16000, 50), (31999, 100), (99999, 100)])
def test_valid_frames_are_those_that_heard_a_sample(tiny: Path, samples: int, valid: int) -> None:
    frames = open_extractor(f"whisper:{tiny}").extract([np.ones(samples, np.float32)])[0]
    assert (len(frames.values), frames.valid) == (100, valid)


def test_whisperseg_at_16_khz_and_whispers_step_differs_only_in_its_fourier_transform(tiny: Path) -> None:
    clip = [sound(16000, 1.0)]
    model: Any = open_extractor(f"whisperseg:{tiny}", columns=200, time_step=0.01)
    model._front_end = model._front_end._replace(fft=400)
    np.testing.assert_array_equal(
        model.extract(clip)[0].values, open_extractor(f"whisper:{tiny}").extract(clip)[0].values
    )


def test_whisperseg_hears_ultrasound_that_is_lost_at_16_khz(tiny: Path) -> None:
    rate = 250_000
    time = np.arange(rate // 10) / rate
    calls = [np.sin(2 * np.pi * pitch * time).astype(np.float32) for pitch in (60_000, 90_000)]
    model = open_extractor(f"whisperseg:{tiny}?rate=250000&time_step=0.001&columns=100")
    assert (model.card.rate, model.card.context_seconds, model.card.frame_rate) == (rate, 0.1, 500.0)
    low, high = (frames.values.mean(axis=0) for frames in model.extract(calls))
    assert np.abs(low - high).max() > 1e-3
    assert model.extract(calls)[0].values.shape == (50, 32)


def test_whisperseg_uses_the_first_positions_and_the_checkpoints_columns(tiny: Path, tmp_path: Path) -> None:
    place = tmp_path / "seg"
    place.mkdir()
    for file in tiny.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, "total_spec_columns": 60}))
    model: Any = open_extractor(f"whisperseg:{place}", time_step=0.01)
    assert model.extract([sound(16000, 0.3)])[0].values.shape == (30, 32)
    kept = transformers.WhisperModel.from_pretrained(tiny).encoder.embed_positions.weight[:30]
    np.testing.assert_array_equal(model.network.embed_positions.weight, kept.detach())


def test_whisperseg_refuses_what_cannot_be(tiny: Path) -> None:
    with pytest.raises(UsageError, match="has 100 positions: at most 200 columns"):
        open_extractor(f"whisperseg:{tiny}", columns=201 * 2)
    with pytest.raises(UsageError, match="check rate, low, high"):
        open_extractor(f"whisperseg:{tiny}", columns=100, low=9000)


def test_the_fourier_transform_grows_with_the_rate() -> None:
    assert [fft_size(rate) for rate in (16_000, 32_000, 44_100, 96_000, 250_000, 500_000)] == [
        512, 512, 1024, 2048, 4096, 8192,
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_a_gpu_is_spared_changes_no_number(tiny: Path, dtype: str) -> None:
    """Frames in order, and attention that reads queries, keys and values where they are."""
    from earmark.networks.whisper_memory import spare_copies

    plain, spared = (open_extractor(f"whisper:{tiny}", device="cpu", dtype=dtype) for _ in range(2))
    spare_copies(spared.network)
    clips = [sound(16000, seconds, seed) for seed, seconds in enumerate((0.3, 1.1, 2.0))]
    room = {"float32": 1e-6, "bfloat16": 2.0**-6}[dtype]
    for (_, one), (_, other) in zip(
        *(model.extract_layers(clips, [0, 1, 3]) for model in (plain, spared)), strict=True
    ):
        for layer in (0, 1, 3):
            np.testing.assert_allclose(one[layer].values, other[layer].values, rtol=room, atol=room)
