"""The analysis page: a map that says how much it shows, heat maps that are tables, and results of old versions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.board.scored import cards, scores
from tests.board.test_figures import titles, tree, wide_board

from earmark import published
from earmark.board.boards.analyses import Analysis, analysed, digest_of, matrix_of
from earmark.board.boards.maps import principal_plane, system_map
from earmark.board.boards.snapshot import Snapshot
from earmark.board.pages.analyses import analysis_page
from earmark.board.pages.analysis_figures import additions, few_subsets, map_figure, relation_heat, score_heat
from earmark.board.pages.assets import page_templates
from earmark.board.pages.boards import Reader, Source
from earmark.scores import Row, Scores

VOCSIM = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")


class One:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def boards(self) -> tuple[str, ...]:
        return (self._snapshot.board,)

    def current(self, board: str) -> Snapshot:
        return self._snapshot


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analysed(matrix_of(VOCSIM))


def page_of(snapshot: Snapshot, analysis: Analysis | None) -> str:
    source = Source(One(snapshot), analysis=lambda board: analysis)
    return analysis_page(Reader(source, page_templates("Test")), snapshot.board).body.decode()


def test_a_plane_shows_the_variance_that_it_says() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 7)) * [5, 3, 1, 1, 1, 1, 1]
    points, shares, loadings = principal_plane(values)
    centred = values - values.mean(axis=0)
    assert shares == pytest.approx(tuple((points**2).sum(axis=0) / (centred**2).sum()))
    weights = np.sort(np.linalg.eigvalsh(np.cov(values.T)))[::-1]
    assert shares == pytest.approx(tuple(weights[:2] / weights.sum()))
    assert np.linalg.norm(loadings) == pytest.approx(1)
    assert loadings[np.abs(loadings).argmax()] > 0


def test_the_map_is_the_same_whatever_the_order_of_the_rows_and_points_to_better_means() -> None:
    table = wide_board(20)
    rows = published.load("vocsim").rows
    turned = Snapshot.of_scores("vocsim", Scores(tuple(reversed(rows))), provenance="printed")
    one, other = system_map(VOCSIM), system_map(turned)
    assert one is not None
    assert other is not None
    where = {place.system.slug: (place.x, place.y) for place in other.places}
    for place in one.places:
        assert where[place.system.slug] == pytest.approx((place.x, place.y), abs=1e-9)
    assert one.level > 0.5
    assert system_map(table) is not None


def test_the_map_names_every_system_and_links_to_the_best() -> None:
    found = system_map(VOCSIM)
    assert found is not None
    drawn = map_figure(found)
    root = tree(drawn)
    assert len(titles(root)) == len(found.places)
    best = min(found.places, key=lambda place: place.rank.rank)
    assert f"/b/vocsim/s/{best.system.slug}" in {each.get("href") for each in root.iter("a")}
    assert f"{100 * found.shares[0]:.0f} % of differences" in drawn.svg


def test_too_few_systems_have_no_map() -> None:
    assert system_map(Snapshot.of_scores("mine", scores(2), cards(2))) is None
    constant = tuple(Row(system=s, subset=u, metric="P@1", value=0.5) for s in "abcd" for u in "xyz")
    found = system_map(Snapshot.of_scores("mine", Scores(constant)))
    assert found is not None
    tree(map_figure(found))  # systems that differ in nothing lie on one point


def test_heat_maps_are_tables_with_every_number(analysis: Analysis) -> None:
    relations = analysis.found["drawn"]["relations"]
    heat = score_heat(VOCSIM, relations["subsets"], lambda name: name)
    assert heat is not None
    root = tree_of(str(heat.table))
    assert len(root.findall("tbody/tr")) == heat.systems == 40
    assert heat.left_out == 3
    heads = ["".join(each.itertext()) for each in root.findall("thead/tr/th")][1:]
    assert heads == relations["subsets"]
    square = tree_of(str(relation_heat("vocsim", relations, lambda name: "")))
    lines = [[cell.text for cell in line.findall("td")] for line in square.findall("tbody/tr")]
    assert all(lines[n][n] == "·" for n in range(len(lines)))
    r2 = np.array(relations["r2"])
    assert np.allclose(r2, r2.T, atol=2e-3)
    # What is alike stands side by side: neighbours are closer than an arbitrary order has them.
    beside = np.mean([r2[n, n + 1] for n in range(len(r2) - 1)])
    assert beside > 1.5 * r2[~np.eye(len(r2), dtype=bool)].mean()


def tree_of(text: str):  # type: ignore[no-untyped-def]
    from xml.etree import ElementTree

    return ElementTree.fromstring(text)


def test_a_gap_and_a_constant_column_have_a_place_in_a_heat_map() -> None:
    rows = [
        Row(system=s, subset=u, metric="P@1", value=v)
        for s, u, v in (("a", "x", 0.5), ("b", "x", 0.5), ("a", "y", 0.1))
    ]
    heat = score_heat(Snapshot.of_scores("mine", Scores(tuple(rows))), (), lambda name: "")
    assert heat is not None
    assert "—" in heat.table


def test_figures_of_an_analysis_tell_its_numbers(analysis: Analysis) -> None:
    novelty = analysis.found["novelty"]
    bars = titles(tree(additions(novelty, lambda name: "")), "rect")
    assert len(bars) == len(novelty)
    assert novelty[0]["verdict"] in bars[0]
    coverage = analysis.found["drawn"]["coverage"]
    told = titles(tree(few_subsets(coverage)))
    assert len(told) == 2 * len(coverage["order"])
    assert coverage["curve"][-1] == pytest.approx(1.0)
    assert coverage["curve"][coverage["size"] - 1] >= 0.95


def test_the_page_speaks_plainly_and_has_everything(analysis: Analysis) -> None:
    text = page_of(VOCSIM, analysis)
    assert text.count('class="figure"') == 3
    assert text.count("scroll heatmap") == 2
    for private in ("stalk", "prowl", "pounce"):
        assert text.count(private) == 1, private
        assert f"(SimBA's “{private}”)" in text
    assert "A map of the systems" in text
    assert "% of the differences between their profiles" in text


def test_a_result_that_was_stored_before_there_were_figures_is_shown_and_made_anew(analysis: Analysis) -> None:
    old = json.loads(analysis.to_json())
    del old["found"]["drawn"]
    old["digest"] = "0" * 64
    read = Analysis.from_json(json.dumps(old))
    text = page_of(VOCSIM, read)
    assert "What each subset adds" in text
    assert text.count("scroll heatmap") == 1
    assert digest_of(matrix_of(VOCSIM)) == analysis.digest != read.digest


def test_a_board_without_an_analysis_has_its_map() -> None:
    text = page_of(wide_board(12), None)
    assert "A map of the systems" in text
    assert "What each subset adds" not in text


def test_a_system_with_several_settings_stands_once_on_the_map() -> None:
    board = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    drawn = system_map(board)
    assert drawn is not None
    names = [place.system.slug for place in drawn.places]
    assert len(names) == len(set(names)) > 20
