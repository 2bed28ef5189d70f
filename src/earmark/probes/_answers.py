"""What is asked of a system, and what it answers: sets of judgements with their units, and the answers to each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.evaluation.data import digest_of
from earmark.geometry import spaces
from earmark.geometry.listed_pairs import gaps, nearer
from earmark.probes._items import Condition, fulfilling, majority_of, parse_where
from earmark.probes._judgements import Judgements
from earmark.probes._sounds import Sounds
from earmark.probes._units import Units, kinds_of, unit_codes, with_listener
from earmark.wording import counted, first_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEW_NAMES = 5


@dataclass(frozen=True, eq=False)
class JudgementSet:
    """Judgements of one protocol, with the unit of each."""

    judgements: Judgements
    protocol: str
    unit: str
    codes: tuple[Ints, ...]
    scope: str = ""
    unknown: int = 0
    empty: str = ""

    @classmethod
    def of(
        cls, known: Judgements, conditions: Sequence[Condition], majority: bool, unit: str, scope: str = ""
    ) -> JudgementSet:
        """The judgements that fulfil the conditions; of known listeners alone, where these are the unit."""
        words = " & ".join(map(str, conditions))
        chosen = known.take(fulfilling(known, conditions)) if conditions else known
        empty = "" if len(chosen) else f"no judgement fulfils {words}"
        unknown = 0
        if "listener" in kinds_of(unit):
            there = with_listener(chosen)
            unknown, chosen = int((chosen.usable & ~there).sum()), chosen.take(there)
            empty = empty or ("" if len(chosen) else "nobody knows who judged")
        if majority and len(chosen):
            chosen = majority_of(chosen)
        protocol = " ".join(filter(None, [known.kind, "majority" if majority else "", words]))
        codes = tuple(unit_codes(chosen, kind) for kind in kinds_of(unit))
        return cls(chosen, protocol, unit, codes, scope, unknown, empty)

    def units(self, rows: Ints) -> Units:
        """The units of some of the judgements."""
        return Units.of(kinds_of(self.unit), [codes[rows] for codes in self.codes])


def filters_of(
    where: str | Sequence[str], min_agreement: float | None, min_repeats: int | None
) -> list[tuple[Condition, ...]]:
    filters = [parse_where(text) for text in ([where] if isinstance(where, str) else where)]
    if min_agreement is not None and not 0.0 <= min_agreement <= 1.0:
        raise UsageError(f"min_agreement is a share between 0 and 1, not {min_agreement}.")
    least = [("agreement", min_agreement), ("repeats", min_repeats)]
    repeated = tuple(Condition(name, ">=", f"{value:g}") for name, value in least if value is not None)
    return [*filters, *([repeated] if repeated else [])]


# --- what a system answers --------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """A system's answers to the judgements of one set.

    `rows` are the judgements that it can answer, `differences` d(X, A) - d(X, B) of each, `hits` which it agrees with.
    """

    system: str
    distance: str
    rows: Ints
    differences: Floats
    hits: NDArray[np.bool_]
    all_tied: bool
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]
    incomplete: bool
    digest: str
    seconds: float


def answers_of(
    sounds: Sounds, distance: str, ties: spaces.Ties, threads: int, sets: Sequence[JudgementSet]
) -> list[Answer]:
    """The answers of one system under one distance to every set of judgements."""
    names = sets[0].judgements.sounds
    row_of = np.append(sounds.rows(names), -1)  # the last one for a cell without a name
    answers = [_answer(sounds, distance, ties, threads, chosen, row_of) for chosen in sets]
    answers[0] = answers[0]._replace(remarks=(*answers[0].remarks, *_named_twice(sounds, names, row_of)))
    return answers


def _named_twice(sounds: Sounds, names: Sequence[str], row_of: Ints) -> list[str]:
    """A remark where two names that were judged are those of one row."""
    found: dict[int, list[str]] = {}
    for name, row in zip(names, row_of, strict=False):
        found.setdefault(int(row), []).append(name)
    double = [f"{' and '.join(of)} are both {sounds.ids[row]}" for row, of in found.items() if row >= 0 and len(of) > 1]
    if not double:
        return []
    of_system = sounds.name or "the system"
    return [f"{of_system}: {counted(len(double), 'sound')} judged under several names: {first_of(double, _FEW_NAMES)}"]


def _answer(
    sounds: Sounds, distance: str, ties: spaces.Ties, threads: int, chosen: JudgementSet, row_of: Ints
) -> Answer:
    started = time.perf_counter()
    judgements = chosen.judgements
    x, a, b = (row_of[places] for places in (judgements.x, judgements.a, judgements.b))
    present = (x >= 0) & (a >= 0) & (b >= 0)
    usable = judgements.usable
    itself = present & ((x == a) | (x == b) | (a == b))  # two names may be those of one row
    rows = np.flatnonzero(usable & present & ~itself)
    asked = int(usable.sum())
    reasons, remarks = _left_out(sounds, chosen, row_of, usable & ~present, judgements.with_itself | itself)
    notes: list[str] = []
    to_a = to_b = np.empty(0)
    if len(rows):
        to_a, to_b, notes = sounds.distances(distance, (x[rows], a[rows], b[rows]), ties=ties, threads=threads)
        known = np.isfinite(to_a) & np.isfinite(to_b)
        if not known.all():
            reasons.append(f"{counted(int((~known).sum()), 'judgement')} left out for a missing distance")
            rows, to_a, to_b = rows[known], to_a[known], to_b[known]
    if 2 * len(rows) < asked:
        remarks.append(
            f"WARNING: {sounds.name or 'the system'} can answer only {len(rows)} of {asked} judgements of "
            f"{chosen.protocol}: its values say little about the others"
        )
    choices, answers, differences = judgements.choices[rows], nearer(to_a, to_b), gaps(to_a, to_b)
    tied = int((answers == 0).sum())
    if tied and tied < len(rows):
        reasons.append(f"{counted(tied, 'tie')} count{'s' if tied == 1 else ''} as no agreement")
    return Answer(
        sounds.name, distance, rows, differences, answers == choices, tied == len(rows), (*reasons, *notes),
        tuple(remarks), 2 * len(rows) < asked, digest_of(answers, differences, choices, *chosen.units(rows).codes),
        time.perf_counter() - started,
    )  # fmt: skip


def remarks_of(answers: Sequence[Answer]) -> Iterator[str]:
    """What is missing from all judgements, by name; and of which of their parts most is missing."""
    for place, answer in enumerate(answers):
        yield from (note for note in answer.remarks if place == 0 or note.startswith("WARNING"))


def _left_out(
    sounds: Sounds, chosen: JudgementSet, row_of: Ints, lost: NDArray[np.bool_], itself: NDArray[np.bool_]
) -> tuple[list[str], list[str]]:
    """What was left out of a set, for the reason of a row, and by name for the notes."""
    judgements = chosen.judgements
    reasons, remarks = [], []
    if chosen.unknown:
        reasons.append(f"{counted(chosen.unknown, 'judgement')} of unknown listeners left out")
    undecided = int((judgements.named & (judgements.choices == 0) & ~itself).sum())
    if undecided:
        reasons.append(f"{counted(undecided, 'judgement')} without a choice left out")
    nameless = int((~judgements.named).sum())
    if nameless:
        reasons.append(f"{counted(nameless, 'judgement')} with an empty name left out")
    alike = int(itself.sum())
    if alike:
        compare = "compares" if alike == 1 else "compare"
        reasons.append(f"{counted(alike, 'judgement')} left out that {compare} a sound with itself")
    if lost.any():
        asked = judgements.usable
        named = np.unique(np.stack([judgements.x, judgements.a, judgements.b])[:, asked])
        missing = [judgements.sounds[place] for place in named if row_of[place] < 0]
        left_out = f"{counted(int(lost.sum()), 'judgement')} of {int(asked.sum())} left out"
        reasons.append(f"{left_out} for {counted(len(missing), 'missing sound')}")
        remarks.append(
            f"{sounds.name or 'the system'} lacks {len(missing)} of the {counted(len(named), 'sound')} that were judged"
            f": {first_of(missing, _FEW_NAMES)}"
        )
    return reasons, remarks
