"""PocketSphinx with the English model in its wheel: a weak recogniser that runs anywhere.

Each clip is decoded by itself: what is written does not depend on the clips before it, nor on how many processes
share the work (see `sphinx_worker`). A noise of 60 dB under full scale, the same for all, is laid under every clip,
clean or coded: the model was trained on recordings and stumbles over digital silence. Without it, codecs that hiss a
little raise the score of synthetic speech.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from importlib import metadata
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from earmark.corpora.clips import Clip
from earmark.embedding.hearing import listen
from earmark.errors import EarmarkError, UsageError, require
from earmark.extractors.contract import Waveform
from earmark.probes._contract import Responses
from earmark.progress import Progress, progress_bar
from earmark.runs.engine import reason_of
from earmark.workers import Workers, thread_count

RATE = 16000
FULL_SCALE = 32000.0
FLOOR = 30.0  # deviation of the noise, in steps of 16 bits
_WORKER = Path(__file__).with_name("_sphinx_worker.py")
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
        texts: dict[str, str] = {}
        failures: dict[str, str] = {}
        count = max(1, min(self.processes, len(clips)))
        free: SimpleQueue[_Process] = SimpleQueue()
        with ExitStack() as stack:
            for _ in range(count):
                free.put(stack.enter_context(closing(_Process(_SEARCH[self.effort]))))
            workers = stack.enter_context(Workers(count))
            tick = stack.enter_context(progress_bar(progress, len(clips), "pocketsphinx", "clip"))
            for clip, answer in zip(clips, workers.map(lambda clip: _answer(clip, free), clips), strict=True):
                if isinstance(answer, Exception):
                    failures[clip.id] = reason_of(answer)
                else:
                    texts[clip.id] = answer
                tick()
        return Responses(tuple(texts), texts=tuple(texts.values()), failures=failures, model=self.name)


def _answer(clip: Clip, free: SimpleQueue[_Process]) -> str | Exception:
    """What is said in a clip, or why it is not known. The clip is made loudest first, as for every model here."""
    sound = listen(clip, RATE)
    if isinstance(sound, Exception):
        return sound
    if not np.isfinite(sound.waveform).all():
        return EarmarkError("it holds NaN or infinite samples")
    process = free.get()
    try:
        return process.ask(_sixteen_bits(sound.waveform))
    except EarmarkError as error:
        return error
    finally:
        free.put(process)


def _sixteen_bits(waveform: Waveform) -> bytes:
    floor = np.random.default_rng(0).normal(0.0, FLOOR, len(waveform))
    return np.clip(np.round(waveform * FULL_SCALE + floor), -32768, 32767).astype("<i2").tobytes()


class _Process:
    """A worker, started when it is first asked and again if it has died."""

    def __init__(self, options: dict[str, Any]) -> None:
        # -P: the worker's own folder, which holds this module, is not searched for the package.
        self._command = [sys.executable, "-P", str(_WORKER), json.dumps(options)]
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, samples: bytes) -> str:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(struct.pack("<i", len(samples)) + samples)
            process.stdin.flush()
            (length,) = struct.unpack("<i", process.stdout.read(4))
            return process.stdout.read(length).decode()
        except (OSError, struct.error) as error:
            raise EarmarkError(f"PocketSphinx ended on this clip (status {process.wait()})") from error

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
