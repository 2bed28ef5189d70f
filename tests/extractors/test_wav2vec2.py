"""Wav2Vec 2.0, WavLM and HuBERT against direct calls of the library, alone and in padded batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors import tiny_models
from tests.extractors.tiny_models import LARGE, sound, torch, transformers

from earmark.extractors.catalogue import open_extractor
from earmark.extractors.wav2vec2 import convolved

KINDS = {"wav2vec2": "Wav2Vec2", "wavlm": "WavLM", "hubert": "Hubert"}
CLIPS = [sound(16000, seconds, seed) for seed, seconds in enumerate((0.41, 1.3, 0.0256))]


def library(kind: str, place: Path, clip: Any) -> Any:
    model = getattr(transformers, f"{kind}Model").from_pretrained(place).eval()
    features = transformers.Wav2Vec2FeatureExtractor.from_pretrained(place)
    with torch.inference_mode():
        given = features(clip, sampling_rate=16000, return_tensors="pt").input_values
        return model(given, output_hidden_states=True)


@pytest.mark.parametrize("large", [False, True], ids=["group norm", "layer norm"])
@pytest.mark.parametrize("name", KINDS)
def test_layers_in_a_padded_batch_are_the_librarys_of_a_clip_alone(tmp_path: Path, name: str, large: bool) -> None:
    torch.manual_seed(2)
    place = tiny_models.speech(KINDS[name], tmp_path / "tiny", **(LARGE if large else {}))
    model: Any = open_extractor(f"{name}:{place}")
    for clip, layers in model.extract_layers(CLIPS, [0, 1, 2, 3]):
        expected = library(KINDS[name], place, CLIPS[clip])
        hidden = [*expected.hidden_states[:3], expected.last_hidden_state]
        for layer, frames in layers.items():
            assert frames.valid == len(frames.values)
            np.testing.assert_allclose(frames.values, hidden[layer][0], atol=1e-4 * float(hidden[layer].abs().max()))


def test_in_the_library_itself_padding_leaks_through_the_group_norm(tmp_path: Path) -> None:
    """The reason for a norm of our own; should this fail one day, it can go."""
    torch.manual_seed(2)
    place = tiny_models.speech("Wav2Vec2", tmp_path / "tiny")
    model = transformers.Wav2Vec2Model.from_pretrained(place).eval()
    short, long = (torch.from_numpy(clip)[None] for clip in CLIPS[:2])
    padded = torch.cat([torch.nn.functional.pad(short, (0, long.shape[1] - short.shape[1])), long])
    mask = torch.arange(long.shape[1]) < torch.tensor([[short.shape[1]], [long.shape[1]]])
    with torch.inference_mode():
        alone = model(short).last_hidden_state[0]
        beside = model(padded, attention_mask=mask.long()).last_hidden_state[0, : len(alone)]
    assert float((alone - beside).abs().max() / alone.abs().max()) > 1e-2


def test_frames_are_counted_as_the_convolutions_make_them() -> None:
    kernels, strides = [10, 3, 3, 3, 3, 2, 2], [5, 2, 2, 2, 2, 2, 2]
    network = torch.nn.Sequential(*[torch.nn.Conv1d(1, 1, k, s) for k, s in zip(kernels, strides, strict=True)])
    for samples in (400, 719, 720, 16000, 16079, 16080):
        assert convolved(samples, kernels, strides) == network(torch.zeros(1, 1, samples)).shape[-1]


def test_a_clip_shorter_than_a_frame_is_filled_up_to_one(tmp_path: Path) -> None:
    place = tiny_models.speech("Wav2Vec2", tmp_path / "tiny", **LARGE)
    frames = open_extractor(f"wav2vec2:{place}").extract([np.ones(7, np.float32), sound(16000, 0.3)])
    assert (frames[0].values.shape, frames[0].valid) == ((1, 32), 1)
