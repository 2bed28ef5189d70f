"""Means over subsets of a reader's choice: the address, the values, the ranks, and what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import numpy as np
import pytest
from tests.board.hosted import hosted
from tests.board.scored import SUBSETS, cards, scores, snapshot

from earmark.analysis.ranks import rank_intervals
from earmark.board.boards import BoardView, Snapshot, compare, pareto, table
from earmark.board.boards.table import TablePage
from earmark.errors import UsageError
from earmark.scores import Row, Scores
from earmark.submissions import Document

WHOLE = snapshot()


def _shown(query: str, whole: Snapshot = WHOLE) -> TablePage:
    return table(whole, BoardView.parse(whole, parse_qsl(query, keep_blank_values=True)))


def test_the_address_is_the_same_in_any_order_and_survives() -> None:
    for names in itertools.permutations(("birds", "rain", "cats")):
        view = BoardView.parse(WHOLE, [("over", f"subsets:{','.join(names)},{names[0]}")])
        assert view.query() == "over=subsets:birds,cats,rain"
        assert BoardView.parse(WHOLE, parse_qsl(view.query())) == view
    boxes = [("over", "subsets"), ("subset", "rain"), ("subset", "birds")]
    assert BoardView.parse(WHOLE, boxes).over == "subsets:birds,rain"
    assert BoardView.parse(WHOLE, boxes[1:]).over == "subsets:birds,rain"
    assert BoardView.parse(WHOLE, [("over", "subsets:dogs")]).over == "subset:dogs"


def test_names_with_commas_survive() -> None:
    names = ("a,b", "50%2C", "c")
    rows = (Row(suite="mine", subset=name, system=s, metric="P@1", value=0.5) for name in names for s in "xyz")
    whole = Snapshot.of_scores("mine", Scores(tuple(rows)))
    view = BoardView.parse(whole, [("subset", "a,b"), ("subset", "50%2C")])
    assert set(whole.group("P@1", view.over).subsets) == {"a,b", "50%2C"}
    assert BoardView.parse(whole, parse_qsl(view.query())) == view


def test_ranks_intervals_and_tiers_are_those_of_the_chosen_subsets() -> None:
    chosen = ("cats", "dogs", "rain", "doors")
    page = _shown(f"setting=cosine&over=subsets:{','.join(chosen)}")
    table_of = {(row.system, row.subset): row.value for row in scores().select(metric="P@1", distance="cosine")}
    whole = [row for row in page.rows if row.rank]
    names = sorted(row.system.card.name for row in whole)
    values = np.array([[table_of[name, subset] for subset in chosen] for name in names])
    expected = rank_intervals(values)
    for row in whole:
        at = names.index(row.system.card.name)
        assert row.cells[0].value == pytest.approx(values[at].mean())
        assert (row.rank, row.rank_low, row.rank_high, row.tier) == tuple(int(part[at]) for part in expected[:4])
    assert [row.system.slug for row in page.rows if not row.rank] == ["model-5"]  # which lacks rain
    without = _shown("setting=cosine&over=subsets:cats,dogs,doors")
    assert all(row.rank for row in without.rows)


def test_comparison_cost_and_other_metrics_are_over_the_same_subsets() -> None:
    over = "subsets:cats,dogs,rain"
    page = _shown(f"over={over}&show=metrics&setting=cosine")
    other = _shown(f"over={over}&metric=CS&setting=cosine")
    by_slug = {row.system.slug: row.cells[0].value for row in other.rows}
    assert {row.system.slug: row.cells[1].value for row in page.rows} == by_slug
    assert compare(WHOLE, ["model-1", "model-2"], over=over).subsets == ("cats", "dogs", "rain")
    assert len(pareto(WHOLE, "parameters", over=over, setting="cosine").points) == 4  # one lacks rain, one a size


def test_what_some_systems_share_can_be_ranked_on() -> None:
    view = BoardView.parse(WHOLE, [("over", "shared"), ("s", "model-1"), ("s", "model-5:cosine")])
    assert view.over == "subsets:birds,cats,dogs,doors"
    page = table(WHOLE, view)
    assert {row.system.slug for row in page.rows if row.rank} == {f"model-{number}" for number in range(6)}
    with pytest.raises(UsageError, match="no subset on which all"):
        BoardView.parse(WHOLE, [("over", "shared")])


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ("subsets:cats,cows", 'no subset "cows"'),
        ("subsets:cat", 'Did you mean "cats"'),
        ("subsets:", "needs the names of subsets"),
        ("subsets:" + "cats," * 2000, "longer"),
    ],
)
def test_what_is_not_there_is_said(over: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        BoardView.parse(WHOLE, [("over", over)])


def test_a_metric_without_the_subsets_has_its_usual_mean_and_a_switch_keeps_the_choice() -> None:
    rows = (*scores().rows, Row(suite="mine", subset="words", system="model 1", metric="wer", value=0.2))
    whole = Snapshot.of_scores("mine", Scores(rows))
    view = BoardView.parse(whole, [("over", "subsets:cats,dogs")])
    assert BoardView.parse(whole, parse_qsl(view.query(metric="CS"))).over == view.over
    assert BoardView.parse(whole, parse_qsl(view.query(metric="wer"))).over == "mean"


def test_choices_of_readers_are_not_kept_for_ever() -> None:
    whole = snapshot()
    for size in range(2, 6):
        for names in itertools.combinations(SUBSETS, size):
            for setting, metric in itertools.product(("best", "each", "cosine"), ("P@1", "CS")):
                table(whole, BoardView.parse(whole, [*(("subset", n) for n in names), ("setting", setting),
                                                     ("metric", metric)]))  # fmt: skip
    assert len(whole._passing) <= 128
    assert len(whole._locks) <= len(whole._made) + 128


def test_pages_files_and_the_interface_take_the_choice(tmp_path: Path) -> None:
    query = "over=subsets:dogs,cats,birds&setting=cosine"
    with hosted(tmp_path) as board:
        board.accepted(Document.of(scores(), board="mine", cards=list(cards().values())))
        board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
        get = board.client.get
        assert "birds, cats and dogs" in get(f"/b/mine?{query}").text
        answer = get(f"/v1/boards/mine/table?{query}").json()
        assert answer["over"] == "subsets:birds,cats,dogs"
        assert {item["tier"] for item in answer["items"]} == {1}
        lines = get(f"/b/mine.csv?{query}").text.splitlines()
        assert lines[0].startswith("rank,rank_low,rank_high,tier,")
        assert "mean:subsets:birds,cats,dogs" in lines[0]
        assert get(f"/b/mine/pareto?{query}&x=parameters").status_code == 200
        # Forms and tabs keep it.
        kept = "over=subsets:birds,cats,dogs"
        for path in ("", "/pareto"):
            assert f"/b/mine/compare?{kept}" in unquote(get(f"/b/mine{path}?{query}").text)
        for systems in ("s=model-1&s=model-2&", ""):
            page = unquote(get(f"/b/mine/compare?{systems}{query}").text)
            assert '<option value="subsets:birds,cats,dogs" selected>' in page
            assert f"/b/mine/pareto?{kept}" in page
        assert get("/b/mine/compare?over=subsets:nowhere").status_code == 200
        compared = get("/v1/boards/mine/compare?s=model-1&s=model-2&over=subsets:rain,cats").json()
        assert compared["subsets"] == ["cats", "rain"]
        assert get("/b/mine?over=subsets:nowhere").status_code == get("/b/mine?metric=nothing").status_code
