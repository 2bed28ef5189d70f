"""Which distances and corrections Earmark knows: what a score's setting may be made of.

A distance of a re-ranked search ends with "+dtw". A host may allow others on its board (`Definition.distances`,
`Definition.corrections`).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from earmark.errors import UsageError
from earmark.geometry.correction_names import CORRECTIONS, parse

DISTANCES = ("", "cosine", "euclidean", "spearman")
"""In the order of preference where nothing else decides; "" is of metrics that need none."""
OTHER_CORRECTIONS = ("", "gicdm")
"""Beside those of `earmark.geometry`: none at all, and that of metrics of generators."""
_RERANKED = "+dtw"


def known_distances(own: Collection[str] = ()) -> tuple[str, ...]:
    """The distances that a score may have, with a host's own."""
    return (*filter(None, DISTANCES), *own)


def known_corrections(own: Collection[str] = ()) -> tuple[str, ...]:
    """The corrections that a score may have, with a host's own."""
    return (*CORRECTIONS, *filter(None, OTHER_CORRECTIONS), *own)


def is_distance(name: str, own: Collection[str] = ()) -> bool:
    """Whether a distance is known."""
    return name.removesuffix(_RERANKED) in DISTANCES or name in own


def is_correction(name: str, own: Collection[str] = ()) -> bool:
    """Whether a correction is known, with parameters that it takes."""
    return name in OTHER_CORRECTIONS or name in own or _parses(name)


@lru_cache(4096)
def _parses(name: str) -> bool:
    try:
        parse(name)
    except UsageError:
        return False
    return True


def preference(distance: str, correction: str) -> tuple[int, int, int, str]:
    """A fixed order of settings: no correction before some, distances and corrections as they are listed."""
    plain, name = distance.removesuffix(_RERANKED), correction.partition(":")[0]
    place = DISTANCES.index(plain) if plain in DISTANCES else len(DISTANCES)
    known = ("", *CORRECTIONS)
    corrected = known.index(name) if name in known else len(known)
    return (0 if corrected <= 1 else corrected, place, len(distance), f"{distance} {correction}")
