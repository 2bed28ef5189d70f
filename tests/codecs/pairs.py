"""Waveforms that need no file: clean clips, and what codecs of several kinds might make of them.

Only sines, cosines and whole random numbers enter, so that every machine makes the same samples to within rounding.
"""

from __future__ import annotations

import numpy as np


def noise(n, seed):
    """Uniform noise between -1 and 1 in steps of 2^-15."""
    return (np.random.default_rng(seed).integers(-32768, 32768, n) / 32768.0).astype(np.float64)


def voice(rate, seconds=2.0, pitch=120.0, seed=0):
    """A gliding harmonic tone in syllables with pauses and a little breath: something with pitch and utterances."""
    time = np.arange(round(rate * seconds)) / rate
    glide = pitch * 2.0 ** (0.4 * np.sin(2 * np.pi * 0.9 * time + seed) + 0.1 * np.sin(2 * np.pi * 2.3 * time))
    phase = 2 * np.pi * np.cumsum(glide) / rate
    tone = sum(np.sin(k * phase) / k for k in range(1, 26) if k * pitch * 1.5 < rate / 2)
    syllables = np.clip(1.5 * np.sin(2 * np.pi * 2.0 * time - 0.5), 0.0, 1.0)
    breath = 0.02 * noise(len(time), seed) * (0.2 + syllables)
    return (0.2 * tone * syllables + breath).astype(np.float32)


def chord(rate, seconds=2.0):
    """Three notes with vibrato, struck every 0.8 s and dying away: something with pitch that is no voice."""
    time = np.arange(round(rate * seconds)) / rate
    wobble = 0.006 * np.sin(2 * np.pi * 5.0 * time) / 5.0
    tones = sum(np.sin(2 * np.pi * f * (time + wobble)) for f in (220.0, 277.2, 329.6))
    return (0.15 * tones * np.exp(-6.0 * (time % 0.8))).astype(np.float32)


def noisy(samples, level=0.01, seed=1):
    return (samples + level * noise(len(samples), seed)).astype(np.float32)


def low_passed(samples, rate, cutoff=3400.0):
    spectrum = np.fft.rfft(samples.astype(np.float64))
    spectrum[np.fft.rfftfreq(len(samples), 1 / rate) > cutoff] = 0.0
    return np.fft.irfft(spectrum, len(samples)).astype(np.float32)


def quantised(samples, steps=16):
    return (np.round(samples.astype(np.float64) * steps) / steps).astype(np.float32)


def delayed(samples, lag, gain=1.0):
    """The same length, later by `lag` whole samples."""
    moved = np.zeros_like(samples)
    moved[lag:] = gain * samples[: len(samples) - lag]
    return moved


def scrambled(samples, rate, seed=3):
    """A vocoder of sorts: envelopes in bands over time are kept, phases are not."""
    size = 512
    hop = size // 4
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    padded = np.pad(samples.astype(np.float64), size)
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop] * window
    spectra = np.abs(np.fft.rfft(frames, axis=1))
    phases = 2 * np.pi * (noise(spectra.size, seed).reshape(spectra.shape) + 1) / 2
    pieces = np.fft.irfft(spectra * np.exp(1j * phases), size, axis=1) * window
    out = np.zeros(len(padded) + size)
    for place, piece in enumerate(pieces):
        out[place * hop : place * hop + size] += piece
    return (out[size : size + len(samples)] / 1.5).astype(np.float32)


PAIRS = {
    "noisy_16k": (16000, voice(16000), noisy(voice(16000))),
    "low_passed_16k": (16000, voice(16000, pitch=190.0, seed=2), low_passed(voice(16000, pitch=190.0, seed=2), 16000)),
    "telephone_8k": (8000, voice(8000, seed=3), quantised(voice(8000, seed=3), 24)),
    "late_22k": (22050, voice(22050, pitch=90.0, seed=4), delayed(voice(22050, pitch=90.0, seed=4), 7, 0.8)),
    "chord_44k": (44100, chord(44100), noisy(chord(44100), 0.003)),
    "longer_16k": (16000, voice(16000, seed=5), noisy(np.pad(voice(16000, seed=5), (0, 900)), 0.02)),
}
"""{name: (rate, clean, decoded)}; the last decoded clip is longer than its reference."""
