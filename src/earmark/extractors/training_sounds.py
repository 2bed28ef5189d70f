"""The sounds a model learns from: decoded once, laid end to end, read in spans; memory stays bounded.

    clips ── decode ── in memory, up to IN_MEMORY bytes          4.6 hours at 16 kHz
                       beyond that in a file without a name      64 kB for a second; gone when the training ends

A batch is cut out of it and nothing else is kept: spectrograms are made of a batch where the network runs. On a GPU
with room for them the sounds lie there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from os import PathLike
from typing import IO, Any

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
        self._starts: list[int] = []
        self._total = 0
        self._waiting: list[Samples] = []
        self._file: IO[bytes] | None = None
        self._flat: Samples | None = None
        self._there: Any = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def on_disk(self) -> bool:
        return self._file is not None

    def add(self, waveform: Samples) -> None:
        """Keep a waveform, behind those before."""
        samples = np.ascontiguousarray(waveform, np.float32)
        self._starts.append(self._total)
        self.lengths.append(len(samples))
        self._total += len(samples)
        self._waiting.append(samples)
        if 4 * sum(map(len, self._waiting)) > self._in_memory or self._file is not None:
            self._spill()

    def _spill(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="earmark-sounds-", dir=self._folder)  # noqa: SIM115
            for samples in self._waiting:
                samples.tofile(self._file)
            self._file.flush()
        except OSError as error:
            place = self._folder or tempfile.gettempdir()
            raise InputError(
                f"{place} has no room for the sounds to learn from ({error.strerror}): they take 64 kB a second; "
                f"free some, or learn from fewer."
            ) from error
        self._waiting.clear()

    def settle(self, device: str) -> None:
        """No more is added: lie where spans are cut fastest."""
        if self._file is not None:
            self._flat = np.memmap(self._file, np.float32, mode="r", shape=(self._total,))
        else:
            self._flat = np.concatenate(self._waiting) if self._waiting else np.empty(0, np.float32)
            self._waiting.clear()
        if device.startswith("cuda"):
            torch = require("torch", "The VAE and the AE", "torch")
            index = torch.device(device).index
            free, _ = torch.cuda.mem_get_info(torch.cuda.current_device() if index is None else index)
            if 4 * self._total <= OF_THE_CARD * free:
                self._there = torch.from_numpy(np.asarray(self._flat)).to(device)

    def spans(self, clips: Sequence[int], starts: Sequence[int], size: int, device: str) -> Any:
        """Spans [B, size] of sounds, zeros behind the end of those that are shorter."""
        torch = require("torch", "The VAE and the AE", "torch")
        assert self._flat is not None, "settle first"
        own = [min(size, self.lengths[clip] - start) for clip, start in zip(clips, starts, strict=True)]
        begin = [self._starts[clip] + start for clip, start in zip(clips, starts, strict=True)]
        if self._there is not None:
            first = torch.tensor(begin, device=device)[:, None]
            count = torch.tensor(own, device=device)[:, None]
            offset = torch.arange(size, device=device)[None]
            return self._there[first + offset.minimum(count - 1)] * (offset < count)
        batch = np.zeros((len(own), size), np.float32)
        for row, low, length in zip(batch, begin, own, strict=True):
            row[:length] = self._flat[low : low + length]
        return torch.from_numpy(batch).to(device)

    def close(self) -> None:
        """Give memory and disk back."""
        self._flat = self._there = None
        self._waiting.clear()
        if self._file is not None:
            self._file.close()
