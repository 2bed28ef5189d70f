"""Where distances between sounds come from, and which of its rows a sound's name stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, quoted
from earmark.evaluation.data import check_ids, check_vectors
from earmark.geometry import spaces
from earmark.geometry.listed_pairs import listed_distances
from earmark.probes._judgements import without_folder
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
        """The row of each name, -1 where there is none: by id, by file name, by file name without its ending.

        Of several rows that fit in the first of these ways that finds any, the one with the same folders counts, as far
        as both name them; otherwise the name is refused.
        """
        found = np.full(len(names), -1, np.int64)
        ways = (str, without_folder, partial(without_folder, extension=False))
        for way in ways:
            index: dict[str, list[int]] = {}
            for row, name in enumerate(self.ids):
                index.setdefault(way(name), []).append(row)
            for place, name in enumerate(names):
                fits = index.get(way(name), []) if found[place] < 0 else []
                if len(fits) > 1:
                    fits = [row for row in fits if _same_folders(name, self.ids[row])] or fits
                if len(fits) > 1:
                    shown = first_of([self.ids[row] for row in fits], 3)
                    raise InputError(
                        f"{self.name or 'The vectors'}: the sound {quoted(name)} may be {shown}: name sounds in the "
                        "judgements as the ids do, with their folders."
                    )
                if fits:
                    found[place] = fits[0]
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


def _same_folders(one: str, other: str) -> bool:
    """Whether two paths name the same folders, as far as both do: `day1/a` and `data/day1/a.wav`."""
    folders = [PurePosixPath(name.replace("\\", "/")).parts[-2::-1] for name in (one, other)]
    return all(folders) and all(a == b for a, b in zip(*folders, strict=False))


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
