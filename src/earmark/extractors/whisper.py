"""Whisper's encoder: 30 s of sound, whatever the clip's length. WhisperSeg's: the same, tuned on animals.

    clip, cut to 30 s -- zeros behind it to 30 s -- log-mel [bands, 3000] -- encoder --> [1500, D]

The encoder has no mask: it hears 30 s whatever the clip's length, so frames of silence are part of the answer and
`valid` says how many are not. `mean_time` is over all frames, as in VocSim's tables; `masked_mean_time` over those
that heard sound.

WhisperSeg's spectrogram follows the rate of the recordings. At 16 kHz it hears what other models hear. Ultrasound keeps
its pitch when `rate` is that of the recordings: clips are then not brought down to 16 kHz, the Fourier transform grows
with the rate, and the mel bands reach up to half of it.

    whisperseg                                     16 kHz, 1500 columns of 20 ms: VocSim's [750, 1280]
    whisperseg?rate=250000&time_step=0.0005        mouse calls: 0.75 s, to 125 kHz
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from earmark.errors import UsageError, require
from earmark.extractors.pretrained import load_model
from earmark.extractors.torch_models import Batch, TransformersExtractor


class FrontEnd(NamedTuple):
    """A log-mel spectrogram of fixed length. `columns` is their number, `hop` the samples between them."""

    rate: int
    fft: int
    hop: int
    columns: int
    low: float = 0.0
    high: float = 8000.0
    scale: str = "slaney"


class Whisper(TransformersExtractor):
    """Frames of the encoder: 50 per second, 30 s for every clip."""

    name, classes = "whisper", ("WhisperConfig", "WhisperModel")
    pads = True  # with the silence that every clip gets anyway

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        self._kind = require("transformers.models.whisper.modeling_whisper", "These models", "models").WhisperEncoder
        self._front_end = front_end = self.front_end()
        self._bank: Any = None
        self.layers = int(self._config.encoder_layers)
        self.complete_card(
            rate=front_end.rate,
            dimension=self._config.d_model,
            frame_rate=front_end.rate / front_end.hop / 2,
            context_seconds=front_end.columns * front_end.hop / front_end.rate,
        )

    def front_end(self) -> FrontEnd:
        """The spectrogram that the checkpoint was trained on."""
        stated = self._checkpoint.json("preprocessor_config.json")
        rate, hop = int(stated.get("sampling_rate", 16000)), int(stated.get("hop_length", 160))
        return FrontEnd(rate, int(stated.get("n_fft", 400)), hop, int(stated.get("chunk_length", 30)) * rate // hop)

    def load(self) -> Any:
        # The decoder, larger than some encoders, is not even read.
        names = {r"^model\.encoder\.": "", r"^encoder\.": ""}
        encoder = load_model(self._kind, self._checkpoint, key_mapping=names)
        table, positions = encoder.embed_positions, self._front_end.columns // 2
        if table.num_embeddings != positions:  # fewer than it was made for: the first of them
            table.weight.data = table.weight.data[:positions].clone()
            table.num_embeddings = encoder.config.max_source_positions = encoder.max_source_positions = positions
        if self._device.type == "cuda":
            from earmark.networks.whisper_memory import spare_copies

            spare_copies(encoder)
        return encoder

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        from earmark.networks.spectrograms import mel_bank, whisper_mel

        rate, fft, hop, columns, low, high, scale = self._front_end
        if self._bank is None:  # on the device from the first batch on: moving it would wait for the batch before
            self._bank = mel_bank(fft // 2 + 1, self._config.num_mel_bins, low, high, rate, "slaney", scale)
            self._bank = self._bank.to(batch.sounds.device)
        sounds = self._torch.nn.functional.pad(batch.sounds, (0, columns * hop - batch.sounds.shape[1]))
        return self.hidden(network, whisper_mel(sounds, self._bank, fft, hop).to(self._dtype), layers)

    def valid(self, samples: int, frames: int) -> int:
        return math.ceil(samples / (2 * self._front_end.hop))


class WhisperSeg(Whisper):
    """WhisperSeg's encoder. Its front end follows the rate: set `rate` to that of the recordings, 250000 for mice.

    `time_step` is the seconds between columns of the spectrogram, `columns` their number (from the checkpoint's
    config where it says), `low` and `high` the band in hertz. The Fourier transform grows with the rate.
    """

    name = "whisperseg"

    def __init__(
        self,
        checkpoint: str = "",
        *,
        rate: int = 16000,
        time_step: float | None = None,
        columns: int | None = None,
        low: float = 0.0,
        high: float | None = None,
        mel_scale: str = "slaney",
        **options: Any,
    ) -> None:
        self._rate, self._time_step, self._columns = int(rate), time_step, columns
        self._band, self._scale = (float(low), float(high or self._rate / 2)), mel_scale
        super().__init__(checkpoint, **options)
        most = int(self._config.max_source_positions)
        if self._front_end.columns // 2 > most:
            raise UsageError(f"{self._checkpoint.name} has {most} positions: at most {2 * most} columns are possible.")

    def front_end(self) -> FrontEnd:
        config = self._checkpoint.json("config.json")
        columns = 2 * (int(self._columns or config.get("total_spec_columns") or 1500) // 2)  # two make a frame
        step = float(self._time_step or config.get("spec_time_step") or 0.02)
        hop, (low, high) = round(step * self._rate), self._band
        if hop < 1 or columns < 2 or not 0 <= low < high <= self._rate / 2:
            raise UsageError(
                f"whisperseg cannot hear {low:g} to {high:g} Hz at {self._rate} Hz in {columns} columns "
                f"of {step:g} s: check rate, low, high, columns and time_step."
            )
        return FrontEnd(self._rate, fft_size(self._rate), hop, columns, low, high, self._scale)


def fft_size(rate: int) -> int:
    """WhisperSeg's Fourier transform: about 16 to 32 ms at audible rates, finer in time for ultrasound."""
    for highest, size in ((32_000, 512), (80_000, 1024), (150_000, 2048), (300_000, 4096)):
        if rate <= highest:
            return size
    return 8192
