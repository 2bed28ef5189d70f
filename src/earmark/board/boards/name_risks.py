"""Names and titles that a reader may take for somebody else's: of systems on a board, and of what waits beside them.

    risks = name_risks(store, snapshots, store.submissions(state="pending"))
    risks[submission.id]

What waits is compared with the rest of what waits too: two look-alikes that are decided together are seen together.
Only moderators read that, since nobody else sees what others have sent before it is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from earmark.board.boards.snapshot import NoSuchBoard, Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.board.records import PendingName, Submission
from earmark.errors import quoted
from earmark.submissions import SystemCard
from earmark.submissions.rules import is_routine
from earmark.submissions.texts import lookalike

if TYPE_CHECKING:
    from earmark.board.storage import Store

_PART = 200


class _Other(NamedTuple):
    """A text by which a system is called, its name, whose it is, and as what it waits ("": it is on the board)."""

    text: str
    name: str
    owner: str
    team: str
    submission: str = ""

    def __str__(self) -> str:
        pending = f", pending as {self.submission}" if self.submission else ""
        return f"{quoted(self.text)}: the system {quoted(self.name)} of {self.team or self.owner}{pending}"

    def is_of(self, owner: str, team: str) -> bool:
        return self.owner == owner or bool(team and self.team == team)


_Likenesses = Mapping[str, Sequence[_Other]]
"""What there is, by what it looks like; what is on the board comes before what waits."""


def lookalikes(
    snapshot: Snapshot | None,
    cards: Sequence[SystemCard],
    owner: str,
    team: str = "",
    pending: Iterable[PendingName] = (),
) -> Iterator[str]:
    """Names and titles that a reader may take for those of somebody else's system on the board, or that waits for it.

    `owner` and `team` are those of the cards' author, whose other systems are no look-alikes.
    """
    return _alike(_likenesses(snapshot, pending), ((card.name, card.title) for card in cards), owner, team)


def _likenesses(snapshot: Snapshot | None, pending: Iterable[PendingName]) -> _Likenesses:
    there: dict[str, list[_Other]] = {}
    for system in snapshot.systems if snapshot else ():
        for text in filter(None, (system.card.name, system.card.title)):
            there.setdefault(lookalike(text), []).append(_Other(text, system.card.name, system.owner, system.team))
    for each in pending:
        for text in filter(None, (each.name, each.title)):
            other = _Other(text, each.name, each.owner, each.team, each.submission)
            there.setdefault(lookalike(text), []).append(other)
    return there


def _alike(there: _Likenesses, titled: Iterable[tuple[str, str]], owner: str, team: str) -> Iterator[str]:
    for name, title in titled:
        for word, text in (("name", name), ("title", title)):
            others = there.get(lookalike(text), ()) if text else ()
            like = next((each for each in others if each.name != name and not each.is_of(owner, team)), None)
            if like is not None:
                yield f"The {word} {quoted(text)} looks like {like}."


def name_risks(store: Store, snapshots: Snapshots, sent: Iterable[Submission]) -> dict[str, tuple[str, ...]]:
    """The look-alikes of each pending submission, by its id; those without any, and those decided, are left out."""
    boards: dict[str, tuple[_Likenesses, dict[str, list[tuple[str, str]]]]] = {}
    risks: dict[str, tuple[str, ...]] = {}
    for each in sent:
        if each.state != "pending":
            continue
        if each.board not in boards:
            boards[each.board] = _names_on(store, snapshots, each.board)
        there, titled = boards[each.board]
        if alike := tuple(_alike(there, titled.get(each.id, ()), each.owner, each.team)):
            risks[each.id] = alike
    return risks


def _names_on(store: Store, snapshots: Snapshots, board: str) -> tuple[_Likenesses, dict[str, list[tuple[str, str]]]]:
    """What there is on a board and waits for it, and the names and titles of each submission that waits."""
    pending = store.pending_names(board)
    titled: dict[str, list[tuple[str, str]]] = {}
    for each in pending:
        titled.setdefault(each.submission, []).append((each.name, each.title))
    try:
        return _likenesses(snapshots.current(board), pending), titled
    except NoSuchBoard:
        return _likenesses(None, pending), titled


def remarks_of(submission: Submission, risks: Sequence[str] = ()) -> list[str]:
    """What is worth knowing before a decision: the names first, then what the rules noted, without its routine."""
    return list(dict.fromkeys([*risks, *(note for note in submission.notes if not is_routine(note))]))


def remarked_submissions(
    store: Store, snapshots: Snapshots, *, limit: int, before: str | None = None, **wanted: Any
) -> list[Submission]:
    """The newest submissions with remarks, as `Store.submissions` lists them otherwise."""
    remarked: list[Submission] = []
    while len(remarked) < limit and (part := store.submissions(limit=_PART, before=before, **wanted)):
        risks = name_risks(store, snapshots, part)
        remarked += [each for each in part if remarks_of(each, risks.get(each.id, ()))]
        before = part[-1].id
    return remarked[:limit]
