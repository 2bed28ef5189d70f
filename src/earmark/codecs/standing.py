"""What a codec's results rest on: how far its two halves were kept apart, whether it passed `earmark check`, and which
promises of its card it kept while it was measured.

A run writes it into run.json and into the submission; the report and the board show it, and rank codecs that could have
seen the original apart from those that could not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Isolation = Literal["full", "partial", "none", "unknown"]
CheckStatus = Literal["passed", "warned", "failed", "not run"]
PromiseStatus = Literal["kept", "broken", "unknown"]


SERIOUS = ("state", "tempo")
"""Promises without which a codec's values are not comparable. A wrong delay or chance harms nobody but the codec."""


class Promise(NamedTuple):
    """One promise (`delay`, `tempo`, `state`, `determinism`), whether it was kept, and the evidence in a sentence."""

    name: str
    status: PromiseStatus
    reason: str = ""


@dataclass(frozen=True)
class Standing:
    """What a codec's results rest on."""

    isolation: Isolation = "unknown"
    isolation_reason: str = ""  # what could not be excluded, where it was not full
    check: CheckStatus = "not run"
    check_reason: str = ""
    promises: tuple[Promise, ...] = ()

    @property
    def broken(self) -> tuple[Promise, ...]:
        return tuple(promise for promise in self.promises if promise.status == "broken")

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the codec is not ranked among the others, a sentence each; nothing where it is."""
        problems = []
        if self.isolation not in ("full", "unknown"):
            problems.append(f"its decoder was not fully isolated: {self.isolation_reason}".rstrip(": "))
        if self.check == "failed":
            problems.append(f"it failed `earmark check`: {self.check_reason}".rstrip(": "))
        return (*problems, *(f"{promise.name}: {promise.reason}" for promise in self.broken if promise.name in SERIOUS))

    @property
    def details(self) -> dict[str, str]:
        """The same as texts for the card of a submission; what is empty is left out."""
        texts = {
            "isolation": self.isolation,
            "isolation_reason": self.isolation_reason,
            "check": self.check,
            "check_reason": self.check_reason,
            "promises_broken": "; ".join(f"{promise.name}: {promise.reason}" for promise in self.broken),
        }
        return {name: text for name, text in texts.items() if text}

    @property
    def plain(self) -> dict[str, Any]:
        """The same for run.json."""
        return {**vars(self), "promises": [promise._asdict() for promise in self.promises]}

    @classmethod
    def of(cls, plain: Mapping[str, Any] | None) -> Standing:
        """What `plain` said; a run of before says nothing, which is unknown."""
        if not plain:
            return cls()
        promises = tuple(Promise(**promise) for promise in plain.get("promises", ()))
        return cls(**{**plain, "promises": promises})
