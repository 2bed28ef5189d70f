"""Clips to texts, with a recogniser in worker processes: threads here decode the clips, processes write them down.

A recogniser that holds the interpreter lock then uses every core, and one that crashes or hangs on a clip costs the
clip. What is written of a clip depends on that clip alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from earmark.corpora.clips import Clip
from earmark.embedding.hearing import listen
from earmark.errors import EarmarkError
from earmark.extractors.contract import Waveform
from earmark.probes._contract import Responses
from earmark.progress import Progress, progress_bar
from earmark.runs.engine import reason_of
from earmark.runs.pool import ITEM_SECONDS, Processes
from earmark.workers import Workers

RATE = 16000


def transcribe_clips(
    clips: Sequence[Clip],
    recognise: Callable[[Waveform], str],
    *,
    name: str,
    processes: int,
    progress: Progress = False,
) -> Responses:
    """What `recognise`, a function that a worker can import, makes of each clip: mono, 16 kHz, peak 1.

    Digital silence has no words, whatever a recogniser would make of it.
    """
    texts: dict[str, str] = {}
    failures: dict[str, str] = {}
    count = max(1, min(processes, len(clips)))
    with (
        Processes(recognise, count, limit=ITEM_SECONDS) as pool,
        Workers(count) as workers,
        progress_bar(progress, len(clips), name, "clip") as tick,
    ):
        for clip, answer in zip(clips, workers.map(lambda clip: _answer(clip, pool), clips), strict=True):
            if isinstance(answer, Exception):
                failures[clip.id] = reason_of(answer)
            else:
                texts[clip.id] = answer
            tick()
    return Responses(tuple(texts), texts=tuple(texts.values()), failures=failures, model=name)


def _answer(clip: Clip, pool: Processes) -> str | Exception:
    """What is said in a clip, or why it is not known."""
    sound = listen(clip, RATE)
    if isinstance(sound, Exception):
        return sound
    if not np.isfinite(sound.waveform).all():
        return EarmarkError("it holds NaN or infinite samples")
    if not sound.waveform.any():
        return ""
    try:
        return str(pool.call(sound.waveform))
    except EarmarkError as error:
        return error
