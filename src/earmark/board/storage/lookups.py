"""What readers ask for: systems, submissions, and the scores that count, as columns."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, and_, exists, or_, select

from earmark.board import records
from earmark.board.cards import card_from
from earmark.board.refusals import NotFound
from earmark.board.storage.arrivals import CELLS, MEASURED
from earmark.board.storage.tables import (
    Document,
    Event,
    Live,
    Measurement,
    Score,
    Submission,
    SubmissionSystem,
    System,
    User,
)
from earmark.scores import COLUMNS, Scores
from earmark.scores import Row as ScoreRow
from earmark.scores.rows import NUMBERS

_NUMBERS = tuple(name for name in CELLS if name in NUMBERS)
_KEYS = ("system_id", "measurement_id", "sent_with")
_ORIGIN = ("submission_id", "provenance", "created")
_AT_ONCE = 20_000
Floats: TypeAlias = NDArray[np.float64]
Query: TypeAlias = "Select[*tuple[Any, ...]]"


@dataclass(frozen=True, eq=False)
class LiveScores:
    """The scores that count, as columns of equal length, ordered by system. In memory a missing number is NaN.

    `submission_id` is the public id of the submission that a score came with, `provenance` and `created` are that
    submission's. Counts are floats too, exact up to 2^53.
    """

    system_id: NDArray[np.int64]
    submission_id: list[str]
    provenance: list[str]
    created: list[datetime]
    subset: list[str]
    distance: list[str]
    correction: list[str]
    protocol: list[str]
    metric: list[str]
    value: Floats
    low: Floats
    high: Floats
    baseline: Floats
    lift: Floats
    p_value: Floats
    n: Floats
    status: list[str]
    reason: list[str]
    seconds: Floats
    version: list[str]
    inputs: list[str]
    baseline_low: Floats
    baseline_high: Floats
    interval: list[str]
    unit: list[str]
    units: Floats
    comparisons: Floats
    shuffle: list[str]
    baseline_error: Floats
    ablation: list[str]
    aggregate: list[str]
    statistic: list[str]

    def __len__(self) -> int:
        return len(self.submission_id)

    def rows(self, suite: str, systems: dict[int, str]) -> Iterator[ScoreRow]:
        """The same as rows of the score table; `systems` gives the name of each system."""
        texts = [name for name in COLUMNS if name not in (*_NUMBERS, "suite", "system")]
        numbers = {name: getattr(self, name).tolist() for name in _NUMBERS}
        for place, system in enumerate(self.system_id.tolist()):
            cells: dict[str, Any] = {name: getattr(self, name)[place] for name in texts}
            cells |= {name: None if cell[place] != cell[place] else cell[place] for name, cell in numbers.items()}
            yield ScoreRow(suite=suite, system=systems[system], **cells)


# --- systems ---------------------------------------------------------------------------------------------------------


def boards(connection: Connection) -> list[str]:
    seen = select(System.board).where(System.changed > 0).distinct().order_by(System.board)
    return list(connection.scalars(seen))


def systems(connection: Connection, board: str, changed_since: int) -> list[records.System]:
    found = _systems().where(System.board == board, System.changed > changed_since).order_by(System.id)
    return [_system(row) for row in connection.execute(found)]


def system(connection: Connection, board: str, slug: str) -> records.System | None:
    found = _systems().where(System.board == board, System.slug == slug, System.changed > 0)
    row = connection.execute(found).first()
    return _system(row) if row else None


def _systems() -> Query:
    columns = (System.id, System.board, System.slug, System.card, User.name, User.team, System.created)
    return select(*columns).join(User, User.id == System.owner_id)


def _system(row: Sequence[Any]) -> records.System:
    number, board, slug, card, owner, team, created = row
    return records.System(number, board, slug, card_from(json.loads(card)), owner, team, created)


# --- submissions -----------------------------------------------------------------------------------------------------


def submission(connection: Connection, public: str) -> records.Submission | None:
    found = _submissions().where(Submission.public == public)
    return next(iter(_with_systems(connection, connection.execute(found).all())), None)


def submissions(
    connection: Connection,
    *,
    board: str | None,
    owner: str | None,
    state: records.State | None,
    system: str | None,
    limit: int,
    before: str | None,
    was_accepted: bool,
) -> list[records.Submission]:
    found = _submissions()
    if was_accepted:
        once = exists().where(Event.submission == Submission.public, Event.action == "accepted")
        withdrawn = and_(Submission.state == "withdrawn", once)
        found = found.where(or_(Submission.state == "accepted", withdrawn))
    for column, wanted in ((Submission.board, board), (User.name, owner), (Submission.state, state)):
        if wanted is not None:
            found = found.where(column == wanted)
    if system is not None:
        of_system = (
            select(SubmissionSystem.submission_id)
            .join(System, System.id == SubmissionSystem.system_id)
            .where(System.slug == system)
        )
        found = found.where(Submission.id.in_(of_system))
    if before is not None:
        last = connection.execute(select(Submission.id).where(Submission.public == before)).scalar()
        if last is None:
            raise NotFound(f"There is no submission {before[:40]!r} to go on from.")
        found = found.where(Submission.id < last)
    return _with_systems(connection, connection.execute(found.order_by(Submission.id.desc()).limit(limit)).all())


def _submissions() -> Query:
    columns = (
        Submission.id, Submission.public, Submission.board, User.name.label("owner"), Submission.team, Submission.state,
        Submission.provenance, Submission.created, Submission.decided, Submission.decided_by, Submission.reason,
        Submission.rows, Submission.digest, Submission.version, Submission.notes,
    )  # fmt: skip
    return select(*columns).join(User, User.id == Submission.owner_id)


def _with_systems(connection: Connection, rows: Sequence[Sequence[Any]]) -> list[records.Submission]:
    slugs: dict[int, list[str]] = {row[0]: [] for row in rows}
    names: dict[int, list[str]] = {row[0]: [] for row in rows}
    numbers = list(slugs)
    for start in range(0, len(numbers), 500):
        found = connection.execute(
            select(SubmissionSystem.submission_id, System.slug, System.name)
            .join(System, System.id == SubmissionSystem.system_id)
            .where(SubmissionSystem.submission_id.in_(numbers[start : start + 500]))
            .order_by(SubmissionSystem.submission_id, SubmissionSystem.place)
        )
        for number, slug, name in found:
            slugs[number].append(slug)
            names[number].append(name)
    sent: list[records.Submission] = []
    for number, public, board, *said, notes in rows:
        cells: list[Any] = [public, board, tuple(slugs[number]), *said, tuple(json.loads(notes)), tuple(names[number])]
        sent.append(records.Submission(*cells))
    return sent


def document_of(connection: Connection, public: str) -> bytes:
    packed = connection.execute(
        select(Document.packed)
        .join(Submission, Submission.id == Document.submission_id)
        .where(Submission.public == public)
    ).scalar()
    if packed is None:
        raise NotFound(f"There is no submission {public[:40]!r} on this board.")
    return zlib.decompress(packed)


def cards_of(connection: Connection, public: str) -> tuple[records.SystemCard, ...]:
    found = connection.scalars(
        select(SubmissionSystem.card)
        .join(Submission, Submission.id == SubmissionSystem.submission_id)
        .where(Submission.public == public)
        .order_by(SubmissionSystem.place)
    )
    return tuple(card_from(json.loads(card)) for card in found)


# --- scores ----------------------------------------------------------------------------------------------------------


def rows_of(connection: Connection, public: str) -> Scores:
    measured = (Measurement.subset, *(getattr(Measurement, name) for name in MEASURED))
    found = connection.execute(
        select(Submission.board, System.name, *measured, *(getattr(Score, name) for name in CELLS))
        .select_from(Score)
        .join(Submission, Submission.id == Score.submission_id)
        .join(System, System.id == Score.system_id)
        .join(Measurement, Measurement.id == Score.measurement_id)
        .where(Submission.public == public)
        .order_by(Score.id)
    )
    names = ("suite", "system", "subset", *MEASURED, *CELLS)
    rows = tuple(ScoreRow(**dict(zip(names, row, strict=True))) for row in found)
    if not rows and submission(connection, public) is None:
        raise NotFound(f"There is no submission {public[:40]!r} on this board.")
    return Scores(rows)


def live_scores(connection: Connection, board: str, system_ids: Sequence[int] | None) -> LiveScores:
    """The scores that count on a board, or of some of its systems."""
    parts = [list(system_ids[start : start + 500]) for start in range(0, len(system_ids), 500)] if system_ids else []
    wanted = (
        [_live().where(System.board == board)]
        if system_ids is None
        else [_live().where(System.board == board, Live.system_id.in_(sorted(part))) for part in parts]
    )
    pool: dict[str, str] = {}  # every text once, however many rows repeat it
    texts: dict[str, list[str]] = {name: [] for name in CELLS if name not in _NUMBERS}
    numbers: dict[str, list[NDArray[Any]]] = {name: [] for name in (*_KEYS, *_NUMBERS)}
    for query in wanted:
        ordered = query.order_by(Live.system_id, Live.measurement_id)
        found = connection.execute(ordered)
        while rows := found.fetchmany(_AT_ONCE):
            for name, cells in zip((*_KEYS, *CELLS), zip(*rows, strict=True), strict=True):
                if name in _KEYS:
                    numbers[name].append(np.array(cells, dtype=np.int64))
                elif name in _NUMBERS:
                    numbers[name].append(np.array(cells, dtype=np.float64))
                elif name == "inputs":  # hardly two are alike
                    texts[name].extend(cells)
                else:
                    texts[name].extend([pool.setdefault(cell, cell) for cell in cells])
    joined = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in numbers.items()}
    return _as_columns(connection, joined, texts)


def _live() -> Query:
    cells = (getattr(Score, name) for name in CELLS)
    return (
        select(Live.system_id, Live.measurement_id, Score.submission_id, *cells)
        .join(Score, Score.id == Live.score_id)
        .join(System, System.id == Live.system_id)
    )


def _as_columns(connection: Connection, numbers: dict[str, NDArray[Any]], texts: dict[str, list[str]]) -> LiveScores:
    systems, measured, sent = (numbers.pop(name) for name in _KEYS)
    kinds = select(Measurement.id, Measurement.subset, *(getattr(Measurement, name) for name in MEASURED))
    origins = select(Submission.id, Submission.public, Submission.provenance, Submission.created)
    few = np.unique(sent).tolist()
    if len(few) < 500:
        origins = origins.where(Submission.id.in_(few))
    spread = (*_spread(connection, origins, sent, 3), *_spread(connection, kinds, measured, 1 + len(MEASURED)))
    named = dict(zip((*_ORIGIN, "subset", *MEASURED), spread, strict=True))
    columns: dict[str, Any] = {**named, **texts, **numbers}
    return LiveScores(systems.astype(np.int64), **columns)


def _spread(connection: Connection, query: Query, keys: NDArray[Any], width: int) -> list[list[Any]]:
    """One list for each column of what the keys stand for."""
    found = {row[0]: row for row in connection.execute(query)}
    tables = [{key: row[place] for key, row in found.items()} for place in range(1, width + 1)]
    return [[table[key] for key in keys.tolist()] for table in tables]
