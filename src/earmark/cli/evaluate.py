"""Measure how well vectors keep clips of one label together.

VECTORS: .npy, .npz, .parquet, .csv or .pt, one row per clip. LABELS: .csv, .txt, .npy, .npz or .parquet, one per
clip; joined by id when both files have an id column, or by a column (path, file, …) that holds the ids of the other
file. Without LABELS, labels inside VECTORS are used. Labels, groups, ids and an index are never dimensions of the
vectors, in whichever file they lie; stderr says what was used as what. Files may be URLs (s3://bucket/vectors.npz).

With --distances FILE there are no VECTORS: the distances were computed elsewhere (DTW, listeners, another tool), and
LABELS stands alone.
"""

from __future__ import annotations

import argparse

from earmark import vectors
from earmark.cli import flags, options
from earmark.cli.tracked import add_track, tell, track_command
from earmark.errors import UsageError
from earmark.evaluation import evaluate
from earmark.evaluation.options import GIVEN, Options
from earmark.report import long_text
from earmark.report.points import write_points

EXAMPLES = """examples:
  earmark evaluate vectors.npy labels.txt
  earmark evaluate vectors.npz clips.csv --label-column species --distance cosine,spearman --permutations
  earmark evaluate vectors.npy clips.csv --groups recording --across-groups --per-point points.csv --out scores.csv
  earmark evaluate table.csv --label-column class --groups speaker --dimensions "f*"
  earmark evaluate vectors.npy labels.txt --correct none,icdm --distance euclidean
  earmark evaluate vectors.npz clips.csv --sample 50x5
  earmark evaluate million.npy labels.txt --queries 20000
  earmark evaluate --distances dtw.npy labels.csv --ids names.txt --distance-name dtw --permutations
  earmark evaluate --distances pairs.csv labels.csv --pair-columns sound1,sound2,rating
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", nargs="?", help="file of vectors; none with --distances")
    parser.add_argument("labels", metavar="LABELS", nargs="?", help="file of labels")
    group = parser.add_argument_group("metrics and calibration")
    wanted = ("metrics", "sample", "queries", "permutations", "shuffle", "intervals", "bootstrap", "hub_k")
    flags.add_flags(group, Options, wanted)
    group.add_argument(
        "--per-point",
        metavar="FILE",
        help="write every clip's own values and nearest neighbour: .csv or .parquet",
    )
    flags.add_labels(parser)
    flags.add_vectors(parser)
    flags.add_distances(parser)
    options.add_output(parser)
    add_track(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    files = flags.settle_distances(args)
    tracking_run = track_command(args, args.system or str(files[0] if files else args.vectors))
    joined = _read_distances(args, files) if files else _read_vectors(args)
    points = joined.values if isinstance(joined, vectors.Joined) else joined.distances
    scores = evaluate(
        points, joined.labels, groups=joined.groups, ids=joined.ids,
        system=args.system or str(files[0] if files else args.vectors), subset=args.subset, suite=args.suite,
        progress=not args.quiet, distance_name=args.distance_name or GIVEN,
        **{**flags.given(args, Options), "per_point": args.per_point is not None},
    )  # fmt: skip
    if args.per_point:
        write_points(scores, joined.labels, joined.groups, args.per_point)
    options.tell_columns(args, joined)
    options.deliver(args, options.with_doubts(scores, joined), long_text)
    with tracking_run as tracking:
        if tracking is not None:
            tracking.log(scores)
    tell(args, tracking)
    return 0 if any(row.status == "ok" for row in scores) else 1


def _read_vectors(args: argparse.Namespace) -> vectors.Joined:
    if args.vectors is None:
        raise UsageError("Give a file of vectors, or distances with --distances FILE.")
    return vectors.read_labelled(
        args.vectors, args.labels,
        key=args.key, label_column=args.label_column, groups=args.groups, dimensions=args.dimensions,
    )  # fmt: skip


def _read_distances(args: argparse.Namespace, files: list[str]) -> vectors.LabelledDistances:
    if len(files) > 1:
        raise UsageError(f"{', '.join(files)}: one file of distances is evaluated at a time; compare takes several.")
    if args.labels is not None:
        raise UsageError(f"--distances stands in for vectors: give the labels alone, not {args.vectors} too.")
    if args.vectors is None:
        raise UsageError("Distances have no labels: give a file of labels.")
    return flags.read_distances_and_labels(args, files[0], args.vectors)
