"""Correlations of metrics, against scipy's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from earmark.errors import InputError
from earmark.report import figures
from earmark.report.correlations import metric_correlations
from earmark.scores import Row, Scores

METRICS = ("P@1", "P@5", "GSR", "CSCF", "silhouette")
SYSTEMS = ("a", "b", "c")
DISTANCES = ("cosine", "euclidean")


def table(values: np.ndarray, metrics: tuple[str, ...] = METRICS) -> list[Row]:
    """Rows of values [subset, system, distance, metric]."""
    return [
        Row(metric=metrics[m], value=float(value), subset=f"s{s}", system=SYSTEMS[y], distance=DISTANCES[d], n=9)
        for (s, y, d, m), value in np.ndenumerate(values)
    ]


def test_the_correlations_are_those_of_scipy() -> None:
    values = np.random.default_rng(4).integers(0, 5, (3, 3, 2, 5)) / 8  # with ties, and exact means of means
    found = metric_correlations(Scores(tuple(table(values))))
    expected = spearmanr(values.mean(axis=0).reshape(6, 5).round(10)).statistic
    assert found.metrics == METRICS
    assert [(line.system, line.distance) for line in found.configurations] == [
        (system, distance) for system in SYSTEMS for distance in DISTANCES
    ]
    np.testing.assert_allclose(found.matrix, expected, atol=1e-12)


def test_a_metric_of_which_less_is_better_is_not_turned() -> None:
    rising = np.arange(6.0).reshape(1, 3, 2, 1) / 10
    found = metric_correlations(Scores(tuple(table(np.concatenate([rising, 1 - rising], -1), ("P@1", "CSCF")))))
    np.testing.assert_allclose(found.matrix, [[1, -1], [-1, 1]])
    assert found.caution() == "Of CSCF lower is better; it is not turned round."
    assert "Of CSCF lower is better; it is not turned round." in found.to_markdown()
    assert "| P@1 | +1.00 | -1.00 |" in found.to_markdown()
    assert list(found.lines()) == [["P@1", "1.0000", "-1.0000"], ["CSCF", "-1.0000", "1.0000"]]


def test_what_is_left_out() -> None:
    """Noise, other protocols, metrics that do not vary, and configurations with few metrics change nothing."""
    values = np.random.default_rng(5).random((2, 3, 2, 5))
    rows = table(values)
    plain = metric_correlations(Scores(tuple(rows)))
    more = [
        Row(metric="P@1", value=0.9, subset="s0~noise0.1", system="a", distance="cosine"),
        Row(metric="P@1", value=0.9, subset="s0", system="a", distance="cosine", protocol="across_groups"),
        *(Row(metric="P@1", value=0.9, subset=f"s{s}", system="a", distance="spearman+dtw") for s in range(2)),
        *(
            Row(metric="NMI", value=0.5, subset=f"s{s}", system=system, distance=distance)
            for s in range(2) for system in SYSTEMS for distance in DISTANCES
        ),
    ]  # fmt: skip
    found = metric_correlations(Scores((*rows, *more)))
    assert found.metrics == plain.metrics
    assert found.configurations == plain.configurations
    np.testing.assert_array_equal(found.matrix, plain.matrix)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "has 0"),
        (table(np.random.default_rng(0).random((2, 3, 1, 2)), METRICS[:2]), "has 3"),
        (table(np.full((2, 3, 2, 2), 0.5), METRICS[:2]), "Fewer than two metrics differ"),
    ],
)
def test_too_little_to_correlate(rows: list[Row], said: str) -> None:
    with pytest.raises(InputError, match=said):
        metric_correlations(Scores(tuple(rows)))


def test_the_figure() -> None:
    pytest.importorskip("matplotlib")
    found = metric_correlations(Scores(tuple(table(np.random.default_rng(6).random((2, 3, 2, 5))))))
    drawn = figures.correlation_map(found)
    words = [text.get_text() for text in drawn.axes[0].texts]
    assert len(words) == 25
    assert words[0] == "1.00"
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == list(METRICS)
