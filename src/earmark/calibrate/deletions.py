"""What each metric is worth without each unit: the values that the jackknife rests on, from one sweep.

A unit is a clip or, where groups are given, a group; without it means without its points, as queries and as candidates
alike. The sweep kept lists a little deeper than k, the runner-up of every nearest other-class point and the class sums
(`wanted`); what is left to do touches the pairs inside classes and few others (see deletion_kernels.py).

Two things are held as they are: a class that shrinks to one clip stays among the candidates, and under a hubness
correction the factors of the points do not change.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from earmark.calibrate import _deletion_pairs as pairs
from earmark.calibrate import _deletion_values as values_of
from earmark.calibrate._deletion_work import Floats, Units, Work, units_of
from earmark.calibrate._devices import torch_device
from earmark.calibrate.closed_forms import CONTRAST, FARTHEST, HUBNESS
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept

__all__ = ["Units", "depth_needed", "leave_out", "sums_fit", "units_of"]


def depth_needed(k: int, units: Units) -> int:
    """How many neighbours a list must hold so that leaving out a unit rarely exhausts it."""
    return k + 1 if units.kind == "clip" else 2 * k + 16


def sums_fit(layout: Layout, protocols: int, memory: int, queries: int) -> bool:
    """Whether the class sums of every query may be kept: half of the memory budget at the most."""
    shared = 1 if layout.groups is not None else 0
    return 8 * queries * layout.classes * (protocols + shared) <= memory // 2


def leave_out(
    space: Space,
    layout: Layout,
    swept: dict[str, Swept],
    units: Units,
    metrics: Iterable[str],
    ks: tuple[int, ...],
    *,
    hub_k: int,
    factors: Factors | None = None,
    threads: int = 1,
    memory: int = 2 << 30,
    device: str = "cpu",
) -> dict[str, dict[str, Floats]]:
    """Per protocol and metric, the value without each unit, [U]; NaN where it cannot be measured any more.

    `swept` comes from a sweep that was given the units, lists of `depth_needed`, and kept its class sums if `metrics`
    names any of CLASS_SUMS. `device` says where: values are the same everywhere to rounding, P@k and hubness equal.
    """
    asked = frozenset(metrics)
    work = Work(space, layout, swept, units, asked, factors, threads, memory)
    where = torch_device(device, float(layout.n) ** 2 * space.points.shape[1])
    on_device = None
    if where is not None:
        from earmark.calibrate.torch_deletions import TorchDeletions

        on_device = work.on_device = TorchDeletions(work, where)
    if asked & (FARTHEST | {"GSR", CONTRAST}) or len(work.shared):
        if on_device is not None:
            on_device.go_over_classes()
        else:
            pairs.go_over_classes(work)
    values: dict[str, dict[str, Floats]] = {}
    for protocol in swept:
        values[protocol] = dict(values_of.values(work, protocol, ks, hub_k))
        for name, without in values[protocol].items():
            if name not in HUBNESS:  # which knows no classes
                without[work.one_class_left] = np.nan
    return values
