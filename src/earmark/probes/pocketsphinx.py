"""PocketSphinx with the English model in its wheel: a weak recogniser that runs anywhere.

Each clip is decoded by itself: what is written does not depend on the clips before it, nor on how many processes
share the work. A noise of 60 dB under full scale, the same for all, is laid under every clip,
clean or coded: the model was trained on recordings and stumbles over digital silence. Without it, codecs that hiss a
little raise the score of synthetic speech.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from earmark.corpora.clips import Clip
from earmark.errors import UsageError, require
from earmark.extractors.contract import Waveform
from earmark.probes._contract import Responses
from earmark.probes._transcribing import RATE, transcribe_clips
from earmark.progress import Progress
from earmark.workers import thread_count

FULL_SCALE = 32000.0
FLOOR = 30.0  # deviation of the noise, in steps of 16 bits
_SEARCH: dict[str, dict[str, Any]] = {
    "full": {},
    "fast": {"beam": 1e-40, "wbeam": 1e-24, "pbeam": 1e-40},
}


class PocketSphinx:
    """`effort` is how wide it searches: `full`, or `fast` (narrower beams, half the time, more errors)."""

    def __init__(self, *, effort: str = "full", processes: int | None = None) -> None:
        if effort not in _SEARCH:
            raise UsageError(f"There is no effort {effort!r}: choose from {', '.join(_SEARCH)}.")
        require("pocketsphinx", "Recognition by PocketSphinx", "codecs")
        self.effort, self.processes = effort, thread_count(processes)
        self.version = metadata.version("pocketsphinx")
        self.name = "pocketsphinx" if effort == "full" else f"pocketsphinx?effort={effort}"

    def transcribe(self, clips: Sequence[Clip], *, progress: Progress = False) -> Responses:
        recognise = functools.partial(recognised, self.effort)
        return transcribe_clips(clips, recognise, name=self.name, processes=self.processes, progress=progress)


def recognised(effort: str, waveform: Waveform) -> str:
    """What is said in a waveform at 16 kHz."""
    decoder = _decoder(effort)
    decoder.reinit_feat()  # the noise tracker and the cepstral mean start anew: no clip depends on those before it
    decoder.start_utt()
    decoder.process_raw(_sixteen_bits(waveform), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return "" if hypothesis is None else str(hypothesis.hypstr)


@functools.cache
def _decoder(effort: str) -> Any:
    from pocketsphinx import Decoder

    return Decoder(samprate=RATE, loglevel="FATAL", **_SEARCH[effort])


def _sixteen_bits(waveform: Waveform) -> bytes:
    floor = np.random.default_rng(0).normal(0.0, FLOOR, len(waveform))
    return np.clip(np.round(waveform * FULL_SCALE + floor), -32768, 32767).astype("<i2").tobytes()
