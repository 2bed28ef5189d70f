"""One claim: what a paper says, what its tables give, and the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["agrees", "differs", "cannot be told"]
Judged: TypeAlias = tuple[str, bool | None]
"""What the tables give, and whether they bear the claim out; None where they cannot decide it."""

VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "cannot be told")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper beside its printed numbers.

    `says` is in our words, `quoted` holds the numbers of the text. `reading` tells how it was read where another
    reading is possible, `command` shows the numbers it was held against, and `known` is the verdict it had when the
    tables were read.
    """

    name: str
    paper: str
    where: str
    says: str
    quoted: str
    computed: str
    verdict: Verdict
    reading: str
    command: str
    known: Verdict

    @property
    def as_known(self) -> bool:
        return self.verdict == self.known


JUDGES: dict[str, Callable[[], Judged]] = {}
"""By the name of a claim: what works it out."""


def judge(work: Callable[[], Judged]) -> Callable[[], Judged]:
    """Keep a function that holds one claim against the tables. Its name is the claim's."""
    JUDGES[work.__name__.replace("_", "-")] = work
    return work


def verdict_of(holds: bool | None) -> Verdict:
    return "cannot be told" if holds is None else "agrees" if holds else "differs"
