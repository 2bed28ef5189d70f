"""Which texts are kept: they are stored and shown as they are, so they must be of a kind that can be."""

from __future__ import annotations

import re
import unicodedata

from earmark.errors import InputError

# They turn the direction of what follows, so that a name is read as another.
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
_LINES = frozenset("\n\t")
_JOINERS = frozenset("\u200c\u200d")  # scripts and emoji are written with them
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and marks that show nothing

# Letters of Greek and Cyrillic that look like Latin ones.
_LOOKALIKES = str.maketrans(
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
    "\u0430\u0435\u043a\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501",
    "ABEZHIKMNOPTYXaikvoptuxSIJABEKMHOPCTYXaekopcyxsijhld",
)

# Letters and digits that many typefaces draw alike, and small letters of phonetic alphabets.
_ALIKE = str.maketrans("1i|0\u0131\u01c0\u2223\u0251\u0261", "lllolllag")

_MARKS = re.compile(r"(?<!\d)\.|\.(?!\d)|[^\w.]|_")


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


def likeness(name: str) -> str:
    """What a name looks like: equal for names that a reader takes for each other, such as "CLAP" and "clap"."""
    plain = unicodedata.normalize("NFKC", name).translate(_LOOKALIKES).casefold()
    shown = "".join(mark for mark in plain if unicodedata.category(mark) not in ("Cf", "Co", "Cn"))
    return " ".join(shown.split())


def joined_likeness(name: str) -> str:
    """What a name looks like without what writers differ in: blanks, hyphens and other marks, but a decimal point."""
    shown = likeness(name)
    return _MARKS.sub("", shown) or shown


def lookalike(name: str) -> str:
    """What a name looks like at a glance: also without accents, and with 1, l and I, 0 and O taken for each other.

    "EWMTF-D100" and "EWMTF Dl00" are alike. It is for remarks to people, not for refusals: "v1.0" and "vl.o" are too.
    """
    bare = "".join(mark for mark in unicodedata.normalize("NFKD", name) if not unicodedata.combining(mark))
    return joined_likeness(bare.translate(_ALIKE)).translate(_ALIKE)
