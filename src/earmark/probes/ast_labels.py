"""AST as the classifier it was trained to be: a score between 0 and 1 for each of its labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from earmark.errors import InputError, require
from earmark.extractors.pretrained import load_model
from earmark.extractors.spectrogram_transformer import AST
from earmark.extractors.torch_models import Batch

__all__ = ["AstLabels"]


class AstLabels(AST):
    """Frames [1, labels]: the sigmoid of the classifier's answer. `names` are the labels."""

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        said = self._checkpoint.json("config.json").get("id2label") or {}
        if not said:
            raise InputError(
                f"{self._checkpoint.name} names no labels (id2label in config.json): give a fine-tuned classifier."
            )
        self.names = tuple(str(said[key]) for key in sorted(said, key=int))

    def load(self) -> Any:
        library = require("transformers", "These models", "models")
        return load_model(library.ASTForAudioClassification, self._checkpoint)

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        scores = network(self.spectrogram(batch)).logits.float().sigmoid()[:, None, :]
        return dict.fromkeys(layers, scores)
