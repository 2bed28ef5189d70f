"""A map of the systems of a board: those with like profiles over the subsets, close together.

Each system is a point whose coordinates are its scores on the subsets; the map shows the two directions in which these
points differ most (principal components). The same scores give the same map: the first direction points to where means
are better, the second to where its largest loading is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.codecs import ANCHOR
from earmark.board.boards.field import Rank
from earmark.board.boards.groups import Group
from earmark.board.boards.memory import made_once
from earmark.board.boards.snapshot import Snapshot
from earmark.board.records import System

Floats = NDArray[np.float64]
FEWEST_SYSTEMS, FEWEST_SUBSETS = 3, 3
_NAMED = 2
_TELLING = 0.15
"""Loadings from this size on, of all that add up to 1 in squares, say what a direction is about."""


class Place(NamedTuple):
    """A system on the map."""

    system: System
    setting: str
    x: float
    y: float
    rank: Rank
    mean: float


class SystemMap(NamedTuple):
    """Systems on a plane. `shares` are of the differences between profiles, shown across and up; `level` is the
    correlation of the first direction with the mean; on subsets `more` systems at the top are better than those at the
    bottom, on `less` worse. `left_out` counts the systems that lack some of the subsets."""

    metric: str
    group: Group
    places: tuple[Place, ...]
    shares: tuple[float, float]
    level: float
    more: tuple[str, ...]
    less: tuple[str, ...]
    left_out: int


@made_once
def system_map(snapshot: Snapshot) -> SystemMap | None:
    """The map under the leading metric, over the subsets that every system can have; None where there is too little."""
    if not snapshot.metrics:
        return None
    metric = snapshot.metrics[0]
    group = snapshot.public_group(metric)
    field = snapshot.field(metric, group.key)
    panel = field.panel
    values = panel.measured()[np.ix_(field.rows, panel.columns(group.subsets))]
    counted = np.array([kind != ANCHOR for kind in field.kinds], bool) & (field.ranks.rank > 0)
    here = np.flatnonzero(counted & np.isfinite(values).all(axis=1))
    if len(here) < FEWEST_SYSTEMS or len(group.subsets) < FEWEST_SUBSETS:
        return None
    known = snapshot.definition.facts(metric)
    turned = values[here] * (1.0 if known.higher_is_better else -1.0)
    points, shares, loadings = principal_plane(turned if known.percent else _standardised(turned))
    lines = [snapshot.lines[number] for number in panel.lines[field.rows[here]].tolist()]
    places = tuple(
        Place(snapshot.systems[line.system], line.setting, x, y, field.rank_at(at), float(field.means.value[at]))
        for line, (x, y), at in zip(lines, points.tolist(), here.tolist(), strict=True)
    )
    order = np.argsort(loadings, kind="stable")
    telling = [int(place) for place in order if abs(loadings[place]) >= _TELLING]
    more = tuple(group.subsets[place] for place in telling[::-1] if loadings[place] > 0)[:_NAMED]
    less = tuple(group.subsets[place] for place in telling if loadings[place] < 0)[:_NAMED]
    level = _correlation(points[:, 0], turned.mean(axis=1))
    left_out = len(field.rows) - len(here)
    return SystemMap(metric, group, places, shares, level, more, less, left_out)


def principal_plane(values: Floats) -> tuple[Floats, tuple[float, float], Floats]:
    """Points [n, 2] of `values` [n, d] on the two leading components, the share of the variance that each shows, and
    the loadings [d] of the second. More is better in all of `values`: the first goes up with their mean."""
    centred = values - values.mean(axis=0)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    total = float((sizes**2).sum()) or 1.0
    points, axes = (left * sizes)[:, :2], axes[:2]
    first = np.sign(axes[0].sum()) or 1.0
    second = np.sign(axes[1][np.abs(axes[1]).argmax()]) or 1.0
    shares = (float(sizes[0] ** 2 / total), float(sizes[1] ** 2 / total))
    return points * [first, second], shares, axes[1] * second


def _standardised(values: Floats) -> Floats:
    spread = values.std(axis=0)
    return values / np.where(spread > 0, spread, 1.0)


def _correlation(one: Floats, other: Floats) -> float:
    if np.ptp(one) <= 1e-12 or np.ptp(other) <= 1e-12:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
