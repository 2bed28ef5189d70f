"""Architectures of our own: each piece against an independent one with the same weights, sizes against the papers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from tests.extractors.tiny_models import audio_utils, sound, torch, transformers

from earmark.extractors.model_cards import PRETRAINED
from earmark.networks import beats, masked_norm, spectrograms, vision_transformer

nn = torch.nn
CARDS = {card.name: card for card in PRETRAINED}


# --- front ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", ["hanning", "povey"])
@pytest.mark.filterwarnings("ignore:At least one mel filter")
def test_the_filter_bank_is_kaldis_as_transformers_writes_it(window: str) -> None:
    clips = np.stack([sound(16000, 0.6), 0.01 * sound(16000, 0.6, 1), np.zeros(9600, np.float32)])
    bank = audio_utils.mel_filter_bank(
        257, 128, 20, 8000, 16000, norm=None, mel_scale="kaldi", triangularize_in_mel_space=True
    )
    shape = audio_utils.window_function(400, {"hanning": "hann"}.get(window, window), periodic=False)
    expected = [
        audio_utils.spectrogram(
            clip, shape, 400, 160, 512, power=2.0, center=False, preemphasis=0.97, mel_filters=bank, log_mel="log",
            mel_floor=1.192092955078125e-07, remove_dc_offset=True,
        ).T
        for clip in clips
    ]  # fmt: skip
    found = spectrograms.kaldi_fbank(torch.from_numpy(clips), 128, window)
    np.testing.assert_allclose(found, np.stack(expected), atol=2e-3)


# --- the vision transformer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_block_is_torchs_own_encoder_layer(norm_first: bool) -> None:
    torch.manual_seed(0)
    shape = vision_transformer.TransformerShape(width=24, heads=4, hidden=40, norm_first=norm_first, eps=1e-6)
    block = vision_transformer.Block(shape).eval()
    layer = nn.TransformerEncoderLayer(24, 4, 40, 0.0, "gelu", 1e-6, batch_first=True, norm_first=norm_first).eval()
    state = block.state_dict()
    names = {"attn.qkv": "self_attn.in_proj_", "attn.proj": "self_attn.out_proj."}
    names |= {"mlp.fc1": "linear1.", "mlp.fc2": "linear2.", "norm1": "norm1.", "norm2": "norm2."}
    layer.load_state_dict(
        {f"{new}{kind}": state[f"{old}.{kind}"] for old, new in names.items() for kind in ("weight", "bias")}
    )
    values = torch.randn(2, 7, 24)
    with torch.inference_mode():
        torch.testing.assert_close(block(values), layer(values), atol=1e-5, rtol=1e-5)


def test_audiomae_is_the_librarys_vit_with_one_channel() -> None:
    torch.manual_seed(1)
    config = transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=(64, 32),
        patch_size=16, num_channels=1, layer_norm_eps=1e-6,
    )  # fmt: skip
    reference = transformers.ViTModel(config, add_pooling_layer=False).eval()
    for parameter in reference.parameters():
        nn.init.normal_(parameter, std=0.3)
    shape = vision_transformer.TransformerShape(width=24, depth=2, heads=4, hidden=96, frames=64, bands=32)
    network = vision_transformer.SpectrogramTransformer(shape).eval()
    given = dict(reference.named_parameters())
    where = {
        "patch_embed": "embeddings.patch_embeddings.projection",
        "norm": "layernorm",
    }
    state = {"cls_token": given["embeddings.cls_token"], "positions": given["embeddings.position_embeddings"]}
    for ours, theirs in where.items():
        state |= {f"{ours}.{kind}": given[f"{theirs}.{kind}"] for kind in ("weight", "bias")}
    for number in range(2):
        for ours, theirs in _vit_names(given, number).items():
            state[f"blocks.{number}.{ours}"] = theirs
    network.load_state_dict(state)
    picture = torch.randn(3, 1, 64, 32)
    with torch.inference_mode():
        expected = reference(picture, interpolate_pos_encoding=False, output_hidden_states=True)
        found = network(picture)
    torch.testing.assert_close(found[-1], expected.last_hidden_state, atol=2e-4, rtol=1e-4)
    torch.testing.assert_close(found[1], expected.hidden_states[1], atol=2e-4, rtol=1e-4)


def _vit_names(given: dict[str, Any], number: int) -> dict[str, Any]:
    """Tensors of one of the library's layers under our names, whatever prefix this version gives its layers."""
    suffixes = {name.partition(f".{number}.")[2]: value for name, value in given.items() if f".{number}." in name}

    def pick(*ends: str) -> Any:
        (found,) = [value for name, value in suffixes.items() if name.endswith(ends)]
        return found

    tensors = {}
    for kind in ("weight", "bias"):
        parts = [pick(f"query.{kind}", f"q_proj.{kind}"), pick(f"key.{kind}", f"k_proj.{kind}")]
        tensors[f"attn.qkv.{kind}"] = torch.cat([*parts, pick(f"value.{kind}", f"v_proj.{kind}")])
        tensors[f"attn.proj.{kind}"] = pick(f"attention.output.dense.{kind}", f"o_proj.{kind}", f"out_proj.{kind}")
        tensors[f"mlp.fc1.{kind}"] = pick(f"intermediate.dense.{kind}", f"fc1.{kind}")
        tensors[f"mlp.fc2.{kind}"] = next(
            value
            for name, value in suffixes.items()
            if name.endswith((f"output.dense.{kind}", f"fc2.{kind}")) and "attention" not in name
        )
        tensors[f"norm1.{kind}"] = pick(f"layernorm_before.{kind}")
        tensors[f"norm2.{kind}"] = pick(f"layernorm_after.{kind}")
    return tensors


def test_positions_are_sines_of_frequency_then_of_time() -> None:
    width, columns, rows = 16, 5, 3
    found = vision_transformer.sine_positions(width, columns, rows)[0].numpy()
    for column in range(columns):
        for row in range(rows):
            expected = []
            for place in (row, column):
                angles = [place / 10000 ** (i / (width / 4)) for i in range(width // 4)]
                expected += [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
            np.testing.assert_allclose(found[column * rows + row], expected, atol=1e-6)


# --- BEATs -----------------------------------------------------------------------------------------------------


def test_buckets_of_distances_are_wavlms() -> None:
    attention = transformers.models.wavlm.modeling_wavlm.WavLMAttention(8, 2, num_buckets=32, max_distance=64)
    places = torch.arange(150)
    expected = attention._relative_positions_bucket(places[None, :] - places[:, None])
    torch.testing.assert_close(beats.distance_buckets(150, 32, 64), expected)


def test_the_encoder_is_wavlms_where_the_two_agree() -> None:
    """WavLM gates by the input, BEATs by the query: with queries equal to the input they are one network."""
    torch.manual_seed(2)
    config = transformers.WavLMConfig(
        hidden_size=24, num_hidden_layers=3, num_attention_heads=4, intermediate_size=40, num_conv_pos_embeddings=6,
        num_conv_pos_embedding_groups=3, num_buckets=16, max_bucket_distance=20,
    )  # fmt: skip
    reference = transformers.models.wavlm.modeling_wavlm.WavLMEncoder(config).eval()
    shape = beats.BeatsShape(
        encoder_layers=3, encoder_embed_dim=24, encoder_ffn_embed_dim=40, encoder_attention_heads=4, deep_norm=False,
        conv_pos=6, conv_pos_groups=3, num_buckets=16, max_distance=20,
    )  # fmt: skip
    network = beats.Encoder(shape).eval()
    for layer in reference.layers:
        nn.init.eye_(layer.attention.q_proj.weight)
        nn.init.zeros_(layer.attention.q_proj.bias)
        nn.init.normal_(layer.attention.gru_rel_pos_linear.weight, std=0.5)
        nn.init.normal_(layer.attention.gru_rel_pos_const, mean=1.0, std=0.3)
    nn.init.normal_(reference.layers[0].attention.rel_attn_embed.weight)
    conv = reference.pos_conv_embed.conv
    state = {"pos_conv.weight": conv.weight, "pos_conv.bias": conv.bias}
    state |= {f"layer_norm.{kind}": getattr(reference.layer_norm, kind) for kind in ("weight", "bias")}
    state["distances.weight"] = reference.layers[0].attention.rel_attn_embed.weight
    names = {
        "self_attn.q_proj": "attention.q_proj", "self_attn.k_proj": "attention.k_proj",
        "self_attn.v_proj": "attention.v_proj", "self_attn.out_proj": "attention.out_proj",
        "self_attn.grep_linear": "attention.gru_rel_pos_linear", "self_attn_layer_norm": "layer_norm",
        "fc1": "feed_forward.intermediate_dense", "fc2": "feed_forward.output_dense",
        "final_layer_norm": "final_layer_norm",
    }  # fmt: skip
    for number, layer in enumerate(reference.layers):
        known = layer.state_dict()
        state[f"layers.{number}.self_attn.grep_a"] = known["attention.gru_rel_pos_const"]
        for ours, theirs in names.items():
            for kind in ("weight", "bias"):
                state[f"layers.{number}.{ours}.{kind}"] = known[f"{theirs}.{kind}"]
    network.load_state_dict(state)
    values = torch.randn(2, 31, 24)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = reference(values.clone()).last_hidden_state
        torch.testing.assert_close(network(values)[-1], expected, atol=1e-4, rtol=1e-4)


def test_deep_norm_scales_residuals() -> None:
    block = beats.Block(beats.BeatsShape(encoder_layers=12, encoder_embed_dim=8, encoder_attention_heads=2))
    assert block.scale == pytest.approx(24**0.25)


def test_a_weight_of_direction_and_length_becomes_plain() -> None:
    torch.manual_seed(3)
    conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(6, 6, 4, groups=3), dim=2)
    length, direction = conv.parametrizations.weight.original0, conv.parametrizations.weight.original1
    nn.init.normal_(length)
    found = beats.rename_tensors({"encoder.pos_conv.0.weight_g": length, "encoder.pos_conv.0.weight_v": direction})
    torch.testing.assert_close(found["encoder.pos_conv.weight"], conv.weight)


# --- the group norm --------------------------------------------------------------------------------------------


def test_the_masked_norm_is_torchs_over_each_clips_own_frames() -> None:
    torch.manual_seed(4)
    norm = nn.GroupNorm(5, 5)
    nn.init.normal_(norm.weight)
    masked = masked_norm.MaskedGroupNorm(norm)
    values = torch.randn(3, 5, 20) * 3 + 1
    masked.lengths = torch.tensor([20, 11, 1])
    found = masked(values)
    for row, length in enumerate([20, 11]):
        expected = norm(values[row : row + 1, :, :length])
        torch.testing.assert_close(found[row : row + 1, :, :length], expected, atol=1e-5, rtol=1e-5)
    assert torch.isfinite(found).all()


# --- parameters ------------------------------------------------------------------------------------------------


def count(network: Any, *without: str) -> float:
    """Millions of parameters whose names hold none of the words."""
    return sum(p.numel() for name, p in network.named_parameters() if not any(word in name for word in without)) / 1e6


def test_parameters_are_those_of_the_papers_and_what_they_left_out_is_known() -> None:
    """VocSim's Table 17 (in millions) was counted by a tool that passes over some tensors; this says which."""
    whisper = transformers.WhisperConfig(
        d_model=1280, encoder_layers=32, encoder_attention_heads=20, encoder_ffn_dim=5120, num_mel_bins=128
    )
    large = transformers.WavLMConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
        feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=False,
    )  # fmt: skip
    htsat = transformers.ClapAudioConfig(patch_embeds_hidden_size=128, hidden_size=1024, depths=[2, 2, 12, 2])
    with torch.device("meta"):
        encoder = transformers.models.whisper.modeling_whisper.WhisperEncoder(whisper)
        wav2vec2 = transformers.Wav2Vec2Model(transformers.Wav2Vec2Config())
        wavlm = transformers.WavLMModel(large)
        clap = transformers.ClapAudioModelWithProjection(htsat)
        encodec = transformers.EncodecModel(transformers.EncodecConfig()).encoder
        mae = vision_transformer.SpectrogramTransformer(vision_transformer.TransformerShape())
        eat = vision_transformer.SpectrogramTransformer(
            vision_transformer.TransformerShape(width=1024, depth=24, heads=16, hidden=4096, norm_first=False)
        )
        own = beats.BEATs(beats.BeatsShape())
    positions = ("pos_conv_embed.conv.parametrizations",)
    projections = ("q_proj", "k_proj", "v_proj", "out_proj")
    printed = {
        "whisper": (635.05, encoder, ("embed_positions",)),
        "wavlm": (206.30, wavlm, positions + projections),
        "wav2vec2": (89.65, wav2vec2, positions),
        "audiomae": (85.25, mae, ("positions",)),
        "clap": (68.55, clap, ("relative_position_bias_table",)),
        "encodec": (7.43, encodec, ()),
    }
    for name, (millions, network, left_out) in printed.items():
        assert count(network, *left_out) == pytest.approx(millions, abs=0.005), name
        assert count(network) * 1e6 == CARDS[name].parameters, name
    assert count(own) == pytest.approx(90, abs=0.5)
    assert count(own) * 1e6 == CARDS["beats"].parameters
    assert count(eat) * 1e6 == CARDS["eat"].parameters
