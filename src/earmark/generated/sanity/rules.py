"""Which tests each check puts to a fidelity and to a coverage metric: 14 of purpose, 13 of bounds, 3 others.

Two editions: the benchmark as first published (`original`), and as amended by the GICDM paper, which is the default:

- Standard deviation: d = 8 is left out, and d = 64 is judged like the sphere, for a Gaussian in many dimensions is one.
- Mode invention, coverage: a fall while modes are invented is a reading of its own (L), and no value is asked where
  most modes are invented.

(Räisä et al. 2025; Salvy et al. 2026, appendix D)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from earmark.generated.sanity import _criteria as criteria
from earmark.generated.sanity._criteria import Criterion
from earmark.generated.sanity._data import CHECKS

Kind = Literal["fidelity", "coverage"]
Edition = Literal["amended", "original"]
Desideratum = Literal["Purpose", "Hyperparam.", "Data", "Bounds", "Invariance"]

GROUPS: dict[str, tuple[Desideratum, ...]] = {
    "Purpose": ("Purpose",),
    "Bounds": ("Bounds",),
    "Other": ("Hyperparam.", "Data", "Invariance"),
}

_BELL_CHECKS = {"mean": 0.0, "mean_outlier": 0.0, "mean_pareto": 0.0, "sphere": 1.0}


class Line(NamedTuple):
    """One test of one sub-case."""

    subcase: str
    test: Criterion


class CellName(NamedTuple):
    """The desideratum and the check that name a cell of the table."""

    desideratum: Desideratum
    check: str


def cells(kind: Kind, edition: Edition = "amended") -> dict[CellName, list[Line]]:
    """Every cell of a metric's column, in the order of the published tables, with the lines that decide it."""
    order: tuple[Desideratum, ...] = ("Purpose", "Hyperparam.", "Data", "Bounds", "Invariance")
    found = {}
    for desideratum in order:
        for check in sorted(CHECKS.values(), key=lambda item: item.title):
            lines = list(_lines(desideratum, check.name, kind, edition))
            if lines:
                found[CellName(desideratum, check.name)] = lines
    return found


def subcases(check: str, edition: Edition = "amended") -> list[str]:
    """The sub-cases of a check that any test looks at."""
    names = [case.name for case in CHECKS[check].subcases]
    return [name for name in names if not (check == "std" and edition == "amended" and name == "d=8")]


def _lines(desideratum: Desideratum, check: str, kind: Kind, edition: Edition) -> Iterator[Line]:
    for subcase in subcases(check, edition):
        for test in _tests(desideratum, check, subcase, kind, edition):
            yield Line(subcase, test)


def _tests(desideratum: Desideratum, check: str, subcase: str, kind: Kind, edition: Edition) -> list[Criterion]:
    if desideratum == "Purpose":
        return _purpose(check, subcase, kind, edition)
    if desideratum == "Bounds":
        return _bounds(check, subcase, kind, edition)
    others = {
        ("Hyperparam.", "cube_generated_size"): criteria.SETTLE,
        ("Data", "cube_size"): criteria.SETTLE,
        ("Invariance", "scaling"): criteria.FLAT,
    }
    return [others[desideratum, check]] if (desideratum, check) in others else []


def _purpose(check: str, subcase: str, kind: Kind, edition: Edition) -> list[Criterion]:
    fidelity = kind == "fidelity"
    if check in _BELL_CHECKS:
        return [criteria.bell(_BELL_CHECKS[check])]
    if check == "std":
        if edition == "amended" and subcase == "d=64":
            return [criteria.bell(1.0)]
        return [criteria.DOWN if fidelity else criteria.bell_or_up(1.0)]
    if check == "invention" and not fidelity:
        return [criteria.bell_or_up(5.0) if edition == "amended" else criteria.UP]
    return {
        "mode_collapse": [criteria.DOWN if fidelity else criteria.DOWN_OR_FLAT],
        "modes_one_by_one": [criteria.FLAT if fidelity else criteria.down_from(0.5)],
        "modes_together": [criteria.FLAT if fidelity else criteria.down_from(0.95)],
        "invention": [criteria.DOWN],
        "one_disjoint": [criteria.FLAT],
        "discrete": [criteria.FLAT],
        "torus": [criteria.SETTLE],
        "cube_size": [criteria.near_at_end(0.2)],
        "cube_generated_size": [criteria.near_at_end(0.2)],
    }.get(check, [])


def _bounds(check: str, subcase: str, kind: Kind, edition: Edition) -> list[Criterion]:
    fidelity = kind == "fidelity"
    zero_ends = [criteria.ZERO_LEFT, criteria.ZERO_RIGHT]
    if check in _BELL_CHECKS:
        return [criteria.one_at(_BELL_CHECKS[check]), *zero_ends]
    if check == "std":
        if edition == "amended" and subcase == "d=64":
            return [criteria.one_at(1.0), *zero_ends]
        ends = [criteria.ONE_LEFT, criteria.ZERO_RIGHT] if fidelity else [criteria.ZERO_LEFT, criteria.WIDE_RIGHT]
        return [criteria.one_at(1.0), *ends]
    if check == "discrete":
        if subcase == "real rounded":
            return zero_ends if fidelity else [criteria.WIDE_LEFT, criteria.WIDE_RIGHT]
        return [criteria.ONE_LEFT, criteria.ONE_RIGHT] if fidelity else zero_ends
    if check == "invention":
        if fidelity:
            return [criteria.one_at(5.0), criteria.ONE_LEFT]
        return [criteria.one_at(5.0)] if edition == "amended" else [criteria.one_at(5.0), criteria.ONE_RIGHT]
    return {
        "mode_collapse": [criteria.ONE_LEFT],
        "modes_one_by_one": [criteria.ONE_LEFT, criteria.ONE_RIGHT] if fidelity else [criteria.ONE_LEFT],
        "modes_together": [criteria.ONE_LEFT, criteria.ONE_RIGHT] if fidelity else [criteria.ONE_LEFT],
        "one_disjoint": zero_ends,
        "scaling": zero_ends,
        "torus": [criteria.ZERO_RIGHT],
    }.get(check, [])
