"""The map of layers: what it is drawn from, against a loop, and what the report says of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from earmark.report.figures._layers import layer_curves, layer_map, layer_maps
from earmark.report.html._variants import over_layers
from earmark.report.layers import held_out_gain, layer_sentences, layered, layers_by_metric, summaries
from earmark.report.score_index import ScoreIndex
from earmark.scores import Row, Scores

VALUES = {"A": [0.2, 0.5, 0.4], "B": [0.3, 0.3, 0.9], "C": [0.1, 0.6, 0.0]}


def scores(metric: str = "P@1", layers: int = 3, name: str = "model@{} mean_time D30") -> Scores:
    rows = [
        Row(suite="s", subset=subset, system=name.format(layer), distance="cosine", metric=metric, value=value, n=9)
        for subset, values in VALUES.items()
        for layer, value in enumerate(values[:layers])
    ]
    return Scores((*rows, Row(suite="s", subset="A", system="other", distance="cosine", metric=metric, value=0.4, n=9)))


def test_layers_of_one_representation_belong_together_and_others_stay_out() -> None:
    (found,) = layered(scores())
    assert found.label == "model mean_time D30 · cosine"
    assert found.layers == (0, 1, 2)
    assert layered(scores(layers=1)) == []
    assert [one.label for one in layered(scores(name="odd@name@{}"))] == ["odd@name · cosine"]


@pytest.mark.parametrize(("metric", "best"), [("P@1", max), ("CSCF", min)])
def test_behind_is_the_distance_to_the_best_layer_of_each_subset(metric: str, best: type) -> None:
    (found,) = layered(scores(metric), metric)
    expected = [[abs(values[layer] - best(values)) for values in VALUES.values()] for layer in range(3)]
    np.testing.assert_allclose(found.behind(), expected, atol=1e-12)


def test_the_map_has_a_cell_for_each_layer_and_subset_and_frames_the_best() -> None:
    pytest.importorskip("matplotlib")
    figure = layer_map(layered(scores())[0])
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["A", "B", "C"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]
    behind = "30.0 60.0 50.0 0.0 60.0 0.0 10.0 0.0 60.0"
    assert [text.get_text() for text in axes.texts] == behind.split()
    framed = {(round(box.get_y() + 0.45), round(box.get_x() + 0.47)) for box in axes.patches}
    assert framed == {(1, 0), (2, 1), (1, 2)}


def test_the_report_says_which_layer_is_best_and_what_others_cost() -> None:
    pytest.importorskip("matplotlib")
    page = over_layers(ScoreIndex(scores()))
    assert page is not None
    # Behind on average: 46.7, 20 and 23.3 points.
    said = "layer 1 is the best choice, the last (2) lies 3.3 points behind it, 0 the worst, 26.7 points behind."
    assert f"Over 3 subsets {said}" in page
    assert over_layers(ScoreIndex(scores(layers=1))) is None


def many(layers: int = 5, subsets: int = 8, seed: int = 0) -> tuple[Scores, np.ndarray]:
    values = np.random.default_rng(seed).random((layers, subsets))
    rows = [
        Row(suite="s", subset=f"S{k}", system=f"m@{j}", distance="cosine", metric="P@1", value=float(values[j, k]))
        for j in range(layers) for k in range(subsets)
    ]  # fmt: skip
    return Scores(tuple(rows)), values


def test_ranks_differences_and_the_held_out_gain_against_loops() -> None:
    table, values = many()
    (found,) = layered(table)
    ranks = [[1 + sum(other > own for other in column) for own in column] for column in values.T]
    np.testing.assert_array_equal(found.ranks(), np.array(ranks).T)
    lines = summaries(found)
    for j, item in enumerate(lines):
        assert item.rank == pytest.approx(np.mean([column[j] for column in ranks]))
        assert item.difference == pytest.approx(np.mean(values[j] - values[-1]))
    gains = []
    for k in range(8):
        others = [np.mean([values[j, i] for i in range(8) if i != k]) for j in range(5)]
        gains.append(values[int(np.argmax(others)), k] - values[-1, k])
    assert held_out_gain(found) == pytest.approx(np.mean(gains))
    assert lines[-1].p_value is None  # the last against itself
    assert all(item.rank_low is not None and item.rank_low <= item.rank for item in lines)


def test_no_layer_is_told_from_the_last_by_chance_and_few_subsets_have_no_interval() -> None:
    count = 120
    told = 0
    for seed in range(count):
        (found,) = layered(many(seed=seed)[0])
        told += any((item.p_value or 1.0) < 0.05 for item in summaries(found))
    assert told <= 0.05 * count + 3 * np.sqrt(0.05 * 0.95 * count)
    (few,) = layered(many(subsets=2)[0])
    assert {item.rank_low for item in summaries(few)} == {None}
    assert held_out_gain(few) is None
    assert "take 5 subsets" in " ".join(layer_sentences({"P@1": few}))


def test_subsets_that_lack_a_layer_stay_out_of_means_and_codecs_have_no_layers() -> None:
    table, values = many()
    (found,) = layered(Scores(table.rows[1:]))  # layer 0 of S0
    place = [subset.name for subset in found.rows].index("S0")
    assert np.isnan(found.ranks()[0, place])
    assert sorted(found.ranks()[1:, place]) == [1, 2, 3, 4]
    assert found.complete == [other for other in range(8) if other != place]
    assert summaries(found)[2].difference == pytest.approx(np.mean(values[2, 1:] - values[-1, 1:]))
    codecs = Scores(tuple(Row(subset="A", system=f"opus@{rate}", metric="pesq", value=3.0) for rate in (6, 12)))
    assert layered(codecs, "pesq") == []


def test_maps_of_several_metrics_share_a_scale_and_curves_have_two_panels() -> None:
    pytest.importorskip("matplotlib")
    found = layers_by_metric(Scores((*many()[0].rows, *(replace(row, metric="GSR") for row in many(seed=1)[0].rows))))
    ((label, own),) = found.items()
    assert label == "m · cosine"
    figure = layer_maps(own, ranks=True)
    assert [axes.get_xlabel() for axes in figure.axes[:2]] == ["P@1", "GSR"]
    assert len(figure.axes) == 3  # one colour bar
    assert [axes.get_ylabel() for axes in layer_curves(own).axes] == [
        "mean rank (1 is best)", "difference to the last layer (points)",
    ]  # fmt: skip
