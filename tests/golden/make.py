"""Make the golden triples: a small input (.npz), parameters and expected values (.json), by brute force alone.

python -m tests.golden.make        (from the repository root; only when a definition changes)
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tests import brute, cases

HERE = Path(__file__).parent
SEED, PERMUTATIONS, RESAMPLES, KS, HUB_K = 11, 20, 20, (1, 3), 4
METRICS = ("P@k", "GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette")
HUBNESS = ("hub_ratio", "antihub_rate", "hub_skew", "robin_hood")


def shrunk(case: cases.Case, rows: int = 36, decimals: int = 3) -> cases.Case:
    """A few rows and digits of a case, so that the file stays small and holds exactly what is measured."""
    vectors = case.vectors[:rows]
    if vectors.dtype.kind == "f":
        vectors = np.round(vectors, decimals).astype(np.float32)
    return cases.Case(vectors, case.labels[:rows], case.groups[:rows])


def grid() -> cases.Case:
    rng = np.random.default_rng(100)
    labels = cases.names(rng.integers(0, 3, 40))
    return cases.Case(rng.integers(-2, 3, (40, 3)).astype(np.int8), labels, rng.integers(0, 8, 40))


GOLDEN: dict[str, tuple[cases.Case, tuple[str, ...]]] = {
    "plain": (shrunk(cases.random(101)), cases.DISTANCES),
    "duplicates": (shrunk(cases.duplicates(), 60), cases.DISTANCES),
    "no_direction": (shrunk(cases.zero_vectors()), cases.DISTANCES),
    "offset": (shrunk(cases.offset_1000(), 40, 2), ("cosine", "euclidean")),
    "grid": (grid(), ("euclidean",)),
    "no_groups": (shrunk(cases.random(102))._replace(groups=None), cases.DISTANCES),
}


def expected(case: cases.Case, distance: str, protocol: str) -> dict[str, dict[str, float]]:
    """{metric: {value, low, high, baseline, baseline_low, baseline_high, p_value}}, without what is undefined."""
    across = protocol == "across_groups"
    barred = case.groups if across else None
    matrix = brute.distance_matrix(case.vectors, distance)
    values = brute.label_values(matrix, case.labels, barred, KS)
    nulls = brute.null_values(matrix, case.labels, PERMUTATIONS, SEED, case.groups, KS, across=across)
    draws = brute.resampled_values(matrix, case.labels, RESAMPLES, SEED, case.groups, across, KS)
    found: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        null, (low, high) = nulls[name], brute.interval(draws[name])
        reached = null <= value + 1e-12 if name in ("CS", "CSCF") else null >= value - 1e-12
        baseline_low, baseline_high = brute.interval(null)
        found[name] = {
            "value": value, "low": low, "high": high, "baseline": null.mean(), "baseline_low": baseline_low,
            "baseline_high": baseline_high, "p_value": (reached.sum() + 1) / (PERMUTATIONS + 1),
        }  # fmt: skip
    for name, value in brute.hub_values(brute.occurrences(matrix, HUB_K, barred), HUB_K).items():
        found[name] = {"value": value}
    return {name: {cell: float(number) for cell, number in cells.items()} for name, cells in found.items()}


def main() -> None:
    for name, (case, distances) in GOLDEN.items():
        grouped = case.groups is not None
        arrays = {"vectors": case.vectors, "labels": case.labels} | ({"groups": case.groups} if grouped else {})
        np.savez_compressed(HERE / f"{name}.npz", **arrays)
        record = {
            "parameters": {
                "distance": distances, "metrics": (*METRICS, *HUBNESS), "k": KS, "hub_k": HUB_K,
                "permutations": PERMUTATIONS, "bootstrap": RESAMPLES, "seed": SEED, "across_groups": grouped,
            },
            "expected": {
                distance: {p: expected(case, distance, p) for p in ("all", "across_groups")[: 1 + grouped]}
                for distance in distances
            },
        }  # fmt: skip
        (HERE / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
