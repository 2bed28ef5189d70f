"""Perceptual evaluation of speech quality (PESQ), wide band, by the package pesq.

    both at 16 kHz -- clips over 20 s in equal parts of at most 20 s --> mean over the parts that hold speech

ITU-T P.862.2. The package keeps room for 50 utterances and does not look whether there are more: a longer clip can
overwrite memory. An utterance and the pause after it take 0.4 s at least, so that 20 s are safe.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from earmark.codecs.contract import Measured
from earmark.codecs.signal._sound import Pair, is_silent
from earmark.errors import require
from earmark.scores.metrics import metric

RATE = 16_000
SHORTEST = RATE // 4
LONGEST = 20 * RATE


@metric(
    range=(-0.5, 5.0), standard=True, package=("pesq", "PESQ scores"), paper="ITU-T P.862.2",
    words="predicted opinion of speech quality, wide band",
)  # fmt: skip
def pesq(pair: Pair) -> Measured:
    """Mean opinion score from 1.04 to 4.644, higher is better; 4.644 for the same waveform.

    Not applicable under 0.25 s and where the reference holds no utterance. The resampler to 16 kHz moves the value by
    up to 0.07 on speech at other rates. Clips at 8 kHz are resampled too: wide-band scores of narrow-band speech rank
    codecs, and are no telephone MOS.
    """
    package = require("pesq", "PESQ scores", "codecs")
    clean, heard = pair.reference.at(RATE), pair.decoded.at(RATE)
    if len(clean) < SHORTEST:
        return Measured.not_applicable("the clip is shorter than 0.25 s")
    parts = math.ceil(len(clean) / LONGEST)
    matching = zip(np.array_split(clean, parts), np.array_split(heard, parts), strict=True)
    found = [_one_part(package, *part) for part in matching]
    failed = next((part for part in found if part.status == "failed"), None)
    if failed is not None:
        return failed
    values = [part.value for part in found if part.value is not None]
    return Measured(float(np.mean(values))) if values else found[0]


def _one_part(package: Any, clean: Any, heard: Any) -> Measured:
    if is_silent(clean):
        return _no_utterance()
    if is_silent(heard):
        return Measured.failed("a part of the decoded clip is silent and the reference is not")
    try:
        return Measured(float(package.pesq(RATE, clean, heard, "wb")))
    except package.NoUtterancesError:
        return why_no_utterance(package, clean)
    except package.BufferTooShortError:
        return Measured.not_applicable("the clip is shorter than 0.25 s")


def why_no_utterance(package: Any, clean: Any) -> Measured:
    """PESQ looks for the reference's utterances in the decoded clip: which of the two has none?"""
    try:
        package.pesq(RATE, clean, clean, "wb")
    except package.NoUtterancesError:
        return _no_utterance()
    return Measured.failed("PESQ finds no utterance of the reference in the decoded clip")


def _no_utterance() -> Measured:
    return Measured.not_applicable("PESQ finds no utterance in the reference")
