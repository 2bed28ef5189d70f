"""What an evaluation costs, as ratios taken in one run: against the bare matrix product, against plain
scikit-learn and NumPy, and what intervals and 1000 permutations add.

    python benchmarks/geometry.py            the whole table, a minute or two
    python benchmarks/geometry.py --quick    smaller sizes, to see that it runs

Each figure is the best of three, after a first call that compiles. Peak memory is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import tempfile
import time

import numpy as np
from timing import best, peak_growth

from earmark import evaluate as evaluate_with_intervals
from earmark.geometry.sweep import ORDER_COLUMNS, ROWS
from earmark.metrics.catalogue import DEFAULT
from earmark.scores import Scores
from earmark.workers import Workers, thread_count

METRICS = list(DEFAULT)
THREE = ["P@1", "P@5", "GSR", "CSR"]
SEVEN = [*THREE, "CS", "CSCF", "silhouette"]


def evaluate(vectors: np.ndarray, labels: np.ndarray, **options: object) -> Scores:
    """A plain evaluation: no intervals."""
    return evaluate_with_intervals(vectors, labels, **{"intervals": "none", **options})


def clips(n: int, dims: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Synthetic vectors around class centres; every class has at least two clips."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.repeat(np.arange(classes), 2), rng.integers(0, classes, n - 2 * classes)])
    vectors = rng.standard_normal((n, dims)) + rng.standard_normal((classes, dims))[labels]
    return vectors.astype(np.float32), labels


def bare_product(vectors: np.ndarray) -> None:
    """The floor: the same tiles, multiplied and forgotten, on the same threads."""
    width = ORDER_COLUMNS[1]

    def tile(start: int) -> None:
        left = vectors[start : start + ROWS]
        strip = np.empty((len(left), width), np.float32)
        for column in range(0, len(vectors), width):
            right = vectors[column : column + width]
            np.matmul(left, right.T, out=strip[:, : len(right)])

    with Workers(thread_count(None)) as workers:
        for _ in workers.map(tile, range(0, len(vectors), ROWS)):
            pass


def plain_python(vectors: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """The same metrics as a careful user would write them with scikit-learn and NumPy (N x N in memory)."""
    from scipy.stats import skew
    from sklearn.metrics import pairwise_distances, silhouette_score

    distances = pairwise_distances(vectors, metric="cosine")
    np.fill_diagonal(distances, np.inf)
    nearest = np.argpartition(distances, 5, axis=1)[:, :5]
    order = np.take_along_axis(distances, nearest, axis=1).argsort(axis=1)
    nearest = np.take_along_axis(nearest, order, axis=1)
    hits = labels[nearest] == labels[:, None]
    occurrences = np.bincount(nearest.ravel(), minlength=len(labels))
    np.fill_diagonal(distances, 0.0)
    members = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    near, mean, far = (np.empty(len(labels)) for _ in range(3))
    for i in range(len(labels)):
        same = labels == labels[i]
        near[i] = distances[i, ~same].min()
        own = distances[i, same]
        mean[i] = own.sum() / (len(own) - 1)
        far[i] = own.max()
    gsr = (((near - mean) / (near + mean + 1e-9)).mean() + 1) / 2
    csr_points = (((near - far) / (near + far + 1e-9)).mean() + 1) / 2
    csr = sum(
        len(rows) * (near[rows].mean() - far[rows].mean()) / (near[rows].mean() + far[rows].mean() + 1e-9)
        for rows in members
    ) / len(labels)
    inter = np.array([[distances[np.ix_(a, b)].mean() for b in members] for a in members])
    sizes = np.array([len(rows) for rows in members])
    intra = np.diag(inter) * sizes / (sizes - 1)
    off = ~np.eye(len(members), dtype=bool)
    return {
        "P@1": hits[:, 0].mean(),
        "P@5": hits.mean(),
        "GSR": gsr,
        "CSR": (csr + 1) / 2,
        "CSR_pointwise": csr_points,
        "CS": (1 / (1 + inter / intra[:, None]))[off].mean(),
        "CSCF": (inter < intra[:, None])[off].mean(),
        "silhouette": silhouette_score(distances, labels, metric="precomputed"),
        "hub_ratio": np.sort(occurrences)[-int(np.ceil(len(labels) / 100)) :].mean() / 5,
        "antihub_rate": (occurrences == 0).mean(),
        "hub_skew": skew(occurrences),
        "robin_hood": 0.5 * np.abs(occurrences - occurrences.mean()).sum() / occurrences.sum(),
    }


def evaluation_growth(n: int, dims: int, classes: int, intervals: str = "none") -> float:
    """Growth of memory during an evaluation, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        vectors, labels = clips(n, dims, classes)
        np.save(f"{folder}/vectors.npy", vectors)
        np.save(f"{folder}/labels.npy", labels)
        del vectors, labels
        return peak_growth(
            f"import geometry as g, numpy as np\n"
            f"g.evaluate(*g.clips(500, 8, 5), metrics=g.METRICS, intervals={intervals!r})\n"
            f"vectors, labels = np.load({folder!r} + '/vectors.npy'), np.load({folder!r} + '/labels.npy')",
            f"g.evaluate(vectors, labels, metrics=g.METRICS, intervals={intervals!r})",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    shrink = 8 if parser.parse_args().quick else 1
    rows: list[tuple[str, str, str, str]] = []

    def report(what: str, figure: str, ratio: str, target: str) -> None:
        rows.append((what, figure, ratio, target))
        print(f"{what:64} {figure:>18} {ratio:>8}   {target}", flush=True)

    print(f"{platform.machine()}, {thread_count(None)} threads, NumPy {np.__version__}, {datetime.date.today()}")
    print(f"{'what':64} {'measured':>18} {'ratio':>8}   target")

    large, large_labels = clips(17041 // shrink, 100, 1366 // shrink)
    evaluate(large[:400], large_labels[:400] % 7, metrics=METRICS, permutations=2)  # compile
    evaluate(large[:400], large_labels[:400] % 7, metrics=METRICS, distance=["euclidean", "spearman"])
    floor = best(lambda: bare_product(large))
    report(f"bare float32 product, {len(large)} x {len(large)} x 100", f"{floor:.2f} s", "1", "")
    full = {}
    for distance in ("cosine", "spearman", "euclidean"):
        full[distance] = best(lambda d=distance: evaluate(large, large_labels, metrics=METRICS, distance=d))
        target = "<= 3, aim 2 (bare products)" if distance == "cosine" else "bare products"
        report(
            f"all metrics but clustering, {distance}",
            f"{full[distance]:.2f} s",
            f"{full[distance] / floor:.2f}",
            target,
        )

    medium, medium_labels = clips(10000 // shrink, 100, 50)
    ours = best(lambda: evaluate(medium, medium_labels, metrics=METRICS))
    start = time.perf_counter()
    reference = plain_python(medium, medium_labels)
    theirs = time.perf_counter() - start
    found = evaluate(medium, medium_labels, metrics=METRICS)
    worst = max(abs(found.value(name) - value) for name, value in reference.items())
    report(f"all metrics, {len(medium)} x 100, 50 classes, cosine", f"{ours:.2f} s", "1", "")
    report(
        "  the same with scikit-learn and NumPy",
        f"{theirs:.2f} s",
        f"{theirs / ours:.1f}",
        ">= 10 (evaluations)",
    )
    report("  largest difference between the two", f"{worst:.1e}", "", "float32 input")

    some = ["P@1", "P@5", "GSR"]
    for name, vectors, labels, limit in (
        (f"{len(medium)} x 50 classes", medium, medium_labels, 10),
        (f"{len(large)} x {1366 // shrink} classes", large, large_labels, 6),
    ):
        plain = best(lambda v=vectors, y=labels: evaluate(v, y, metrics=METRICS))
        shuffled = best(lambda v=vectors, y=labels: evaluate(v, y, metrics=some, permutations=1000), 2)
        bare = best(lambda v=vectors, y=labels: evaluate(v, y, metrics=some))
        report(f"plain evaluation, {name}", f"{plain:.2f} s", "1", "")
        report("  P@1, P@5, GSR alone", f"{bare:.2f} s", f"{bare / plain:.2f}", "")
        report(
            "  P@1, P@5, GSR with 1000 permutations", f"{shuffled:.2f} s", f"{shuffled / plain:.1f}",
            f"<= {limit} (plain evaluations)",
        )  # fmt: skip
    for distance in ("cosine", "euclidean"):
        for title, metrics, limit in (("P@1, P@5, GSR, CSR", THREE, 2), ("the seven metrics", SEVEN, 4)):
            common = {"metrics": metrics, "distance": distance}
            plain = best(lambda c=common: evaluate(medium, medium_labels, **c))
            widened = best(lambda c=common: evaluate(medium, medium_labels, intervals="jackknife", **c))
            report(f"plain evaluation of {title}, {len(medium)} x 50 classes, {distance}", f"{plain:.2f} s", "1", "")
            target = f"<= {limit} (plain evaluations)" if distance == "cosine" else ""
            report("  with intervals", f"{widened:.2f} s", f"{widened / plain:.2f}", target)
        shuffled = best(lambda c=common: evaluate(medium, medium_labels, permutations=1000, **c), 1)
        target = "<= 15 (plain evaluations)" if distance == "cosine" else ""
        report("  with 1000 permutations", f"{shuffled:.2f} s", f"{shuffled / plain:.1f}", target)
    euclid = best(lambda: evaluate(medium, medium_labels, metrics=some, permutations=1000, distance="euclidean"), 1)
    report(f"  1000 permutations, euclidean, {len(medium)} x 50", f"{euclid:.2f} s", "", "")

    n = 50000 // shrink
    report(f"peak memory growth, {n} x 100, 50 classes", f"{evaluation_growth(n, 100, 50):.0f} MB", "", "< 500 MB")
    report(f"peak memory growth, {n} x 100, 1366 classes", f"{evaluation_growth(n, 100, 1366):.0f} MB", "", "< 500 MB")
    grown = evaluation_growth(n, 100, 1366, intervals="jackknife")
    report(f"  with intervals, {n} x 1366 sums of distances kept", f"{grown:.0f} MB", "", "within --memory")
    report(f"  one {n} x {n} float32 matrix would be", f"{n * n * 4 / 2**20:.0f} MB", "", "never built")


if __name__ == "__main__":
    main()
