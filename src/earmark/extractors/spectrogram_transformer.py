"""AST, the Audio Spectrogram Transformer: overlapping patches of 10 s, two tokens in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from earmark.errors import require
from earmark.extractors.catalogue import CARDS
from earmark.extractors.patches import RATE, FilterBank, PatchExtractor
from earmark.extractors.pretrained import config_of, find, load_model, versioned
from earmark.extractors.torch_models import Batch, Settings, parameters_of

__all__ = ["AST"]


class AST(PatchExtractor):
    """The mean of its [CLS] and distillation tokens, as its own classifier takes it, or its patches."""

    def __init__(
        self,
        checkpoint: str = "MIT/ast-finetuned-audioset-10-10-0.4593",
        *,
        tokens: str = "cls",
        **options: Any,
    ) -> None:
        super().__init__(Settings(**options), tokens)
        card = CARDS["ast"]
        self._checkpoint = find(checkpoint, card, **self.settings.loading)
        library = require("transformers", "These models", "models")
        config = config_of(library.ASTConfig, self._checkpoint)
        said = self._checkpoint.json("preprocessor_config.json")
        self._kind = library.ASTModel
        self.layers = int(config.num_hidden_layers)
        self.bank = FilterBank(
            frames=int(config.max_length),
            bands=int(config.num_mel_bins),
            mean=float(said.get("mean", -4.2677393)) if said.get("do_normalize", True) else 0.0,
            deviation=float(said.get("std", 4.5689974)) if said.get("do_normalize", True) else 0.5,
            patch=int(config.patch_size),
            stride=int(config.time_stride),
        )
        self._rows = (self.bank.bands - self.bank.patch) // int(config.frequency_stride) + 1
        with self._torch.device("meta"):
            parameters = parameters_of(self._kind(config))
        self.card = versioned(
            card,
            self._checkpoint,
            "torch",
            "transformers",
            dimension=config.hidden_size,
            frame_rate=self.frame_rate(self._rows),
            context_seconds=self.bank.samples / RATE,
            parameters=parameters,
        )

    def load(self) -> Any:
        # Classifiers hold the same network under another name.
        return load_model(self._kind, self._checkpoint, key_mapping={r"^audio_spectrogram_transformer\.": ""})

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        found = network(self.spectrogram(batch), output_hidden_states=True)
        assert self.layers is not None
        hidden = [*found.hidden_states[: self.layers], found.last_hidden_state]
        return {layer: self.chosen(hidden[layer], 2, self._rows, by_time=False) for layer in layers}
