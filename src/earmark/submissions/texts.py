"""Which texts are kept: they are stored and shown as they are, so they must be of a kind that can be."""

from __future__ import annotations

import unicodedata

from earmark.errors import InputError

# They turn the direction of what follows, so that a name is read as another.
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
_LINES = frozenset("\n\t")
_JOINERS = frozenset("\u200c\u200d")  # scripts and emoji are written with them
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and marks that show nothing


def fault_of(text: str, most: int, *, lines: bool = False) -> str:
    """What is wrong with a text, as the end of a sentence; empty when nothing is. `lines`: several are allowed."""
    if len(text) > most:
        return f"has {len(text):,} characters; at most {most:,} are kept"
    if text.isprintable() and (text.isascii() or _BLANK.isdisjoint(text)):
        return ""
    for mark in text:
        if mark.isprintable() or (lines and mark in _LINES):
            continue
        kind = unicodedata.category(mark)
        if kind == "Cs":
            return f"holds half a character (U+{ord(mark):04X}); write it as UTF-8"
        if kind in ("Cc", "Zl", "Zp") or mark in _DIRECTION:
            return f"holds the control character U+{ord(mark):04X}; remove it"
        if not lines and kind in ("Cf", "Co", "Cn") and mark not in _JOINERS:
            return f"holds U+{ord(mark):04X}, which shows nothing or something else to everybody; remove it"
    blank = next((mark for mark in text if mark in _BLANK), "")
    return f"holds U+{ord(blank):04X}, which shows nothing; remove it" if blank and not lines else ""


def checked_text(text: str, what: str, most: int, *, lines: bool = False, needed: bool = False) -> str:
    """The text without blanks around it; InputError when it cannot be kept, or is needed and empty."""
    fault = fault_of(text, most, lines=lines)
    if fault:
        raise InputError(f"{what} {fault}.")
    if needed and not text.strip():
        raise InputError(f"{what} is empty; write it.")
    return text.strip()
