"""A linear probe against the plain scikit-learn loop, on the same folds, in one run.

    python benchmarks/linear.py [--clips 2000] [--dimensions 1024] [--classes 50] [--vectors V.npz --folds CLIPS.csv]

The loop is StandardScaler and LogisticRegression(C=C, max_iter=1000) for each of five folds and nine values of C, on
all cores through its matrix products. It stops at a gradient of 1e-4, for weak penalties long before the optimum;
`--tolerance 1e-8` runs it until it gives the optimum's answers. Without --vectors the data are synthetic: 50 classes,
principal components that decay as k^-0.8. CLIPS.csv has the columns `label` and `fold`, in the order of the vectors.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from earmark.probes.linear import STRENGTHS, study_linear


def synthetic(clips: int, dimensions: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of classes whose means differ by a fraction of the spread, in a rotated space of decaying variances."""
    random = np.random.default_rng(seed)
    labels = np.arange(clips) % classes
    scales = np.arange(1, dimensions + 1) ** -0.8
    turn = np.linalg.qr(random.standard_normal((dimensions, dimensions)))[0]
    means = 0.35 * random.standard_normal((classes, dimensions))
    vectors = ((random.standard_normal((clips, dimensions)) + means[labels]) * scales) @ turn.T
    return vectors.astype(np.float32), labels.astype(str), np.arange(clips) // classes % 5


def real(vectors: str, table: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with open(table, encoding="utf-8", newline="") as file:  # noqa: PTH123
        rows = list(csv.DictReader(file))
    values = np.load(vectors)["vectors"]
    return values, np.array([row["label"] for row in rows]), np.array([row["fold"] for row in rows])


def loop(
    vectors: np.ndarray, labels: np.ndarray, folds: np.ndarray, tolerance: float, limit: int
) -> list[tuple[float, float, np.ndarray]]:
    """(C, validation accuracy, test answers) of each fold."""
    names = sorted(set(folds.tolist()))
    outcomes = []
    for place, name in enumerate(names):
        test, valid = folds == name, folds == names[(place + 1) % len(names)]
        scaler = StandardScaler().fit(vectors[~test & ~valid])
        train, others = scaler.transform(vectors[~test & ~valid]), scaler.transform(vectors[valid])
        best = None
        for C in STRENGTHS:
            model = LogisticRegression(C=C, max_iter=limit, tol=tolerance).fit(train, labels[~test & ~valid])
            accuracy = float((model.predict(others) == labels[valid]).mean())
            if best is None or accuracy > best[1]:
                best = C, accuracy, model.predict(scaler.transform(vectors[test]))
        assert best is not None
        outcomes.append(best)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=2000)
    parser.add_argument("--dimensions", type=int, default=1024)
    parser.add_argument("--classes", type=int, default=50)
    parser.add_argument("--vectors", help="vectors.npz, as `earmark embed` writes it")
    parser.add_argument("--folds", help="CSV file with label and fold, in the order of the vectors")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of scikit-learn (its default: 1e-4)")
    parser.add_argument("--max-iter", type=int, default=1000, help="of scikit-learn")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.vectors:
        vectors, labels, folds = real(args.vectors, args.folds)
    else:
        vectors, labels, folds = synthetic(args.clips, args.dimensions, args.classes)
    wide = vectors.astype(np.float64)
    study_linear(vectors[::10], labels[::10], given=folds[::10], strengths=(1.0,))  # imports and thread pools
    seconds, studies = {}, {}
    for name, tolerance in (("earmark, optimum", None), (f"earmark, gradient {args.tolerance:g}", args.tolerance)):
        started = time.perf_counter(), time.process_time()
        studies[name] = study_linear(vectors, labels, given=folds, tolerance=tolerance)
        seconds[name] = time.perf_counter() - started[0], time.process_time() - started[1]
    started = time.perf_counter(), time.process_time()
    outcomes = loop(wide, labels, folds, args.tolerance, args.max_iter)
    theirs = time.perf_counter() - started[0], time.process_time() - started[1]
    print(f"{'scikit-learn loop':24} {theirs[0]:8.2f} s, processor {theirs[1]:8.2f} s")
    for name, (wall, processor) in seconds.items():
        ratio = f"loop / this {theirs[0] / wall:.1f} (processor time {theirs[1] / processor:.1f})"
        print(f"{name:24} {wall:8.2f} s, processor {processor:8.2f} s; {ratio}")
    names = sorted(set(folds.tolist()))
    accuracies = [
        float((answers == labels[folds == name]).mean()) for (*_, answers), name in zip(outcomes, names, strict=True)
    ]
    print(f"{'scikit-learn loop':24} accuracy {np.mean(accuracies):.4f}, C {[C for C, _, _ in outcomes]}")
    for name, study in studies.items():
        same = np.mean([
            study.answers[row] == answer
            for (*_, answers), fold in zip(outcomes, names, strict=True)
            for row, answer in zip(np.flatnonzero(folds == fold), answers, strict=True)
        ])  # fmt: skip
        chosen = [choice.C for choice in study.choices]
        print(f"{name:24} accuracy {study.scores.rows[0].value:.4f}, C {chosen}, answers as the loop's {same:.4f}")


if __name__ == "__main__":
    main()
