"""A sentence-transformers model that takes audio: `sentence-transformers:openai/whisper-tiny`, or a folder.

The library pools frames itself (as the folder's modules say; the mean when it makes a model of a bare checkpoint), so
there is one vector per clip. Clips are encoded one by one: padding then cannot leak from clip to clip. One shorter
than `shortest` seconds lies in the middle of as much silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.windows import SHORTEST, cover

__all__ = ["SentenceTransformersModel"]


class SentenceTransformersModel:
    """One vector per clip (T = 1). `rate` is needed where the model's processor states none."""

    def __init__(
        self,
        name: str,
        *,
        rate: int | None = None,
        shortest: float = SHORTEST,
        revision: str | None = None,
        local_files_only: bool = False,
        device: str = "cpu",
    ) -> None:
        library = require("sentence_transformers", "sentence-transformers models", "sentence-transformers")
        import sentence_transformers as _counted  # noqa: F401  (its version is part of the cache key)

        try:
            self._model: Any = library.SentenceTransformer(
                name, device=device, revision=revision, local_files_only=local_files_only
            )
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            raise InputError(
                f"sentence-transformers cannot load {name!r}: {type(error).__name__}: {text} "
                "Without a connection give a folder that holds the model."
            ) from error
        if "audio" not in self._model.modalities:
            raise UsageError(f"{name} does not take audio, only {', '.join(map(str, self._model.modalities))}.")
        stated = rate or _stated_rate(self._model)
        if stated is None:
            raise UsageError(f"{name} does not say which rate it wants: give it as the parameter rate.")
        self._shortest = max(1, round(shortest * stated))
        self.card = ExtractorCard(
            name=Path(name).name,
            title=f"sentence-transformers model {Path(name).name}",
            rate=stated,
            dimension=self._model.get_embedding_dimension(),
            parameters=sum(weights.numel() for weights in self._model.parameters()),
            version=f"1 {revision or ''}",
        )

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        clips = [
            {"array": cover(waveform, self._shortest, 1), "sampling_rate": self.card.rate} for waveform in waveforms
        ]
        vectors = self._model.encode(clips, batch_size=1, show_progress_bar=False, convert_to_numpy=True)
        return [Frames(np.asarray(vector)[None, :], 1) for vector in vectors]


def _stated_rate(model: Any) -> int | None:
    """The rate of the processor, or of the feature extractor inside it."""
    processor = getattr(model[0], "processor", None)
    for thing in (getattr(processor, "feature_extractor", None), processor):
        rate = getattr(thing, "sampling_rate", None)
        if isinstance(rate, int | float):
            return int(rate)
    return None
