"""Wav2Vec 2.0, WavLM and HuBERT: frames of 20 ms from the waveform itself.

Clips of a batch are padded to the longest, with a mask. Padding changes nothing: attention is masked, convolutions
look at whole frames only, and the group norm of the small models is taken over each clip's own frames (the library
takes it over the padding too; see `earmark.networks.masked_norm`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError, require
from earmark.extractors.catalogue import CARDS
from earmark.extractors.contract import Waveform
from earmark.extractors.pretrained import config_of, find, load_model, versioned
from earmark.extractors.torch_models import Batch, Settings, TorchExtractor, parameters_of

__all__ = ["HuBERT", "Wav2Vec2", "WavLM", "convolved"]


class Wav2Vec2(TorchExtractor):
    """Frames of the transformer over 20 ms of waveform each."""

    name, classes = "wav2vec2", ("Wav2Vec2Config", "Wav2Vec2Model")
    pads = True

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(Settings(**options))
        card = CARDS[self.name]
        self._checkpoint = find(checkpoint or card.checkpoint, card, **self.settings.loading)
        library = require("transformers", "These models", "models")
        config = config_of(getattr(library, self.classes[0]), self._checkpoint)
        if getattr(config, "add_adapter", False):
            raise UsageError(f"{checkpoint} has an adapter behind its layers: give the model it was made from.")
        self._config, self._kind = config, getattr(library, self.classes[1])
        said = self._checkpoint.json("preprocessor_config.json")
        self._normalises = bool(said.get("do_normalize", True))
        self._norm: Any = None
        rate = int(said.get("sampling_rate", 16000))
        self.layers = int(config.num_hidden_layers)
        with self._torch.device("meta"):
            parameters = parameters_of(self._kind(config))
        self.card = versioned(
            card,
            self._checkpoint,
            "torch",
            "transformers",
            rate=rate,
            dimension=config.hidden_size,
            frame_rate=rate / int(np.prod(config.conv_stride)),
            parameters=parameters,
        )
        self._shortest = _receptive(config.conv_kernel, config.conv_stride)

    def load(self) -> Any:
        from earmark.networks.masked_norm import mask_group_norm

        model = load_model(self._kind, self._checkpoint, ignore_mismatched_sizes=False)
        self._norm = mask_group_norm(model)
        return model

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        samples = waveform
        if self._normalises:
            samples = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
        return np.pad(samples, (0, max(0, self._shortest - len(samples)))).astype(np.float32)

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        torch = self._torch
        lengths = torch.tensor(batch.lengths, device=batch.sounds.device)
        if self._norm is not None:
            self._norm.lengths = (lengths - self._config.conv_kernel[0]) // self._config.conv_stride[0] + 1
        mask = None
        if len(set(batch.lengths)) > 1:
            mask = (torch.arange(batch.sounds.shape[1], device=batch.sounds.device) < lengths[:, None]).long()
        only_last = list(layers) == [self.layers]
        with warnings.catch_warnings():  # WavLM mixes a mask of truths with one of numbers; torch takes both
            warnings.filterwarnings("ignore", message="Support for mismatched key_padding_mask")
            found = network(batch.sounds.to(self._dtype), attention_mask=mask, output_hidden_states=not only_last)
        assert self.layers is not None
        hidden = {} if only_last else dict(enumerate(found.hidden_states[: self.layers]))
        return {**hidden, self.layers: found.last_hidden_state}

    def frames_of(self, samples: int, frames: int) -> int:
        return convolved(max(samples, self._shortest), self._config.conv_kernel, self._config.conv_stride)


class WavLM(Wav2Vec2):
    """Wav2Vec 2.0 with gated relative positions, trained to denoise."""

    name, classes = "wavlm", ("WavLMConfig", "WavLMModel")


class HuBERT(Wav2Vec2):
    """Wav2Vec 2.0's network, trained to predict clusters of frames."""

    name, classes = "hubert", ("HubertConfig", "HubertModel")


def convolved(samples: int, kernels: Sequence[int], strides: Sequence[int]) -> int:
    """How many frames the convolutions make of so many samples."""
    for kernel, stride in zip(kernels, strides, strict=True):
        samples = (samples - kernel) // stride + 1
    return samples


def _receptive(kernels: Sequence[int], strides: Sequence[int]) -> int:
    """How many samples the convolutions need for one frame."""
    needed = 1
    for kernel, stride in reversed(list(zip(kernels, strides, strict=True))):
        needed = (needed - 1) * stride + kernel
    return needed
