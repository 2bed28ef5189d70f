"""One board as arrays in memory, and the keeper of the snapshots of all boards.

A `Snapshot` never changes: pages and API read it without a lock, and everything derived from it (means, ranks, fields)
is made once, when it is first asked for. `Snapshots` swaps a new one in when the store's generation has grown; only
the systems that changed are read again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.ranks import RankIntervals
from earmark.board.boards.codecs import kinds_of, on_same_clips, ranks_by_kind
from earmark.board.boards.groups import BLIND, Group, groups_of
from earmark.board.boards.panels import (
    Columns,
    Line,
    Means,
    Panel,
    build,
    columns_of,
    joined,
    means,
    without_claims,
)
from earmark.board.records import System, slug_of
from earmark.board.refusals import NotFound
from earmark.errors import UsageError, did_you_mean
from earmark.report.metric_text import facts
from earmark.scores import Scores
from earmark.scores.spelling import is_single
from earmark.submissions import Provenance, SystemCard
from earmark.submissions.rules import blind_subsets

if TYPE_CHECKING:
    from earmark.board.storage import Store

Whole = NDArray[np.int64]
Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")

BEST, EACH = "best", "each"
"""Settings that are no single one: each system under its best setting, and a line for each of its settings."""
LEADING_METRICS = ("P@1", "overall", "GSR", "clipped_density", "precision")
LEADING_PROTOCOLS = ("all", "reference")


class NoSuchBoard(NotFound):
    """There is no board of that name."""


class NoSuchSystem(NotFound):
    """There is no system of that name on the board."""


def made_once(
    make: Callable[Concatenate[Snapshot, Arguments], Made],
) -> Callable[Concatenate[Snapshot, Arguments], Made]:
    """A function of a snapshot whose result is made once for each snapshot, and then kept with it."""

    @wraps(make)
    def kept(snapshot: Snapshot, /, *args: Arguments.args, **options: Arguments.kwargs) -> Made:
        return snapshot.once((make.__qualname__, args, *options.items()), lambda: make(snapshot, *args, **options))

    return kept


class Field(NamedTuple):
    """The lines of a table, and how they are ranked: rows of the panel, means, ranks among the lines of each kind."""

    metric: str
    group: Group
    rows: Whole
    means: Means
    ranks: RankIntervals
    kinds: tuple[str, ...]  # `earmark.board.boards.codecs.ORDER`

    @property
    def ranked(self) -> int:
        return int((self.ranks.rank > 0).sum())

    def among(self, place: int) -> int:
        """Among how many lines a line is ranked."""
        return sum(
            kind == self.kinds[place] and rank > 0 for kind, rank in zip(self.kinds, self.ranks.rank, strict=True)
        )

    def rank_at(self, place: int) -> tuple[int, int, int]:
        """The rank of a line and its interval; 0 is none."""
        rank, low, high = (int(part[place]) for part in self.ranks[:3])
        return rank, low, high


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything that pages show of one board. `lines` are in the order of their systems."""

    board: str
    generation: int
    systems: tuple[System, ...]
    lines: tuple[Line, ...]
    panels: Mapping[str, Panel]
    blind: frozenset[str] = frozenset()  # subsets that only the host can measure
    offered: frozenset[str] = frozenset()  # those of them on which a host measures models now
    _made: dict[object, Any] = field(default_factory=dict, repr=False)
    _locks: dict[object, threading.RLock] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of_scores(
        cls, board: str, scores: Scores, cards: Mapping[str, SystemCard] | None = None, *,
        provenance: Provenance = "self-reported", blind: Collection[str] | None = None,
        offered: Collection[str] = (),
    ) -> Snapshot:  # fmt: skip
        """A snapshot of a score table without a store; systems without a card have one with their name.

        `blind` are the subsets that only the host can measure, by default those of the paper; those that are `offered`
        are measured now.
        """
        names: dict[str, str] = {}
        for name in dict.fromkeys(row.system for row in scores):
            names[slug_of(name, names)] = name
        known, made = cards or {}, datetime.now(UTC)
        systems = [
            System(place, board, slug, known.get(name) or SystemCard(name), "", "", made)
            for place, (slug, name) in enumerate(names.items())
        ]
        places = {name: place for place, name in enumerate(names.values())}
        hidden = blind_subsets(board) if blind is None else frozenset(blind)
        return cls.of_columns(board, 0, systems, columns_of(scores, places, provenance), hidden, frozenset(offered))

    @classmethod
    def of_columns(
        cls, board: str, generation: int, systems: Sequence[System], columns: Columns, blind: frozenset[str],
        offered: frozenset[str] = frozenset(),
    ) -> Snapshot:  # fmt: skip
        """A snapshot of columns whose `system` are places in `systems`; self-reported scores of `blind` ones are no
        measurements."""
        lines, panels = build(without_claims(columns, blind))
        return cls(board, generation, tuple(systems), lines, panels, blind, offered)

    def updated(self, generation: int, systems: Sequence[System], columns: Columns) -> Snapshot:
        """The snapshot with some systems (old or new ones) and all their live scores replaced.

        `system` of the columns are places in `systems`. A system that has no live score any more keeps its page, not
        its lines.
        """
        changed = {system.id for system in systems}
        kept = [system for system in self.systems if system.id not in changed]
        everyone = sorted([*kept, *systems], key=lambda system: system.id)
        place = {system.id: number for number, system in enumerate(everyone)}
        stays = np.array([self.systems[line.system].id not in changed for line in self.lines], bool)
        old = [line._replace(system=place[self.systems[line.system].id]) for line in self.lines]
        moved = {**columns, "system": [place[systems[number].id] for number in columns["system"]]}
        fresh_lines, fresh = build(without_claims(moved, self.blind))
        lines = [line for line, stay in zip(old, stays, strict=True) if stay] + list(fresh_lines)
        number = np.cumsum(stays) - 1
        panels: dict[str, Panel] = {}
        for metric, panel in self.panels.items():
            rows = np.flatnonzero(stays[panel.lines])
            if rows.size:
                panels[metric] = panel.take(rows, number[panel.lines[rows]])
        for metric, panel in fresh.items():
            below = replace(panel, lines=panel.lines + int(stays.sum()))
            panels[metric] = joined(panels[metric], below) if metric in panels else below
        return Snapshot(self.board, generation, tuple(everyone), tuple(lines), panels, self.blind, self.offered)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each system by its slug."""
        return {system.slug: place for place, system in enumerate(self.systems)}

    @cached_property
    def lines_of(self) -> dict[int, list[int]]:
        """The lines of each system, by its place; a system without live scores has none."""
        numbers: dict[int, list[int]] = {}
        for number, line in enumerate(self.lines):
            numbers.setdefault(line.system, []).append(number)
        return numbers

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that were tried on single subsets: the leading ones first, then by how many values they have."""
        size = {
            name: int(np.isfinite(panel.shown()).sum())
            for name, panel in self.panels.items()
            if any(is_single(subset) for subset in panel.subsets)
        }
        leading = [name for name in LEADING_METRICS if size.get(name)]
        return (*leading, *sorted((name for name in size if name not in leading), key=lambda name: -size[name]))

    def system(self, slug: str) -> System:
        """The system of that slug, or NoSuchSystem."""
        if slug not in self.places:
            near = did_you_mean(slug, self.places)
            raise NoSuchSystem(f'The board "{self.board}" has no system "{slug}".{near}')
        return self.systems[self.places[slug]]

    def panel(self, metric: str) -> Panel:
        """The panel of a metric, or UsageError. What does not rest on the same clips as others does not count."""
        if metric not in self.panels:
            near = did_you_mean(metric, self.panels)
            raise UsageError(f'The board "{self.board}" has no metric "{metric}".{near}')
        return self._compared_panel(metric)

    @made_once
    def _compared_panel(self, metric: str) -> Panel:
        return on_same_clips(self.panels[metric], self.systems, self.lines, self.panels.get("kbps"))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """What each system is ranked among."""
        return kinds_of(self.systems, self.lines, self.panels.values())

    @made_once
    def groups(self, metric: str) -> tuple[Group, ...]:
        """Over which subsets a metric may be averaged, the leading group first."""
        panel = self.panel(metric)
        # Systems and not lines: one system under twenty distances is one.
        owners = np.array([self.lines[number].system for number in panel.lines.tolist()])
        there = np.isfinite(panel.shown())
        whole = np.array(["@" not in self.lines[number].protocol for number in panel.lines.tolist()], bool)
        whole = whole if there[whole].any() else np.ones(len(whole), bool)
        counts = [len(set(owners[column & whole].tolist())) for column in there.T]
        systems_with = dict(zip(panel.subsets, counts, strict=True))
        aside = [name for name, column in zip(panel.subsets, there.T, strict=True) if column.any() and is_single(name)]
        apart = [name for name in aside if not systems_with[name]]
        return groups_of(self.board, systems_with, metric, apart, self.blind, self.offered)

    def group(self, metric: str, key: str = "") -> Group:
        """A group of a metric by its key; "" is the leading one."""
        groups = self.groups(metric)
        found = next((group for group in groups if group.key == key), None) if key else groups[0]
        if found is None:
            raise UsageError(f'{metric} has no mean over "{key}"; it has {", ".join(group.key for group in groups)}.')
        return found

    def public_group(self, metric: str) -> Group:
        """The mean that every system can have: the leading one, or that beside it where the leading one is blind."""
        groups = self.groups(metric)
        return groups[1] if groups[0].key == BLIND and len(groups) > 1 and not groups[1].single else groups[0]

    def group_beside(self, metric: str, key: str) -> Group:
        """What another metric is averaged over beside a view over `key`: blind subsets where that is, else public."""
        leading = self.groups(metric)[0]
        return leading if leading.key == key == BLIND else self.public_group(metric)

    def subsets(self, metric: str) -> tuple[str, ...]:
        """The single subsets of a metric."""
        return tuple(name for name in self.panel(metric).subsets if is_single(name))

    @made_once
    def settings(self, metric: str) -> tuple[str, ...]:
        """The settings (distance and correction) of a metric, the most common first."""
        return self._most_common(line.setting for line in self._lines(metric))

    @made_once
    def protocols(self, metric: str) -> tuple[str, ...]:
        """The protocols of a metric: `all` and `reference` first, then the most common; what has no value last."""
        names = self._most_common(line.protocol for line in self._lines(metric))
        panel = self.panel(metric)
        there = np.isfinite(panel.shown()).any(axis=1)
        valued = {self.lines[number].protocol for number in panel.lines[there].tolist()}
        return tuple(sorted(names, key=lambda name: (name not in valued, name not in LEADING_PROTOCOLS)))

    def _lines(self, metric: str) -> Iterator[Line]:
        return (self.lines[number] for number in self.panel(metric).lines.tolist())

    @staticmethod
    def _most_common(names: Iterable[str]) -> tuple[str, ...]:
        counts = Counter(names)
        return tuple(sorted(counts, key=lambda name: (-counts[name], name)))

    def once(self, key: object, make: Callable[[], Made]) -> Made:
        """What `make` returns, made once for this snapshot. Other things can be made meanwhile."""
        if key not in self._made:
            with self._lock:
                lock = self._locks.setdefault(key, threading.RLock())
            with lock:
                if key not in self._made:
                    self._made[key] = make()
        made: Made = self._made[key]
        return made

    def prepare(self, metrics: int | None = None) -> None:
        """Make the ranks of the leading metrics, or of all, so that nobody has to wait for them."""
        for metric in self.metrics[:metrics]:
            self.field(metric)

    @made_once
    def means(self, metric: str, group: Group) -> Means:
        """Means over a group of subsets, for every row of the metric's panel."""
        panel = self.panel(metric)
        columns = panel.columns(group.subsets)
        parts = (part[:, columns] for part in (panel.measured(), panel.low, panel.high, panel.lift))
        return means(*parts, harmonic=group.harmonic)

    @made_once
    def means_shown(self, metric: str, group: Group) -> Means:
        """The same with values that lack the clips a system failed on: to be shown, never ranked."""
        panel = self.panel(metric)
        columns = panel.columns(group.subsets)
        parts = (part[:, columns] for part in (panel.shown(), panel.low, panel.high, panel.lift))
        return means(*parts, harmonic=group.harmonic)

    @made_once
    def rows_of_lines(self, metric: str) -> Whole:
        """The row of the metric's panel for each line of the snapshot; -1 where it has none."""
        rows = np.full(len(self.lines), -1, np.int64)
        panel = self.panel(metric)
        rows[panel.lines] = np.arange(len(panel.lines))
        return rows

    def field(self, metric: str, group_key: str = "", protocol: str = "", setting: str = BEST) -> Field:
        """The lines of a table: one protocol; one setting, each, or the best of each system.

        Lines that have only other subsets than the group's belong to it, without a mean and without a rank.
        """
        group = self.group(metric, group_key)
        protocol = protocol or self.protocols(metric)[0]
        if setting == EACH or setting in self.settings(metric):
            # With one setting, "best", "each" and that one are the same lines.
            setting = BEST if len(self.settings(metric)) == 1 and len(self.protocols(metric)) == 1 else setting
        return self._field(metric, group, protocol, setting)

    @made_once
    def _field(self, metric: str, group: Group, protocol: str, setting: str) -> Field:
        panel, of = self.panel(metric), self.means(metric, group)
        better = 1.0 if facts(metric).higher_is_better else -1.0
        single = panel.shown()[:, panel.columns(self.subsets(metric))]
        measured = np.isfinite(single).sum(axis=1)
        # Of systems that have none of the group's subsets, the best setting is that of the public mean.
        beside = self.means(metric, self.public_group(metric))
        goodness = [
            np.where(np.isfinite(each.value), better * each.value, -np.inf) for each in (of, beside)
        ]  # fmt: skip
        order = list(zip(of.have, goodness[0], beside.have, goodness[1], strict=True))
        chosen: dict[object, int] = {}
        for row, number in enumerate(panel.lines.tolist()):
            line = self.lines[number]
            if line.protocol != protocol or not measured[row] or setting not in (BEST, EACH, line.setting):
                continue
            key: object = line.system if setting == BEST else row
            other = chosen.get(key)
            if other is None or order[row] > order[other]:
                chosen[key] = row
        rows = np.array(sorted(chosen.values()), np.int64)
        mine = of.take(rows)
        values = panel.measured()[np.ix_(rows, panel.columns(group.subsets))]
        error = mine.error()
        if group.harmonic:  # whose order is that of the means of -1 / value
            with np.errstate(divide="ignore", invalid="ignore"):
                values, error = np.where(values > 0, -1 / values, np.nan), error / mine.value**2
        kinds = tuple(self.kinds[self.lines[number].system] for number in panel.lines[rows].tolist())
        return Field(metric, group, rows, mine, ranks_by_kind(better * values, error, kinds), kinds)


class Snapshots:
    """The snapshots of all boards of a store, kept up to date. Safe to use from many threads."""

    def __init__(self, store: Store, *, check_every: float = 1.0) -> None:
        self._store = store
        self._check_every = check_every
        self._lock = threading.Lock()
        self._kept: dict[str, Snapshot] = {}
        self._generation = -1
        self._checked = float("-inf")

    @property
    def generation(self) -> int:
        """The generation of the store that is shown."""
        return self._generation

    @property
    def fresh(self) -> bool:
        """Whether the store was asked a moment ago; then `current` and `boards` answer from memory alone."""
        return time.monotonic() - self._checked < self._check_every

    def boards(self) -> tuple[str, ...]:
        """The names of the boards that have a system with live scores, and of those that had one."""
        self._check()
        return tuple(self._kept)

    def current(self, board: str) -> Snapshot:
        """The snapshot of a board, at most `check_every` seconds behind the store. NoSuchBoard if there is none."""
        self._check()
        try:
            return self._kept[board]
        except KeyError:
            near = did_you_mean(board, self._kept)
            raise NoSuchBoard(f'There is no board "{board}".{near}') from None

    def refresh(self) -> None:
        """Read what changed now: after a decision its author sees it on the next page."""
        with self._lock:
            self._read()

    def _check(self) -> None:
        if self.fresh:
            return
        with self._lock:  # one thread reads, the others wait for it
            if not self.fresh:
                self._read()

    def _read(self) -> None:
        now = time.monotonic()
        generation = self._store.generation()
        if generation != self._generation:
            kept = dict(self._kept)
            for board in self._store.boards():
                kept[board] = self._read_board(board, generation, kept.get(board))
                kept[board].prepare(1)  # before anybody sees it
            self._kept = kept
            self._generation = generation
            threading.Thread(target=_prepare, args=(tuple(kept.values()),), name="ranks", daemon=True).start()
        self._checked = now

    def _read_board(self, board: str, generation: int, old: Snapshot | None) -> Snapshot:
        blind, offered = self._store.blind_subsets(board), self._store.offered_sets(board)
        if old is not None and (old.blind, old.offered) != (blind, offered):
            old = None  # a host has announced blind sets: what authors claim of them is read anew
        systems = self._store.systems(board, changed_since=old.generation if old else 0)
        if old is not None and not systems:
            return old
        live = self._store.live_scores(board, [system.id for system in systems] if old else None)
        place = {system.id: number for number, system in enumerate(systems)}
        columns = {**live.columns, "system": [place[number] for number in live.system_id.tolist()]}
        if old is None:
            return Snapshot.of_columns(board, generation, systems, columns, blind, offered)
        return old.updated(generation, systems, columns)


def _prepare(snapshots: Sequence[Snapshot]) -> None:
    for snapshot in snapshots:
        snapshot.prepare()
