"""Labels and groups that are probably not what they look like: told, never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from earmark.wording import counted, first_of

_SIGNS = (";", "|", ",")
_NOTHING = frozenset({"none", "nothing", "nocall", "nobird", "background"})


def alike_names(names: Iterable[str], what: str) -> list[str]:
    """A remark where names differ only in case or in spaces: probably one thing under two names."""
    spellings: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        spellings.setdefault("".join(name.casefold().split()), []).append(name)
    several = [" and ".join(alike) for alike in spellings.values() if len(alike) > 1]
    if not several:
        return []
    return [f"{what}s that differ only in case or spaces are taken for different ones ({first_of(several, 3)})"]


def sign_between(label: str, labels: Collection[str]) -> str:
    """What parts a label that is made of others, which stand alone elsewhere: ; of "wren;owl" beside "wren"."""
    for sign in _SIGNS:
        parts = [part.strip() for part in label.split(sign)]
        if len(parts) > 1 and all(parts) and any(part in labels for part in parts):
            return sign
    return ""


def several_in_one(labels: Collection[str]) -> list[str]:
    """A remark where labels are made of others, and would be classes of their own."""
    several = sorted((label, sign) for label in set(labels) if (sign := sign_between(label, labels)))
    if not several:
        return []
    (first, sign), count = several[0], counted(len(several), "label")
    alone = "is taken for a class of its own" if len(several) == 1 else "are taken for classes of their own"
    return [f"{count} such as {first!r} {alone}, where --label-separator '{sign}' would see several labels in a clip"]


def words_for_nothing(labels: Iterable[str]) -> list[str]:
    """A remark where a label says that none of the classes is there, and would be a class itself."""
    found = Counter(label for label in labels if "".join(filter(str.isalpha, label.casefold())) in _NOTHING)
    return [
        f"{counted(count, 'row')} with the label {label!r}, a class like any other: --background {label!r} if it means "
        "that none of the classes is there"
        for label, count in found.items()
    ]
