"""PocketSphinx with the English model in its wheel: a weak recogniser that runs anywhere.

Each clip is decoded by itself: the noise tracker and the cepstral mean are reset before it, so that what is written
does not depend on the clips before. The package holds the interpreter lock while it decodes, so clips are shared out
among processes, not threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from earmark.codecs.tasks.contract import Heard
from earmark.corpora.clips import Clip
from earmark.embed.hearing import listen, sentence
from earmark.errors import UsageError, require
from earmark.extractors.progress import Progress, telling
from earmark.workers import thread_count

__all__ = ["PocketSphinx"]

RATE = 16000
FULL_SCALE = 32000.0
WORTH_A_POOL = 16  # clips under which starting processes costs more than they save


class PocketSphinx:
    """`effort` is what it searches: `full` (three passes) or `fast` (narrower beams, half the time, more errors)."""

    def __init__(self, *, effort: str = "full", processes: int | None = None) -> None:
        if effort not in _SEARCH:
            raise UsageError(f"There is no effort {effort!r}: choose from {', '.join(_SEARCH)}.")
        require("pocketsphinx", "Recognition by PocketSphinx", "codecs")
        self.effort, self.processes = effort, thread_count(processes)
        self.name = "pocketsphinx" if effort == "full" else f"pocketsphinx?effort={effort}"

    def transcribe(self, clips: Sequence[Clip], *, progress: Progress = False) -> Heard:
        texts: dict[str, str] = {}
        failures: dict[str, str] = {}
        with telling(progress, len(clips), "pocketsphinx", "clip") as tell:
            for clip, (text, reason) in zip(clips, self._answers(clips), strict=True):
                (failures if reason else texts)[clip.id] = reason or text
                tell(len(texts) + len(failures))
        return Heard(tuple(texts), texts=tuple(texts.values()), failures=failures, model=self.name)

    def _answers(self, clips: Sequence[Clip]) -> Iterator[tuple[str, str]]:
        work = partial(_transcribe, effort=self.effort)
        if self.processes == 1 or len(clips) < WORTH_A_POOL:
            yield from map(work, clips)
            return
        with ProcessPoolExecutor(self.processes, mp_context=get_context("spawn")) as pool:
            yield from _in_order(pool, work, clips)


def _in_order(pool: ProcessPoolExecutor, work: Any, clips: Iterable[Clip]) -> Iterator[tuple[str, str]]:
    yield from pool.map(work, clips, chunksize=4)


_SEARCH: dict[str, dict[str, Any]] = {
    "full": {},
    "fast": {"beam": 1e-40, "wbeam": 1e-24, "pbeam": 1e-40},
}


@lru_cache(maxsize=2)
def _decoder(effort: str) -> Any:
    """One for each process: it has a state and is not for several threads."""
    package = require("pocketsphinx", "Recognition by PocketSphinx", "codecs")
    return package.Decoder(samprate=RATE, loglevel="FATAL", **_SEARCH[effort])


def _transcribe(clip: Clip, effort: str) -> tuple[str, str]:
    """What is said in a clip, or why it is not known. The clip is made loudest first, as for every model here."""
    sound = listen(clip, RATE)
    if isinstance(sound, Exception):
        return "", sentence(sound)
    if not np.isfinite(sound.waveform).all():
        return "", "it holds NaN or infinite samples"
    decoder = _decoder(effort)
    decoder.reinit_feat()
    decoder.start_utt()
    decoder.process_raw((sound.waveform * FULL_SCALE).astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
    found = decoder.hyp()
    return ("" if found is None else found.hypstr), ""
