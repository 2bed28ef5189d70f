"""Layers that several networks share; parameters bear the names of the published checkpoints.

Padded convolutions give ceil(S / stride) frames of S samples, and as many samples back. One class serves sounds
[B, C, T] and spectrograms [B, C, F, T]; time is the last axis. Weight normalisation is not computed here: it is folded
into the weights when they are read.

Residual quantisation: each codebook names the entry nearest to what the codebooks before it left over. Latents are
[B, D, T], tokens [codebooks, T]; one sound at a time is coded.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def chain(**modules: Any) -> Any:
    """Modules that run one after the other, under the names that checkpoints give them."""
    return nn.Sequential(OrderedDict(modules))


class _Residual(nn.Sequential):  # type: ignore[misc]
    def forward(self, values: Any) -> Any:
        return values + super().forward(values)


def residual(**modules: Any) -> Any:
    """A chain whose input is added to its output."""
    return _Residual(OrderedDict(modules))


# --- convolutions --------------------------------------------------------------------------------------------


def _norm(channels: int, norm: str) -> Any:
    return nn.GroupNorm(1, channels) if norm == "time_group_norm" else nn.Identity()


class PaddedConvolution(nn.Module):  # type: ignore[misc]
    """A convolution over 1 or 2 axes. Causal ones see the past alone, along time; `norm` follows them."""

    def __init__(
        self, inputs: int, outputs: int, kernel: Sequence[int], *, stride: Sequence[int] = (),
        dilation: Sequence[int] = (), groups: int = 1, causal: bool = False, norm: str = "", pad_mode: str = "reflect",
    ) -> None:  # fmt: skip
        super().__init__()
        ones = (1,) * len(kernel)
        self.kernel, self.stride, self.dilation = tuple(kernel), tuple(stride) or ones, tuple(dilation) or ones
        self.causal, self.pad_mode = causal, pad_mode
        kind = nn.Conv1d if len(kernel) == 1 else nn.Conv2d
        convolution = kind(inputs, outputs, self.kernel, stride=self.stride, dilation=self.dilation, groups=groups)
        self.conv = chain(conv=convolution, norm=_norm(outputs, norm))

    def forward(self, values: Any) -> Any:
        return self.conv(_pad(values, self._paddings(values.shape[-1]), self.pad_mode))

    def _paddings(self, length: int) -> list[tuple[int, int]]:
        """Before and after each axis; the end is filled up to a whole last frame, along time only."""
        totals = [
            (kernel - 1) * dilation - (stride - 1)
            for kernel, stride, dilation in zip(self.kernel, self.stride, self.dilation, strict=True)
        ]
        paddings = [(total - total // 2, total // 2) for total in totals]
        total, stride = totals[-1], self.stride[-1]
        reach = (self.kernel[-1] - 1) * self.dilation[-1] + 1
        frames = math.ceil((length - reach + total) / stride) + 1
        missing = (frames - 1) * stride + reach - total - length
        if self.causal:
            paddings[-1] = (total, missing)
        elif len(paddings) == 1:
            paddings[-1] = (total - total // 2, total // 2 + missing)
        else:  # spectrograms are filled up at their beginning
            paddings[-1] = (total - total // 2 + missing, total // 2)
        return paddings


def _pad(values: Any, paddings: Sequence[tuple[int, int]], mode: str) -> Any:
    """Values with each axis padded; one that is too short to be mirrored gets zeros behind it first."""
    flat = [size for pair in reversed(paddings) for size in pair]
    if mode != "reflect":
        return functional.pad(values, flat, mode)
    axes = len(paddings)
    short = [max(0, max(pair) - size + 1) for pair, size in zip(paddings, values.shape[-axes:], strict=True)]
    values = functional.pad(values, [size for extra in reversed(short) for size in (0, extra)])
    values = functional.pad(values, flat, "reflect")
    for axis, extra in enumerate(short, start=values.dim() - axes):
        values = values.narrow(axis, 0, values.shape[axis] - extra)
    return values


class PaddedTransposed(nn.Module):  # type: ignore[misc]
    """The way back: `stride` times as many samples. `kept` says how much of the edges of each axis is not cut off."""

    def __init__(
        self, inputs: int, outputs: int, kernel: Sequence[int], stride: Sequence[int], *, groups: int = 1,
        causal: bool = False, norm: str = "", kept: Sequence[Sequence[int]] = (),
    ) -> None:  # fmt: skip
        super().__init__()
        self.causal = causal
        self.totals = [width - step for width, step in zip(kernel, stride, strict=True)]
        self.kept = [tuple(pair) for pair in kept] or [(0, 0)] * len(self.totals)
        kind = nn.ConvTranspose1d if len(kernel) == 1 else nn.ConvTranspose2d
        convolution = kind(inputs, outputs, tuple(kernel), stride=tuple(stride), groups=groups)
        self.convtr = chain(convtr=convolution, norm=_norm(outputs, norm))

    def forward(self, values: Any) -> Any:
        values = self.convtr(values)
        axes = len(self.totals)
        for axis, (total, (before, after)) in enumerate(zip(self.totals, self.kept, strict=True)):
            right = total if self.causal and axis == axes - 1 else total // 2
            left, right = max(total - right - before, 0), max(right - after, 0)
            dimension = values.dim() - axes + axis
            values = values.narrow(dimension, left, values.shape[dimension] - left - right)
        return values


class DilatedBlock(nn.Module):  # type: ignore[misc]
    """HiFi-GAN's residual block: dilated convolutions, each added to its input.

    `convolution` makes one of a dilation; `paired` puts a second one without dilation behind each. `single` is the
    name of the list where they are not paired.
    """

    def __init__(
        self, convolution: Callable[[int], Any], dilations: Sequence[int], paired: bool, slope: float, single: str
    ) -> None:
        super().__init__()
        self.first, self.slope = "convs1" if paired else single, slope
        setattr(self, self.first, nn.ModuleList([convolution(dilation) for dilation in dilations]))
        self.convs2 = nn.ModuleList([convolution(1) for _ in dilations] if paired else [])

    def forward(self, values: Any) -> Any:
        for number, first in enumerate(getattr(self, self.first)):
            bent = first(functional.leaky_relu(values, self.slope))
            if len(self.convs2):
                bent = self.convs2[number](functional.leaky_relu(bent, self.slope))
            values = values + bent
        return values


class Lstm(nn.Module):  # type: ignore[misc]
    """Layers over the frames of [B, C, T], what enters them added to what leaves; two directions give 2 C."""

    def __init__(self, width: int, layers: int, *, bidirectional: bool = False, skip: bool = True) -> None:
        super().__init__()
        self.bidirectional, self.skip = bidirectional, skip
        self.lstm = nn.LSTM(width, width, layers, bidirectional=bidirectional)

    def forward(self, values: Any) -> Any:
        frames = values.permute(2, 0, 1)
        outputs, _ = self.lstm(frames)
        if self.skip:
            outputs = outputs + (frames.repeat(1, 1, 2) if self.bidirectional else frames)
        return outputs.permute(1, 2, 0)


class Snake(nn.Module):  # type: ignore[misc]
    """x + sin(alpha x)^2 / alpha, with an alpha for each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, values: Any) -> Any:
        flat = values.flatten(2)
        bent: Any = flat + torch.sin(self.alpha * flat).square() / (self.alpha + 1e-9)
        return bent.reshape(values.shape)


def activation_of(name: str, channels: int, **parameters: float) -> Any:
    """A module of torch by its name, or Snake, which has a parameter for each channel."""
    return Snake(channels) if name.lower() == "snake" else getattr(nn, name)(**parameters)


def transformer_block(
    values: Any, attention: Callable[[Any], Any], mlp: Callable[[Any], Any], norms: Sequence[Any], *,
    norm_first: bool, scale: float = 1.0,
) -> Any:  # fmt: skip
    """Attention and two linear layers, each with a residual: normalised before each half, or after it.

    In the second case `scale` weighs the residuals.
    """
    if norm_first:
        values = values + attention(norms[0](values))
        return values + mlp(norms[1](values))
    values = norms[0](scale * values + attention(values))
    return norms[1](scale * values + mlp(values))


# --- codebooks -----------------------------------------------------------------------------------------------


def nearest(vectors: Any, entries: Any) -> Any:
    """Numbers [N] of the entries [size, D] that lie nearest to vectors [N, D]; the first of several as near."""
    distances = entries.square().sum(1) - 2 * vectors @ entries.T + vectors.square().sum(1, keepdim=True)
    return distances.argmin(1)


class _Entries(nn.Module):  # type: ignore[misc]
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.register_buffer("embed", torch.zeros(shape))


class ResidualQuantiser(nn.Module):  # type: ignore[misc]
    """Codebooks of one size under `layers`, as EnCodec's checkpoints have them: `_codebook.embed` [size, D].

    With `columns` they are as AudioDec has them: `embed` [D, size].
    """

    def __init__(self, codebooks: int, size: int, dimension: int, *, columns: bool = False) -> None:
        super().__init__()
        self.columns = columns
        self.layers = nn.ModuleList(
            [
                _Entries(dimension, size) if columns else chain(_codebook=_Entries(size, dimension))
                for _ in range(codebooks)
            ]
        )

    def _entries(self, codebooks: int) -> list[Any]:
        return [layer.embed.T if self.columns else layer._codebook.embed for layer in self.layers[:codebooks]]

    def encode(self, latents: Any, codebooks: int) -> Any:
        left = latents[0].T
        tokens = []
        for entries in self._entries(codebooks):
            tokens.append(nearest(left, entries))
            left = left - entries[tokens[-1]]
        return torch.stack(tokens)

    def decode(self, tokens: Any) -> Any:
        pairs = zip(tokens, self._entries(len(tokens)), strict=True)
        if self.columns:
            return torch.stack([entries.T[:, row] for row, entries in pairs]).sum(0)[None]
        return torch.stack([entries[row] for row, entries in pairs]).sum(0).T[None]
