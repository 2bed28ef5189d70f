"""What readers of recordings share: the parts and options that a user names, and notes on what a package holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from earmark.corpora.recordings.packages import Copy, stated_licences
from earmark.errors import UsageError, did_you_mean
from earmark.wording import counted

Value = TypeVar("Value")


def split_options(argument: str, corpus: str, known: Sequence[str]) -> tuple[str, dict[str, str]]:
    """`en?only=digits` as `en` and the options, each of which must be `known`."""
    keys, mark, query = argument.partition("?")
    options: dict[str, str] = {}
    for pair in query.split("&") if mark else []:
        key, equals, value = pair.partition("=")
        if key not in known or not equals or not value:
            listed = " and ".join(f"{name}=..." for name in known) or "none"
            raise UsageError(f"{corpus} has no option {pair!r}: there is {listed}.")
        options[key] = value
    return keys, options


def named_parts(keys: str, corpus: str, known: Mapping[str, Value], noun: str, default: Sequence[str]) -> list[Value]:
    """What `en,es` names among the `known` parts, each once; the default where nothing is named."""
    names = [key.strip() for key in keys.split(",")] if keys.strip() else list(default)
    for name in names:
        if name not in known:
            raise UsageError(
                f"{corpus} has no {noun} {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}; several are "
                "separated by commas."
            )
    return [known[name] for name in dict.fromkeys(names)]


def count_notes(copy: Copy, count: int, known: int, what: str = "clip") -> list[str]:
    """A note where a package has another number of clips than the one that results were published for."""
    if count == known:
        return []
    return [
        f"{copy.revision} has {counted(count, what)} and the version of Debian 12 {known}: scores cannot be compared."
    ]


def licence_notes(copy: Copy, licence: str) -> list[str]:
    """A note where the copyright file of a package states licences, and not all those of the card.

    A card separates licences by semicolons, and has remarks in parentheses behind them.
    """
    stated = stated_licences(copy)
    if not stated or all(name.partition(" (")[0].strip() in stated for name in licence.split(";")):
        return []
    return [f"{copy.revision}: {copy.licence_file} states {', '.join(stated)}, where {licence} was known: read it."]
