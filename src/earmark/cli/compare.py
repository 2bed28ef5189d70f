"""Compare two embeddings of the same clips, query by query.

Prints A minus B for every metric that is a mean over queries (P@k, GSR, CSR_pointwise, silhouette), with a
bootstrap interval and a two-sided p-value from swapping the embeddings. A and B are joined to LABELS in the same way.
"""

from __future__ import annotations

import argparse

from earmark import vectors
from earmark.cli import options
from earmark.errors import InputError
from earmark.evaluation import compare
from earmark.report.tables import long_text

EXAMPLES = """examples:
  earmark compare wavlm.npy logmel.npy labels.csv
  earmark compare a.npz b.npz clips.csv --groups speaker --distance cosine,euclidean --out differences.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="file of vectors")
    parser.add_argument("b", metavar="B", help="file of vectors of the same clips")
    parser.add_argument("labels", metavar="LABELS", help="file of labels")
    group = parser.add_argument_group("resampling")
    group.add_argument(
        "--permutations", type=int, default=1000, metavar="N", help="swaps for the p-value (default: 1000)"
    )
    group.add_argument(
        "--bootstrap", type=int, default=300, metavar="N", help="resamples for the interval (default: 300)"
    )
    options.add_labels(parser)
    options.add_vectors(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    a, b = (
        vectors.read_labelled(
            path, args.labels,
            key=args.key, label_column=args.label_column, groups=args.groups, dimensions=args.dimensions,
        )
        for path in (args.a, args.b)
    )  # fmt: skip
    if a.ids is not None and b.ids is not None and a.ids != b.ids:
        if set(a.ids) != set(b.ids):
            raise InputError(f"{args.a} and {args.b} hold different ids: compare embeddings of the same clips.")
        place = {name: row for row, name in enumerate(b.ids)}
        values = b.values[[place[name] for name in a.ids]]
    else:
        values = b.values
    scores = compare(
        a.values,
        values,
        a.labels,
        groups=a.groups,
        distance=args.distance,
        k=args.k,
        across_groups=args.across_groups,
        bootstrap=args.bootstrap,
        permutations=args.permutations,
        min_class_size=args.min_class_size,
        ties=args.ties,
        seed=args.seed,
        correct=args.correct,
        device=args.device,
        memory=args.memory,
        threads=args.threads,
        names=(str(args.a), str(args.b)),
        subset=args.subset,
        suite=args.suite,
        progress=not args.quiet,
    )
    options.tell_columns(args, a, b)
    options.deliver(args, scores, long_text)
    return 0
