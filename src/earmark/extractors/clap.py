"""CLAP: one vector per clip, trained to match a caption. LAION's, and Microsoft's of 2023.

    clip, cut to the context -- repeated to fill it -- log-mel -- HTSAT -- projection --> one vector

Both makers cut a random piece out of a longer clip, and LAION's fused models mix three; here it is always the
beginning, so that a clip has one vector. The cut is on the card as context and is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import require
from earmark.extractors.catalogue import CARDS
from earmark.extractors.contract import Waveform
from earmark.extractors.pretrained import config_of, fill, find, load_model, read_state, stripped, versioned
from earmark.extractors.torch_models import Batch, Settings, TorchExtractor, parameters_of

__all__ = ["Clap", "MicrosoftClap", "repeated"]


class Clap(TorchExtractor):
    """LAION's CLAP, any checkpoint of `ClapModel`. The vector has length 1, as the model compares it."""

    def __init__(self, checkpoint: str = "laion/larger_clap_general", **options: Any) -> None:
        super().__init__(Settings(**options))
        card = CARDS["clap"]
        self._checkpoint = find(checkpoint, card, **self.settings.loading)
        library = require("transformers", "These models", "models")
        self._kind = library.ClapAudioModelWithProjection
        self._config = config_of(library.ClapAudioConfig, self._checkpoint, "audio_config")
        said = self._checkpoint.json("preprocessor_config.json")
        rate = int(said.get("sampling_rate", 48000))
        self._fft, self._hop = int(said.get("fft_window_size", 1024)), int(said.get("hop_length", 480))
        self._band = float(said.get("frequency_min", 50)), float(said.get("frequency_max", 14000))
        self._samples = int(said.get("max_length_s", 10)) * rate
        self._padding = str(said.get("padding", "repeatpad"))
        # The fused models were trained with another filter bank than the plain ones.
        self._bank = (None, "htk") if said.get("truncation") == "fusion" else ("slaney", "slaney")
        with self._torch.device("meta"):
            parameters = parameters_of(self._kind(self._config))
        self.card = versioned(
            card,
            self._checkpoint,
            "torch",
            "transformers",
            rate=rate,
            dimension=self._config.projection_dim,
            context_seconds=self._samples / rate,
            parameters=parameters,
        )

    def load(self) -> Any:
        return load_model(self._kind, self._checkpoint)

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        return repeated(waveform, self._samples, self._padding)

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        from earmark.networks.spectrograms import decibel_mel, mel_bank

        bank = mel_bank(self._fft // 2 + 1, self._config.num_mel_bins, *self._band, self.card.rate, *self._bank)
        mel = decibel_mel(batch.sounds, bank, self._fft, self._hop).to(self._dtype)[:, None]
        longer = self._torch.zeros(len(mel), 1, dtype=self._torch.bool, device=mel.device)
        if self._config.enable_fusion:
            mel = mel.expand(-1, 4, -1, -1)
        vectors = network(input_features=mel, is_longer=longer).audio_embeds
        return {0: self._torch.nn.functional.normalize(vectors, dim=-1)[:, None]}


class MicrosoftClap(TorchExtractor):
    """Microsoft's CLAP of 2023 (HTSAT; the CNN14 of 2022 is not here), from CLAP_weights_2023.pth or safetensors."""

    FFT, HOP, BANDS, BAND = 1024, 320, 64, (50.0, 8000.0)

    def __init__(self, checkpoint: str = "microsoft/msclap", **options: Any) -> None:
        super().__init__(Settings(**options))
        card = CARDS["clap_microsoft"]
        self._checkpoint = find(checkpoint, card, pickled=("CLAP_weights_2023.pth",), **self.settings.loading)
        library = require("transformers", "These models", "models")
        # A config.json beside the weights may describe another size; the published file comes without one.
        said = {"projection_dim": 1024, **self._checkpoint.json("config.json")}
        self._config = library.ClapAudioConfig.from_dict(said)
        assert card.context_seconds is not None
        self._samples = round(card.context_seconds * card.rate)
        self.card = versioned(
            card,
            self._checkpoint,
            "torch",
            "transformers",
            dimension=self._config.projection_dim,
            parameters=parameters_of(self._empty()),
        )

    def _empty(self, device: str = "meta") -> Any:
        from earmark.networks.microsoft_clap import MicrosoftClap as Network

        with self._torch.device(device):
            return Network(self._config)

    def load(self) -> Any:
        from earmark.networks.microsoft_clap import renamed

        state = read_state(self._checkpoint)
        tensors = renamed(stripped(state.get("model", state), "module."))
        network = self._empty("cpu")
        return fill(network, {**_indices(network), **tensors}, self._checkpoint)

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        return repeated(waveform, self._samples, "repeat")

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        from earmark.networks.spectrograms import decibel_mel, mel_bank

        bank = mel_bank(self.FFT // 2 + 1, self.BANDS, *self.BAND, self.card.rate, "slaney", "slaney")
        mel = decibel_mel(batch.sounds, bank, self.FFT, self.HOP).to(self._dtype)
        return {0: network(mel[:, None])[:, None]}


def _indices(network: Any) -> dict[str, Any]:
    """What follows from the architecture and need not be in a file: tables of positions, counters."""
    follows = ("relative_position_index", "num_batches_tracked")
    return {name: value for name, value in network.state_dict().items() if name.endswith(follows)}


def repeated(waveform: Waveform, samples: int, padding: str) -> NDArray[np.float32]:
    """A clip brought to a length: `repeat` goes on to the end, `repeatpad` only whole times, `pad` not at all."""
    if len(waveform) >= samples:
        return waveform[:samples]
    times = samples // len(waveform)
    if padding == "repeat":
        return np.tile(waveform, times + 1)[:samples]
    copies = np.tile(waveform, times) if padding == "repeatpad" else waveform
    return np.pad(copies, (0, samples - len(copies)))
