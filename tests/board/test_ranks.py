"""Means against the score table, and ranks that are those of the analysis room."""

from __future__ import annotations

import numpy as np
import pytest

from earmark import published
from earmark.analysis.ranks import rank_models
from earmark.analysis.sources import open_matrix
from earmark.analysis.study import analyze
from earmark.board.boards.changes import plain_ranks
from earmark.board.boards.outlook import _places
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import table
from earmark.board.boards.view import BoardView
from earmark.definitions import BoardMetric, BoardSubset, Definition, SubsetGroup
from earmark.scores import Row, Scores, aggregate


@pytest.mark.parametrize(("metric", "distance"), [("P@1", "cosine"), ("GSR", "euclidean"), ("CS", "spearman")])
def test_board_and_analysis_rank_alike_with_the_same_intervals(metric: str, distance: str) -> None:
    scores = published.load("vocsim", with_repeats=True).select(distance=distance, metric=metric)
    snapshot = Snapshot.of_scores("vocsim", scores, provenance="printed")
    field = snapshot.field(metric, "mean", setting=distance)
    names = [snapshot.systems[place].card.name for place in field.systems.tolist()]
    ours = {
        name: (int(rank), int(low), int(high), pytest.approx(mean))
        for name, rank, low, high, mean in zip(
            names, field.ranks.rank, field.ranks.low, field.ranks.high, field.means.value, strict=True
        )
        if rank
    }
    # Chance levels do not count: the mean is the one that the table prints.
    theirs = rank_models(open_matrix(scores, metric=metric).matrix)
    assert {row.model: (row.rank, row.low, row.high, row.score) for row in theirs.rows} == ours
    assert len(ours) > 30


def test_analyze_ranks_a_score_table_as_the_board_does() -> None:
    scores = published.load("vocsim").select(distance="cosine", metric="P@1")
    small = Scores(tuple(row for row in scores if row.system.endswith("D100")))
    study = analyze(small, metric="P@1", random_orders=0)
    assert study.ranks is not None
    field = Snapshot.of_scores("vocsim", small, provenance="printed").field("P@1", "mean", setting="cosine")
    assert sorted((row.rank, row.low, row.high) for row in study.ranks.rows) == sorted(
        zip(*(getattr(field.ranks, name).tolist() for name in ("rank", "low", "high")), strict=True)
    )


def test_lower_may_be_better() -> None:
    codecs = published.load("codec-superb").select(metric="wer")
    field = Snapshot.of_scores("codec-superb", codecs).field("wer")
    assert field.means.value[int(np.argmin(np.where(field.ranks.rank > 0, field.ranks.rank, 99)))] == min(
        field.means.value
    )


def test_means_are_those_of_the_score_table() -> None:
    scores = Scores(tuple(row for row in published.load("vocsim-dtw") if row.single))
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


def test_categories_of_codec_superb_are_the_papers_harmonic_means() -> None:
    snapshot = Snapshot.of_scores("codec-superb", published.load("codec-superb"))
    printed = {
        (row.system, row.subset.removeprefix("mean:")): row.value
        for row in published.load("codec-superb").select(metric="overall")
        if row.subset.startswith("mean:")
    }
    for category in ("speech", "audio", "music"):
        field = snapshot.field("overall", category)
        panel = snapshot.panel("overall")
        assert "harmonic mean" in field.group.title
        of = {}
        for row, value, rank in zip(field.rows.tolist(), field.means.value, field.ranks.rank, strict=True):
            system = snapshot.systems[snapshot.lines[panel.lines[row]].system].card.name
            values = panel.measured()[row, panel.columns(field.group.subsets)]
            assert value == pytest.approx(len(values) / sum(1 / values), abs=1e-12)
            of[system] = (float(value), int(rank))
            if category != "music":  # NSynth, which enters it, is not printed
                assert value == pytest.approx(printed[system, category], abs=0.0015)
        # Ranks are those of the means that are shown.
        assert all((a[0] > b[0]) == (a[1] < b[1]) for a in of.values() for b in of.values() if abs(a[0] - b[0]) > 1e-9)
    assert not snapshot.group("kbps").harmonic


def test_the_interval_of_a_harmonic_mean_follows_its_first_derivative() -> None:
    from earmark.board.boards.panels import means

    value = np.array([[0.2, 0.8, 0.4], [0.5, 0.5, 0.5], [0.3, 0.6, np.nan]])
    width = np.array([[0.002, 0.001, 0.003]] * 3)
    found = means(value, value - width, value + width, np.full((3, 3), 0.1), harmonic=True)
    rng = np.random.default_rng(0)
    drawn = value[0] + width[0] * rng.normal(size=(20_000, 3))
    assert (found.high - found.value)[0] == pytest.approx(np.std(3 / (1 / drawn).sum(axis=1)), rel=0.03)
    assert found.value[1] == pytest.approx(0.5)
    assert found.value[2] == pytest.approx(0.4)  # of the two that it has
    assert found.have.tolist() == [3, 3, 2]
    assert np.isnan(found.lift).all()


def test_a_harmonic_mean_of_nothing_is_last_and_a_negative_value_has_none() -> None:
    group = SubsetGroup("mean", subsets=tuple("abcd"), harmonic=("P@1",))
    definition = Definition("mine", metrics=(BoardMetric("P@1"),), subsets=tuple(map(BoardSubset, "abcd")),
                            groups=(group,), rank_by=("mean",))  # fmt: skip
    values = {
        "Z": (0.9, 0.9, 0.9, 0.0), "Y": (0.1, 0.2, 0.0, 0.0), "T": (0.9, 1e-308, 1e-308, 0.9),
        "P": (0.5, 0.5, 0.4, 0.5), "Q": (0.2, 0.2, 0.2, 0.2), "N": (0.9, 0.9, 0.9, -0.5),
    }  # fmt: skip
    rows = tuple(
        Row(suite="mine", subset=subset, system=name, metric="P@1", value=value, low=value - 0.01, high=value + 0.01)
        for name, own in values.items() for subset, value in zip("abcd", own, strict=True)
    )  # fmt: skip
    snapshot = Snapshot.of_scores("mine", Scores(rows), definition=definition)
    shown = {row.system.card.name: row for row in table(snapshot, BoardView.parse(snapshot, [])).rows}
    assert {name: row.rank for name, row in shown.items()} == {"P": 1, "Q": 2, "Z": 3, "Y": 3, "T": 3, "N": 0}
    for name in "ZYT":
        assert shown[name][5:8] == (0, 0, 0)  # no interval and no tier
        assert (shown[name].cells[0].value, shown[name].cells[0].low) == (0.0, None)
        assert shown[name].unranked == ""
    assert (shown["P"].rank_low, shown["P"].rank_high, shown["Q"].tier) == (1, 4, 2)
    assert shown["N"].unranked == "no rank: has no harmonic mean: −0.5 on d"
    assert shown["N"].cells[0].value is None
    assert shown["N"].cells[0].reason == "no harmonic mean: a value is negative"


def test_ranks_are_of_their_systems_where_systems_have_several_settings() -> None:
    board = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    page = table(board, BoardView.parse(board, [("per", "all")]))
    shown = {row.system.slug: row.rank for row in page.rows}
    assert plain_ranks(board) == shown
    places, _ = _places(board, "P@1")
    assert {name: place.rank for name, place in places.items()} == {row.system.card.name: row.rank for row in page.rows}
    assert len(shown) > 30
