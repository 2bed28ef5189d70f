"""EAT, the Efficient Audio Transformer: one [CLS] vector per clip, or its patches.

Reads the ports on the hub (`worstchan/EAT-...`, safetensors) and tensors under the names of the authors' training code
(`modality_encoders.IMAGE...`), of pretrained and of fine-tuned models. A training checkpoint of fairseq holds Python
objects beside its tensors and is refused: use the port.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from earmark.extractors.catalogue import CARDS
from earmark.extractors.patches import RATE, FilterBank, PatchExtractor
from earmark.extractors.pretrained import Checkpoint, fill, find, read_state, stripped, versioned
from earmark.extractors.torch_models import Batch, Settings, parameters_of

__all__ = ["EAT"]

CHECKPOINT = "worstchan/EAT-large_epoch20_finetune_AS2M"
MEAN, DEVIATION = -4.268, 4.569

_NAMES = (
    (r"^modality_encoders\.IMAGE\.", ""),
    (r"^context_encoder\.norm\.", "norm."),
    (r"^pre_norm\.", "norm."),
    (r"^local_encoder\.(proj\.)?", "patch_embed."),
    (r"^extra_tokens$", "cls_token"),
    (r"^fixed_positional_encoder\.positions$", "positions"),
)


class EAT(PatchExtractor):
    """The [CLS] token of the last layer, as in VocSim; layers, patches and frames on demand."""

    def __init__(self, checkpoint: str = CHECKPOINT, *, tokens: str = "cls", **options: Any) -> None:
        super().__init__(Settings(**options), tokens)
        card = CARDS["eat"]
        self._checkpoint = find(checkpoint, card, **self.settings.loading)
        self._shape = _shape(self._checkpoint)
        self.layers = self._shape.depth
        self.bank = FilterBank(self._shape.frames, self._shape.bands, MEAN, DEVIATION, self._shape.patch)
        self._rows = self._shape.grid[1]
        self.card = versioned(
            card,
            self._checkpoint,
            "torch",
            dimension=self._shape.width,
            frame_rate=self.frame_rate(self._rows),
            context_seconds=self.bank.samples / RATE,
            parameters=parameters_of(self._empty()),
        )

    def _empty(self) -> Any:
        from earmark.networks.vision_transformer import SpectrogramTransformer

        with self._torch.device("meta"):
            return SpectrogramTransformer(self._shape)

    def load(self) -> Any:
        state = read_state(self._checkpoint)
        tensors = _renamed(stripped(state.get("model", state), "model.", "module."))
        tensors["positions"] = self._positions(tensors.get("positions"))
        return fill(self._empty(), tensors, self._checkpoint)

    def _positions(self, stored: Any) -> Any:
        """Positions of the patches behind a row of zeros, since the [CLS] token has none."""
        from earmark.networks.vision_transformer import sine_positions

        columns, rows = self._shape.grid
        known = sine_positions(self._shape.width, columns, rows) if stored is None else stored
        return self._torch.nn.functional.pad(known[:, : columns * rows], (0, 0, 1, 0))

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        hidden = network(self.spectrogram(batch)[:, None])
        return {layer: self.chosen(hidden[layer], 1, self._rows) for layer in layers}


def _shape(checkpoint: Checkpoint) -> Any:
    """The network's size: from config.json where it says, else as the checkpoint's name has it, base or large."""
    from earmark.networks.vision_transformer import Shape

    said = checkpoint.json("config.json")
    large = "large" in checkpoint.name.lower()
    width = int(said.get("embed_dim", 1024 if large else 768))
    frames, bands = said.get("img_size", (1024, 128))
    return Shape(
        width=width,
        depth=int(said.get("depth", 24 if large else 12)),
        heads=int(said.get("num_heads", 16 if large else 12)),
        hidden=int(width * float(said.get("mlp_ratio", 4))),
        patch=int(said.get("patch_size", 16)),
        frames=int(frames),
        bands=int(bands),
        norm_first=False,
    )


def _renamed(tensors: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in tensors.items():
        short = name
        for pattern, replacement in _NAMES:
            short = re.sub(pattern, replacement, short)
        found[short] = value
    return found
