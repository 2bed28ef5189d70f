"""Tiny DAC and EnCodec in the files that their authors publish outside the hub, and DAC as the hub has it.

Names and shapes are written out here: `make_golden.py` loaded both files strictly into the authors' packages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.codecs.neural.tiny_codecs import torch, transformers, values

from earmark.codecs.neural.author_files import read_dac
from earmark.extractors.pretrained import Checkpoint

DAC_MADE = {
    "encoder_dim": 4, "encoder_rates": [2, 4, 5, 8], "latent_dim": 64, "decoder_dim": 64,
    "decoder_rates": [8, 5, 4, 2], "n_codebooks": 12, "codebook_size": 1024, "codebook_dim": 4,
    "quantizer_dropout": 0.5, "sample_rate": 16000,
}  # fmt: skip
"""What the constructor of the authors' DAC is given; their file keeps it as `metadata.kwargs`."""


def _convolution(name: str, outputs: int, inputs: int, kernel: int, turned: bool = False) -> dict[str, Any]:
    """A weight as length and direction, and a bias; a transposed one has its inputs first."""
    first, second = (inputs, outputs) if turned else (outputs, inputs)
    shapes = {"weight_g": (first, 1, 1), "weight_v": (first, second, kernel), "bias": (outputs,)}
    return {f"{name}.{part}": values(f"{name}.{part}", shape).float() for part, shape in shapes.items()}


def _named(**shapes: tuple[int, ...]) -> dict[str, Any]:
    return {name: values(name, shape).float() for name, shape in shapes.items()}


# --- DAC -----------------------------------------------------------------------------------------------------


def _snake(name: str, width: int) -> dict[str, Any]:
    return _named(**{f"{name}.alpha": (1, width, 1)})


def _units(root: str, first: int, width: int) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for unit in range(first, first + 3):
        name = f"{root}.block.{unit}.block"
        state |= _snake(f"{name}.0", width) | _convolution(f"{name}.1", width, width, 7)
        state |= _snake(f"{name}.2", width) | _convolution(f"{name}.3", width, width, 1)
    return state


def dac_state() -> dict[str, Any]:
    state, width = _convolution("encoder.block.0", 4, 1, 7), 4
    for block, stride in enumerate((2, 4, 5, 8), start=1):
        root = f"encoder.block.{block}"
        state |= _units(root, 0, width) | _snake(f"{root}.block.3", width)
        state |= _convolution(f"{root}.block.4", 2 * width, width, 2 * stride)
        width *= 2
    state |= _snake("encoder.block.5", width) | _convolution("encoder.block.6", 64, width, 3)
    for number in range(12):
        root = f"quantizer.quantizers.{number}"
        state |= _convolution(f"{root}.in_proj", 4, 64, 1) | _convolution(f"{root}.out_proj", 64, 4, 1)
        state |= _named(**{f"{root}.codebook.weight": (1024, 4)})
    state |= _convolution("decoder.model.0", 64, 64, 7)
    for block, stride in enumerate((8, 5, 4, 2), start=1):
        root, width = f"decoder.model.{block}", 64 // 2**block
        state |= _snake(f"{root}.block.0", 2 * width)
        state |= _convolution(f"{root}.block.1", width, 2 * width, 2 * stride, turned=True) | _units(root, 2, width)
    state |= _snake("decoder.model.5", 4) | _convolution("decoder.model.6", 1, 4, 7)
    quieter = [name for name in state if name.startswith("decoder") and name.endswith("weight_g")]
    return state | {name: 0.5 * state[name] for name in quieter}  # so that the sound does not clip


def dac(folder: Path) -> Path:
    """weights_16khz.pth of the authors' releases."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"state_dict": dac_state(), "metadata": {"kwargs": DAC_MADE}}, folder / "weights_16khz.pth")
    return folder


def dac_of_the_hub(folder: Path, **changes: Any) -> Path:
    """What the converter of `transformers` writes: a config of 44.1 kHz of which all is changed but `hop_length`."""
    from safetensors.torch import save_file

    file = dac(folder) / "weights_16khz.pth"
    config = transformers.DacConfig()
    config.encoder_hidden_size, config.decoder_hidden_size, config.hidden_size = 4, 64, 64
    config.downsampling_ratios, config.upsampling_ratios = DAC_MADE["encoder_rates"], DAC_MADE["decoder_rates"]
    config.n_codebooks, config.codebook_dim, config.sampling_rate = 12, 4, 16000
    for name, value in changes.items():
        setattr(config, name, value)
    (folder / "config.json").write_text(config.to_json_string())
    tensors = read_dac(Checkpoint("tiny", "dac", file, allow_pickle=True)).tensors
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    file.unlink()
    return folder


# --- EnCodec -------------------------------------------------------------------------------------------------

ENCODEC_SIZES = {"n_filters": 4, "dimension": 16, "causal": True}


def _residual(root: str, width: int) -> dict[str, Any]:
    state = _convolution(f"{root}.block.1.conv.conv", width // 2, width, 3)
    state |= _convolution(f"{root}.block.3.conv.conv", width, width // 2, 1)
    return state | _convolution(f"{root}.shortcut.conv.conv", width, width, 1)


def _memory(root: str, width: int) -> dict[str, Any]:
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(2):
        for side in ("ih", "hh"):
            shapes[f"{root}.lstm.weight_{side}_l{layer}"] = (4 * width, width)
            shapes[f"{root}.lstm.bias_{side}_l{layer}"] = (4 * width,)
    return _named(**shapes)


def encodec_state(channels: int = 1) -> dict[str, Any]:
    state, width, layer = _convolution("encoder.model.0.conv.conv", 4, channels, 7), 4, 1
    for ratio in (2, 4, 5, 8):
        state |= _residual(f"encoder.model.{layer}", width)
        state |= _convolution(f"encoder.model.{layer + 2}.conv.conv", 2 * width, width, 2 * ratio)
        width, layer = 2 * width, layer + 3
    state |= _memory("encoder.model.13", 64) | _convolution("encoder.model.15.conv.conv", 16, 64, 7)
    for number in range(32):
        root = f"quantizer.vq.layers.{number}._codebook"
        entries = values(f"{root}.embed", (1024, 16)).float()
        state |= {f"{root}.inited": torch.ones(1), f"{root}.cluster_size": torch.ones(1024)}
        state |= {f"{root}.embed": entries, f"{root}.embed_avg": entries.clone()}
    state |= _convolution("decoder.model.0.conv.conv", 64, 16, 7) | _memory("decoder.model.1", 64)
    layer = 3
    for ratio in (8, 5, 4, 2):
        width //= 2
        state |= _convolution(f"decoder.model.{layer}.convtr.convtr", width, 2 * width, 2 * ratio, turned=True)
        state |= _residual(f"decoder.model.{layer + 1}", width)
        layer += 3
    return state | _convolution("decoder.model.15.conv.conv", channels, 4, 7)


def encodec(folder: Path, channels: int = 1) -> Path:
    """encodec_24khz-d7cc33bc.th of the authors."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(encodec_state(channels), folder / "encodec_24khz-d7cc33bc.th")
    return folder


FILES = {"dac_16khz@6": dac, "encodec@24": encodec}
"""Settings, and the functions that write a tiny file of each in its authors' layout."""
