"""Wider searches: against all orders there are, against the proxy's definition, and what they change."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.analysis.test_prowl import delta, eta, scores

from earmark.analysis import beams as b
from earmark.analysis.matrix import from_table
from earmark.analysis.prowl import area, greedy, prowl, proxy_curve
from earmark.analysis.similarities import similarity_matrix
from earmark.errors import UsageError


def test_the_proxy_curve_is_delta_of_each_size() -> None:
    similarity = similarity_matrix(scores(), "pearson")
    order = (3, 0, 6, 1, 5, 2, 4)
    assert proxy_curve(similarity, order) == pytest.approx([delta(similarity, order[: k + 1]) for k in range(7)])


@pytest.mark.parametrize("name", ["pearson", "manhattan"])
def test_a_beam_wider_than_all_subsets_finds_the_best_of_all_orders(name: str) -> None:
    similarity = similarity_matrix(scores(datasets=5), name)
    best = max(area(proxy_curve(similarity, order)) for order in itertools.permutations(range(5)))
    assert area(proxy_curve(similarity, greedy(similarity, beam=1000))) == pytest.approx(best, abs=1e-12)


def test_every_width_and_similarity_with_its_own_numbers() -> None:
    values = scores()
    matrix = from_table(values, map(str, range(len(values))), "abcdefg")
    found = b.beam_orders(matrix, (1, 3, 3), ("pearson", "cosine"))
    assert [(one.similarity, one.beam) for one in found] == [
        ("pearson", 1), ("pearson", 3), ("cosine", 1), ("cosine", 3),
    ]  # fmt: skip
    narrow = prowl(matrix, ("pearson", "cosine"), orders=0)
    for one in found:
        similarity = similarity_matrix(values, one.similarity)
        assert one.order == greedy(similarity, one.beam)
        curve = [eta(values, one.order[: k + 1]) for k in range(7)]
        assert one.scauc == pytest.approx(np.trapezoid(curve, np.linspace(0, 1, 7)))
        assert one.size == next(k + 1 for k in range(7) if curve[k] >= 0.95 - 1e-12)
        if one.beam == 1:
            assert one.order == narrow.selection(one.similarity).order


def test_changes_are_means_over_similarities_against_the_narrowest() -> None:
    def order(similarity: str, beam: int, proxy: float, scauc: float, size: int) -> b.BeamOrder:
        return b.BeamOrder(similarity, beam, (0, 1), proxy, scauc, size, size)

    orders = [order("x", 5, 0.5, 0.90, 3), order("x", 2, 0.4, 0.92, 2), order("y", 5, 0.7, 0.96, 1),
              order("y", 2, 0.7, 0.92, 1)]  # fmt: skip
    (change,) = b.beam_changes(orders)
    assert change == pytest.approx((5, 0.05, 0.01, 0.5, 1, 1, 2))
    assert b.beam_changes(orders[1::2]) == []


@pytest.mark.parametrize("widths", [0, -1, [1, 0], [], True, [1.5]])
def test_widths_that_make_no_sense_are_refused(widths: object) -> None:
    with pytest.raises(UsageError, match="beam"):
        b.checked_widths(widths)  # type: ignore[arg-type]
