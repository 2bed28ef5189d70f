"""How often equal generators are told apart, and how often a rank's interval holds: the table of docs/generators.md.

    python benchmarks/generators.py [--repeats 100] [--designs "equal 8-D"] [--into FOLDER]

Each repeat draws a real set and four generated ones, judges them by ten metrics with and without GICDM, and looks at
the verdicts on six pairs and the intervals of four ranks. True ranks of unequal generators are those of the mean values
over all repeats. A repeat takes 2 to 10 s on one core; the run can be killed and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from earmark.generated.several import rank_generators
from earmark.scores import metric_facts

METRICS = (
    "precision,density,clipped_density,coverage,recall,clipped_coverage,sym_precision,p_precision,kernel_distance,"
    "frechet_distance"
)


class Design(NamedTuple):
    """Points of a real Gaussian set, of each generated one, their dimension, and scale and shift of each generator."""

    real: int
    generated: tuple[int, ...]
    dimension: int
    generators: tuple[tuple[float, float], ...]


DESIGNS = {
    "equal 8-D": Design(120, (120,) * 4, 8, ((1.0, 0.0),) * 4),
    "equal 32-D": Design(220, (220,) * 4, 32, ((1.0, 0.0),) * 4),
    "equally tame 3-D": Design(120, (120,) * 4, 3, ((0.5, 0.0),) * 4),
    "equal, sizes unlike": Design(220, (60, 120, 220, 400), 8, ((1.0, 0.0),) * 4),
    "unequal 8-D": Design(120, (120,) * 4, 8, ((1.0, 0.0), (1.0, 0.3), (0.9, 0.0), (1.15, 0.0))),
}


def repeat(design: Design, seed: int) -> dict[str, Any]:
    """By correction and metric: the p-values of all pairs, and value and interval of every rank."""
    rng = np.random.default_rng([seed, 77])
    real = rng.normal(size=(design.real, design.dimension))
    sets = {
        f"g{place}": scale * rng.normal(size=(size, design.dimension)) + shift
        for place, ((scale, shift), size) in enumerate(zip(design.generators, design.generated, strict=True))
    }
    ranked = rank_generators(real, sets, metrics=METRICS, reading="corrected", threads=1, seed=seed)
    found: dict[str, Any] = defaultdict(lambda: {"p": [], "ranks": []})
    for row in ranked.pairs:
        if row.value is not None:
            found[f"{row.correction} {row.metric.partition(':')[0]}"]["p"].append(row.p_value)
    for line in ranked.ranks:
        found[f"{line.correction} {line.metric}"]["ranks"].append((line.value, line.low, line.high))
    return dict(found)


def table(design: str, repeats: list[dict[str, Any]]) -> str:
    """For each correction the least and the largest share over the metrics: any pair told apart, ranks held."""
    equal = len(set(DESIGNS[design].generators)) == 1
    lines = []
    for correction in ("none", "gicdm"):
        apart, held, sure = [], [], []
        for name in (name for name in repeats[0] if name.startswith(correction)):
            found = [one[name] for one in repeats]
            apart.append(np.mean([any(p is not None and p < 0.05 for p in one["p"]) for one in found]))
            sign = 1.0 if metric_facts(name.split()[1]).higher_is_better else -1.0
            values = sign * np.array([[value for value, _, _ in one["ranks"]] for one in found], np.float64)
            means = values.mean(axis=0)
            true = np.ones(len(means)) if equal else 1 + (means[None] > means[:, None]).sum(axis=1)
            ends = np.array([[(low, high) for _, low, high in one["ranks"]] for one in found])
            known = ends[..., 0] > 0
            inside = ((ends[..., 0] <= true) & (true <= ends[..., 1])) | ~known
            held.append(inside.all(axis=1).mean())
            sure.append(np.mean([np.mean([p is not None and p < 0.05 for p in one["p"]]) for one in found]))
        cells = [f"{100 * min(x):.0f} to {100 * max(x):.0f}" for x in (apart, held, sure)]
        lines.append(f"| {design} | {correction} | {len(repeats)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS))
    parser.add_argument("--into", type=Path, default=Path("generators"))
    args = parser.parse_args()
    args.into.mkdir(parents=True, exist_ok=True)
    print("| design | correction | repeats | any pair told apart, % | all ranks held, % | pairs told apart, % |")
    for name in args.designs:
        path = args.into / f"{name.replace(' ', '_').replace(',', '')}.jsonl"
        done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        with path.open("a") as file:
            for seed in range(len(done), args.repeats):
                done.append(repeat(DESIGNS[name], seed))
                file.write(json.dumps(done[-1]) + "\n")
                file.flush()
        print(table(name, done), flush=True)


if __name__ == "__main__":
    main()
