"""CLAP: one vector per clip, trained to match a caption. LAION's, and Microsoft's of 2023.

    clip, cut to the context -- repeated to fill it -- log-mel -- HTSAT -- projection --> one vector

Both makers cut a random piece out of a longer clip, and LAION's fused models mix three; here it is always the
beginning, so that a clip has one vector. The cut is on the card as context and is reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, require
from earmark.extractors.contract import Waveform
from earmark.extractors.pretrained import Checkpoint, fill, read_state, stripped
from earmark.extractors.torch_models import Batch, TorchExtractor, TransformersExtractor


class Clap(TransformersExtractor):
    """LAION's CLAP: a checkpoint of `ClapModel`, or a file of its authors' such as `630k-audioset-best.pt` (a pickle).

    The vector has length 1, as the model compares it. The fused models of the authors' files are not read.
    """

    name, classes = "clap", ("ClapAudioConfig", "ClapAudioModelWithProjection")
    config_part = "audio_config"

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        self._state: Mapping[str, Any] = {}  # of an authors' file, until its network is made
        super().__init__(checkpoint, **options)
        stated = self._checkpoint.json("preprocessor_config.json")
        rate = int(stated.get("sampling_rate", 48000))
        self._fft, self._hop = int(stated.get("fft_window_size", 1024)), int(stated.get("hop_length", 480))
        self._band = float(stated.get("frequency_min", 50)), float(stated.get("frequency_max", 14000))
        self._samples = int(stated.get("max_length_s", 10)) * rate
        self._padding = str(stated.get("padding", "repeatpad"))
        # The fused models were trained with another filter bank than the plain ones.
        self._bank = (None, "htk") if stated.get("truncation") == "fusion" else ("slaney", "slaney")
        self.complete_card(rate=rate, dimension=self._config.projection_dim, context_seconds=self._samples / rate)

    def read_config(self, kind: Any) -> Any:
        if self._checkpoint.place.is_dir() or self._checkpoint.json("config.json"):
            return super().read_config(kind)
        state = read_state(self._checkpoint)
        self._state = stripped(state.get("state_dict", state), "module.")
        patches = self._state.get("audio_branch.patch_embed.proj.weight")
        if patches is None or "audio_branch.patch_embed.mel_conv2d.weight" in self._state:
            raise InputError(
                f"{self._checkpoint.name} is no file of LAION's CLAP without fusion: give one such as "
                "630k-audioset-best.pt, or a folder with config.json and model.safetensors."
            )
        blocks = [
            re.match(r"audio_branch\.layers\.(\d+)\.blocks\.(\d+)\.attn\.proj\.bias", name) for name in self._state
        ]
        layers = [int(found[1]) for found in blocks if found]
        heads = [
            int(self._state[f"audio_branch.layers.{layer}.blocks.0.attn.relative_position_bias_table"].shape[1])
            for layer in range(4)
        ]
        width = len(patches)
        return kind(
            patch_embeds_hidden_size=width, hidden_size=8 * width, depths=[layers.count(layer) for layer in range(4)],
            num_attention_heads=heads, projection_dim=len(self._state["audio_projection.2.bias"]),
        )  # fmt: skip

    def load(self) -> Any:
        if not self._state:
            return super().load()
        from earmark.networks.microsoft_clap import rename_laion_tensors

        tensors = rename_laion_tensors(self._state)
        self._state = {}
        return _filled(self.build(), tensors, self._checkpoint)

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

    name = "clap_microsoft"
    packages = ("torch", "transformers")
    FFT, HOP, BANDS, BAND = 1024, 320, 64, (50.0, 8000.0)

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, find_options={"pickled": ("CLAP_weights_2023.pth",)}, **options)
        library = require("transformers", "These models", "models")
        # A config.json beside the weights may describe another size; the published file comes without one.
        self._config = library.ClapAudioConfig.from_dict(
            {"projection_dim": 1024, **self._checkpoint.json("config.json")}
        )
        assert self.card.context_seconds is not None
        self._samples = round(self.card.context_seconds * self.card.rate)
        self.complete_card(dimension=self._config.projection_dim)

    def build(self) -> Any:
        from earmark.networks.microsoft_clap import MicrosoftClap as Network

        return Network(self._config)

    def load(self) -> Any:
        from earmark.networks.microsoft_clap import rename_tensors

        state = read_state(self._checkpoint)
        tensors = rename_tensors(stripped(state.get("model", state), "module."))
        return _filled(self.build(), tensors, self._checkpoint)

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        return repeated(waveform, self._samples, "repeat")

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        from earmark.networks.spectrograms import decibel_mel, mel_bank

        bank = mel_bank(self.FFT // 2 + 1, self.BANDS, *self.BAND, self.card.rate, "slaney", "slaney")
        mel = decibel_mel(batch.sounds, bank, self.FFT, self.HOP).to(self._dtype)
        return {0: network(mel[:, None])[:, None]}


def _filled(network: Any, tensors: Mapping[str, Any], checkpoint: Checkpoint) -> Any:
    """A network with the tensors of a file. What follows from the architecture need not be in it: tables, counters."""
    follows = ("relative_position_index", "num_batches_tracked")
    known = {name: value for name, value in network.state_dict().items() if name.endswith(follows)}
    return fill(network, {**known, **tensors}, checkpoint)


def repeated(waveform: Waveform, samples: int, padding: str) -> NDArray[np.float32]:
    """A clip brought to a length: `repeat` goes on to the end, `repeatpad` only whole times, `pad` not at all."""
    if len(waveform) >= samples:
        return waveform[:samples]
    times = samples // len(waveform)
    if padding == "repeat":
        return np.tile(waveform, times + 1)[:samples]
    copies = np.tile(waveform, times) if padding == "repeatpad" else waveform
    return np.pad(copies, (0, samples - len(copies)))
