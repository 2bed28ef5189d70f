"""What a map shows, as plain values: clips, where they lie, and who is truly near whom.

ClipTable    what is known of each clip
MapLayout    where every clip lies on the plane, how that was made, and how true it is
MapView      one representation under one distance: each clip's neighbours and its own values
MapContent   all of it, with sounds
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.report.maps._lists import Lists

Floats = NDArray[np.float64]
Fetch = Callable[[int], tuple[NDArray[Any], int]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClipTable:
    """What is known of each clip: lists of one length; `paths`, times and durations where somebody knows them."""

    ids: Sequence[str]
    labels: Sequence[str | None]
    groups: Sequence[str | None] | None = None
    paths: Sequence[str | None] | None = None
    starts: Floats | None = None
    ends: Floats | None = None
    seconds: Floats | None = None

    def __post_init__(self) -> None:
        fields = {name: value for name, value in vars(self).items() if value is not None}
        lengths = {name: len(value) for name, value in fields.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise InputError(f"The clips of a map have fields of different lengths: {said}.")

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, rows: NDArray[np.int64]) -> ClipTable:
        """Some of the clips."""
        chosen: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                chosen[name] = value[rows]
            else:
                chosen[name] = None if value is None else [value[row] for row in rows.tolist()]
        return ClipTable(**chosen)


@dataclass(frozen=True, kw_only=True, eq=False)
class MapLayout:
    """Points [N, 2] on the plane; `kept`, `shared`, `trust` and `share` as in a `Projection`."""

    points: Floats
    method: str
    kept: float | None = None
    shared: float | None = None
    trust: float | None = None
    share: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class MapView:
    """One representation under one distance, correction and protocol.

    layouts      which of the map's layouts are of this representation and distance
    lists        each clip's nearest neighbours among all clips
    values       per-clip values by metric, NaN where a clip was left out
    """

    system: str
    distance: str
    correction: str = "none"
    protocol: str = "all"
    layouts: tuple[int, ...]
    lists: Lists
    values: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def title(self) -> str:
        measure = self.distance if self.correction in ("", "none") else f"{self.distance} {self.correction}"
        across = " (across groups)" if self.protocol == "across_groups" else ""
        return " · ".join(filter(None, [self.system, measure])) + across


@dataclass(frozen=True, kw_only=True, eq=False)
class MapContent:
    """Everything on the page. `fetch` gives a clip's samples and rate from its row; it may raise."""

    title: str
    clips: ClipTable
    layouts: Sequence[MapLayout]
    views: Sequence[MapView]
    notes: Sequence[str] = ()
    synthetic: bool = False
    fetch: Fetch | None = None
    version: str = ""
    separator: str = ""
    """Between the labels of a clip that has several."""
    background: str = ""
    """The label of clips that hold none of the classes."""
