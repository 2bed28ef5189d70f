"""What VocSim's VAE and AE see of a sound at 16 kHz, on whatever device the samples are.

VAE  patches of 127 x 256 samples, half overlapping; each on its own:
       |STFT| 512 every 256, Hann, reflected at its edges   257 bins x 128 frames
       log(1 + x), resized bilinearly                       128 x 128
     or, as the paper's text has it, 128 mel bands (HTK, as in its log-mel) of the power in place of the resizing
AE   the first 511 x 256 samples, zeros behind a shorter clip:
       |STFT|^2 1024 every 256, Hann, reflected             513 bins x 512 frames
       128 mel bands of Slaney, of equal area, to 8 kHz; log(1 + x)
       instance norm: less the mean, by the deviation       128 x 512
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from earmark.networks.mel_scale import Scale, mel_filters

RATE = 16000
SIDE = 128
HOP = 256
PATCH = (SIDE - 1) * HOP
STEP = PATCH // 2
PATCH_FFT, CLIP_FFT = 512, 1024
NORM_EPSILON = 1e-4
SMALLEST = 1e-9

Bands = Literal["linear", "mel"]


def patch_starts(samples: int) -> list[int]:
    """Where the patches of a clip begin: every half patch as long as a whole one fits; the last ends with the clip."""
    starts = list(range(0, samples - PATCH + 1, STEP)) or [0]
    if starts[-1] + PATCH < samples:
        starts.append(samples - PATCH)
    return starts


def patch_spectrograms(patches: Tensor, bands: Bands = "linear") -> Tensor:
    """Spectrograms [B, 1, 128, 128] of patches [B, 127 x 256] of sound."""
    magnitudes = _magnitudes(patches, PATCH_FFT)
    if bands == "mel":
        bank = _bank(PATCH_FFT, "htk", False).to(patches.device)
        return (bank @ magnitudes.square()).log1p()[:, None]
    return functional.interpolate(magnitudes.log1p()[:, None], size=(SIDE, SIDE), mode="bilinear", align_corners=False)


def clip_spectrograms(clips: Tensor) -> Tensor:
    """Normed spectrograms [B, 1, 128, 1 + samples // 256] of clips [B, samples], zeros behind their sound."""
    powers = _bank(CLIP_FFT, "slaney", True).to(clips.device) @ _magnitudes(clips, CLIP_FFT).square()
    logs = powers.clamp(min=SMALLEST).log1p()[:, None]
    return functional.instance_norm(logs, eps=NORM_EPSILON)


def _magnitudes(sounds: Tensor, fft: int) -> Tensor:
    window = torch.hann_window(fft, device=sounds.device)
    return torch.stft(sounds, fft, HOP, window=window, center=True, pad_mode="reflect", return_complex=True).abs()


@cache
def _bank(fft: int, scale: Scale, area: bool) -> Tensor:
    return torch.from_numpy(mel_filters(RATE, fft, SIDE, scale=scale, area=area)).float()
