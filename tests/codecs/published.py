"""Codec-SUPERB's five metrics, written from its formulas with torch, librosa and scipy; nothing of Earmark is imported.

Sums are in float64 where that code has float32, so that what is compared is the definition and not the rounding of one
processor; the taps of its resampler, whose rounding is part of them, are float32.
"""

from __future__ import annotations

import contextlib
import math

import librosa
import numpy as np
import parselmouth
import pesq
import scipy.signal
import torch


def expected(clean, heard, rate):
    """{metric: value, or None where the code enters a failure value}; order matters, since resampling is in place."""
    length = max(len(clean), len(heard))
    pair = [torch.from_numpy(np.pad(samples, (0, length - len(samples)))) for samples in (clean, heard)]
    found = {"stft_distance": None, "mel_distance": None, "pesq": None, "stoi": None, "f0_corr": None}
    if length > 1024:
        found["mel_distance"] = sum(mel_terms(*pair, rate, *scale) for scale in ((2048, 150), (512, 80)))
        found["stft_distance"] = sum(two_terms(*(spectrum(x, window) for x in pair)) for window in (2048, 512))
    pair = [at_16_khz(x, rate).numpy() for x in pair]
    with contextlib.suppress(pesq.PesqError):
        found["pesq"] = float(pesq.pesq(16000, *pair, "wb"))
    return found | {"stoi": stoi(*pair), "f0_corr": f0_corr(*pair)}


def spectrum(x, window):
    hann = torch.from_numpy(scipy.signal.get_window("hann", window)).float().double()
    return torch.stft(x.double(), window, window // 4, window=hann, center=True, return_complex=True).abs()


def two_terms(a, b):
    logs = a.clamp(1e-5).pow(2).log10() - b.clamp(1e-5).pow(2).log10()
    return float(logs.abs().mean() + (a - b).abs().mean())


def mel_terms(x, y, rate, window, bands):
    bank = torch.from_numpy(librosa.filters.mel(sr=rate, n_fft=window, n_mels=bands)).double()
    return two_terms(bank @ spectrum(x, window), bank @ spectrum(y, window))


def at_16_khz(x, rate, sums=torch.float64):
    """julius: a strided convolution with one windowed sinc for each sample of a cycle; ends are repeated."""
    divisor = math.gcd(rate, 16000)
    old, new = rate // divisor, 16000 // divisor
    if old == new:
        return x
    cutoff = 0.945 * min(old, new)
    width = math.ceil(24 * old / cutoff)
    index = torch.arange(-width, width + old).float()
    filters = []
    for phase in range(new):
        t = ((-phase / new + index / old) * cutoff).clamp(-24, 24) * math.pi
        taps = torch.where(t == 0, torch.ones_like(t), t.sin() / t) * torch.cos(t / 24 / 2) ** 2
        filters.append(taps / taps.sum())
    padded = torch.nn.functional.pad(x.to(sums)[None, None], (width, width + old), mode="replicate")
    made = torch.nn.functional.conv1d(padded, torch.stack(filters)[:, None].to(sums), stride=old)
    length = int(torch.floor(torch.tensor(new * len(x) / old)))
    return made[0].T.reshape(-1)[:length].float()


def stoi(x, y):
    x, y = (scipy.signal.resample_poly(samples, 10000, 16000) for samples in (x, y))
    starts = np.arange(0, len(x) - 256, 128)
    if not len(starts):
        return None
    hann = scipy.signal.windows.hann(258)[1:-1]
    early = np.array([np.take(x, np.arange(start - 1, start + 255)) for start in starts])  # -1 is the last sample
    levels = 20 * np.log10(np.linalg.norm(early * hann, axis=1) / 16 + 1e-10)
    kept = starts[levels - levels.max() + 40 > 0]
    joined = np.zeros((2, 128 * len(kept) + 128))
    for place, start in enumerate(kept):
        for row, samples in enumerate((x, y)):
            joined[row, 128 * place : 128 * place + 256] += samples[start : start + 256] * hann
    edges = 150 * 2 ** ((2 * np.arange(15)[:, None] + [-1, 1]) / 6)
    bins = np.abs(np.arange(257) * 10000 / 512 - edges[..., None]).argmin(axis=-1)
    bank = np.array([[low <= k < high for k in range(257)] for low, high in bins], float)
    x, y = (np.sqrt(bank @ np.abs(short_time(samples, hann)) ** 2) for samples in joined)
    values = []
    for end in range(30, x.shape[1] + 1):
        a, b = x[:, end - 30 : end], y[:, end - 30 : end]
        b = b * np.sqrt((a**2).sum(1, keepdims=True) / ((b**2).sum(1, keepdims=True) + 1e-10))
        a, b = standard(a), standard(np.minimum(b, a + a * 10 ** (15 / 20)))
        values.append((a * b).sum() / 15)
    return float(np.clip(np.mean(values), 0, 1)) if values else None


def short_time(samples, hann):
    """Spectra [257, frames] divided by the sum of the window, without the last frame."""
    frames = [samples[start : start + 256] for start in range(0, len(samples) - 256, 128)]
    return np.array([np.fft.rfft(frame * hann, 512) / hann.sum() for frame in frames]).reshape(-1, 257).T


def standard(rows):
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-10)


def f0_corr(x, y):
    cents = []
    for samples in (x, y):
        try:
            sound = parselmouth.Sound(samples.astype(np.float64), 22050)
            track = sound.to_pitch_ac(
                time_step=256 / 22050, voicing_threshold=0.6, pitch_floor=50, pitch_ceiling=1100
            ).selected_array["frequency"]
        except parselmouth.PraatError:
            return None
        made = 1200 * np.log2(track[track != 0] / 440)
        if len(made) <= 1:
            return None
        cents.append(made - np.median(made))
    _, path = librosa.sequence.dtw(*cents)
    a, b = (row[path[:, side]].astype(np.float32).astype(np.float64) for side, row in enumerate(cents))
    return float(np.corrcoef(a, b)[0, 1]) if a.std() and b.std() else None
