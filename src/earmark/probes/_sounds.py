"""Where distances between sounds come from, and which of its rows a sound's name stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, quoted
from earmark.evaluation.data import check_ids, check_vectors
from earmark.geometry import spaces
from earmark.geometry.listed_pairs import listed_distances
from earmark.probes._names import common_folders, fit, parts_of
from earmark.wording import counted, first_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sounds:
    """A system: the names of its sounds, and their vectors or their distances."""

    name: str
    ids: tuple[str, ...]
    vectors: NDArray[Any] | None = None
    matrix: Any = None  # with pairs(rows_a, rows_b)

    def rows(self, names: Sequence[str]) -> Ints:
        """The row of each name, -1 where there is none: the row of that id, or the one whose id fits.

        Of several rows that fit, the one with the same ending and the most folders in common counts; where that is not
        a single one the name is refused.
        """
        row_of = {name: row for row, name in enumerate(self.ids)}
        parts = [parts_of(name) for name in self.ids]
        by_stem: dict[str, list[int]] = {}
        for row, of_row in enumerate(parts):
            by_stem.setdefault(of_row.stem, []).append(row)
        found = np.full(len(names), -1, np.int64)
        for place, name in enumerate(names):
            own = parts_of(name)
            fitting = [row for row in by_stem.get(own.stem, ()) if fit(own, parts[row])]
            rows = [row_of[name]] if name in row_of else fitting
            if len(rows) > 1:
                near = {row: (parts[row].ending == own.ending, common_folders(parts[row], own)) for row in rows}
                nearest = tuple(map(max, zip(*near.values(), strict=True)))
                rows = [row for row in rows if near[row] == nearest]
                if len(rows) != 1:
                    shown = first_of([self.ids[row] for row in fitting], 3)
                    raise InputError(
                        f"{self.name or 'The vectors'}: the sound {quoted(name)} may be {shown}: name sounds in the "
                        "judgements as the ids do, with their folders."
                    )
            if rows:
                found[place] = rows[0]
        return found

    def distances(
        self, distance: str, rows: tuple[Ints, Ints, Ints], *, ties: spaces.Ties = "average", threads: int = 1
    ) -> tuple[Floats, Floats, list[str]]:
        """Distances of x to a and of x to b, NaN where there is none, and what a reader should know of them."""
        x, a, b = rows
        if self.vectors is None:
            return self.matrix.pairs(x, a), self.matrix.pairs(x, b), []
        used, places = np.unique(np.concatenate([x, a, b]), return_inverse=True)
        space = spaces.prepare(check_vectors(self.vectors[used], self.name), distance, ties=ties, threads=threads)
        first, second, third = np.split(np.asarray(places, np.int64).ravel(), 3)
        flat = int(space.flat.sum())
        kind = "zero" if distance == "cosine" else "constant"
        notes = [f"{counted(flat, f'{kind} vector')} without direction, at distance 1 to all"] if flat else []
        return listed_distances(space, first, second), listed_distances(space, first, third), notes


def sounds_of(source: Any, name: str, ids: Sequence[str] | None = None) -> Sounds:
    """A system from vectors as they were read, an array with ids, or distances with ids."""
    known = getattr(source, "ids", None) if ids is None else ids
    if hasattr(source, "pairs"):
        return Sounds(name, _ids(known, source.n, name), matrix=source)
    values = np.asarray(getattr(source, "values", source))
    if values.ndim != 2:
        raise InputError(f"{name}: vectors are a table with a row for each sound, not of shape {values.shape}.")
    return Sounds(name, _ids(known, len(values), name), vectors=values)


def systems_of(source: Any, name: str, ids: Sequence[str] | None = None) -> list[Sounds]:
    """The systems to be judged: one, or a mapping of names to several."""
    if isinstance(source, Mapping):
        if not source:
            raise UsageError("There is no system to judge: give vectors or distances.")
        return [sounds_of(one, str(key), ids) for key, one in source.items()]
    return [sounds_of(source, name, ids)]


def _ids(ids: Sequence[str] | None, n: int, name: str) -> tuple[str, ...]:
    if ids is None:
        raise InputError(f"{name or 'The vectors'}: nothing says which sound a row is; give ids, one for each row.")
    names = check_ids(ids, n)
    assert names is not None
    repeated = [text for text, times in Counter(names).items() if times > 1]
    if repeated:
        where = name or "The vectors"
        raise InputError(f"{where}: the id {quoted(repeated[0])} occurs more than once; ids must be unique.")
    return names
