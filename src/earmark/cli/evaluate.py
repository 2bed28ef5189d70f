"""Measure how well vectors keep clips of one label together.

VECTORS: .npy, .npz, .parquet, .csv or .pt, one row per clip. LABELS: .csv, .txt, .npy, .npz or .parquet, one per
clip; joined by id when both files have an id column. Without LABELS, labels inside VECTORS are used. Labels, groups,
ids and an index are never dimensions of the vectors, in whichever file they lie; stderr says what was used as what.
"""

from __future__ import annotations

import argparse

from earmark import vectors
from earmark.cli import flags, options
from earmark.evaluation import evaluate
from earmark.evaluation.options import Options
from earmark.report import long_text
from earmark.report.points import write_points

EXAMPLES = """examples:
  earmark evaluate vectors.npy labels.txt
  earmark evaluate vectors.npz clips.csv --label-column species --distance cosine,spearman --permutations
  earmark evaluate vectors.npy clips.csv --groups recording --across-groups --per-point points.csv --out scores.csv
  earmark evaluate table.csv --label-column class --groups speaker --dimensions "f*"
  earmark evaluate vectors.npy labels.txt --correct none,icdm --distance euclidean
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", help="file of vectors")
    parser.add_argument("labels", metavar="LABELS", nargs="?", help="file of labels")
    group = parser.add_argument_group("metrics and calibration")
    flags.add_flags(group, Options, ("metrics", "permutations", "intervals", "bootstrap", "hub_k"))
    group.add_argument(
        "--per-point",
        metavar="FILE",
        help="write every clip's own values and nearest neighbour: .csv or .parquet",
    )
    flags.add_labels(parser)
    flags.add_vectors(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    joined = vectors.read_labelled(
        args.vectors, args.labels,
        key=args.key, label_column=args.label_column, groups=args.groups, dimensions=args.dimensions,
    )  # fmt: skip
    scores = evaluate(
        joined.values, joined.labels, groups=joined.groups, ids=joined.ids, system=args.system or str(args.vectors),
        subset=args.subset, suite=args.suite, progress=not args.quiet,
        **{**flags.given(args, Options), "per_point": args.per_point is not None},
    )  # fmt: skip
    if args.per_point:
        write_points(scores, joined.labels, joined.groups, args.per_point)
    options.tell_columns(args, joined)
    options.deliver(args, scores, long_text)
    return 0 if any(row.status == "ok" for row in scores) else 1
