"""Whose word it is that a codec was isolated while it was measured: its author's, or the host's.

A card says `isolation: full`, and nobody but the author was there. Where every score of the codec was measured again by
a moderator (`reproduced`) or by the host's own worker (`blind`), the host has seen it. Whoever states less than full
isolation is ranked apart, and nothing is gained by that.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from earmark.board.boards.codecs import RANKED
from earmark.board.boards.memory import made_once
from earmark.board.boards.panels import PROVENANCES, STATUSES
from earmark.board.boards.snapshot import Snapshot
from earmark.codecs.ranking import standing_of
from earmark.scores import WITH_VALUE
from earmark.submissions import SystemCard

Isolation = Literal["", "stated", "confirmed"]
BADGES = {"stated": "isolation stated", "confirmed": "isolated"}
WORDS = {
    "stated": "its author says that the decoder was isolated; the host has not measured it again",
    "confirmed": "the host has measured it again, with the decoder isolated",
}
_OF_HOSTS = frozenset(("reproduced", "blind"))
_VALUED = [code for code, status in enumerate(STATUSES) if status in WITH_VALUE]


def isolation_word(card: SystemCard, kind: str, provenances: Collection[str]) -> Isolation:
    """Whose word the full isolation of a codec is that is ranked among a kind; "" for all else."""
    if card.kind != "codec" or kind != RANKED or standing_of(card.details).isolation != "full":
        return ""
    return "confirmed" if provenances and _OF_HOSTS.issuperset(provenances) else "stated"


@made_once
def isolation_words(snapshot: Snapshot) -> tuple[Isolation, ...]:
    """The word of each system, by its place."""
    origins: list[set[str]] = [set() for _ in snapshot.systems]
    if not any(system.card.kind == "codec" for system in snapshot.systems):
        return tuple("" for _ in origins)
    for panel in snapshot.panels.values():
        for line, codes, statuses in zip(panel.lines.tolist(), panel.provenance, panel.status, strict=True):
            valued = [code in _VALUED for code in statuses.tolist()]
            origins[snapshot.lines[line].system] |= {PROVENANCES[code] for code in set(codes[valued].tolist())}
    kinds = snapshot.kinds
    return tuple(
        isolation_word(system.card, kind, own)
        for system, kind, own in zip(snapshot.systems, kinds, origins, strict=True)
    )
