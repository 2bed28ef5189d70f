"""AST against the library, and the choice of tokens that models of patches share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors import tiny_models
from tests.extractors.tiny_models import sound, torch, transformers

from earmark.extractors.catalogue import open_extractor

CLIPS = [sound(16000, 0.5), sound(16000, 1.7, 1), np.ones(3, np.float32)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(5)
    return tiny_models.ast(tmp_path_factory.mktemp("ast") / "tiny")


@pytest.fixture(scope="module")
def expected(tiny: Path) -> Any:
    """The library's hidden states; its features cannot hear less than a frame, so the third clip is filled up."""
    model = transformers.ASTForAudioClassification.from_pretrained(tiny).audio_spectrogram_transformer.eval()
    features = transformers.ASTFeatureExtractor.from_pretrained(tiny)
    filled = [np.pad(clip, (0, max(0, 400 - len(clip)))) for clip in CLIPS]
    with torch.inference_mode():
        return model(features(filled, sampling_rate=16000, return_tensors="pt").input_values, output_hidden_states=True)


def test_the_vector_is_the_librarys_pooled_output(tiny: Path, expected: Any) -> None:
    found = open_extractor(f"ast:{tiny}").extract(CLIPS)
    np.testing.assert_allclose(np.concatenate([f.values for f in found]), expected.pooler_output, atol=1e-5)


def test_patches_are_the_librarys_in_order_of_time(tiny: Path, expected: Any) -> None:
    model: Any = open_extractor(f"ast:{tiny}", tokens="patches")
    rows, columns = 5, 12
    for clip, layers in model.extract_layers(CLIPS, [0, 1, 2, 3]):
        hidden = [*expected.hidden_states[:3], expected.last_hidden_state]
        for layer, frames in layers.items():
            grid = hidden[layer][clip, 2:].view(rows, columns, 24)
            by_time = torch.stack([grid[row, column] for column in range(columns) for row in range(rows)])
            np.testing.assert_allclose(frames.values, by_time, atol=2e-5)
    # 0.5 s are 48 frames of 10 ms; columns begin every 10 frames, so 5 of them hear something.
    assert [frames.valid for frames in model.extract(CLIPS)] == [5 * rows, 12 * rows, 1 * rows]


def test_frames_are_means_over_frequency(tiny: Path) -> None:
    frames = open_extractor(f"ast:{tiny}", tokens="frames").extract(CLIPS)
    patches = open_extractor(f"ast:{tiny}", tokens="patches").extract(CLIPS)
    for one, other in zip(frames, patches, strict=True):
        np.testing.assert_allclose(one.values, other.values.reshape(12, 5, 24).mean(axis=1), atol=1e-6)
        assert one.valid == other.valid // 5


@pytest.mark.parametrize("name", ["eat", "audiomae"])
def test_tokens_of_the_vision_transformers(tmp_path: Path, name: str) -> None:
    place = tiny_models.FAMILIES[name](tmp_path / "tiny")
    shapes = {
        tokens: open_extractor(f"{name}:{place}", tokens=tokens).extract(CLIPS[:1])[0]
        for tokens in ("cls", "patches", "frames")
    }
    assert {tokens: frames.values.shape for tokens, frames in shapes.items()} == {
        "cls": (1, 24), "patches": (64, 24), "frames": (8, 24),
    }  # fmt: skip
    assert {tokens: frames.valid for tokens, frames in shapes.items()} == {"cls": 1, "patches": 24, "frames": 3}


@pytest.mark.parametrize(("samples", "patches"), [(1, 8), (2800, 8), (5359, 8), (5360, 16), (16000, 48)])
def test_beats_makes_a_column_of_patches_of_every_16_frames(tmp_path: Path, samples: int, patches: int) -> None:
    place = tiny_models.beats(tmp_path / "tiny")
    frames = open_extractor(f"beats:{place}", allow_pickle=True).extract([np.ones(samples, np.float32)])[0]
    assert (len(frames.values), frames.valid) == (patches, patches)
