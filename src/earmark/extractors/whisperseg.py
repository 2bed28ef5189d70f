"""WhisperSeg's encoder: a Whisper tuned on animals, whose spectrogram follows the rate of the recordings.

At 16 kHz it hears what other models hear. Ultrasound keeps its pitch when `rate` is that of the recordings: clips are
then not brought down to 16 kHz, the Fourier transform grows with the rate, and the mel bands reach up to half of it.

    whisperseg                                     16 kHz, 1500 columns of 20 ms: VocSim's [750, 1280]
    whisperseg?rate=250000&time_step=0.0005        mouse calls: 0.75 s, to 125 kHz
"""

from __future__ import annotations

from typing import Any

from earmark.errors import UsageError
from earmark.extractors.catalogue import CARDS
from earmark.extractors.pretrained import find
from earmark.extractors.torch_models import Settings, TorchExtractor
from earmark.extractors.whisper import Whisper

__all__ = ["WhisperSeg", "fft_size"]


class WhisperSeg(Whisper):
    """WhisperSeg's encoder. Its front end follows the rate: set `rate` to that of the recordings, 250000 for mice.

    `time_step` is the seconds between columns of the spectrogram, `columns` their number (from the checkpoint's
    config where it says), `low` and `high` the band in hertz. The Fourier transform grows with the rate.
    """

    def __init__(
        self,
        checkpoint: str = "nccratliri/whisperseg-large-ms",
        *,
        rate: int = 16000,
        time_step: float | None = None,
        columns: int | None = None,
        low: float = 0.0,
        high: float | None = None,
        mel_scale: str = "slaney",
        **options: Any,
    ) -> None:
        TorchExtractor.__init__(self, Settings(**options))
        card = CARDS["whisperseg"]
        self._checkpoint = find(checkpoint, card, **self.settings.loading)
        config = self._checkpoint.json("config.json")
        self._rate, self._fft = int(rate), fft_size(int(rate))
        self._columns = 2 * (int(columns or config.get("total_spec_columns") or 1500) // 2)  # two make a frame
        step = float(time_step or config.get("spec_time_step") or 0.02)
        self._hop = round(step * self._rate)
        self._bounds, self._scale = (float(low), float(high or self._rate / 2)), mel_scale
        if self._hop < 1 or self._columns < 2 or not 0 <= self._bounds[0] < self._bounds[1] <= self._rate / 2:
            raise UsageError(
                f"whisperseg cannot hear {low:g} to {self._bounds[1]:g} Hz at {rate} Hz in {self._columns} columns "
                f"of {step:g} s: check rate, low, high, columns and time_step."
            )
        self._begin(card)
        most = int(self._config.max_source_positions)
        if self._columns // 2 > most:
            raise UsageError(f"{checkpoint} has {most} positions: at most {2 * most} columns are possible.")


def fft_size(rate: int) -> int:
    """WhisperSeg's Fourier transform: about 16 to 32 ms at audible rates, finer in time for ultrasound."""
    for highest, size in ((32_000, 512), (80_000, 1024), (150_000, 2048), (300_000, 4096)):
        if rate <= highest:
            return size
    return 8192
