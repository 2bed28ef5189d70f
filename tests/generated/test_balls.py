"""Balls at any scale of the data, and a judge that keeps what it has learned."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.errors import InputError
from earmark.generated import GICDM
from earmark.generated.api import fidelity
from earmark.generated.measure import measure


def sets() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(110, 4)), 0.9 * rng.normal(size=(60, 4))


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**400])
def test_the_unit_of_the_vectors_does_not_matter(unit: float) -> None:
    real, generated = sets()
    metrics = ["precision", "recall", "density", "p_precision", "clipped_density"]
    here = fidelity(real, generated, metrics=metrics, bootstrap=0, threads=1)
    there = fidelity(real * unit, generated * unit, metrics=metrics, bootstrap=0, threads=1)
    assert [row.status for row in there.rows] == [row.status for row in here.rows]
    values, expected = ([row.value for row in one.rows if row.status == "ok"] for one in (there, here))
    assert len(values) > 5
    assert values == pytest.approx(expected, rel=1e-9)
    for key, values in here.per_sample.items():
        if key[3] == "reach":
            assert there.per_sample[key] == pytest.approx(values, rel=1e-9, nan_ok=True)


def test_copies_are_close_however_narrow_their_heap() -> None:
    """The reach is 1e-8 of the distance from the centre, less than the rounding of a product."""
    rng = np.random.default_rng(1)
    real = np.where(np.arange(80) % 2, 1.0, -1.0)[:, None] + 1e-8 * rng.normal(size=(80, 10))
    assert measure(real, real[:70].copy(), metrics="p_precision") == {"p_precision": 1.0}


def test_a_sample_out_of_all_proportion_is_refused() -> None:
    real, generated = sets()
    generated[3] = 1e170
    with pytest.raises(InputError, match="extreme"):
        measure(real, generated, metrics="precision")


def test_parameters_set_after_fit_wait_for_the_next_fit() -> None:
    real, generated = sets()
    judge = GICDM(k=5).fit(real)
    before = judge.transform(generated)
    after = judge.set_params(distance="cosine").transform(generated)
    assert np.array_equal(before.factors, after.factors)
    assert not np.array_equal(before.factors, judge.fit(real).transform(generated).factors)
