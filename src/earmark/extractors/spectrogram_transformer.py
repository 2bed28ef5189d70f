"""Transformers over patches of a spectrogram: AST, EAT, AudioMAE and BEATs.

    clip, cut to the context -- Kaldi filter bank [frames, bands] -- zeros behind it -- normalised -- patches, [CLS]

    tokens=cls       one vector per clip: the token(s) in front of the patches
    tokens=patches   every patch, in order of time, then of frequency
    tokens=frames    the mean over frequency of the patches of one moment

`valid` counts the patches (or moments) that heard at least one frame of sound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.extractors.contract import Waveform
from earmark.extractors.pretrained import fill, load_model, read_state, stripped
from earmark.extractors.torch_models import Batch, TorchExtractor, TransformersExtractor

TOKENS = ("cls", "patches", "frames")
RATE, FRAME, HOP = 16000, 400, 160
"""Kaldi's frames: 25 ms every 10 ms, only those that lie within the clip."""


@dataclass(frozen=True)
class FilterBank:
    """The spectrogram a model was trained on. `stride` is frames from one column of patches to the next."""

    frames: int
    bands: int
    mean: float
    deviation: float  # values are divided by twice this
    patch: int = 16
    stride: int = 16
    window: str = "hanning"
    gain: float = 1.0

    @property
    def samples(self) -> int:
        return (self.frames - 1) * HOP + FRAME

    @property
    def columns(self) -> int:
        return (self.frames - self.patch) // self.stride + 1


class PatchExtractor(TorchExtractor):
    """A model of patches; a family adds its network, the `bank` and the number of `rows` of patches."""

    bank: FilterBank
    rows: int

    def __init__(self, checkpoint: str = "", *, tokens: str = "cls", **options: Any) -> None:
        if tokens not in TOKENS:
            raise UsageError(f"There are no tokens {tokens!r}: choose from {', '.join(TOKENS)}.")
        self.tokens = tokens
        super().__init__(checkpoint, **options)

    def complete_card(self, **facts: Any) -> None:
        moments = RATE / HOP / self.bank.stride
        frame_rate = {"cls": None, "patches": moments * self.rows, "frames": moments}[self.tokens]
        super().complete_card(**{"frame_rate": frame_rate, "context_seconds": self.bank.samples / RATE, **facts})

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        return np.pad(waveform, (0, self.bank.samples - len(waveform)))

    def spectrogram(self, batch: Batch) -> Any:
        """The normalised filter bank [B, frames, bands]; frames behind a clip's end are zero before normalisation."""
        from earmark.networks.spectrograms import kaldi_fbank

        torch = self._torch
        values = kaldi_fbank(batch.sounds * self.bank.gain, self.bank.bands, self.bank.window)
        own = torch.tensor([frames_in(samples) for samples in batch.samples], device=values.device)
        beyond = torch.arange(values.shape[1], device=values.device) >= own[:, None]
        values = values.masked_fill(beyond[..., None], 0.0)
        return ((values - self.bank.mean) / (2.0 * self.bank.deviation)).to(self._dtype)

    def chosen(self, hidden: Any, front: int, *, by_time: bool = True) -> Any:
        """The tokens asked for, of hidden states [B, front + patches, D]; `by_time` says how patches are ordered."""
        if self.tokens == "cls":
            return hidden[:, :front].mean(dim=1, keepdim=True)
        batch, _, width = hidden.shape
        patches, rows = hidden[:, front:], self.rows
        grid = patches.view(batch, -1, rows, width) if by_time else patches.view(batch, rows, -1, width).transpose(1, 2)
        return grid.mean(dim=2) if self.tokens == "frames" else grid.reshape(batch, -1, width)

    def valid(self, samples: int, frames: int) -> int:
        if self.tokens == "cls":
            return 1
        columns = math.ceil(frames_in(samples) / self.bank.stride)
        return columns * (frames // self.bank.columns)


def frames_in(samples: int) -> int:
    """Whole frames of a clip; a clip shorter than one has one, filled up with zeros."""
    return 1 + max(0, samples - FRAME) // HOP


class AST(PatchExtractor, TransformersExtractor):
    """The Audio Spectrogram Transformer: overlapping patches of 10 s, two tokens in front.

    The mean of its [CLS] and distillation tokens, as its own classifier takes it, or its patches.
    """

    name, classes = "ast", ("ASTConfig", "ASTModel")

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        config, stated = self._config, self._checkpoint.json("preprocessor_config.json")
        normalises = stated.get("do_normalize", True)
        self.layers = int(config.num_hidden_layers)
        self.bank = FilterBank(
            frames=int(config.max_length),
            bands=int(config.num_mel_bins),
            mean=float(stated.get("mean", -4.2677393)) if normalises else 0.0,
            deviation=float(stated.get("std", 4.5689974)) if normalises else 0.5,
            patch=int(config.patch_size),
            stride=int(config.time_stride),
        )
        self.rows = (self.bank.bands - self.bank.patch) // int(config.frequency_stride) + 1
        self.complete_card(dimension=config.hidden_size)

    def load(self) -> Any:
        # Classifiers hold the same network under another name.
        return load_model(self._kind, self._checkpoint, key_mapping={r"^audio_spectrogram_transformer\.": ""})

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        hidden = self.hidden(network, self.spectrogram(batch), layers)
        return {layer: self.chosen(hidden[layer], 2, by_time=False) for layer in layers}


# --- vision transformers of our own ---------------------------------------------------------------------------


class VisionExtractor(PatchExtractor):
    """A vision transformer of spectrogram patches behind one [CLS] token, in our own code."""

    mean, deviation = -4.2677393, 4.5689974
    norm_first = True

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        self._shape = shape = self.shape()
        self.layers = shape.depth
        self.bank = FilterBank(shape.frames, shape.bands, self.mean, self.deviation, shape.patch)
        self.rows = shape.grid[1]
        self.complete_card(dimension=shape.width)

    def usual_size(self) -> dict[str, Any]:
        """The size of a network whose config.json does not say: ViT-B."""
        return {"width": 768, "depth": 12, "heads": 12}

    def shape(self) -> Any:
        """The network's size: from config.json where it says (in timm's words or ours), else the usual one."""
        from earmark.networks.vision_transformer import TransformerShape

        usual = self.usual_size()
        config = self._checkpoint.json("config.json")
        config = {**config, **config.get("model_args", {})}
        frames, bands = config.get("img_size", (1024, 128))
        width = int(config.get("embed_dim", usual["width"]))
        return TransformerShape(
            width=width,
            depth=int(config.get("depth", usual["depth"])),
            heads=int(config.get("num_heads", usual["heads"])),
            hidden=int(width * float(config.get("mlp_ratio", 4))),
            patch=int(config.get("patch_size", 16)),
            frames=int(frames),
            bands=int(bands),
            norm_first=self.norm_first,
        )

    def build(self) -> Any:
        from earmark.networks.vision_transformer import SpectrogramTransformer

        return SpectrogramTransformer(self._shape)

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        hidden = network(self.spectrogram(batch)[:, None])
        return {layer: self.chosen(hidden[layer], 1) for layer in layers}


class EAT(VisionExtractor):
    """The Efficient Audio Transformer: the [CLS] token of the last layer, as in VocSim, or its patches.

    Reads the ports on the hub (`worstchan/EAT-...`, safetensors) and tensors under the names of the authors' training
    code (`modality_encoders.IMAGE...`), of pretrained and of fine-tuned models. A training checkpoint of fairseq holds
    Python objects beside its tensors and is refused: use the port.
    """

    name = "eat"
    mean, deviation = -4.268, 4.569
    norm_first = False
    renamed = (
        (r"^modality_encoders\.IMAGE\.", ""),
        (r"^context_encoder\.norm\.", "norm."),
        (r"^pre_norm\.", "norm."),
        (r"^local_encoder\.(proj\.)?", "patch_embed."),
        (r"^extra_tokens$", "cls_token"),
        (r"^fixed_positional_encoder\.positions$", "positions"),
    )

    def usual_size(self) -> dict[str, Any]:
        """Base or large, as the checkpoint's name has it."""
        large = "large" in self._checkpoint.name.lower()
        return {"width": 1024, "depth": 24, "heads": 16} if large else super().usual_size()

    def load(self) -> Any:
        from earmark.networks.vision_transformer import sine_positions

        state = read_state(self._checkpoint)
        tensors: dict[str, Any] = {}
        for name, value in stripped(state.get("model", state), "model.", "module.").items():
            for pattern, replacement in self.renamed:
                name = re.sub(pattern, replacement, name)
            tensors[name] = value
        columns, rows = self._shape.grid
        stored = tensors.get("positions")
        known = sine_positions(self._shape.width, columns, rows) if stored is None else stored
        # A row of zeros in front, since the [CLS] token has no position.
        tensors["positions"] = self._torch.nn.functional.pad(known[:, : columns * rows], (0, 0, 1, 0))
        return fill(self.empty(), tensors, self._checkpoint)


class AudioMAE(VisionExtractor):
    """AudioMAE's encoder, trained to fill in masked patches: 512 patches of 16 x 16 for 10 s, or its [CLS] token.

    Reads the authors' file (`{"model": ...}`), the port `hance-ai/audiomae` and ports in timm's names. Ports normalise
    in different places; here the norm that a checkpoint has (`norm`, else `fc_norm`) is applied to every token of the
    last layer.
    """

    name = "audiomae"

    def __init__(self, checkpoint: str = "", *, tokens: str = "patches", **options: Any) -> None:
        super().__init__(checkpoint, tokens=tokens, **options)

    def load(self) -> Any:
        """The decoder of a pretraining checkpoint stays behind."""
        state = read_state(self._checkpoint)
        tensors = stripped(state.get("model", state), "encoder.", "model.", "module.")
        names = {"patch_embed.proj.": "patch_embed.", "pos_embed": "positions"}
        if "norm.weight" not in tensors:
            names["fc_norm."] = "norm."
        for name in list(tensors):
            old = next((old for old in names if name.startswith(old)), None)
            if old is not None:
                tensors[names[old] + name.removeprefix(old)] = tensors.pop(name)
        return fill(self.empty(), tensors, self._checkpoint)


class BEATs(PatchExtractor):
    """BEATs: frame-level outputs of the last block, patch by patch, of clips of any length; it has no [CLS] token.

    Reads the authors' files (`{"cfg": ..., "model": ...}`, a pickle) and safetensors with the same names and a
    config.json with the same keys beside them. A fine-tuned model's classifier is left out. Patches of 16 frames are
    cut from the beginning, as its authors do: up to 15 frames (0.15 s) at the end of a clip make no patch.
    """

    name = "beats"
    bands, mean, deviation = 128, 15.41663, 6.55582
    where = "download BEATs_iter3_plus_AS2M.pt from the page of microsoft/unilm (folder beats)"

    def __init__(self, checkpoint: str = "", *, tokens: str = "patches", **options: Any) -> None:
        if tokens == "cls":
            raise UsageError("BEATs has no [CLS] token: choose tokens=patches or tokens=frames.")
        super().__init__(checkpoint, tokens=tokens, find_options={"where": self.where}, **options)
        self._state: Any = None
        self._shape = self._read_shape()
        self.layers = self._shape.encoder_layers
        patch = self._shape.input_patch_size
        self.rows = self.bands // patch
        # Kaldi's filter bank of samples in the range of 16-bit integers.
        self.bank = FilterBank(patch, self.bands, self.mean, self.deviation, patch, patch, "povey", 2.0**15)
        self.complete_card(dimension=self._shape.encoder_embed_dim, context_seconds=None)

    def _read_shape(self) -> Any:
        from earmark.networks.beats import BeatsShape

        config = self._checkpoint.json("config.json")
        if self._checkpoint.weights.suffix != ".safetensors":
            self._state = read_state(self._checkpoint)
            config = self._state.get("cfg", config)
        if config.get("activation_fn", "gelu") != "gelu":
            raise InputError(f"{self._checkpoint.name} uses {config['activation_fn']}: only GELU is known here.")
        return BeatsShape.of(config)

    def build(self) -> Any:
        from earmark.networks.beats import BEATs as Network

        return Network(self._shape)

    def load(self) -> Any:
        from earmark.networks.beats import rename_tensors

        state = self._state or read_state(self._checkpoint)
        self._state = None
        tensors = rename_tensors(stripped(state.get("model", state), "model.", "beats.", "module."))
        return fill(self.empty(), tensors, self._checkpoint)

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        patch = self.bank.patch
        whole = max(1, frames_in(len(waveform)) // patch) * patch
        samples = (whole - 1) * HOP + FRAME
        return np.pad(waveform[:samples], (0, max(0, samples - len(waveform))))

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        hidden = network(self.spectrogram(batch))
        return {layer: self.chosen(hidden[layer], 0) for layer in layers}

    def spectrogram(self, batch: Batch) -> Any:
        from earmark.networks.spectrograms import kaldi_fbank

        values = kaldi_fbank(batch.sounds * self.bank.gain, self.bands, self.bank.window)
        return ((values - self.mean) / (2.0 * self.deviation)).to(self._dtype)

    def valid(self, samples: int, frames: int) -> int:
        return frames
