"""Values without each unit on a torch device are those of the CPU. CPU torch runs the same code."""

from __future__ import annotations

import numpy as np
import pytest
from tests import brute
from tests.cases import CASES, DISTANCES

from earmark.calibrate import torch_deletions
from earmark.calibrate.closed_forms import CLASS_SUMS
from earmark.calibrate.deletions import depth_needed, leave_out, units_of
from earmark.geometry import spaces, torch_pairs
from earmark.geometry.factors import Factors
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep

METRICS = "GSR CSR CSR_pointwise CS CSCF silhouette hub_skew".split()
KS = (1, 5)


def both(case, distance, *, grouped, metrics=METRICS, kind=None):
    """The values of the CPU and of the device."""
    rows = brute.kept_rows(case.labels)
    codes = np.unique(case.labels[rows], return_inverse=True)[1]
    groups = np.unique(np.asarray(case.groups)[rows], return_inverse=True)[1] if grouped else None
    layout = lay_out(codes, groups)
    units = units_of(layout)
    space = spaces.prepare(np.asarray(case.vectors)[rows], distance, order=layout.order)
    factors = None
    if kind is not None:
        generator = np.random.default_rng(1)
        spread = generator.uniform(0.1, 0.4, layout.n if kind == "normal" else 0)
        factors = Factors(kind, generator.uniform(0.5, 2.0, layout.n), spread)
    wanted = Wanted(
        neighbours=depth_needed(max(KS), units), farthest=True, class_sums=True, across_groups=grouped,
        units=units.of, keep_sums=bool(CLASS_SUMS & set(metrics)),
    )  # fmt: skip
    swept = sweep(space, layout, wanted, factors=factors)
    return [
        leave_out(space, layout, swept, units, metrics, KS, hub_k=5, factors=factors, device=device)
        for device in ("cpu", "torch:cpu")
    ]


def assert_equal(found, reference, skipped=()):
    assert set(found) == set(reference)
    for protocol, metrics in reference.items():
        assert set(found[protocol]) == set(metrics)
        for name, values in metrics.items():
            if name not in skipped:
                assert np.allclose(found[protocol][name], values, rtol=1e-10, atol=1e-12, equal_nan=True), (
                    protocol, name, np.nanmax(np.abs(found[protocol][name] - values))
                )  # fmt: skip


# Every case by clips and by groups, each under one distance: the ways differ by distance, not the cases.
PAIRS = [(name, DISTANCES[i % 3], i % 2 == 0) for i, name in enumerate(CASES)]
PAIRS += [(name, DISTANCES[(i + 1) % 3], i % 2 == 1) for i, name in enumerate(CASES)]


@pytest.mark.parametrize(("name", "distance", "grouped"), PAIRS)
def test_the_device_gives_the_values_of_the_cpu(name, distance, grouped):
    cpu, device = both(CASES[name](), distance, grouped=grouped)
    assert_equal(device, cpu)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", ["scale", "local", "normal"])
def test_corrected_distances(kind, grouped):
    cpu, device = both(CASES["random"](), "euclidean", grouped=grouped, kind=kind)
    assert_equal(device, cpu)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("metrics", [["GSR"], ["CSR"], ["CS"], ["silhouette"], ["hub_skew"]], ids="+".join)
def test_any_choice_of_metrics(metrics, grouped):
    cpu, device = both(CASES["random"](), "cosine", grouped=grouped, metrics=metrics)
    assert_equal(device, cpu)


@pytest.mark.parametrize("grouped", [False, True])
def test_blocks_do_not_matter(monkeypatch, grouped):
    case = CASES["duplicates"]()
    monkeypatch.setattr(torch_deletions, "BLOCK", 1)
    monkeypatch.setattr(torch_pairs, "PAIR_BYTES", 1)
    for distance in ("cosine", "euclidean"):
        cpu, device = both(case, distance, grouped=grouped)
        assert_equal(device, cpu)
