"""Make the golden values of the codec metrics, by slow definitions of their own.

python -m tests.golden.make_codec_metrics        (from the repository root; only when a definition changes)

Nothing of Earmark is imported. Everything is float64 and written out: frames in a loop, mel triangles one by one, STOI
segment by segment. Praat's pitch tracker and the PESQ package are parts of the definitions and are called; so is soxr,
by which the mended definitions come to 16 kHz. The reference's definitions are those of `tests.codecs.published`, which
needs torch.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import parselmouth
import pesq
import scipy.signal
import soxr
from tests.codecs import published
from tests.codecs.pairs import PAIRS

OUT = Path(__file__).parent / "codec_metrics" / "expected.json"


def magnitudes(samples, window):
    hann = np.array([0.5 - 0.5 * math.cos(2 * math.pi * k / window) for k in range(window)])
    padded = np.pad(samples.astype(np.float64), window // 2, mode="reflect")
    count = 1 + len(samples) // (window // 4)
    frames = [padded[t * window // 4 : t * window // 4 + window] * hann for t in range(count)]
    return np.array([np.abs(np.fft.rfft(frame)) for frame in frames])


def two_terms(a, b):
    logs = np.log10(np.maximum(a, 1e-5) ** 2) - np.log10(np.maximum(b, 1e-5) ** 2)
    return np.abs(logs).mean() + np.abs(a - b).mean()


def mel_of(hertz):
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)


def hertz_of(mel):
    return 200 * mel / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)


def mel_bank(rate, window, bands):
    corners = [hertz_of(mel_of(rate / 2) * k / (bands + 1)) for k in range(bands + 2)]
    bank = np.zeros((bands, window // 2 + 1))
    for band in range(bands):
        low, peak, high = corners[band : band + 3]
        for b in range(window // 2 + 1):
            hertz = b * rate / window
            if low < hertz <= peak:
                bank[band, b] = (hertz - low) / (peak - low)
            elif peak < hertz < high:
                bank[band, b] = (high - hertz) / (high - peak)
        bank[band] *= 2 / (high - low)
    return bank


def stft_distance(clean, heard, rate):
    return sum(two_terms(magnitudes(clean, w), magnitudes(heard, w)) for w in (2048, 512))


def mel_distance(clean, heard, rate):
    total = 0.0
    for window, bands in ((2048, 150), (512, 80)):
        bank = mel_bank(rate, window, bands).T
        total += two_terms(magnitudes(clean, window) @ bank, magnitudes(heard, window) @ bank)
    return total


def to_10k(samples, rate):
    """Octave's resampler, which STOI was published with."""
    up, down = 10000 // math.gcd(10000, rate), rate // math.gcd(10000, rate)
    cutoff = 1 / (2 * max(up, down))
    half = math.ceil((60 - 8) / (28.714 * cutoff / 10))
    t = np.arange(-half, half + 1)
    taps = 2 * up * cutoff * np.sinc(2 * cutoff * t) * np.kaiser(2 * half + 1, 0.1102 * (60 - 8.7))
    return scipy.signal.resample_poly(samples.astype(np.float64), up, down, window=taps / taps.sum())


def stoi(clean, heard, rate):
    x, y = to_10k(clean, rate), to_10k(heard, rate)
    hann = np.hanning(258)[1:-1]
    starts = range(0, len(x) - 256, 128)
    levels = [20 * math.log10(np.linalg.norm(hann * x[i : i + 256]) + 1e-16) for i in starts]
    kept = [i for i, level in zip(starts, levels, strict=True) if level > max(levels) - 40]
    joined = np.zeros((2, 128 * (len(kept) - 1) + 256))
    for place, i in enumerate(kept):
        joined[0, 128 * place : 128 * place + 256] += hann * x[i : i + 256]
        joined[1, 128 * place : 128 * place + 256] += hann * y[i : i + 256]
    envelopes = []
    for signal in joined:
        power = [np.abs(np.fft.rfft(hann * signal[i : i + 256], 512)) ** 2 for i in range(0, len(signal) - 256, 128)]
        bands = []
        for band in range(15):
            edges = [150 * 2 ** ((2 * band + side) / 6) for side in (-1, 1)]
            low, high = (int(np.argmin([(b * 10000 / 512 - edge) ** 2 for b in range(257)])) for edge in edges)
            bands.append([math.sqrt(frame[low:high].sum()) for frame in power])
        envelopes.append(np.array(bands))
    x, y = envelopes
    values = []
    for m in range(30, x.shape[1] + 1):
        for band in range(15):
            a, b = x[band, m - 30 : m], y[band, m - 30 : m]
            b = np.minimum(b * np.linalg.norm(a) / np.linalg.norm(b), a * (1 + 10 ** (15 / 20)))
            a, b = a - a.mean(), b - b.mean()
            values.append(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
    return float(np.mean(values))


def to_16k(samples, rate):
    return soxr.resample(samples.astype(np.float32), rate, 16000, quality="HQ").astype(np.float64)


def pitch(samples, label):
    track = parselmouth.Sound(samples, label).to_pitch_ac(
        time_step=256 / 22050, pitch_floor=50.0, pitch_ceiling=1100.0, voicing_threshold=0.6
    )
    return track.selected_array["frequency"]


def f0_mended(clean, heard, rate):
    a, b = (pitch(to_16k(samples, rate), 16000.0) for samples in (clean, heard))
    both = [k for k in range(len(a)) if a[k] > 0 and b[k] > 0]
    correlation = float(np.corrcoef(np.log(a[both]), np.log(b[both]))[0, 1])
    return correlation, sum((a[k] > 0) != (b[k] > 0) for k in range(len(a))) / len(a)


def wide_band_pesq(clean, heard):
    return float(pesq.pesq(16000, clean.astype(np.float32), heard.astype(np.float32), "wb"))


def si_sdr(clean, heard):
    s, e = clean.astype(np.float64), heard.astype(np.float64)
    s, e = s - s.mean(), e - e.mean()
    target = (s @ e) / (s @ s) * s
    return 10 * math.log10((target @ target) / ((e - target) @ (e - target)))


def expected(rate, clean, heard):
    found = {"reference": published.expected(clean, heard, rate)}
    if len(clean) == len(heard):
        correlation, voicing = f0_mended(clean, heard, rate)
        found["mended"] = {
            "stft_distance": stft_distance(clean, heard, rate),
            "mel_distance": mel_distance(clean, heard, rate),
            "pesq": wide_band_pesq(*(to_16k(samples, rate) for samples in (clean, heard))),
            "stoi": stoi(clean, heard, rate),
            "f0_corr": correlation,
            "f0_voicing_error": voicing,
            "si_sdr": si_sdr(clean, heard),
        }
    return found


def main() -> None:
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({name: expected(*pair) for name, pair in PAIRS.items()}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
