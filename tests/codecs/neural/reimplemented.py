"""AudioDec, HiFi-Codec and X-Codec once more, where no package installs: plain calls of torch on published tensors.

Written from the authors' repositories (facebookresearch/AudioDec, yangdongchao/AcademiCodec, zhenye234/xcodec) and
apart from `earmark.networks`: no modules, every layer a call with the name of its tensors in the checkpoint. X-Codec's
halves are those of the package descript-audio-codec, which its authors changed in two places, and HuBERT is that of
transformers, as in their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

State = Mapping[str, Any]


def weight_of(state: State, name: str) -> Any:
    """A convolution's weight, also where it is kept as length and direction."""
    if f"{name}.weight" in state:
        return state[f"{name}.weight"]
    return torch._weight_norm(state[f"{name}.weight_v"], state[f"{name}.weight_g"], 0)


def convolve(state: State, name: str, x: Any, pad: tuple[int, int], **options: int) -> Any:
    return functional.conv1d(functional.pad(x, pad), weight_of(state, name), state.get(f"{name}.bias"), **options)


def residual_codes(entries: list[Any], x: Any) -> tuple[Any, Any]:
    """Tokens [codebooks, T] of vectors [T, D], and the sum of the entries that they name."""
    codes, total = [], torch.zeros_like(x)
    for table in entries:
        codes.append(torch.cdist((x - total)[None].double(), table[None].double())[0].argmin(1))
        total = total + table[codes[-1]]
    return torch.stack(codes), total


# --- AudioDec ------------------------------------------------------------------------------------------------


def _causal(state: State, name: str, x: Any, dilation: int = 1, **options: int) -> Any:
    kernel = weight_of(state, name).shape[-1]
    return convolve(state, name, x, ((kernel - 1) * dilation, 0), dilation=dilation, **options)


def _causal_up(state: State, name: str, x: Any) -> Any:
    weight = weight_of(state, name)
    stride = weight.shape[-1] // 2
    longer = torch.cat([x[..., :1], x], -1)
    return functional.conv_transpose1d(longer, weight, state.get(f"{name}.bias"), stride)[..., stride:-stride]


def audiodec(coder: State, voice: State, strides: list[int], groups: int, sound: Any) -> tuple[Any, Any]:
    """Tokens, and what the vocoder makes of them."""
    x = _causal(coder, "encoder.conv.conv", sound)
    for block, stride in enumerate(strides):
        root = f"encoder.conv_blocks.{block}"
        for unit, dilation in enumerate((1, 3, 9)):
            inner = _causal(coder, f"{root}.res_units.{unit}.conv1.conv", functional.elu(x), dilation)
            x = x + convolve(coder, f"{root}.res_units.{unit}.conv2", functional.elu(inner), (0, 0))
        x = _causal(coder, f"{root}.conv.conv", x, stride=stride)
    x = _causal(coder, "projector.project.conv", x)
    count = sum(name.endswith(".embed") for name in coder)
    tables = [coder[f"quantizer.codebook.layers.{number}.embed"].T for number in range(count)]
    codes, latent = residual_codes(tables, x[0].T)
    x = ((latent - voice["mean"]) / voice["scale"]).T[None]
    x = _causal(voice, "input_conv.conv", x)
    for step in range(len(strides)):
        x = _causal_up(voice, f"upsamples.{step}.deconv", functional.leaky_relu(x, 0.1))
        x = x.repeat(1, groups, 1)
        for layer, dilation in enumerate((1, 3, 5)):
            root = f"blocks.{step}"
            inner = functional.leaky_relu(x, 0.1)
            inner = _causal(voice, f"{root}.convs1.{layer}.conv", inner, dilation, groups=groups)
            inner = _causal(voice, f"{root}.convs2.{layer}.conv", functional.leaky_relu(inner, 0.1), groups=groups)
            x = x + inner
        x = convolve(voice, f"blocks.{step}.conv_out", x, (0, 0))
    return codes, torch.tanh(_causal(voice, "output_conv.conv", functional.leaky_relu(x, 0.01)))


# --- HiFi-Codec ----------------------------------------------------------------------------------------------


def _block(state: State, root: str, x: Any, dilations: list[int]) -> Any:
    for layer, dilation in enumerate(dilations):
        inner = x
        for part, step in (("convs1", dilation), ("convs2", 1)):
            name = f"{root}.{part}.{layer}"
            pad = (weight_of(state, name).shape[-1] - 1) * step // 2
            inner = convolve(state, name, functional.leaky_relu(inner, 0.1), (pad, pad), dilation=step)
        x = x + inner
    return x


def hificodec(parts: Mapping[str, State], config: Mapping[str, Any], sound: Any) -> tuple[Any, Any]:
    """Tokens [round 1 group 1, round 1 group 2, round 2 group 1, round 2 group 2], and the sound of them."""
    encoder, quantiser, generator = parts["encoder"], parts["quantizer"], parts["generator"]
    steps = list(zip(config["upsample_rates"], config["upsample_kernel_sizes"], strict=True))
    dilations = config["resblock_dilation_sizes"]
    kinds = len(dilations)
    x = convolve(encoder, "conv_pre", sound, (3, 3))
    for step, (rate, kernel) in enumerate(reversed(steps)):
        pad = (kernel - rate) // 2
        x = convolve(encoder, f"ups.{step}", functional.leaky_relu(x, 0.1), (pad, pad), stride=rate)
        total = torch.zeros_like(x)
        for kind in range(kinds):
            number = step * kinds + kind
            total = total + _block(encoder, f"resblocks.{number}", x, dilations[kinds - 1 - kind])
            affine = encoder[f"normalize.{number}.weight"], encoder[f"normalize.{number}.bias"]
            total = functional.group_norm(total, x.shape[1] // 16, *affine, eps=1e-6)
        x = total / kinds
    x = convolve(encoder, "conv_post", functional.leaky_relu(x, 0.01), (1, 1))
    groups = config["n_code_groups"]
    rounds = ("quantizer_modules", "quantizer_modules2")
    codes: list[Any] = [None] * (2 * groups)
    latent = []
    for group, part in enumerate(x[0].T.chunk(groups, 1)):
        found, total = residual_codes([quantiser[f"{name}.{group}.embedding.weight"] for name in rounds], part)
        codes[group], codes[groups + group] = found
        latent.append(total)
    x = convolve(generator, "conv_pre", torch.cat(latent, 1).T[None], (3, 3))
    for step, (rate, kernel) in enumerate(steps):
        name, x = f"ups.{step}", functional.leaky_relu(x, 0.1)
        x = functional.conv_transpose1d(
            x, weight_of(generator, name), generator[f"{name}.bias"], rate, padding=(kernel - rate) // 2
        )
        x = sum(_block(generator, f"resblocks.{step * kinds + kind}", x, dilations[kind]) for kind in range(kinds))
        x = x / kinds
    return torch.stack(codes), torch.tanh(convolve(generator, "conv_post", functional.leaky_relu(x, 0.1), (3, 3)))


# --- X-Codec -------------------------------------------------------------------------------------------------


def xcodec(state: State, encoder: Any, decoder: Any, hubert: Any, sound: Any) -> tuple[Any, Any]:
    """Tokens and sound; `encoder` and `decoder` are the halves of DAC that its authors took."""
    hidden = hubert(functional.pad(sound[:, 0], (160, 160)), output_hidden_states=True).hidden_states
    x = convolve(state, "encoder_semantic.conv.conv", torch.stack(hidden).mean(0).transpose(1, 2), (1, 1))
    for block in range(2):
        root = f"encoder_semantic.conv_blocks.{block}"
        for unit in range(2):
            inner = convolve(state, f"{root}.res_units.{unit}.conv1.conv", functional.elu(x), (1, 1))
            x = x + convolve(state, f"{root}.res_units.{unit}.conv2", functional.elu(inner), (0, 0))
        x = convolve(state, f"{root}.conv.conv", x, (1, 1))
    acoustic = encoder(sound)
    if acoustic.shape[2] != x.shape[2]:
        acoustic = encoder(functional.pad(sound, (160, 160)))
    joined = functional.linear(torch.cat([acoustic, x], 1)[0].T, state["fc_prior.weight"], state["fc_prior.bias"])
    count = sum(name.endswith("_codebook.embed") for name in state)
    tables = [state[f"quantizer.vq.layers.{number}._codebook.embed"] for number in range(count)]
    codes, latent = residual_codes(tables, joined)
    return codes, decoder(functional.linear(latent, state["fc_post2.weight"], state["fc_post2.bias"]).T[None])
