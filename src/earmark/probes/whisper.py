"""Whisper as a recogniser: greedy decoding of the first 30 s of a clip, by a checkpoint of the user.

    asr:whisper:openai/whisper-large       from the hub, or its cache on this machine
    asr:whisper:/models/whisper-large      a folder with config.json, model.safetensors and the tokenizer's files

Greedy, no temperature fallback and no text of the clip before: the same clip always gives the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from earmark.corpora.clips import Clip
from earmark.embedding.hearing import Sound, length_of, listen, windows
from earmark.errors import InputError, require
from earmark.extractors.catalogue import CARDS
from earmark.extractors.pretrained import Checkpoint, find, load_model, versioned
from earmark.extractors.torch_models import Settings, device_of
from earmark.probes._contract import Responses
from earmark.progress import Progress, progress_bar
from earmark.runs.engine import reason_of
from earmark.wording import counted

RATE = 16000
TOKENIZER = ("tokenizer*.json", "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json",
             "normalizer.json", "generation_config.json")  # fmt: skip


class WhisperRecogniser:
    """`language` is a code such as `en`, or empty to let the model decide; English-only checkpoints need none."""

    def __init__(
        self, checkpoint: str = "openai/whisper-large", *, language: str = "en", tokens: int = 224, **options: Any
    ) -> None:
        self.settings = Settings(**options)
        self.language, self.tokens = language, tokens
        self._torch = require("torch", "These models", "torch")
        self._library = require("transformers", "These models", "models")
        card = replace(CARDS["whisper"], name="asr:whisper")
        self._checkpoint = find(checkpoint, card, **self.settings.loading)
        self._words = self._tokenizer()
        self._features = _features(self._library, self._checkpoint)
        self._network: Any = None
        self.name = f"whisper:{checkpoint}"
        self.version = versioned(card, self._checkpoint, "torch", "transformers").version

    def transcribe(self, clips: Sequence[Clip], *, progress: Progress = False) -> Responses:
        texts: dict[str, str] = {}
        failures: dict[str, str] = {}
        cut = 0
        longest = self._features.n_samples / RATE
        with progress_bar(progress, len(clips), self.name, "clip") as bar:
            for window in windows([length_of(clip) for clip in clips], min(self.settings.batch, 8)):
                sounds = {clip.id: listen(clip, RATE) for clip in clips[window]}
                good: dict[str, Sound] = {}
                for name, sound in sounds.items():
                    if isinstance(sound, Exception):
                        failures[name] = reason_of(sound)
                    elif not np.isfinite(sound.waveform).all():
                        failures[name] = "it holds NaN or infinite samples"
                    else:
                        good[name] = sound
                texts |= dict(zip(good, self._decode([sound.waveform for sound in good.values()]), strict=True))
                cut += sum(sound.seconds > longest for sound in good.values())
                bar.reach(len(texts) + len(failures))
        order = [clip.id for clip in clips if clip.id in texts]
        notes = (f"{counted(cut, 'clip')} longer than {longest:g} s: the rest was not heard",) if cut else ()
        return Responses(
            tuple(order), texts=tuple(texts[name] for name in order), failures=failures, notes=notes, model=self.name
        )

    def _decode(self, waveforms: Sequence[Any]) -> list[str]:
        if not waveforms:
            return []
        model = self._model()
        texts: list[str] = []
        for start in range(0, len(waveforms), self.settings.batch):
            part = list(waveforms[start : start + self.settings.batch])
            mel = self._features(part, sampling_rate=RATE, return_tensors="pt").input_features
            with self._torch.inference_mode(), _without_advice(self._library):
                tokens = model.generate(
                    mel.to(model.device, model.dtype), do_sample=False, num_beams=1, max_new_tokens=self.tokens,
                    **self._prompt(model),
                )  # fmt: skip
            texts += self._words.batch_decode(tokens, skip_special_tokens=True)
        return [text.strip() for text in texts]

    def _prompt(self, model: Any) -> dict[str, str]:
        """Language and task, for models that know more than one language."""
        if not getattr(model.generation_config, "is_multilingual", False):
            return {}
        return {"task": "transcribe", **({"language": self.language} if self.language else {})}

    def _model(self) -> Any:
        if self._network is None:
            model = load_model(self._library.WhisperForConditionalGeneration, self._checkpoint)
            model.generation_config.max_length = None  # `tokens` says how long a text may be
            self._network = model.to(
                device_of(self._torch, self.settings.device), getattr(self._torch, self.settings.dtype)
            )
        return self._network

    def _tokenizer(self) -> Any:
        folder = self._checkpoint.folder
        if self._checkpoint.revision:  # a name on the hub: its tokenizer lies beside the weights
            hub = require("huggingface_hub", "Models from the hub", "models")
            folder = hub.snapshot_download(
                self._checkpoint.name, revision=self._checkpoint.revision, allow_patterns=list(TOKENIZER),
                local_files_only=self.settings.local_files_only,
            )  # fmt: skip
        try:
            if not any(Path(folder, name).is_file() for name in ("tokenizer.json", "vocab.json")):
                raise FileNotFoundError("no file of words")  # the library would make an empty tokenizer
            return self._library.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:
            raise InputError(
                f"{self._checkpoint.folder} has no tokenizer that can be read ({type(error).__name__}): put "
                "tokenizer.json, or vocab.json and merges.txt, of the checkpoint there."
            ) from error


@contextmanager
def _without_advice(library: Any) -> Iterator[None]:
    """Without the library's words on how its own generation was called."""
    logging = library.utils.logging
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _features(library: Any, checkpoint: Checkpoint) -> Any:
    """The front end with the checkpoint's own settings, where it says them."""
    stated = checkpoint.json("preprocessor_config.json")
    names = ("feature_size", "sampling_rate", "hop_length", "chunk_length", "n_fft", "padding_value")
    bands = checkpoint.json("config.json").get("num_mel_bins")
    given = {name: stated[name] for name in names if name in stated}
    return library.WhisperFeatureExtractor(**{**({"feature_size": bands} if bands else {}), **given})
