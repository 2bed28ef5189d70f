"""ECAPA-TDNN (Desplanques et al., 2020): who speaks, as 192 numbers, from 80 mel bands.

    [B, 80, T] -- conv 5 -- three blocks (1x1, Res2 dilated, 1x1, squeeze and excite, + input) --> x1, x2, x3
               -- 1x1 over the three side by side -- attention over time: mean and deviation -- norm -- 1x1 --> [B, D]

Parameters bear the names of SpeechBrain's checkpoints. Convolutions keep the length by mirrored edges, and the
nonlinearity comes before the norm, as there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from earmark.networks.layers import chain, residual

BANDS, RATE, WINDOW, HOP = 80, 16000, 400, 160
RANGE = 80.0  # dB kept under a clip's maximum
LEAST = 1e-12


def _convolution(inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> Any:
    """A convolution that mirrors its edges, one name deeper, as checkpoints have it."""
    edge = dilation * (kernel - 1) // 2
    return chain(conv=nn.Conv1d(inputs, outputs, kernel, dilation=dilation, padding=edge, padding_mode="reflect"))


def _norm(width: int) -> Any:
    return chain(norm=nn.BatchNorm1d(width))


def _step(inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> Any:
    return chain(conv=_convolution(inputs, outputs, kernel, dilation), bend=nn.ReLU(), norm=_norm(outputs))


class _Ladder(nn.Module):  # type: ignore[misc]
    """Channels in `scale` parts: the first passes, each later one is heard together with the answer before it."""

    def __init__(self, width: int, scale: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.scale = scale
        part = width // scale
        self.blocks = nn.ModuleList(_step(part, part, kernel, dilation) for _ in range(scale - 1))

    def forward(self, x: Tensor) -> Tensor:
        first, *others = torch.chunk(x, self.scale, dim=1)
        answers = [first]
        for step, part in zip(self.blocks, others, strict=True):
            answers.append(step(part if len(answers) == 1 else part + answers[-1]))
        return torch.cat(answers, dim=1)


class _Gate(nn.Module):  # type: ignore[misc]
    """Squeeze and excite: each channel weighted by what all channels are on average."""

    def __init__(self, width: int, narrow: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = _convolution(width, narrow), _convolution(narrow, width)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=2, keepdim=True)
        return x * torch.sigmoid(self.conv2(torch.relu(self.conv1(mean))))


def _block(width: int, scale: int, narrow: int, dilation: int) -> Any:
    return residual(
        tdnn1=_step(width, width),
        res2net_block=_Ladder(width, scale, 3, dilation),
        tdnn2=_step(width, width),
        se_block=_Gate(width, narrow),
    )


class _Attention(nn.Module):  # type: ignore[misc]
    """Mean and deviation over time, weighted channel by channel by what the whole clip says is worth hearing."""

    def __init__(self, width: int, narrow: int) -> None:
        super().__init__()
        self.tdnn = _step(3 * width, narrow)
        self.conv = _convolution(narrow, width)

    def forward(self, x: Tensor) -> Tensor:
        even = torch.full_like(x[:, :1], 1.0 / x.shape[2])
        mean, deviation = _statistics(x, even)
        context = torch.cat([x, mean.expand_as(x), deviation.expand_as(x)], dim=1)
        weights = torch.softmax(self.conv(torch.tanh(self.tdnn(context))), dim=2)
        return torch.cat(_statistics(x, weights), dim=1)


def _statistics(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    mean = (weights * x).sum(dim=2, keepdim=True)
    variance = (weights * (x - mean) ** 2).sum(dim=2, keepdim=True)
    return mean, variance.clamp(min=LEAST).sqrt()


class EcapaTdnn(nn.Module):  # type: ignore[misc]
    """Features [B, bands, T] to vectors [B, D]."""

    def __init__(
        self, bands: int = BANDS, width: int = 1024, gathered: int = 3072, dimension: int = 192, narrow: int = 128,
        attention: int = 128, scale: int = 8,
    ) -> None:  # fmt: skip
        super().__init__()
        blocks = [_block(width, scale, narrow, dilation) for dilation in (2, 3, 4)]
        self.blocks = nn.ModuleList([_step(bands, width, 5), *blocks])
        self.mfa = _step(3 * width, gathered)
        self.asp = _Attention(gathered, attention)
        self.asp_bn = _norm(2 * gathered)
        self.fc = _convolution(2 * gathered, dimension)

    @classmethod
    def sized(cls, state: Mapping[str, Any]) -> EcapaTdnn:
        """A network of the sizes that a checkpoint's tensors have."""
        width, bands = state["blocks.0.conv.conv.weight"].shape[:2]
        rungs = [name for name in state if re.fullmatch(r"blocks\.1\.res2net_block\.blocks\..*conv\.weight", name)]
        return cls(
            bands=bands,
            width=width,
            gathered=state["mfa.conv.conv.weight"].shape[0],
            dimension=state["fc.conv.weight"].shape[0],
            narrow=state["blocks.1.se_block.conv1.conv.weight"].shape[0],
            attention=state["asp.tdnn.conv.conv.weight"].shape[0],
            scale=len(rungs) + 1,
        )

    def forward(self, features: Tensor) -> Tensor:
        x = self.blocks[0](features)
        outputs = []
        for block in self.blocks[1:]:
            x = block(x)
            outputs.append(x)
        vectors: Tensor = self.fc(self.asp_bn(self.asp(self.mfa(torch.cat(outputs, dim=1)))))
        return vectors[:, :, 0]


def ecapa_features(sounds: Tensor, bands: int = BANDS) -> Tensor:
    """Mel bands in decibels [B, bands, T], 80 dB deep, without each band's mean over the clip. 16 kHz."""
    window = torch.hamming_window(WINDOW, device=sounds.device)
    spectrum = torch.stft(sounds, WINDOW, HOP, WINDOW, window, pad_mode="constant", return_complex=True)
    powers = _bank(bands).to(sounds.device) @ spectrum.abs().square()
    decibels = 10.0 * torch.log10(powers.clamp(min=1e-10))
    floor = decibels.amax(dim=(1, 2), keepdim=True) - RANGE
    decibels = torch.maximum(decibels, floor)
    return decibels - decibels.mean(dim=2, keepdim=True)


def _bank(bands: int) -> Tensor:
    """Triangles [bands, WINDOW / 2 + 1] on the HTK mel scale; both flanks are as wide as the lower one."""
    top = 2595.0 * math.log10(1.0 + RATE / 2 / 700.0)
    corners = 700.0 * (10.0 ** (torch.linspace(0.0, top, bands + 2) / 2595.0) - 1.0)
    centres, widths = corners[1:-1, None], (corners[1:] - corners[:-1])[:-1, None]
    slope = (torch.linspace(0.0, RATE / 2, WINDOW // 2 + 1)[None, :] - centres) / widths
    return torch.clamp(torch.minimum(slope + 1.0, 1.0 - slope), min=0.0)
