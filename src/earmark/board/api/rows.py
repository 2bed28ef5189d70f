"""The live scores of a snapshot as one long list that can be filtered and read in pages.

The list is ordered by system (in the order of their arrival), then metric, subset and line. A cursor says "after the
n-th row of that system", so that systems which arrive or change between two pages shift nothing but themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.api.shapes import ScoreShape
from earmark.board.boards.memory import made_once
from earmark.board.boards.panels import ABSENT, NUMBERS, PROVENANCES, STATUSES
from earmark.board.boards.snapshot import Snapshot

FILTERS = ("system", "subset", "metric", "distance", "correction", "protocol", "status")
_Codes = NDArray[np.int32]


class Rows(NamedTuple):
    """Where each live score lies in the panels, and a code for each thing that it can be filtered by."""

    panel: _Codes  # the metric
    row: _Codes
    column: _Codes
    starts: NDArray[np.int64]  # the first row of each system, and the end
    codes: Mapping[str, _Codes]
    names: Mapping[str, Mapping[str, int]]  # of each filter: what its codes stand for

    def matching(self, filters: Mapping[str, Sequence[str]], start: int) -> NDArray[np.int64]:
        """The places, from `start` on, of the rows that fit: any of the values of each filter that has some."""
        mask = np.ones(len(self.panel) - start, bool)
        for name, wanted in filters.items():
            if wanted:
                codes = [self.names[name][text] for text in wanted if text in self.names[name]]
                mask &= np.isin(self.codes[name][start:], codes)
        return np.flatnonzero(mask) + start

    def place_after(self, snapshot: Snapshot, system_id: int, nth: int) -> int:
        """Where to go on after the n-th row of a system: in the system after it, when it is gone or has fewer."""
        ids = [system.id for system in snapshot.systems]
        place = int(np.searchsorted(ids, system_id))
        if place == len(ids):
            return len(self.panel)
        if ids[place] != system_id:
            return int(self.starts[place])
        return int(min(self.starts[place] + max(nth, 0), self.starts[place + 1]))

    def cursor(self, snapshot: Snapshot, place: int) -> list[str | int]:
        """What `place_after` needs to go on behind the row at `place`."""
        system = int(self.codes["system"][place])
        return [snapshot.systems[system].id, int(place - self.starts[system]) + 1]

    def shapes(self, snapshot: Snapshot, places: NDArray[np.int64]) -> Iterator[ScoreShape]:
        """The rows at some places."""
        metrics = sorted(snapshot.panels)
        for place in places.tolist():
            panel = snapshot.panels[metrics[self.panel[place]]]
            at = int(self.row[place]), int(self.column[place])
            line = snapshot.lines[int(panel.lines[at[0]])]
            system = snapshot.systems[line.system]
            numbers: dict[str, Any] = {name: float(getattr(panel, name)[at]) for name in NUMBERS}
            yield ScoreShape.model_construct(
                system=system.card.name, slug=system.slug, subset=panel.subsets[at[1]], distance=line.distance,
                correction=line.correction, protocol=line.protocol, metric=panel.metric,
                **{name: None if number != number else number for name, number in numbers.items()},
                n=None if panel.n[at] < 0 else int(panel.n[at]), status=STATUSES[panel.status[at]],
                reason=panel.reasons.get(at, ""), provenance=PROVENANCES[panel.provenance[at]],
            )  # fmt: skip


@made_once
def rows_of(snapshot: Snapshot) -> Rows:
    """The list of a snapshot."""
    metrics = sorted(snapshot.panels)
    subsets = sorted({name for panel in snapshot.panels.values() for name in panel.subsets})
    names: dict[str, Mapping[str, int]] = {
        "system": snapshot.places, "metric": _numbered(metrics), "subset": _numbered(subsets),
        "status": _numbered(STATUSES),
    }  # fmt: skip
    of_line: dict[str, _Codes] = {"system": np.array([line.system for line in snapshot.lines], np.int32)}
    for name in ("distance", "correction", "protocol"):
        texts = [getattr(line, name) for line in snapshot.lines]
        names[name] = _numbered(sorted(set(texts)))
        of_line[name] = np.array([names[name][text] for text in texts], np.int32)
    parts: dict[str, list[_Codes]] = {name: [] for name in ("metric", "row", "column", "line", *FILTERS)}
    for code, metric in enumerate(metrics):
        panel = snapshot.panels[metric]
        row, column = (place.astype(np.int32) for place in np.nonzero(panel.status != ABSENT))
        line = panel.lines[row]
        here = {
            "metric": np.full(len(row), code, np.int32), "row": row, "column": column,
            "subset": np.array([names["subset"][name] for name in panel.subsets], np.int32)[column],
            "status": panel.status[row, column].astype(np.int32), "line": line.astype(np.int32),
            **{name: codes[line] for name, codes in of_line.items()},
        }  # fmt: skip
        for name, part in here.items():
            parts[name].append(part)
    columns = {name: np.concatenate(some or [np.zeros(0, np.int32)]) for name, some in parts.items()}
    order = np.lexsort([columns[name] for name in ("line", "subset", "metric", "system")])
    columns = {name: part[order] for name, part in columns.items()}
    starts = np.searchsorted(columns["system"], np.arange(len(snapshot.systems) + 1))
    codes = {name: columns[name] for name in FILTERS}
    return Rows(columns["metric"], columns["row"], columns["column"], starts, codes, names)


def _numbered(names: Sequence[str]) -> dict[str, int]:
    return {name: code for code, name in enumerate(names)}
