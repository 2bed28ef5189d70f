"""Paired differences, fronts and saturation against slow definitions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.board.scored import SUBSETS, scores, snapshot

from earmark import published
from earmark.board.boards.costs import pareto
from earmark.board.boards.pairs import compare
from earmark.board.boards.snapshot import NoSuchSystem, Snapshot
from earmark.board.boards.subsets import saturation, summarise
from earmark.board.pages.figures import pareto_figure
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
        assert pair.low is not None
        assert pair.high is not None
        assert min(apart) <= pair.low <= np.mean(apart) <= pair.high <= max(apart)
    assert [pair.subsets for pair in found.differences] == [4, 3, 4]


def test_an_interval_covers_what_the_bootstrap_of_scipy_covers() -> None:
    from scipy.stats import bootstrap

    whole = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    pair = compare(whole, ["ewmtf-d100:spearman", "m:cosine"]).differences[0]
    table = {(row.system, row.distance, row.subset): row.value for row in published.load("vocsim").select(metric="P@1")}
    apart = [table["EWMTF D100", "spearman", s] - table["M", "cosine", s] for s in whole.group("P@1").subsets]
    theirs = bootstrap((apart,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(0))
    assert pair.low == pytest.approx(theirs.confidence_interval.low, abs=0.01)
    assert pair.high == pytest.approx(theirs.confidence_interval.high, abs=0.01)


def test_ranks_beside_a_comparison_are_those_of_the_board() -> None:
    ranked = WHOLE.field("P@1")
    lines = WHOLE.panel("P@1").lines[ranked.rows].tolist()
    of_board = {
        WHOLE.systems[WHOLE.lines[n].system].slug: int(r) for n, r in zip(lines, ranked.ranks.rank, strict=True)
    }
    best = {WHOLE.systems[WHOLE.lines[n].system].slug: WHOLE.lines[n].setting for n in lines}
    for one in compare(WHOLE, ["model-1", "model-2", "model-2:cosine", "model-2:euclidean"]).compared:
        assert one.rank == (of_board[one.system.slug] if best[one.system.slug] == one.setting else 0)


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
    assert (len(found.points), found.without) == (59, 1)
    sign = 1 if metric == "P@1" else -1
    for point in found.points:
        beaten = any(
            (other.x <= point.x and sign * other.y > sign * point.y + 1e-12)
            or (other.x < point.x and sign * other.y >= sign * point.y - 1e-12)
            for other in found.points
        )
        assert point.front == (not beaten)


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


def test_a_figure_names_the_front_and_ends_at_the_possible() -> None:
    cards = {f"model {n}": SystemCard(f"model {n}", parameters_m=float(9 - n)) for n in range(6)}
    front = pareto(Snapshot.of_scores("mine", scores(), cards), "parameters")
    drawn = pareto_figure(front)
    on, others, line = drawn["data"]
    assert [on["name"], others["name"]] == ["on the front", "others"]
    assert len(on["x"]) + len(others["x"]) == len(front.points)
    assert line["text"] == [point.system.card.name for point in front.points if point.front]
    assert line["textposition"][-1] == "top left"  # into the figure
    assert drawn["layout"]["showlegend"]
    assert drawn["layout"]["yaxis"]["maxallowed"] == 100
    codecs = pareto(Snapshot.of_scores("codec-superb", published.load("codec-superb")))
    json.dumps(pareto_figure(codecs), allow_nan=False)  # metrics without a limit set none


def test_saturation_tells_solved_from_open() -> None:
    assert saturation("P@1", np.array([1.0] * 5 + [0.9] * 5))[:2] == (5, "saturated")
    assert saturation("P@1", np.array([0.99] + [0.5] * 20))[:2] == (1, "nearly solved")
    assert saturation("P@1", np.array([0.8] * 5 + [0.7] * 10))[:2] == (5, "crowded")
    assert saturation("P@1", np.array([0.8, 0.7, 0.6]))[:2] == (1, "open")
    assert saturation("CS", np.array([0.0, 0.0, 0.5]))[:2] == (2, "saturated")
    assert saturation("si_sdr", np.array([9.0, 2.0]))[1] == "open-ended"


def test_a_subset_lists_every_system_under_its_best_setting_there() -> None:
    found = summarise(WHOLE, "cats", metric="CS")
    rows = scores().select(metric="CS", subset="cats", status="ok").rows
    least = {name: min(row.value or 0 for row in rows if row.system == name) for name in {row.system for row in rows}}
    assert [(one.system.card.name, one.value) for one in found.standings] == sorted(least.items(), key=lambda kv: kv[1])
    assert found.best == min(least.values())
    assert found.median == pytest.approx(np.median(list(least.values())))
    facts = dict(summarise(Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed"), "BC").facts)
    assert facts["Clips"] == "3,321"
    with pytest.raises(EarmarkError, match='Did you mean "cats"'):
        summarise(WHOLE, "cat")
