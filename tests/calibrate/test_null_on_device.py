"""The null on a torch device is the CPU's: P@k to the bit, the others to rounding. CPU torch runs the same code."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases import CASES, DISTANCES

from earmark.calibrate._arrangements import scheme_of
from earmark.calibrate.permutation import CALIBRATED, null_distributions
from earmark.geometry import spaces
from earmark.geometry.factors import Factors
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep

KS = (1, 5)
DEVICE = "torch:cpu"


def both(case, distance, metrics=CALIBRATED, *, permutations=7, depth=16, kind=None, **options):
    """The nulls of the CPU and of the device, and the scheme of the shuffles."""
    codes = np.unique(case.labels, return_inverse=True)[1]
    groups = None if case.groups is None else np.unique(np.asarray(case.groups).astype(str), return_inverse=True)[1]
    layout = lay_out(codes, groups)
    space = spaces.prepare(np.asarray(case.vectors, float), distance, order=layout.order)
    factors = None if kind is None else factors_of(kind, layout.n)
    swept = sweep(space, layout, Wanted(depth, across_groups=groups is not None), factors=factors)
    given = space, layout, swept, frozenset(metrics), tuple(k for k in KS if k < layout.n), permutations
    found = [null_distributions(*given, seed=3, factors=factors, device=d, **options) for d in ("cpu", DEVICE)]
    return *found, scheme_of(layout)


def factors_of(kind, n):
    """Numbers that a correction could have found."""
    generator = np.random.default_rng(1)
    return Factors(kind, generator.uniform(0.5, 2.0, n), generator.uniform(0.1, 0.4, n if kind == "normal" else 0))


def assert_equal(found, reference):
    assert set(found) == set(reference)
    for protocol, metrics in reference.items():
        assert set(found[protocol]) == set(metrics)
        for name, values in metrics.items():
            if name.startswith("P@"):
                assert np.array_equal(found[protocol][name], values, equal_nan=True), (protocol, name)
            else:
                assert np.allclose(found[protocol][name], values, rtol=1e-11, atol=1e-13, equal_nan=True), (
                    protocol, name, np.nanmax(np.abs(found[protocol][name] - values))
                )  # fmt: skip


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CASES)
def test_the_device_gives_the_null_of_the_cpu(name, distance, grouped):
    case = CASES[name]()
    cpu, device, _ = both(case if grouped else case._replace(groups=None), distance)
    assert_equal(device, cpu)
