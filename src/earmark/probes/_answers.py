"""What is asked of a system, and what it answers: sets of judgements with their units, and the answers to each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.errors import UsageError, did_you_mean
from earmark.evaluation.data import digest_of
from earmark.geometry import spaces
from earmark.geometry.listed_pairs import gaps, nearer
from earmark.probes._items import Condition, fulfilling, majority_of, parse_where
from earmark.probes._judgements import Judgements
from earmark.probes._sounds import Sounds
from earmark.wording import counted, first_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNITS = ("judgement", "listener", "anchor", "pair")
_FEW_NAMES = 5


@dataclass(frozen=True, eq=False)
class JudgementSet:
    """Judgements of one protocol, with the unit of each."""

    judgements: Judgements
    protocol: str
    unit: str
    units: Ints
    total: int
    empty: str = ""

    @classmethod
    def of(cls, known: Judgements, conditions: Sequence[Condition], majority: bool, unit: str) -> JudgementSet:
        words = " & ".join(map(str, conditions))
        chosen = known.take(fulfilling(known, conditions)) if conditions else known
        empty = "" if len(chosen) else f"no judgement fulfils {words}"
        if majority and len(chosen):
            chosen = majority_of(chosen)
        protocol = " ".join(filter(None, [known.kind, "majority" if majority else "", words]))
        return cls(chosen, protocol, unit, unit_codes(chosen, unit), len(chosen), empty)


def filters_of(
    where: str | Sequence[str], min_agreement: float | None, min_repeats: int | None
) -> list[tuple[Condition, ...]]:
    filters = [parse_where(text) for text in ([where] if isinstance(where, str) else where)]
    if min_agreement is not None and not 0.0 <= min_agreement <= 1.0:
        raise UsageError(f"min_agreement is a share between 0 and 1, not {min_agreement}.")
    least = [("agreement", min_agreement), ("repeats", min_repeats)]
    repeated = tuple(Condition(name, ">=", f"{value:g}") for name, value in least if value is not None)
    return [*filters, *([repeated] if repeated else [])]


def unit_of(unit: str | None, known: Judgements, majority: bool) -> str:
    if unit is None:
        return _recurring(known) if known.listeners is None or majority else "listener"
    if unit not in UNITS:
        raise UsageError(f"Unknown unit {unit!r}: choose {', '.join(UNITS)}.{did_you_mean(unit, UNITS)}")
    if unit == "listener" and known.listeners is None:
        raise UsageError("The unit listener needs to know who judged: name the column of listeners.")
    if unit == "listener" and majority:
        raise UsageError("The majority of several listeners is nobody's judgement: choose another unit.")
    return unit


def _recurring(known: Judgements) -> str:
    """The unit where nobody says who judged: pairs, else anchors, that several judgements share; else judgements."""
    usable = known.take(known.usable)
    for unit in ("pair", "anchor"):
        count = int(unit_codes(usable, unit).max(initial=-1)) + 1
        if jackknife.LEAST_UNITS <= count < len(usable):
            return unit
    return "judgement"


def unit_codes(judgements: Judgements, unit: str) -> Ints:
    """The number of the unit of each judgement; one of which nobody knows the listener is a unit of its own."""
    if unit == "listener":
        names = judgements.listeners or ()
        keys = np.array([f"\x00alone {row}" if name is None else name for row, name in enumerate(names)])
    elif unit == "anchor":
        keys = judgements.x
    elif unit == "pair":
        low, high = np.minimum(judgements.a, judgements.b), np.maximum(judgements.a, judgements.b)
        keys = low * (len(judgements.sounds) + 1) + high
    else:
        return np.arange(len(judgements))
    return np.asarray(np.unique(keys, return_inverse=True)[1], np.int64).ravel()


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
    return [_answer(sounds, distance, ties, threads, chosen, row_of) for chosen in sets]


def _answer(
    sounds: Sounds, distance: str, ties: spaces.Ties, threads: int, chosen: JudgementSet, row_of: Ints
) -> Answer:
    started = time.perf_counter()
    judgements = chosen.judgements
    x, a, b = (row_of[places] for places in (judgements.x, judgements.a, judgements.b))
    present = (x >= 0) & (a >= 0) & (b >= 0)
    usable = judgements.usable
    rows = np.flatnonzero(usable & present)
    asked = int(usable.sum())
    reasons, remarks = _left_out(sounds, chosen, row_of, usable, len(rows))
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
        tuple(remarks), 2 * len(rows) < asked, digest_of(answers, differences, choices, chosen.units[rows]),
        time.perf_counter() - started,
    )  # fmt: skip


def remarks_of(answers: Sequence[Answer]) -> Iterator[str]:
    """What is missing from all judgements, by name; and of which of their parts most is missing."""
    for place, answer in enumerate(answers):
        yield from (note for note in answer.remarks if place == 0 or note.startswith("WARNING"))


def _left_out(
    sounds: Sounds, chosen: JudgementSet, row_of: Ints, usable: NDArray[np.bool_], kept: int
) -> tuple[list[str], list[str]]:
    """What was left out of a set, for the reason of a row, and by name for the notes."""
    judgements = chosen.judgements
    reasons, remarks = [], []
    undecided = int((judgements.named & (judgements.choices == 0)).sum())
    if undecided:
        reasons.append(f"{counted(undecided, 'judgement')} without a choice left out")
    nameless = int((~judgements.named).sum())
    if nameless:
        reasons.append(f"{counted(nameless, 'judgement')} with an empty name left out")
    asked = int(usable.sum())
    unknown = sum(name is None for name in judgements.listeners or ()) if chosen.unit == "listener" else 0
    if unknown:
        reasons.append(f"{counted(unknown, 'judgement')} of unknown listeners counted as listeners of their own")
    if kept < asked:
        named = np.unique(np.stack([judgements.x, judgements.a, judgements.b])[:, usable])
        missing = [judgements.sounds[place] for place in named if row_of[place] < 0]
        lost = counted(asked - kept, "judgement")
        reasons.append(f"{lost} of {asked} left out for {counted(len(missing), 'missing sound')}")
        remarks.append(
            f"{sounds.name or 'the system'} lacks {len(missing)} of the {counted(len(named), 'sound')} that were judged"
            f": {first_of(missing, _FEW_NAMES)}"
        )
    return reasons, remarks
