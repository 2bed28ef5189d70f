"""Paired differences, fronts and saturation against slow definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from tests.board.scored import SUBSETS, scores, snapshot
from tests.board.test_blind import One

from earmark import published
from earmark.analysis.ranks import paired_mean
from earmark.board.boards import BoardView, table
from earmark.board.boards.contents import NoSuchSystem
from earmark.board.boards.costs import pareto
from earmark.board.boards.pairs import _harmonic, compare
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.subsets import saturation, summarise
from earmark.board.pages.assets import page_templates
from earmark.board.pages.boards import Reader, Source
from earmark.board.pages.comparisons import compare_page, pareto_page
from earmark.board.pages.files import comparison_records
from earmark.board.records import slug_of
from earmark.definitions import BoardMetric, BoardSubset, Definition, SubsetGroup
from earmark.errors import EarmarkError, UsageError
from earmark.scores import Row, Scores
from earmark.submissions import SystemCard

WHOLE = snapshot()


def test_differences_are_means_of_differences_over_common_subsets() -> None:
    found = compare(WHOLE, ["model-0:euclidean", "model-2:euclidean", "model-5:cosine"])
    table = {(row.system, row.distance, row.subset): row.value for row in scores().select(metric="P@1", status="ok")}
    keys = [("model 0", "euclidean"), ("model 2", "euclidean"), ("model 5", "cosine")]
    for pair in found.differences:
        one, other = keys[pair.one], keys[pair.other]
        apart = [table[(*one, s)] - table[(*other, s)] for s in SUBSETS if (*one, s) in table and (*other, s) in table]
        assert pair.subsets == len(apart)
        assert pair.mean == pytest.approx(np.mean(apart))
        assert (pair.better, pair.worse) == (sum(a > 0 for a in apart), sum(a < 0 for a in apart))
    assert [pair.subsets for pair in found.differences] == [4, 3, 4]


def _definition(subsets: str, *, harmonic: bool = False) -> Definition:
    group = SubsetGroup("mean", subsets=tuple(subsets), harmonic=("P@1",) if harmonic else ())
    return Definition(
        "mine", metrics=(BoardMetric("P@1"),), subsets=tuple(map(BoardSubset, subsets)), groups=(group,),
        rank_by=("mean",),
    )  # fmt: skip


def _board(
    values: dict[str, dict[str, float]], subsets: str, *, width: float = 0.0, harmonic: bool = False
) -> Snapshot:
    rows = (
        Row(suite="mine", subset=subset, system=name, metric="P@1", value=value,
            **({"low": value - width, "high": value + width} if width else {}))
        for name, own in values.items() for subset, value in own.items()
    )  # fmt: skip
    return Snapshot.of_scores("mine", Scores(tuple(rows)), definition=_definition(subsets, harmonic=harmonic))


def _page(board: Snapshot, keys: list[str]) -> str:
    reader = Reader(Source(One(board)), page_templates("Board"))
    return str(compare_page(reader, "mine", [("s", key) for key in keys]).body.decode())


def test_leaving_subsets_out_gives_no_verdict() -> None:
    hard = dict(zip("abcdef", (0.9, 0.85, 0.95, 0.2, 0.25, 0.3), strict=True))
    easy = {subset: hard[subset] + 0.01 + 0.001 * place for place, subset in enumerate("abc")}
    board = _board({"h": hard, "cherry": easy}, "abcdef")
    (pair,) = compare(board, ["cherry", "h"]).differences
    assert (pair.subsets, pair.p, pair.low, pair.high, pair.sure) == (3, None, None, None, False)
    assert pair.mean == pytest.approx(0.011)
    assert pair.reason == "cannot be told: they share 3 of 6 subsets; compare over those"
    (shared,) = compare(board, ["cherry", "h"], over=pair.shared).differences
    assert (shared.subsets, shared.reason, shared.shared) == (3, "", "")
    assert shared.sure
    records = comparison_records(compare(board, ["cherry", "h"]))
    assert records[0]["reason"] == pair.reason
    page = _page(board, ["cherry", "h"])
    assert "compare?s=cherry&amp;s=h&amp;metric=P%401&amp;over=subsets%3Aa%2Cb%2Cc" in page
    assert "only 3 of 6 shared" in page
    assert 'class="n sure"' not in page


def test_harmonic_means_are_compared_as_they_are_ranked() -> None:
    subsets = "abcdefghijkl"
    board = _board(
        {"A": {**dict.fromkeys(subsets, 0.9), "l": 0.02}, "B": dict.fromkeys(subsets, 0.3)}, subsets, harmonic=True
    )
    assert [row.system.slug for row in table(board, BoardView.parse(board, [])).rows] == ["b", "a"]
    (pair,) = compare(board, ["a", "b"]).differences
    assert pair.mean == pytest.approx(12 / (11 / 0.9 + 1 / 0.02) - 0.3)
    assert (pair.better, pair.worse, pair.low, pair.high) == (11, 1, None, None)
    theirs = stats.ttest_rel([-1 / 0.9] * 11 + [-1 / 0.02], [-1 / 0.3] * 12)
    assert pair.p == pytest.approx(min(1.0, 15 * theirs.pvalue))
    assert not pair.sure
    page = _page(board, ["a", "b"])
    assert "the difference of their harmonic means" in page
    assert f"−{100 * -pair.mean:.1f}<small>p = 1</small>" in page


@pytest.mark.parametrize("subsets", ["ab", "abcde"])
def test_a_sure_difference_of_harmonic_means_has_the_direction_of_the_table(subsets: str) -> None:
    """On boards of unlike systems: what is sure is ranked in that order, and equal ones are rarely told apart."""
    rng = np.random.default_rng(3)
    sure = 0
    for _ in range(200):
        skill = rng.uniform(0.2, 0.9, (2, 1)) + rng.normal(0, 0.02, (2, len(subsets)))
        values = {name: dict(zip(subsets, own.tolist(), strict=True)) for name, own in zip("pq", skill, strict=True)}
        board = _board(values, subsets, width=0.04, harmonic=True)
        (pair,) = compare(board, ["p", "q"]).differences
        ranks = [one.rank for one in compare(board, ["p", "q"]).compared]
        assert (pair.mean > 0) == (ranks[0] < ranks[1])
        sure += pair.sure
    assert 50 < sure < 200


@pytest.mark.parametrize("subsets", [2, 5, 12])
def test_equal_harmonic_means_are_told_apart_on_few_pages(subsets: int) -> None:
    """Two systems whose 1 / value is drawn from one law, 15 pairs' worth of correction: at most 5 % / 15 wrong."""
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(4000):
        drawn = 1 / (2 + 0.1 * rng.normal(size=(subsets, 2)))
        found = _harmonic(drawn, np.full((subsets, 2), 0.1 * 0.25))
        wrong += found[3] < 0.05
    assert wrong / 4000 <= 0.05 / 15 + 2 * np.sqrt(0.05 / 15 / 4000)


@pytest.mark.parametrize(("least", "mean"), [(0.0, -0.5), (-0.5, None)])
def test_a_harmonic_mean_without_a_test_gives_no_verdict(least: float, mean: float | None) -> None:
    board = _board({"z": {"a": 0.9, "b": 0.9, "c": least}, "y": dict.fromkeys("abc", 0.5)}, "abc", harmonic=True)
    (pair,) = compare(board, ["z", "y"]).differences
    assert (pair.mean, pair.p, pair.sure) == (mean, None, False)
    assert pair.reason.startswith("cannot be told: a harmonic mean with ")


def test_intervals_and_p_values_are_scipys_for_15_pairs() -> None:
    whole = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    rows = published.load("vocsim").select(metric="P@1", status="ok")
    printed = {(row.system, row.distance, row.subset): row.value for row in rows}
    for other in ("M", "EMTF D100"):
        pair = compare(whole, ["ewmtf-d100:spearman", f"{slug_of(other, ())}:cosine"], over="public").differences[0]
        values = [[printed[name, distance, s] for s in whole.group("P@1", "public").subsets]
                  for name, distance in (("EWMTF D100", "spearman"), (other, "cosine"))]  # fmt: skip
        theirs = stats.ttest_rel(*values)
        ends = theirs.confidence_interval(1 - 0.05 / 15)
        assert (pair.low, pair.high) == (pytest.approx(ends.low), pytest.approx(ends.high))
        assert pair.p == pytest.approx(min(1.0, 15 * theirs.pvalue))
        assert pair.sure == (pair.p < 0.05)


def test_a_verdict_does_not_depend_on_the_company() -> None:
    whole = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    slugs = [row.system.slug for row in table(whole, BoardView.parse(whole, [("over", "public")])).rows[:9]]
    alone = {pair: compare(whole, pair, over="public").differences[0] for pair in itertools.combinations(slugs, 2)}
    for start in range(4):
        company = slugs[start : start + 6]
        for each in compare(whole, company, over="public").differences:
            other = alone[company[each.one], company[each.other]]
            assert each[2:] == other[2:]
            turned = compare(whole, [company[each.other], company[each.one]], over="public").differences[0]
            assert turned.mean == pytest.approx(-each.mean)
            assert turned.p == pytest.approx(each.p)


@pytest.mark.parametrize("subsets", [3, 5, 19])
@pytest.mark.parametrize("law", ["normal", "heavy"])
def test_equal_systems_are_told_apart_on_few_pages(subsets: int, law: str) -> None:
    """Six systems that are truly equal: on at most 5 % of the pages any of the 15 verdicts is sure."""
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(2000):
        noise = rng.normal(size=(6, subsets)) if law == "normal" else rng.standard_t(3, (6, subsets))
        values = rng.normal(0, 0.2, subsets) + 0.05 * noise
        pairs = (values[one] - values[other] for one, other in itertools.combinations(range(6), 2))
        wrong += any(found.p < 0.05 for found in (paired_mean(apart, pairs=15) for apart in pairs))
    assert wrong / 2000 <= 0.05 + 0.01  # two standard errors of the simulation


def test_with_fewer_than_three_subsets_the_errors_of_the_scores_decide() -> None:
    def rows(subsets: str, **ends: float) -> Snapshot:
        some = (
            Row(suite="mine", subset=subset, system=name, metric="P@1", value=value, **shifted(value, **ends))
            for name, value in (("a", 0.9), ("b", 0.5))
            for subset in subsets
        )
        return Snapshot.of_scores("mine", Scores(tuple(some)))

    def shifted(value: float, low: float = 0.0, high: float = 0.0) -> dict[str, float]:
        return {"low": value - low, "high": value + high} if low else {}

    (narrow,) = compare(rows("xy", low=0.02, high=0.02), ["a", "b"]).differences
    error = 0.04 / (2 * 1.959964) * 2 / 2  # four scores, two of each system, over the two subsets
    assert narrow.high == pytest.approx(0.4 + stats.norm.isf(0.05 / 30) * error, rel=1e-4)
    assert narrow.sure
    (unknown,) = compare(rows("xy"), ["a", "b"]).differences
    assert (unknown.mean, unknown.low, unknown.p, unknown.sure) == (pytest.approx(0.4), None, None, False)
    (same,) = compare(rows("xyz"), ["a", "b"]).differences
    assert (same.p, same.sure) == (0.0, True)


def test_ranks_beside_a_comparison_are_those_of_the_board() -> None:
    of_board = {row.system.slug: row for row in table(WHOLE, BoardView.parse(WHOLE, [])).rows}
    for one in compare(WHOLE, ["model-1", "model-2", "model-2:cosine", "model-2:euclidean"]).compared:
        row = of_board[one.system.slug]
        same = one.chosen == row.chosen or row.setting == one.setting
        assert (one.rank, one.tier) == ((row.rank, row.tier) if same else (0, 0))
        if same:
            assert one.mean.value == row.cells[0].value


@pytest.mark.parametrize("keys", [[], ["model-1"], ["model-1", "model-1"], [f"model-{n}" for n in range(6)] + ["x"]])
def test_a_comparison_takes_two_to_six(keys: list[str]) -> None:
    with pytest.raises(EarmarkError):
        compare(WHOLE, keys)


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(NoSuchSystem, match="no system"):
        compare(WHOLE, ["model-1", "nobody"])
    with pytest.raises(NoSuchSystem, match="under manhattan"):
        compare(WHOLE, ["model-1:manhattan", "model-2"])


@pytest.mark.parametrize("metric", ["P@1", "CS"])
def test_a_front_is_what_nobody_beats(metric: str) -> None:
    rng = np.random.default_rng(5)
    costs = rng.integers(1, 20, size=60)
    values = rng.uniform(size=60).round(1)
    rows = tuple(
        Row(system=f"s{n}", subset=subset, metric=metric, value=float(values[n])) for n in range(60) for subset in "abc"
    )
    cards = {f"s{n}": SystemCard(f"s{n}", parameters_m=None if n == 7 else float(costs[n])) for n in range(60)}
    found = pareto(Snapshot.of_scores("mine", Scores(rows), cards), "parameters", metric=metric)
    assert (len(found.points), len(found.without)) == (59, 1)
    sign = 1 if metric == "P@1" else -1
    for point in found.points:
        beaten = any(
            (other.x <= point.x and sign * other.y > sign * point.y + 1e-12)
            or (other.x < point.x and sign * other.y >= sign * point.y - 1e-12)
            for other in found.points
        )
        assert point.front == (not beaten)


def test_who_has_no_cost_is_named_the_best_first() -> None:
    found = pareto(WHOLE, "parameters")
    assert [card.name for card, _ in found.without] == ["model 3"]
    ranks = {row.system.card.name: row.rank for row in table(WHOLE, BoardView.parse(WHOLE, ())).rows}
    page = pareto_page(Reader(Source(One(WHOLE)), page_templates("Board")), "mine", [("x", "parameters")]).body.decode()
    assert f"1 ranked system states no parameters and is not shown: model 3 (rank {ranks['model 3']})." in page


def test_codecs_are_placed_by_the_rate_that_rows_or_cards_state() -> None:
    whole = Snapshot.of_scores("codec-superb", published.load("codec-superb"))
    found = pareto(whole)
    assert found.axis.key == "kbps"
    assert {point.system.card.name: point.x for point in found.points}["E5"] == 24.0
    with pytest.raises(UsageError, match="no cost"):
        pareto(whole, "money")
    # A card that says otherwise than the rows is not believed; one without rows is.
    rows = [Row(system="only stated", subset=row.subset, metric=row.metric, value=row.value, protocol=row.protocol)
            for row in published.load("codec-superb") if row.system == "E5" and row.metric != "kbps"]  # fmt: skip
    cards = {"E5": SystemCard("E5", kbps=1.0), "only stated": SystemCard("only stated", kbps=2.0)}
    both = Snapshot.of_scores("codec-superb", Scores((*published.load("codec-superb").rows, *rows)), cards)
    placed = {point.system.card.name: (point.x, point.stated) for point in pareto(both).points}
    assert placed["E5"] == (24.0, False)
    assert placed["only stated"] == (2.0, True)


def test_saturation_tells_solved_from_open() -> None:
    assert saturation("P@1", np.array([1.0] * 5 + [0.9] * 5))[:2] == (5, "saturated")
    assert saturation("P@1", np.array([0.99] + [0.5] * 20))[:2] == (1, "nearly solved")
    assert saturation("P@1", np.array([0.8] * 5 + [0.7] * 10))[:2] == (5, "crowded")
    assert saturation("P@1", np.array([0.8, 0.7, 0.6]))[:2] == (1, "open")
    sentence = saturation("P@1", np.array([0.845, 0.6]))[2]
    assert sentence.startswith("The best value, 84.5\u00a0%, leaves 15.5 points to the possible;")
    assert saturation("CS", np.array([0.0, 0.0, 0.5]))[:2] == (2, "saturated")
    assert saturation("si_sdr", np.array([9.0, 2.0]))[1] == "open-ended"


def test_a_subset_lists_every_system_with_the_rank_that_the_table_gives_it() -> None:
    found = summarise(WHOLE, "cats", metric="CS")
    view = BoardView.parse(WHOLE, [("metric", "CS"), ("over", "subset:cats")])
    rows = [row for row in table(WHOLE, view).rows if row.rank]
    assert [
        (one.system.slug, one.value, one.rank, one.rank_low, one.rank_high, one.tier) for one in found.standings
    ] == [(row.system.slug, row.cells[0].value, row.rank, row.rank_low, row.rank_high, row.tier) for row in rows]
    assert found.best == min(one.value for one in found.standings)
    assert found.median == pytest.approx(np.median([one.value for one in found.standings]))
    facts = dict(summarise(Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed"), "BC").facts)
    assert facts["Clips"] == "3,321"
    with pytest.raises(EarmarkError, match='Did you mean "cats"'):
        summarise(WHOLE, "cat")
