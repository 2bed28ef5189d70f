"""What the name of a column or array says of it: `id`, `label`, `group`, an index, or something that tells rows apart.

Names with a meaning of their own, in any case, singular or plural: `id`, `label`, `group`. Others get that meaning
because the caller names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from earmark.errors import InputError, did_you_mean

__all__ = [
    "MissingColumn",
    "NamelessColumns",
    "family",
    "is_index_name",
    "named",
    "pick_columns",
    "refuse_columns",
    "role_of",
    "roles_of",
    "shortened",
    "telling",
]

_TELLING = frozenset(
    "class target category species genre emotion gender sex language accent dialect instrument digit word phoneme "
    "syllable annotation annotator speaker singer talker actor subject participant patient individual bird animal "
    "recording recordist session site fold split subset partition set file filename path filepath clip uuid utterance "
    "item track segment frame row index sample timestamp date start end begin".split()
)
_TELLING_ENDS = frozenset("id ids uuid label labels class name path file filename".split())
_MARKS = frozenset("idx index no nr num number code time s sec seconds ms".split())


class MissingColumn(InputError):
    """A column or array that was asked for by name and is not there; the message names those that are."""

    def __init__(self, source: Path, wanted: str, names: Sequence[str]) -> None:
        shown = shortened(names, 12) or "none with a name"
        super().__init__(f'{source} has no column "{wanted}"; it has {shown}.{did_you_mean(wanted, names)}')
        self.source, self.wanted, self.names = source, wanted, tuple(names)

    def __reduce__(self) -> Any:
        return type(self), (self.source, self.wanted, self.names)


class NamelessColumns(InputError):
    """A column was asked for by name in a file that names none."""


def role_of(name: str) -> str | None:
    """`id`, `label` or `group` when a column or array has that meaning."""
    singular = name.strip().lower().removesuffix("s")
    return singular if singular in ("id", "label", "group") else None


def roles_of(names: Iterable[str], source: Path) -> dict[str, str]:
    """Meaning → name of the column or array that has it."""
    found: dict[str, str] = {}
    for name in names:
        role = role_of(name)
        if role is not None and found.setdefault(role, name) != name:
            raise InputError(f"{source} has both `{found[role]}` and `{name}`; remove one of them.")
    return found


def named(names: Sequence[str], label: str | None, groups: str | None, source: Path) -> dict[str, str]:
    """Meaning → name of the column or array that has it, by its own name or because it was asked for."""
    roles = roles_of(names, source)
    for wanted, role in ((label, "label"), (groups, "group")):
        if wanted is None:
            continue
        if wanted not in names:
            raise MissingColumn(source, wanted, [name for name in names if name.strip()])
        roles[role] = wanted
    if groups is None and label is not None and roles.get("group") == label:
        del roles["group"]
    return roles


def pick_columns(names: Sequence[str], label: str | None, groups: str | None, source: Path) -> dict[str, str]:
    """Which columns or arrays of a file of labels hold the labels, the groups and the ids."""
    roles = named(names, label, groups, source)
    if "label" not in roles:
        others = [name for name in names if name not in roles.values() and not is_index_name(name)]
        if len(others) != 1:
            raise InputError(f"{source} has the columns {', '.join(names)}; name the one with the labels `label`.")
        roles["label"] = others[0]
    return roles


def refuse_columns(source: Path, label: str | None, groups: str | None) -> None:
    """For formats that hold one nameless list of labels."""
    if label is not None or groups is not None:
        raise NamelessColumns(
            f"{source} has no named columns; give a .csv, .npz or .parquet file to choose one by name."
        )


def is_index_name(name: str) -> bool:
    """Whether pandas writes its row index under this name."""
    return re.fullmatch(r"(unnamed: *\d+.*|index|level_\d+|__index_level_\d+__)?", name.strip().lower()) is not None


def telling(name: str) -> bool:
    """Whether a name says that a column tells rows apart or cuts them out: class, speaker_id, foldNumber, file name."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip())
    words = [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
    if len(words) > 1 and words[-1] in _TELLING_ENDS:
        return True
    while len(words) > 1 and words[-1] in _MARKS:
        words.pop()
    while len(words) > 1 and words[0] in ("cv", "true"):
        words.pop(0)
    return len(words) == 1 and (words[0] in _TELLING or words[0].removesuffix("s") in _TELLING)


def family(names: Sequence[str]) -> str | None:
    """What names with running numbers share: `f` of f0, f1, f2, and the empty text of 0, 1, 2; else None."""
    parts = [re.fullmatch(r"(.*?)(\d+)", name) for name in names]
    if len(names) < 2 or any(part is None for part in parts):
        return None
    stems = {part[1] for part in parts if part}
    return stems.pop() if len(stems) == 1 else None


def shortened(names: Sequence[str], most: int = 6) -> str:
    """`f0 … f127, energy`: runs by their ends, and of many names the first and the last."""
    runs: list[list[str]] = []
    for name in names:
        if runs and family([runs[-1][-1], name]) is not None:
            runs[-1].append(name)
        else:
            runs.append([name])
    shown = [text for run in runs for text in ([f"{run[0]} … {run[-1]}"] if len(run) > 2 else run)]
    if len(shown) > most:
        shown = [*shown[: most - 2], "…", shown[-1]]
    return ", ".join(shown)
