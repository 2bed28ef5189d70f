"""What texts, names and addresses of a definition must be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from earmark.errors import UsageError, did_you_mean, quoted

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of what follows, so that a title or a name is read as another."""
_ADDRESS = re.compile(r"https?://[^\s<>\"']+")
_PAGES = (".csv", ".tex", ".json", ".bib")
LINE, TEXT = 400, 60_000
"""The most characters of a line, and of a text."""


def check_name(name: str) -> None:
    """UsageError for what cannot be the name of a board."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{quoted(name)} cannot be a board's name; use small letters, digits, hyphens and dots.")
    if name.endswith(_PAGES):
        raise UsageError(f"{quoted(name)} ends like a file of another board's table; leave out the ending.")


def check_text(text: str, what: str, most: int = LINE) -> None:
    if len(text) > most:
        raise UsageError(f"{what} has {len(text):,} characters; at most {most:,} are taken.")
    if _CONTROL.search(text) or (most == LINE and "\n" in text):
        raise UsageError(f"{what} has control characters{' or several lines' if most == LINE else ''}; leave them out.")
    if most == LINE and (turning := DIRECTION.search(text)):
        raise UsageError(f"{what} has the character U+{ord(turning[0]):04X}, which turns text around; leave it out.")


def check_address(url: str, what: str) -> None:
    if url and (len(url) > LINE or not _ADDRESS.fullmatch(url)):
        raise UsageError(f"{what} has the address {quoted(url)}; it begins with https:// and has no blanks.")


def repeated_in(names: Sequence[str]) -> str | None:
    return next((name for name, times in Counter(names).items() if times > 1), None)


def refuse_repeated(what: str, names: Sequence[str]) -> None:
    if (repeated := repeated_in(names)) is not None:
        raise UsageError(f"The {what} {quoted(repeated)} is there twice; keep one.")


def refuse_unknown(names: Iterable[str], known: Collection[str], where: str, what: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(
                f"{where} names the {what} {quoted(name)}, which is not listed.{did_you_mean(name, known)}"
            )
