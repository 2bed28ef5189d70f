"""Tiny models of every family with random weights, saved as real checkpoints are: config, preprocessor, safetensors.

They have the layers of the real ones, few and narrow, and lie in a folder that an extractor opens by its path.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

# A test module that imports this one is skipped where the models' packages are missing.
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
audio_utils = pytest.importorskip("transformers.audio_utils")
safetensors = pytest.importorskip("safetensors.torch")
load_file, save_file = safetensors.load_file, safetensors.save_file

SECONDS = 2  # context of the tiny Whisper

SPEECH = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "conv_dim": [16] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
LARGE = {"feat_extract_norm": "layer", "do_stable_layer_norm": True, "conv_bias": True}
TRANSFORMER = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}


def sound(rate: int, seconds: float, seed: int = 0) -> NDArray[np.float32]:
    """A glide in noise, peak 1."""
    count = max(1, round(rate * seconds))
    random = np.random.default_rng(seed)
    time = np.arange(count) / rate
    samples = np.sin(2 * np.pi * (300 + 90 * seed + 400 * time) * time) + 0.2 * random.standard_normal(count)
    return (samples / np.abs(samples).max()).astype(np.float32)


def _save(model: Any, folder: Path, preprocessor: dict[str, Any]) -> Path:
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    return folder


def whisper(folder: Path, seconds: int = SECONDS) -> Path:
    config = transformers.WhisperConfig(
        d_model=32,
        encoder_layers=3,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=80,
        max_source_positions=50 * seconds,
        vocab_size=20,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    said = {"feature_size": 80, "sampling_rate": 16000, "hop_length": 160, "chunk_length": seconds, "n_fft": 400}
    return _save(transformers.WhisperForConditionalGeneration(config), folder, said)


def speech(kind: str, folder: Path, **changes: Any) -> Path:
    config = getattr(transformers, f"{kind}Config")(**{**SPEECH, **changes})
    said = {"sampling_rate": 16000, "do_normalize": changes.get("feat_extract_norm") == "layer"}
    model = getattr(transformers, f"{kind}Model")(config)
    for module in model.modules():  # a norm that starts as the identity would hide a mistake
        if isinstance(module, torch.nn.GroupNorm | torch.nn.LayerNorm):
            torch.nn.init.normal_(module.weight, 1.0, 0.2)
            torch.nn.init.normal_(module.bias, 0.0, 0.2)
    return _save(model, folder, said)


def clap(folder: Path, fusion: bool = False) -> Path:
    audio = {
        "patch_embeds_hidden_size": 8,
        "hidden_size": 64,
        "depths": [1, 2, 1, 1],
        "num_attention_heads": [1, 2, 2, 4],
        "projection_dim": 12,
        "enable_fusion": fusion,
        "patch_embed_input_channels": 1,
    }
    text = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    text |= {"vocab_size": 10, "projection_dim": 12}
    config = transformers.ClapConfig(audio_config=audio, text_config=text, projection_dim=12)
    said = {"sampling_rate": 48000, "fft_window_size": 1024, "hop_length": 480, "max_length_s": 10}
    said |= {"frequency_min": 50, "frequency_max": 14000, "padding": "repeatpad", "feature_size": 64}
    said["truncation"] = "fusion" if fusion else "rand_trunc"
    return _save(transformers.ClapModel(config), folder, said)


def ast(folder: Path) -> Path:
    config = transformers.ASTConfig(**TRANSFORMER, max_length=128, num_mel_bins=64, num_labels=5)
    said = {"sampling_rate": 16000, "num_mel_bins": 64, "max_length": 128, "mean": -4.2, "std": 4.5}
    model = transformers.ASTForAudioClassification(config)
    embeddings = model.audio_spectrogram_transformer.embeddings
    for tokens in (embeddings.cls_token, embeddings.distillation_token, embeddings.position_embeddings):
        torch.nn.init.normal_(tokens)  # they start as zeros
    return _save(model, folder, said)


def encodec(folder: Path) -> Path:
    config = transformers.EncodecConfig(num_filters=4, hidden_size=16, codebook_dim=16, num_lstm_layers=1)
    model = transformers.EncodecModel(config)
    for layer in model.quantizer.layers:  # codebooks start as zeros
        layer.codebook.embed.normal_(std=0.01)
    return _save(model, folder, {"sampling_rate": 24000})


def dac(folder: Path) -> Path:
    sizes = {"encoder_hidden_size": 4, "decoder_hidden_size": 64, "hidden_size": 64, "codebook_size": 32}
    config = transformers.DacConfig(**sizes, n_codebooks=3, codebook_dim=4, sampling_rate=16000)
    return _save(transformers.DacModel(config), folder, {"sampling_rate": 16000})


def mimi(folder: Path) -> Path:
    sizes = {"hidden_size": 32, "num_filters": 4, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8}
    sizes |= {"num_key_value_heads": 4, "intermediate_size": 48, "codebook_size": 32, "codebook_dim": 16}
    sizes |= {"vector_quantization_hidden_dimension": 16, "num_quantizers": 12, "upsample_groups": 32}
    model = transformers.MimiModel(transformers.MimiConfig(**sizes))
    for name, buffer in model.named_buffers():
        if name.endswith("embed_sum"):
            buffer.normal_()
    return _save(model, folder, {"sampling_rate": 24000})


def _initialised(network: Any, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator)
    return network


def audiomae(folder: Path) -> Path:
    """The authors' names: positions with a row for [CLS], a decoder that is left out."""
    from earmark.networks.vision_transformer import SpectrogramTransformer, TransformerShape

    shape = TransformerShape(width=24, depth=3, heads=4, hidden=96, frames=128, bands=128)
    state = _initialised(SpectrogramTransformer(shape)).state_dict()
    names = {"patch_embed.weight": "patch_embed.proj.weight", "patch_embed.bias": "patch_embed.proj.bias"}
    tensors = {names.get(name, name).replace("positions", "pos_embed"): value for name, value in state.items()}
    folder.mkdir(parents=True)
    save_file({**tensors, "decoder_embed.weight": torch.zeros(2, 2)}, folder / "model.safetensors")
    said = {"embed_dim": 24, "depth": 3, "num_heads": 4, "img_size": [128, 128]}
    (folder / "config.json").write_text(json.dumps(said))
    return folder


def eat(folder: Path) -> Path:
    """The names of the port on the hub."""
    from earmark.networks.vision_transformer import SpectrogramTransformer, TransformerShape

    shape = TransformerShape(width=24, depth=3, heads=4, hidden=96, frames=128, bands=128, norm_first=False)
    state = dict(_initialised(SpectrogramTransformer(shape)).state_dict())
    positions = state.pop("positions")
    tensors = {
        "model.local_encoder.proj.weight": state.pop("patch_embed.weight"),
        "model.local_encoder.proj.bias": state.pop("patch_embed.bias"),
        "model.extra_tokens": state.pop("cls_token"),
        "model.pre_norm.weight": state.pop("norm.weight"),
        "model.pre_norm.bias": state.pop("norm.bias"),
        "model.fixed_positional_encoder.positions": positions[:, 1:].clone(),
        **{f"model.{name}": value for name, value in state.items()},
        "model.head.weight": torch.zeros(2, 2),
    }
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors")
    said = {"embed_dim": 24, "depth": 3, "num_heads": 4, "img_size": [128, 128], "mlp_ratio": 4.0}
    (folder / "config.json").write_text(json.dumps(said))
    return folder


BEATS = {
    "input_patch_size": 16,
    "embed_dim": 20,
    "encoder_layers": 3,
    "encoder_embed_dim": 32,
    "encoder_ffn_embed_dim": 48,
    "encoder_attention_heads": 4,
    "conv_pos": 16,
    "conv_pos_groups": 4,
    "num_buckets": 32,
    "max_distance": 64,
    "deep_norm": True,
    "gru_rel_pos": True,
    "relative_position_embedding": True,
    "activation_fn": "gelu",
    "finetuned_model": False,
}


def beats_state() -> dict[str, Any]:
    """Tensors as the authors' file has them: the convolution as direction and length, one table under every layer."""
    from earmark.networks.beats import BEATs, BeatsShape

    state = dict(_initialised(BEATs(BeatsShape.of(BEATS))).state_dict())
    weight = state.pop("encoder.pos_conv.weight")
    state["encoder.pos_conv.0.bias"] = state.pop("encoder.pos_conv.bias")
    state["encoder.pos_conv.0.weight_g"] = 2.0 * weight.norm(dim=(0, 1), keepdim=True)
    state["encoder.pos_conv.0.weight_v"] = weight
    table = state.pop("encoder.distances.weight")
    for layer in range(BEATS["encoder_layers"]):
        state[f"encoder.layers.{layer}.self_attn.relative_attention_bias.weight"] = table.clone()
    return state


def beats(folder: Path) -> Path:
    """The authors' layout, in a folder; the file is a pickle."""
    folder.mkdir(parents=True)
    torch.save({"cfg": BEATS, "model": beats_state()}, folder / "BEATs.pt")
    return folder / "BEATs.pt"


def published_htsat(state: dict[str, Any], ours: str, theirs: str) -> dict[str, Any]:
    """Tensors of HTSAT under its authors' names, made back from those of transformers behind a prefix."""
    back = {
        "batch_norm.": "bn0.",
        ".layernorm_before.": ".norm1.",
        ".layernorm_after.": ".norm2.",
        ".attention.output.dense.": ".attn.proj.",
        ".attention.self.relative": ".attn.relative",
        ".intermediate.dense.": ".mlp.fc1.",
        ".output.dense.": ".mlp.fc2.",
    }
    found = {}
    for name, value in state.items():
        if not name.startswith(ours) or ".attention.self.key." in name or ".attention.self.value." in name:
            continue
        if ".attention.self.query." in name:
            parts = [state[name.replace(".query.", f".{part}.")] for part in ("query", "key", "value")]
            name, value = name.replace(".attention.self.query.", ".attn.qkv."), torch.cat(parts)
        short = name.removeprefix(ours)
        for new, old in back.items():
            short = short.replace(new, old)
        found[theirs + short] = value.contiguous()
    return found


def microsoft_clap(folder: Path) -> Path:
    """The published names, made back from those of transformers."""
    from earmark.networks.microsoft_clap import BASE, PROJECTION, MicrosoftClap

    sizes: dict[str, Any] = {"patch_embeds_hidden_size": 8, "hidden_size": 64, "depths": [1, 1, 1, 1]}
    sizes |= {"num_attention_heads": [1, 2, 2, 4], "projection_dim": 12}
    state = dict(MicrosoftClap(transformers.ClapAudioConfig(**sizes)).state_dict())
    found = published_htsat(state, "htsat.", BASE)
    short = "projection."
    found |= {PROJECTION + name.removeprefix(short): value for name, value in state.items() if name.startswith(short)}
    found["caption_encoder.base.wte.weight"] = torch.zeros(2, 2)
    folder.mkdir(parents=True)
    save_file(found, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(sizes))
    return folder


def mert(folder: Path) -> Path:
    """As on the hub: HuBERT's tensors under a config of another name, heard at 24 kHz."""
    speech("Hubert", folder)
    said = json.loads((folder / "config.json").read_text())
    said |= {"model_type": "mert_model", "architectures": ["MERTModel"], "feature_extractor_cqt": False}
    (folder / "config.json").write_text(json.dumps(said))
    (folder / "preprocessor_config.json").write_text(json.dumps({"sampling_rate": 24000, "do_normalize": True}))
    return folder


DASHENG: dict[str, Any] = {"embed_dim": 24, "depth": 3, "num_heads": 4, "target_length": 48, "mlp_ratio": 2.0}


def dasheng_state() -> dict[str, Any]:
    """Tensors as the package `dasheng` names them, those of its front end among them."""
    generator = torch.Generator().manual_seed(0)
    width, hidden, columns = DASHENG["embed_dim"], 48, DASHENG["target_length"] // 4
    shapes: dict[str, tuple[int, ...]] = {
        "time_pos_embed": (1, width, 1, columns),
        "freq_pos_embed": (1, width, 1, 1),
        "patch_embed.proj.weight": (width, 1, 64, 4),
        "patch_embed.proj.bias": (width,),
        "norm.weight": (width,),
        "norm.bias": (width,),
        "front_end.0.mel_scale.fb": (257, 64),
    }
    for block in range(DASHENG["depth"]):
        linear = {"attn.qkv": (3 * width, width), "attn.proj": (width, width), "mlp.fc1": (hidden, width)}
        for name, shape in {**linear, "mlp.fc2": (width, hidden)}.items():
            shapes |= {f"blocks.{block}.{name}.weight": shape, f"blocks.{block}.{name}.bias": shape[:1]}
        for norm in ("norm1", "norm2"):
            shapes |= {f"blocks.{block}.{norm}.{part}": (width,) for part in ("weight", "bias")}
    state = {name: 0.3 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    for part, low, high in (("weight", 0.5, 1.5), ("bias", -1, 1), ("running_mean", -40, 0), ("running_var", 50, 200)):
        state[f"init_bn.1.{part}"] = low + (high - low) * torch.rand(64, generator=generator)
    return {**state, "init_bn.1.num_batches_tracked": torch.tensor(3)}


def dasheng(folder: Path) -> Path:
    """As on the hub: `encoder.` before the names, no front end, a classifier, and the sizes under encoder_kwargs."""
    folder.mkdir(parents=True)
    state = {f"encoder.{name}": value for name, value in dasheng_state().items() if not name.startswith("front_end")}
    save_file({**state, "outputlayer.1.weight": torch.zeros(2, 24)}, folder / "model.safetensors")
    kwargs = {**DASHENG, "patch_size": [64, 4], "patch_stride": [64, 4]}
    said = {"model_type": "dasheng", "name": "dasheng-base", "encoder_kwargs": kwargs}
    (folder / "config.json").write_text(json.dumps(said))
    return folder


def aves(folder: Path, **changes: Any) -> Path:
    """The authors' two files: torchaudio's names, made back from those of transformers, and its config."""
    config = transformers.HubertConfig(**{**SPEECH, **changes})
    tensors = {}
    for name, value in _initialised(transformers.HubertModel(config)).state_dict().items():
        name = name.replace("parametrizations.weight.original0", "weight_g")
        name = name.replace("parametrizations.weight.original1", "weight_v")
        if name.startswith("encoder."):
            name = f"encoder.transformer.{name.removeprefix('encoder.')}"
        name = name.replace("feature_projection.", "encoder.feature_projection.", 1)
        if name != "masked_spec_embed":
            tensors[name] = value
    folder.mkdir(parents=True)
    layers = list(zip(config.conv_dim, config.conv_kernel, config.conv_stride, strict=True))
    said = {
        "extractor_mode": "group_norm" if config.feat_extract_norm == "group" else "layer_norm",
        "extractor_conv_layer_config": layers,
        "extractor_conv_bias": config.conv_bias,
        "encoder_embed_dim": config.hidden_size,
        "encoder_pos_conv_kernel": config.num_conv_pos_embeddings,
        "encoder_pos_conv_groups": config.num_conv_pos_embedding_groups,
        "encoder_num_layers": config.num_hidden_layers,
        "encoder_num_heads": config.num_attention_heads,
        "encoder_ff_interm_features": config.intermediate_size,
        "encoder_layer_norm_first": config.do_stable_layer_norm,
    }
    (folder / "aves-base-bio.torchaudio.model_config.json").write_text(json.dumps(said))
    torch.save(tensors, folder / "aves-base-bio.torchaudio.pt")
    return folder / "aves-base-bio.torchaudio.pt"


def wav2vec2_bert(folder: Path) -> Path:
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.Wav2Vec2BertConfig(**sizes, conv_depthwise_kernel_size=5, vocab_size=None)
    said = {"feature_extractor_type": "SeamlessM4TFeatureExtractor", "feature_size": 80, "num_mel_bins": 80}
    said |= {"sampling_rate": 16000, "stride": 2, "padding_value": 0.0}
    return _save(transformers.Wav2Vec2BertModel(config), folder, said)


VGGISH: dict[str, Any] = {"widths": [3, 4, 5, 5, 6, 7], "hidden": 20, "dimension": 12}
CNN14: dict[str, Any] = {"widths": [2, 3, 4, 5, 6, 7], "dimension": 11}


def vggish(folder: Path) -> Path:
    """The port's names, as a pickle; a config beside it, for it is small."""
    from earmark.networks.vggish import VGGish, VGGishShape

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(VGGISH))
    shape = VGGishShape(**{**VGGISH, "widths": tuple(VGGISH["widths"])})
    torch.save(_initialised(VGGish(shape)).state_dict(), folder / "vggish.pth")
    return folder / "vggish.pth"


def panns(folder: Path) -> Path:
    """The authors' names, with the classifier and the filter bank that their files hold."""
    from earmark.networks.panns import BANK, Cnn14, Cnn14Shape

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CNN14))
    network = _initialised(Cnn14(Cnn14Shape(widths=tuple(CNN14["widths"]), dimension=CNN14["dimension"], bins=257)))
    for name, value in network.state_dict().items():
        if name.endswith(("running_mean", "running_var")):  # a norm that does nothing would hide a mistake
            value.uniform_(0.5, 1.5)
        elif value.is_floating_point() and ("bn" in name or name == "fc1.bias"):  # all 0 would tell nothing apart
            value.abs_().add_(0.5)
    state = dict(network.state_dict())
    bank = audio_utils.mel_filter_bank(257, 64, 50, 8000, 16000, norm="slaney", mel_scale="slaney")
    state[BANK] = torch.from_numpy(bank).float()
    del state["bank"]
    state["fc_audioset.weight"] = torch.zeros(2, 11)
    torch.save({"model": state}, folder / "Cnn14.pth")
    return folder / "Cnn14.pth"


FAMILIES: dict[str, Callable[[Path], Path]] = {
    "whisper": whisper,
    "whisperseg": whisper,
    "wav2vec2": lambda folder: speech("Wav2Vec2", folder),
    "wavlm": lambda folder: speech("WavLM", folder, **LARGE),
    "hubert": lambda folder: speech("Hubert", folder),
    "mert": mert,
    "aves": aves,
    "wav2vec2_bert": wav2vec2_bert,
    "dasheng": dasheng,
    "clap": clap,
    "clap_microsoft": microsoft_clap,
    "vggish": vggish,
    "panns": panns,
    "ast": ast,
    "beats": beats,
    "eat": eat,
    "audiomae": audiomae,
    "encodec": encodec,
    "encodec_codes": encodec,
    "dac": dac,
    "dac_codes": dac,
    "mimi": mimi,
    "mimi_codes": mimi,
}
"""What writes a tiny checkpoint of each family into a folder that does not exist yet, and returns what to open."""

PARAMETERS: dict[str, dict[str, Any]] = {
    "aves": {"allow_pickle": True},
    "beats": {"allow_pickle": True},
    "vggish": {"allow_pickle": True},
    "panns": {"allow_pickle": True},
    "whisperseg": {"columns": 200, "time_step": 0.01},
}
"""What opening the tiny checkpoint needs beside its path."""
