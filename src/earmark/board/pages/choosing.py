"""The form in which a reader chooses the subsets that a table is ranked by: a box for each, by domain."""

from __future__ import annotations

from typing import NamedTuple

from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.view import BoardView

TICKED = ("all", "none")
"""What an address may say of the boxes (`?subset=all`, `?subset=none`) before the reader ticks them."""
_MOST_BOXES = 300


class Box(NamedTuple):
    """A subset with its code, what it is, and whether its box is ticked."""

    name: str
    title: str
    ticked: bool


class Boxes(NamedTuple):
    """The subsets of a domain; `address` ranks by them alone where the board has a mean of them."""

    title: str
    address: str
    boxes: tuple[Box, ...]


def subset_boxes(snapshot: Snapshot, view: BoardView, ticked: str = "") -> list[Boxes]:
    """The boxes of a view: those of its mean are ticked unless it is the board's usual one, or `all`, or `none`.
    Too many subsets have no boxes."""
    names = snapshot.subsets(view.metric)
    if not 2 < len(names) <= _MOST_BOXES:
        return []
    usual = view.over == view.plain["over"]
    chosen = {"all": names, "none": ()}.get(ticked, () if usual else snapshot.group(view.metric, view.over).subsets)
    titles = {name: snapshot.definition.subset(name).title for name in names}
    made: list[Boxes] = []
    left = dict.fromkeys(names)
    for group in snapshot.groups(view.metric):
        if group.narrow:
            own = [name for name in group.subsets if name in left]
            made.append(_boxes(group.title, view.address(over=group.key), own, titles, chosen))
            left = {name: None for name in left if name not in own}
    rest = "Others" if made else "Subsets"
    return [*made, _boxes(rest, "", list(left), titles, chosen)] if left else made


def _boxes(
    title: str, address: str, names: list[str], titles: dict[str, str], chosen: tuple[str, ...]
) -> Boxes:  # fmt: skip
    return Boxes(title, address, tuple(Box(name, titles[name], name in chosen) for name in names))
