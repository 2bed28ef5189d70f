"""BEATs: patches of a spectrogram of any length, trained to predict tokens of masked patches.

Reads the authors' files (`{"cfg": ..., "model": ...}`, a pickle) and safetensors with the same names and a config.json
with the same keys beside them. A fine-tuned model's classifier is left out. Patches of 16 frames are cut from the
beginning, as its authors do: up to 15 frames (0.15 s) at the end of a clip make no patch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import CARDS
from earmark.extractors.contract import Waveform
from earmark.extractors.patches import FRAME, HOP, FilterBank, PatchExtractor, frames_in
from earmark.extractors.pretrained import fill, find, read_state, stripped, versioned
from earmark.extractors.torch_models import Batch, Settings, parameters_of

__all__ = ["BEATs"]

BANDS = 128
MEAN, DEVIATION = 15.41663, 6.55582
WHERE = "download BEATs_iter3_plus_AS2M.pt from the page of microsoft/unilm (folder beats)"


class BEATs(PatchExtractor):
    """Frame-level outputs of the last block, patch by patch; it has no [CLS] token."""

    def __init__(self, checkpoint: str = "", *, tokens: str = "patches", **options: Any) -> None:
        if tokens == "cls":
            raise UsageError("BEATs has no [CLS] token: choose tokens=patches or tokens=frames.")
        super().__init__(Settings(**options), tokens)
        card = CARDS["beats"]
        self._checkpoint = find(checkpoint, card, where=WHERE, **self.settings.loading)
        self._state: Any = None
        self._shape = self._read_shape()
        self.layers = self._shape.encoder_layers
        patch = self._shape.input_patch_size
        self._rows = BANDS // patch
        # Kaldi's filter bank of samples in the range of 16-bit integers.
        self.bank = FilterBank(patch, BANDS, MEAN, DEVIATION, patch, patch, "povey", 2.0**15)
        self.card = versioned(
            card,
            self._checkpoint,
            "torch",
            dimension=self._shape.encoder_embed_dim,
            frame_rate=self.frame_rate(self._rows),
            parameters=parameters_of(self._empty()),
        )

    def _read_shape(self) -> Any:
        from earmark.networks.beats import Shape

        said = self._checkpoint.json("config.json")
        if self._checkpoint.weights.suffix != ".safetensors":
            self._state = read_state(self._checkpoint)
            said = self._state.get("cfg", said)
        shape = Shape.of(said)
        if said.get("activation_fn", "gelu") != "gelu":
            raise InputError(f"{self._checkpoint.name} uses {said['activation_fn']}: only GELU is known here.")
        return shape

    def _empty(self) -> Any:
        from earmark.networks.beats import BEATs as Network

        with self._torch.device("meta"):
            return Network(self._shape)

    def load(self) -> Any:
        from earmark.networks.beats import renamed

        state = self._state or read_state(self._checkpoint)
        self._state = None
        tensors = renamed(stripped(state.get("model", state), "model.", "beats.", "module."))
        return fill(self._empty(), tensors, self._checkpoint)

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        patch = self.bank.patch
        whole = max(1, frames_in(len(waveform)) // patch) * patch
        samples = (whole - 1) * HOP + FRAME
        return np.pad(waveform[:samples], (0, max(0, samples - len(waveform))))

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        hidden = network(self.spectrogram(batch))
        return {layer: self.chosen(hidden[layer], 0, self._rows) for layer in layers}

    def spectrogram(self, batch: Batch) -> Any:
        from earmark.networks.spectrograms import kaldi_fbank

        values = kaldi_fbank(batch.sounds * self.bank.gain, BANDS, self.bank.window)
        return ((values - MEAN) / (2.0 * DEVIATION)).to(self._dtype)

    def valid(self, samples: int, frames: int) -> int:
        return frames
