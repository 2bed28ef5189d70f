"""Which systems are one model, by the names that runs give them.

A run names a system by its model, layer, pooling and PCA size: `mine@6 mean_time+mean_feature D30`. A matrix adds the
distance: `... / cosine`. All that differs in nothing else is one model, and may not predict itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from earmark import published
from earmark.embedding.pooling import ALIASES, POOLINGS
from earmark.extractors.catalogue import CARDS
from earmark.geometry.spaces import DISTANCES
from earmark.published.families import Level

_DISTANCE = re.compile(rf"\s+(?:/\s*)?(?:{'|'.join(DISTANCES)})\Z")
_SIZE = re.compile(r"\s+D\d+W?\Z")
_CODES = "|".join(name for name in ALIASES if name.isupper())
_LAYER = re.compile(rf"@\d+(?:{_CODES})?\Z")  # also WLM@9MT, as the papers would write it
_LAYER_PARAMETER = re.compile(r"(?<=[?&])layer=-?\d+(?:&|$)")


def model_of(system: str) -> str:
    """The model in a system's name: `mine` of `mine@6 MTF D100`; a name that says nothing of the kind stays.

    A pooling of one letter counts only beside a PCA size or a layer: `system T` is some system, `mine T D30` is `mine`.
    """
    name = _without_end(system.strip(), _DISTANCE)
    sized = _without_end(name, _SIZE)
    head, _, last = sized.rpartition(" ")
    pooled = all(atom in POOLINGS or atom in ALIASES for atom in last.split("+"))
    plain = pooled and (len(last) > 1 or sized != name or _without_end(head, _LAYER) != head)
    model = _without_end(head.rstrip() if plain and head.strip() else sized, _LAYER)
    return _LAYER_PARAMETER.sub("", model).rstrip("?&") or system


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
