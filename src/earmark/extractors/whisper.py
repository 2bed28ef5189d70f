"""Whisper's encoder: 30 s of sound, whatever the clip's length.

    clip, cut to 30 s -- zeros behind it to 30 s -- log-mel [bands, 3000] -- encoder --> [1500, D]

The encoder has no mask: it hears 30 s whatever the clip's length, so frames of silence are part of the answer and
`valid` says how many are not. `mean_time` is over all frames, as in VocSim's tables; `masked_mean_time` over those
that heard sound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from earmark.errors import require
from earmark.extractors.catalogue import CARDS
from earmark.extractors.pretrained import config_of, find, load_model, versioned
from earmark.extractors.torch_models import Batch, Settings, TorchExtractor, parameters_of

__all__ = ["Whisper"]


class Whisper(TorchExtractor):
    """Frames of the encoder: 50 per second, 30 s for every clip."""

    pads = True  # with the silence that every clip gets anyway

    def __init__(self, checkpoint: str = "openai/whisper-large-v3", **options: Any) -> None:
        super().__init__(Settings(**options))
        card = CARDS["whisper"]
        self._checkpoint = find(checkpoint, card, **self.settings.loading)
        said = self._checkpoint.json("preprocessor_config.json")
        self._rate = int(said.get("sampling_rate", 16000))
        self._fft = int(said.get("n_fft", 400))
        self._hop = int(said.get("hop_length", 160))
        self._columns = int(said.get("chunk_length", 30)) * self._rate // self._hop
        self._bounds, self._scale = (0.0, 8000.0), "slaney"
        self._begin(card)

    def _begin(self, card: Any) -> None:
        """Read the config, and complete the card from it."""
        library = require("transformers", "These models", "models")
        self._config = config_of(library.WhisperConfig, self._checkpoint)
        self.layers = int(self._config.encoder_layers)
        self.card = versioned(
            card,
            self._checkpoint,
            "torch",
            "transformers",
            rate=self._rate,
            dimension=self._config.d_model,
            frame_rate=self._rate / self._hop / 2,
            context_seconds=self._columns * self._hop / self._rate,
            parameters=parameters_of(_empty(self._config)),
        )

    def load(self) -> Any:
        # The decoder, larger than some encoders, is not even read.
        names = {r"^model\.encoder\.": "", r"^encoder\.": ""}
        return _shortened(load_model(_encoder_class(), self._checkpoint, key_mapping=names), self._columns // 2)

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        from earmark.networks.spectrograms import mel_bank, whisper_mel

        bands = self._config.num_mel_bins
        bank = mel_bank(self._fft // 2 + 1, bands, *self._bounds, self._rate, "slaney", self._scale)
        silence = self._columns * self._hop - batch.sounds.shape[1]
        sounds = self._torch.nn.functional.pad(batch.sounds, (0, silence))
        mel = whisper_mel(sounds, bank, self._fft, self._hop).to(self._dtype)
        only_last = list(layers) == [self.layers]
        found = network(mel, output_hidden_states=not only_last)
        assert self.layers is not None
        hidden = {} if only_last else dict(enumerate(found.hidden_states[: self.layers]))
        return {**hidden, self.layers: found.last_hidden_state}

    def valid(self, samples: int, frames: int) -> int:
        return math.ceil(samples / (2 * self._hop))


def _encoder_class() -> Any:
    return require("transformers.models.whisper.modeling_whisper", "These models", "models").WhisperEncoder


def _empty(config: Any) -> Any:
    """The encoder without memory, to count its parameters."""
    with require("torch", "These models", "torch").device("meta"):
        return _encoder_class()(config)


def _shortened(encoder: Any, positions: int) -> Any:
    """The encoder for fewer positions than it was made for: the first of them."""
    table = encoder.embed_positions
    if table.num_embeddings != positions:
        table.weight.data = table.weight.data[:positions].clone()
        table.num_embeddings = encoder.config.max_source_positions = encoder.max_source_positions = positions
    return encoder
