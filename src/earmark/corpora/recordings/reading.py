"""What readers of recordings share: options behind a question mark, and whether a licence is the one a card states."""

from __future__ import annotations

from collections.abc import Sequence

from earmark.corpora.recordings.packages import Copy, stated_licences
from earmark.errors import UsageError


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


def licence_notes(copy: Copy, licence: str) -> list[str]:
    """A note where the copyright file of a package states licences, and not the one of the card."""
    stated = stated_licences(copy)
    if not stated or licence.split(" ")[0] in stated:
        return []
    return [f"{copy.revision}: {copy.licence_file} states {', '.join(stated)}, where {licence} was known: read it."]
