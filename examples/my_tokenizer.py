"""A tokenizer of your own: `encode` without `decode`. Its rate and tokens are measured, and what they tell apart.

earmark codec run --codecs examples/my_tokenizer.py:LoudBands --corpus sounds/ --category speech --into run
earmark run --extractors examples/my_tokenizer.py:LoudBands --corpus sounds/ --into run2
"""

import numpy as np


class LoudBands:
    """Two tokens every 20 ms: which of 32 bands is the loudest, and how loud it is, in 16 steps of 4 dB."""

    card = {
        "name": "loud_bands@0.45", "family": "loud_bands", "title": "The loudest band", "licence": "CC0-1.0",
        "rate": 16000, "kbps": 0.45, "frame_rate": 50.0, "codebook_sizes": (32, 16),
    }  # fmt: skip

    def encode(self, waveform):
        """Tokens [codebooks, frames] of a mono float32 waveform at 16 kHz."""
        frames = np.pad(waveform, (0, -len(waveform) % 320)).reshape(-1, 320)
        power = np.abs(np.fft.rfft(frames * np.hanning(320))[:, 1:]) ** 2
        bands = power.reshape(len(power), 32, 5).sum(2)
        level = 10 * np.log10(bands.max(1) + 1e-6)
        return np.stack([bands.argmax(1), np.clip((level + 30) // 4, 0, 15).astype(int)])

    def embed(self, tokens):
        """Vectors [frames, D] of tokens: bands lie in a row, and loudness beside them."""
        return (tokens.T / [32, 16]).astype(np.float32)
