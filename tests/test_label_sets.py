"""Clips with several labels or none: against brute force, as a generalisation of classes, and by simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import earmark
from earmark.errors import InputError, UsageError

METRICS = ("P@1", "P@3", "label_P@1", "label_jaccard")
LABELS = ("owl", "tit", "wren", "rook")


def field(seed: int, n: int = 60, groups: int = 11) -> tuple[Any, list[set[str]], list[int]]:
    """Vectors whose direction follows their labels, none to three of four; groups of unequal size."""
    rng = np.random.default_rng(seed)
    sets = [set(rng.choice(LABELS, size=rng.integers(0, 4), replace=False).tolist()) for _ in range(n)]
    means = np.array([[2.0 * (name in held) for name in (*LABELS, "", "")] for held in sets])
    return means + rng.normal(size=(n, 6)), sets, (rng.integers(0, groups, n) ** 2 % groups).tolist()


def by_hand(
    vectors: Any, sets: Sequence[set[str]], groups: Sequence[Any], *, across: bool, stays: Any = None
) -> dict[str, float]:
    """Everything again, pair by pair, with Python's sets."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = range(len(sets)) if stays is None else np.flatnonzero(stays).tolist()
    values: dict[str, list[float]] = {name: [] for name in METRICS if name != "label_P@1"}
    by_label: dict[str, list[float]] = {}
    for i in rows:
        others = [j for j in rows if j != i and not (across and groups[i] == groups[j])]
        order = sorted(others, key=lambda j: (round(1 - float(units[i] @ units[j]), 12), j))
        if not any(sets[i] & sets[j] for j in others):
            continue
        for k in (1, 3):
            if len(order) >= k:
                values[f"P@{k}"].append(sum(bool(sets[i] & sets[j]) for j in order[:k]) / k)
        values["label_jaccard"].append(len(sets[i] & sets[order[0]]) / len(sets[i] | sets[order[0]]))
        for label in sets[i]:
            if any(label in sets[j] for j in others):
                by_label.setdefault(label, []).append(float(label in sets[order[0]]))
    means = {name: float(np.mean(each)) if each else np.nan for name, each in values.items()}
    return means | {"label_P@1": float(np.mean([np.mean(each) for each in by_label.values()]))}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_values_and_those_without_each_unit_are_what_brute_force_gives(seed: int, grouped: bool) -> None:
    vectors, sets, groups = field(seed, n=40)
    scores = earmark.evaluate(
        vectors, sets, metrics=METRICS, groups=groups if grouped else None, across_groups=grouped, per_unit=True,
        min_class_size=1,
    )  # fmt: skip
    units = np.unique(groups, return_inverse=True)[1] if grouped else np.arange(len(sets))
    for protocol in ("all", "across_groups") if grouped else ("all",):
        across = protocol != "all"
        expected = by_hand(vectors, sets, groups, across=across)
        without = [by_hand(vectors, sets, groups, across=across, stays=units != unit) for unit in range(max(units) + 1)]
        for metric in METRICS:
            row = scores.row(metric, protocol=protocol)
            assert row.value == pytest.approx(expected[metric], abs=1e-12)
            left = scores.per_unit["cosine", "none", protocol, metric]
            assert left == pytest.approx([values[metric] for values in without], abs=1e-12)
            assert row.low is not None
            assert row.high is not None
            assert row.low <= row.value <= row.high


@pytest.mark.parametrize("grouped", [False, True])
def test_sets_of_one_label_give_exactly_what_classes_give(grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    labels = rng.choice(LABELS, 90).tolist()
    vectors = np.eye(6)[[LABELS.index(name) for name in labels]] + rng.normal(size=(90, 6))
    options: dict[str, Any] = {"metrics": METRICS, "permutations": 60, "per_unit": True}
    if grouped:
        options |= {"groups": rng.integers(0, 12, 90), "across_groups": True}
    classes = earmark.evaluate(vectors, labels, **options)
    monkeypatch.setattr("earmark.evaluation.data.label_sets", lambda labels, options: [(name,) for name in labels])
    sets = earmark.evaluate(vectors, labels, **options)
    for a, b in zip(classes.rows, sets.rows, strict=True):
        for cell in ("metric", "protocol", "value", "low", "high", "n", "baseline", "baseline_low", "p_value", "unit"):
            assert getattr(a, cell) == pytest.approx(getattr(b, cell), abs=1e-12), (a.metric, cell)
    for key, values in classes.per_unit.items():
        assert values == pytest.approx(sets.per_unit[key], abs=1e-12)
    assert classes.value("label_jaccard", protocol="all") == pytest.approx(classes.value("P@1", protocol="all"))


def test_a_separator_collections_and_a_table_say_the_same() -> None:
    vectors, sets, _ = field(5)
    given: list[tuple[Any, dict[str, Any]]] = [
        (sets, {}),
        ([sorted(held) for held in sets], {}),
        (["; ".join(held) or "nothing" for held in sets], {"label_separator": ";", "background": "nothing"}),
        (np.array([[name in held for name in LABELS] for held in sets]), {}),
        (pytest.importorskip("pandas").DataFrame([{name: name in held for name in LABELS} for held in sets]), {}),
    ]
    values = {
        earmark.evaluate(vectors, labels, metrics="label_jaccard", **options).value("label_jaccard")
        for labels, options in given
    }
    assert len(values) == 1


def test_a_separator_that_no_label_holds_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(40, 4)), rng.choice(LABELS, 40)
    plain = earmark.evaluate(vectors, labels)
    parted = earmark.evaluate(vectors, labels, label_separator=";")
    assert [row.value for row in plain] == [row.value for row in parted]


@pytest.mark.parametrize("spell", ["{};", ";{}", "{0};{0}", " {} ; "])
def test_labels_of_which_none_is_with_another_are_classes_however_they_are_spelt(spell: str) -> None:
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(40, 4)), rng.choice(LABELS, 40).tolist()
    odd = [spell.format(label) if row % 2 else label for row, label in enumerate(labels)]
    plain, parted = earmark.evaluate(vectors, labels), earmark.evaluate(vectors, odd, label_separator=";")
    assert [row.value for row in plain] == [row.value for row in parted]


def test_a_table_of_one_label_for_each_row_is_that_of_classes() -> None:
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(40, 4)), rng.choice(LABELS, 40)
    table = labels[:, None] == np.array(LABELS)
    assert earmark.evaluate(vectors, table).value("GSR") == earmark.evaluate(vectors, labels).value("GSR")


def test_a_list_of_nothing_known_is_unlabelled_and_no_background() -> None:
    vectors, sets, _ = field(3)
    scores = earmark.evaluate(vectors, [[None], [float("nan")], *sets[2:]], metrics="P@1")
    assert "2 unlabelled rows dropped" in scores.notes


def test_a_separator_or_background_that_no_row_has_is_told() -> None:
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(40, 4)), rng.choice([*LABELS, "Noise"], 40)
    notes = earmark.evaluate(vectors, labels, metrics="P@1", label_separator="|", background="noise").notes
    assert "no row has several labels with '|' between them" in notes
    assert "no row has the label 'noise' of background (there is 'Noise')" in notes


def test_a_label_set_is_one_class_in_whichever_order_it_was_given() -> None:
    vectors, sets, groups = field(4)
    rng = np.random.default_rng(1)
    texts = [";".join(rng.permutation(sorted(held))) or "none" for held in sets]
    given: list[tuple[Any, dict[str, str]]] = [
        (texts, {"label_separator": ";", "background": "none"}),
        (sets, {"background": "none"}),
        (np.array([[name in held for name in LABELS] for held in sets]), {"background": "none"}),
    ]
    for by in ("group", "class"):
        tables = []
        for labels, options in given:
            scores = earmark.evaluate(vectors, labels, groups=groups, metrics="P@1", per_point=True, **options)
            tables.append([(line.n, line.scores) for line in getattr(scores, f"by_{by}")().lines])
        if by == "group":
            assert tables[0] == tables[1] == tables[2]
        else:
            assert len(tables[0]) == len(tables[1]) == len(tables[2]) == len({frozenset(held) for held in sets if held})


def test_background_is_a_candidate_and_no_query() -> None:
    vectors = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [1.0, 0.04]])
    labels = ["wren", "wren", "owl", "owl", "noise"]
    scores = earmark.evaluate(vectors, labels, metrics="P@1", background="noise", per_point=True)
    # The noise is nearest to both wrens, and asks nothing itself.
    assert scores.value("P@1") == 0.5
    assert scores.row("P@1").n == 4
    assert np.isnan(scores.per_point["cosine", "none", "all", "P@1"][4])
    assert "1 row of background: candidates, no queries" in scores.row("P@1").reason
    assert earmark.evaluate(vectors[:4], labels[:4], metrics="P@1", background="noise").value("P@1") == 1.0


def test_one_species_among_background_can_be_measured() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(40, 4)) + np.repeat([[3.0], [0.0]], 20, axis=0)
    labels = ["wren"] * 20 + ["none"] * 20
    row = earmark.evaluate(vectors, labels, metrics="P@1", background="none", permutations=99).row("P@1")
    assert row.value is not None
    assert row.value > 0.8
    assert row.baseline == pytest.approx(19 / 39, abs=0.05)


def test_metrics_of_classes_are_not_applicable_and_say_why() -> None:
    vectors, sets, _ = field(2)
    scores = earmark.evaluate(vectors, sets, metrics="all")
    for name in ("GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette", "NMI", "ARI", "kmeans_purity", "purity"):
        row = scores.row(name)
        assert row.status == "not_applicable"
        assert row.value is None
        assert "several labels or none" in row.reason
    for name in ("P@1", "P@5", "label_P@1", "label_jaccard", "hub_ratio", "hub_skew"):
        assert scores.row(name).status == "ok"


def test_small_labels_are_taken_out_of_sets_and_rows_left_without_any_are_dropped() -> None:
    labels = ["a;rare", "a", "a;b", "b", "b", "lonely", ""]
    vectors = np.random.default_rng(0).normal(size=(7, 3))
    scores = earmark.evaluate(vectors, labels, metrics="P@1", label_separator=";")
    assert scores.row("P@1").n == 5
    assert "1 unlabelled row dropped" in scores.notes
    assert "2 labels of fewer than 2 rows taken out, 1 row with no other dropped" in scores.notes


@pytest.mark.parametrize(
    ("labels", "options", "error", "words"),
    [
        (["a;noise", "a", "b", "b"], {"label_separator": ";", "background": "noise"}, InputError, "at once"),
        (["a;b", "a;b", "a;b"], {"label_separator": ";"}, InputError, "All rows have the same labels"),
        ([["a"], ["b"], [], ["c"]], {}, InputError, "Every label is of fewer than 2 clips"),
        (["a;b", "a", "b"], {"label_separator": ";", "queries": 2}, UsageError, "queries"),
        (["a;b", "a", "b"], {"label_separator": ";", "sample": "2x2"}, UsageError, "sample"),
        (np.array([[0, 2], [1, 0], [1, 1]]), {}, InputError, "0 and 1"),
        (["a", "b"], {"label_separator": 3}, UsageError, "label_separator"),
    ],
)
def test_what_cannot_be_is_told(labels: Any, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        earmark.evaluate(np.random.default_rng(0).normal(size=(len(labels), 3)), labels, metrics="P@1", **options)


def test_compare_takes_label_sets() -> None:
    vectors, sets, groups = field(4)
    worse = np.random.default_rng(0).normal(size=vectors.shape)
    rows = earmark.compare(vectors, worse, sets, metrics=METRICS, groups=groups)
    for metric in METRICS:
        row = rows.row(f"{metric}:difference")
        assert row.value is not None
        assert row.value > 0
        assert row.p_value is not None


# --- chance and intervals, by simulation ------------------------------------------------------------------------


def windows(rng: np.random.Generator) -> tuple[Any, list[set[str]], list[int]]:
    """Recordings of several windows: vectors tell the recording, and labels, which vary inside it, mean nothing."""
    groups = np.repeat(np.arange(12), rng.integers(3, 9, 12))
    held = rng.random((len(groups), len(LABELS))) < rng.uniform(0.1, 0.5, (12, len(LABELS)))[groups]
    vectors = rng.normal(size=(len(groups), 5)) + 1.5 * rng.normal(size=(12, 5))[groups]
    return vectors, [{name for name, there in zip(LABELS, row, strict=True) if there} for row in held], groups.tolist()


def test_p_values_of_labels_that_mean_nothing_are_small_no_more_often_than_they_say() -> None:
    rng = np.random.default_rng(7)
    small = dict.fromkeys(METRICS, 0)
    for _ in range(120):
        vectors, sets, groups = windows(rng)
        scores = earmark.evaluate(
            vectors, sets, metrics=METRICS, groups=groups, permutations=39, intervals="none", min_class_size=1,
            seed=int(rng.integers(2**31)),
        )  # fmt: skip
        for metric in METRICS:
            p_value = scores.row(metric).p_value
            small[metric] += p_value is not None and p_value <= 0.05
    # 5 % of 120 are 6; more than 13 come up in 3 of 1000 such counts.
    assert all(count <= 13 for count in small.values()), small
    assert all(count > 0 for count in small.values()), "a test that never alarms tests nothing"


def test_intervals_hold_the_value_that_collections_of_this_size_have() -> None:
    rng = np.random.default_rng(11)
    rows: dict[str, list[Any]] = {metric: [] for metric in METRICS}
    for _ in range(150):
        held = rng.random((80, 4)) < 0.35
        vectors = rng.normal(size=(80, 5))
        vectors[:, :4] += 1.5 * held
        sets = [{name for name, there in zip(LABELS, row, strict=True) if there} for row in held]
        scores = earmark.evaluate(vectors, sets, metrics=METRICS)
        for metric in METRICS:
            rows[metric].append(scores.row(metric))
    for metric, drawn in rows.items():
        expected = np.mean([row.value for row in drawn])
        covered = np.mean([row.low <= expected <= row.high for row in drawn])
        assert covered > 0.9, (metric, covered)


def notes(labels: Sequence[Any], **options: Any) -> str:
    vectors = np.random.default_rng(0).normal(size=(len(labels), 4))
    return " | ".join(earmark.evaluate(vectors, labels, metrics="P@1", **options).notes)


def test_labels_that_are_probably_meant_otherwise_are_told() -> None:
    labels = ["wren", "owl", "wren;owl", "none"] * 3
    told = notes(labels)
    assert "1 label such as 'wren;owl' is taken for a class of its own" in told
    assert "--label-separator ';'" in told
    assert "3 rows with the label 'none', a class like any other: --background 'none'" in told
    parted = notes(labels, label_separator=";")
    assert "class of its own" not in parted
    assert "with the label 'none'" in parted
    assert "with the label 'none'" not in notes(labels, label_separator=";", background="none")
    assert "labels that differ only in case or spaces are taken for different ones (Wren and wren)" in notes(
        ["Wren", "wren", "owl"] * 4
    )
    assert "taken for" not in notes(["rain; heavy", "wind", "hail"] * 4)
