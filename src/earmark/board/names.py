"""Names of users, systems and boards: how they look to a reader, in an address, and in a database."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from itertools import count

# Letters of Greek and Cyrillic that look like Latin ones.
_LOOKALIKES = str.maketrans(
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
    "\u0430\u0435\u043a\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501",
    "ABEZHIKMNOPTYXaikvoptuxSIJABEKMHOPCTYXaekopcyxsijhld",
)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ODD = re.compile(r"[^a-z0-9]+")
_MOST_SLUG = 60


def sought(text: str) -> str:
    """A text to look for: what no database can hold becomes a mark that no name has, so that nothing is found."""
    return _UNSTORABLE.sub("\ufffd", text)


def likeness(name: str) -> str:
    """What a name looks like: equal for names that a reader takes for each other, such as "CLAP" and "clap"."""
    plain = unicodedata.normalize("NFKC", name).translate(_LOOKALIKES).casefold()
    shown = "".join(mark for mark in plain if unicodedata.category(mark) not in ("Cf", "Co", "Cn"))
    return " ".join(shown.split())


def slug_of(name: str, taken: Collection[str] = ()) -> str:
    """A name in the letters of an address: "Wav2Vec2 ♭ (Größe)" is wav2vec2-grosse; numbered where that is taken."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    slug = _ODD.sub("-", plain)[:_MOST_SLUG].strip("-") or "system"
    numbered = (f"{slug}-{number}" for number in count(2))
    return slug if slug not in taken else next(other for other in numbered if other not in taken)
