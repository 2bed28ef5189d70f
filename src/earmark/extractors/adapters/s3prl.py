"""An upstream of s3prl as an extractor: `s3prl:wavlm_base`, `s3prl:wavlm_local?ckpt=WavLM.pt`, `s3prl:hubconf.py:NAME`.

    s3prl:NAME               an entry of s3prl's hub; s3prl fetches its weights, or has them in its cache
    s3prl:NAME?ckpt=FILE     the same with a checkpoint of yours (entries that end in _local, _url or _custom)
    s3prl:hubconf.py:NAME    an upstream in a file of yours, in s3prl's layout

An upstream takes a list of 1-D tensors at 16 kHz and returns `{"hidden_states": [[B, T, D], ...]}`; its
`get_downsample_rates("hidden_states")` says how many samples a frame stands for. Each hidden state is a layer, counted
from 0; `layer=-1` is the last. Clips are given one by one. s3prl's code runs, and it opens pickles.

`import s3prl.hub` needs torchaudio, most upstreams do not: where torchaudio is missing, the upstream's own module is
imported without the hub.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from earmark.errors import InputError, UsageError, did_you_mean, require, strangers_code
from earmark.extractors.adapters.answers import is_tensor
from earmark.extractors.adapters.layered import Floats, LayeredClips, counted_layer
from earmark.extractors.contract import ExtractorCard
from earmark.extractors.torch_models import device_of, exact
from earmark.extractors.windows import SHORTEST, trial_noise
from earmark.registry import load_path
from earmark.wording import error_text

RATE = 16000


class S3prlUpstream(LayeredClips):
    """The hidden states of an upstream.

    Args:
        name: of an upstream, or FILE:NAME.
        layer: which hidden state.
        shortest: seconds; a shorter clip lies in the middle of so much silence.
        device: where it runs.
        given: keywords of the upstream, such as ckpt.
    """

    def __init__(
        self, name: str, *, layer: int = -1, shortest: float = SHORTEST, device: str = "cpu", **given: Any
    ) -> None:
        torch = self._torch = require("torch", "Upstreams of s3prl", "torch")
        self._device = device_of(torch, device)
        self.model = _made(name, given)
        for change, arguments in (("to", (self._device,)), ("eval", ())):
            self.model = getattr(self.model, change)(*arguments)
        self.shortest = max(1, round(shortest * RATE))
        title = name.rpartition(":")[2]
        self.card = ExtractorCard(name=title, rate=RATE)
        hidden = self.hidden(trial_noise(RATE))
        self.layers = len(hidden) - 1
        self.layer = counted_layer(layer, self.layers, title)
        self.card = ExtractorCard(
            name=title,
            title=f"s3prl upstream {title}",
            rate=RATE,
            dimension=int(hidden[self.layer].shape[-1]),
            frame_rate=RATE / self._samples_of_a_frame(),
            parameters=sum(int(weights.numel()) for weights in self.model.parameters()),
            version="1",
        )

    def hidden(self, samples: Floats) -> Sequence[Any]:
        torch = self._torch
        with torch.inference_mode(), exact(torch):
            wave = torch.from_numpy(np.ascontiguousarray(samples, np.float32)).to(self._device)
            answer = self.model([wave])
        states = answer.get("hidden_states") if isinstance(answer, dict) else None
        if not isinstance(states, tuple | list) or not states:
            raise InputError(f"{self.card.name} returns no list of hidden_states: s3prl asks its upstreams for one.")
        if not all(is_tensor(state) and len(state.shape) == 3 and len(state) == 1 for state in states):
            raise InputError(f"{self.card.name} returns hidden_states of other axes than [batch, time, feature].")
        return [state[0] for state in states]

    def _samples_of_a_frame(self) -> int:
        try:
            rates = self.model.get_downsample_rates("hidden_states")
        except Exception as error:
            raise InputError(
                f"{self.card.name} has no get_downsample_rates('hidden_states'), which s3prl asks for "
                f"({type(error).__name__})."
            ) from error
        rate = rates[self.layer] if isinstance(rates, tuple | list) else rates
        if not isinstance(rate, int) or rate < 1:
            raise InputError(f"{self.card.name} says that a frame stands for {rate!r} samples: it must be 1 or more.")
        return rate


def _made(name: str, given: dict[str, Any]) -> Any:
    """The upstream that a name and its keywords make; whatever goes wrong becomes one sentence."""
    make = load_path(name, "s3prl upstream") if ":" in name else _entry(name)
    if not callable(make):
        raise UsageError(f"{name} is not something that makes an upstream.")
    remedy = "without a connection give a checkpoint, as in s3prl:wavlm_local?ckpt=/path/to/file"
    with strangers_code(f"The upstream {name} cannot be made", remedy):
        try:
            model = make(**given)
        except TypeError as error:
            raise UsageError(f"The upstream {name} cannot be made with {given}: {error_text(error)}.") from error
        except ModuleNotFoundError as error:
            raise UsageError(f"The upstream {name} needs a package that is not installed: {error.name}.") from error
    if not all(callable(getattr(model, part, None)) for part in ("forward", "eval", "to", "parameters")):
        raise UsageError(f"{name} makes {type(model).__name__}, not a network of torch: s3prl's upstreams are one.")
    return model


def _entry(name: str) -> Any:
    """The entry of s3prl's hub, or, where the hub cannot be imported as a whole, of the upstream's own module."""
    spec = importlib.util.find_spec("s3prl")
    if spec is None or spec.origin is None:
        raise UsageError(
            "Upstreams of s3prl need `pip install s3prl`, which brings torchaudio; it must be built for your torch."
        )
    homes = _homes(Path(spec.origin).parent)
    if name not in homes:
        raise UsageError(f"s3prl has no upstream {name!r}.{did_you_mean(name, homes)} It has {len(homes)} of them.")
    try:
        module = importlib.import_module(homes[name])
    except ImportError as error:
        missing = getattr(error, "name", None) or error_text(error)
        raise UsageError(
            f"The upstream {name} needs {missing}, which is not installed or not built for your torch; distilhubert, "
            "hf_hubert_custom, hf_wav2vec2_custom, wavlm and unispeech_sat need no torchaudio."
        ) from error
    return getattr(module, name)


def _homes(package: Path) -> dict[str, str]:
    """The module of every entry; nothing is imported."""
    homes: dict[str, str] = {}
    for file in sorted(package.glob("upstream/*/hubconf.py")):
        tree = ast.parse(file.read_bytes())
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
        homes |= dict.fromkeys(names, f"s3prl.upstream.{file.parent.name}.hubconf")
    return homes
