"""AudioDec: a causal autoencoder with residual codebooks, and the vocoder that decodes in its stead.

Everything sees the past alone. Convolutions are padded with zeros in front; transposed ones repeat the first frame.
Shapes bear the names of the authors' configs (`generator_params`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.layers import DilatedBlock, ResidualQuantiser, chain, residual


@dataclass(frozen=True, kw_only=True)
class AutoEncoderShape:
    bias: bool = True
    encode_channels: int
    enc_ratios: tuple[int, ...]
    enc_strides: tuple[int, ...]
    code_dim: int
    codebook_num: int
    codebook_size: int
    decode_channels: int
    dec_ratios: tuple[int, ...]
    dec_strides: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class VocoderShape:
    in_channels: int
    channels: int
    kernel_size: int
    bias: bool = True
    slope: float = 0.1
    groups: int = 1
    upsample_scales: tuple[int, ...]
    resblock_kernel_sizes: tuple[int, ...]
    use_additional_convs: bool = True  # a second convolution behind each dilated one
    resblock_dilations: tuple[tuple[int, ...], ...]
    normalised: bool = False  # codes are brought to mean 0 and scale 1 first


def _convolution(inputs: int, outputs: int, kernel: int, dilation: int = 1, **options: Any) -> Any:
    past = nn.ConstantPad1d(((kernel - 1) * dilation, 0), 0.0)
    return chain(pad=past, conv=nn.Conv1d(inputs, outputs, kernel, dilation=dilation, **options))


class _Transposed(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, outputs: int, stride: int, bias: bool = True) -> None:
        super().__init__()
        self.stride = stride
        self.deconv = nn.ConvTranspose1d(inputs, outputs, 2 * stride, stride=stride, bias=bias)

    def forward(self, values: Any) -> Any:
        values = self.deconv(functional.pad(values, (1, 0), "replicate"))
        return values[..., self.stride : -self.stride]


def _units(channels: int) -> Any:
    """Three residual units of growing dilation."""
    units = [
        residual(
            bend1=nn.ELU(),
            conv1=_convolution(channels, channels, 7, dilation, bias=False),
            bend2=nn.ELU(),
            conv2=nn.Conv1d(channels, channels, 1, bias=False),
        )
        for dilation in (1, 3, 9)
    ]
    return nn.Sequential(*units)


def _encoder(shape: AutoEncoderShape) -> Any:
    widths = [shape.encode_channels * ratio for ratio in (1, *shape.enc_ratios)]
    blocks = [
        chain(
            res_units=_units(width), conv=_convolution(width, wider, 2 * stride, stride=stride, bias=shape.bias)
        )
        for width, wider, stride in zip(widths[:-1], widths[1:], shape.enc_strides, strict=True)
    ]  # fmt: skip
    return chain(conv=_convolution(1, widths[0], 7, bias=False), conv_blocks=nn.Sequential(*blocks))


def _decoder(shape: AutoEncoderShape) -> Any:
    widths = [shape.decode_channels * ratio for ratio in (*shape.dec_ratios, 1)]
    blocks = [
        chain(conv=_Transposed(width, narrower, stride, shape.bias), res_units=_units(narrower))
        for width, narrower, stride in zip(widths[:-1], widths[1:], shape.dec_strides, strict=True)
    ]
    return chain(
        conv1=_convolution(shape.code_dim, widths[0], 7, bias=False),
        conv_blocks=nn.Sequential(*blocks),
        conv2=_convolution(widths[-1], 1, 7, bias=False),
    )


class AutoEncoder(nn.Module):  # type: ignore[misc]
    """Names: encoder.*, projector.project.*, quantizer.codebook.layers.*, decoder.*. A `Vocoder` may be its decoder."""

    def __init__(self, shape: AutoEncoderShape) -> None:
        super().__init__()
        width = shape.encode_channels * shape.enc_ratios[-1]
        self.encoder, self.decoder = _encoder(shape), _decoder(shape)
        self.projector = chain(project=_convolution(width, shape.code_dim, 3, bias=False))
        codebook = ResidualQuantiser(shape.codebook_num, shape.codebook_size, shape.code_dim, columns=True)
        self.quantizer = chain(codebook=codebook)

    def encode(self, sounds: Any, codebooks: int) -> Any:
        return self.quantizer.codebook.encode(self.projector(self.encoder(sounds)), codebooks)

    def decode(self, tokens: Any) -> Any:
        return self.decoder(self.quantizer.codebook.decode(tokens))[0, 0]


class _Block(DilatedBlock):
    def __init__(self, channels: int, kernel: int, dilations: Sequence[int], shape: VocoderShape) -> None:
        convolution = partial(_convolution, channels, channels, kernel, groups=shape.groups, bias=shape.bias)
        super().__init__(convolution, dilations, shape.use_additional_convs, shape.slope, "convs1")


class _Grouped(_Block):
    """One block whose groups of channels all have the same input."""

    def __init__(self, channels: int, shape: VocoderShape) -> None:
        wide = channels * shape.groups
        super().__init__(wide, shape.resblock_kernel_sizes[0], shape.resblock_dilations[0], shape)
        self.groups = shape.groups
        self.conv_out = nn.Conv1d(wide, channels, 1, bias=False)

    def forward(self, values: Any) -> Any:
        return self.conv_out(super().forward(values.repeat(1, self.groups, 1)))


class _Averaged(nn.Module):  # type: ignore[misc]
    """Blocks with different reach, averaged."""

    def __init__(self, channels: int, shape: VocoderShape) -> None:
        super().__init__()
        kinds = zip(shape.resblock_kernel_sizes, shape.resblock_dilations, strict=True)
        self.blocks = nn.ModuleList([_Block(channels, kernel, dilations, shape) for kernel, dilations in kinds])

    def forward(self, values: Any) -> Any:
        return sum(block(values) for block in self.blocks) / len(self.blocks)


class Vocoder(nn.Module):  # type: ignore[misc]
    """A causal HiFi-GAN from codes [B, D, frames] to sounds [B, 1, T]."""

    def __init__(self, shape: VocoderShape) -> None:
        super().__init__()
        fusion = _Grouped if len(shape.resblock_kernel_sizes) == 1 and shape.groups > 1 else _Averaged
        width, self.slope, self.normalised = shape.channels, shape.slope, shape.normalised
        self.input_conv = _convolution(shape.in_channels, width, shape.kernel_size)
        self.upsamples, self.blocks = nn.ModuleList(), nn.ModuleList()
        for rate in shape.upsample_scales:
            self.upsamples.append(_Transposed(width, width // 2, rate))
            width //= 2
            self.blocks.append(fusion(width, shape))
        self.output_conv = _convolution(width, 1, shape.kernel_size)
        if shape.normalised:
            self.register_buffer("mean", torch.zeros(shape.in_channels))
            self.register_buffer("scale", torch.ones(shape.in_channels))

    def forward(self, codes: Any) -> Any:
        if self.normalised:
            codes = (codes - self.mean[:, None]) / self.scale[:, None]
        values = self.input_conv(codes)
        for up, block in zip(self.upsamples, self.blocks, strict=True):
            values = block(up(functional.leaky_relu(values, self.slope)))
        return torch.tanh(self.output_conv(functional.leaky_relu(values)))
