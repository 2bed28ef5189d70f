"""Which metrics say the same: their rank correlations across configurations.

A configuration is a system under a distance. Its value of a metric is the mean over subsets; two metrics correlate
by Spearman's rho (average ranks) of these means. Metrics of which less is better are not turned round: they
correlate negatively with those they agree with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.similarities import rank_correlations
from earmark.errors import InputError
from earmark.report.metric_text import facts
from earmark.report.score_index import Representation, ScoreIndex, as_index, mean_over_subsets
from earmark.scores import Scores
from earmark.tables import Column, Table
from earmark.wording import listed

FEWEST = 4
"""Configurations: among three, two metrics agree or disagree wholly by chance."""

_DIGITS = 12  # means that differ by rounding alone are equal


@dataclass(frozen=True, eq=False)
class Correlations:
    """Spearman's rho of each pair of metrics, [M, M], over the configurations that have all of them."""

    metrics: tuple[str, ...]
    matrix: NDArray[np.float64]
    configurations: tuple[Representation, ...]

    def lines(self) -> Iterator[list[str]]:
        """Each metric with its correlations, to four digits."""
        for name, row in zip(self.metrics, self.matrix, strict=True):
            yield [name, *(f"{value + 0.0:.4f}" for value in row)]

    def to_markdown(self) -> str:
        """The matrix with two digits, and what it is."""
        columns = [Column("metric", "left"), *map(Column, self.metrics)]
        rows = [
            [name, *(f"{value:+.2f}" for value in row)] for name, row in zip(self.metrics, self.matrix, strict=True)
        ]
        said = (
            f"Spearman correlation across {len(self.configurations)} configurations (system and distance) of the"
            " means over subsets."
        )
        table = Table(columns, rows).to_markdown(rules=("---", "---:"))
        return f"{table}\n{said} {self.caution()}".rstrip() + "\n"

    def caution(self) -> str:
        """Which metrics run the other way, and are not turned round, in a sentence; nothing where there is none."""
        names = [name for name in self.metrics if not facts(name).higher_is_better]
        if not names:
            return ""
        return f"Of {listed(names)} lower is better; {'it is' if len(names) == 1 else 'they are'} not turned round."


def metric_correlations(scores: Scores | ScoreIndex, protocol: str = "all") -> Correlations:
    """The correlations of the metrics of a table, under one protocol; rows under label noise are left out.

    Taken are the configurations and metrics that fill the largest whole table, so a re-ranking that has only P@k
    does not cost the others their metrics. Metrics that are the same for every configuration are left out.
    InputError with fewer than four configurations or two metrics that vary.
    """
    index = as_index(scores)
    means = {name: mean_over_subsets(index.values(name, protocol)) for name in index.metrics}
    metrics, lines = _whole(means, index.representations)
    if len(lines) < FEWEST:
        raise InputError(
            f"Metrics are correlated across at least {FEWEST} configurations (system and distance); "
            f"the table has {len(lines)}."
        )
    table = np.round([[means[name][line] for name in metrics] for line in lines], _DIGITS)
    varies = np.ptp(table, axis=0) > 0
    if varies.sum() < 2:
        raise InputError("Fewer than two metrics differ between configurations: there is nothing to correlate.")
    kept = tuple(name for name, good in zip(metrics, varies, strict=True) if good)
    matrix = rank_correlations(table[:, varies], table[:, varies])
    np.fill_diagonal(matrix, 1.0)
    return Correlations(kept, matrix, tuple(lines))


def _whole(
    means: dict[str, dict[Representation, float]], lines: list[Representation]
) -> tuple[list[str], list[Representation]]:
    """The set of metrics that some configuration has, with all that have it, for which there are the most values."""
    owned = {line: frozenset(name for name in means if line in means[name]) for line in lines}

    def having(names: frozenset[str]) -> list[Representation]:
        return [line for line in lines if names <= owned[line]]

    def size(names: frozenset[str]) -> tuple[bool, int]:
        found = len(having(names))
        return found >= FEWEST and len(names) > 1, found * len(names)

    best = max(dict.fromkeys(owned.values()), key=size, default=frozenset())
    return [name for name in means if name in best], having(best) if best else []
