"""Dasheng: frames of 40 ms from a masked autoencoder of mel spectrograms.

Reads the authors' two publications, without the code that comes with either: the repositories on the hub
(`mispeech/dasheng-base`, safetensors and config.json, `encoder.` before every name) and the files that the package
`dasheng` fetches (`dasheng_base.pt`: `{"model": ..., "config": ...}`, a pickle).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.extractors.contract import Waveform
from earmark.extractors.pretrained import fill, read_state, stripped
from earmark.extractors.torch_models import Batch, TorchExtractor

SIZES = {"dasheng-base": (768, 12, 12), "dasheng-0.6B": (1280, 32, 16), "dasheng-1.2B": (1536, 40, 24)}
"""Width, depth and heads by the name in config.json, which may not spell them out."""

HOP = 160


class Dasheng(TorchExtractor):
    """Frames [T, D], 25 a second. Up to 0.04 s at the end make no frame; a long clip is heard in pieces of 10.08 s."""

    name = "dasheng"
    first_centre = 0.015  # seconds: the middle of four mel frames, of which the first is centred on sample 0

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        self._state: Any = None
        self._shape = shape = self._read_shape()
        self.layers = shape.depth
        self.complete_card(dimension=shape.width, frame_rate=self.card.rate / (HOP * shape.patch))

    def _read_shape(self) -> Any:
        from earmark.networks.dasheng import DashengShape

        config = self._checkpoint.json("config.json")
        if self._checkpoint.weights.suffix != ".safetensors":
            self._state = read_state(self._checkpoint)
            config = self._state.get("config", config)
        config = {**config, **config.get("encoder_kwargs", {})}
        usual = SIZES.get(str(config.get("name", "")), SIZES["dasheng-base"])
        width = int(config.get("embed_dim", usual[0]))
        patch = tuple(config.get("patch_size", (64, 4)))
        if tuple(config.get("patch_stride", patch)) != patch or patch[0] != 64 or config.get("pooling") == "token":
            raise InputError(f"{self._checkpoint.name} cuts its spectrogram in another way: give a Dasheng encoder.")
        return DashengShape(
            width=width,
            depth=int(config.get("depth", usual[1])),
            heads=int(config.get("num_heads", usual[2])),
            hidden=int(width * float(config.get("mlp_ratio", 4.0))),
            length=int(config.get("target_length", 1008)),
            patch=int(patch[1]),
        )

    def build(self) -> Any:
        from earmark.networks.dasheng import Dasheng as Network

        return Network(self._shape)

    def load(self) -> Any:
        state = self._state or read_state(self._checkpoint)
        self._state = None
        return fill(
            self.empty(), stripped(state.get("model", state), "encoder.", "model.", "module."), self._checkpoint
        )

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        least = (self._shape.patch - 1) * HOP  # samples of one column
        return np.pad(waveform, (0, max(0, least - len(waveform))))

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        from earmark.networks.dasheng import dasheng_mel

        hidden = network(dasheng_mel(batch.sounds).to(self._dtype))
        return {layer: hidden[layer] for layer in layers}
