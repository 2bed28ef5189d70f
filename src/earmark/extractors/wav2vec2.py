"""Wav2Vec 2.0, WavLM, HuBERT and MERT: frames of 20 ms from the waveform itself.

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

from earmark.errors import UsageError
from earmark.extractors.contract import Waveform
from earmark.extractors.pretrained import load_model
from earmark.extractors.torch_models import Batch, TransformersExtractor


class Wav2Vec2(TransformersExtractor):
    """Frames of the transformer over 20 ms of waveform each."""

    name, classes = "wav2vec2", ("Wav2Vec2Config", "Wav2Vec2Model")
    pads = True

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        config = self._config
        if getattr(config, "add_adapter", False):
            raise UsageError(
                f"{self._checkpoint.name} has an adapter behind its layers: give the model it was made from."
            )
        front_end = self._checkpoint.json("preprocessor_config.json")
        self._normalises = bool(front_end.get("do_normalize", True))
        self._norm: Any = None
        rate = int(front_end.get("sampling_rate", 16000))
        self.layers = int(config.num_hidden_layers)
        self.complete_card(rate=rate, dimension=config.hidden_size, frame_rate=rate / int(np.prod(config.conv_stride)))
        self._shortest = 1  # samples that the convolutions need for one frame
        for kernel, stride in reversed(list(zip(config.conv_kernel, config.conv_stride, strict=True))):
            self._shortest = (self._shortest - 1) * stride + kernel

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
        with warnings.catch_warnings():  # WavLM mixes a mask of truths with one of numbers; torch takes both
            warnings.filterwarnings("ignore", message="Support for mismatched key_padding_mask")
            return self.hidden(network, batch.sounds.to(self._dtype), layers, attention_mask=mask)

    def frames_of(self, samples: int, frames: int) -> int:
        return convolved(max(samples, self._shortest), self._config.conv_kernel, self._config.conv_stride)


class WavLM(Wav2Vec2):
    """Wav2Vec 2.0 with gated relative positions, trained to denoise."""

    name, classes = "wavlm", ("WavLMConfig", "WavLMModel")


class HuBERT(Wav2Vec2):
    """Wav2Vec 2.0's network, trained to predict clusters of frames."""

    name, classes = "hubert", ("HubertConfig", "HubertModel")


class MERT(HuBERT):
    """HuBERT's network at 24 kHz, trained on music; its own code is not run, so variants that need it are refused."""

    name = "mert"

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        for part in ("feature_extractor_cqt", "deepnorm"):
            if self._checkpoint.json("config.json").get(part):
                raise UsageError(
                    f"{self._checkpoint.name} has {part}, which is not known here: give m-a-p/MERT-v1-95M."
                )


def convolved(samples: int, kernels: Sequence[int], strides: Sequence[int]) -> int:
    """How many frames the convolutions make of so many samples."""
    for kernel, stride in zip(kernels, strides, strict=True):
        samples = (samples - kernel) // stride + 1
    return samples
