"""Log-mel front ends as functions of a batch of waveforms, on whatever device the waveforms are.

The models were trained with one of two spectrograms:

    short-time Fourier transform, centred, reflected   Whisper, WhisperSeg, CLAP
    Kaldi filter bank: 25 ms frames every 10 ms        AST, BEATs, EAT, AudioMAE
      within the clip, mean removed, pre-emphasis

VGGish has a third: magnitudes of frames like Kaldi's, and nothing removed or emphasised.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch.nn import functional

from earmark.errors import require

FRAME, HOP = 400, 160  # samples at 16 kHz
FFT = 512
EMPHASIS = 0.97
SMALLEST = torch.finfo(torch.float32).eps
SMALLEST_MEL = 1e-10


@cache
def mel_bank(bins: int, bands: int, low: float, high: float, rate: int, norm: str | None, scale: str) -> torch.Tensor:
    """Triangular filters [bins, bands] of transformers, as float32."""
    tools = require("transformers.audio_utils", "These models", "models")
    with warnings.catch_warnings():  # the lowest of 128 bands are narrower than a bin: the models know them so
        warnings.filterwarnings("ignore", message="At least one mel filter has all zero values")
        bank = tools.mel_filter_bank(
            bins, bands, low, high, rate, norm=norm, mel_scale=scale, triangularize_in_mel_space=scale == "kaldi"
        )
    return torch.from_numpy(bank).float()


def vggish_mel(sounds: Any) -> Any:
    """VGGish's input [B, frames, 64] of sounds [B, S] at 16 kHz: log(magnitude + 0.01) in bands from 125 to 7500 Hz.

    The bands' triangles are straight in mels and not in hertz, as Kaldi's are.
    """
    shape = torch.hann_window(FRAME, device=sounds.device)
    spectrum = torch.fft.rfft(sounds.unfold(-1, FRAME, HOP) * shape, FFT).abs()
    bank = mel_bank(FFT // 2 + 1, 64, 125.0, 7500.0, 16000, None, "kaldi").to(sounds.device)
    return (spectrum @ bank + 0.01).log()


def mel_power(sounds: Any, bank: Any, fft: int, hop: int) -> Any:
    """Mel powers [B, bands, 1 + S // hop] of sounds [B, S]: periodic Hann window, centred, edges reflected."""
    window = torch.hann_window(fft, device=sounds.device)
    spectrum = torch.stft(sounds, fft, hop, window=window, return_complex=True, pad_mode="reflect")
    return bank.T.to(sounds.device) @ (spectrum.abs() ** 2)


def whisper_mel(sounds: Any, bank: Any, fft: int, hop: int) -> Any:
    """Whisper's input [B, bands, S // hop]: log10, floored 8 below each clip's maximum, (x + 4) / 4."""
    logs = mel_power(sounds, bank, fft, hop)[..., :-1].clamp(min=SMALLEST_MEL).log10()
    return (torch.maximum(logs, logs.amax(dim=(1, 2), keepdim=True) - 8.0) + 4.0) / 4.0


def decibel_mel(sounds: Any, bank: Any, fft: int, hop: int) -> Any:
    """CLAP's input [B, frames, bands]: 10 log10 of the mel powers."""
    return 10.0 * mel_power(sounds, bank, fft, hop).clamp(min=SMALLEST_MEL).log10().transpose(1, 2)


def kaldi_fbank(sounds: Any, bands: int, window: str) -> Any:
    """Kaldi's log filter bank [B, frames, bands] of sounds [B, S] at 16 kHz, without dither.

    `window` is "hanning", or "povey" (Kaldi's own: Hann to the power 0.85). The mean of a whole clip need not be
    removed before: that of every frame is.
    """
    frames = sounds.unfold(-1, FRAME, HOP)
    frames = frames - frames.mean(dim=-1, keepdim=True)
    before = torch.cat([frames[..., :1], frames[..., :-1]], dim=-1)
    shape = torch.hann_window(FRAME, periodic=False, device=sounds.device)
    frames = (frames - EMPHASIS * before) * (shape**0.85 if window == "povey" else shape)
    power = torch.fft.rfft(functional.pad(frames, (0, FFT - FRAME))).abs() ** 2
    bank = mel_bank(FFT // 2 + 1, bands, 20.0, 8000.0, 16000, None, "kaldi").to(sounds.device)
    return (power @ bank).clamp(min=SMALLEST).log()
