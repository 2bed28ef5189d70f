"""Sounds inside a page: cut to their loudest part, made audible, and encoded as a data URI.

A report must stay small, so a clip is cut to a few seconds around its loudest moment, resampled to at most 16 kHz
and stored in 16 bits (FLAC where soundfile is installed and it is smaller, else WAV), or as MP3 where a page is to hold
many. Sound that lies mostly above
human hearing is played slower instead of resampled, as a bat detector does. Whatever was done is said in words.
"""

from __future__ import annotations

import base64
import io
import struct
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

LONGEST = 3.0
RATE = 16_000
AUDIBLE = 12_000.0
"""Hz. Sound with most of its power above this is slowed down."""

_LEAST = 0.15
_HEADER = 44
_MP3_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


@dataclass(frozen=True)
class Sound:
    """A clip cut for a page: samples at their native rate, and the span of the clip they are (seconds)."""

    samples: Samples
    rate: int
    start: float
    whole: float

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate


@dataclass(frozen=True)
class Player:
    """A data URI to play, and what was done to the sound, in words ("" when nothing that matters)."""

    uri: str
    remark: str


def cut(samples: NDArray[np.floating], rate: int, longest: float = LONGEST) -> Sound:
    """The loudest `longest` seconds of a clip: mono, finite, float32, peak 1."""
    mono = np.asarray(samples, np.float32)
    mono = mono.mean(axis=1, dtype=np.float32) if mono.ndim == 2 else mono.ravel()
    mono = np.nan_to_num(mono, nan=0.0, posinf=0.0, neginf=0.0)
    whole = len(mono) / rate
    length = max(1, int(longest * rate))
    start = 0
    if len(mono) > length:
        power = np.concatenate([[0.0], np.cumsum(mono.astype(np.float64) ** 2)])
        start = int(np.argmax(power[length:] - power[:-length]))
    part = mono[start : start + length]
    peak = float(np.abs(part).max(initial=0.0))
    return Sound(part / peak if peak > 0 else part, rate, start / rate, whole)


def player(sound: Sound, budget: int, *, lossy: bool = False) -> Player | None:
    """The sound as a data URI of at most `budget` characters; None when that is too little to hear anything.

    `lossy` allows MP3, which takes a third of the room and is close enough to tell sounds apart by ear.
    """
    slower = _slowdown(sound)
    rate = sound.rate // slower
    samples = sound.samples if slower > 1 or rate <= RATE else _resampled(sound.samples, rate, RATE)
    rate = rate if slower > 1 else min(rate, RATE)
    remarks = [f"played {slower} times slower"] if slower > 1 else []
    encoded, kind = encode(samples, rate, lossy=lossy)
    most = budget * 3 // 4 - 32
    for share in (0.97, 0.85, 0.7):  # frames and headers do not shrink with the sound
        if len(encoded) <= most:
            break
        keep = int(len(samples) * most / len(encoded) * share)
        if keep < _LEAST * rate:
            return None
        samples = cut(samples, rate, keep / rate).samples
        encoded, kind = encode(samples, rate, lossy=lossy)
    if len(encoded) > most:
        return None
    heard = len(samples) / rate / slower
    if heard < sound.whole - 0.01:
        remarks.append(f"the loudest {heard:.1f} of {sound.whole:.1f} s")
    return Player(f"data:{kind};base64,{base64.b64encode(encoded).decode()}", ", ".join(remarks))


def encode(samples: Samples, rate: int, *, lossy: bool = False) -> tuple[bytes, str]:
    """16-bit mono FLAC or WAV, or MP3 where that is allowed: whichever is smallest, and its media type."""
    pcm = np.round(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2")
    made = [(_wav(pcm, rate), "audio/wav"), (_compressed(pcm, rate, "FLAC", "PCM_16"), "audio/flac")]
    if lossy:
        made.append((_mp3(samples, rate), "audio/mpeg"))
    return min(((data, kind) for data, kind in made if data is not None), key=lambda item: len(item[0]))


def _wav(pcm: NDArray[np.int16], rate: int) -> bytes:
    data = pcm.tobytes()
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", _HEADER - 8 + len(data), b"WAVE", b"fmt ", 16, 1, 1, rate,
                         2 * rate, 2, 16, b"data", len(data))  # fmt: skip
    return header + data


def _mp3(samples: Samples, rate: int) -> bytes | None:
    """MP3 at the next rate that it knows; of slowed sound every rate occurs."""
    known = next((own for own in _MP3_RATES if own >= rate), None)
    if known is None:
        return None
    heard = samples if known == rate else _resampled(samples, rate, known)
    return _compressed(np.round(np.clip(heard, -1.0, 1.0) * 32767.0).astype("<i2"), known, "MP3", "MPEG_LAYER_III")


def _compressed(pcm: NDArray[np.int16], rate: int, format: str, subtype: str) -> bytes | None:
    try:
        soundfile = import_module("soundfile")
    except (ImportError, OSError):
        return None
    out = io.BytesIO()
    try:
        soundfile.write(out, pcm, rate, format=format, subtype=subtype)
    except (RuntimeError, ValueError, TypeError):  # a rate it has no code for, or an older libsndfile
        return None
    return out.getvalue()


def _slowdown(sound: Sound) -> int:
    """1, or the power of two that brings sound from above hearing down to it."""
    if sound.rate <= 4 * AUDIBLE or len(sound.samples) < 64:
        return 1
    power = np.abs(np.fft.rfft(sound.samples - sound.samples.mean())) ** 2
    frequency = np.fft.rfftfreq(len(sound.samples), 1 / sound.rate)
    total = float(power.sum())
    if total == 0 or float(power[frequency > AUDIBLE].sum()) < total / 2:
        return 1
    slower = 1
    while sound.rate / slower > 2 * RATE:
        slower *= 2
    return slower


def _resampled(samples: Samples, rate: int, wanted: int) -> Samples:
    from math import gcd

    from scipy.signal import resample_poly

    shared = gcd(rate, wanted)
    made = resample_poly(samples, wanted // shared, rate // shared).astype(np.float32)
    peak = float(np.abs(made).max(initial=0.0))
    return np.asarray(made / peak if peak > 1 else made, np.float32)
