"""Figures are SVG that any XML reader takes: marks where the numbers are, names as text, labels that do not collide."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.board.scored import NASTY, cards, scores

from earmark import published
from earmark.board.boards.cells import Cell
from earmark.board.boards.costs import AXES, pareto
from earmark.board.boards.pairs import compare
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.subsets import summarise
from earmark.board.pages.cost_figure import Own, is_wide, pareto_figure
from earmark.board.pages.drawing import NARROW, WIDE, Drawing, Label, Scale, labels
from earmark.board.pages.figures import differences, histogram, profile, profiles
from earmark.definitions.board import BoardMetric
from earmark.scores import Row, Scores
from earmark.submissions import SystemCard


def tree(drawn: Drawing) -> ElementTree.Element:
    """The figure and its legend as a tree; whatever is not well-formed is an error."""
    root = ElementTree.fromstring(f"<div>{drawn.svg}{drawn.legend}</div>")
    names = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(names) == len(set(names))
    known = {f"#{name}" for name in names}
    assert all(each.get("href") in known for each in root.iter("use"))
    assert not any(name.startswith("on") or name == "style" for each in root.iter() for name in each.attrib)
    assert "nan" not in str(drawn.svg).lower()
    return root


def titles(root: ElementTree.Element, within: str = "use") -> list[str]:
    return [str(each.findtext("title")) for each in root.iter(within) if each.find("title") is not None]


def wide_board(count: int, seed: int = 0, families: int = 40) -> Snapshot:
    """Systems whose costs span four decades."""
    rng = np.random.default_rng(seed)
    rows = tuple(
        Row(system=f"system {n}", subset=f"s{s}", metric="P@1", value=value, low=value - 0.02, high=value + 0.02)
        for n in range(count)
        for s, value in enumerate(np.round(rng.normal(0.5, 0.02, 19) + 0.2 * rng.random(), 4).tolist())
    )
    known = {
        f"system {n}": SystemCard(
            f"system {n}", family=f"family {n % families}", parameters_m=float(10 ** rng.uniform(-1, 3))
        )
        for n in range(count)
    }
    return Snapshot.of_scores("wide", Scores(rows), known)


def test_every_system_with_a_cost_has_a_mark_that_tells_its_numbers() -> None:
    front = pareto(Snapshot.of_scores("mine", scores(), cards()), "parameters")
    root = tree(pareto_figure(front))
    assert len(titles(root)) == len(front.points)
    best = min(front.points, key=lambda point: point.rank)
    told = next(text for text in titles(root) if text.startswith(best.system.card.name))
    assert f"{100 * best.y:.1f} (" in told
    assert f"{best.x:g} million, rank 1" in told
    assert {each.get("data-s") for each in root.iter("use")} == {point.system.slug for point in front.points}


def test_the_front_is_named_and_linked_and_the_axis_ends_at_the_possible() -> None:
    known = {f"model {n}": SystemCard(f"model {n}", parameters_m=float(9 - n)) for n in range(6)}
    front = pareto(Snapshot.of_scores("mine", scores(), known), "parameters")
    drawn = pareto_figure(front)
    root = tree(drawn)
    assert drawn.role == "group"  # a picture could not hold links
    linked = {each.get("href") for each in root.iter("a")}
    assert {f"/b/mine/s/{point.system.slug}" for point in front.points if point.front} <= linked
    heights = [float(each.get("y", "nan")) for each in root.iter("text") if each.get("text-anchor") == "end"]
    assert all(-20 <= height <= 440 for height in heights)
    whole = Scale.of([20.0, 99.9], ends=(0.0, 100.0))
    assert whole.high == 100.0
    codecs = pareto(Snapshot.of_scores("codec-superb", published.load("codec-superb")))
    tree(pareto_figure(codecs))  # a metric without a limit


@pytest.mark.parametrize("log", [True, False, None])
def test_an_axis_of_costs_is_logarithmic_where_that_fits_or_is_asked_for(log: bool | None) -> None:
    front = pareto(wide_board(30), "parameters")
    assert is_wide(front)
    drawn = pareto_figure(front, log=log)
    assert ("logarithmic" in drawn.svg) == (log is not False)
    shares = {str(each.get("data-s")): float(str(each.get("x")).rstrip("%")) / 100 for each in tree(drawn).iter("use")}
    middle = sorted(front.points, key=lambda point: point.x)[len(front.points) // 2]
    assert (shares[middle.system.slug] > 0.25) == (log is not False)


def test_whole_numbers_have_no_decimals() -> None:
    assert [tick.text for tick in Scale(-60.0, 60.0).ticks(5)] == ["−50", "−25", "0", "25", "50"]
    assert [tick.text for tick in Scale(0.0, 1.0).ticks(4)] == ["0.00", "0.25", "0.50", "0.75", "1.00"]


def test_a_cost_of_nothing_has_a_place_on_a_logarithmic_axis() -> None:
    scale = Scale.of([0.0, 2.0, 600.0], log=True)
    assert 0 < scale.share(0.0) < scale.share(2.0) < scale.share(600.0) < 1
    assert scale.ticks()[0] == (0.0, "0")


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 7.0), (0.001, 0.0042), (20.0, 1e6), (5.0, 5.0), (-1e-9, 1e-9)])
def test_ticks_are_round_numbers_within_the_axis(ends: tuple[float, float]) -> None:
    scale = Scale.of(ends)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 9
    assert all(scale.low - 1e-12 <= tick.at <= scale.high + 1e-12 for tick in ticks)
    assert len({tick.text for tick in ticks}) == len(ticks)
    assert all(math.isclose(float(tick.text.replace("−", "-")), tick.at, abs_tol=1e-12, rel_tol=1e-6) for tick in ticks)


def test_labels_cover_no_other_label_on_a_phone_and_on_a_wide_screen() -> None:
    rng = np.random.default_rng(3)
    wanted = [Label(float(x), float(y), f"system {n}") for n, (x, y) in enumerate(rng.random((60, 2)) * (1, 380))]
    root = ElementTree.fromstring(labels(wanted, [(each.x, each.y) for each in wanted], 380))
    assert len(list(root.iter("text"))) > 20
    for width in (WIDE, NARROW):
        boxes = []
        for group in root:
            if width == NARROW and group.get("class") == "wide":
                continue
            text = group[0]
            at = width * float(str(text.get("x")).rstrip("%")) / 100 + float(str(text.get("dx")))
            length = 6.5 * len(str(text.text))
            start = at - {"start": 0, "middle": length / 2, "end": length}[str(text.get("text-anchor"))]
            boxes.append((start, float(str(text.get("y"))) - 9, start + length, float(str(text.get("y"))) + 2))
        assert len(boxes) > 10
        for one, other in combinations(boxes, 2):
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_systems_not_told_apart_from_the_best_are_ringed() -> None:
    front = pareto(wide_board(30), "parameters")
    leading = [point for point in front.points if point.leads]
    assert 0 < len(leading) < 30
    root = tree(pareto_figure(front))
    rings = next(each for each in root.iter("g") if each.get("class") == "leads")
    assert len(list(rings)) == len(leading)


def test_an_own_point_is_drawn_although_the_others_lack_it() -> None:
    front = pareto(wide_board(5), "parameters")
    root = tree(pareto_figure(front, Own("mine", 5000.0, 0.9)))
    ring = next(each for each in root.iter("g") if each.get("class") == "own")[0]
    assert 0 < float(str(ring.get("cx")).rstrip("%")) < 100


def test_profiles_have_a_mark_with_its_interval_for_each_value() -> None:
    whole = Snapshot.of_scores("mine", scores(), cards())
    comparison = compare(whole, ["model-0:euclidean", "model-1:euclidean", "model-5:cosine"])
    root = tree(profiles(comparison))
    values = [cell for each in comparison.compared for cell in each.cells if cell.value is not None]
    assert len(titles(root)) == len(values)
    assert len([line for line in root.iter("line") if line.get("class") == "interval"]) == len(values)
    hollow = [each for each in root.iter("use") if each.get("class") == "hollow"]
    assert len(hollow) == sum(cell.status == "predicted" for cell in values)


def test_differences_are_those_to_the_first_with_the_interval_of_the_table_below() -> None:
    whole = Snapshot.of_scores("mine", scores(), cards())
    comparison = compare(whole, ["model-0:cosine", "model-1:cosine", "model-2:cosine"])
    drawn = differences(comparison)
    assert drawn is not None
    told = titles(tree(drawn))
    assert len(told) == 2 * (len(comparison.subsets) + 1)
    first, second = comparison.compared[0].cells[0].value, comparison.compared[1].cells[0].value
    assert first is not None
    assert second is not None
    assert told[0].startswith(
        f"model 1 cosine, {comparison.subsets[0]}: {100 * (second - first):.1f} (".replace("-", "−")
    )
    pair = next(each for each in comparison.differences if (each.one, each.other) == (0, 1))
    assert pair.mean is not None
    mean = next(text for text in told if "model 1 cosine, mean" in text)
    assert f": {-100 * pair.mean:.1f}".replace("-", "−") in mean
    assert pair.low is not None
    assert f"to {-100 * pair.low:.1f})".replace("-", "−") in mean


def test_without_a_subset_in_common_there_is_no_figure_of_differences() -> None:
    rows = tuple(Row(system=s, subset=u, metric="P@1", value=0.5) for s, u in (("a", "x"), ("b", "y"), ("c", "x")))
    whole = Snapshot.of_scores("mine", Scores(rows))
    assert differences(compare(whole, ["a", "b"])) is None


def test_a_profile_without_a_single_value_is_empty_and_sound() -> None:
    nothing = Cell(None)
    root = tree(profile("none", ["a", "b"], [nothing, nothing], [None, None], [None, None], "P@1"))
    assert titles(root) == []


def test_a_histogram_counts_every_system_once() -> None:
    root = tree(histogram(summarise(wide_board(50), "s3")))
    assert sum(int(text.split()[0]) for text in titles(root, "rect")) == 50
    one = Snapshot.of_scores("mine", Scores((Row(system="only", subset="a", metric="P@1", value=0.5),)))
    assert titles(tree(histogram(summarise(one, "a"))), "rect")[0].startswith("1 system ")


def test_names_are_text_in_every_figure() -> None:
    rows = tuple(
        Row(system=name, subset=subset, metric="P@1", value=value)
        for name, value in ((NASTY, 0.9), ("b", 0.5))
        for subset in (NASTY, "y", "z")
    )
    known = {NASTY: SystemCard(NASTY, family=NASTY, parameters_m=1.0), "b": SystemCard("b", parameters_m=2.0)}
    whole = Snapshot.of_scores("mine", Scores(rows), known)
    slugs = [system.slug for system in whole.systems]
    drawings: list[Any] = [pareto_figure(pareto(whole, "parameters")), profiles(compare(whole, slugs))]
    for drawn in drawings:
        tree(drawn)
        assert "<script" not in f"{drawn.svg}{drawn.legend}"
        assert "&lt;script" in drawn.svg


def test_a_figure_of_two_thousand_systems_is_small_and_soon_made() -> None:
    front = pareto(wide_board(2000), "parameters")
    began = time.perf_counter()
    drawn = pareto_figure(front)
    seconds = time.perf_counter() - began
    assert len(drawn.svg) < 330_000
    assert seconds < 0.5  # some 25 ms on a machine of its own
    assert len(re.findall("<use ", drawn.svg)) == 2000


def test_a_card_may_state_the_dimension_among_its_details() -> None:
    known = {"model 0": SystemCard("model 0", details={"dimension": 768}), "model 1": SystemCard("model 1")}
    known["model 2"] = SystemCard("model 2", details={"dimensions": 12.0, "dimension": "many"})
    front = pareto(Snapshot.of_scores("mine", scores(), known), "dimension")
    assert [(point.system.slug, point.x) for point in front.points] == [("model-2", 12.0), ("model-0", 768.0)]
    assert front.axis is AXES["dimension"]


def test_a_metric_of_the_boards_own_is_drawn_in_its_own_direction() -> None:
    rows = tuple(
        Row(system=name, subset=subset, metric="regret", value=value)
        for name, value in (("a", 0.9), ("b", 0.5), ("c", 0.7))
        for subset in ("x", "y", "z")
    )
    known = {name: SystemCard(name, parameters_m=cost) for name, cost in (("a", 1.0), ("b", 2.0), ("c", 3.0))}
    whole = Snapshot.of_scores("mine", Scores(rows), known)
    metric = BoardMetric("regret", "How much is lost.", higher_is_better=False)
    others = tuple(each for each in whole.definition.metrics if each.name != "regret")
    turned = whole.defined(replace(whole.definition, metrics=(metric, *others)), 1)
    front = pareto(turned, "parameters", metric="regret")
    assert [point.system.slug for point in front.points if point.front] == ["a", "b"]
    assert "regret, lower is better" in pareto_figure(front).svg
    drawn = differences(compare(turned, ["a", "b"], metric="regret"), higher=front.higher)
    assert drawn is not None
    assert "left is better" in drawn.svg
