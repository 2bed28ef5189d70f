"""ECAPA-TDNN as an extractor, by a checkpoint of SpeechBrain's layout: `asv:ecapa:/models/embedding_model.ckpt`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from earmark.errors import InputError, require
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.pretrained import fill, find, read_state, stripped, versioned
from earmark.extractors.torch_models import Settings

__all__ = ["CARD", "Ecapa"]

CARD = ExtractorCard(
    name="ecapa",
    short_name="ECAPA",
    title="ECAPA-TDNN speaker embedding",
    dimension=192,
    parameters=20_767_552,
    licence="Apache-2.0 (SpeechBrain's weights)",
    citation="Desplanques et al., Interspeech 2020",
    pretraining=("VoxCeleb1", "VoxCeleb2"),
    extra="torch",
    notes="one vector per clip; 80 mel bands without their mean",
)
WHERE = "download embedding_model.ckpt of speechbrain/spkrec-ecapa-voxceleb"
SHORTEST = 400 * 8  # samples: a few frames, so that mirrored edges have something to mirror


class Ecapa:
    """Frames [1, D]: one vector per clip. Clips run one by one, so none is padded."""

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        torch = require("torch", "ECAPA embeddings", "torch")
        from earmark.networks.ecapa import EcapaTdnn

        settings = Settings(**options)
        found = find(checkpoint, CARD, where=WHERE, **settings.loading)
        state = stripped(read_state(found), "embedding_model.", "module.")
        try:
            network = EcapaTdnn.sized(state)
        except (KeyError, AttributeError, IndexError, ValueError) as error:
            raise InputError(
                f"{found.weights} is no ECAPA-TDNN of SpeechBrain's layout (it lacks {error}): {WHERE}."
            ) from error
        self._torch = torch
        device = settings.device if settings.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        self._device = torch.device(device)
        self._network = fill(network, state, found).to(self._device)
        self._bands = int(state["blocks.0.conv.conv.weight"].shape[1])
        dimension = int(state["fc.conv.weight"].shape[0])
        self.card = versioned(CARD, found, "torch", dimension=dimension)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [Frames(self._clip(waveform), 1) for waveform in waveforms]

    def _clip(self, waveform: Waveform) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        from earmark.networks.ecapa import ecapa_features

        samples = np.pad(waveform, (0, max(0, SHORTEST - len(waveform)))).astype(np.float32)
        with self._torch.inference_mode():
            sounds = self._torch.from_numpy(samples)[None].to(self._device)
            vector = self._network(ecapa_features(sounds, self._bands))
        return np.asarray(vector.cpu().numpy(), np.float32)
