"""Two to six systems side by side, and every pair of them subset by subset.

A difference of two systems is taken on each subset that both have and averaged; its interval comes from drawing those
subsets again with replacement. Pairing removes what makes a subset hard for everybody, so that two systems can be told
apart although the intervals of their means overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from earmark.analysis.ranks import FEWEST_DATASETS
from earmark.board.boards.groups import Group
from earmark.board.boards.snapshot import BEST, EACH, NoSuchSystem, Snapshot
from earmark.board.boards.table import Bitrate, Cell, bitrates, mean_cells, panel_cells
from earmark.board.records import System
from earmark.errors import UsageError
from earmark.report.metric_text import facts

FEWEST, MOST = 2, 6
DRAWS = 2000
_TIE = 1e-12


class Compared(NamedTuple):
    """One of the systems: its line, its cells on the subsets, its mean and its rank among the systems of its kind."""

    key: str
    system: System
    setting: str
    rank: int
    rank_low: int
    rank_high: int
    mean: Cell
    cells: tuple[Cell, ...]
    kind: str = ""
    bitrate: Bitrate | None = None


class Difference(NamedTuple):
    """One minus other: mean over the subsets that both have, its interval, and on how many each is better."""

    one: int
    other: int
    mean: float | None
    low: float | None
    high: float | None
    subsets: int
    better: int
    worse: int

    @property
    def sure(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class Comparison(NamedTuple):
    metric: str
    group: Group
    protocol: str
    subsets: tuple[str, ...]
    compared: tuple[Compared, ...]
    differences: tuple[Difference, ...]


def split_key(snapshot: Snapshot, key: str) -> tuple[System, str]:
    """The system and the setting that "slug" or "slug:setting" names; without a setting, the best one."""
    if key in snapshot.places:
        return snapshot.system(key), BEST
    slug, _, setting = key.rpartition(":")
    return (snapshot.system(slug), setting) if slug else (snapshot.system(key), BEST)


def compare(
    snapshot: Snapshot, keys: Sequence[str], *, metric: str = "", over: str = "", protocol: str = "", seed: int = 0
) -> Comparison:
    """Compare the systems of 2 to 6 different keys ("slug" or "slug:setting") under one metric."""
    chosen = list(dict.fromkeys(keys))
    if not FEWEST <= len(chosen) <= MOST:
        raise UsageError(f"A comparison takes {FEWEST} to {MOST} different systems, not {len(chosen)}.")
    metric = metric or snapshot.metrics[0]
    group = snapshot.group(metric, over)
    protocol = protocol or snapshot.protocols(metric)[0]
    compared = tuple(_compared(snapshot, key, metric, group, protocol) for key in chosen)
    measured = [[cell.value if cell.status == "ok" else None for cell in each.cells] for each in compared]
    values = np.array(measured, np.float64)
    rng = np.random.default_rng(seed)
    better = 1.0 if facts(metric).higher_is_better else -1.0
    pairs = combinations(range(len(compared)), 2)
    differences = tuple(_difference(values, one, other, better, rng) for one, other in pairs)
    return Comparison(metric, group, protocol, group.subsets, compared, differences)


def cells_of(snapshot: Snapshot, metric: str, row: int, subsets: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of one row of a panel on some subsets, which may be none of its own."""
    panel = snapshot.panel(metric)
    place = {name: column for column, name in enumerate(panel.subsets)}
    own = [name for name in subsets if name in place]
    cells = panel_cells(panel, np.full(len(own), row), panel.columns(own))
    by_subset = dict(zip(own, cells, strict=True))
    return tuple(by_subset.get(name) or Cell(None, reason="not measured") for name in subsets)


def _compared(snapshot: Snapshot, key: str, metric: str, group: Group, protocol: str) -> Compared:
    system, setting = split_key(snapshot, key)
    place = snapshot.places[system.slug]
    field = snapshot.field(metric, group.key, protocol, BEST if setting == BEST else EACH)
    ranked = snapshot.field(metric, group.key, protocol, BEST)
    lines = snapshot.panel(metric).lines[field.rows]
    own = [snapshot.lines[number] for number in lines.tolist()]
    fits = (at for at, line in enumerate(own) if line.system == place and setting in (BEST, line.setting))
    at = next(fits, None)
    if at is None:
        where = f" under {setting}" if setting != BEST else ""
        raise NoSuchSystem(f'"{system.card.name}" has no {metric}{where} with the protocol {protocol}.')
    row, line = int(field.rows[at]), own[at]
    # Ranks are among the best settings of all systems, as on the board; another setting of a system has none.
    places = np.flatnonzero(ranked.rows == row).tolist()
    rank, low, high = ranked.rank_at(places[0]) if places else (0, 0, 0)
    shown = snapshot.means_shown(metric, group).take(field.rows)
    (mean,) = mean_cells(field.means, np.array([at]), shown=shown)
    cells = cells_of(snapshot, metric, row, group.subsets)
    kind, bitrate = field.kinds[at], bitrates(snapshot).get(place)
    return Compared(system.key(line.setting), system, line.setting, rank, low, high, mean, cells, kind, bitrate)


def _difference(values: np.ndarray, one: int, other: int, better: float, rng: np.random.Generator) -> Difference:
    apart = values[one] - values[other]
    apart = apart[np.isfinite(apart)]
    turned = better * apart
    ahead, behind = int((turned > _TIE).sum()), int((turned < -_TIE).sum())
    if not apart.size:
        return Difference(one, other, None, None, None, 0, 0, 0)
    low = high = None
    if apart.size >= FEWEST_DATASETS:
        drawn = rng.multinomial(apart.size, np.full(apart.size, 1 / apart.size), size=DRAWS) @ apart / apart.size
        low, high = (float(end) for end in np.quantile(drawn, [0.025, 0.975]))
    return Difference(one, other, float(apart.mean()), low, high, int(apart.size), ahead, behind)
