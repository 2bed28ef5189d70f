"""What a choice does, all else equal: against a loop, by simulation, and on the printed tables."""

from __future__ import annotations

import numpy as np
import pytest

from earmark import published
from earmark.errors import InputError
from earmark.report.effects import effect_sentences, find_effects
from earmark.report.figures._effects import effects
from earmark.scores import Row, Scores


def rows_of(system: str, distance: str, values: np.ndarray, metric: str = "P@1") -> list[Row]:
    return [
        Row(suite="s", subset=str(k), system=system, distance=distance, metric=metric, value=float(value))
        for k, value in enumerate(values)
    ]


def test_pairs_differ_in_nothing_else_and_a_subset_counts_once() -> None:
    rng = np.random.default_rng(0)
    pools, distances = ("mean_time", "max_time", "flatten"), ("cosine", "euclidean")
    values = {
        (pool, size, distance): rng.random(6) for pool in pools for size in ("", " D30") for distance in distances
    }
    rows = [row for (pool, size, distance), own in values.items() for row in rows_of(f"a {pool}{size}", distance, own)]
    rows += rows_of("b mean_time", "cosine", rng.random(6))  # has nothing beside it
    rows = [row for row in rows if not (row.system == "a max_time" and row.subset == "0")]  # a hole
    found = find_effects(Scores(tuple(rows)), "pooling")
    assert [(item.model, item.label) for item in found.effects] == [
        ("a", "max_time − mean_time"), ("a", "flatten − mean_time"),
    ]  # fmt: skip
    item = found.effects[0]
    expected = []
    for k in range(6):
        pairs = [
            values["max_time", size, distance][k] - values["mean_time", size, distance][k]
            for size in ("", " D30") for distance in ("cosine", "euclidean") if k or size
        ]  # fmt: skip
        expected.append(sum(pairs) / len(pairs))
    np.testing.assert_allclose(list(item.by_subset.values()), expected, atol=1e-12)
    assert item.mean == pytest.approx(np.mean(expected), abs=1e-12)
    assert item.pairs == 22
    pca = find_effects(Scores(tuple(rows)), "pca")
    assert [(item.model, item.label, item.pairs) for item in pca.effects] == [("a", "D30 − no PCA", 34)]


def test_intervals_hold_and_nothing_is_told_from_nothing() -> None:
    """Two poolings that differ by 3 points on average, more on some subsets than on others."""
    rng = np.random.default_rng(5)
    held, told, count, effect = 0, 0, 150, 0.03
    for _ in range(count):
        level = rng.uniform(0.2, 0.8, 8)
        own = effect + 0.05 * rng.standard_normal(8)
        rows = []
        for distance in ("cosine", "euclidean"):
            noise = 0.01 * rng.standard_normal((3, 8))
            rows += rows_of("a mean_time", distance, level + noise[0])
            rows += rows_of("a max_time", distance, level + own + noise[1])
            rows += rows_of("a flatten", distance, level + (own - effect) + noise[2])
        item, nothing = find_effects(Scores(tuple(rows)), "pooling").effects
        held += (item.low or 1.0) <= effect <= (item.high or 0.0)
        told += nothing.told
    slack = 3 * np.sqrt(0.025 * count)
    assert held >= 0.975 * count - slack  # corrected for two
    assert told <= 0.025 * count + slack


def test_few_subsets_have_no_interval_and_no_pair_says_what_to_run() -> None:
    rows = [*rows_of("a mean_time", "cosine", np.array([0.4, 0.5])), *rows_of("a max_time", "cosine", np.ones(2))]
    (item,) = find_effects(Scores(tuple(rows)), "pooling").effects
    assert (item.low, item.p_value, item.reason) == (None, None, "no interval: fewer than 5 subsets")
    for name, remedy in (("pca", "--pca none,30,100"), ("dtw", "--dtw")):
        with pytest.raises(InputError, match=remedy):
            find_effects(Scores(tuple(rows)), name)


def test_printed_rows_that_repeat_others_make_no_effect() -> None:
    """VocSim's text: without PCA and with it the blind scores are identical. The rows are copies."""
    found = find_effects(published.load("vocsim"), "pca", ["P@1"])
    raw = [item for item in found.effects if item.reference == "no PCA"]
    assert raw
    assert all(item.low is None for item in raw)  # too few subsets have rows of their own
    blind = {"HU3", "HU4", "HW3", "HW4"}
    assert not any(place.name in blind for item in raw for place in item.by_subset)
    assert "the rows are copies" in " ".join(effect_sentences(found))
    counted = find_effects(published.load("vocsim", with_repeats=True), "pca", ["P@1"])
    copied = [
        value for item in counted.effects if item.label == "D100 − no PCA"
        for place, value in item.by_subset.items() if place.name in blind
    ]  # fmt: skip
    assert copied
    assert set(copied) == {0.0}
    assert max(len(item.by_subset) for item in found.effects if item.label == "D100 − D30") > 15


def test_printed_reranking_and_poolings() -> None:
    (item,) = find_effects(published.load("vocsim-dtw"), "dtw", ["P@1"]).effects
    printed = published.read("vocsim_table15_dtw_per_subset")
    assert item.mean == pytest.approx(np.mean([float(row["delta_P@1"]) for row in printed]) / 100, abs=5e-4)
    pooled = find_effects(published.load("vocsim-pooling"), "pooling")
    assert {item.model for item in pooled.effects} == {"Whisper"}
    assert "Mean (incl. pad)" not in {item.level for item in pooled.effects}  # it was measured on other clips


def test_the_figure_names_models_references_and_levels() -> None:
    pytest.importorskip("matplotlib")
    found = find_effects(published.load("vocsim-pooling"), "pooling")
    figure = effects(found)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[:2] == ["Whisper", "Masked Mean (mask-excl.) = 0"]
    assert len(labels) == 2 + len(found.effects) / 3
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["P@1 ↑", "P@5 ↑", "GSR ↑"]
