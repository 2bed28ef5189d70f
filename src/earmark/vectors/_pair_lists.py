"""A list of named pairs with their distances, made condensed: every pair once, in one direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.vectors._condensed import condensed_places, pair_at
from earmark.vectors._distance_checks import ROUNDING, SYMMETRISE, Tally, names_of_pairs, own_notes, refuse_similarities
from earmark.vectors._distance_tables import PairList
from earmark.vectors._matching import some_names
from earmark.wording import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Condensed(NamedTuple):
    """Condensed distances, the names of the items, how two directions became one, and what a reader should know."""

    values: Floats
    names: tuple[str, ...]
    symmetrise: str | None
    notes: tuple[str, ...]


def condense(
    table: PairList, ids: Sequence[str] | None, symmetrise: str | None, source: str, *, complete: bool
) -> Condensed:
    """Pairs as condensed distances, of `ids`, or else of all names in the order in which they come.

    Refused are names not among the ids, pairs that are not there, a pair twice with different values and, unless
    `symmetrise` says what counts, two directions that differ by more than rounding.
    """
    in_order = dict.fromkeys(name for both in zip(table.first, table.second, strict=True) for name in both)
    names = tuple(in_order if ids is None else ids)
    number = {name: place for place, name in enumerate(names)}
    unknown = [name for name in in_order if name not in number]
    if unknown:
        raise InputError(f"{source} names {some_names(unknown, 'item')} not among the {len(names)} ids; check both.")
    if len(names) < 2:
        raise InputError(f"{source} has distances of {counted(len(names), 'item')}; at least two are needed.")
    a = np.fromiter((number[name] for name in table.first), np.int64, len(table.first))
    b = np.fromiter((number[name] for name in table.second), np.int64, len(table.second))
    values = table.distances
    own = a == b
    bad = ~np.isfinite(values) & ~own
    if bad.any():
        line = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{source}: {counted(int(bad.sum()), 'value')} missing or infinite, first of "
            f'"{table.first[line]}" and "{table.second[line]}"; fill the gaps, or leave these items out.'
        )
    notes = _check_own(a, values, own, len(names), source)
    a, b, values = a[~own], b[~own], values[~own]
    up = _one_direction(a, b, values, names, source, upward=True)
    down = _one_direction(a, b, values, names, source, upward=False)
    merged, remarks = _merge(up, down, names, symmetrise, source)
    missing = np.isnan(merged)
    if missing.any() and complete:
        examples = [_name(names, int(place)) for place in np.flatnonzero(missing)[:3]]
        more = ", …" if int(missing.sum()) > 3 else ""
        raise InputError(
            f"{source} lacks {counted(int(missing.sum()), 'pair')} of the {len(merged)} of its {len(names)} items "
            f"({'; '.join(examples)}{more}); every pair needs a distance."
        )
    return Condensed(merged, names, (symmetrise or "mean") if remarks else None, (*notes, *remarks))


def _check_own(a: Ints, values: Floats, own: NDArray[np.bool_], n: int, source: str) -> list[str]:
    """Look at the distances of items to themselves, which are never used."""
    if not own.any():
        return []
    diagonal, largest = np.full(n, np.nan), np.full(n, -np.inf)
    diagonal[a[own]] = values[own]
    np.maximum.at(largest, a[~own], values[~own])
    refuse_similarities(diagonal, largest, source)
    return own_notes(values[own], float(np.median(np.abs(values))), source)


def _one_direction(a: Ints, b: Ints, values: Floats, names: Sequence[str], source: str, *, upward: bool) -> Floats:
    """The pairs with a < b (`upward`), or those with a > b, as condensed distances; NaN where there is none."""
    n = len(names)
    chosen = a < b if upward else a > b
    low, high = np.minimum(a, b)[chosen], np.maximum(a, b)[chosen]
    places, given = condensed_places(low, high, n), values[chosen]
    out = np.full(n * (n - 1) // 2, np.nan)
    out[places] = given
    again = np.flatnonzero(out[places] != given)
    if len(again):
        i, j = int(low[again[0]]), int(high[again[0]])
        first, second = (i, j) if upward else (j, i)
        count = len(np.unique(places[again]))
        raise InputError(
            f"{source} has {counted(count, 'pair')} more than once with different distances, first "
            f"{names_of_pairs(names)(first, second)} ({given[again[0]]:.6g} and {out[places[again[0]]]:.6g}); keep one "
            "line for each pair."
        )
    return out


def _merge(
    up: Floats, down: Floats, names: Sequence[str], symmetrise: str | None, source: str
) -> tuple[Floats, list[str]]:
    with np.errstate(invalid="ignore"):
        gap = np.abs(up - down)  # NaN where only one direction is there
        uneven = gap > ROUNDING * np.maximum(np.abs(up), np.abs(down))
    rounded = (gap > 0) & ~uneven
    tally = Tally()
    tally.add(uneven, np.nan_to_num(gap), lambda place: (place, 0))
    if tally.first is not None and symmetrise is None:
        place = tally.first[0]
        raise InputError(
            f"{source} is not symmetric: {counted(tally.count, 'pair')}, first {_name(names, place)} "
            f"({up[place]:.6g} and {down[place]:.6g}); say what counts with --symmetrise mean, min or max."
        )
    how = symmetrise or "mean"
    both = ~np.isnan(gap)
    merged = np.where(np.isnan(up), down, up)
    merged[both] = SYMMETRISE[how](up[both], down[both])
    if tally.count:
        pairs = counted(tally.count, "pair")
        return merged, [f"{source} is not symmetric: the {how} of both directions is taken, which differ for {pairs}"]
    if rounded.any():
        pairs = counted(int(rounded.sum()), "pair")
        return merged, [f"{source}: the two directions of {pairs} differ by rounding; their {how} is taken"]
    return merged, []


def _name(names: Sequence[str], place: int) -> str:
    """The pair at a place of condensed distances, as a message has it."""
    return names_of_pairs(names)(*pair_at(place, len(names)))
