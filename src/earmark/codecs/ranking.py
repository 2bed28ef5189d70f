"""Which codecs are ranked with each other: one definition for the table of a run, its report and the board.

    anchor       loses nothing: a line in figures, listed apart, never ranked
    incomplete   failed on clips that were to be measured: its values are shown, never ranked (the status of its rows)
    isolated     its decoder saw the payload and its own code and weights alone, no check failed, no promise was broken
    unknown      nothing says how far its two halves were kept apart: measured before that was recorded
    unisolated   could have seen the original
    faulty       failed `earmark check`, or broke a promise of its card while it was measured

Codecs of the last four kinds are ranked among their own kind only: what could have seen the original is not better
than what could not. `docs/decisions/0016-ranked-with-whom.md` says why values over fewer clips are not ranked at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, cast, get_args

from earmark.codecs.standing import CheckStatus, Isolation, Promise, Standing

Kind = Literal["isolated", "unknown", "unisolated", "faulty"]
KINDS: tuple[Kind, ...] = ("isolated", "unknown", "unisolated", "faulty")
"""Kinds that have ranks, those that are trusted most first."""
TITLES: Mapping[str, str] = {
    "isolated": "Isolated: the decoder saw the payload, and its own code and weights",
    "unknown": "Isolation unknown: measured before it was recorded",
    "unisolated": "Not fully isolated: the decoder could have seen the original",
    "faulty": "Failed the check, or broke a promise of its card",
    "anchor": "Anchors: they lose nothing and are not ranked",
}
MARKS: Mapping[str, str] = {"unknown": "?", "unisolated": "!", "faulty": "!!"}
"""What stands behind a name in a text table."""
_PROMISE = re.compile(r"(?:^|; )(delay|tempo|state|determinism): ")


def kind_of(standing: Standing) -> Kind:
    """The kind that a codec is ranked among."""
    isolated = standing.isolation in ("full", "unknown")
    if len(standing.problems) > (not isolated):
        return "faulty"
    if not isolated:
        return "unisolated"
    return "isolated" if standing.isolation == "full" else "unknown"


def leading_kind(kinds: Iterable[Kind]) -> Kind:
    """The kind whose ranks come first: the most trusted one that there is."""
    present = set(kinds)
    return next((kind for kind in KINDS if kind in present), KINDS[0])


def why_apart(standing: Standing) -> str:
    """Why a codec is not ranked among the isolated ones, as one sentence without a full stop; "" where it is."""
    if standing.problems:
        return "; ".join(standing.problems)
    return "" if kind_of(standing) == "isolated" else "nothing says whether its decoder was isolated"


def standing_of(details: Mapping[str, object]) -> Standing:
    """What the card of a submission says of a codec's standing; what it leaves open, or misspells, is unknown."""
    texts = {name: value for name, value in details.items() if isinstance(value, str)}
    isolation, check = texts.get("isolation", ""), texts.get("check", "")
    _, *parts = _PROMISE.split(texts.get("promises_broken", ""))
    promises = (Promise(name, "broken", reason) for name, reason in zip(parts[::2], parts[1::2], strict=True))
    return Standing(
        cast(Isolation, isolation) if isolation in get_args(Isolation) else "unknown",
        texts.get("isolation_reason", ""),
        cast(CheckStatus, check) if check in get_args(CheckStatus) else "not run",
        texts.get("check_reason", ""),
        tuple(promises),
    )
