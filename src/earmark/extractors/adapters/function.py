"""A plain Python function as an extractor: `mypackage.mymodule:embed`.

    def embed(samples): ...            # float32, mono; returns [D] or [T, D]
    def embed(samples, rate): ...      # the rate too
    embed.rate = 22050                 # the rate it wants; 16000 without it

Further arguments are parameters and come from the config. A function that needs no argument makes a model instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from earmark.errors import UsageError
from earmark.extractors.contract import ExtractorCard, Frames, Waveform, as_frames

RATE = 16000


class Function:
    """Whatever a function returns for each clip, clip by clip."""

    def __init__(self, function: Callable[..., Any], parameters: Mapping[str, Any]) -> None:
        self._function = function
        self._parameters = dict(parameters)
        required = _required(function, parameters)
        if len(required) > 2 or (
            len(required) == 2 and required[1] not in ("rate", "sample_rate", "sampling_rate", "sr")
        ):
            raise UsageError(
                f"{function.__name__} needs {', '.join(required)}: a function takes samples, and the rate if it wants."
            )
        known = inspect.signature(function).parameters
        takes_any = any(argument.kind is argument.VAR_KEYWORD for argument in known.values())
        unknown = [name for name in parameters if name not in known and not takes_any]
        if unknown:
            raise UsageError(f"{function.__name__} takes no {', '.join(unknown)}.")
        rate = int(getattr(function, "rate", RATE))
        self._rate = (rate,) if len(required) == 2 else ()
        given = getattr(function, "card", None)
        card = ExtractorCard(name=function.__name__, title="Python function", rate=rate)
        self.has_own_card = given is not None
        self.card = card if given is None else ExtractorCard.read(card.name, {"rate": rate, **dict(given)})

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [as_frames([self._function(waveform, *self._rate, **self._parameters)], 1)[0] for waveform in waveforms]


def wants_sound(thing: Any, parameters: Mapping[str, Any]) -> bool:
    """Whether something imported is a function of samples, and not one that makes a model."""
    return inspect.isfunction(thing) and bool(_required(thing, parameters))


def _required(function: Callable[..., Any], parameters: Mapping[str, Any]) -> list[str]:
    """Positional arguments without a default that the parameters do not give."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        name
        for name, argument in inspect.signature(function).parameters.items()
        if argument.kind in kinds and argument.default is argument.empty and name not in parameters
    ]
