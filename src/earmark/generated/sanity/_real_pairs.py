"""Pairs of the checks on real embeddings: halves of a set of clips, modes that fade, bad samples among good ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.evaluation.data import check_vectors, digest_of
from earmark.generated.balls import Reference
from earmark.generated.sanity._data import generator
from earmark.generated.sanity.rules import Kind
from earmark.vectors.texts import column_texts
from earmark.wording import counted

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FLAT, SLOPE = 0.05, 0.1  # how far a relative score may be from its ideal, where that stays and where it falls
MOST_MODES, LEAST_POINTS = 10, 200
FAR, NEAREST = 10.0, 2.0  # the factor by which bad samples are moved away: its mean, and its least value
OUTLIERS, REPLACED = np.linspace(0.0, 0.03, 4), np.linspace(0.0, 1.0, 11)


class RealTest(NamedTuple):
    """One check: what is varied, what it is called in the papers, which kinds of metrics it judges, and its ideal."""

    name: str
    title: str
    parameter: str
    kinds: tuple[Kind, ...]
    falls: bool

    def ideal(self, grid: Floats) -> Floats:
        return 1.0 - grid if self.falls else np.ones(len(grid))

    @property
    def limit(self) -> float:
        return SLOPE if self.falls else FLAT


_BOTH: tuple[Kind, ...] = ("fidelity", "coverage")
TESTS = {
    test.name: test
    for test in (
        RealTest("dropping", "Simultaneous mode dropping", "share of other modes dropped", ("fidelity",), False),
        RealTest("outliers", "Bad samples in both sets", "share of bad samples in each set", _BOTH, False),
        RealTest("replacing", "Good samples replaced by bad ones", "share of bad generated samples", _BOTH, True),
    )
}


class RealSet(NamedTuple):
    """Embeddings of real clips: one row each, with label and group where they are known, and bad samples if any."""

    vectors: Any
    labels: Any = None
    groups: Any = None
    bad: Any = None


@dataclass(frozen=True)
class Plan:
    """One set and what is done with it: grids by test, which clips are of one label and group, the number of modes."""

    name: str
    vectors: Array
    labels: Ints
    groups: Ints
    bad: Array | None
    tests: Mapping[str, Floats]
    modes: int
    seed: int
    notes: tuple[str, ...]

    @staticmethod
    def make(
        name: str, one: RealSet, tests: Sequence[str], k: int, distance: str, modes: int | None, seed: int
    ) -> Plan:
        called = f" of {name}" if name else ""
        vectors = check_vectors(one.vectors, f"The real vectors{called}")
        labels = _codes(one.labels, len(vectors), f"labels{called}")
        groups = _codes(one.groups, len(vectors), f"groups{called}")
        bad = None if one.bad is None else check_vectors(one.bad, f"The bad samples{called}")
        if bad is not None and bad.shape[1] != vectors.shape[1]:
            raise InputError(
                f"The real vectors{called} have {vectors.shape[1]} dimensions and the bad samples {bad.shape[1]}: take "
                "both from the same model and pooling."
            )
        if bad is None and distance != "euclidean":
            raise UsageError(
                f"Bad samples are made by moving points away from the mean, which {distance} does not see: give bad "
                "samples, such as noise through the same model."
            )
        plan = Plan(name, vectors, labels, groups, bad, {}, 1, seed, ())
        size = min(len(half) for half in plan.halves(0))
        if size <= k:
            raise InputError(f"{counted(len(vectors), 'vector')}{called} make halves of {size}: k = {k} needs more.")
        if bad is not None and len(bad) < size:
            there = counted(len(bad), "bad sample")
            raise InputError(f"There are {there}{called}, and a half has {size} clips: give at least {size}.")
        notes = [f"{name or 'the vectors'}: halves of {size} clips" + ("" if bad is not None else _SCALED)]
        grids = {"outliers": OUTLIERS, "replacing": REPLACED}
        kinds = len(np.unique(labels)) if one.labels is not None else 1
        chosen = modes or max(2, min(MOST_MODES, kinds, size // LEAST_POINTS))
        if "dropping" in tests and kinds < chosen:
            notes.append(f"dropping needs labels, at least {chosen} of them: left out")
        elif "dropping" in tests:
            grids["dropping"] = np.linspace(0.0, 1.0, chosen)
            notes.append(f"dropping: {chosen} modes of {replace(plan, modes=chosen).mode_size(0)} clips each")
        wanted = {test: grids[test] for test in tests if test in grids}
        return replace(plan, tests=wanted, modes=chosen, notes=tuple(notes))

    @property
    def digest(self) -> str:
        parts = [self.vectors, self.labels[:, None], self.groups[:, None]]
        return digest_of(*parts, *([] if self.bad is None else [self.bad])) + f" {self.modes}"

    def _rng(self, *names: str) -> np.random.Generator:
        return generator(self.seed, "on real", *names)

    def halves(self, repeat: int) -> tuple[Ints, Ints]:
        """Rows of the two halves, equally many of each label, in random order; a group is in one of them alone."""
        rng = self._rng("halves", str(repeat))
        side = np.full(1 + int(self.groups.max(initial=0)), -1)
        kept: tuple[list[Ints], list[Ints]] = ([], [])
        for label in rng.permutation(np.unique(self.labels)):
            rows = np.flatnonzero(self.labels == label)
            sizes = [int((side[self.groups[rows]] == half).sum()) for half in (0, 1)]
            for group in rng.permutation(np.unique(self.groups[rows])):
                if side[group] < 0:
                    side[group] = int(rng.integers(2)) if sizes[0] == sizes[1] else int(np.argmin(sizes))
                    sizes[side[group]] += int((self.groups[rows] == group).sum())
            for half in (0, 1):
                own = rng.permutation(rows[side[self.groups[rows]] == half])
                kept[half].append(own[: min(sizes)])
        first, second = (np.concatenate(parts) if parts else np.empty(0, np.int64) for parts in kept)
        return first[rng.permutation(len(first))], second[rng.permutation(len(second))]

    def _by_mode(self, repeat: int) -> list[tuple[Ints, Ints]]:
        """The rows of the two halves by mode: labels are dealt to the mode that has the fewest clips so far."""
        first, second = self.halves(repeat)
        rng = self._rng("modes", str(repeat))
        modes: list[list[int]] = [[] for _ in range(self.modes)]
        sizes = np.zeros(self.modes, np.int64)
        for label in rng.permutation(np.unique(self.labels)):
            place = int(np.argmin(sizes))
            modes[place].append(int(label))
            sizes[place] += int((self.labels[first] == label).sum())
        by_mode = [
            (first[np.isin(self.labels[first], mode)], second[np.isin(self.labels[second], mode)]) for mode in modes
        ]
        return [by_mode[place] for place in rng.permutation(self.modes)]

    def mode_size(self, repeat: int) -> int:
        """Points of each mode: so few that the first mode could fill all of a set."""
        return min(len(rows) for pair in self._by_mode(repeat) for rows in pair) // self.modes

    def pairs(self, repeat: int) -> Iterator[tuple[str, float, Reference, Array]]:
        """Every pair of a repeat: test, value of its grid, real and generated set."""
        for test, grid in self.tests.items():
            yield from ((test, *pair) for pair in getattr(self, f"_{test}")(grid, repeat))

    def _dropping(self, grid: Floats, repeat: int) -> Iterator[tuple[float, Reference, Array]]:
        by_mode, size = self._by_mode(repeat), self.mode_size(repeat)
        real = Reference(self.vectors[np.concatenate([first[:size] for first, _ in by_mode])])
        for dropped in grid:
            kept = [second[: round((1.0 - dropped) * size)] for _, second in by_mode[1:]]
            first = by_mode[0][1][: size * self.modes - sum(map(len, kept))]
            yield float(dropped), real, self.vectors[np.concatenate([first, *kept])]

    def _outliers(self, grid: Floats, repeat: int) -> Iterator[tuple[float, Reference, Array]]:
        first, second = self.halves(repeat)
        bad_real, bad = self._bad(first, second, repeat)
        for share in grid:
            count = round(share * len(first))
            real, generated = self.vectors[first], self.vectors[second]
            real[:count], generated[:count] = bad_real[:count], bad[:count]
            yield float(share), Reference(real), generated

    def _replacing(self, grid: Floats, repeat: int) -> Iterator[tuple[float, Reference, Array]]:
        first, second = self.halves(repeat)
        bad = self._bad(first, second, repeat)[1]
        real = Reference(self.vectors[first])
        for share in grid:
            generated = self.vectors[second]
            count = round(share * len(second))
            generated[:count] = bad[:count]
            yield float(share), real, generated

    def _bad(self, first: Ints, second: Ints, repeat: int) -> tuple[Array, Array]:
        """As many bad samples for the real half as `outliers` asks for, and for every point of the generated one."""
        rng = self._rng("bad", str(repeat))
        if self.bad is not None:
            # The few of the real half come last in the order of the others: no sample is in both sets of `outliers`.
            order = rng.permutation(len(self.bad))
            return self.bad[order[::-1]], self.bad[order]
        centre = self.vectors[first].mean(axis=0, dtype=np.float64)
        both = []
        for rows in (first, second):
            factors = np.maximum(NEAREST, FAR + rng.standard_normal(len(rows)))[:, None]
            both.append((centre + factors * (self.vectors[rows] - centre)).astype(self.vectors.dtype))
        return both[0], both[1]


_SCALED = "; bad samples are clips moved away from the mean ten times as far"


def _codes(given: Any, size: int, what: str) -> Ints:
    """A number for each name; a row without one has a name of its own. Without names all labels are one."""
    if given is None:
        return np.arange(size) if what.startswith("groups") else np.zeros(size, np.int64)
    texts = column_texts(given)
    if len(texts) != size:
        raise InputError(f"There are {counted(size, 'vector')} and {len(texts)} {what}: they must pair up one to one.")
    known: dict[Any, int] = {}
    return np.array([known.setdefault(text if text is not None else row, len(known)) for row, text in enumerate(texts)])
