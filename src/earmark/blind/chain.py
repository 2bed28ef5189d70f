"""A chain of entries: each holds the hash of the one before, so that none can be changed, moved or lost unseen.

    hash = SHA-256 of {number, at, kind, about, body, commitment, previous} as JSON with sorted keys

What is private to the host is not in an entry. In its place stands a commitment, the SHA-256 of a random number and of
the private values: who holds them can prove that they are the ones, and nobody else learns anything from it.

Cutting off the end leaves a shorter chain that is whole. Against that the owners keep the number and the hash of the
last entry they have seen, and `verify` is asked for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FIRST", "Entry", "broken_links", "canonical", "commit"]

FIRST = "0" * 64
"""What the first entry has in place of the hash before it."""


@dataclass(frozen=True)
class Entry:
    """One act that was recorded: a policy, a release, a refusal, a signature, an objection or a departure.

    `about` is the number of the entry that a signature, an objection or a departure is of. `at` is a time in UTC.
    """

    number: int
    at: str
    kind: str
    about: int | None
    body: Mapping[str, Any]
    commitment: str
    previous: str
    hash: str = ""

    def sealed(self) -> str:
        """The hash that the entry must have."""
        cells = {
            "number": self.number, "at": self.at, "kind": self.kind, "about": self.about, "body": dict(self.body),
            "commitment": self.commitment, "previous": self.previous,
        }  # fmt: skip
        return hashlib.sha256(canonical(cells).encode()).hexdigest()

    @property
    def plain(self) -> dict[str, Any]:
        """The entry as JSON can hold it: enough for anybody to compute its hash."""
        return {
            "number": self.number, "at": self.at, "kind": self.kind, "about": self.about, "body": dict(self.body),
            "commitment": self.commitment, "previous": self.previous, "hash": self.hash,
        }  # fmt: skip


def canonical(plain: Mapping[str, Any]) -> str:
    """One spelling of a value as JSON."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def commit(nonce: str, private: str) -> str:
    """The commitment to a private text."""
    return hashlib.sha256(f"{nonce}\n{private}".encode()).hexdigest()


def broken_links(entries: Iterable[Entry]) -> Iterator[str]:
    """What is wrong with a chain, one sentence for each place."""
    previous, expected = FIRST, 1
    for entry in entries:
        if entry.number != expected:
            yield f"Entry {expected} is missing: entry {entry.number} stands in its place."
        elif entry.previous != previous:
            yield f"Entry {entry.number} does not follow the entry before it: one of the two was exchanged."
        if entry.sealed() != entry.hash:
            yield f"Entry {entry.number} was changed after it was written: its hash is another."
        previous, expected = entry.hash, entry.number + 1
