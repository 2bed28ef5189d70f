"""One board as arrays in memory.

A `Snapshot` never changes: pages and API read it without a lock, and everything derived from it (means, ranks, fields)
is made once, when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.best import Best, Strata, best_of_each
from earmark.board.boards.chosen import chosen_key
from earmark.board.boards.codecs import ranks_by_kind
from earmark.board.boards.contents import BEST, EACH, Contents
from earmark.board.boards.field import Field
from earmark.board.boards.groups import Group
from earmark.board.boards.memory import made_once
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
from earmark.definitions import Definition, derived_definition, paper_boards
from earmark.definitions.settings import preference
from earmark.scores import Scores
from earmark.scores.spelling import is_single
from earmark.submissions import Provenance, SystemCard

Whole = NDArray[np.int64]

_PREPARED_METRICS, _PREPARED_SUBSETS = 3, 40
"""Of how many leading metrics and subsets the ranks on single subsets are made before anybody asks."""


class NoSuchBoard(NotFound):
    """There is no board of that name."""


@dataclass(frozen=True, eq=False)
class Snapshot(Contents):
    """Everything that pages show of one board: means, ranks and fields of tables."""

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

    def prepare(self) -> None:
        """Make the ranks that pages of boards, systems and subsets show, so that nobody has to wait for them."""
        for metric in self.metrics:
            self.field(metric)
            self.field(metric, self.public_group(metric).key)
        for metric in self.metrics[:_PREPARED_METRICS]:
            for name in self.subsets(metric)[:_PREPARED_SUBSETS]:
                self.field(metric, chosen_key([name]))

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
        rows = np.arange(len(panel.lines)) if best else self._rows_under(metric, protocol, setting)
        mine = self.means(metric, group, best).take(rows)
        values = panel.measured()[np.ix_(rows, panel.columns(group.subsets))]
        error = mine.error()
        if group.harmonic:  # whose order is that of the means of -1 / value; a mean of 0 is the least of all
            with np.errstate(divide="ignore", invalid="ignore"):
                turned, error = np.where(values > 0, -1 / values, np.nan), error / mine.value**2
            values = np.where((mine.value == 0)[:, None] & np.isfinite(values), -np.inf, turned)
        lines = panel.lines[rows]
        places = self.line_systems[lines]
        kinds = tuple(map(self.kinds.__getitem__, places.tolist()))
        values[~self.known_lines[lines] | self.unranked[places]] = np.nan
        if setting == EACH:  # whoever tries often has many lines: one setting alone is ranked
            usual = self.usual_setting(metric)
            values[np.array([self.line_settings[line] != usual for line in lines.tolist()], bool)] = np.nan
        if self.outside(metric, group):
            values[:] = np.nan
        better = 1.0 if self.definition.facts(metric).higher_is_better else -1.0
        ranks = ranks_by_kind(better * values, error, kinds)
        tried = self.best(metric, best).tried.tolist() if best else []
        return Field(
            metric, group, panel, rows, places, mine, ranks, kinds, best, tried if max(tried, default=1) > 1 else (),
            setting == EACH,
        )  # fmt: skip

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
