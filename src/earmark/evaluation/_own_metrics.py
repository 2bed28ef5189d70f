"""Metrics of one's own in an evaluation: each gets what its arguments name, and may fail without harm to the others.

Arrays have a row for each clip that was kept, in the order given. `neighbours` are the k (`hub_k`) nearest rows of
these arrays, nearest first, -1 where there are no more. A metric returns one number, or one for each clip (NaN: no
value), whose mean is its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from earmark.calibrate import bootstrap as resampling
from earmark.errors import Ended, no_exit
from earmark.evaluation._from_sweep import Evaluated, from_pairs, not_applicable, quantity
from earmark.evaluation.data import Data
from earmark.geometry.sweep import Swept
from earmark.metrics import catalogue
from earmark.scores import METRICS, Row


def own_metrics(
    data: Data, swept: Swept | None, names: Sequence[str], k: int, refused: Mapping[str, str],
    counts: resampling.Counts | None, protocol: str,
) -> Iterator[Evaluated | Row]:  # fmt: skip
    """Those of the metrics that are strangers'; what needs no distances belongs to the protocol "all"."""
    for name in names:
        if not catalogue.is_own(name) or (protocol != "all" and not from_pairs(name)):
            continue
        if name in refused:
            yield not_applicable(name, refused[name])
            continue
        record = METRICS[name]
        try:
            with no_exit():
                value = record.compute(**{need: _offered(data, swept, need, k) for need in record.needs})
            yield _measured(name, np.asarray(value, np.float64), data, counts)
        except Ended as error:
            yield Row(metric=name, status="failed", reason=str(error))
        except Exception as error:
            yield Row(metric=name, status="failed", reason=f"{type(error).__name__}: {' '.join(str(error).split())}")


def _offered(data: Data, swept: Swept | None, need: str, k: int) -> Any:
    """What an argument of a metric stands for."""
    layout = data.layout
    if need == "vectors":
        return data.vectors[data.kept]
    if need == "labels":
        return layout.to_rows(np.asarray(data.classes)[layout.codes])
    if need == "groups":
        return None if layout.groups is None else layout.to_rows(layout.groups)
    if need == "k":
        return k
    assert swept is not None
    if need == "neighbours":
        places = swept.neighbours.places[:, :k]
        return layout.to_rows(np.where(places >= 0, layout.order[places], -1))
    if need == "neighbour_distances":
        return layout.to_rows(swept.neighbours.distances[:, :k])
    return layout.to_rows(quantity(swept, need, k))


def _measured(name: str, values: Any, data: Data, counts: resampling.Counts | None) -> Evaluated | Row:
    if values.ndim == 0:
        if not np.isfinite(values):
            return Row(metric=name, status="failed", reason=f"the value came out as {float(values)}")
        return Evaluated(name, float(values), data.layout.n)
    if values.shape != (data.layout.n,):
        raise ValueError(f"it returned values of shape {values.shape} for {data.layout.n} clips")
    points = values[data.layout.order]
    valid = np.isfinite(points)
    if not valid.any():
        return not_applicable(name, "it has a value for no point")
    resampled = None if counts is None else resampling.resampled_means(points, counts)
    return Evaluated(name, float(points[valid].mean()), int(valid.sum()), resampled, points)
