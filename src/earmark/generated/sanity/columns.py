"""The columns of the sanity table: Earmark's own metrics with and without GICDM, and any metric of a user.

A metric of a user is an import path `module:function`; `function(real, generated)` gets two matrices and returns one
number, judged as fidelity or as coverage, or a pair (fidelity, coverage), judged as two columns.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from earmark.errors import Ended, InputError, UsageError, did_you_mean, no_exit
from earmark.generated.metrics import LITERAL, LITERALS, METRICS
from earmark.generated.sanity._data import CHECKS, Floats, draw_pair
from earmark.generated.sanity.rules import Kind
from earmark.registry import load_path

CORRECTIONS = ("none", "gicdm")
PRINTED = {
    "alpha_precision": "alpha-Precision", "precision_cover": "Precision Cover", "precision": "Precision",
    "density": "Density", "sym_precision": "symPrecision", "p_precision": "P-precision",
    "clipped_density": "Clipped Density",
    "beta_recall": "beta-Recall", "recall_cover": "Recall Cover", "recall": "Recall", "coverage": "Coverage",
    "sym_recall": "symRecall", "p_recall": "P-recall", "clipped_coverage": "Clipped Coverage",
}  # fmt: skip
"""Metrics in the order of the published tables, and what they are called there: fidelity, then coverage."""
JUDGED = tuple(PRINTED)
FIDELITY, COVERAGE = JUDGED[:7], JUDGED[7:]

OwnMetric = Callable[[Floats, Floats], Any]


@dataclass(frozen=True)
class Column:
    """A metric under a correction. `key` names its scores on disk, with a digest of the code of a user's metric."""

    metric: str
    correction: str
    kind: Kind
    key: str
    path: str = ""  # a user's metric: where it is imported from
    part: int = 0  # which of its values
    function: OwnMetric | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.metric if self.correction == "none" else f"{self.metric}+{self.correction}"

    @property
    def family(self) -> str:
        """The metric whatever its reading."""
        return self.metric.removesuffix(LITERAL)

    @property
    def own(self) -> bool:
        return bool(self.path or self.function)

    @property
    def printed(self) -> tuple[str, str]:
        """The name and the flag of the published tables, ("", …) for a metric that is not in them."""
        return PRINTED.get(self.family, ""), "1" if self.correction == "gicdm" else "0"


def choose(
    metrics: Sequence[str | OwnMetric] | None, correct: Sequence[str] = CORRECTIONS, *, own_kind: Kind = "fidelity"
) -> list[Column]:
    """The columns for names, import paths or functions; all that were published when `metrics` is None."""
    for correction in correct:
        if correction not in CORRECTIONS:
            raise UsageError(f"Unknown correction {correction!r}: the sanity checks know {' and '.join(CORRECTIONS)}.")
    columns: list[Column] = []
    for metric in JUDGED if metrics is None else metrics:
        if callable(metric):
            columns.extend(_own(metric.__name__, metric, own_kind))
        elif ":" in metric:
            columns.extend(_own(metric, None, own_kind))
        else:
            columns.extend(_built_in(metric, correct, asked=metrics is not None))
    unique = {column.key: column for column in columns}
    if not unique:
        raise UsageError("No metric is left to check: name at least one, under a correction that it has.")
    return list(unique.values())


def _built_in(metric: str, correct: Sequence[str], *, asked: bool) -> Iterable[Column]:
    known = (*JUDGED, *LITERALS)
    if metric not in known:
        raise UsageError(
            f"There is no fidelity or coverage metric {metric!r}.{did_you_mean(metric, known)} "
            f"Known: {', '.join(known)}; or give an import path such as mypackage.mymodule:my_metric."
        )
    facts = METRICS[metric.removesuffix(LITERAL)]
    if asked and not facts.gicdm and tuple(correct) == ("gicdm",):
        raise UsageError(f"{metric} has no form with GICDM: check it with the correction none.")
    kind: Kind = "fidelity" if facts.asks == "fidelity" else "coverage"
    for correction in correct:
        # Without GICDM the literal and the corrected reading are one.
        if (correction == "gicdm" and facts.gicdm) or (correction == "none" and metric not in LITERALS):
            yield Column(metric, correction, kind, f"{metric}+{correction}")


def _own(name: str, function: OwnMetric | None, kind: Kind) -> Iterable[Column]:
    found = load_path(name, "metric") if function is None else function
    if not callable(found):
        raise UsageError(f"The metric {name!r} is not a function: give module:function, called with (real, generated).")
    path = name if function is None else ""
    key = f"{name}@{_digest(found)}"
    sample = draw_pair(CHECKS["mean"], CHECKS["mean"].subcases[1], 0.0, 0, n=200)
    values = own_values(name, found, *sample)
    kinds: list[Kind] = [kind] if len(values) == 1 else ["fidelity", "coverage"]
    for part, each in enumerate(kinds):
        suffix = "" if len(kinds) == 1 else f".{each}"
        yield Column(f"{name}{suffix}", "none", each, f"{key}{suffix}", path, part, function)


def own_values(name: str, function: OwnMetric, real: Floats, generated: Floats) -> list[float]:
    """What a user's metric returns, as one or two numbers; NaN is allowed and counts as no score."""
    try:
        with no_exit():
            returned = function(real, generated)
    except Ended as error:
        raise InputError(f"The metric {name!r} failed: {error}.") from error
    except Exception as error:
        said = " ".join(str(error).split())
        raise InputError(f"The metric {name!r} failed with {type(error).__name__}: {said[:200]}") from error
    try:
        values = np.asarray(returned, np.float64).ravel()
    except (TypeError, ValueError):
        values = np.empty(0)
    if isinstance(returned, Mapping) or len(values) not in (1, 2):
        raise InputError(
            f"The metric {name!r} returned {type(returned).__name__}: return one number or (fidelity, coverage)."
        )
    return [float(value) for value in values]


def _digest(function: OwnMetric) -> str:
    """A digest of the file that holds a function: its scores are computed anew when it has changed."""
    try:
        source = inspect.getsourcefile(function)
        text = Path(source).read_bytes() if source else b""
    except (OSError, TypeError):
        text = b""
    return hashlib.sha256(text or repr(function).encode()).hexdigest()[:8]


def neighbours_of(metric: str, n: int) -> int:
    """The k that the benchmark gives a metric for a real set of n points.

    The cover pair counts in more than the threes of its default: at 3 and 9, two sets of one distribution have an
    expected score of 0.945, and the published T at "1 at 0" could not be.
    """
    metric = metric.removesuffix(LITERAL)
    if metric in ("density", "coverage"):
        return expected_coverage_k(n)
    if metric in ("precision_cover", "recall_cover"):
        return int(int(math.log(n) + 7) / 3 + 1)
    if metric in ("precision", "recall"):
        return 3
    return 4 if metric in ("p_precision", "p_recall") else 5


def expected_coverage_k(n: int, target: float = 0.95, most: int = 20) -> int:
    """The smallest k whose coverage is expected above `target` when both sets of n are of one distribution."""
    missed = 1.0
    for k in range(1, most + 1):
        missed *= (n - k) / (2 * n - k)
        if 1.0 - missed > target:
            return k
    return most
