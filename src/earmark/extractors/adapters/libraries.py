"""Models that another library finds, downloads and loads: `mteb:NAME`, `sentence-transformers:NAME_OR_FOLDER`.

There is one vector per clip: both libraries pool frames themselves (sentence-transformers as the folder's modules say,
the mean when it makes a model of a bare checkpoint). Clips are given one by one, so that padding cannot leak from clip
to clip; one shorter than `shortest` seconds lies in the middle of as much silence.

An encoder of your own that follows mteb's protocol needs no registration: `mteb:mypackage.mymodule:MyEncoder`. It is
given what mteb's own are given: a DataLoader of `{"audio": [{"array", "sampling_rate"}, ...]}`. For audio models in its
own list mteb wants torchaudio, which must fit your torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earmark.errors import InputError, UsageError, require, strangers_code
from earmark.extractors.contract import ExtractorCard, Frames, Waveform, as_array
from earmark.extractors.windows import SHORTEST, cover
from earmark.registry import load_path

TASK = "ESC50AudioReranking"  # encoders are told which task they work for; prompts of text models depend on it


class SentenceTransformersModel:
    """A sentence-transformers model that takes audio. `rate` is needed where the model's processor states none."""

    def __init__(
        self, name: str, *, rate: int | None = None, shortest: float = SHORTEST, revision: str | None = None,
        local_files_only: bool = False, device: str = "cpu",
    ) -> None:  # fmt: skip
        library = require("sentence_transformers", "sentence-transformers models", "sentence-transformers")
        import sentence_transformers as _counted  # noqa: F401  (its version is part of the cache key)

        remedy = "without a connection give a folder that holds the model"
        with strangers_code(f"sentence-transformers cannot load {name!r}", remedy):
            self._model: Any = library.SentenceTransformer(
                name, device=device, revision=revision, local_files_only=local_files_only
            )
        if "audio" not in self._model.modalities:
            raise UsageError(f"{name} does not take audio, only {', '.join(map(str, self._model.modalities))}.")
        processor = getattr(self._model[0], "processor", None)
        extractor = getattr(processor, "feature_extractor", None)
        stated = rate or getattr(extractor, "sampling_rate", None) or getattr(processor, "sampling_rate", None)
        if stated is None:
            raise UsageError(f"{name} does not say which rate it wants: give it as the parameter rate.")
        self._shortest = max(1, round(shortest * stated))
        self.card = ExtractorCard(
            name=Path(name).name,
            title=f"sentence-transformers model {Path(name).name}",
            rate=int(stated),
            dimension=self._model.get_embedding_dimension(),
            parameters=sum(weights.numel() for weights in self._model.parameters()),
            version=f"1 {revision or ''}",
        )

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        vectors = self._model.encode(
            _rows(waveforms, self._shortest, self.card.rate),
            batch_size=1,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return [Frames(as_array(vector)[None, :], 1) for vector in vectors]


class MtebEncoder:
    """An mteb audio encoder. `rate` is needed where the encoder states no `sampling_rate`."""

    def __init__(
        self, name: str, *, rate: int | None = None, shortest: float = SHORTEST, revision: str | None = None,
        device: str = "cpu",
    ) -> None:  # fmt: skip
        require("torch", "mteb encoders", "torch")
        require("mteb", "mteb encoders", "mteb")
        import mteb  # an import statement: its version is part of the cache key

        self._encoder: Any = _load_mteb(mteb, name, revision, device)
        meta = getattr(self._encoder, "mteb_model_meta", None)
        modalities = getattr(meta, "modalities", None) or ["audio"]
        if "audio" not in modalities:
            raise UsageError(f"{name} does not take audio: mteb says {', '.join(modalities)}.")
        self._task = mteb.get_task(TASK).metadata
        stated = rate or getattr(self._encoder, "sampling_rate", None)
        if stated is None:
            raise UsageError(f"mteb does not say which rate {name} wants: give it as the parameter rate.")
        self._shortest = max(1, round(shortest * int(stated)))
        self.card = ExtractorCard(
            name=name.rpartition(":")[2].rpartition("/")[2],
            title=f"mteb encoder {name}",
            rate=int(stated),
            parameters=getattr(meta, "n_parameters", None),
            licence=str(getattr(meta, "license", None) or ""),
            pretraining=tuple(sorted(getattr(meta, "training_datasets", None) or ())),
            context_seconds=getattr(self._encoder, "max_audio_length_seconds", None),
            version=f"1 {getattr(meta, 'revision', None) or ''}",
        )

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        clips = _MtebClips(_rows(waveforms, self._shortest, self.card.rate))
        data = require("torch.utils.data", "mteb encoders", "torch")
        loader = data.DataLoader(clips, batch_size=1, collate_fn=clips.collate)
        try:
            answer = self._encoder.encode(
                loader, task_metadata=self._task, hf_split="test", hf_subset="default", show_progress_bar=False
            )
        except ImportError as error:  # some are asked for on first use
            raise _missing_package(self.card.name, error) from error
        vectors = as_array(answer.float() if hasattr(answer, "detach") else answer)
        if vectors.ndim != 2 or len(vectors) != len(waveforms):
            raise InputError(f"{self.card.name} returned an array {vectors.shape} for {len(waveforms)} clips.")
        return [Frames(vector[None, :], 1) for vector in vectors]


def _rows(waveforms: Sequence[Waveform], shortest: int, rate: int) -> list[dict[str, Any]]:
    """Clips as both libraries take them."""
    return [{"array": cover(waveform, shortest, 1), "sampling_rate": rate} for waveform in waveforms]


def _load_mteb(mteb: Any, name: str, revision: str | None, device: str) -> Any:
    """The encoder that mteb knows by a name, or the one at an import path: an object, or a class as mteb calls it."""
    with strangers_code(f"mteb cannot load {name!r}"):
        try:
            if ":" not in name:
                return mteb.get_model(name, revision=revision, device=device)
            encoder: Any = load_path(name, "mteb encoder")
            return encoder(name, revision, device=device) if isinstance(encoder, type) else encoder
        except ImportError as error:
            raise _missing_package(name, error) from error


def _missing_package(name: str, error: ImportError) -> UsageError:
    first = str(error).partition("\n")[0].rstrip(".")
    return UsageError(f"{name} needs a package that is not installed: {error.name or first}.")


class _MtebClips:
    """Clips as a data set whose columns mteb can ask for."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = rows
        self.features = {"audio": "Audio"}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> dict[str, Any]:
        # mteb's collators write into rows, so every row is a new one.
        row = self._rows[number]
        return {"audio": {**row, "array": row["array"].copy()}}

    @staticmethod
    def collate(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
        return {key: [row[key] for row in rows] for key in rows[0]}
