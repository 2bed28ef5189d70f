"""Measure how well vectors keep clips of one label together.

VECTORS: .npy, .npz, .parquet, .csv or .pt, one row per clip. LABELS: .csv, .txt, .npy, .npz or .parquet, one per
clip; joined by id when both files have an id column, or by a column (path, file, …) that holds the ids of the other
file. Without LABELS, labels inside VECTORS are used. VECTORS may also be a database of Perch Hoplite or
BirdNET-Analyzer, or a folder of embeddings of BirdNET-Analyzer. Labels, groups, ids and an index are never dimensions
of the vectors, in whichever file they lie; stderr says what was used as what. Files may be URLs
(s3://bucket/vectors.npz).

With --distances FILE there are no VECTORS: the distances were computed elsewhere (DTW, listeners, another tool), and
LABELS stands alone.
"""

from __future__ import annotations

import argparse
from typing import Any

from earmark import vectors
from earmark.atomic import write_whole
from earmark.cli import flags, options
from earmark.cli.tracked import add_track, tell, track_command
from earmark.errors import UsageError
from earmark.evaluation import evaluate
from earmark.evaluation.options import GIVEN, Options
from earmark.places import locate
from earmark.report import long_text
from earmark.report.points import write_points
from earmark.report.tabulation import Tabulation
from earmark.scores import Scores

EXAMPLES = """examples:
  earmark evaluate vectors.npy labels.txt
  earmark evaluate vectors.npz clips.csv --label-column species --distance cosine,spearman --permutations
  earmark evaluate vectors.npy clips.csv --groups recording --across-groups --per-point points.csv --out scores.csv
  earmark evaluate vectors.npy clips.csv --groups speaker --across-groups --by group,class
  earmark evaluate table.csv --label-column class --groups speaker --dimensions "f*"
  earmark evaluate vectors.npy labels.txt --correct none,icdm --distance euclidean
  earmark evaluate vectors.npz clips.csv --sample 50x5
  earmark evaluate million.npy labels.txt --queries 20000
  earmark evaluate my_hoplite_db --across-groups
  earmark evaluate windows.npz windows.csv --label-separator ";" --background none
  earmark evaluate windows.parquet --label-column "wren,owl,tit" --groups recording
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
    group.add_argument(
        "--by", type=options.names, default=[], metavar="LIST",
        help="also print a table of every group, every class, or both (group,class), the lowest first: clips, P@1 with "
        "its interval, GSR and P@5, and which of them stand out beyond chance",
    )  # fmt: skip
    group.add_argument("--table", metavar="FILE", help="with --by, write these tables: .md, .tex, .csv or .txt")
    flags.add_labels(parser)
    flags.add_vectors(parser)
    flags.add_distances(parser)
    options.add_output(parser)
    add_track(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args, "table")
    if args.table and not args.by:
        raise UsageError("--table is for --by group or --by class; --out writes the score table.")
    files = flags.settle_distances(args)
    tracking_run = track_command(args, args.system or str(files[0] if files else args.vectors))
    joined = _read_distances(args, files) if files else _read_vectors(args)
    points = joined.values if isinstance(joined, vectors.Joined) else joined.distances
    asked: dict[str, Any] = {**_label_sets(joined), **flags.given(args, Options)}
    asked["per_point"] = args.per_point is not None or bool(args.by)
    scores = evaluate(
        points, joined.labels, groups=joined.groups, ids=joined.ids,
        system=args.system or str(files[0] if files else args.vectors), subset=args.subset, suite=args.suite,
        progress=not args.quiet, distance_name=args.distance_name or GIVEN,
        **asked,
    )  # fmt: skip
    if args.per_point:
        write_points(scores, joined.labels, joined.groups, args.per_point)
    options.tell_columns(args, joined)
    parts = _parts(scores, args.by)
    options.deliver(args, options.with_doubts(scores, joined), long_text, chosen=bool(args.metrics))
    if parts.tables and not args.json:
        print(f"\n{parts.to_text().rstrip()}")
    if args.table:
        written = {".md": parts.to_markdown, ".tex": parts.to_latex, ".csv": parts.to_csv}
        write_whole(locate(args.table), written.get(locate(args.table).suffix.lower(), parts.to_text)().encode())
    with tracking_run as tracking:
        if tracking is not None:
            tracking.log(scores)
    tell(args, tracking)
    return 0 if any(row.status == "ok" for row in scores) else 1


def _parts(scores: Scores, kinds: list[str]) -> Tabulation:
    """A table of groups or classes for each distance, correction and protocol."""
    tables = []
    for by in kinds:
        if by not in ("group", "class"):
            raise UsageError(f"--by is group, class or both, not {by!r}.")
        for distance, correction, protocol in dict.fromkeys(key[:3] for key in scores.per_point):
            setting = {"distance": distance, "correction": correction, "protocol": protocol}
            parts = scores.by_group(**setting) if by == "group" else scores.by_class(**setting)
            tables.append(parts.table(told=True))
    return Tabulation(tuple(tables))


def _read_vectors(args: argparse.Namespace) -> vectors.Joined:
    if args.vectors is None:
        raise UsageError("Give a file of vectors, or distances with --distances FILE.")
    return vectors.read_labelled(
        args.vectors, args.labels,
        key=args.key, label_column=args.label_column, label_separator=args.label_separator or "", groups=args.groups,
        dimensions=args.dimensions,
    )  # fmt: skip


def _label_sets(joined: vectors.Joined | vectors.LabelledDistances) -> dict[str, str]:
    """How the files tell of several labels or none, where they do and no flag says it."""
    if not isinstance(joined, vectors.Joined):
        return {}
    told = {"label_separator": joined.separator, "background": joined.background}
    return {name: value for name, value in told.items() if value}


def _read_distances(args: argparse.Namespace, files: list[str]) -> vectors.LabelledDistances:
    if len(files) > 1:
        raise UsageError(f"{', '.join(files)}: one file of distances is evaluated at a time; compare takes several.")
    if args.labels is not None:
        raise UsageError(f"--distances stands in for vectors: give the labels alone, not {args.vectors} too.")
    if args.vectors is None:
        raise UsageError("Distances have no labels: give a file of labels.")
    return flags.read_distances_and_labels(args, files[0], args.vectors)
