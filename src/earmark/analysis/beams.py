"""Would a wider search find better subsets?

SimBA's search adds one dataset at a time and never looks back. A beam of width b keeps the b best subsets of every size
instead. Both look for a large proxy coverage (delta, from similarities); what counts is the coverage (eta, from the
ranking), which the search does not see. So a wider beam may find more of the one and less of the other, and this is
what a `BeamOrder` shows side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.prowl import (
    THRESHOLD,
    Order,
    area,
    coverage_curve,
    first_size,
    greedy,
    proxy_curve,
    stable_size,
)
from earmark.analysis.similarities import NINE, similarity_matrix
from earmark.errors import UsageError


class BeamOrder(NamedTuple):
    """What a beam of one width found with one similarity.

    proxy   the area under the proxy coverage, which the search raises
    scauc   the area under the coverage, size and stable_size: as in `Selection`
    """

    similarity: str
    beam: int
    order: Order
    proxy: float
    scauc: float
    size: int
    stable_size: int


class BeamChange(NamedTuple):
    """What a width changes against the narrowest, as means over all similarities.

    better and worse count the similarities whose SCAUC changed by more than 1e-6.
    """

    beam: int
    proxy: float
    scauc: float
    size: float
    better: int
    worse: int
    similarities: int


def checked_widths(beam: int | Iterable[int]) -> tuple[int, ...]:
    """One or several widths, each once, in the order given."""
    widths = tuple(dict.fromkeys([beam] if isinstance(beam, int) else beam))
    if not widths:
        raise UsageError("beam needs at least one width, such as 1.")
    for width in widths:
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise UsageError(f"beam must be at least 1, not {width}.")
    return widths


def beam_orders(
    matrix: Matrix,
    widths: Iterable[int],
    similarities: Iterable[str] = NINE,
    *,
    threshold: float = THRESHOLD,
    tick: Callable[[float], object] = lambda _: None,
) -> tuple[BeamOrder, ...]:
    """The order that each width finds with each similarity, and how it covers."""
    values = usable(matrix).normalised()
    chosen, names = checked_widths(widths), list(similarities)
    found = []
    for name in names:
        similarity = similarity_matrix(values, name)
        for width in chosen:
            tick(1 / (len(names) * len(chosen)))
            order = greedy(similarity, width)
            curve = coverage_curve(values, order)
            sizes = first_size(curve, threshold), stable_size(curve, threshold)
            found.append(BeamOrder(name, width, order, area(proxy_curve(similarity, order)), area(curve), *sizes))
    return tuple(found)


def beam_changes(orders: Iterable[BeamOrder]) -> list[BeamChange]:
    """What every other width changes against the narrowest, averaged over the similarities."""
    by_width: dict[int, list[BeamOrder]] = {}
    for order in orders:
        by_width.setdefault(order.beam, []).append(order)
    if len(by_width) < 2:
        return []
    narrow = by_width[min(by_width)]
    changes = []
    for width in sorted(by_width)[1:]:
        wide = by_width[width]
        areas = np.array([b.scauc - a.scauc for a, b in zip(narrow, wide, strict=True)])
        means: dict[str, Any] = {
            name: float(np.mean([getattr(b, name) - getattr(a, name) for a, b in zip(narrow, wide, strict=True)]))
            for name in ("proxy", "size")
        }
        better, worse = int((areas > 1e-6).sum()), int((areas < -1e-6).sum())
        changes.append(BeamChange(width, means["proxy"], float(areas.mean()), means["size"], better, worse, len(wide)))
    return changes
