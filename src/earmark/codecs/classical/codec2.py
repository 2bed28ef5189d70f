"""Codec 2 through pycodec2: a vocoder for speech at 3.2 kbps and below.

The bits of a frame do not always fill its bytes (28 of 32 at 0.7 kbps, mode 700C; 52 of 56 at 1.3): the card states
those that are used. The synthesis lags by more than a frame, so one frame of silence follows the clip; how far it lags
depends on the mode and is calibrated. There is no concealment in Codec 2: a lost frame repeats the last that arrived.
Every clip is decoded in a process of its own, which takes 20 ms and is the only way to the same samples each time: see
`codec2_decoder`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.classical import codec2_decoder
from earmark.codecs.classical.packets import as_int16, no_options
from earmark.codecs.contract import CodecCard, CodecFailure, Coded, Waveform
from earmark.errors import require

_PATIENCE = 600.0


class Codec2:
    """One mode of Codec 2; every call has a state of its own."""

    thread_safe = True

    def __init__(self, card: CodecCard) -> None:
        self.card = card
        self._package = require("pycodec2", "Codec 2 rates", "codecs")
        self._mode = round((card.kbps or 0) * 1000)
        state = self._new()
        self.frame, self._bytes = int(state.samples_per_frame()), (int(state.bits_per_frame()) + 7) // 8
        self._library = str(_library(Path(self._package.__file__).parent))

    def encode(self, waveform: Waveform) -> Coded:
        state = self._new()
        frames = np.pad(as_int16(waveform), (0, self.frame + -len(waveform) % self.frame)).reshape(-1, self.frame)
        return Coded(len(waveform), tuple(bytes(state.encode(frame)) for frame in frames))

    def decode(self, coded: Coded) -> Waveform:
        arguments = [str(self._mode), str(self._bytes), self._library, *sys.path]
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(codec2_decoder.__file__), *arguments],
            input=b"".join(coded.packets),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode:
            message = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise CodecFailure(f"{self.card.name}: the decoder's process failed (status {done.returncode}: {message}).")
        return (np.frombuffer(done.stdout, np.int16) / 32768.0).astype(np.float32)

    def decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        last = next((packet for packet, gone in zip(coded.packets, lost, strict=True) if not gone), coded.packets[0])
        sent: list[bytes] = []
        for packet, gone in zip(coded.packets, lost, strict=True):
            last = last if gone else packet
            sent.append(last)
        return self.decode(Coded(coded.samples, tuple(sent)))

    def _new(self) -> Any:
        return self._package.Codec2(self._mode)


def _library(package: Path) -> Path:
    """libcodec2 beside the package, or the extension module that it is linked to."""
    beside = [*package.parent.glob("pycodec2.libs/*codec2*"), *package.glob(".dylibs/*codec2*")]
    return next(iter([*beside, *package.glob("pycodec2*.so"), *package.glob("pycodec2*.pyd")]), package)


def make(card: CodecCard, checkpoint: str = "", **options: object) -> Codec2:
    no_options(card, checkpoint, options)
    return Codec2(card)
