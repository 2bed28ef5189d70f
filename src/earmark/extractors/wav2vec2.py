"""Wav2Vec 2.0, WavLM, HuBERT, MERT and AVES: frames of 20 ms from the waveform itself; Wav2Vec2-BERT's from mel frames.

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

from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import Waveform
from earmark.extractors.pretrained import fill, load_model, read_state
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

    @property
    def first_centre(self) -> float:
        """Seconds to the middle of the samples that the first frame is made of."""
        return self._shortest / 2 / self.card.rate

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
    """HuBERT's network at 24 kHz, trained on music; its own code is not run, so a variant that needs it is refused.

    Large models weigh their residuals (`deepnorm` in config.json).
    """

    name = "mert"

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        if self._checkpoint.json("config.json").get("feature_extractor_cqt"):
            raise UsageError(
                f"{self._checkpoint.name} has a constant-Q front end, which is not known here: give m-a-p/MERT-v1-95M."
            )

    def load(self) -> Any:
        from earmark.networks.deep_norm import weigh_residuals

        model = super().load()
        if self._checkpoint.json("config.json").get("deepnorm"):
            weigh_residuals(model, int(self._config.num_hidden_layers))
        return model


class AVES(HuBERT):
    """HuBERT's network, trained on sounds of animals, from its authors' file in torchaudio's names.

    `aves-base-bio.torchaudio.pt` needs `aves-base-bio.torchaudio.model_config.json` beside it. Waveforms are not
    normalised. torchaudio is not needed.
    """

    name = "aves"
    where = "download aves-base-bio.torchaudio.pt and its .model_config.json from the page of earthspecies/aves"
    renamed = (
        ("encoder.feature_projection.", "feature_projection."),
        ("encoder.transformer.", "encoder."),
    )

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, find_options={"where": self.where}, **options)
        self._normalises = False

    def read_config(self, kind: Any) -> Any:
        weights = self._checkpoint.weights
        stated = self._checkpoint.json(f"{weights.stem}.model_config.json")
        if not stated:
            raise InputError(
                f"{weights.stem}.model_config.json does not lie beside {weights}: download it from the same page."
            )
        convolutions = stated.get("extractor_conv_layer_config") or USUAL_CONVOLUTIONS
        widths, kernels, strides = zip(*convolutions, strict=True)
        return kind(
            hidden_size=stated["encoder_embed_dim"],
            num_hidden_layers=stated["encoder_num_layers"],
            num_attention_heads=stated["encoder_num_heads"],
            intermediate_size=stated["encoder_ff_interm_features"],
            num_conv_pos_embeddings=stated["encoder_pos_conv_kernel"],
            num_conv_pos_embedding_groups=stated["encoder_pos_conv_groups"],
            feat_extract_norm="group" if stated["extractor_mode"] == "group_norm" else "layer",
            conv_bias=stated["extractor_conv_bias"],
            conv_dim=widths,
            conv_kernel=kernels,
            conv_stride=strides,
            do_stable_layer_norm=stated["encoder_layer_norm_first"],
        )

    def load(self) -> Any:
        from earmark.networks.masked_norm import mask_group_norm

        tensors = {}
        for name, value in read_state(self._checkpoint).items():
            for old, new in self.renamed:
                name = f"{new}{name.removeprefix(old)}" if name.startswith(old) else name
            tensors[_parametrised(name)] = value
        tensors["masked_spec_embed"] = self._torch.zeros(self._config.hidden_size)  # used in training alone
        model = fill(self.empty(), tensors, self._checkpoint)
        self._norm = mask_group_norm(model)
        return model


USUAL_CONVOLUTIONS = ((512, 10, 5), *((512, 3, 2),) * 4, *((512, 2, 2),) * 2)
"""Width, kernel and stride of each convolution where torchaudio's config names none."""


def _parametrised(name: str) -> str:
    """The names of a weight's length and direction as torch has them now."""
    for number, old in enumerate(("weight_g", "weight_v")):
        if name.endswith(f".{old}"):
            return f"{name.removesuffix(old)}parametrizations.weight.original{number}"
    return name


class Wav2Vec2Bert(TransformersExtractor):
    """Wav2Vec2-BERT 2.0: a Conformer over mel frames, two of 10 ms in one."""

    name, classes = "wav2vec2_bert", ("Wav2Vec2BertConfig", "Wav2Vec2BertModel")
    LEAST = 560  # samples of two mel frames

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        if getattr(self._config, "add_adapter", False):
            raise UsageError(
                f"{self._checkpoint.name} has an adapter behind its layers: give the model it was made from."
            )
        library = require("transformers", "These models", "models")
        stated = self._checkpoint.json("preprocessor_config.json")
        self._front_end = library.SeamlessM4TFeatureExtractor.from_dict(stated)
        self.layers = int(self._config.num_hidden_layers)
        rate = int(self._front_end.sampling_rate)
        self.complete_card(
            rate=rate, dimension=self._config.hidden_size, frame_rate=100.0 / int(self._front_end.stride)
        )

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        samples = np.pad(waveform, (0, max(0, self.LEAST - len(waveform))))
        answer = self._front_end(samples, sampling_rate=self.card.rate, return_tensors="np", padding=False)
        return np.asarray(answer["input_features"][0], np.float32)

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        return self.hidden(network, batch.sounds.to(self._dtype), layers)


def convolved(samples: int, kernels: Sequence[int], strides: Sequence[int]) -> int:
    """How many frames the convolutions make of so many samples."""
    for kernel, stride in zip(kernels, strides, strict=True):
        samples = (samples - kernel) // stride + 1
    return samples
