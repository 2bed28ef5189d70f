"""Dasheng, AVES, Wav2Vec2-BERT and MERT's large models against their definitions and against transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors import tiny_models
from tests.extractors.tiny_models import DASHENG, LARGE, audio_utils, sound, torch, transformers

from earmark.errors import InputError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.hear_api import frame_centres

functional = torch.nn.functional


def decibels(samples: np.ndarray) -> Any:
    """64 HTK bands every 10 ms, cut 120 dB below the maximum: transformers' own spectrogram."""
    bank = audio_utils.mel_filter_bank(257, 64, 0, 8000, 16000, norm=None, mel_scale="htk")
    window = audio_utils.window_function(512, "hann")
    power = audio_utils.spectrogram(samples, window, 512, 160, 512, power=2.0, mel_filters=bank, mel_floor=1e-10)
    logs = 10 * np.log10(np.maximum(power, 1e-10))
    return torch.from_numpy(np.maximum(logs, logs.max() - 120)).float()


def described(state: dict[str, Any], samples: np.ndarray) -> np.ndarray:
    """Dasheng's last layer, tensor by tensor, piece by piece."""
    heads, length = DASHENG["num_heads"], DASHENG["target_length"]
    norm = [state[f"init_bn.1.{part}"][:, None] for part in ("running_mean", "running_var", "weight", "bias")]
    mels = (decibels(samples) - norm[0]) / (norm[1] + 1e-5).sqrt() * norm[2] + norm[3]
    pieces = []
    for start in range(0, mels.shape[1] // 4 * 4, length):
        piece = mels[:, start : start + length]
        columns = [piece[:, at : at + 4] for at in range(0, piece.shape[1] // 4 * 4, 4)]
        kernel = state["patch_embed.proj.weight"][:, 0]
        values = torch.stack([(kernel * column).sum((1, 2)) for column in columns]) + state["patch_embed.proj.bias"]
        values = values + state["time_pos_embed"][0, :, 0, : len(values)].T + state["freq_pos_embed"][0, :, 0, 0]
        for block in range(DASHENG["depth"]):
            part = {
                name.split(".", 2)[2]: value for name, value in state.items() if name.startswith(f"blocks.{block}.")
            }
            normed = functional.layer_norm(values, [24], part["norm1.weight"], part["norm1.bias"], 1e-6)
            mixed = (normed @ part["attn.qkv.weight"].T + part["attn.qkv.bias"]).split(24, dim=1)
            query, key, value = (third.view(len(values), heads, -1).transpose(0, 1) for third in mixed)
            scores = (query @ key.transpose(1, 2) / query.shape[-1] ** 0.5).softmax(-1)
            joined = (scores @ value).transpose(0, 1).reshape(len(values), 24)
            values = values + joined @ part["attn.proj.weight"].T + part["attn.proj.bias"]
            normed = functional.layer_norm(values, [24], part["norm2.weight"], part["norm2.bias"], 1e-6)
            bent = functional.gelu(normed @ part["mlp.fc1.weight"].T + part["mlp.fc1.bias"])
            values = values + bent @ part["mlp.fc2.weight"].T + part["mlp.fc2.bias"]
        pieces.append(functional.layer_norm(values, [24], state["norm.weight"], state["norm.bias"], 1e-6))
    return torch.cat(pieces).numpy()


@pytest.mark.parametrize("samples", [480, 7000, 7680, 8000, 20011])
def test_dasheng_is_its_authors_description_piece_by_piece(tmp_path: Path, samples: int) -> None:
    place = tiny_models.dasheng(tmp_path / "hub")
    state = tiny_models.dasheng_state()
    clip = sound(16000, samples / 16000) * np.linspace(0, 1, samples, dtype=np.float32) ** 3
    heard = open_extractor(f"dasheng:{place}?device=cpu").extract([clip])[0].values
    expected = described(state, clip)
    assert heard.shape == expected.shape
    np.testing.assert_allclose(heard, expected, atol=2e-4 * np.abs(expected).max())


def test_the_file_of_the_package_dasheng_gives_the_same(tmp_path: Path) -> None:
    config = {**DASHENG, "patch_size": (64, 4), "patch_stride": (64, 4)}
    torch.save({"model": tiny_models.dasheng_state(), "config": config}, tmp_path / "dasheng_base.pt")
    clip = sound(16000, 0.7)
    file, hub = (
        open_extractor(f"dasheng:{place}?device=cpu&allow_pickle=true").extract([clip])[0].values
        for place in (tmp_path / "dasheng_base.pt", tiny_models.dasheng(tmp_path / "hub"))
    )
    np.testing.assert_array_equal(file, hub)


def test_another_cut_of_the_spectrogram_is_refused(tmp_path: Path) -> None:
    place = tiny_models.dasheng(tmp_path / "hub")
    said = json.loads((place / "config.json").read_text())
    said["encoder_kwargs"]["patch_size"] = [16, 16]  # CED's
    (place / "config.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="cuts its spectrogram in another way"):
        open_extractor(f"dasheng:{place}")


# --- AVES -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, LARGE], ids=["base", "large"])
def test_aves_in_torchaudios_names_is_hubert(tmp_path: Path, changes: dict[str, Any]) -> None:
    place = tiny_models.aves(tmp_path / "aves", **changes)
    model: Any = open_extractor(f"aves:{place}?device=cpu&allow_pickle=true")
    network = tiny_models._initialised(
        transformers.HubertModel(transformers.HubertConfig(**{**tiny_models.SPEECH, **changes}))
    ).eval()
    clip = sound(16000, 0.6)
    with torch.inference_mode():
        expected = network(torch.from_numpy(clip)[None]).last_hidden_state[0].numpy()
    np.testing.assert_allclose(model.extract([clip])[0].values, expected, atol=1e-4 * np.abs(expected).max())
    centres = frame_centres(model, len(clip), len(expected))
    np.testing.assert_allclose(centres[:2], [0.0125, 0.0325])


def test_aves_needs_its_config(tmp_path: Path) -> None:
    place = tiny_models.aves(tmp_path / "aves")
    next(place.parent.glob("*.json")).unlink()
    with pytest.raises(InputError, match=r"aves-base-bio.torchaudio.model_config.json does not lie beside"):
        open_extractor(f"aves:{place}?allow_pickle=true")
    with pytest.raises(InputError, match="aves has no weights of its own: download aves-base-bio"):
        open_extractor("aves")


# --- Wav2Vec2-BERT and MERT -----------------------------------------------------------------------------------


def test_wav2vec2_bert_is_the_librarys(tmp_path: Path) -> None:
    torch.manual_seed(1)
    place = tiny_models.wav2vec2_bert(tmp_path / "tiny")
    model: Any = open_extractor(f"wav2vec2_bert:{place}?device=cpu")
    network = transformers.Wav2Vec2BertModel.from_pretrained(place).eval()
    features = transformers.SeamlessM4TFeatureExtractor.from_pretrained(place)
    clips = [sound(16000, seconds, seed) for seed, seconds in enumerate((0.5, 0.82))]
    for clip, layers in model.extract_layers(clips, [0, 2, 3]):
        with torch.inference_mode():
            given = features(clips[clip], sampling_rate=16000, return_tensors="pt")
            answer = network(**given, output_hidden_states=True)
        expected = {0: answer.hidden_states[0], 2: answer.hidden_states[2], 3: answer.last_hidden_state}
        for layer, frames in layers.items():
            values = expected[layer][0].numpy()
            np.testing.assert_allclose(frames.values, values, atol=1e-4 * np.abs(values).max())
    assert len(model.extract([sound(16000, 0.83)])[0].values) == 40  # of 81 mel frames the last has no other


def test_mert_with_deepnorm_weighs_its_residuals(tmp_path: Path) -> None:
    torch.manual_seed(3)
    place = tiny_models.mert(tmp_path / "mert")
    said = json.loads((place / "config.json").read_text())
    clip = sound(24000, 0.4)
    plain = open_extractor(f"mert:{place}?device=cpu").extract([clip])[0].values
    (place / "config.json").write_text(json.dumps({**said, "deepnorm": True, "attention_relax": 32.0}))
    deep: Any = open_extractor(f"mert:{place}?device=cpu")
    layers = next(iter(deep.extract_layers([clip], [0, 1, 2, 3])))[1]
    network = transformers.HubertModel.from_pretrained(place).eval()
    values = torch.from_numpy(layers[0].values)[None]
    weight = (2.0 * 3) ** 0.25
    with torch.inference_mode():
        for layer, block in enumerate(network.encoder.layers, start=1):
            values = block.layer_norm(weight * values + block.attention(values)[0])
            values = block.final_layer_norm(weight * values + block.feed_forward(values))
            np.testing.assert_allclose(layers[layer].values, values[0].numpy(), atol=1e-4 * float(values.abs().max()))
    assert np.abs(layers[3].values - plain).max() > 1e-2
