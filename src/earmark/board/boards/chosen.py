"""Means over subsets that a reader chose, by the key that stands in addresses: "subsets:BC,BS1,HW1".

A key is the same whatever the order in which the subsets were named: that of the board. A comma or percent sign within
a name is written as in addresses (%2C, %25), the subset without a name as %. One subset has the key that it always
has, "subset:BC".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from earmark.board.boards.groups import Group
from earmark.errors import UsageError, did_you_mean
from earmark.wording import counted, listed

CHOSEN = "subsets:"
SINGLE = "subset:"
MOST_LETTERS = 4000
"""The longest key that is read."""
_NAMED = 3
_NAMELESS = "%"
"""How a key writes the subset without a name, which stands for all clips."""


def is_chosen(key: str) -> bool:
    """Whether a key is one of subsets that a reader chose."""
    return key.startswith(CHOSEN)


def chosen_key(names: Iterable[str]) -> str:
    """The key of some subsets, in the order given."""
    return CHOSEN + ",".join(name.replace("%", "%25").replace(",", "%2C") or _NAMELESS for name in names)


def chosen_names(key: str) -> list[str]:
    """The subsets that a key names, each once."""
    parts = [part for part in key.removeprefix(CHOSEN).split(",") if part]
    return list(dict.fromkeys("" if part == _NAMELESS else unquote(part) for part in parts))


def chosen_group(key: str, offered: Sequence[str]) -> Group:
    """The group of the subsets that a key names, which must be among those that are `offered`; in their order."""
    names, known = chosen_names(key), frozenset(offered)
    if not names:
        raise UsageError(f'"over={CHOSEN}" needs the names of subsets, such as "over={CHOSEN}{",".join(offered[:2])}".')
    for name in names:
        if name not in known:
            raise UsageError(f'There is no subset "{name}" to average over.{did_you_mean(name, offered)}')
    wanted = frozenset(names)
    subsets = tuple(name for name in offered if name in wanted)
    if len(subsets) == 1:
        title = subsets[0] or "all clips"
        return Group(f"{SINGLE}{subsets[0]}", title, title, subsets, single=True)
    what = listed(subsets) if len(subsets) <= _NAMED else counted(len(subsets), "chosen subset")
    return Group(chosen_key(subsets), f"Mean of {what}", f"Chosen {len(subsets)}", subsets)
