"""A tokenizer of your own: `encode` without `decode`. Its rate and its tokens are measured, and what they tell apart.

earmark check examples/my_tokenizer.py:LoudBands
earmark codec run --codecs examples/my_tokenizer.py:LoudBands --corpus sounds/ --category speech --into run
earmark run --extractors examples/my_tokenizer.py:LoudBands --corpus sounds/ --into run2
"""

import numpy as np

BANDS, LEVELS = 32, 16


class LoudBands:
    """Two tokens every 20 ms: which of 32 bands is the loudest, and how loud it is, in steps of 4 dB."""

    card = {
        "name": "loud_bands@0.45", "family": "loud_bands", "title": "The loudest band", "licence": "CC0-1.0",
        "rate": 16000, "kbps": 0.45, "frame_rate": 50.0, "codebook_sizes": (BANDS, LEVELS),
    }  # fmt: skip

    def encode(self, waveform):
        """Tokens [codebooks, frames] of a mono float32 waveform at 16 kHz."""
        frames = np.pad(waveform, (0, -len(waveform) % 320)).reshape(-1, 320)
        power = np.abs(np.fft.rfft(frames * np.hanning(320), axis=1)[:, 1:]) ** 2  # 160 bins up to 8 kHz
        bands = power.reshape(len(power), BANDS, -1).sum(2)
        level = 10 * np.log10(bands.max(1) + 1e-6)
        return np.stack([bands.argmax(1), np.clip((level + 30) // 4, 0, LEVELS - 1).astype(int)])

    def embed(self, tokens):
        """Vectors [frames, D] of tokens: bands lie in a row, and loudness beside them."""
        band, level = tokens
        return np.stack([band / BANDS, level / LEVELS], axis=1).astype(np.float32)
