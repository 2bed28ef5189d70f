"""An mteb audio encoder as an extractor: `mteb:laion/clap-htsat-fused`, or any name that mteb knows.

mteb finds, downloads and loads the model. An encoder of your own that follows mteb's protocol needs no registration:
`mteb:mypackage.mymodule:MyEncoder`. Clips are handed over as mteb hands over its own: a DataLoader of
`{"audio": [{"array", "sampling_rate"}, ...]}`, one clip in a batch, so that padding cannot leak from clip to clip. What
comes back is one vector per clip. For audio models in its own list mteb wants torchaudio, which must fit your torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earmark.errors import EarmarkError, InputError, UsageError, require
from earmark.extractors.contract import ExtractorCard, Frames, Waveform, as_array
from earmark.extractors.windows import SHORTEST, cover
from earmark.registry import load_path

__all__ = ["MtebEncoder"]

TASK = "ESC50AudioReranking"  # encoders are told which task they work for; prompts of text models depend on it


class MtebEncoder:
    """One vector per clip (T = 1). `rate` is needed where the encoder states no `sampling_rate`."""

    def __init__(
        self,
        name: str,
        *,
        rate: int | None = None,
        shortest: float = SHORTEST,
        revision: str | None = None,
        device: str = "cpu",
    ) -> None:
        require("torch", "mteb encoders", "torch")
        require("mteb", "mteb encoders", "mteb")
        import mteb  # an import statement: its version is part of the cache key

        self._encoder: Any = _load(mteb, name, revision, device)
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
        data = require("torch.utils.data", "mteb encoders", "torch")
        loader = data.DataLoader(
            _Clips([cover(waveform, self._shortest, 1) for waveform in waveforms], self.card.rate),
            batch_size=1,
            collate_fn=_in_lists,
        )
        try:
            answer = self._encoder.encode(
                loader, task_metadata=self._task, hf_split="test", hf_subset="default", show_progress_bar=False
            )
        except ImportError as error:  # some are asked for on first use
            raise _missing(self.card.name, error) from error
        vectors = as_array(answer.float() if hasattr(answer, "detach") else answer)
        if vectors.ndim != 2 or len(vectors) != len(waveforms):
            raise InputError(f"{self.card.name} returned an array {vectors.shape} for {len(waveforms)} clips.")
        return [Frames(vector[None, :], 1) for vector in vectors]


def _load(mteb: Any, name: str, revision: str | None, device: str) -> Any:
    """The encoder that mteb knows by a name, or the one at an import path: an object, or a class as mteb calls it."""
    try:
        if ":" not in name:
            return mteb.get_model(name, revision=revision, device=device)
        encoder: Any = load_path(name, "mteb encoder")
        return encoder(name, revision, device=device) if isinstance(encoder, type) else encoder
    except EarmarkError:
        raise
    except ImportError as error:
        raise _missing(name, error) from error
    except Exception as error:
        text = " ".join(str(error).split())
        raise InputError(f"mteb cannot load {name!r}: {type(error).__name__}: {text}") from error


def _missing(name: str, error: ImportError) -> UsageError:
    first = str(error).partition("\n")[0].rstrip(".")
    return UsageError(f"{name} needs a package that is not installed: {error.name or first}.")


class _Clips:
    """Clips as a data set whose columns mteb can ask for."""

    def __init__(self, waveforms: Sequence[Waveform], rate: int) -> None:
        self._waveforms, self._rate = waveforms, rate
        self.features = {"audio": "Audio"}

    def __len__(self) -> int:
        return len(self._waveforms)

    def __getitem__(self, number: int) -> dict[str, Any]:
        # mteb's collators write into rows, so every row is a new one.
        return {"audio": {"array": self._waveforms[number].copy(), "sampling_rate": self._rate}}


def _in_lists(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {key: [row[key] for row in rows] for key in rows[0]}
