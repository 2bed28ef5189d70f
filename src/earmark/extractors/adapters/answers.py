"""Which tensor of a model's answer is meant: by rule where one can be, by a word of the user's where not.

    a tensor                     itself
    a mapping, or named fields   `last_hidden_state`; else the only one of `embeddings`, `embedding`, `features`, `x`;
                                 else its only tensor
    a tuple or list              its only tensor
    anything else, or several    refused, unless `output` says which

`output` is a name or a number, or several of them from the outside in, separated by dots: `hidden_states.9`, `0.-1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from earmark.errors import UsageError, did_you_mean

FIRST_CHOICE = "last_hidden_state"
USUAL = ("embeddings", "embedding", "features", "x")


def chosen_output(answer: Any, output: str, thing: str, *, first: bool = False) -> Any:
    """One tensor or array of an answer.

    Args:
        answer: what the model returned.
        output: which part of it; empty where rules are to find it.
        thing: what returned it, at the beginning of a sentence.
        first: take the first of several in a tuple, where nothing else is asked for.
    """
    chosen = answer
    for step in output.split(".") if output else ():
        chosen = _part(chosen, step, thing)
    while not is_tensor(chosen):
        chosen = _by_rule(chosen, thing, first and not output)
    return chosen


def is_tensor(thing: Any) -> bool:
    """Whether something is a tensor of torch or an array."""
    return isinstance(thing, np.ndarray) or (hasattr(thing, "detach") and hasattr(thing, "shape"))


def _named(answer: Any) -> dict[str, Any] | None:
    """The parts of an answer that has names for them; None where it has none."""
    if isinstance(answer, Mapping):
        return {str(name): part for name, part in answer.items() if part is not None}
    if is_dataclass(answer) and not isinstance(answer, type):
        pairs = {field.name: getattr(answer, field.name) for field in fields(answer)}
        return {name: part for name, part in pairs.items() if part is not None}
    if isinstance(answer, tuple) and hasattr(answer, "_fields"):
        return {name: part for name, part in zip(answer._fields, answer, strict=True) if part is not None}
    return None


def _part(answer: Any, step: str, thing: str) -> Any:
    """The part of an answer that one step of `output` names."""
    named = _named(answer)
    if named is not None and step in named:
        return named[step]
    if isinstance(answer, tuple | list):
        count = len(answer)
        if step.lstrip("-").isdecimal() and -count <= int(step) < count:
            return answer[int(step)]
        if named is None:
            raise UsageError(
                f"{thing} returns {count} tensors or parts, and no {step!r}: give a number from 0 to {count - 1} as "
                "output."
            )
    if named is not None:
        raise UsageError(
            f"{thing} returns no {step!r} but {_listed(named)}: name one of them as output.{did_you_mean(step, named)}"
        )
    raise UsageError(f"{thing} returns {_kind(answer)}, which has no part {step!r}: leave that out of output.")


def _by_rule(answer: Any, thing: str, first: bool) -> Any:
    named = _named(answer)
    if named is not None:
        if FIRST_CHOICE in named:
            return named[FIRST_CHOICE]
        usual = [name for name in USUAL if is_tensor(named.get(name))]
        tensors = usual if len(usual) == 1 else [name for name, part in named.items() if is_tensor(part)]
        if len(tensors) != 1:
            raise UsageError(f"{thing} returns {_listed(named)}: name one of them as output.")
        return named[tensors[0]]
    if isinstance(answer, tuple | list):
        parts = [part for part in answer if part is not None]
        if len(parts) == 1 or (first and parts):
            return parts[0]
        numbered = {str(number): part for number, part in enumerate(answer) if part is not None}
        raise UsageError(
            f"{thing} returns {len(parts)} tensors or parts ({_listed(numbered)}): give the number of one as output."
        )
    raise UsageError(f"{thing} returns {_kind(answer)}, not a tensor: name a method or an output that gives one.")


def _listed(parts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_kind(part)}" for name, part in list(parts.items())[:12]) or "nothing"


def _kind(part: Any) -> str:
    if is_tensor(part):
        return str(list(part.shape))
    return f"{type(part).__name__} of {len(part)}" if isinstance(part, tuple | list | Mapping) else type(part).__name__
