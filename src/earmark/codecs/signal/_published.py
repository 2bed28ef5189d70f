"""The five metrics as Codec-SUPERB's code computes them (voidful/Codec-SUPERB, SoundCodec/metrics.py).

    stft, mel   at the clip's rate: windows of 2048 and 512, the definitions of `_spectral`
    then        both clips to 16 kHz by julius, for PESQ, and they stay there:
    pesq        the whole clip, however long
    stoi        16 kHz to 10 kHz by scipy's default filter; silence is judged one sample early; 1e-10 in denominators
    f0_corr     the samples at 16 kHz labelled 22,050 Hz; unvoiced frames dropped from each clip by itself; cents minus
                their median; unconstrained dynamic time warping; correlation along the path

Its failure values are statuses here, and their reasons end with the value that its code enters (`entered`).

Numeric policy: its code works in float32. Samples at 16 and at 10 kHz are float32 here too, all else is float64. Its
spectra hold rounding where a clip holds nothing, near the floor of 1e-5, so that its two distances differ in the fifth
digit from one processor to another; here they are those of exact spectra.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.signal import _intelligibility as stoi_of
from earmark.codecs.signal._julius import resampled
from earmark.codecs.signal._pitch import cents, pitch_track
from earmark.codecs.signal._quality import LONGEST, RATE, why_no_utterance
from earmark.codecs.signal._sound import Pair, Sound
from earmark.codecs.signal._spectral import BANDS, BLOCK, FLOOR, WINDOWS, framed, hann, mel_bank, too_short
from earmark.errors import require

Floats = NDArray[np.float64]

LABEL = 22_050
TINY = 1e-10
ENTERED = {
    "stft_distance": "nan, which its means leave out", "mel_distance": "nan, which its means leave out",
    "pesq": "1.0", "stoi": "0.0", "f0_corr": "0.0",
}  # fmt: skip
"""What Codec-SUPERB's code writes down where it has no value."""


def entered(measured: Measured, name: str, value: float | None = None) -> Measured:
    """A status whose reason says which value the code enters: its failure value, unless another is given."""
    if measured.status == "ok" or name not in ENTERED:
        return measured
    what = ENTERED[name] if value is None else f"{value:.4g}"
    return measured._replace(reason=f"{measured.reason}; Codec-SUPERB's code enters {what}")


# --- distances --------------------------------------------------------------------------------------------------


def stft_distance(pair: Pair) -> Measured:
    """`_spectral.stft_distance` in float64."""
    return too_short(pair) or Measured(_distances(pair)[0])


def mel_distance(pair: Pair) -> Measured:
    """`_spectral.mel_distance` in float64."""
    return too_short(pair) or Measured(_distances(pair)[1])


def _distances(pair: Pair) -> tuple[float, float]:
    return pair.decoded.once("exact distances", lambda: _exact_distances(pair))


def _exact_distances(pair: Pair) -> tuple[float, float]:
    """Both distances in one pass, a block of frames at a time: whole spectra of a long clip are gigabytes."""
    totals = np.zeros(2)
    for window, bands in zip(WINDOWS, BANDS, strict=True):
        bank = mel_bank(pair.reference.rate, window, bands).astype(np.float64)
        clean, heard = (framed(sound.samples, window) for sound in (pair.reference, pair.decoded))
        block = max(1, BLOCK // window)
        sums = np.zeros(2)
        for start in range(0, len(clean), block):
            a, b = (_magnitudes(frames[start : start + block], window) for frames in (clean, heard))
            sums += _two_terms(a, b), _two_terms(a @ bank, b @ bank)
        totals += sums / (len(clean) * np.array([window // 2 + 1, bands]))
    return float(totals[0]), float(totals[1])


def _magnitudes(frames: NDArray[np.float32], window: int) -> Floats:
    return np.asarray(np.abs(scipy.fft.rfft(frames.astype(np.float64) * hann(window), axis=1)))


def _two_terms(a: Floats, b: Floats) -> float:
    """The sums of the logarithmic and of the linear differences."""
    floor = float(FLOOR)
    logarithms = np.log10(np.maximum(a, floor)) - np.log10(np.maximum(b, floor))
    return float(2.0 * np.abs(logarithms).sum() + np.abs(a - b).sum())


# --- at 16 kHz --------------------------------------------------------------------------------------------------


def _at_16_khz(sound: Sound) -> Waveform:
    return sound.once("julius", lambda: resampled(sound.samples, sound.rate, RATE))


def pesq(pair: Pair) -> Measured:
    """Wide-band PESQ of the whole clip. Clips over 20 s run in a process of their own.

    The package keeps room for 50 utterances and does not look whether there are more: a long clip can end the process
    that scores it.
    """
    package = require("pesq", "PESQ scores", "codecs")
    clean, heard = _at_16_khz(pair.reference), _at_16_khz(pair.decoded)
    try:
        value = (_apart if len(clean) > LONGEST else _wide_band)(package, clean, heard)
    except package.NoUtterancesError:
        return entered(why_no_utterance(package, clean), "pesq")
    except package.BufferTooShortError:
        return entered(Measured.not_applicable("the clip is shorter than 0.25 s"), "pesq")
    except ChildProcessError as error:  # what the code would do too
        return Measured.failed(str(error))
    except Exception as error:  # whatever it is, the code enters the same
        return entered(Measured.failed(f"{type(error).__name__}: {error}"), "pesq")
    return Measured(value)


def _wide_band(package: Any, clean: Waveform, heard: Waveform) -> float:
    return float(package.pesq(RATE, clean, heard, "wb"))


_SCORE = """
import sys, numpy, pesq
clean, heard = numpy.frombuffer(sys.stdin.buffer.read(), numpy.float32).reshape(2, -1)
try:
    print("value", repr(float(pesq.pesq(%d, clean, heard, "wb"))))
except Exception as error:
    print(type(error).__name__, error)
"""


def _apart(package: Any, clean: Waveform, heard: Waveform) -> float:
    """The same in a fresh interpreter."""
    call = [sys.executable, "-c", _SCORE % RATE]
    done = subprocess.run(call, input=np.stack([clean, heard]).tobytes(), capture_output=True, check=False)
    if done.returncode:
        raise ChildProcessError(
            f"PESQ ended its process (code {done.returncode}) on a clip of {len(clean) / RATE:.0f} s"
        )
    name, _, words = done.stdout.decode().strip().partition(" ")
    if name == "value":
        return float(words)
    raise getattr(package, name, RuntimeError)(words)


def stoi(pair: Pair) -> Measured:
    """STOI between 0 and 1.

    The level of a frame is that of the samples one earlier, the first frame's beginning with the clip's last sample;
    spectra are divided by the sum of the window, which decides how much the 1e-10 weigh.
    """
    x, loud = pair.reference.once("published stoi", lambda: _loud_frames(_framed(pair.reference)))
    if np.count_nonzero(loud) <= stoi_of.RUN:
        few = Measured.not_applicable("fewer than 30 frames (0.4 s) of the reference are above its silence")
        return entered(few, "stoi")
    y = _framed(pair.decoded)[0]
    a, b = (stoi_of.envelopes(frames[loud]) / stoi_of.window().sum() for frames in (x, y))
    return Measured(min(max(_mean_correlation(a, b), 0.0), 1.0))


def _framed(sound: Sound) -> tuple[Floats, Floats]:
    """Windowed frames [T, 256] at 10 kHz, and those that begin one sample early."""
    from scipy.signal import resample_poly  # half a second to import

    samples = resample_poly(_at_16_khz(sound), stoi_of.RATE, RATE)
    if len(samples) <= stoi_of.FRAME:
        return np.empty((0, stoi_of.FRAME)), np.empty((0, stoi_of.FRAME))
    early = np.concatenate([samples[-1:], samples])
    frames = np.lib.stride_tricks.sliding_window_view(early, stoi_of.FRAME)
    starts = np.arange(0, len(samples) - stoi_of.FRAME, stoi_of.HOP)
    return frames[starts + 1] * stoi_of.window(), frames[starts] * stoi_of.window()


def _loud_frames(both: tuple[Floats, Floats]) -> tuple[Floats, NDArray[np.bool_]]:
    frames, early = both
    if not len(frames):
        return frames, np.zeros(0, bool)
    level = 20.0 * np.log10(np.linalg.norm(early, axis=1) / np.sqrt(stoi_of.FRAME) + TINY)
    return frames, level > level.max() - stoi_of.RANGE_DB


def _mean_correlation(x: Floats, y: Floats) -> float:
    a, b = (np.lib.stride_tricks.sliding_window_view(c, stoi_of.RUN, axis=1) for c in (x, y))
    energy_a, energy_b = (np.einsum("bmr,bmr->bm", c, c)[..., None] for c in (a, b))
    scaled = np.minimum(b * np.sqrt(energy_a / (energy_b + TINY)), a * stoi_of.CLIP)
    a, scaled = (_normalised(c - c.mean(axis=2, keepdims=True)) for c in (a, scaled))
    return float(np.einsum("bmr,bmr->bm", a, scaled).mean())


def _normalised(runs: Floats) -> Floats:
    return np.asarray(runs / (np.linalg.norm(runs, axis=2, keepdims=True) + TINY))


def f0_corr(pair: Pair) -> Measured:
    """Correlation of the pitch of the two clips along the cheapest path that warps one into the other."""
    from earmark.codecs.kernels import warping_path  # compiled: whoever asks for facts alone needs it not

    praat = require("parselmouth", "Pitch metrics", "codecs")
    try:
        clean, heard = (_voiced_cents(sound) for sound in (pair.reference, pair.decoded))
    except praat.PraatError:
        return entered(Measured.not_applicable("the clip is too short for a pitch"), "f0_corr")
    if len(clean) < 2:
        return entered(Measured.not_applicable("the reference has no voiced frames"), "f0_corr")
    if len(heard) < 2:
        return entered(Measured.failed("the decoded clip has no voiced frames"), "f0_corr")
    path = warping_path(clean, heard)
    # Its code correlates in float32, in which a pitch that hardly moves does not.
    a, b = clean[path[:, 0]].astype(np.float32), heard[path[:, 1]].astype(np.float32)
    if not np.ptp(a):
        return entered(Measured.not_applicable("the pitch of the reference does not move"), "f0_corr")
    if not np.ptp(b):
        return entered(Measured.failed("the pitch of the decoded clip does not move"), "f0_corr")
    return Measured(min(max(float(np.corrcoef(a.astype(np.float64), b.astype(np.float64))[0, 1]), -1.0), 1.0))


def _voiced_cents(sound: Sound) -> Floats:
    """Cents from their median, of the voiced frames of the samples at 16 kHz under the label of 22,050 Hz."""

    def make() -> Floats:
        track = pitch_track(_at_16_khz(sound), LABEL)
        made = cents(track[track > 0])
        return made - np.median(made) if len(made) else made

    return sound.once("published pitch", make)


PUBLISHED: Mapping[str, Callable[[Pair], Measured]] = {
    "stft_distance": stft_distance, "mel_distance": mel_distance, "pesq": pesq, "stoi": stoi, "f0_corr": f0_corr,
}  # fmt: skip
"""The metrics that Codec-SUPERB's code has, as it computes them."""
