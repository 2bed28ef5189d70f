"""AudioDec: a causal autoencoder with residual codebooks, and the vocoder that decodes in its stead.

Everything sees the past alone. Convolutions are padded with zeros in front; transposed ones repeat the first frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from earmark.networks.quantisers import nearest

__all__ = ["AutoEncoder", "AutoEncoderShape", "Vocoder", "VocoderShape"]

DILATIONS = (1, 3, 9)


@dataclass(frozen=True)
class AutoEncoderShape:
    encoder_channels: int
    decoder_channels: int
    code_dimension: int
    codebooks: int
    size: int
    encoder_ratios: tuple[int, ...]
    decoder_ratios: tuple[int, ...]
    encoder_strides: tuple[int, ...]
    decoder_strides: tuple[int, ...]
    bias: bool = True


@dataclass(frozen=True)
class VocoderShape:
    inputs: int
    channels: int
    kernel: int
    rates: tuple[int, ...]
    residual_kernels: tuple[int, ...]
    residual_dilations: tuple[tuple[int, ...], ...]
    groups: int
    bias: bool
    paired: bool  # a second convolution behind each dilated one
    slope: float
    normalised: bool  # codes are brought to mean 0 and scale 1 first


class _Convolution(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, dilation: int = 1, **more: Any):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride=stride, dilation=dilation, **more)
        self.past = (kernel - 1) * dilation

    def forward(self, values: Any) -> Any:
        return self.conv(functional.pad(values, (self.past, 0)))


class _Transposed(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, outputs: int, stride: int, bias: bool = True) -> None:
        super().__init__()
        self.deconv = nn.ConvTranspose1d(inputs, outputs, 2 * stride, stride=stride, bias=bias)
        self.stride = stride

    def forward(self, values: Any) -> Any:
        found = self.deconv(functional.pad(values, (1, 0), "replicate"))
        return found[..., self.stride : -self.stride]


class _Unit(nn.Module):  # type: ignore[misc]
    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.conv1 = _Convolution(channels, channels, 7, dilation=dilation, bias=False)
        self.conv2 = nn.Conv1d(channels, channels, 1, bias=False)

    def forward(self, values: Any) -> Any:
        return values + self.conv2(functional.elu(self.conv1(functional.elu(values))))


class _Block(nn.Module):  # type: ignore[misc]
    """A change of rate, and three residual units at the finer of the two."""

    def __init__(self, change: Any, channels: int, first: bool) -> None:
        super().__init__()
        self.conv, self.first = change, first
        self.res_units = nn.ModuleList([_Unit(channels, dilation) for dilation in DILATIONS])

    def forward(self, values: Any) -> Any:
        values = self.conv(values) if self.first else values
        for unit in self.res_units:
            values = unit(values)
        return values if self.first else self.conv(values)


class _Encoder(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: AutoEncoderShape) -> None:
        super().__init__()
        width = shape.encoder_channels
        self.conv = _Convolution(1, width, 7, bias=False)
        self.conv_blocks = nn.ModuleList()
        for ratio, stride in zip(shape.encoder_ratios, shape.encoder_strides, strict=True):
            wider = shape.encoder_channels * ratio
            change = _Convolution(width, wider, 2 * stride, stride=stride, bias=shape.bias)
            self.conv_blocks.append(_Block(change, width, first=False))
            width = wider

    def forward(self, sounds: Any) -> Any:
        values = self.conv(sounds)
        for block in self.conv_blocks:
            values = block(values)
        return values


class _Decoder(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: AutoEncoderShape) -> None:
        super().__init__()
        widths = [shape.decoder_channels * ratio for ratio in (*shape.decoder_ratios, 1)]
        self.conv1 = _Convolution(shape.code_dimension, widths[0], 7, bias=False)
        self.conv_blocks = nn.ModuleList(
            [
                _Block(_Transposed(width, narrower, stride, shape.bias), narrower, first=True)
                for width, narrower, stride in zip(widths[:-1], widths[1:], shape.decoder_strides, strict=True)
            ]
        )
        self.conv2 = _Convolution(widths[-1], 1, 7, bias=False)

    def forward(self, codes: Any) -> Any:
        values = self.conv1(codes)
        for block in self.conv_blocks:
            values = block(values)
        return self.conv2(values)


class _Projector(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.project = _Convolution(inputs, outputs, 3, bias=False)


class _Entries(nn.Module):  # type: ignore[misc]
    """Entries stand in columns: `embed` [D, size]."""

    def __init__(self, dimension: int, size: int) -> None:
        super().__init__()
        self.register_buffer("embed", torch.zeros(dimension, size))


class _Codebooks(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: AutoEncoderShape) -> None:
        super().__init__()
        self.layers = nn.ModuleList([_Entries(shape.code_dimension, shape.size) for _ in range(shape.codebooks)])


class _Quantiser(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: AutoEncoderShape) -> None:
        super().__init__()
        self.codebook = _Codebooks(shape)

    def encode(self, latents: Any, codebooks: int) -> Any:
        left = latents[0].T
        tokens = []
        for layer in self.codebook.layers[:codebooks]:
            tokens.append(nearest(left, layer.embed.T))
            left = left - layer.embed.T[tokens[-1]]
        return torch.stack(tokens)

    def decode(self, tokens: Any) -> Any:
        layers = self.codebook.layers[: len(tokens)]
        return torch.stack([layer.embed[:, row] for row, layer in zip(tokens, layers, strict=True)]).sum(0)[None]


class AutoEncoder(nn.Module):  # type: ignore[misc]
    """Names: encoder.*, projector.project.*, quantizer.codebook.layers.*, decoder.*."""

    def __init__(self, shape: AutoEncoderShape) -> None:
        super().__init__()
        self.encoder, self.decoder = _Encoder(shape), _Decoder(shape)
        width = shape.encoder_channels * shape.encoder_ratios[-1]
        self.projector = _Projector(width, shape.code_dimension)
        self.quantizer = _Quantiser(shape)

    def encode(self, sounds: Any, codebooks: int) -> Any:
        return self.quantizer.encode(self.projector.project(self.encoder(sounds)), codebooks)


class _Fusion(nn.Module):  # type: ignore[misc]
    """Dilated convolutions, each added to what enters it."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int], shape: VocoderShape) -> None:
        super().__init__()
        more = {"groups": shape.groups, "bias": shape.bias}
        self.slope = shape.slope
        self.convs1 = nn.ModuleList([_Convolution(channels, channels, kernel, dilation=d, **more) for d in dilations])
        second = [_Convolution(channels, channels, kernel, **more) for _ in dilations] if shape.paired else []
        self.convs2 = nn.ModuleList(second)

    def forward(self, values: Any) -> Any:
        for place, first in enumerate(self.convs1):
            bent = first(functional.leaky_relu(values, self.slope))
            if len(self.convs2):
                bent = self.convs2[place](functional.leaky_relu(bent, self.slope))
            values = values + bent
        return values


class _Grouped(_Fusion):
    """One block whose groups of channels all hear the same."""

    def __init__(self, channels: int, shape: VocoderShape) -> None:
        wide = channels * shape.groups
        super().__init__(wide, shape.residual_kernels[0], shape.residual_dilations[0], shape)
        self.groups = shape.groups
        self.conv_out = nn.Conv1d(wide, channels, 1, bias=False)

    def forward(self, values: Any) -> Any:
        return self.conv_out(super().forward(values.repeat(1, self.groups, 1)))


class _Fields(nn.Module):  # type: ignore[misc]
    """Blocks with different reach, averaged."""

    def __init__(self, channels: int, shape: VocoderShape) -> None:
        super().__init__()
        kinds = zip(shape.residual_kernels, shape.residual_dilations, strict=True)
        self.blocks = nn.ModuleList([_Fusion(channels, kernel, dilations, shape) for kernel, dilations in kinds])

    def forward(self, values: Any) -> Any:
        return sum(block(values) for block in self.blocks) / len(self.blocks)


class Vocoder(nn.Module):  # type: ignore[misc]
    """A causal HiFi-GAN from codes [B, D, frames] to sounds [B, 1, T]."""

    def __init__(self, shape: VocoderShape) -> None:
        super().__init__()
        fusion = _Grouped if len(shape.residual_kernels) == 1 and shape.groups > 1 else _Fields
        width, self.slope, self.normalised = shape.channels, shape.slope, shape.normalised
        self.input_conv = _Convolution(shape.inputs, width, shape.kernel)
        self.upsamples, self.blocks = nn.ModuleList(), nn.ModuleList()
        for rate in shape.rates:
            self.upsamples.append(_Transposed(width, width // 2, rate))
            width //= 2
            self.blocks.append(fusion(width, shape))
        self.output_conv = _Convolution(width, 1, shape.kernel)
        if shape.normalised:
            self.register_buffer("mean", torch.zeros(shape.inputs))
            self.register_buffer("scale", torch.ones(shape.inputs))

    def forward(self, codes: Any) -> Any:
        if self.normalised:
            codes = (codes - self.mean[:, None]) / self.scale[:, None]
        values = self.input_conv(codes)
        for up, block in zip(self.upsamples, self.blocks, strict=True):
            values = block(up(functional.leaky_relu(values, self.slope)))
        return torch.tanh(self.output_conv(functional.leaky_relu(values)))
