"""What another definition would change on a board: who gains a rank, who loses one, and who moves."""

from __future__ import annotations

from typing import NamedTuple

from earmark.board.boards.snapshot import Snapshot
from earmark.definitions import Definition


class RankChange(NamedTuple):
    """A system whose rank in the plain view is another; 0 is none."""

    name: str
    slug: str
    before: int
    after: int


class Outcome(NamedTuple):
    """What would be ranked by, and whose rank changes: those who lose theirs first, then those who gain one."""

    before: str
    after: str
    changes: tuple[RankChange, ...]
    ranked: int

    @property
    def lost(self) -> int:
        return sum(not change.after for change in self.changes)

    @property
    def gained(self) -> int:
        return sum(not change.before for change in self.changes)


def outcome(snapshot: Snapshot, definition: Definition) -> Outcome:
    """What the plain view of the board becomes under a definition."""
    later = snapshot.defined(definition, snapshot.generation)
    before, after = plain_ranks(snapshot), plain_ranks(later)
    cards = {system.slug: system.card for system in snapshot.systems}
    changed = [
        RankChange(cards[slug].title or cards[slug].name, slug, before.get(slug, 0), after.get(slug, 0))
        for slug in dict.fromkeys((*before, *after))
        if before.get(slug, 0) != after.get(slug, 0)
    ]
    changed.sort(key=lambda change: (change.after > 0, change.before > 0, change.after or change.before))
    return Outcome(_ranked_by(snapshot), _ranked_by(later), tuple(changed), sum(map(bool, after.values())))


def plain_ranks(snapshot: Snapshot) -> dict[str, int]:
    """The rank of each system by its slug in the plain view."""
    if not snapshot.metrics:
        return {}
    field = snapshot.field(snapshot.metrics[0])
    slugs = (snapshot.systems[place].slug for place in field.systems.tolist())
    return dict(zip(slugs, field.ranks.rank.tolist(), strict=True))


def _ranked_by(snapshot: Snapshot) -> str:
    if not snapshot.metrics:
        return "nothing yet"
    metric = snapshot.metrics[0]
    return f"{metric}, {snapshot.group(metric).words}"


def not_in_definition(snapshot: Snapshot) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The subsets and the metrics that submissions brought and that are not part of the definition."""
    subsets = dict.fromkeys(name for metric in snapshot.metrics for name in snapshot.subsets(metric))
    own = snapshot.definition
    return (
        tuple(name for name in subsets if name not in own.subset_names and name not in snapshot.blind),
        tuple(metric for metric in snapshot.metrics if not own.has_metric(metric)),
    )
