"""Rows that repeat another system's: found by counting equal cells, never by a list of names.

Two systems that were measured apart agree in a printed cell now and then, by chance and rounding. A *block* (all that
two systems have in common, or that on one subset, or that on one subset under one distance) repeats when at least five
of its cells, of at least three different values, and at least nine in ten are equal. Blocks are sought from the largest
to the smallest.

Of two equal systems at most one was measured. The one that repeats is the one more of whose cells are in such blocks:
a row that equals a second row here and a third there, which differ from each other, is the row without measurements of
its own. Where that decides nothing, the one that fewer others repeat on that subset is taken for the copy, and the
reason says that it is not known.

A second kind is a *run*: four or more systems, in the order in which they are printed, whose values in one column are
those of as many earlier systems, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import TypeAlias

from earmark.scores import Row

FEWEST_CELLS = 5
FEWEST_VALUES = 3
NEARLY_ALL = 0.9
FEWEST_RUN = 4
_ALIKE = 0.05
"""Shares of repeated cells that differ by less decide nothing."""

_Cell: TypeAlias = tuple[str, ...]
"""(subset, distance, correction, protocol, metric)"""
_Kind: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A block of `system` that repeats one of `other`: on `subset` ("" for all of them), in `equal` of its `cells`.

    `certain` says whether the table shows which of the two is the copy. A block of a `run` is one cell of a column in
    which `equal` systems repeat as many earlier ones, one after the other.
    """

    system: str
    other: str
    subset: str
    distance: str
    equal: int
    cells: tuple[_Cell, ...]
    certain: bool = True
    run: bool = False

    @property
    def reason(self) -> str:
        if self.run:
            return f"repeats {self.other}, one of {self.equal} systems in a row that repeat earlier ones exactly"
        where = f" on {self.subset}" if self.subset else ""
        under = f" under {self.distance}" if self.distance else ""
        doubt = "" if self.certain else "; which of the two was measured is not known"
        return (
            f"repeats {self.other}{where}{under} in {self.equal} of {len(self.cells)} cells, although the two should "
            f"differ{doubt}"
        )


def find_repeats(rows: Iterable[Row], kind: _Kind = str) -> list[Repeat]:
    """The blocks that repeat others, largest first.

    kind  what a system is among its relatives ("D100" of "CLP D100"): decides between two copies that nothing else
          tells apart, by which kind more others repeat
    """
    values: dict[str, dict[_Cell, float]] = {}
    for row in rows:
        if row.status == "ok" and row.value is not None:
            values.setdefault(row.system, {})[_cell(row)] = row.value
    standing = _blocks(values)
    pooled = Counter[tuple[str, str]]()
    for block in standing:
        for system in (block.system, block.other):
            for cell in block.cells:
                pooled[kind(system), cell[0]] += 1
    found: list[Repeat] = []
    while standing:
        shares = _shares(standing, values)
        most = max(shares.values())
        tied = [system for system, share in shares.items() if share > most - _ALIKE]
        subsets: dict[str, set[str]] = {}
        for block in standing:
            for system in (block.system, block.other):
                subsets.setdefault(system, set()).update(cell[0] for cell in block.cells)
        copy = min(tied, key=lambda system: sum(pooled[kind(system), subset] for subset in subsets[system]))
        mine = [block for block in standing if copy in (block.system, block.other)]
        for block in mine:
            other = block.other if block.system == copy else block.system
            found.append(replace(block, system=copy, other=other, certain=shares[other] < shares[copy] - _ALIKE))
        standing = [block for block in standing if block not in mine]
    left = {(repeat.system, cell) for repeat in found for cell in repeat.cells}
    found += _runs({name: {c: v for c, v in cells.items() if (name, c) not in left} for name, cells in values.items()})
    return sorted(found, key=lambda repeat: -len(repeat.cells))


def flagged(rows: Iterable[Row], kind: _Kind = str) -> list[Row]:
    """The rows, those that repeat others with the status `repeated` and the reason."""
    rows = list(rows)
    repeats = find_repeats(rows, kind)
    copies = {(repeat.system, cell) for repeat in repeats for cell in repeat.cells}
    reasons: dict[tuple[str, _Cell], str] = {}
    for of_a_copy in (False, True):  # rather what the row repeats than another copy of it
        for repeat in repeats:
            for cell in repeat.cells:
                if ((repeat.other, cell) in copies) == of_a_copy:
                    reasons.setdefault((repeat.system, cell), repeat.reason)
    marked = []
    for row in rows:
        reason = reasons.get((row.system, _cell(row)), "")
        if reason and row.status == "ok":
            reason = "; ".join(part for part in (row.reason, reason) if part)
            row = replace(row, status="repeated", reason=reason)
        marked.append(row)
    return marked


def counted_as_measured(rows: Iterable[Row]) -> list[Row]:
    """The rows with the status `repeated` as ok ones, for whoever asks for them; the reason stays."""
    return [replace(row, status="ok") if row.status == "repeated" else row for row in rows]


def _cell(row: Row) -> _Cell:
    return row.subset, row.distance, row.correction, row.protocol, row.metric


def _blocks(values: Mapping[str, Mapping[_Cell, float]]) -> list[Repeat]:
    """Every block in which two systems are nearly equal; which of them is the copy is not decided yet."""
    holders: dict[tuple[_Cell, float], list[str]] = {}
    for system, cells in values.items():
        for cell, value in cells.items():
            holders.setdefault((cell, value), []).append(system)
    agreeing = Counter(pair for systems in holders.values() for pair in combinations(systems, 2))
    return [
        block
        for (one, other), count in agreeing.items()
        if count >= FEWEST_CELLS
        for block in _of_pair(one, other, values[one], values[other])
    ]


def _of_pair(one: str, other: str, mine: Mapping[_Cell, float], theirs: Mapping[_Cell, float]) -> Iterator[Repeat]:
    shared = [cell for cell in mine if cell in theirs]
    alike = [cell for cell in shared if mine[cell] == theirs[cell]]

    def block(subset: str = "", distance: str = "") -> Repeat | None:
        def inside(cells: Sequence[_Cell]) -> list[_Cell]:
            return [cell for cell in cells if subset in ("", cell[0]) and distance in ("", cell[1])]

        equal = inside(alike)
        if len(equal) < FEWEST_CELLS or len({mine[cell] for cell in equal}) < FEWEST_VALUES:
            return None
        cells = inside(shared)
        nearly = len(equal) >= NEARLY_ALL * len(cells)
        return Repeat(one, other, subset, distance, len(equal), tuple(cells)) if nearly else None

    if whole := block():
        yield whole
        return
    for subset, count in Counter(cell[0] for cell in alike).items():
        if count < FEWEST_CELLS:
            continue
        if part := block(subset):
            yield part
            continue
        for distance in dict.fromkeys(cell[1] for cell in alike if cell[0] == subset):
            if part := block(subset, distance):
                yield part


def _runs(values: Mapping[str, Mapping[_Cell, float]]) -> Iterator[Repeat]:
    """Runs of systems, as printed, whose values in one column are those of an earlier run, one after the other."""
    columns: dict[_Cell, list[str]] = {}
    for system, cells in values.items():
        for cell in cells:
            columns.setdefault(cell, []).append(system)
    for cell, systems in columns.items():
        column = [values[system][cell] for system in systems]
        for shift in _likely_shifts(column):
            alike = [later == earlier for later, earlier in zip(column[shift:], column, strict=False)]
            for start, length in _stretches(alike):
                run = column[start : start + length]
                if FEWEST_RUN <= length <= shift and len(set(run)) >= FEWEST_VALUES:
                    for place in range(start, start + length):
                        yield Repeat(systems[place + shift], systems[place], cell[0], "", length, (cell,), run=True)


def _likely_shifts(column: Sequence[float]) -> list[int]:
    """The distances between equal values that are common enough for a run."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(column):
        places.setdefault(value, []).append(place)
    shifts = Counter(later - earlier for equal in places.values() for earlier, later in combinations(equal, 2))
    return sorted(shift for shift, count in shifts.items() if shift >= FEWEST_RUN and count >= FEWEST_RUN)


def _stretches(alike: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Start and length of each stretch of True."""
    place = 0
    for value, group in groupby(alike):
        length = len(list(group))
        if value:
            yield place, length
        place += length


def _shares(blocks: Iterable[Repeat], values: Mapping[str, Mapping[_Cell, float]]) -> dict[str, float]:
    """By system: the share of its cells that lie in one of the blocks."""
    cells: dict[str, set[_Cell]] = {}
    for block in blocks:
        for system in (block.system, block.other):
            cells.setdefault(system, set()).update(block.cells)
    return {system: len(inside) / len(values[system]) for system, inside in cells.items()}
