"""DAC and EnCodec as their authors publish them outside the hub, under the names that `transformers` has.

    weights_16khz.pth            DAC: tensors under `state_dict`, what the network is made of under `metadata.kwargs`
    encodec_24khz-d7cc33bc.th    EnCodec: tensors alone, whose shapes say what the network is made of

Such a file lies without a config.json. Tensors are renamed and nothing is computed from them, but that DAC's lengths
and directions of weights are multiplied out, as `transformers` has them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from earmark.codecs.neural.checkpoints import read_tensors
from earmark.errors import InputError
from earmark.extractors.pretrained import Checkpoint, read_state

_DAC_CONFIG = {
    "encoder_dim": "encoder_hidden_size",
    "encoder_rates": "downsampling_ratios",
    "decoder_dim": "decoder_hidden_size",
    "decoder_rates": "upsampling_ratios",
    "n_codebooks": "n_codebooks",
    "codebook_size": "codebook_size",
    "codebook_dim": "codebook_dim",
    "sample_rate": "sampling_rate",
}
"""Names in the authors' file, and in the config of `transformers`."""
_UNIT = ("snake1", "conv1", "snake2", "conv2")  # of a residual unit, in the order of its layers
ENCODEC_RATE = 24000
"""Of the only EnCodec for one channel; its file does not say it."""


Rules = list[tuple[str, str | Callable[[re.Match[str]], str]]]
"""Patterns in a name, each with what takes its place; applied one after the other."""


class AuthorFile(NamedTuple):
    """What a file says of its network, in the words of `transformers`, and its tensors."""

    config: dict[str, Any]
    tensors: dict[str, Any]


def read_dac(checkpoint: Checkpoint) -> AuthorFile:
    """A file of descript-audio-codec."""
    metadata = read_state(checkpoint).get("metadata")
    made = metadata.get("kwargs") if isinstance(metadata, Mapping) else None
    if not isinstance(made, Mapping) or not set(_DAC_CONFIG) <= set(made):
        raise _foreign(checkpoint)
    ratios = [int(ratio) for ratio in made["encoder_rates"]]
    config = {name: made[theirs] for theirs, name in _DAC_CONFIG.items()}
    config |= {"hop_length": math.prod(ratios), "downsampling_ratios": ratios}
    config["hidden_size"] = made.get("latent_dim") or made["encoder_dim"] * 2 ** len(ratios)
    last = len(ratios) + 1  # number of the layer after the blocks

    def unit(block: str, number: int, layer: str) -> str:
        return f"block.{int(block) - 1}.res_unit{number}.{_UNIT[int(layer)]}."

    rules: Rules = [
        (
            r"encoder\.block\.(\d+)\.block\.(\d+)\.block\.(\d+)\.",
            lambda m: "encoder." + unit(m[1], int(m[2]) + 1, m[3]),
        ),
        (
            r"decoder\.model\.(\d+)\.block\.(\d+)\.block\.(\d+)\.",
            lambda m: "decoder." + unit(m[1], int(m[2]) - 1, m[3]),
        ),
        (r"encoder\.block\.(\d+)\.block\.3\.", lambda m: f"encoder.block.{int(m[1]) - 1}.snake1."),
        (r"encoder\.block\.(\d+)\.block\.4\.", lambda m: f"encoder.block.{int(m[1]) - 1}.conv1."),
        (r"decoder\.model\.(\d+)\.block\.0\.", lambda m: f"decoder.block.{int(m[1]) - 1}.snake1."),
        (r"decoder\.model\.(\d+)\.block\.1\.", lambda m: f"decoder.block.{int(m[1]) - 1}.conv_t1."),
        (r"(encoder\.block|decoder\.model)\.(\d+)\.(?=weight|bias|alpha)", lambda m: _outer(m, last)),
    ]
    tensors = {name.removeprefix("state_dict."): tensor for name, tensor in read_tensors(checkpoint).items()}
    return AuthorFile(config, _renamed(tensors, rules))


def _outer(match: re.Match[str], last: int) -> str:
    """The first convolution, and the activation and the convolution after the blocks."""
    layer = {0: "conv1", last: "snake1", last + 1: "conv2"}.get(int(match[2]), "")
    return f"{match[1].partition('.')[0]}.{layer}."


def read_encodec(checkpoint: Checkpoint) -> AuthorFile:
    """A file of the package encodec."""
    state = {name: tensor for name, tensor in read_state(checkpoint).items() if hasattr(tensor, "shape")}
    first, codebook = (
        state.get("encoder.model.0.conv.conv.weight_v"),
        state.get("quantizer.vq.layers.0._codebook.embed"),
    )
    if first is None or codebook is None:
        raise _foreign(checkpoint)
    ratios = [
        tensor.shape[-1] // 2 for name, tensor in state.items() if re.search(r"convtr\.convtr\.weight_v$", name)
    ]  # a kernel is as long as two strides
    codebooks = sum(name.endswith("_codebook.embed") for name in state)
    size, dimension = codebook.shape
    most = codebooks * math.log2(size) * ENCODEC_RATE / math.prod(ratios) / 1000
    rules: Rules = [
        (r"^(encoder|decoder)\.model\.", r"\1.layers."),
        (r"\.(conv|convtr)\.\1\.", ".conv."),
        (r"\.weight_g$", ".parametrizations.weight.original0"),
        (r"\.weight_v$", ".parametrizations.weight.original1"),
        (r"^quantizer\.vq\.layers\.(\d+)\._codebook\.", r"quantizer.layers.\1.codebook."),
    ]
    config = {
        "num_filters": first.shape[0],
        "audio_channels": first.shape[1],
        "upsampling_ratios": ratios,
        "hidden_size": dimension,
        "codebook_dim": dimension,
        "codebook_size": size,
        "sampling_rate": ENCODEC_RATE,
        "target_bandwidths": [most],
    }
    return AuthorFile(config, _renamed(state, rules))


def _renamed(
    tensors: Mapping[str, Any], rules: list[tuple[str, str | Callable[[re.Match[str]], str]]]
) -> dict[str, Any]:
    renamed = {}
    for name, tensor in tensors.items():
        for pattern, replacement in rules:
            name = re.sub(pattern, replacement, name)
        renamed[name] = tensor
    return renamed


def _foreign(checkpoint: Checkpoint) -> InputError:
    return InputError(
        f"{checkpoint.place} is not a file of {checkpoint.family} as its authors publish it, and has no config.json "
        "beside it: download the published file, or the folder with its config."
    )
