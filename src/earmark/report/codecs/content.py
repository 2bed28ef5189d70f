"""What a report on codecs is made of: plain values, gathered by whoever ran them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import CodecCard
from earmark.report.codecs.comparison import Failures
from earmark.scores import Scores
from earmark.submissions import Dataset

Samples = NDArray[np.float32]


class Heard(NamedTuple):
    """A clip before and after a codec, aligned."""

    reference: Samples
    coded: Samples
    rate: int


class WorstClip(NamedTuple):
    """A clip that a codec did badly on. `fetch` decodes it when the page is made."""

    subset: str
    system: str
    id: str
    metric: str
    value: float
    mean: float  # of the codec on that subset
    fetch: Callable[[], Heard]


class Failed(NamedTuple):
    """Clips that a codec or a metric has no value for, for one reason."""

    subset: str
    system: str
    what: str  # "coding", or the metric
    status: str
    clips: int
    first: str
    reason: str


class Difference(NamedTuple):
    """One setting minus another on the clips that both have a value for."""

    subset: str
    metric: str
    system: str
    other: str
    kbps: float
    other_kbps: float
    value: float
    low: float | None
    high: float | None
    p_value: float | None
    n: int


@dataclass(frozen=True)
class CodecReport:
    """Everything the page shows. `scores` may hold several subsets; `datasets` says of what category each is."""

    title: str
    scores: Scores
    cards: Mapping[str, CodecCard]
    datasets: Sequence[Dataset]
    protocol: str = "all"
    metrics: Sequence[str] = ()
    differences: Sequence[Difference] = ()
    worst: Sequence[WorstClip] = ()
    failures: Sequence[Failed] = ()
    failed: Failures = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # what was asked for, in words
    sound_budget: int = 6_000_000  # characters of sound in the page
