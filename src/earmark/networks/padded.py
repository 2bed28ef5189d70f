"""Convolutions that pad themselves, so that S samples give ceil(S / stride) frames and as many samples come back.

One class serves sounds [B, C, T] and spectrograms [B, C, F, T]; time is the last axis. Parameters are named as in the
checkpoints of EnCodec's relatives: `conv.conv.weight`, `convtr.convtr.weight`, `conv.norm.weight`. Weight normalisation
is not computed here: it is folded into the weights when they are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

__all__ = ["Lstm", "PaddedConvolution", "PaddedTransposed", "Snake", "activation_of"]

_CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d}
_TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d}


class _Normed(nn.Module):  # type: ignore[misc]
    """A convolution under the name that its checkpoints give it, and the norm behind it."""

    def __init__(self, name: str, convolution: Any, channels: int, norm: str) -> None:
        super().__init__()
        setattr(self, name, convolution)
        self.name = name
        self.norm = nn.GroupNorm(1, channels) if norm == "time_group_norm" else nn.Identity()

    def forward(self, values: Any) -> Any:
        return self.norm(getattr(self, self.name)(values))


class PaddedConvolution(nn.Module):  # type: ignore[misc]
    """A convolution over 1 or 2 axes. Causal ones see the past alone, along time; `norm` follows them."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: Sequence[int],
        *,
        stride: Sequence[int] = (),
        dilation: Sequence[int] = (),
        groups: int = 1,
        causal: bool = False,
        norm: str = "",
        pad_mode: str = "reflect",
    ) -> None:
        super().__init__()
        ones = (1,) * len(kernel)
        self.kernel, self.stride, self.dilation = tuple(kernel), tuple(stride) or ones, tuple(dilation) or ones
        self.causal, self.pad_mode = causal, pad_mode
        made = _CONVOLUTIONS[len(kernel)](
            inputs, outputs, self.kernel, stride=self.stride, dilation=self.dilation, groups=groups
        )
        self.conv = _Normed("conv", made, outputs, norm)

    def forward(self, values: Any) -> Any:
        return self.conv(_padded(values, self._paddings(values.shape[-1]), self.pad_mode))

    def _paddings(self, length: int) -> list[tuple[int, int]]:
        """Before and after each axis; the end is filled up to a whole last frame, along time only."""
        totals = [
            (kernel - 1) * dilation - (stride - 1)
            for kernel, stride, dilation in zip(self.kernel, self.stride, self.dilation, strict=True)
        ]
        found = [(total - total // 2, total // 2) for total in totals]
        total, stride = totals[-1], self.stride[-1]
        reach = (self.kernel[-1] - 1) * self.dilation[-1] + 1
        frames = math.ceil((length - reach + total) / stride) + 1
        missing = (frames - 1) * stride + reach - total - length
        if self.causal:
            found[-1] = (total, missing)
        elif len(found) == 1:
            found[-1] = (total - total // 2, total // 2 + missing)
        else:  # spectrograms are filled up at their beginning
            found[-1] = (total - total // 2 + missing, total // 2)
        return found


class PaddedTransposed(nn.Module):  # type: ignore[misc]
    """The way back: `stride` times as many samples. `kept` says how much of the edges of each axis is not cut off."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: Sequence[int],
        stride: Sequence[int],
        *,
        groups: int = 1,
        causal: bool = False,
        trim_right_ratio: float = 1.0,
        norm: str = "",
        kept: Sequence[Sequence[int]] = (),
    ) -> None:
        super().__init__()
        self.causal, self.trim_right_ratio = causal, trim_right_ratio
        self.totals = [width - step for width, step in zip(kernel, stride, strict=True)]
        self.kept = [tuple(pair) for pair in kept] or [(0, 0)] * len(self.totals)
        made = _TRANSPOSED[len(kernel)](inputs, outputs, tuple(kernel), stride=tuple(stride), groups=groups)
        self.convtr = _Normed("convtr", made, outputs, norm)

    def forward(self, values: Any) -> Any:
        values = self.convtr(values)
        axes = len(self.totals)
        for axis, (total, (before, after)) in enumerate(zip(self.totals, self.kept, strict=True)):
            right = total // 2
            if self.causal and axis == axes - 1:
                right = math.ceil(total * self.trim_right_ratio)
            left, right = max(total - right - before, 0), max(right - after, 0)
            place = values.dim() - axes + axis
            values = values.narrow(place, left, values.shape[place] - left - right)
        return values


class Lstm(nn.Module):  # type: ignore[misc]
    """Layers over the frames of [B, C, T], what enters them added to what leaves; two directions give 2 C."""

    def __init__(self, width: int, layers: int, *, bidirectional: bool = False, skip: bool = True) -> None:
        super().__init__()
        self.bidirectional, self.skip = bidirectional, skip
        self.lstm = nn.LSTM(width, width, layers, bidirectional=bidirectional)

    def forward(self, values: Any) -> Any:
        frames = values.permute(2, 0, 1)
        found, _ = self.lstm(frames)
        if self.skip:
            found = found + (frames.repeat(1, 1, 2) if self.bidirectional else frames)
        return found.permute(1, 2, 0)


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


def _padded(values: Any, paddings: Sequence[tuple[int, int]], mode: str) -> Any:
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
