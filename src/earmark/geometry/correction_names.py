"""How hubness corrections are spelled: `icdm:k=20`. What they do is in `earmark.geometry.corrections`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from earmark.errors import UsageError, did_you_mean

__all__ = ["CORRECTIONS", "Correction", "parse", "parse_all"]

CORRECTIONS = ("none", "sphere", "ls", "nicdm", "icdm", "csls", "mp", "dsl")
K, ITERATIONS = 10, 10
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "ls": ("k",),
    "nicdm": ("k",),
    "icdm": ("k", "iterations"),
    "csls": ("k",),
    "dsl": ("k",),
}


@dataclass(frozen=True)
class Correction:
    """A correction and its parameters; `str` gives the spelling that stands in score tables."""

    name: str = "none"
    k: int = K
    iterations: int = ITERATIONS

    def __str__(self) -> str:
        given = [
            f"{name}={getattr(self, name)}"
            for name in _PARAMETERS.get(self.name, ())
            if getattr(self, name) != getattr(Correction, name)
        ]
        return self.name + (":" + ",".join(given) if given else "")

    @property
    def local(self) -> bool:
        """Whether the k nearest neighbours of each point are needed."""
        return "k" in _PARAMETERS.get(self.name, ())

    @property
    def signed(self) -> bool:
        """Whether corrected distances are differences, which no ratio may be taken of."""
        return self.name in ("csls", "dsl")

    @property
    def keeps_points(self) -> bool:
        """Whether there are points that the corrected distances belong to."""
        return self.name in ("none", "sphere")

    def too_few(self, points: int) -> str:
        """Why so many points cannot be corrected, or nothing."""
        if not self.local or self.k < points:
            return ""
        return f"{self.name} with k = {self.k} needs more than {self.k} points; the largest k that fits is {points - 1}"


def parse(text: str) -> Correction:
    """`icdm`, `icdm:k=20` or `icdm:k=20,iterations=5`."""
    name, _, rest = text.strip().partition(":")
    name = name.strip().lower()
    if name not in CORRECTIONS:
        hint = did_you_mean(name, CORRECTIONS)
        raise UsageError(f"There is no hubness correction {text!r}: choose from {', '.join(CORRECTIONS)}.{hint}")
    known = _PARAMETERS.get(name, ())
    given: dict[str, int] = {}
    for part in filter(None, (word.strip() for word in rest.split(","))):
        match = re.fullmatch(r"(\w+)\s*=\s*(-?\d+)", part)
        if not known:
            raise UsageError(f"The correction {name} takes no parameters, so {part!r} means nothing to it.")
        if match is None or match[1] not in known:
            raise UsageError(
                f"{part!r} is no parameter of the correction {name}: it takes {' and '.join(known)}, "
                f"as in {name}:{','.join(f'{word}=10' for word in known)}."
            )
        if int(match[2]) < 1:
            raise UsageError(f"{match[1]} of the correction {name} must be at least 1, not {match[2]}.")
        given[match[1]] = int(match[2])
    return Correction(name, **given)


def parse_all(given: str | Correction | Iterable[str | Correction]) -> tuple[Correction, ...]:
    """One correction or several, each once; in a text they are separated by commas, as their parameters are."""
    items = [given] if isinstance(given, str | Correction) else list(given) if isinstance(given, Iterable) else [None]
    words: list[str] = []
    for item in items:
        if isinstance(item, Correction):
            words.append(str(item))
        elif isinstance(item, str):
            for word in filter(None, (part.strip() for part in item.split(","))):
                if re.fullmatch(r"\w+\s*=.*", word) and words:
                    words[-1] += ("," if ":" in words[-1] else ":") + word
                else:
                    words.append(word)
        else:
            raise UsageError(f"A hubness correction must be a name or a list of names, not {given!r}.")
    found = [parse(word) for word in words]
    if not found:
        raise UsageError(f"No correction was asked for: choose from {', '.join(CORRECTIONS)}.")
    return tuple(dict.fromkeys(found))
