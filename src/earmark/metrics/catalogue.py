"""What each metric of an evaluation needs from the sweep, as data: a planner reads it and sweeps once for all."""

from __future__ import annotations

import re
from collections.abc import Iterable

from earmark.errors import UsageError, did_you_mean

NEEDS: dict[str, frozenset[str]] = {
    "P@k": frozenset({"neighbours"}),
    "GSR": frozenset({"nearest_other", "class_sums"}),
    "CSR": frozenset({"nearest_other", "farthest"}),
    "CSR_pointwise": frozenset({"nearest_other", "farthest"}),
    "CS": frozenset({"class_sums", "class_pairs"}),
    "CSCF": frozenset({"class_sums", "class_pairs"}),
    "silhouette": frozenset({"class_sums"}),
    "NMI": frozenset({"kmeans"}),
    "ARI": frozenset({"kmeans"}),
    "kmeans_purity": frozenset({"kmeans"}),
    "purity": frozenset({"density"}),
    "hub_ratio": frozenset({"occurrences"}),
    "antihub_rate": frozenset({"occurrences"}),
    "hub_skew": frozenset({"occurrences"}),
    "robin_hood": frozenset({"occurrences"}),
}
HUBNESS = ("hub_ratio", "antihub_rate", "hub_skew", "robin_hood")
CLUSTERING = ("NMI", "ARI", "kmeans_purity")
CLUSTERED = (*CLUSTERING, "purity")  # need points, not only distances
RATIOS = ("GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette")  # divide distances by distances
POINT_MEANS = ("GSR", "CSR_pointwise", "silhouette")  # and P@k: means over queries of a per-point value
DEFAULT = ("P@k", "GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette", *HUBNESS)
EVERYTHING = (*DEFAULT, *CLUSTERED)
_PRECISION = re.compile(r"P@([1-9]\d*)")


def plan(metrics: Iterable[str] | None, ks: Iterable[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Spell out the metrics asked for: their names in catalogue order, without P@k, and every k of P@k."""
    asked = list(DEFAULT if metrics is None else metrics)
    if not asked:
        raise UsageError("No metric was asked for: name at least one.")
    names: set[str] = set()
    found: set[int] = set()
    for name in asked:
        match = _PRECISION.fullmatch(name)
        if name == "all":
            names.update(EVERYTHING)
        elif match:
            found.add(int(match[1]))
        elif name in NEEDS:
            names.add(name)
        else:
            raise UsageError(
                f"There is no metric {name!r} for an evaluation.{did_you_mean(name, [*NEEDS, 'P@1', 'P@5'])} "
                f"There are P@1, P@5 (any k), {', '.join(list(NEEDS)[1:])}."
            )
    if "P@k" in names:
        found.update(ks)
        if not found:
            raise UsageError("P@k was asked for without a k: give at least one, such as 1 and 5.")
    if any(k < 1 for k in found):
        raise UsageError("k of P@k must be at least 1.")
    return tuple(name for name in NEEDS if name in names and name != "P@k"), tuple(sorted(found))


def needs(names: Iterable[str]) -> frozenset[str]:
    """Everything the named metrics need together."""
    return frozenset().union(*(NEEDS[name] for name in names))
