"""What a board would show if a submission were accepted: its ranks, its rows beside those that count now, its risks.

    seen = outlook(snapshot, rows, cards, live, owner="ada")
    seen.standings[0].after.rank

Moderators look at it before they decide, and authors before they send a draft. The board itself is not touched: a
snapshot never changes, and `Snapshot.updated` makes another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from earmark.board.boards.field import Field
from earmark.board.boards.name_risks import lookalikes
from earmark.board.boards.panels import columns_of
from earmark.board.boards.snapshot import NoSuchBoard, Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.board.records import PendingName, Submission, System, User, slug_of
from earmark.codecs.ranking import TITLES, kind_of, standing_of, why_apart
from earmark.definitions import paper_boards
from earmark.errors import quoted
from earmark.report.metric_text import facts
from earmark.scores import Row, Scores
from earmark.scores.spelling import is_single
from earmark.submissions import Document, Provenance, SystemCard
from earmark.wording import counted, first_of

if TYPE_CHECKING:
    from earmark.board.storage import Store

MOST_ROWS = 20_000
"""Longer documents are not tried out: their ranks are seen when they are accepted."""
_MANY_SETTINGS = 10
_NAMED = 5
_MOST_SYSTEMS = 20


class LiveRow(NamedTuple):
    """A row that counts now, where it comes from and when it was sent."""

    row: Row
    provenance: str
    created: datetime


class Place(NamedTuple):
    """Where a system stands: its rank (0: none) with its interval, among how many, and its mean."""

    rank: int
    low: int
    high: int
    among: int
    mean: float | None


class Standing(NamedTuple):
    """A system under a metric, before and after; `best` is the name of what leads now, and its mean."""

    system: str
    metric: str
    over: str
    before: Place | None
    after: Place | None
    best: str
    best_mean: float | None


class Moved(NamedTuple):
    """A system of somebody else whose rank changes."""

    system: str
    metric: str
    before: int
    after: int


class RowChange(NamedTuple):
    """A row beside the one that counts now (None: nothing does) and the best of the board on the same subset."""

    row: Row
    old: float | None
    old_provenance: str
    best: float | None
    best_system: str
    counts: bool  # False: a newer accepted row of the same measurement stays in front of it
    higher_is_better: bool = True

    @property
    def difference(self) -> float | None:
        return None if self.old is None or self.row.value is None else self.row.value - self.old

    @property
    def leads(self) -> bool:
        """Whether it would be better than everything that the board has there."""
        if self.row.value is None or self.best is None or self.row.status != "ok":
            return False
        return self.row.value > self.best if self.higher_is_better else self.row.value < self.best


class Tried(NamedTuple):
    """How many settings (distance and correction) a system has results of, now and then."""

    system: str
    before: int
    after: int


class CodecCheck(NamedTuple):
    """What a codec's results rest on; `why` says what speaks against ranking it with the others."""

    system: str
    title: str
    isolation: str
    check: str
    why: str


@dataclass(frozen=True)
class Outlook:
    """What would be, the risks first."""

    warnings: tuple[str, ...] = ()
    standings: tuple[Standing, ...] = ()
    moved: tuple[Moved, ...] = ()
    rows: tuple[RowChange, ...] = ()
    tried: tuple[Tried, ...] = ()
    codecs: tuple[CodecCheck, ...] = ()


def outlook(
    snapshot: Snapshot | None,
    rows: Sequence[Row],
    cards: Sequence[SystemCard],
    live: Sequence[LiveRow] = (),
    *,
    owner: str,
    team: str = "",
    provenance: Provenance = "self-reported",
    sent: datetime | None = None,
    pending: Sequence[PendingName] = (),
) -> Outlook:
    """What a board (None: there is none yet) shows when some rows are accepted.

    `live` are the rows of the same systems that count now; one that was `sent` later stays in front. `owner` and `team`
    are those of the author, whose other systems are no look-alikes; `pending` are the names that wait beside these.
    """
    codecs = tuple(_codecs(cards))
    alike = lookalikes(snapshot, cards, owner, team, pending)
    risks = [*_claims(rows, provenance, snapshot), *alike, *_codec_warnings(codecs)]
    if len(rows) > MOST_ROWS:
        risks.append(f"{len(rows):,} rows are too many to try out: ranks are shown for at most {MOST_ROWS:,}.")
        return Outlook(tuple(risks), codecs=codecs)
    current = {each.row.key: each for each in live}
    newer = {key for key, each in current.items() if sent is not None and each.created > sent}
    replaced = {row.key for row in rows} - newer
    kept = [each for each in live if each.row.key not in replaced]
    kept += [LiveRow(row, provenance, sent or _now()) for row in rows if row.key in replaced]
    after = _accepted(snapshot, kept, cards)
    tried = tuple(_tried(live, kept))
    standings, moved = _ranks(snapshot, after, rows)
    risks += [*_outside(rows, snapshot), *_many_settings(tried)]
    return Outlook(
        tuple(risks), tuple(standings), tuple(moved), tuple(_row_changes(snapshot, rows, current, newer)), tried, codecs
    )


def outlook_of_submission(
    store: Store, snapshots: Snapshots, submission: Submission, *, for_moderator: bool = True
) -> Outlook:
    """What the board would show if this submission were accepted; a moderator sees what waits beside it too."""
    rows, cards = store.rows_of(submission.id).rows, store.cards_of(submission.id)
    snapshot, live = _standing_now(store, snapshots, submission.board, cards)
    seen = outlook(
        snapshot, rows, cards, live, owner=submission.owner, team=submission.team,
        provenance=submission.provenance, sent=submission.created,
        pending=store.pending_names(submission.board) if for_moderator else (),
    )  # fmt: skip
    owner = store.user(submission.owner)
    if not for_moderator or owner is None or owner.banned is None:
        return seen
    return replace(seen, warnings=(f"Its author, {owner.name}, was banned after it was sent.", *seen.warnings))


def outlook_of_document(store: Store, snapshots: Snapshots, document: Document, user: User) -> Outlook:
    """What the board would show if the user sent this document and it were accepted."""
    snapshot, live = _standing_now(store, snapshots, document.board, document.cards)
    return outlook(
        snapshot, document.scores.rows, document.cards, live, owner=user.name, team=user.team,
        provenance=document.provenance,
    )  # fmt: skip


def _standing_now(
    store: Store, snapshots: Snapshots, board: str, cards: Sequence[SystemCard]
) -> tuple[Snapshot | None, list[LiveRow]]:
    """The board as it is, if there is one, and the rows of some of its systems that count."""
    try:
        snapshot = snapshots.current(board)
    except NoSuchBoard:
        return None, []
    names = {card.name for card in cards}
    known = {system.id: system.card.name for system in snapshot.systems if system.card.name in names}
    scores = store.live_scores(board, sorted(known))
    rows = zip(scores.rows(board, known), scores["provenance"], scores["created"], strict=True)
    return snapshot, [LiveRow(*each) for each in rows]


def _now() -> datetime:
    return datetime.now(UTC)


def _accepted(snapshot: Snapshot | None, kept: Sequence[LiveRow], cards: Sequence[SystemCard]) -> Snapshot:
    """The board with these rows in the place of all that its systems have."""
    board = kept[0].row.suite
    there = {system.card.name: system for system in snapshot.systems} if snapshot else {}
    slugs = {system.slug for system in there.values()}
    number = max((system.id for system in there.values()), default=0)
    described = {card.name: card for card in cards}
    systems: list[System] = []
    for name in dict.fromkeys(each.row.system for each in kept):
        if name in there:
            systems.append(there[name])
            continue
        number += 1
        slug = slug_of(name, slugs)
        slugs.add(slug)
        systems.append(System(number, board, slug, described.get(name) or SystemCard(name), "", "", _now()))
    places = {system.card.name: place for place, system in enumerate(systems)}
    columns: dict[str, Any] = dict(columns_of(Scores(tuple(each.row for each in kept)), places))
    columns["provenance"] = [each.provenance for each in kept]
    if snapshot is None:
        known = paper_boards().get(board)
        return Snapshot.of_columns(board, 0, systems, columns, known.blind if known else frozenset(), definition=known)
    return snapshot.updated(snapshot.generation + 1, systems, columns)


# --- ranks -----------------------------------------------------------------------------------------------------------


def _ranks(before: Snapshot | None, after: Snapshot, rows: Sequence[Row]) -> tuple[list[Standing], list[Moved]]:
    own = list(dict.fromkeys(row.system for row in rows))[:_MOST_SYSTEMS]
    mine = {row.system for row in rows}
    standings: list[Standing] = []
    moved: list[Moved] = []
    measured = {row.metric for row in rows}
    for metric in (name for name in after.metrics if name in measured):
        places, over = _places(after, metric)
        old, _ = _places(before, metric)
        ranked = sorted((place.rank, name) for name, place in old.items() if place.rank)
        best = ranked[0][1] if ranked else ""
        best_mean = old[best].mean if best else None
        standings += [
            Standing(name, metric, over, old.get(name), places.get(name), best, best_mean)
            for name in own
            if name in places or name in old
        ]
        others = ((name, place.rank, places[name].rank) for name, place in old.items() if name in places)
        moved += [Moved(name, metric, was, will) for name, was, will in others if name not in mine and was != will]
    return standings, moved


def _places(snapshot: Snapshot | None, metric: str) -> tuple[dict[str, Place], str]:
    """Where each system stands in the plain view of a metric, and what the mean is over."""
    if snapshot is None or metric not in snapshot.metrics:
        return {}, ""
    field = snapshot.field(metric)
    owners = [snapshot.systems[place].card.name for place in field.systems.tolist()]
    return {name: _place(field, at) for at, name in enumerate(owners)}, field.group.title


def _place(field: Field, at: int) -> Place:
    rank, low, high = field.rank_at(at)[:3]
    mean = float(field.means.value[at])
    return Place(rank, low, high, int(field.among(at)), mean if np.isfinite(mean) else None)


# --- rows ------------------------------------------------------------------------------------------------------------


def _row_changes(
    snapshot: Snapshot | None, rows: Sequence[Row], current: Mapping[Any, LiveRow], newer: set[Any]
) -> Iterator[RowChange]:
    best_of: dict[tuple[str, str, str], tuple[float | None, str]] = {}
    for row in rows:
        where = (row.metric, row.protocol, row.subset)
        if where not in best_of:
            best_of[where] = _best(snapshot, *where)
        old = current.get(row.key)
        higher = (snapshot.definition.facts(row.metric) if snapshot else facts(row.metric)).higher_is_better
        before = (old.row.value, old.provenance) if old else (None, "")
        yield RowChange(row, *before, *best_of[where], row.key not in newer, higher)


def _best(snapshot: Snapshot | None, metric: str, protocol: str, subset: str) -> tuple[float | None, str]:
    """The best measured value of the board on a subset under a protocol, and whose it is."""
    if snapshot is None or metric not in snapshot.panels or subset not in snapshot.panel(metric).subsets:
        return None, ""
    panel = snapshot.panel(metric)
    values = panel.measured()[:, panel.columns([subset])[0]]
    here = [snapshot.lines[number].protocol == protocol for number in panel.lines.tolist()]
    places = np.flatnonzero(np.isfinite(values) & np.array(here, bool))
    if not places.size:
        return None, ""
    turn = 1.0 if snapshot.definition.facts(metric).higher_is_better else -1.0
    at = int(places[np.argmax(turn * values[places])])
    return float(values[at]), snapshot.systems[snapshot.lines[panel.lines[at]].system].card.name


# --- risks -----------------------------------------------------------------------------------------------------------


def _setting(row: Row) -> tuple[str, str]:
    return row.distance, row.correction


def _tried(live: Sequence[LiveRow], kept: Sequence[LiveRow]) -> Iterator[Tried]:
    def settings(rows: Sequence[LiveRow], name: str) -> int:
        return len({_setting(each.row) for each in rows if each.row.system == name})

    names = list(dict.fromkeys(each.row.system for each in kept))[:_MOST_SYSTEMS]
    return (Tried(name, settings(live, name), settings(kept, name)) for name in names)


def _many_settings(tried: Sequence[Tried]) -> Iterator[str]:
    for each in tried:
        if each.after > max(_MANY_SETTINGS, each.before):
            yield (
                f"{quoted(each.system)} would have results of {each.after} settings (distance and correction): the "
                "best of many is high by chance."
            )


def _claims(rows: Sequence[Row], provenance: str, snapshot: Snapshot | None) -> Iterator[str]:
    known = paper_boards().get(rows[0].suite) if rows else None
    blind = snapshot.blind if snapshot else known.blind if known else frozenset()
    claimed = sorted({row.subset for row in rows if row.subset in blind and row.status == "ok"})
    if claimed and provenance == "self-reported":
        names = first_of(claimed, _NAMED)
        yield f"It reports {names} itself, which only the host can measure: it cannot be accepted as self-reported."


def _outside(rows: Sequence[Row], snapshot: Snapshot | None) -> Iterator[str]:
    """Rows on subsets and of metrics that the definition of the board does not name: shown, and never ranked."""
    if snapshot is None:
        return
    subsets, metrics = snapshot.definition.subset_names, {metric.name for metric in snapshot.definition.metrics}
    unknown = [row for row in rows if is_single(row.subset) and row.subset not in subsets]
    if unknown and subsets:
        names = first_of(list(dict.fromkeys(quoted(row.subset) for row in unknown)), _NAMED)
        yield f"{counted(len(unknown), 'row')} on subsets that the board does not name: {names}."
    foreign = [row for row in rows if row.metric not in metrics]
    if foreign and metrics:
        names = first_of(list(dict.fromkeys(row.metric for row in foreign)), _NAMED)
        yield f"{counted(len(foreign), 'row')} of metrics that the board does not name: {names}."


def _codecs(cards: Sequence[SystemCard]) -> Iterator[CodecCheck]:
    for card in cards:
        if card.kind == "codec":
            standing = standing_of(card.details)
            isolation = f"{standing.isolation}: {standing.isolation_reason}".rstrip(": ")
            isolation += ", stated by the author" if standing.isolation == "full" else ""
            check = f"{standing.check}: {standing.check_reason}".rstrip(": ")
            yield CodecCheck(card.name, TITLES[kind_of(standing)], isolation, check, why_apart(standing))


def _codec_warnings(codecs: Sequence[CodecCheck]) -> Iterator[str]:
    return (f"{quoted(codec.system)}: {codec.why}." for codec in codecs if codec.why)
