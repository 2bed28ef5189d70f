"""What the subsets are: clips, classes, durations and dynamic range; VocSim's Table 1."""

from __future__ import annotations

import math

from earmark.errors import InputError
from earmark.report.content import SubsetFacts
from earmark.report.tabulation.choice import Choice
from earmark.report.tabulation.sources import TableSource
from earmark.tables import Cell, Column, NumberFormat, Table

_ONE, _TWO = NumberFormat(1), NumberFormat(2)


def subset_table(source: TableSource, choice: Choice) -> list[Table]:
    """A line for each subset of which something is known."""
    if not source.facts:
        raise InputError(
            f"{source.name} says nothing of its subsets: give a run folder, or --facts with a file of `earmark corpus "
            "describe --out`."
        )
    columns = [
        Column("subset", "left"), Column("what", "left"), Column("set", "left"), Column("clips"), Column("classes"),
        Column("per class", format=_ONE), Column("fewest"), Column("most"), Column("seconds", format=_TWO),
        Column("shortest", format=_TWO), Column("longest", format=_TWO),
        Column("DRI", unit="dB", format=NumberFormat(0)),
    ]  # fmt: skip
    rows = [_line(source, fact) for fact in source.facts]
    kept = [place for place in range(len(columns)) if place < 2 or any(row[place] not in (None, "") for row in rows)]
    clips = sum(fact.clips for fact in source.facts)
    title = f"Subsets: {clips:,} clips."
    return [Table([columns[place] for place in kept], [[row[place] for place in kept] for row in rows], title)]


def _line(source: TableSource, fact: SubsetFacts) -> list[Cell | str | float | int | None]:
    home = next((one.name for one in source.sets if fact.subset in one.subsets), "")
    seconds = fact.durations
    ends = (None, None, None) if seconds is None else (seconds.mean, seconds.shortest, seconds.longest)
    fewest, most = fact.per_class or (None, None)
    return [
        fact.subset, fact.title if fact.title and not fact.domain else fact.domain, home if home != "all" else "",
        fact.clips, fact.classes or None, fact.clips / fact.classes if fact.classes else None, fewest, most,
        *(None if one is None or math.isnan(one) else one for one in ends), fact.dri,
    ]  # fmt: skip
