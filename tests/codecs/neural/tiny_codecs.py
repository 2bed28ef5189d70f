"""Tiny neural codecs as published ones lie on a disk: the same files, the same names of tensors, rates and codebooks.

Widths are small. Every value follows from the name of its tensor, so that the authors' own code, given the same files,
must give the same tokens and sounds: `make_golden.py` did that once, and `golden.npz` is what came out.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

# A test module that imports this one is skipped where the models' packages are missing.
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from earmark.codecs.neural import academicodec as academicodec_family  # noqa: E402
from earmark.codecs.neural import audiodec as audiodec_family  # noqa: E402
from earmark.codecs.neural import seanet as seanet_family  # noqa: E402
from earmark.codecs.neural import snac as snac_family  # noqa: E402
from earmark.codecs.neural.cards import CARDS  # noqa: E402
from earmark.codecs.neural.checkpoints import Config  # noqa: E402
from earmark.extractors.pretrained import Checkpoint  # noqa: E402
from earmark.networks.audiodec import AutoEncoder, AutoEncoderShape, Vocoder  # noqa: E402
from earmark.networks.hificodec import HiFiCodec  # noqa: E402
from earmark.networks.snac import SNAC as SNACNetwork  # noqa: E402

PLAIN = ("weight_g", "weight_v")
PARAMETRISED = ("parametrizations.weight.original0", "parametrizations.weight.original1")

SPEECH_TOKENIZER = {
    "sample_rate": 16000,
    "sampling_rate": 16000,
    "n_filters": 4,
    "strides": [8, 5, 4, 2],
    "dimension": 32,
    "semantic_dimension": 24,
    "bidirectional": True,
    "dilation_base": 2,
    "residual_kernel_size": 3,
    "n_residual_layers": 2,
    "lstm_layers": 2,
    "activation": "ELU",
    "codebook_size": 1024,
    "n_q": 8,
    "train_files": "not read",
}
HIFI_CODEC = {
    "resblock": "1",
    "upsample_rates": [8, 5, 4, 2],
    "upsample_kernel_sizes": [16, 11, 8, 4],
    "upsample_initial_channel": 32,
    "resblock_kernel_sizes": [1, 3],
    "resblock_dilation_sizes": [[1, 1, 1], [1, 3, 5]],
    "n_code_groups": 2,
    "n_codes": 1024,
    "sampling_rate": 16000,
    "codebook_loss_lambda": 1.0,
    "commitment_loss_lambda": 0.25,
}
AUTO_ENCODER = {
    "input_channels": 1,
    "output_channels": 1,
    "encode_channels": 2,
    "decode_channels": 2,
    "code_dim": 16,
    "codebook_num": 8,
    "codebook_size": 1024,
    "bias": True,
    "enc_ratios": [2, 4, 8, 16],
    "dec_ratios": [16, 8, 4, 2],
    "enc_strides": [3, 4, 5, 5],
    "dec_strides": [5, 5, 4, 3],
    "mode": "causal",
    "codec": "audiodec",
    "projector": "conv1d",
    "quantier": "residual_vq",
}
VOCODER = {
    "in_channels": 16,
    "out_channels": 1,
    "channels": 32,
    "kernel_size": 7,
    "upsample_scales": [5, 5, 4, 3],
    "upsample_kernel_sizes": [10, 10, 8, 6],
    "resblock_kernel_sizes": [11],
    "resblock_dilations": [[1, 3, 5]],
    "groups": 3,
    "bias": True,
    "use_additional_convs": True,
    "nonlinear_activation": "LeakyReLU",
    "nonlinear_activation_params": {"negative_slope": 0.1},
    "use_weight_norm": True,
    "stats": "stats/some.npy",
}
SNAC = {
    "sampling_rate": 24000,
    "encoder_dim": 4,
    "encoder_rates": [2, 4, 8, 8],
    "decoder_dim": 64,
    "decoder_rates": [8, 8, 4, 2],
    "attn_window_size": None,
    "codebook_size": 4096,
    "codebook_dim": 8,
    "vq_strides": [4, 2, 1],
    "noise": True,
    "depthwise": True,
}
SNAC_ATTENDING = SNAC | {
    "sampling_rate": 32000,
    "encoder_rates": [2, 3, 8, 8],
    "decoder_rates": [8, 8, 3, 2],
    "attn_window_size": 32,
    "vq_strides": [8, 4, 2, 1],
}


def sound(rate: int, seconds: float, seed: int = 0) -> NDArray[np.float32]:
    """A glide in noise."""
    time = np.arange(round(rate * seconds)) / rate
    noise = np.random.default_rng(seed).standard_normal(len(time))
    return (0.3 * np.sin(2 * np.pi * (300 + 400 * time) * time) + 0.05 * noise).astype(np.float32)


# --- values --------------------------------------------------------------------------------------------------


def values(name: str, shape: Iterable[int], gain: float = 1.0) -> Any:
    """What a tensor of this name holds: no more than its name and shape decide."""
    shape = tuple(shape)
    drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32)
    kind = name.rpartition(".")[2]
    if kind == "embed" or "embedding." in name or "codebook.weight" in name:
        return torch.from_numpy(0.4 * drawn)
    if kind in ("alpha", "scale") or (len(shape) == 1 and kind == "weight"):
        return torch.from_numpy(1 + 0.2 * np.abs(drawn))
    if len(shape) == 1:
        return torch.from_numpy(0.1 * drawn)
    return torch.from_numpy(gain * drawn / np.sqrt(np.prod(shape[1:])))


def published(
    network: Any,
    names: tuple[str, str] | None = None,
    *,
    bare: tuple[str, ...] = (),
    prefix: str = "",
    gain: float = 1.0,
) -> dict[str, Any]:
    """A network's tensors as its authors save them: weights of convolutions as length and direction, if `names` say.

    `bare` are the convolutions without weight normalisation; `gain` keeps what comes out away from 0 and from clipping.
    """
    state = {name: values(prefix + name, value.shape, gain) for name, value in network.state_dict().items()}
    kinds = (torch.nn.Conv1d, torch.nn.ConvTranspose1d, torch.nn.Conv2d, torch.nn.ConvTranspose2d)
    for name, module in network.named_modules():
        if names is None or not isinstance(module, kinds) or name in bare:
            continue
        direction = state.pop(f"{name}.weight")
        lengths = direction.flatten(1).norm(dim=1).reshape(-1, *[1] * (direction.dim() - 1))
        state[f"{name}.{names[0]}"], state[f"{name}.{names[1]}"] = lengths, 3.0 * direction
    return state


def with_training(state: dict[str, Any], shape: tuple[int, ...] = (1,)) -> dict[str, Any]:
    """What training left beside the codebooks."""
    more: dict[str, Any] = {}
    for name, value in state.items():
        if name.endswith(".embed"):
            root = name.removesuffix("embed")
            size = value.shape[:-1] if "layers" not in name or "_codebook" in name else value.shape[1:]
            more |= {f"{root}embed_avg": value.clone(), f"{root}cluster_size": torch.ones(size)}
            if "quantizer.codebook" not in name:
                more[f"{root}inited"] = torch.ones(shape)
    return state | more


# --- checkpoints ---------------------------------------------------------------------------------------------


def speechtokenizer(folder: Path) -> Path:
    state = with_training(published(seanet_family.tokenizer_of(_said(SPEECH_TOKENIZER)), PLAIN, gain=1.1))
    state |= {"transform.weight": torch.zeros(24, 32), "transform.bias": torch.zeros(24)}
    return _write(folder, "config.json", SPEECH_TOKENIZER, "SpeechTokenizer.pt", state)


def academicodec(folder: Path) -> Path:
    state = published(
        HiFiCodec(academicodec_family.shape_of(_said(HIFI_CODEC))), PLAIN, bare=("encoder.conv_post",), gain=1.2
    )
    parts: dict[str, Any] = {"generator": {}, "quantizer": {}, "encoder": {}}
    for name, value in state.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = value
    return _write(folder, "config_16k_320d.json", HIFI_CODEC, "HiFi-Codec-16k-320d", parts)


def audiodec(folder: Path) -> Path:
    """An autoencoder at two steps of its training and a vocoder, as the authors' archive unpacks."""
    coder = AutoEncoder(_said(AUTO_ENCODER).fill(AutoEncoderShape))
    voice = Vocoder(audiodec_family.vocoder_shape(_said(VOCODER)))
    names = audiodec_family.ARCHIVE["audiodec_24k"]
    place = folder / "autoencoder" / names.auto_encoder
    said = {"sampling_rate": 24000, "model_type": "symAudioDec", "generator_params": AUTO_ENCODER}
    state = with_training(published(coder))
    for step, scale in ((500000, 1.0), (1000000, 0.5)):
        decoder = {name: value * (scale if "decoder" in name else 1.0) for name, value in state.items()}
        _write(
            place, "config.yml", said, f"checkpoint-{step}steps.pkl", {"model": {"generator": decoder}, "steps": step}
        )
    said = {"sampling_rate": 24000, "model_type": "HiFiGAN", "generator_params": VOCODER}
    said["analyzer"] = f"exp/autoencoder/{names.auto_encoder}/checkpoint-500000steps.pkl"
    state = published(voice, PLAIN, prefix="vocoder.")
    kept = {"model": {"generator": state, "discriminator": {"msd.weight": torch.zeros(2)}}, "steps": 500000}
    _write(folder / "vocoder" / names.vocoder, "config.yml", said, "checkpoint-500000steps.pkl", kept)
    return folder


def snac(folder: Path) -> Path:
    state = published(SNACNetwork(snac_family.shape_of(_said(SNAC))), PARAMETRISED, gain=0.7)
    return _write(folder, "config.json", SNAC, "pytorch_model.bin", state)


def snac_attending(folder: Path) -> Path:
    state = published(SNACNetwork(snac_family.shape_of(_said(SNAC_ATTENDING))), PARAMETRISED, gain=0.65)
    for half in ("encoder.block.5.", "decoder.model.2."):
        state[f"{half}rel_pos.inv_freq"] = 10000.0 ** -(torch.arange(0, 64, 2) / 64)
    return _write(folder, "config.json", SNAC_ATTENDING, "pytorch_model.bin", state)


def funcodec_config(domain: str = "", ratios: Any = None, **more: Any) -> dict[str, Any]:
    """A config.yaml as the recipes of the toolkit have it."""
    ending = "_2d" if domain else ""
    half = {"norm": "time_group_norm", "causal": False, "n_filters": 4} | more
    half |= {"ratios": ratios} if ratios else {}
    hop = 640 if ratios and len(ratios) == 5 else 320
    channels = 3 if domain else 1
    decoder = half | {"channels": channels}
    if "conv_group_ratio" in more:
        decoder["tr_conv_group_ratio"] = more["conv_group_ratio"]
    return {
        "input_size": channels,
        "sampling_rate": 16000,
        "encoder": f"encodec_seanet_encoder{ending}",
        "encoder_conf": half | {"dimension": 16},
        "quantizer": "costume_quantizer",
        "quantizer_conf": {
            "codebook_size": 1024,
            "num_quantizers": 32,
            "ema_decay": 0.99,
            "kmeans_init": True,
            "sampling_rate": 16000,
            "quantize_dropout": True,
            "rand_num_quant": [1, 2, 4, 8, 16, 32],
            "use_ddp": True,
            "encoder_hop_length": hop,
        },
        "decoder": f"encodec_seanet_decoder{ending}",
        "decoder_conf": decoder,
        "model": "freq_codec" if domain else "encodec",
        "model_conf": {
            "odim": 128,
            "target_sample_hz": 16000,
            "audio_normalize": True,
            "segment_dur": None,
            "overlap_ratio": None,
        }
        | ({"codec_domain": [domain, domain]} if domain else {}),
        "discriminator": "multiple_disc",
    }


RATIOS_2D = [[4, 1], [4, 1], [4, 2], [4, 1]]
FUNCODEC = {
    "en_libritts_16k_gr1nq32ds320": funcodec_config("mag_phase", RATIOS_2D, dilation_base=1, conv_group_ratio=1),
    "en_libritts_16k_nq32ds320": funcodec_config(),
    "zh_en_16k_nq32ds640": funcodec_config(ratios=[8, 5, 4, 2, 2], n_filters=2),
}


def funcodec(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        state = published(seanet_family.network_of(_said(FUNCODEC[name])))
        root = "quantizer.rq.model."
        entries = [state.pop(f"{root}layers.{number}._codebook.embed") for number in range(32)]
        state = with_training(state | {f"{root}embed": torch.stack(entries)}, (32, 1))
        state[f"{root}cluster_size"] = torch.ones(32, 1024)
        state["discriminator.weight"] = torch.zeros(2)
        return _write(folder, "config.yaml", FUNCODEC[name], "model.pth", state)

    return write


# --- the families that the library has -------------------------------------------------------------------------


def encodec(folder: Path) -> Path:
    torch.manual_seed(0)
    model = transformers.EncodecModel(
        transformers.EncodecConfig(num_filters=4, hidden_size=16, codebook_dim=16, num_lstm_layers=1)
    )
    return _filled(model, folder, gain=1.2)


def dac(folder: Path) -> Path:
    """The rates and codebooks of the checkpoint of 16 kHz."""
    torch.manual_seed(0)
    model = transformers.DacModel(
        transformers.DacConfig(
            encoder_hidden_size=4,
            downsampling_ratios=[2, 4, 5, 8],
            decoder_hidden_size=64,
            upsampling_ratios=[8, 5, 4, 2],
            hidden_size=64,
            n_codebooks=12,
            codebook_dim=4,
            sampling_rate=16000,
        )
    )
    return _filled(model, folder)


def mimi(folder: Path) -> Path:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_filters": 4, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8}
    sizes |= {"num_key_value_heads": 4, "intermediate_size": 48, "codebook_dim": 16, "upsample_groups": 32}
    sizes |= {"vector_quantization_hidden_dimension": 16}
    return _filled(transformers.MimiModel(transformers.MimiConfig(**sizes)), folder)


def xcodec(folder: Path) -> Path:
    torch.manual_seed(0)
    acoustic = transformers.DacConfig(
        encoder_hidden_size=4,
        downsampling_ratios=[8, 5, 4, 2],
        decoder_hidden_size=64,
        upsampling_ratios=[8, 5, 4, 2],
        hidden_size=16,
    )
    semantic = transformers.HubertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        conv_dim=[16] * 7,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )
    config = transformers.XcodecConfig(acoustic_model_config=acoustic, semantic_model_config=semantic)
    return _filled(transformers.XcodecModel(config), folder)


def _filled(model: Any, folder: Path, gain: float | None = None) -> Path:
    """Codebooks of the library start as zeros, and get the values of their names; so do all weights, given a gain."""
    for name, tensor in model.named_buffers():
        if "codebook" in name:
            tensor.data.copy_(values(name, tensor.shape))
    for name, tensor in model.named_parameters():
        if gain is not None or "codebook" in name:
            tensor.data.copy_(values(name, tensor.shape, gain or 1.0))
    model.save_pretrained(folder)
    return folder


def _said(config: dict[str, Any]) -> Config:
    return Config(config, Checkpoint("tiny", "tiny", Path("tiny")))


def _write(folder: Path, config_name: str, config: dict[str, Any], name: str, state: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(config) if config_name.endswith(".json") else yaml.safe_dump(config)
    (folder / config_name).write_text(text)
    torch.save(state, folder / name)
    return folder


WRITERS: dict[str, Callable[[Path], Path]] = {
    "speechtokenizer@4": speechtokenizer,
    "academicodec_16k_320d@2": academicodec,
    "audiodec_24k@6.4": audiodec,
    "snac_24khz@0.98": snac,
    "snac_32khz@1.9": snac_attending,
    **{f"funcodec_{name}@{8 if name.endswith('640') else 16}": funcodec(name) for name in FUNCODEC},
}
"""Settings whose networks are written here, by the functions that write a tiny checkpoint of each."""
LIBRARY: dict[str, Callable[[Path], Path]] = {
    "encodec@6": encodec,
    "dac_16khz@6": dac,
    "mimi@1.1": mimi,
    "xcodec@2": xcodec,
}
"""Settings that `transformers` runs."""
RATES = {name: next(card.rate for card in CARDS if card.name == name) for name in (*WRITERS, *LIBRARY)}
