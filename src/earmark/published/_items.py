"""Every table and figure of the papers: what it shows, the command that makes it, and how it stands.

    recomputed                 from the numbers that the papers print, or from definitions alone
    reproduced with our data   the same analysis, on sounds, vectors or tables that can be had here
    cannot be had here         `why` says what is missing; the command is the one that makes it where that is there

`items.csv` holds them. In its commands, words in capitals stand for files or folders of yours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias, cast

from earmark.errors import UsageError, did_you_mean
from earmark.published._papers import PAPERS
from earmark.tables import read_csv_records

Standing: TypeAlias = Literal["recomputed", "reproduced with our data", "cannot be had here"]
STANDINGS: tuple[Standing, ...] = ("recomputed", "reproduced with our data", "cannot be had here")
EARLIER = "VocSim, earlier version"


@dataclass(frozen=True, slots=True)
class Item:
    """A table or figure of a paper.

    `why` says what is missing where it cannot be had, and is a remark elsewhere. `tables` are the printed numbers that
    come with Earmark, for `published.read`; `earlier` is its number in the earlier version of VocSim.
    """

    paper: str
    item: str
    shows: str
    command: str
    standing: Standing
    why: str
    tables: tuple[str, ...]
    earlier: str = ""

    @property
    def stands(self) -> str:
        """The standing in words."""
        if self.standing == "cannot be had here":
            return f"{self.standing}, because {self.why}"
        return f"{self.standing}: {self.why}" if self.why else self.standing


@cache
def items() -> tuple[Item, ...]:
    """Every table and figure of the five papers, in the papers' order; VocSim's earlier version last of VocSim."""
    text = (files("earmark.published") / "items.csv").read_text(encoding="utf-8")
    found: list[Item] = []
    for row in read_csv_records(text, "items.csv"):
        found.append(
            Item(
                row["paper"], row["item"], row["shows"], row["command"], cast("Standing", row["standing"]), row["why"],
                tuple(row["tables"].split()), row["earlier"],
            )
        )  # fmt: skip
    before = [replace(item, paper=EARLIER, item=item.earlier) for item in found if item.earlier]
    before.sort(key=_order)
    last = max(place for place, item in enumerate(found) if item.paper == "VocSim") + 1
    return (*found[:last], *before, *found[last:])


def _order(item: Item) -> tuple[bool, int]:
    kind, number = item.item.split()
    return kind == "Figure", int(number)


def paper_named(name: str) -> str:
    """The key of a paper, however its name is written."""
    keys = {key.lower(): key for key in PAPERS}
    if name.lower() not in keys:
        raise UsageError(f'There is no paper "{name}"; there are {", ".join(keys)}.{did_you_mean(name.lower(), keys)}')
    return keys[name.lower()]
