"""The sounds a model learns from: decoded once, laid end to end, read in spans; memory stays bounded.

    clips ── decode ── in memory, up to IN_MEMORY bytes          4.7 hours at 16 kHz
                       beyond that in a file without a name      64 kB for a second; gone when the training ends

A batch is cut out of it and nothing else is kept: spectrograms are made of a batch where the network runs. On a GPU
with room for them the sounds lie there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, require

Samples = NDArray[np.float32]

IN_MEMORY = 1 << 30
"""Bytes of sound that are held in memory; what is more goes to a file."""

OF_THE_CARD = 0.25
"""The share of a GPU's free memory that sounds may take."""


class Sounds:
    """Waveforms in order, and spans of them as tensors on a device."""

    def __init__(self, *, in_memory: int = IN_MEMORY, folder: str | PathLike[str] | None = None) -> None:
        self.lengths: list[int] = []
        self._in_memory, self._folder = in_memory, folder
        self._begins: list[int] = []  # where each would begin if all lay end to end
        self._total = 0
        self._held: list[Samples] = []
        self._file: Any = None
        self._there: Any = None

    def __len__(self) -> int:
        return len(self.lengths)

    def add(self, waveform: Samples) -> None:
        """Keep a waveform, behind those before."""
        samples = np.array(waveform, np.float32)
        self._begins.append(self._total)
        self.lengths.append(len(samples))
        self._total += len(samples)
        self._held.append(samples)
        if 4 * self._total > self._in_memory:
            self._spill()

    def _spill(self) -> None:
        """Write what is held behind what is in the file."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="earmark-sounds-", dir=self._folder)  # noqa: SIM115
            for samples in self._held:
                self._file.write(samples.data)
            self._file.flush()
        except OSError as error:
            place = self._folder or tempfile.gettempdir()
            raise InputError(
                f"{place} has no room for the sounds to learn from ({error.strerror}): they take 64 kB a second; "
                f"free some, or learn from fewer."
            ) from error
        self._held.clear()

    def settle(self, device: str) -> None:
        """No more is added: lie on a GPU where that is asked for and has room."""
        if not device.startswith("cuda"):
            return
        torch = require("torch", "The VAE and the AE", "torch")
        index = torch.device(device).index
        free, _ = torch.cuda.mem_get_info(torch.cuda.current_device() if index is None else index)
        if 4 * self._total <= OF_THE_CARD * free:
            self.move(device)

    def move(self, device: str) -> None:
        """Lie end to end on a device, from which spans are cut at once."""
        torch = require("torch", "The VAE and the AE", "torch")
        self._there = torch.empty(self._total, device=device)
        for clip, (begin, length) in enumerate(zip(self._begins, self.lengths, strict=True)):
            samples = np.empty(length, np.float32)
            self._copy(clip, 0, samples)
            self._there[begin : begin + length] = torch.from_numpy(samples).to(device)

    def spans(self, clips: Sequence[int], starts: Sequence[int], size: int, device: str) -> Any:
        """Spans [B, size] of sounds, zeros behind the end of those that are shorter."""
        torch = require("torch", "The VAE and the AE", "torch")
        own = [min(size, self.lengths[clip] - start) for clip, start in zip(clips, starts, strict=True)]
        if self._there is not None:
            begins = [self._begins[clip] + start for clip, start in zip(clips, starts, strict=True)]
            first = torch.tensor(begins, device=device)[:, None]
            count = torch.tensor(own, device=device)[:, None]
            offset = torch.arange(size, device=device)[None]
            return self._there[first + offset.minimum(count - 1)] * (offset < count)
        batch = np.zeros((len(own), size), np.float32)
        for row, clip, start, length in zip(batch, clips, starts, own, strict=True):
            self._copy(clip, start, row[:length])
        return torch.from_numpy(batch).to(device)

    def _copy(self, clip: int, start: int, into: Samples) -> None:
        """Samples of a sound. The file is not mapped: its pages would count as memory."""
        if self._file is None:
            into[:] = self._held[clip][start : start + len(into)]
            return
        self._file.seek(4 * (self._begins[clip] + start))
        if self._file.readinto(into.data.cast("B")) != into.nbytes:
            raise InputError("The file of the sounds to learn from was cut short: is the disk full?")

    def close(self) -> None:
        """Give memory and disk back."""
        self._there = None
        self._held.clear()
        if self._file is not None:
            self._file.close()
