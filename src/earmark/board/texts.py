"""Which texts the board keeps: they are stored and shown as they are, so they must be of a kind that can be."""

from __future__ import annotations

import re
import unicodedata

from earmark.errors import InputError

__all__ = ["checked_text", "fault_of", "slug_of", "sought"]

# They turn the direction of what follows, so that a name is read as another.
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
_LINES = frozenset("\n\t")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ODD = re.compile(r"[^a-z0-9]+")
_MOST_SLUG = 60


def fault_of(text: str, most: int, *, lines: bool = False) -> str:
    """What is wrong with a text, as the end of a sentence; empty when nothing is. `lines`: several are allowed."""
    if len(text) > most:
        return f"has {len(text):,} characters; at most {most:,} are kept"
    for mark in text:
        if mark.isprintable() or (lines and mark in _LINES):
            continue
        kind = unicodedata.category(mark)
        if kind == "Cs":
            return f"holds half a character (U+{ord(mark):04X}); write it as UTF-8"
        if kind in ("Cc", "Zl", "Zp") or mark in _DIRECTION:
            return f"holds the control character U+{ord(mark):04X}; remove it"
    return ""


def checked_text(text: str, what: str, most: int, *, lines: bool = False, needed: bool = False) -> str:
    """The text without blanks around it; InputError when it cannot be kept, or is needed and empty."""
    fault = fault_of(text, most, lines=lines)
    if fault:
        raise InputError(f"{what} {fault}.")
    if needed and not text.strip():
        raise InputError(f"{what} is empty; write it.")
    return text.strip()


def sought(text: str) -> str:
    """A text to look for: what no database can hold becomes a mark that no name has, so that nothing is found."""
    return _UNSTORABLE.sub("\ufffd", text)


def slug_of(name: str) -> str:
    """A name in the letters of an address: "Wav2Vec2 ♭ (Größe)" is wav2vec2-grosse."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    return _ODD.sub("-", plain)[:_MOST_SLUG].strip("-") or "system"
