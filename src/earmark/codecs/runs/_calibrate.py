"""The delay of each codec: declared on its card, else calibrated once, on a few clips of the run that suit it.

A clip suits when it is long enough and loud enough to say where its sound begins. Clips are taken evenly from the run,
so that the delay depends neither on the number of workers nor on what was in the cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from earmark import audio
from earmark.codecs.alignment import Delay, calibrate, declared
from earmark.codecs.contract import ENCODE_ONLY, Waveform
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import Sample
from earmark.corpora.clips import Clip
from earmark.errors import InputError, Unreachable
from earmark.runs.identity import Stage
from earmark.runs.store import Cache, Entry

CALIBRATE = Stage(
    "calibrate", 2, libraries=("numpy", "scipy", "soxr"), modules=("codecs/alignment.py", "codecs/runs/_calibrate.py")
)
CLIPS = 12
KIND = "codec-delays"
UNSUITED = "no clip suits calibration, so no delay is taken out"
_LEAST_SECONDS = 0.5
_MOST_SECONDS = 30.0
_LEAST_LEVEL = 1e-3  # root mean square
_TRIED = 4  # clips that are looked at for each that is wanted


def choose_samples(samples: Sequence[Sample], wanted: int = CLIPS) -> list[Sample]:
    """Up to `wanted` clips that suit, evenly from all of them; each is decoded to see whether it does."""
    tried = min(len(samples), _TRIED * wanted)
    rows: list[int] = np.unique(np.linspace(0, len(samples) - 1, tried).round().astype(int)).tolist()
    # Spread the order too: the first that suit are kept, and must not be the run's beginning alone.
    stride = max(1, len(rows) // wanted)
    suitable: list[Sample] = []
    for row in [row for start in range(stride) for row in rows[start::stride]]:
        if len(suitable) == wanted:
            break
        if _suits(samples[row].clip):
            suitable.append(samples[row])
    return suitable


def _suits(clip: Clip) -> bool:
    try:
        samples, rate = clip.read()
    except Unreachable:
        raise
    except Exception:  # what is wrong with it is told when it is coded
        return False
    if not _LEAST_SECONDS * rate <= len(samples) <= _MOST_SECONDS * rate:
        return False
    return bool(np.sqrt(np.mean(np.square(samples, dtype=np.float64))) >= _LEAST_LEVEL)


def known_delay(cache: Cache, system: CodecSystem, samples: Sequence[Sample]) -> Delay | None:
    """The delay where the card declares it or an earlier run calibrated it on the same clips; none of a tokenizer."""
    if system.card.encode_only:
        return Delay(0.0, "waveform", 0.0, 0, ENCODE_ONLY)
    delay = declared(system.card)
    if delay is not None:
        return delay
    if not samples:
        return Delay(0.0, "waveform", 0.0, 0, UNSUITED)
    entry = cache.get(KIND, _key(system, samples))
    return None if entry is None else Delay(*entry.meta["delay"])


def _key(system: CodecSystem, samples: Sequence[Sample]) -> str:
    return CALIBRATE.key(system.key, [sample.digest for sample in samples])


def calibrated(
    cache: Cache, system: CodecSystem, samples: Sequence[Sample], decoded: Sequence[Waveform | None]
) -> Delay:
    """The delay from what the codec made of the clips; None stands for a clip that it failed on."""
    pairs: list[tuple[Waveform, Waveform, int]] = []
    for sample, heard in zip(samples, decoded, strict=True):
        if heard is not None:
            reference, rate = sample.clip.read()
            pairs.append((reference, heard, rate))
    if not pairs:
        delay = Delay(0.0, "waveform", 0.0, 0, "the codec failed on every clip chosen for calibration")
    else:
        common = Counter(rate for _, _, rate in pairs).most_common(1)[0][0]
        try:
            delay = calibrate(
                [(audio.resample(first, rate, common), audio.resample(second, rate, common))
                 for first, second, rate in pairs],
                common,
            )  # fmt: skip
        except InputError as error:  # a decoder of silence has no delay, and its clips say so themselves
            delay = Delay(0.0, "waveform", 0.0, 0, str(error))
    if len(pairs) == len(samples):  # a failure may pass: what was found without some clips is not kept
        cache.put(KIND, _key(system, samples), Entry({"delay": list(delay)}))
    return delay
