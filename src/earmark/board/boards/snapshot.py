"""One board as arrays in memory.

A `Snapshot` never changes: pages and API read it without a lock, and everything derived from it (means, ranks, fields)
is made once, when it is first asked for.
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
from earmark.board.boards.best import Best, Strata, best_of_each
from earmark.board.boards.chosen import chosen_group, chosen_key, chosen_names, is_chosen
from earmark.board.boards.codecs import ORDER, kinds_of, on_same_clips, ranks_by_kind
from earmark.board.boards.groups import Group, groups_of
from earmark.board.boards.panels import (
    Columns,
    Line,
    Means,
    Panel,
    build,
    columns_of,
    joined,
    means,
    measured_in,
    without_claims,
)
from earmark.board.records import System, slug_of
from earmark.board.refusals import NotFound
from earmark.definitions import BLIND, Definition, derived_definition, paper_boards
from earmark.definitions.derived import in_order
from earmark.definitions.settings import is_correction, is_distance, preference
from earmark.errors import UsageError, did_you_mean
from earmark.scores import Scores
from earmark.scores.spelling import is_single
from earmark.submissions import Provenance, SystemCard
from earmark.wording import first_of

if TYPE_CHECKING:
    pass

Whole = NDArray[np.int64]
Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")

BEST, EACH = "best", "each"
"""Settings that are no single one: each system under its best setting, and a line for each of its settings."""
LEADING_PROTOCOLS = ("all", "reference")
SHOWN_ASIDE = "shown for comparison: the host ranks it nowhere"
"""Why a system that the definition names among its baselines has no rank."""
_FEW = 8  # states of tables whose lines are kept
_NAMED = 30  # means in a message
_PASSING = 128
"""How much of what was made for means of readers' own choice is kept: there are more choices than memory holds."""


_PREPARED_METRICS, _PREPARED_SUBSETS = 3, 40
"""Of how many leading metrics and subsets the ranks on single subsets are made before anybody asks."""
_REST = 0.15
"""Seconds between two of them: readers come first."""


class NoSuchBoard(NotFound):
    """There is no board of that name."""


class NoSuchSystem(NotFound):
    """There is no system of that name on the board."""


class _Nothing:
    """What stands for a thing that was not made yet."""


_NOTHING = _Nothing()


def made_once(
    make: Callable[Concatenate[Snapshot, Arguments], Made],
) -> Callable[Concatenate[Snapshot, Arguments], Made]:
    """A function of a snapshot whose result is made once for each snapshot, and then kept with it."""

    @wraps(make)
    def kept(snapshot: Snapshot, /, *args: Arguments.args, **options: Arguments.kwargs) -> Made:
        key = (make.__qualname__, args, *options.items())
        passing = any(isinstance(arg, Group) and is_chosen(arg.key) for arg in args)
        return snapshot.once(key, lambda: make(snapshot, *args, **options), passing=passing)

    return kept


class Rank(NamedTuple):
    """A rank with its interval and tier; 0 is none. Nobody is surely ahead of a line in tier 1."""

    rank: int = 0
    low: int = 0
    high: int = 0
    tier: int = 0


@dataclass(frozen=True, eq=False)
class Field:
    """The lines of a table, and how they are ranked: rows of a panel, means, ranks among the lines of each kind.

    The panel is that of all lines, or where `best` is a protocol, the one with the best line of each system.
    """

    metric: str
    group: Group
    panel: Panel
    rows: Whole
    systems: Whole  # places in the snapshot
    means: Means
    ranks: RankIntervals
    kinds: tuple[str, ...]  # `earmark.board.boards.codecs.ORDER`
    best: str = ""
    tried: Sequence[int] = ()  # settings of each line, where any system was tried under several
    every_setting: bool = False  # whether a system has a line for each of its settings

    @cached_property
    def ranked(self) -> int:
        return int((self.ranks.rank > 0).sum())

    @cached_property
    def kind_places(self) -> Whole:
        """The kind of each line by its place in `ORDER`."""
        place = {kind: number for number, kind in enumerate(ORDER)}
        return np.array([place[kind] for kind in self.kinds], np.int64)

    def among(self, place: int) -> int:
        """Among how many lines a line is ranked."""
        return int(((self.kind_places == self.kind_places[place]) & (self.ranks.rank > 0)).sum())

    @cached_property
    def _ranks(self) -> list[Rank]:
        return list(map(Rank, *(part.tolist() for part in self.ranks[:4])))

    def rank_at(self, place: int) -> Rank:
        """The rank of a line, its interval and its tier; 0 is none."""
        return self._ranks[place]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything that pages show of one board. `lines` are in the order of their systems."""

    board: str
    generation: int
    systems: tuple[System, ...]
    lines: tuple[Line, ...]
    panels: Mapping[str, Panel]
    definition: Definition  # who is ranked on what
    blind: frozenset[str] = frozenset()  # subsets that only the host can measure
    offered: frozenset[str] = frozenset()  # those of them on which a host measures models now
    _made: dict[object, Any] = field(default_factory=dict, repr=False)
    _passing: dict[object, Any] = field(default_factory=dict, repr=False)  # the last few, for readers' own choices
    _few: dict[object, Any] = field(default_factory=dict, repr=False)
    _locks: dict[object, threading.RLock] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of_scores(
        cls, board: str, scores: Scores, cards: Mapping[str, SystemCard] | None = None, *,
        provenance: Provenance = "self-reported", blind: Collection[str] | None = None,
        offered: Collection[str] = (), definition: Definition | None = None,
    ) -> Snapshot:  # fmt: skip
        """A snapshot of a score table without a store; systems without a card have one with their name.

        The `definition` is by default the paper's, for a board of one, else derived from the scores. `blind` are the
        subsets that only the host can measure, by default those of the definition; those that are `offered` are
        measured now.
        """
        names: dict[str, str] = {}
        for name in dict.fromkeys(row.system for row in scores):
            names[slug_of(name, names)] = name
        given, made = cards or {}, datetime.now(UTC)
        systems = [
            System(place, board, slug, given.get(name) or SystemCard(name), "", "", made)
            for place, (slug, name) in enumerate(names.items())
        ]
        places = {name: place for place, name in enumerate(names.values())}
        columns = columns_of(scores, places, provenance)
        known = definition or paper_boards().get(board)
        hidden = (known.blind if known else frozenset()) if blind is None else frozenset(blind)
        return cls.of_columns(board, 0, systems, columns, hidden, frozenset(offered), known)

    @classmethod
    def of_columns(
        cls, board: str, generation: int, systems: Sequence[System], columns: Columns, blind: frozenset[str],
        offered: frozenset[str] = frozenset(), definition: Definition | None = None,
    ) -> Snapshot:  # fmt: skip
        """A snapshot of columns whose `system` are places in `systems`; self-reported scores of `blind` ones are no
        measurements."""
        known = without_claims(columns, blind, definition.subset_names if definition else ())
        lines, panels = build(known)
        definition = definition or derived_definition(board, measured_in(known), blind)
        return cls(board, generation, tuple(systems), lines, panels, definition, blind, offered)

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
        fresh_lines, fresh = build(without_claims(moved, self.blind, self.definition.subset_names))
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
        return Snapshot(
            self.board, generation, tuple(everyone), tuple(lines), panels, self.definition, self.blind, self.offered
        )  # fmt: skip

    def defined(self, definition: Definition, generation: int) -> Snapshot:
        """The same scores under another definition."""
        return Snapshot(
            self.board, generation, self.systems, self.lines, self.panels, definition, self.blind, self.offered
        )

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
        """The metrics that were tried on single subsets: those of the definition in its order, then others by how many
        values they have."""
        size = {
            name: int(np.isfinite(panel.shown()).sum())
            for name, panel in self.panels.items()
            if any(is_single(subset) for subset in panel.subsets)
        }
        leading = [metric.name for metric in self.definition.metrics if size.get(metric.name)]
        # The first submission settles which of them the plain view shows: no later one changes it.
        first = {name: min(self._with_value(name), default=len(self.systems)) for name in leading}
        founders = self._founders(first.values())
        leading.sort(key=lambda name: first[name] not in founders)
        return (*leading, *in_order({name: size[name] for name in size if name not in leading}))

    def _with_value(self, metric: str) -> set[int]:
        """The places of the systems that have a value of a metric."""
        panel = self.panels[metric]
        with_value = np.isfinite(panel.shown()).any(axis=1)
        return {self.lines[number].system for number in panel.lines[with_value].tolist()}

    def _founders(self, places: Iterable[int]) -> set[int]:
        """Those of some systems that came with the first submission."""
        there = [place for place in places if place < len(self.systems)]
        first = min((self.systems[place].created for place in there), default=None)
        return {place for place in there if self.systems[place].created == first}

    @made_once
    def _first_lines(self, metric: str) -> tuple[Line, ...]:
        """The lines with a value of the systems that came with the first submission that has some: they settle what the
        definition leaves open, so that no later submission changes who is ranked on what."""
        panel, founders = self.panels[metric], self._founders(self._with_value(metric))
        with_value = np.isfinite(panel.shown()).any(axis=1)
        lines = (self.lines[number] for number in panel.lines[with_value].tolist())
        return tuple(line for line in lines if line.system in founders)

    def system(self, slug: str) -> System:
        """The system of that slug, or NoSuchSystem."""
        if slug not in self.places:
            near = did_you_mean(slug, self.places)
            raise NoSuchSystem(f'The board "{self.board}" has no system "{slug}".{near}')
        return self.systems[self.places[slug]]

    def named(self, key: str) -> tuple[System, str]:
        """The system and the setting that "slug" or "slug:setting" names; "" without one."""
        if key in self.places:
            return self.system(key), ""
        slug, _, setting = key.rpartition(":")
        return (self.system(slug), setting) if slug else (self.system(key), "")

    def panel(self, metric: str) -> Panel:
        """The panel of a metric, or UsageError. What does not rest on the same clips as others does not count."""
        self._given_panel(metric)
        return self._compared_panel(metric)

    def _given_panel(self, metric: str) -> Panel:
        if metric not in self.panels:
            near = did_you_mean(metric, self.panels)
            raise UsageError(f'The board "{self.board}" has no metric "{metric}".{near}')
        return self.panels[metric]

    @made_once
    def _compared_panel(self, metric: str) -> Panel:
        clips = {subset.name: subset.clips for subset in self.definition.subsets if subset.clips}
        panel = on_same_clips(self.panels[metric], self.systems, self.lines, self.panels.get("kbps"), clips)
        return panel.widened([subset for group in self.groups(metric) for subset in group.subsets])

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """What each system is ranked among."""
        return kinds_of(self.systems, self.lines, self.panels.values())

    @made_once
    def groups(self, metric: str) -> tuple[Group, ...]:
        """Over which subsets a metric may be averaged, the leading group first."""
        panel = self._given_panel(metric)
        # Systems and not lines: one system under twenty distances is one.
        owners = np.array([self.lines[number].system for number in panel.lines.tolist()])
        there = np.isfinite(panel.shown())
        whole = np.array(["@" not in self.lines[number].protocol for number in panel.lines.tolist()], bool)
        whole = whole if there[whole].any() else np.ones(len(whole), bool)
        counts = [len(set(owners[column & whole].tolist())) for column in there.T]
        systems_with = dict(zip(panel.subsets, counts, strict=True))
        aside = [name for name, column in zip(panel.subsets, there.T, strict=True) if column.any() and is_single(name)]
        apart = [name for name in aside if not systems_with[name]]
        founders = self._founders(self._with_value(metric))
        own = there[np.isin(owners, list(founders))]
        founded = [name for place, name in enumerate(panel.subsets) if own[:, place].any()]
        return groups_of(self.definition, systems_with, metric, apart, self.blind, self.offered, founded)

    def group(self, metric: str, key: str = "") -> Group:
        """A group of a metric by its key; "" is the leading one. A reader may choose any subsets of it."""
        if is_chosen(key):
            return chosen_group(key, self.subsets(metric))
        keys = self.group_keys(metric)
        if key and key not in keys:
            offered = first_of(list(keys), _NAMED)
            raise UsageError(f'{metric} has no mean over "{key}"; it has {offered}.{did_you_mean(key, keys)}')
        return self.groups(metric)[keys[key] if key else 0]

    @made_once
    def group_keys(self, metric: str) -> dict[str, int]:
        """The places of the groups of a metric, by their keys."""
        return {group.key: place for place, group in enumerate(self.groups(metric))}

    def public_group(self, metric: str) -> Group:
        """The mean that every system can have: the leading one, or that beside it where the leading one is blind."""
        groups = self.groups(metric)
        return groups[1] if groups[0].key == BLIND and len(groups) > 1 and not groups[1].single else groups[0]

    def group_beside(self, metric: str, key: str) -> Group:
        """What another metric is averaged over beside a view over `key`: the same subsets where a reader chose them and
        it has them, blind ones where that is, else public."""
        if is_chosen(key) and set(chosen_names(key)) <= set(self.subsets(metric)):
            return self.group(metric, key)
        leading = self.groups(metric)[0]
        return leading if leading.key == key == BLIND else self.public_group(metric)

    def outside(self, metric: str, group: Group) -> str:
        """Why nobody is ranked by a metric over a group: what is not part of the definition; else nothing."""
        if not self.definition.has_metric(metric):
            return f"{metric} is not part of the board's definition"
        others = [name for name in group.subsets if name not in self.definition.subset_names and name not in self.blind]
        verb = "is" if len(others) == 1 else "are"
        return f"{first_of(others, 3)} {verb} not part of the board's definition" if others else ""

    @cached_property
    def unranked(self) -> tuple[bool, ...]:
        """Of each system, whether the definition shows it and ranks it nowhere."""
        cards = [system.card for system in self.systems]
        return tuple(self.definition.is_unranked(card.name, card.family, card.kind) for card in cards)

    def not_ranked(self, metric: str, group: Group, line: Line) -> str:
        """Why the definition gives a line no rank by a metric over a group; else nothing."""
        aside = SHOWN_ASIDE if self.unranked[line.system] else ""
        unknown = "" if self.knows(line) else f"{line.setting} is no distance or correction that this board knows"
        return self.outside(metric, group) or aside or unknown

    @made_once
    def subsets(self, metric: str) -> tuple[str, ...]:
        """The single subsets of a metric."""
        return tuple(name for name in self.panel(metric).subsets if is_single(name))

    @made_once
    def settings(self, metric: str) -> tuple[str, ...]:
        """The settings (distance and correction) of a metric, the most common first."""
        return self._most_common(line.setting for line in self._lines(metric))

    @made_once
    def protocols(self, metric: str) -> tuple[str, ...]:
        """The protocols of a metric: those of the first submission before others, `all` and `reference` before
        others, then the most common; what has no value last."""
        names = self._most_common(line.protocol for line in self._lines(metric))
        panel = self.panel(metric)
        there = np.isfinite(panel.shown()).any(axis=1)
        valued = {self.lines[number].protocol for number in panel.lines[there].tolist()}
        first = {line.protocol for line in self._first_lines(metric)}
        return tuple(
            sorted(names, key=lambda name: (name not in valued, name not in first, name not in LEADING_PROTOCOLS))
        )

    def _lines(self, metric: str) -> Iterator[Line]:
        return (self.lines[number] for number in self.panel(metric).lines.tolist())

    @staticmethod
    def _most_common(names: Iterable[str]) -> tuple[str, ...]:
        counts = Counter(names)
        return tuple(sorted(counts, key=lambda name: (-counts[name], name)))

    def once(self, key: object, make: Callable[[], Made], *, passing: bool = False) -> Made:
        """What `make` returns, made once for this snapshot. Other things can be made meanwhile.

        What is `passing` is forgotten when much else of its kind was made since.
        """
        kept = self._passing if passing else self._made
        made: Made | _Nothing = kept.get(key, _NOTHING)
        if not isinstance(made, _Nothing):
            return made
        with self._lock:
            lock = self._locks.setdefault(key, threading.RLock())
        with lock:
            made = kept.get(key, _NOTHING)
            if isinstance(made, _Nothing):
                made = kept[key] = make()
        if passing:
            self._forget()
        return made

    def few(self, key: object, make: Callable[[], Made]) -> Made:
        """What was made for a key, of which only the last few are kept: what is large and soon made again."""
        with self._lock:
            made: Made = self._few.pop(key) if key in self._few else make()
            self._few[key] = made
            for old in list(self._few)[:-_FEW]:
                del self._few[old]
        return made

    def _forget(self) -> None:
        with self._lock:
            for key in list(self._passing)[:-_PASSING]:
                del self._passing[key]
                self._locks.pop(key, None)

    def prepare(self, metrics: int | None = None) -> None:
        """Make the ranks of the leading metrics, or of all, so that nobody has to wait for them."""
        for metric in self.metrics[:metrics]:
            self.field(metric)

    def prepare_more(self, rest: float = _REST) -> None:
        """Make the other ranks that pages of systems and subsets ask for, with rests in which readers are served."""
        keys = [(metric, self.public_group(metric).key) for metric in self.metrics]
        leading = self.metrics[:_PREPARED_METRICS]
        keys += [
            (metric, chosen_key([name])) for metric in leading for name in self.subsets(metric)[:_PREPARED_SUBSETS]
        ]
        for metric, key in keys:
            self.field(metric, key)
            time.sleep(rest)

    @made_once
    def means(self, metric: str, group: Group, best: str = "") -> Means:
        """Means over a group of subsets, for every row of the metric's panel; `best`: of the panel of the best line of
        each system under that protocol."""
        panel = self.best(metric, best).panel if best else self.panel(metric)
        columns = panel.columns(group.subsets)
        parts = (part[:, columns] for part in (panel.measured(), panel.low, panel.high, panel.lift))
        return means(*parts, harmonic=group.harmonic)

    @made_once
    def means_shown(self, metric: str, group: Group, best: str = "") -> Means:
        """The same with values that lack the clips a system failed on: to be shown, never ranked."""
        panel = self.best(metric, best).panel if best else self.panel(metric)
        columns = panel.columns(group.subsets)
        parts = (part[:, columns] for part in (panel.shown(), panel.low, panel.high, panel.lift))
        return means(*parts, harmonic=group.harmonic)

    @made_once
    def best(self, metric: str, protocol: str) -> Best:
        """The best line of each system that has a value under a protocol."""
        panel = self.panel(metric)
        single = panel.columns(self.subsets(metric))
        measured = np.isfinite(panel.shown()[:, single]).any(axis=1)
        here = [self.lines[number].protocol == protocol for number in panel.lines.tolist()]
        better = 1.0 if self.definition.facts(metric).higher_is_better else -1.0
        rows = np.flatnonzero(np.array(here, bool) & measured)
        return best_of_each(panel, self.lines, rows, self._strata(panel), better, self.knows, _preference)

    def _strata(self, panel: Panel) -> Strata:
        """Public and blind subsets of the definition, other subsets, and what is no single subset."""
        defined = self.definition.subset_names | self.blind
        kinds = [
            (3 if not is_single(name) else 1 if name in self.blind else 0 if name in defined else 2)
            for name in panel.subsets
        ]
        codes = np.array(kinds, np.int64)
        return Strata(tuple(np.flatnonzero(codes == kind) for kind in sorted(set(kinds))), codes < 2)

    def knows(self, line: Line) -> bool:
        """Whether the distance and the correction of a line are known names, or the host's own."""
        of = self.definition
        return is_distance(line.distance, of.distances) and is_correction(line.correction, of.corrections)

    def usual_setting(self, metric: str) -> str:
        """The setting that a metric is ranked under: the definition's, where the first submission has it, else the
        best."""
        fixed = self.definition.setting
        return fixed if fixed != BEST and fixed in {line.setting for line in self._first_lines(metric)} else BEST

    @made_once
    def rows_of_systems(self, metric: str, protocol: str) -> Whole:
        """The row of each system in the panel of best lines; -1 where it has none."""
        rows = np.full(len(self.systems), -1, np.int64)
        systems = self.best(metric, protocol).systems
        rows[systems] = np.arange(len(systems))
        return rows

    @made_once
    def rows_of_lines(self, metric: str) -> Whole:
        """The row of the metric's panel for each line of the snapshot; -1 where it has none."""
        rows = np.full(len(self.lines), -1, np.int64)
        panel = self.panel(metric)
        rows[panel.lines] = np.arange(len(panel.lines))
        return rows

    def field(self, metric: str, group_key: str = "", protocol: str = "", setting: str = "") -> Field:
        """The lines of a table: one protocol; one setting, each, or the best of each system; by default the usual one.

        Lines that have only other subsets than the group's belong to it, without a mean and without a rank.
        """
        group = self.group(metric, group_key)
        protocol = protocol or self.protocols(metric)[0]
        setting = setting or self.usual_setting(metric)
        if setting == EACH or setting in self.settings(metric):
            # With one setting, "best", "each" and that one are the same lines.
            single = setting == EACH or len(self.protocols(metric)) == 1
            setting = BEST if len(self.settings(metric)) == 1 and single else setting
        return self._field(metric, group, protocol, setting)

    @made_once
    def _field(self, metric: str, group: Group, protocol: str, setting: str) -> Field:
        best = protocol if setting == BEST else ""
        panel = self.best(metric, best).panel if best else self.panel(metric)
        lines = [self.lines[number] for number in panel.lines.tolist()]
        rows = np.arange(len(lines)) if best else self._rows_under(metric, protocol, setting)
        mine = self.means(metric, group, best).take(rows)
        values = panel.measured()[np.ix_(rows, panel.columns(group.subsets))]
        error = mine.error()
        if group.harmonic:  # whose order is that of the means of -1 / value; a mean of 0 is the least of all
            with np.errstate(divide="ignore", invalid="ignore"):
                turned, error = np.where(values > 0, -1 / values, np.nan), error / mine.value**2
            values = np.where((mine.value == 0)[:, None] & np.isfinite(values), -np.inf, turned)
        places = np.array([lines[row].system for row in rows.tolist()], np.int64)
        kinds = tuple(self.kinds[place] for place in places.tolist())
        unknown = [not self.knows(lines[row]) for row in rows.tolist()]
        values[np.array(unknown, bool) | np.array(self.unranked, bool)[places]] = np.nan
        if setting == EACH:  # whoever tries often has many lines: one setting alone is ranked
            others = [lines[row].setting != self.usual_setting(metric) for row in rows.tolist()]
            values[np.array(others, bool)] = np.nan
        if self.outside(metric, group):
            values[:] = np.nan
        better = 1.0 if self.definition.facts(metric).higher_is_better else -1.0
        ranks = ranks_by_kind(better * values, error, kinds)
        tried = self.best(metric, best).tried.tolist() if best else []
        return Field(
            metric,
            group,
            panel,
            rows,
            places,
            mine,
            ranks,
            kinds,
            best,
            tried if max(tried, default=1) > 1 else (),
            setting == EACH,
        )

    @made_once
    def ranked_values(self, metric: str) -> NDArray[np.float64]:
        """What was measured [lines, subsets of the panel] under the protocol and the setting that are ranked."""
        setting = self.usual_setting(metric)
        rows = self._rows_under(metric, self.protocols(metric)[0], EACH if setting == BEST else setting)
        return self.panel(metric).measured()[rows]

    def _rows_under(self, metric: str, protocol: str, setting: str) -> Whole:
        """The rows of a metric's panel under a protocol and one setting, or each, that have a value."""
        panel = self.panel(metric)
        measured = np.isfinite(panel.shown()[:, panel.columns(self.subsets(metric))]).any(axis=1)
        lines = (self.lines[number] for number in panel.lines.tolist())
        wanted = [line.protocol == protocol and setting in (EACH, line.setting) for line in lines]
        return np.flatnonzero(np.array(wanted, bool) & measured)


def _preference(line: Line) -> tuple[int, int, int, str]:
    return preference(line.distance, line.correction)
