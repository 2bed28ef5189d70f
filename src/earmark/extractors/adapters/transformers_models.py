"""Any audio model of transformers as an extractor: `transformers:NAME` on the hub, or a folder.

    config.json, preprocessor_config.json, model.safetensors          opened by the classes that config.json names
    modeling_x.py beside them (auto_map in config.json)               runs only with trust_remote_code=true

Clips go one by one through the model's own feature extractor and its encoder; frames are the last hidden state, or that
of `layer`. A clip longer than the feature extractor keeps (of Whisper 30 s) is heard in windows of so much, one after
the other; how much that is, is found by changing the end of a noise. The families that Earmark knows (`earmark
extractors`) are faster and tested against their authors' code: this one is for everything else. Nothing is asked on the
terminal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earmark.errors import EarmarkError, InputError, UsageError, require, strangers_code
from earmark.extractors.adapters.answers import chosen_output
from earmark.extractors.adapters.layered import Floats, LayeredClips, counted_layer
from earmark.extractors.contract import ExtractorCard
from earmark.extractors.pretrained import library_quiet
from earmark.extractors.torch_models import device_of, exact
from earmark.extractors.windows import SHORTEST, trial_noise, windows

_LONGEST = 128
"""Seconds of noise at most whose end is changed, to see how much a feature extractor keeps."""


class TransformersModel(LayeredClips):
    """Frames of a model that transformers opens by its config.

    Args:
        name: on the hub, or a folder.
        layer: which hidden state; 0 is what enters the first block, -1 what leaves the model.
        output: which part of the answer holds frames, where the rules do not tell; no other layers then.
        rate: samples a second, where the feature extractor states none.
        trust_remote_code: run the code that lies beside the weights.
        revision: of the hub's repository.
        local_files_only: never ask the hub.
        shortest: seconds; a shorter clip lies in the middle of so much silence.
        device: where it runs.
    """

    def __init__(
        self, name: str, *, layer: int = -1, output: str = "", rate: int | None = None, trust_remote_code: bool = False,
        revision: str | None = None, local_files_only: bool = False, shortest: float = SHORTEST, device: str = "cpu",
    ) -> None:  # fmt: skip
        torch = self._torch = require("torch", "Models of transformers", "models")
        library = require("transformers", "Models of transformers", "models")
        self._device = device_of(torch, device)
        self._output = str(output)
        where = {"revision": revision, "local_files_only": local_files_only}
        _refuse_unasked_code(name, trust_remote_code, where)
        where["trust_remote_code"] = trust_remote_code
        self._extractor = _opened(library.AutoFeatureExtractor, name, where)
        network = _opened(library.AutoModel, name, where)
        self.model = (_encoder_of(network)).to(self._device).eval()
        stated = rate or getattr(self._extractor, "sampling_rate", None)
        if stated is None:
            raise UsageError(f"{name} does not say which rate it wants: give it as the parameter rate.")
        self.rate = int(stated)
        self.shortest = max(1, round(shortest * self.rate))
        title = Path(name).name
        self.card = ExtractorCard(name=title, rate=self.rate)
        self.layers = 0
        self.context = self._context()
        seconds = [self._first_heard(second * self.rate) for second in (1, 2)]
        self.layers = len(seconds[0]) - 1
        self.layer = counted_layer(layer, self.layers, title)
        one, two = (heard[self.layer].shape for heard in seconds)
        commit = getattr(network.config, "_commit_hash", None)
        self.card = ExtractorCard(
            name=title,
            title=f"transformers model {title}",
            rate=self.rate,
            dimension=int(one[-1]),
            frame_rate=float(two[0] - one[0]) or None,
            parameters=sum(int(weights.numel()) for weights in self.model.parameters()),
            checkpoint=name,
            version=f"2 {commit or ''}".strip(),
        )

    def hidden(self, samples: Floats) -> Sequence[Any]:
        if self.context is None or len(samples) <= self.context:
            return self._heard(samples)
        parts = [self._heard(window) for window in windows(samples, self.context, self.context)]
        return [self._torch.cat(states) for states in zip(*parts, strict=True)]

    def _input(self, samples: Floats) -> Any:
        """What the model is given of a clip."""
        inputs = self._extractor(samples, sampling_rate=self.rate, return_tensors="pt")
        main = getattr(self.model, "main_input_name", "")
        known = [key for key in (main, "input_values", "input_features") if key and key in inputs]
        if not known:
            raise InputError(f"The feature extractor of {self.card.name} gives {', '.join(inputs)}: no input is known.")
        return inputs[known[0]]

    def _context(self) -> int | None:
        """How many samples of a clip the feature extractor keeps; None where it keeps two minutes or more."""
        noise = trial_noise(_LONGEST * self.rate)

        def loses(length: int, kept: int) -> bool:
            other = noise[:length].copy()
            other[kept:] *= -0.5
            return bool(self._torch.equal(self._input(noise[:length]), self._input(other)))

        length = 2 * self.rate
        try:
            while not loses(length, length // 2):
                length *= 2
                if length > len(noise):
                    return None
            least, most = 0, length // 2
            while most - least > 1:
                middle = (least + most) // 2
                least, most = (least, middle) if loses(length, middle) else (middle, most)
        except EarmarkError:
            raise
        except Exception:  # what it cannot be given so, hearing it will tell
            return None
        return most

    def _heard(self, samples: Floats) -> Sequence[Any]:
        torch = self._torch
        given = self._input(samples)
        wanted = {} if self._output else {"output_hidden_states": True}
        with torch.inference_mode(), exact(torch):
            answer = self.model(given.to(self._device), **wanted)
        last = chosen_output(answer, self._output, self.card.name)
        states = None if self._output else getattr(answer, "hidden_states", None)
        chosen = [last] if not states else [*states[:-1], last]
        return [_frames(values, self.card.name) for values in chosen]

    def _first_heard(self, samples: int) -> Sequence[Any]:
        with strangers_code(f"{self.card.name} fails on {samples / self.rate:g} s of sound"):
            return self._heard(trial_noise(samples))


def _frames(values: Any, name: str) -> Any:
    """[T, D] of an answer for one clip."""
    if values.dim() == 3 and len(values) == 1:
        return values[0]
    if values.dim() == 2 and len(values) == 1:
        return values
    raise InputError(f"{name} answers one clip with {list(values.shape)}, not [1, time, feature]: name another output.")


def _encoder_of(network: Any) -> Any:
    """The encoder of a model that has a decoder too; the model itself where it has none."""
    if getattr(network.config, "is_encoder_decoder", False) and callable(getattr(network, "get_encoder", None)):
        return network.get_encoder()
    return network


def _refuse_unasked_code(name: str, trusted: bool, where: dict[str, Any]) -> None:
    """One sentence for a repository that brings its own code, before any of it is read."""
    file = Path(name).expanduser() / "config.json"
    if not file.is_file():
        hub = require("huggingface_hub", "Models from the hub", "models")
        try:
            file = Path(hub.hf_hub_download(name, "config.json", **where))
        except Exception as error:
            raise InputError(
                f"{name} is no folder with config.json, is not on this machine and cannot be fetched "
                f"({type(error).__name__}): give a folder."
            ) from error
    try:
        config = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} is not readable JSON ({error}): download it again.") from error
    paths = [str(path) for path in dict(config.get("auto_map") or {}).values()]
    code = sorted({path.rpartition("--")[2].partition(".")[0] for path in paths})
    if code and not trusted:
        raise UsageError(
            f"{name} comes with code of its own ({', '.join(f'{module}.py' for module in code)}), which would run: "
            f"if you trust it say transformers:{name}?trust_remote_code=true."
        )


def _opened(kind: Any, name: str, where: dict[str, Any]) -> Any:
    with strangers_code(f"transformers cannot open {name}"), library_quiet():
        return kind.from_pretrained(name, **where)
