"""How often the interval of a mean over subsets holds the truth: `python benchmarks/means_of_subsets.py [data sets]`.

Data sets of a design (earmark.simulation) stand for subsets; the truth is the metric's mean over all of them. Means
over 4 and over 15 of them are drawn, and two ways to combine their jackknife intervals are counted: what
`earmark.scores.aggregate` does, and the root of the sum of squared half-widths, divided by their number.
"""

from __future__ import annotations

import sys

import numpy as np

from earmark.evaluation import evaluate
from earmark.scores import metric_facts
from earmark.scores._combining import Around, combine
from earmark.simulation._designs import DESIGNS, draw

METRICS = ("P@1", "P@5", "GSR", "CS", "silhouette")
SIZES = (4, 15)
MEANS = 1000


def measured(design: str, sets: int) -> dict[str, list[Around]]:
    """The values of data sets with their intervals, by metric."""
    found: dict[str, list[Around]] = {name: [] for name in METRICS}
    for repeat in range(sets):
        sample = draw(DESIGNS[design], 0, repeat)
        for row in evaluate(sample.a, sample.labels, groups=sample.groups, metrics=METRICS, threads=1):
            if row.value is not None and row.low is not None and row.high is not None:
                found[row.metric].append(Around(row.value, row.low, row.high, row.units))
    return found


def coverage(
    parts: list[Around], size: int, ends: tuple[float, float], rng: np.random.Generator
) -> tuple[float, float]:
    """The share of means whose interval holds the truth: as `combine` makes it, and by the root of squares."""
    truth = float(np.mean([part.value for part in parts]))
    held = np.zeros(2)
    for _ in range(MEANS):
        chosen = [parts[place] for place in rng.choice(len(parts), size, replace=False)]
        mean = float(np.mean([part.value for part in chosen]))
        for way, of in enumerate((chosen, [part._replace(units=None) for part in chosen])):
            down, up = combine(of, ends)
            held[way] += mean - down - 1e-12 <= truth <= mean + up + 1e-12
    return held[0] / MEANS, held[1] / MEANS


def main() -> None:
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng = np.random.default_rng(0)
    print("design               metric      subsets  covered  by root of squares")
    for design in ("clips", "15-groups", "6-groups", "labels-with-groups", "few-clips", "near-perfect"):
        for metric, parts in measured(design, sets).items():
            for size in SIZES:
                bent, plain = coverage(parts, size, metric_facts(metric).range, rng)
                print(f"{design:20} {metric:11} {size:7}  {bent:7.3f}  {plain:18.3f}", flush=True)


if __name__ == "__main__":
    main()
