"""CLAP of both makers against direct calls of the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.extractors import tiny_models
from tests.extractors.tiny_models import audio_utils, load_file, sound, torch, transformers

from earmark.extractors.catalogue import open_extractor
from earmark.extractors.clap import repeated
from earmark.networks import microsoft_clap


@pytest.mark.parametrize("fused", [False, True])
def test_vectors_are_the_librarys(tmp_path: Path, fused: bool) -> None:
    torch.manual_seed(3)
    place = tiny_models.clap(tmp_path / "tiny", fused)
    clips = [sound(48000, seconds, seed) for seed, seconds in enumerate((1.3, 9.0, 10.0))]
    features = transformers.ClapFeatureExtractor.from_pretrained(place)
    model = transformers.ClapModel.from_pretrained(place).eval()
    with torch.inference_mode():
        mel = features(clips, sampling_rate=48000, return_tensors="pt").input_features
        expected = model.get_audio_features(input_features=mel, is_longer=torch.zeros(3, 1, dtype=torch.bool))
    found = open_extractor(f"clap:{place}").extract(clips)
    np.testing.assert_allclose(np.concatenate([f.values for f in found]), expected.pooler_output, atol=1e-5)
    assert np.linalg.norm(found[0].values) == pytest.approx(1.0, abs=1e-5)


def test_microsofts_names_become_those_of_transformers_and_the_vector_is_their_product(tmp_path: Path) -> None:
    torch.manual_seed(4)
    place = tiny_models.microsoft_clap(tmp_path / "tiny")
    (clip,) = [sound(44100, 7.0)]
    found = open_extractor(f"clap_microsoft:{place}").extract([clip])[0].values
    state = load_file(place / "model.safetensors")
    names = microsoft_clap.rename_tensors(state)
    assert not any("attn.qkv" in name for name in names)
    qkv = state["audio_encoder.base.htsat.layers.0.blocks.0.attn.qkv.weight"]
    key = names["htsat.layers.0.blocks.0.attention.self.key.weight"]
    torch.testing.assert_close(key, qkv[len(key) : 2 * len(key)])

    bank = audio_utils.mel_filter_bank(513, 64, 50, 8000, 44100, norm="slaney", mel_scale="slaney")
    window = audio_utils.window_function(1024, "hann")
    mel = audio_utils.spectrogram(clip, window, 1024, 320, power=2.0, mel_filters=bank)
    decibels = torch.from_numpy(10 * np.log10(np.maximum(mel, 1e-10)).T.astype(np.float32))[None, None]
    config = transformers.ClapAudioConfig(
        patch_embeds_hidden_size=8, hidden_size=64, depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]
    )
    htsat = transformers.ClapAudioModel(config).eval()
    short = "htsat."
    wanted = {f"audio_encoder.{n.removeprefix(short)}": v for n, v in names.items() if n.startswith(short)}
    htsat.load_state_dict(wanted)
    with torch.inference_mode():
        pooled = htsat(input_features=decibels).pooler_output
        first = pooled @ state["audio_encoder.projection.linear1.weight"].T
        second = torch.nn.functional.gelu(first) @ state["audio_encoder.projection.linear2.weight"].T
        expected = torch.nn.functional.layer_norm(first + second, (12,))
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("padding", "expected"),
    [("repeat", [1, 2, 3, 1, 2, 3, 1, 2]), ("repeatpad", [1, 2, 3, 1, 2, 3, 0, 0]), ("pad", [1, 2, 3, 0, 0, 0, 0, 0])],
)
def test_a_short_clip_is_repeated_as_each_maker_does(padding: str, expected: list[int]) -> None:
    assert repeated(np.array([1, 2, 3], np.float32), 8, padding).tolist() == expected
    assert repeated(np.arange(9, dtype=np.float32), 8, padding).tolist() == list(range(8))
