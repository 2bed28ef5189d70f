"""The Pareto front against its definition, point by point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earmark.analysis.pareto import pareto_front
from earmark.errors import InputError

POINTS = st.lists(st.tuples(*[st.integers(1, 5)] * 3), min_size=1, max_size=12)


@given(POINTS, st.tuples(*[st.booleans()] * 3))
def test_the_front_holds_whoever_is_not_beaten(points, higher):
    costs = [[-value if up else value for value, up in zip(point, higher, strict=True)] for point in points]

    def beats(a, b):
        return all(x <= y for x, y in zip(a, b, strict=True)) and a != b

    wanted = [not any(beats(other, mine) for other in costs) for mine in costs]
    assert pareto_front(np.array(points, float).T, higher).tolist() == wanted


def test_equal_points_are_all_on_the_front_and_no_points_have_none():
    assert pareto_front([[1, 1, 2, 2], [5, 5, 5, 6]], [False, True]).tolist() == [True, True, False, True]
    assert pareto_front([[], []], [False, True]).tolist() == []


@pytest.mark.parametrize(("rates", "scores"), [([1.0, 2.0], [np.nan, 3.0]), ([np.nan, 2.0], [1.0, 3.0])])
def test_a_point_without_a_value_is_refused(rates, scores):
    with pytest.raises(InputError, match="finite"):
        pareto_front([rates, scores], [False, True])


def test_axes_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="one length"):
        pareto_front([[1, 2], [1]], [False, True])
