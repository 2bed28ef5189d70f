"""What readers see: boards, systems, and the scores that count, as columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, and_, delete, exists, func, insert, not_, or_, select, update

from earmark.board.records import System, User, sought
from earmark.board.storage.definitions import blind_by_definition
from earmark.board.storage.tables import (
    CELLS,
    MEASURED,
    blind_sets,
    board_definitions,
    card_changes,
    live,
    measurements,
    meta,
    scores,
    submission_systems,
    submissions,
    systems,
    users,
)
from earmark.databases import Part, in_parts, reading
from earmark.scores import COLUMNS
from earmark.scores import Row as ScoreRow
from earmark.scores.rows import NUMBERS
from earmark.submissions import SystemCard, card_from, combined, plain_card

_GENERATION = "generation"
_NUMBERS = tuple(name for name in CELLS if name in NUMBERS)
_AT_ONCE = 20_000
_Query: TypeAlias = "Select[*tuple[Any, ...]]"
SYSTEMS = select(
    systems.c.id, systems.c.board, systems.c.slug, systems.c.card, users.c.name, users.c.team, systems.c.created
).join(users)


@dataclass(frozen=True, eq=False)
class LiveScores:
    """The scores that count, as columns of equal length, ordered by system. In memory a missing number is NaN.

    `columns` holds lists of texts and arrays of numbers by the name of the score's column. Beside them, `submission_id`
    is the public id of the submission that a score came with, `provenance` and `created` are that submission's.
    Counts are floats too, exact up to 2^53.
    """

    system_id: NDArray[np.int64]
    columns: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.system_id)

    def rows(self, suite: str, names: Mapping[int, str]) -> Iterator[ScoreRow]:
        """The same as rows of the score table; `names` gives the name of each system."""
        texts = [name for name in COLUMNS if name not in (*_NUMBERS, "suite", "system")]
        numbers = {name: self[name].tolist() for name in _NUMBERS}
        for place, system in enumerate(self.system_id.tolist()):
            cells: dict[str, Any] = {name: self[name][place] for name in texts}
            cells |= {name: None if cell[place] != cell[place] else cell[place] for name, cell in numbers.items()}
            yield ScoreRow(suite=suite, system=names[system], **cells)


class Live(Part):
    """The part of the store that says what readers see."""

    def generation(self) -> int:
        """A number that grows whenever readers see something new: an acceptance, a withdrawal of what was accepted."""
        with reading(self.engine) as connection:
            return _generation(connection)

    def boards(self) -> list[str]:
        """The boards on which something was accepted, and those that a host defined, by name."""
        scored = select(systems.c.board).where(systems.c.changed > 0)
        return sorted(name for (name,) in self._rows(scored.union(select(board_definitions.c.board))))

    def systems(self, board: str, changed_since: int = 0) -> list[System]:
        """The systems that ever had an accepted submission and changed after a generation, by age.

        Those whose submissions were all withdrawn are among them: their scores are gone from `live_scores`, and
        their history stays.
        """
        changed = SYSTEMS.where(systems.c.board == sought(board), systems.c.changed > changed_since)
        return [read_system(row) for row in self._rows(changed.order_by(systems.c.id))]

    def systems_of(self, user: User, limit: int = 200) -> list[System]:
        """The systems of a user and their team that readers have seen, the newest first."""
        own = systems.c.owner_id == user.id
        shared = or_(own, and_(users.c.team == user.team, users.c.team != ""))
        newest = SYSTEMS.where(shared, systems.c.changed > 0).order_by(systems.c.id.desc()).limit(limit)
        return [read_system(row) for row in self._rows(newest)]

    def system(self, board: str, slug: str) -> System | None:
        """The system with that slug, once something of it was accepted."""
        named = SYSTEMS.where(systems.c.board == sought(board), systems.c.slug == sought(slug))
        return next((read_system(row) for row in self._rows(named.where(systems.c.changed > 0))), None)

    def live_scores(self, board: str, system_ids: Sequence[int] | None = None) -> LiveScores:
        """The scores that count: for each measurement of a system the newest of an accepted submission."""
        with reading(self.engine) as connection:
            return live_scores(connection, sought(board), system_ids)

    def blind_subsets(self, board: str) -> frozenset[str]:
        """The subsets of a board that only its host can measure: those of the paper, and those that were announced."""
        with reading(self.engine) as connection:
            return blind_names(connection, sought(board))

    def announced_subsets(self) -> dict[str, set[str]]:
        """The subsets that hosts announced as blind, by board."""
        names: dict[str, set[str]] = {}
        for board, subset in self._rows(select(blind_sets.c.board, blind_sets.c.subset)):
            names.setdefault(board, set()).add(subset)
        return names

    def offered_sets(self, board: str) -> frozenset[str]:
        """Those of the blind subsets on which a host measures models now."""
        with reading(self.engine) as connection:
            return offered_names(connection, sought(board))


def read_system(row: Any) -> System:
    number, board, slug, card, owner, team, created = row
    return System(number, board, slug, card_from(json.loads(card)), owner, team, created)


def live_scores(connection: Connection, board: str, system_ids: Sequence[int] | None) -> LiveScores:
    """The scores that count on a board, or of some of its systems, as one transaction sees them."""
    tables = live.join(scores).join(systems, systems.c.id == live.c.system_id)
    keys = (live.c.system_id, live.c.measurement_id)
    query = select(*keys, scores.c.submission_id, *(scores.c[name] for name in CELLS)).select_from(tables)
    query = query.where(systems.c.board == board).order_by(*keys)
    queries = [query]
    if system_ids is not None:
        queries = [query.where(live.c.system_id.in_(sorted(part))) for part in in_parts(system_ids)]
    names = ("system_id", "measurement_id", "sent_with", *CELLS)
    pool: dict[str, str] = {}  # every text once, however many rows repeat it
    texts: dict[str, list[str]] = {name: [] for name in CELLS if name not in _NUMBERS}
    numbers: dict[str, list[NDArray[Any]]] = {name: [] for name in names if name not in texts}
    for part in queries:
        result = connection.execute(part)
        while rows := result.fetchmany(_AT_ONCE):
            for name, cells in zip(names, zip(*rows, strict=True), strict=True):
                if name in numbers:
                    numbers[name].append(np.array(cells, dtype=np.float64 if name in _NUMBERS else np.int64))
                elif name == "inputs":  # hardly two are alike
                    texts[name].extend(cells)
                else:
                    texts[name].extend([pool.setdefault(cell, cell) for cell in cells])
    arrays = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in numbers.items()}
    ids, measured, sent_with = (arrays.pop(name).astype(np.int64) for name in names[:3])
    kinds = select(measurements.c.id, *(measurements.c[name] for name in MEASURED))
    origins = select(
        submissions.c.id, submissions.c.public.label("submission_id"), submissions.c.provenance, submissions.c.created
    )
    few = np.unique(sent_with).tolist()
    if len(few) < 500:
        origins = origins.where(submissions.c.id.in_(few))
    spread = {**_spread(connection, origins, sent_with), **_spread(connection, kinds, measured)}
    return LiveScores(ids, {**spread, **texts, **arrays})


def _spread(connection: Connection, query: _Query, keys: NDArray[np.int64]) -> dict[str, list[Any]]:
    """One list for each column but the first of what the keys, which are in the first, stand for."""
    result = connection.execute(query)
    names = list(result.keys())[1:]
    by_key = {row[0]: row[1:] for row in result}
    rows = [by_key[key] for key in keys.tolist()]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def blind_names(connection: Connection, board: str) -> frozenset[str]:
    """The subsets of a board that only its host can measure, as one transaction sees them."""
    return blind_by_definition(connection, board) | announced_names(connection, board)


def announced_names(connection: Connection, board: str) -> frozenset[str]:
    """Those of them that a host announced, now or earlier."""
    return frozenset(connection.scalars(select(blind_sets.c.subset).where(blind_sets.c.board == board)))


def offered_names(connection: Connection, board: str) -> frozenset[str]:
    """Those of them on which the host measures models now."""
    here = and_(blind_sets.c.board == board, blind_sets.c.offered.is_(True))
    return frozenset(connection.scalars(select(blind_sets.c.subset).where(here)))


def _generation(connection: Connection) -> int:
    return int(connection.execute(select(meta.c.value).where(meta.c.key == _GENERATION)).scalar() or 0)


def grow(connection: Connection) -> int:
    """A new generation: readers see something new."""
    number = _generation(connection) + 1
    changed = connection.execute(update(meta).where(meta.c.key == _GENERATION).values(value=str(number)))
    if not changed.rowcount:
        connection.execute(insert(meta).values(key=_GENERATION, value=str(number)))
    return number


def recount(connection: Connection, submission: int) -> None:
    """Bring what readers see of the systems of a submission up to date, as a new generation."""
    of_submission = select(submission_systems.c.system_id).where(submission_systems.c.submission_id == submission)
    recount_systems(connection, list(connection.scalars(of_submission)))


def recount_systems(connection: Connection, systems_changed: Sequence[int]) -> None:
    """Bring what readers see of some systems up to date, as a new generation."""
    number = grow(connection)
    for ids in in_parts(systems_changed):
        refresh_live(connection, ids)
        for system, card in _accepted_cards(connection, ids).items():
            text = json.dumps(plain_card(card), ensure_ascii=False)
            connection.execute(update(systems).where(systems.c.id == system).values(card=text))
        connection.execute(update(systems).where(systems.c.id.in_(ids)).values(changed=number))


def refresh_live(connection: Connection, ids: Sequence[int]) -> None:
    """Point each measurement of the systems at its newest accepted score, by computing all of them again.

    A self-reported score of a blind subset, which came before it was announced or which an earlier version took, does
    not stand in front of the host's. Systems of users whom the host has hidden have none.
    """
    connection.execute(delete(live).where(live.c.system_id.in_(ids)))
    boards = connection.scalars(select(systems.c.board).where(systems.c.id.in_(ids)).distinct()).all()
    hidden = {board: blind_by_definition(connection, board) for board in boards}
    blind = (
        and_(submissions.c.board == board, measurements.c.subset.in_(names)) for board, names in hidden.items() if names
    )
    announced = exists().where(
        blind_sets.c.board == submissions.c.board, blind_sets.c.subset == measurements.c.subset
    )  # fmt: skip
    claims = and_(submissions.c.provenance == "self-reported", or_(announced, *blind))
    of_hidden_users = select(systems.c.id).join(users).where(users.c.hidden.is_(True))
    newest = (
        select(scores.c.system_id, scores.c.measurement_id, func.max(scores.c.id))
        .join(submissions)
        .join(measurements)
        .where(
            scores.c.system_id.in_(ids), scores.c.system_id.not_in(of_hidden_users), submissions.c.state == "accepted"
        )
        .where(not_(claims))
        .group_by(scores.c.system_id, scores.c.measurement_id)
    )
    connection.execute(insert(live).from_select(["system_id", "measurement_id", "score_id"], newest))


def _accepted_cards(connection: Connection, ids: Sequence[int]) -> dict[int, SystemCard]:
    """What the accepted cards of each system and its corrections say together, in the order in which they came.

    A system without an accepted card keeps the card that it has.
    """
    query = select(submission_systems.c.system_id, submissions.c.created, submission_systems.c.card).join(submissions)
    accepted = query.where(submission_systems.c.system_id.in_(ids), submissions.c.state == "accepted")
    corrected = select(card_changes.c.system_id, card_changes.c.created, card_changes.c.changes).where(
        card_changes.c.system_id.in_(ids), card_changes.c.state == "applied"
    )
    cards: dict[int, SystemCard] = {}
    sent = [(*row, False) for row in connection.execute(accepted.order_by(submissions.c.id))]
    changed = [(*row, True) for row in connection.execute(corrected.order_by(card_changes.c.id))]
    for system, _, text, is_change in sorted([*sent, *changed], key=lambda row: (row[1], row[3])):
        plain = json.loads(text)
        if is_change:
            if system in cards:
                cards[system] = card_from(plain_card(cards[system]) | plain)
        else:
            card = card_from(plain)
            cards[system] = combined([cards[system], card]) if system in cards else card
    return cards
