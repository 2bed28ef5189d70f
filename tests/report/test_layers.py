"""The map of layers: what it is drawn from, against a loop, and what the report says of it."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.report.figures._layers import layer_map
from earmark.report.html._variants import over_layers
from earmark.report.layers import layered
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
