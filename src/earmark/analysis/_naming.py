"""Which systems are one model, and how they differ, by the names that runs and papers give them.

A run names a system by its model, layer, pooling and PCA size: `mine@6 mean_time+mean_feature D30`. A matrix adds the
distance: `... / cosine`. All that differs in nothing else is one model, and may not predict itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from earmark import published
from earmark.embedding.pooling import ALIASES, POOLINGS
from earmark.extractors.catalogue import CARDS
from earmark.geometry.spaces import DISTANCES
from earmark.published.families import VOCSIM_MODELS, Level

_DISTANCE = re.compile(rf"\s+(?:/\s*)?(?:{'|'.join(DISTANCES)})\Z")
_SIZE = re.compile(r"\s+D\d+W?\Z")
_CODES = "|".join(name for name in ALIASES if name.isupper())
_LAYER = re.compile(rf"@\d+(?:{_CODES})?\Z")  # also WLM@9MT, as the papers would write it
_PRINTED_POOLING = re.compile(r"(Whisper), (.+)")  # how VocSim's Table 13 is named here
_LAYER_PARAMETER = re.compile(r"(?<=[?&])layer=-?\d+(?:&|$)")


class SystemParts(NamedTuple):
    """What a system's name says: the model, its layer, the pooling in its canonical spelling, the size after PCA and
    whether its components are whitened.

    A pooling that is not named is an empty text, no PCA is None.
    """

    model: str
    layer: int | None = None
    pooling: str = ""
    pca: int | None = None
    whiten: bool = False


@lru_cache(maxsize=4096)
def parts_of(system: str) -> SystemParts:
    """The parts of a name: `mine`, 6, `mean_time+mean_feature` and 100 of `mine@6 MTF D100`.

    A pooling of one letter counts only beside a PCA size or a layer: `system T` is some system, `mine T D30` is `mine`.
    The papers' codes are known: `EWMTF D100` is Whisper with `mean_time+mean_feature` and 100.
    """
    printed = _PRINTED_POOLING.fullmatch(system.strip())
    if printed:
        return SystemParts(printed[1], None, printed[2])
    parts = _split(system)
    if parts.model not in VOCSIM_MODELS:
        return parts
    model = VOCSIM_MODELS[parts.model]
    base = min((code for code, own in VOCSIM_MODELS.items() if own == model), key=len)
    return parts._replace(model=model, pooling=parts.pooling or ALIASES.get(parts.model.removeprefix(base), ""))


def model_of(system: str) -> str:
    """The model in a system's name: `mine` of `mine@6 MTF D100`; a name that says nothing of the kind stays."""
    return _split(system).model


def _split(system: str) -> SystemParts:
    name = _without_end(system.strip(), _DISTANCE)
    sized = _without_end(name, _SIZE)
    code = name[len(sized) :].strip()  # D100, or D100W
    size = int(code.strip("DW")) if code else None
    head, _, last = sized.rpartition(" ")
    pooled = all(atom in POOLINGS or atom in ALIASES for atom in last.split("+"))
    plain = pooled and bool(head.strip()) and (len(last) > 1 or size is not None or _without_end(head, _LAYER) != head)
    before = head.rstrip() if plain else sized
    model = _without_end(before, _LAYER)
    layer = re.match(r"@(\d+)(.*)", before[len(model) :]) or re.search(r"[?&]layer=(\d+)()", before)
    pooling = last if plain else layer[2] if layer else ""
    canonical = "+".join(ALIASES.get(atom, atom) for atom in pooling.split("+"))
    model = _LAYER_PARAMETER.sub("", model).rstrip("?&") or system
    return SystemParts(model, int(layer[1]) if layer else None, canonical, size, code.endswith("W"))


def families_of(suite: str, systems: Iterable[str], level: Level = "model") -> dict[str, str]:
    """The family of each system: the papers' for the names of their tables, else the model in its name.

    At the level of models an extractor of Earmark is the printed model it stands for: `whisper mean_time` is Whisper.
    """
    found = {}
    for system in systems:
        known = published.families(suite, [system], level)[system]
        if known == system:
            known = model_of(system)
            card = CARDS.get(known.partition("?")[0])
            code = card.short_name if card and level == "model" else known
            printed = published.families(suite, [code], level)[code]
            known = printed if printed != code else known
        found[system] = known
    return found


def _without_end(text: str, end: re.Pattern[str]) -> str:
    """The text without what the pattern finds at its end, unless nothing would be left."""
    found = end.search(text)
    return text[: found.start()] if found and found.start() else text
