"""Means and ranks against slow definitions, the analysis room, and properties that any ranking must have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from earmark import published
from earmark.analysis.matrix import from_scores
from earmark.analysis.ranks import rank_intervals as ranks_of_analysis
from earmark.board.ranks import means, rank_intervals
from earmark.board.snapshot import Snapshot
from earmark.scores import aggregate

NOTHING = np.full((30, 6), np.nan)


def _ranked(values: np.ndarray, low: np.ndarray | None = None, high: np.ndarray | None = None, **options: object):  # type: ignore[no-untyped-def]
    none = np.full(values.shape, np.nan)
    of = means(values, none if low is None else low, none if high is None else high, none)
    return rank_intervals(values, of, **{"higher_is_better": True, **options})


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_intervals_are_those_of_a_slow_bootstrap(higher_is_better: bool) -> None:
    values = np.random.default_rng(1).uniform(size=(30, 6)).round(2)
    found = _ranked(values, higher_is_better=higher_is_better, draws=200, seed=7)
    sign = 1 if higher_is_better else -1
    rng = np.random.default_rng(7)
    places = []
    for weights in rng.multinomial(6, [1 / 6] * 6, size=200):
        drawn = [sum(w * v for w, v in zip(weights, line, strict=True)) / 6 for line in values]
        places.append(rankdata(-sign * np.round(drawn, 9), method="min"))
    sorted_places = np.sort(np.array(places, int), axis=0)
    rank = rankdata(-sign * values.mean(axis=1).round(9), method="min")
    assert (found.rank == rank).all()
    # The 5th of 200 is the first that leaves 2.5 % below, the 195th the first that leaves 2.5 % above.
    assert (found.low == np.minimum(sorted_places[4], rank)).all()
    assert (found.high == np.maximum(sorted_places[194], rank)).all()
    assert found.resampled
    assert not found.shaken.any()


def test_ranks_are_those_of_the_analysis_room_on_the_printed_table() -> None:
    scores = published.load("vocsim").select(distance="cosine")
    snapshot = Snapshot.of_scores("vocsim", scores)
    field = snapshot.field("P@1", "mean", setting="cosine")
    lines = snapshot.panel("P@1").lines[field.rows]
    ours = {snapshot.systems[snapshot.lines[n].system].card.name: int(r) for n, r in zip(lines, field.ranks.rank)}  # noqa: B905
    theirs = ranks_of_analysis(from_scores(scores, "P@1", chance=0.0))
    assert {row.model: row.rank for row in theirs.rows} == ours


def test_means_are_those_of_the_score_table() -> None:
    scores = published.load("vocsim-pooling")
    whole = Snapshot.of_scores("mine", scores)
    group = whole.group("P@1")
    found = whole.means("P@1", group)
    by_name = {(row.system, row.distance): row for row in aggregate(scores.select(metric="P@1"), "mean")}
    for row, number in enumerate(whole.panel("P@1").lines.tolist()):
        line = whole.lines[number]
        expected = by_name[whole.systems[line.system].card.name, line.distance]
        assert found.value[row] == pytest.approx(expected.value, abs=1e-12)


def test_the_interval_of_a_mean_is_that_of_the_score_table() -> None:
    from tests.board.scored import scores, snapshot

    whole = snapshot()
    found = whole.means("P@1", whole.group("P@1"))
    table = aggregate(scores().select(metric="P@1"), "mean")
    by_name = {(row.system, row.distance): row for row in table}
    for row, number in enumerate(whole.panel("P@1").lines.tolist()):
        line = whole.lines[number]
        expected = by_name[whole.systems[line.system].card.name, line.distance]
        assert found.value[row] == pytest.approx(expected.value, abs=1e-12)
        assert found.low[row] == pytest.approx(expected.low, abs=1e-12)
        assert found.high[row] == pytest.approx(expected.high, abs=1e-12)
        assert found.lift[row] == pytest.approx(expected.lift, abs=1e-12)


def test_who_is_better_everywhere_is_ahead_in_every_draw() -> None:
    values = np.random.default_rng(2).uniform(0.2, 0.8, size=(12, 5))
    values[3] = values.max(axis=0) + 0.05
    values[8] = values.min(axis=0) - 0.05
    found = _ranked(values)
    assert (found.rank[3], found.low[3], found.high[3]) == (1, 1, 1)
    assert (found.rank[8], found.low[8], found.high[8]) == (12, 12, 12)
    assert (found.low <= found.rank).all()
    assert (found.rank <= found.high).all()


def test_equals_share_a_rank_and_a_gap_has_none() -> None:
    values = np.array([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7], [0.5, 0.5, 0.5], [1.0, 1.0, np.nan]])
    found = _ranked(values)
    assert found.rank.tolist() == [1, 1, 3, 0]
    assert found.low.tolist() == [1, 1, 3, 0]
    assert found.high.tolist() == [1, 1, 3, 0]


def test_measurement_errors_widen_ranks_and_alone_give_them() -> None:
    values = np.linspace(0.3, 0.7, 20)[:, None] * np.ones(4)
    sure = _ranked(values)
    shaken = _ranked(values, values - 0.1, values + 0.1)
    assert (sure.low == sure.rank).all()  # equal on every subset: no choice of subsets changes anything
    assert (shaken.high - shaken.low).mean() > 2
    alone = _ranked(values[:, :1], values[:, :1] - 0.1, values[:, :1] + 0.1)
    assert not alone.resampled
    assert (alone.high > alone.low).all()
    nothing = _ranked(values[:, :1])
    assert nothing.rank.tolist() == list(range(20, 0, -1))
    assert not nothing.low.any()
    assert not nothing.high.any()


def test_the_order_of_lines_does_not_matter() -> None:
    values = np.random.default_rng(3).uniform(size=(15, 6))
    order = np.random.default_rng(4).permutation(15)
    one, other = _ranked(values), _ranked(values[order])
    assert (one.rank[order] == other.rank).all()
    assert (one.low[order] == other.low).all()
    assert (one.high[order] == other.high).all()
