"""Every family at its published size against the code of its authors: random weights in the published layout.

    make originals                                    installs the authors' packages beside, and runs all of it
    python tests/codecs/neural/full_size.py [NAME …]   settings whose names contain one of the words

For each setting the authors' model is made at full size, gets random weights, and is saved as its authors publish it.
It encodes and decodes a sound; Earmark opens the file and does the same. Tokens must be equal and samples within 1e-5
of the peak. Minutes of work and up to 2 GB of memory, one model after the other: not part of the tests.

Packages: descript-audio-codec 1.0.0, encodec 0.1.1, snac 1.2.1, speechtokenizer 1.0.1, funcodec 0.2.0, moshi 0.2.13,
without their dependencies; what they import for training and for files of sound stands in as empty modules. Where there
is no package (AudioDec, AcademiCodec, and what X-Codec adds to DAC and HuBERT) `reimplemented.py` takes its part.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from tests.codecs.neural import reimplemented
from tests.codecs.neural.make_golden import dac_package, seed_noise, stand_in
from tests.codecs.neural.make_golden import funcodec as funcodec_parts
from tests.codecs.neural.tiny_codecs import funcodec_config, sound, torch, transformers, values

from earmark.codecs.catalogue import open_codec
from earmark.codecs.neural.audiodec import ARCHIVE
from earmark.codecs.neural.author_files import read_dac, read_encodec
from earmark.extractors.pretrained import Checkpoint

SECONDS = 1.03  # no whole number of frames for any of them
CLOSE = 1e-5  # of the peak
_ONES = ("inited", "cluster_size", "cluster_usage", "_initialized")


class Original(NamedTuple):
    """What the authors' code says of a sound."""

    tokens: Any  # [codebooks, frames]
    samples: Any
    parameters: int


Case = Callable[[Path, Any], Original]
"""Writes a published file into the folder and says what the authors' code makes of a sound [1, 1, samples]."""


# --- random weights ------------------------------------------------------------------------------------------


def randomise(model: Any, gain: float = 1.0, decoder_gain: float | None = None) -> Any:
    """Values that follow from the names of the tensors; gains let tokens vary and keep sounds from clipping."""
    for name, tensor in model.state_dict().items():
        kind = name.rpartition(".")[2]
        if kind in _ONES:
            tensor.fill_(1)
        elif kind in ("embed", "embedding_sum"):
            tensor.copy_(0.4 * values(name, tensor.shape) * math.sqrt(tensor.shape[-1] if kind != "embed" else 1))
        elif tensor.is_floating_point() and kind != "inv_freq":
            of_decoder = decoder_gain is not None and name.startswith("decoder")
            tensor.copy_(values(name, tensor.shape, decoder_gain if of_decoder else gain))
    return model.eval()


def count(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def padded(clip: Any, whole: int) -> Any:
    return torch.nn.functional.pad(clip, (0, -clip.shape[-1] % whole))


# --- the families that transformers runs ---------------------------------------------------------------------


_DAC = {
    "16khz": {"sample_rate": 16000, "n_codebooks": 12, "encoder_rates": [2, 4, 5, 8], "decoder_rates": [8, 5, 4, 2]},
    "24khz": {"sample_rate": 24000, "n_codebooks": 32, "encoder_rates": [2, 4, 5, 8], "decoder_rates": [8, 5, 4, 2]},
    "44khz": {"sample_rate": 44100, "n_codebooks": 9, "encoder_rates": [2, 4, 8, 8], "decoder_rates": [8, 8, 4, 2]},
}


def dac(name: str, hub: bool) -> Case:
    """The authors' weights.pth, or what the converter of the hub writes."""

    def run(folder: Path, clip: Any) -> Original:
        made = {"encoder_dim": 64, "decoder_dim": 1536, "codebook_size": 1024, "codebook_dim": 8}
        made |= {"latent_dim": None, "quantizer_dropout": 0.5, **_DAC[name]}
        model = randomise(dac_package().DAC(**made), 0.8, 0.5)
        file = folder / "weights.pth"
        torch.save({"state_dict": model.state_dict(), "metadata": {"kwargs": made | {"latent_dim": 1024}}}, file)
        if hub:
            _write_converted(file, made, folder)
        clip = model.preprocess(clip, made["sample_rate"])
        latent, codes, *_ = model.encode(clip)
        return Original(codes[0], model.decode(latent), count(model))

    return run


def _write_converted(file: Path, made: dict[str, Any], folder: Path) -> None:
    """As the converter does it: a config of 44.1 kHz, of which all is changed but hop_length."""
    from safetensors.torch import save_file

    config = transformers.DacConfig()
    config.downsampling_ratios, config.upsampling_ratios = made["encoder_rates"], made["decoder_rates"]
    config.n_codebooks, config.sampling_rate = made["n_codebooks"], made["sample_rate"]
    config.quantizer_dropout = float(made["quantizer_dropout"])
    (folder / "config.json").write_text(config.to_json_string())
    tensors = read_dac(Checkpoint("file", "dac", file, allow_pickle=True)).tensors
    save_file({title: tensor.contiguous() for title, tensor in tensors.items()}, folder / "model.safetensors")
    file.unlink()


def encodec(hub: bool) -> Case:
    """The authors' .th, or the hub's file, in which lengths and directions of weights bear their older names."""

    def run(folder: Path, clip: Any) -> Original:
        stand_in("torchaudio")
        from encodec.model import EncodecModel
        from safetensors.torch import save_file

        model = randomise(EncodecModel._get_model([1.5, 3.0, 6.0, 12.0, 24.0], 24000, 1, causal=True), 1.2)
        model.set_target_bandwidth(24.0)
        file = folder / "encodec_24khz-d7cc33bc.th"
        torch.save(model.state_dict(), file)
        if hub:
            names = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
            tensors = {}
            for title, tensor in read_encodec(Checkpoint("file", "encodec", file, allow_pickle=True)).tensors.items():
                for newer, older in names.items():
                    title = title.replace(newer, older)
                tensors[title] = tensor.contiguous().clone()
            save_file(tensors, folder / "model.safetensors", {"format": "pt"})
            (folder / "config.json").write_text(transformers.EncodecConfig().to_json_string())
            file.unlink()
        frames = model.encode(padded(clip, 320))
        return Original(frames[0][0][0], model.decode(frames), count(model))

    return run


_MIMI = (
    ("conv.conv.conv", "conv"), ("convtr.convtr.convtr", "conv"), ("conv.conv", "conv"), ("convtr.convtr", "conv"),
    ("rvq_first.vq", "semantic_residual_vector_quantizer"), ("rvq_first", "semantic_residual_vector_quantizer"),
    ("rvq_rest.vq", "acoustic_residual_vector_quantizer"), ("rvq_rest", "acoustic_residual_vector_quantizer"),
    ("_codebook", "codebook"), ("_initialized", "initialized"), ("embedding_sum", "embed_sum"),
    ("coder.model", "coder.layers"), ("_transformer.transformer", "_transformer"), ("linear1", "mlp.fc1"),
    ("linear2", "mlp.fc2"), ("out_projs.0", "o_proj"), ("norm1", "input_layernorm"),
    ("norm2", "post_attention_layernorm"), ("layer_scale_1", "self_attn_layer_scale"),
    ("layer_scale_2", "mlp_layer_scale"),
)  # fmt: skip
"""Names of the package moshi, and what they are on the hub."""


def mimi(folder: Path, clip: Any) -> Original:
    from moshi.models.loaders import get_mimi
    from safetensors.torch import save_file

    model = randomise(get_mimi(None, num_codebooks=32))
    tensors: dict[str, Any] = {}
    for title, tensor in model.state_dict().items():
        for theirs, name in _MIMI:
            title = title.replace(theirs, name)
        if title.endswith("in_projs.0.weight"):
            root = title.partition(".in_proj")[0]
            query, key, value = tensor.chunk(3)
            pairs = [part.reshape(8, 32, 2, -1).transpose(1, 2).reshape(part.shape) for part in (query, key)]
            tensors |= {f"{root}.{which}_proj.weight": part for which, part in zip("qkv", [*pairs, value], strict=True)}
        else:
            tensors[title] = tensor
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(transformers.MimiConfig().to_json_string())
    codes = model.encode(padded(clip, 1920))
    return Original(codes[0], model.decode(codes), count(model))


def xcodec(folder: Path, clip: Any) -> Original:
    """HuBERT base and DAC's halves as its authors changed them: longer where a stride is odd, and no tanh."""
    package = dac_package()
    model = torch.nn.Module()
    model.encoder = package.Encoder(64, [8, 5, 4, 2], 256)
    model.decoder_2 = package.Decoder(256, 1024, [8, 5, 4, 2])
    model.decoder_2.model[-1] = torch.nn.Identity()
    for layer in model.modules():
        if isinstance(layer, torch.nn.ConvTranspose1d):
            layer.output_padding = (layer.stride[0] % 2,)
    model.semantic_model = transformers.HubertModel(transformers.HubertConfig())
    randomise(model, 0.9, 0.5)
    state = dict(model.state_dict())
    for name in ("encoder_semantic", "decoder_semantic"):
        outer = ("conv",) if name.startswith("encoder") else ("conv1", "conv2")
        state |= {f"{name}.{layer}.conv.weight": (768, 768, 3) for layer in outer}
        for block in range(2):
            root = f"{name}.conv_blocks.{block}"
            state |= {f"{root}.conv.conv.weight": (768, 768, 3), f"{root}.conv.conv.bias": (768,)}
            for unit in range(2):
                state[f"{root}.res_units.{unit}.conv1.conv.weight"] = (768, 768, 3)
                state[f"{root}.res_units.{unit}.conv2.weight"] = (768, 768, 1)
    for name, width in (("fc_prior", 1024), ("fc_post1", 768), ("fc_post2", 256)):
        state |= {f"{name}.weight": (width, 1024), f"{name}.bias": (width,)}
    state |= {f"quantizer.vq.layers.{number}._codebook.embed": (1024, 1024) for number in range(8)}
    state = {name: values(name, shape).float() if isinstance(shape, tuple) else shape for name, shape in state.items()}
    _write_xcodec(state, folder)
    codes, samples = reimplemented.xcodec(
        state, model.encoder, model.decoder_2, model.semantic_model, padded(clip, 320)
    )
    return Original(codes, samples, sum(tensor.numel() for tensor in state.values()))


def _write_xcodec(state: dict[str, Any], folder: Path) -> None:
    """Under the names of the hub: DAC's as in `author_files`, with weight normalisation multiplied out."""
    from safetensors.torch import save_file

    halves = {name: tensor for name, tensor in state.items() if name.startswith(("encoder.", "decoder_2."))}
    made = {"encoder_dim": 64, "decoder_dim": 1024, "codebook_size": 1024, "codebook_dim": 8, "n_codebooks": 9}
    made |= {"encoder_rates": [8, 5, 4, 2], "decoder_rates": [8, 5, 4, 2], "sample_rate": 16000}
    file = folder / "halves.pth"
    renamed = {name.replace("decoder_2.", "decoder."): tensor for name, tensor in halves.items()}
    torch.save({"state_dict": renamed, "metadata": {"kwargs": made}}, file)
    tensors = {
        f"acoustic_{name}": tensor
        for name, tensor in read_dac(Checkpoint("file", "dac", file, allow_pickle=True)).tensors.items()
    }
    file.unlink()
    for name, tensor in state.items():
        if name not in halves:
            title = (
                name.replace("conv.conv.", "conv.").replace("conv1.conv.", "conv1.").replace("conv2.conv.", "conv2.")
            )
            title = title.replace("fc_prior", "fc").replace("fc_post", "fc")
            title = title.replace("quantizer.vq.layers", "quantizer.quantizers").replace("._codebook.", ".codebook.")
            tensors[title] = tensor
            if title.endswith(".embed"):
                root = title.removesuffix("embed")
                tensors |= {f"{root}embed_avg": tensor, f"{root}cluster_size": torch.ones(1024)}
                tensors[f"{root}inited"] = torch.ones(1)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(transformers.XcodecConfig().to_json_string())


# --- the families whose networks are written here --------------------------------------------------------------


def speechtokenizer(folder: Path, clip: Any) -> Original:
    stand_in("torchaudio", "beartype", "accelerate", "tensorboard", "speechtokenizer.trainer")
    from speechtokenizer.model import SpeechTokenizer

    config = {
        "sample_rate": 16000, "sampling_rate": 16000, "n_filters": 64, "strides": [8, 5, 4, 2], "dimension": 1024,
        "semantic_dimension": 768, "bidirectional": True, "dilation_base": 2, "residual_kernel_size": 3,
        "n_residual_layers": 1, "lstm_layers": 2, "activation": "ELU", "codebook_size": 1024, "n_q": 8,
    }  # fmt: skip
    model = randomise(SpeechTokenizer(config), 1.1)
    (folder / "config.json").write_text(json.dumps(config))
    torch.save(model.state_dict(), folder / "SpeechTokenizer.pt")
    codes = model.encode(clip)
    return Original(codes[:, 0], model.decode(codes), count(model))


_SNAC = {
    "24khz": {"sampling_rate": 24000, "encoder_dim": 48, "encoder_rates": [2, 4, 8, 8], "decoder_dim": 1024,
              "decoder_rates": [8, 8, 4, 2], "attn_window_size": None, "vq_strides": [4, 2, 1]},
    "32khz": {"sampling_rate": 32000, "encoder_dim": 64, "encoder_rates": [2, 3, 8, 8], "decoder_dim": 1536,
              "decoder_rates": [8, 8, 3, 2], "attn_window_size": 32, "vq_strides": [8, 4, 2, 1]},
}  # fmt: skip
_SNAC["44khz"] = _SNAC["32khz"] | {"sampling_rate": 44100}


def snac(name: str) -> Case:
    def run(folder: Path, clip: Any) -> Original:
        from snac import SNAC

        config = _SNAC[name] | {"codebook_size": 4096, "codebook_dim": 8, "noise": True, "depthwise": True}
        model = randomise(SNAC(**config), 0.7)
        (folder / "config.json").write_text(json.dumps(config))
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        seed_noise(model)
        codes = model.encode(clip)
        columns = codes[0].shape[1]
        tokens = torch.cat([code[0].reshape(columns, -1).T for code in codes])
        return Original(tokens, model.decode(codes), count(model))

    return run


_RATIOS_2D = [[4, 1], [4, 1], [4, 2], [4, 1]]
_FUNCODEC = {
    "en_libritts_16k_gr1nq32ds320": ("mag_phase", _RATIOS_2D, {"dilation_base": 1, "conv_group_ratio": 1}),
    "en_libritts_16k_gr8nq32ds320": ("mag_phase", _RATIOS_2D, {"dilation_base": 1, "conv_group_ratio": 8}),
    "en_libritts_16k_nq32ds320": ("", None, {}),
    "en_libritts_16k_nq32ds640": ("", [8, 5, 4, 2, 2], {}),
    "zh_en_16k_nq32ds320": ("", None, {}),
    "zh_en_16k_nq32ds640": ("", [8, 5, 4, 2, 2], {}),
}


def funcodec(name: str) -> Case:
    def run(folder: Path, clip: Any) -> Original:
        domain, ratios, more = _FUNCODEC[name]
        config = funcodec_config(domain, ratios, n_filters=32, **more)
        config["encoder_conf"]["dimension"] = 128
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        return Original(*funcodec_parts(folder, clip, randomise))

    return run


_HIFI_CODEC = {
    "resblock": "1", "upsample_rates": [8, 5, 4, 2], "upsample_kernel_sizes": [16, 11, 8, 4],
    "upsample_initial_channel": 512, "resblock_kernel_sizes": [3, 7, 11],
    "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]], "n_code_groups": 2, "n_codes": 1024,
    "codebook_loss_lambda": 1.0, "commitment_loss_lambda": 0.25,
}  # fmt: skip


def academicodec(rate: int, weights: str) -> Case:
    def run(folder: Path, clip: Any) -> Original:
        from tests.codecs.neural.tiny_codecs import PLAIN, published

        from earmark.codecs.neural.academicodec import shape_of
        from earmark.codecs.neural.checkpoints import Config
        from earmark.networks.hificodec import HiFiCodec

        config = _HIFI_CODEC | {"sampling_rate": rate}
        (folder / f"config_{rate // 1000}k_320d.json").write_text(json.dumps(config))
        with torch.device(
            "meta"
        ):  # for names and shapes alone, which the tiny checkpoints loaded into the authors' code
            network = HiFiCodec(shape_of(Config(config, Checkpoint("full", "full", folder))))
        parts: dict[str, Any] = {"generator": {}, "quantizer": {}, "encoder": {}}
        for name, tensor in published(network, PLAIN, bare=("encoder.conv_post",), gain=1.2).items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor.float()
        torch.save(parts, folder / weights)
        tokens, samples = reimplemented.hificodec(parts, config, padded(clip, 320))
        return Original(tokens, samples, sum(tensor.numel() for part in parts.values() for tensor in part.values()))

    return run


def audiodec(family: str, rate: int) -> Case:
    """An autoencoder and its vocoder in the folders of the authors' archive."""

    def run(folder: Path, clip: Any) -> Original:
        from tests.codecs.neural.tiny_codecs import AUTO_ENCODER, PLAIN, VOCODER, published, with_training

        from earmark.codecs.neural.audiodec import vocoder_shape
        from earmark.codecs.neural.checkpoints import Config
        from earmark.networks.audiodec import AutoEncoder, AutoEncoderShape, Vocoder

        checkpoint = Checkpoint("full", "full", folder)
        sizes = AUTO_ENCODER | {"encode_channels": 32, "decode_channels": 32, "code_dim": 64}
        voice_sizes = VOCODER | {"in_channels": 64, "channels": 512}
        with torch.device("meta"):
            coder = AutoEncoder(Config(sizes, checkpoint).fill(AutoEncoderShape))
            voice = Vocoder(vocoder_shape(Config(voice_sizes, checkpoint)))
        states = [
            {name: tensor.float() for name, tensor in state.items()}
            for state in (with_training(published(coder)), published(voice, PLAIN, prefix="vocoder."))
        ]
        names, step = ARCHIVE[family], "checkpoint-200000steps.pkl"
        for part, config, state in (
            (f"autoencoder/{names.auto_encoder}", sizes, states[0]),
            (f"vocoder/{names.vocoder}", voice_sizes, states[1]),
        ):
            (folder / part).mkdir(parents=True)
            said = {"sampling_rate": rate, "generator_params": config}
            said["analyzer"] = f"exp/autoencoder/{names.auto_encoder}/{step}"
            (folder / part / "config.yml").write_text(yaml.safe_dump(said))
            torch.save({"model": {"generator": state}}, folder / part / step)
        tokens, samples = reimplemented.audiodec(*states, sizes["enc_strides"], 3, padded(clip, 300))
        return Original(tokens, samples, sum(tensor.numel() for state in states for tensor in state.values()))

    return run


# --- all of them -----------------------------------------------------------------------------------------------

PACKAGES = {
    "dac": "descript-audio-codec", "encodec": "encodec", "mimi": "moshi", "speechtokenizer": "speechtokenizer",
    "snac": "snac", "funcodec": "funcodec", "xcodec": "dac, transformers, re-implemented",
    "academicodec": "re-implemented", "audiodec": "re-implemented",
}  # fmt: skip


def cases() -> Iterator[tuple[str, str, Case]]:
    """Setting, layout and what runs it."""
    yield "speechtokenizer@4", "SpeechTokenizer.pt", speechtokenizer
    yield "academicodec_16k_320d@2", "HiFi-Codec-16k-320d", academicodec(16000, "HiFi-Codec-16k-320d")
    large = "HiFi-Codec-16k-320d-large-universal"
    yield "academicodec_16k_320d_large_uni@2", large, academicodec(16000, large)
    yield "academicodec_24k_320d@3", "HiFi-Codec-24k-320d", academicodec(24000, "HiFi-Codec-24k-320d")
    yield "audiodec_24k@6.4", "exp.zip", audiodec("audiodec_24k", 24000)
    yield "audiodec_48k@12.8", "exp.zip", audiodec("audiodec_48k", 48000)
    for name, kbps in (("16khz", "6"), ("24khz", "24"), ("44khz", "8")):
        yield f"dac_{name}@{kbps}", "hub", dac(name, hub=True)
        yield f"dac_{name}@{kbps}", "weights.pth", dac(name, hub=False)
    yield "encodec@24", "hub", encodec(hub=True)
    yield "encodec@24", "encodec_24khz-….th", encodec(hub=False)
    for name in _FUNCODEC:
        yield f"funcodec_{name}@{8 if name.endswith('640') else 16}", "model.pth", funcodec(name)
    yield "mimi@4.4", "hub", mimi
    for name, kbps in (("24khz", "0.98"), ("32khz", "1.9"), ("44khz", "2.6")):
        yield f"snac_{name}@{kbps}", "pytorch_model.bin", snac(name)
    yield "xcodec@4", "hub", xcodec


class Agreement(NamedTuple):
    """How a codec here compares with the authors' code."""

    tokens: float  # share that are equal
    gap: float  # largest difference of samples, as a share of the peak
    entries: int  # different tokens that occur
    millions: float  # of parameters
    seconds: float

    @property
    def holds(self) -> bool:
        return self.tokens == 1.0 and self.gap <= CLOSE and self.entries > 20


def compare(setting: str, case: Case) -> Agreement:
    started = time.perf_counter()
    family, _, kbps = setting.partition("@")
    with tempfile.TemporaryDirectory() as place, torch.inference_mode():
        from earmark.codecs.catalogue import card_of

        clip = sound(card_of(setting).rate, SECONDS)
        original = case(Path(place), torch.from_numpy(clip)[None, None])
        codec = open_codec(f"{family}:{place}@{kbps}", allow_pickle=True)
        coded = codec.encode(clip)
        expected = original.samples.reshape(-1)[: len(clip)].numpy()
        samples = codec.decode(coded)[: len(expected)]
    tokens = original.tokens.numpy()
    assert coded.tokens is not None
    assert coded.tokens.shape == tokens.shape
    peak = float(np.abs(expected).max())
    gap = float(np.abs(samples[: len(expected)] - expected[: len(samples)]).max()) / peak
    equal = float((coded.tokens == tokens).mean())
    millions = original.parameters / 1e6
    return Agreement(equal, gap, len(np.unique(tokens)), millions, time.perf_counter() - started)


def main(words: list[str]) -> int:
    print("| Setting | Layout | Against | Parameters | Tokens equal | Largest gap / peak | Entries seen | s |")
    print("|---|---|---|---|---|---|---|---|")
    broken = []
    for setting, layout, case in cases():
        if words and not any(word in f"{setting} {layout}" for word in words):
            continue
        found = compare(setting, case)
        against = next(title for family, title in PACKAGES.items() if setting.startswith(family))
        print(
            f"| `{setting}` | {layout} | {against} | {found.millions:.2f} M | {found.tokens:.2%} | {found.gap:.1e} | "
            f"{found.entries} | {found.seconds:.0f} |",
            flush=True,
        )
        if not found.holds:
            broken.append(setting)
    if broken:
        print(f"Not as the authors' code: {', '.join(broken)}", file=sys.stderr)
    return len(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
