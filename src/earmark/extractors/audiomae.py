"""AudioMAE's encoder: a vision transformer trained to fill in masked patches of spectrograms.

Reads the authors' file (`{"model": ...}`), the port `hance-ai/audiomae` and ports in timm's names. Ports normalise in
different places; here the norm that a checkpoint has (`norm`, else `fc_norm`) is applied to every token of the last
layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from earmark.extractors.catalogue import CARDS
from earmark.extractors.patches import RATE, FilterBank, PatchExtractor
from earmark.extractors.pretrained import Checkpoint, fill, find, read_state, stripped, versioned
from earmark.extractors.torch_models import Batch, Settings, parameters_of

__all__ = ["AudioMAE"]

CHECKPOINT = "hance-ai/audiomae"


class AudioMAE(PatchExtractor):
    """512 patches of 16 x 16 for 10 s, or its [CLS] token."""

    def __init__(self, checkpoint: str = CHECKPOINT, *, tokens: str = "patches", **options: Any) -> None:
        super().__init__(Settings(**options), tokens)
        card = CARDS["audiomae"]
        self._checkpoint = find(checkpoint, card, **self.settings.loading)
        self._shape = _shape(self._checkpoint)
        self.layers = self._shape.depth
        self.bank = FilterBank(self._shape.frames, self._shape.bands, -4.2677393, 4.5689974, self._shape.patch)
        columns_and_rows = self._shape.grid
        self._rows = columns_and_rows[1]
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
        return fill(self._empty(), _renamed(_tensors(self._checkpoint)), self._checkpoint)

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        hidden = network(self.spectrogram(batch)[:, None])
        return {layer: self.chosen(hidden[layer], 1, self._rows) for layer in layers}


def _tensors(checkpoint: Checkpoint) -> dict[str, Any]:
    state = read_state(checkpoint)
    return stripped(state.get("model", state), "encoder.", "model.", "module.")


def _shape(checkpoint: Checkpoint) -> Any:
    """The network's size: from config.json where it says (in timm's words or ours), else ViT-B."""
    from earmark.networks.vision_transformer import Shape

    said = checkpoint.json("config.json")
    said = {**said, **said.get("model_args", {})}
    frames, bands = said.get("img_size", (1024, 128))
    width = int(said.get("embed_dim", 768))
    return Shape(
        width=width,
        depth=int(said.get("depth", 12)),
        heads=int(said.get("num_heads", 12)),
        hidden=int(width * float(said.get("mlp_ratio", 4))),
        patch=int(said.get("patch_size", 16)),
        frames=int(frames),
        bands=int(bands),
    )


def _renamed(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Our names for the tensors; the decoder of a pretraining checkpoint stays behind."""
    names = {"patch_embed.proj.": "patch_embed.", "pos_embed": "positions"}
    if "norm.weight" not in tensors:
        names["fc_norm."] = "norm."
    found = {}
    for name, value in tensors.items():
        old = next((old for old in names if name.startswith(old)), None)
        found[name if old is None else names[old] + name.removeprefix(old)] = value
    return found
