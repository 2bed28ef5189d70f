"""What is on a board: its systems, their lines under each metric, and over which subsets lines are averaged.

Which metrics, groups, protocols and settings there are, in which order, is settled by the definition and the first
submission: no later one changes who is ranked on what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.chosen import chosen_group, chosen_names, is_chosen
from earmark.board.boards.codecs import kinds_of, on_same_clips
from earmark.board.boards.groups import Group, groups_of
from earmark.board.boards.memory import Memory, made_once
from earmark.board.boards.panels import (
    Line,
    Panel,
)
from earmark.board.records import System
from earmark.board.refusals import NotFound
from earmark.definitions import BLIND, Definition
from earmark.definitions.derived import in_order
from earmark.definitions.settings import is_correction, is_distance
from earmark.errors import UsageError, did_you_mean
from earmark.scores.spelling import is_single
from earmark.wording import first_of

BEST, EACH = "best", "each"
"""Settings that are no single one: each system under its best setting, and a line for each of its settings."""
LEADING_PROTOCOLS = ("all", "reference")
SHOWN_ASIDE = "shown for comparison: the host ranks it nowhere"
"""Why a system that the definition names among its baselines has no rank."""
_NAMED = 30  # means in a message


class NoSuchSystem(NotFound):
    """There is no system of that name on the board."""


@dataclass(frozen=True, eq=False)
class Contents(Memory):
    """One board as arrays. `lines` are in the order of their systems."""

    board: str
    generation: int
    systems: tuple[System, ...]
    lines: tuple[Line, ...]
    panels: Mapping[str, Panel]
    definition: Definition  # who is ranked on what
    blind: frozenset[str] = frozenset()  # subsets that only the host can measure
    offered: frozenset[str] = frozenset()  # those of them on which a host measures models now

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each system by its slug."""
        return {system.slug: place for place, system in enumerate(self.systems)}

    @cached_property
    def line_systems(self) -> NDArray[np.int64]:
        """The place of the system of each line."""
        return np.array([line.system for line in self.lines], np.int64)

    @cached_property
    def known_lines(self) -> NDArray[np.bool_]:
        """Of each line, whether the board knows its distance and its correction."""
        return np.array([self.knows(line) for line in self.lines], bool)

    @cached_property
    def line_settings(self) -> tuple[str, ...]:
        """The setting of each line, in a word."""
        return tuple(line.setting for line in self.lines)

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
        return set(self.line_systems[panel.lines[np.isfinite(panel.shown()).any(axis=1)]].tolist())

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
        owners = self.line_systems[panel.lines]
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
    def unranked(self) -> NDArray[np.bool_]:
        """Of each system, whether the definition shows it and ranks it nowhere."""
        cards = [system.card for system in self.systems]
        return np.array([self.definition.is_unranked(card.name, card.family, card.kind) for card in cards], bool)

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

    def knows(self, line: Line) -> bool:
        """Whether the distance and the correction of a line are known names, or the host's own."""
        of = self.definition
        return is_distance(line.distance, of.distances) and is_correction(line.correction, of.corrections)

    def usual_setting(self, metric: str) -> str:
        """The setting that a metric is ranked under: the definition's, where the first submission has it, else the
        best."""
        fixed = self.definition.setting
        return fixed if fixed != BEST and fixed in {line.setting for line in self._first_lines(metric)} else BEST
