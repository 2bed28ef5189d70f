"""Correlations with judgements: against scipy, with intervals that hold, honest where generators are few."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from earmark.analysis.human import exchanged_p, gain_interval, human_agreement, pearson_interval
from earmark.errors import InputError
from earmark.scores import Row, Scores

RNG = np.random.default_rng(4)
NAMES = [f"g{number}" for number in range(9)]
HUMAN = dict(zip(NAMES, RNG.random(9).tolist(), strict=True))


def table(**columns: np.ndarray) -> Scores:
    """Scores by `metric` or `metric__correction`."""
    rows = []
    for title, values in columns.items():
        metric, _, correction = title.partition("__")
        rows += [
            Row(system=name, distance="euclidean", metric=metric, correction=correction or "none", value=float(value))
            for name, value in zip(NAMES, values, strict=False)
        ]
    return Scores(rows=tuple(rows))


def test_correlations_are_those_of_scipy_with_all_turned_to_more_is_better() -> None:
    near = np.array(list(HUMAN.values())) + 0.2 * RNG.random(9)
    far = 1.0 - near + 0.3 * RNG.random(9)
    found = human_agreement(table(precision=near, frechet_distance=far), HUMAN).relations
    judged = np.array(list(HUMAN.values()))
    for relation, values in zip(found, (near, -far), strict=True):
        assert relation.pearson is not None
        assert relation.spearman is not None
        expected = stats.pearsonr(values, judged)
        ends = expected.confidence_interval(0.95)
        assert relation.pearson[:3] == pytest.approx((expected.statistic, *ends), abs=1e-9)
        # Exchanged judgements stand in for the normal theory of scipy's p-value: of nine systems the two are near.
        assert relation.pearson.p_value == pytest.approx(expected.pvalue, abs=0.02)
        assert relation.spearman.value == pytest.approx(stats.spearmanr(values, judged).statistic)
    turned = human_agreement(table(precision=near), HUMAN, higher_is_better=False).relations[0]
    assert turned.pearson is not None
    assert turned.pearson.value == pytest.approx(-stats.pearsonr(near, judged).statistic)


def test_p_values_are_corrected_for_the_metrics_that_were_tried() -> None:
    columns = {name: RNG.random(9) for name in ("precision", "recall", "density", "coverage")}
    found = human_agreement(table(**columns), HUMAN).relations
    for kind in ("pearson", "spearman"):
        values = [getattr(relation, kind) for relation in found]
        order = np.argsort([value.p_value for value in values])
        by_hand, largest = {}, 0.0
        for at, place in enumerate(order):
            largest = max(largest, min(1.0, values[place].p_value * (4 - at)))
            by_hand[place] = largest
        assert [value.p_adjusted for value in values] == pytest.approx([by_hand[place] for place in range(4)])


def test_the_gain_of_a_correction_is_the_difference_of_its_correlations() -> None:
    plain, corrected = RNG.random(9), np.array(list(HUMAN.values())) + 0.1 * RNG.random(9)
    (gain,) = human_agreement(table(precision=plain, precision__gicdm=corrected), HUMAN).gains
    judged = list(HUMAN.values())
    assert gain.value == pytest.approx(stats.pearsonr(corrected, judged)[0] - stats.pearsonr(plain, judged)[0])
    assert gain.low is not None
    assert gain.high is not None
    assert gain.low < gain.value < gain.high


@pytest.mark.parametrize(("n", "with_it", "without", "between"), [(6, 0.8, 0.8, 0.8), (9, 0.9, 0.6, 0.7)])
def test_intervals_hold_what_they_should(n: int, with_it: float, without: float, between: float) -> None:
    """Of normal values: 95 of 100 intervals hold the truth, of a correlation and of a gain."""
    matrix = np.array([[1, between, with_it], [between, 1, without], [with_it, without, 1]])
    drawn = np.random.default_rng(7).normal(size=(600, n, 3)) @ np.linalg.cholesky(matrix).T
    held = np.zeros(2)
    for points in drawn:
        r = np.corrcoef(points.T)
        low, high = gain_interval(r[0, 2], r[1, 2], r[0, 1], n)
        held[0] += low <= with_it - without <= high
        low, high = pearson_interval(r[0, 2], n)
        held[1] += low <= with_it <= high
    assert (held / len(drawn) >= 0.925).all(), held
    assert (held / len(drawn) <= 0.985).all(), held


def test_few_generators_have_correlations_and_nothing_more() -> None:
    found = human_agreement(table(precision=RNG.random(4), density=np.ones(4)), HUMAN)
    few, constant = found.relations
    assert few.pearson is not None
    assert few.pearson[1:] == (None,) * 4
    assert constant.pearson is None
    assert constant.reason == "the metric is the same for all systems"
    assert any("need 5" in note for note in found.notes)
    assert any("not measured: g4" in note for note in found.notes)
    two = human_agreement(table(precision=RNG.random(2)), HUMAN).relations[0]
    assert two.pearson is None
    assert "needs three" in two.reason


def test_systems_must_have_the_same_names() -> None:
    with pytest.raises(InputError, match="No judged system is among those measured \\(g0, g1"):
        human_agreement(table(precision=RNG.random(9)), {"other": 1.0})
    doubled = Scores(rows=(*table(precision=RNG.random(9)), *table(precision=RNG.random(9))))
    with pytest.raises(InputError, match="two values of precision"):
        human_agreement(doubled, HUMAN)


def test_two_clumps_of_generators_give_no_certainty() -> None:
    """Five generators in two clumps lie on a line: no interval, and a p-value that exchanges can reach."""
    judged = dict(zip(NAMES, [0.9, 0.9, 0.9, 0.1, 0.1], strict=False))
    values = [0.8, 0.8, 0.8, 0.2, 0.2]
    relation = human_agreement(table(precision=values), judged).relations[0]
    assert relation.pearson is not None
    assert relation.pearson.value == pytest.approx(1.0)
    assert (relation.pearson.low, relation.pearson.high) == (None, None)
    assert relation.pearson.p_value == pytest.approx(2 * 6 / 120)  # 12 of 120 orders keep the clumps, by hand


def test_exchanges_reject_equal_systems_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    small = [exchanged_p(rng.exponential(size=6), rng.exponential(size=6)) <= 0.05 for _ in range(300)]
    assert np.mean(small) <= 0.085
