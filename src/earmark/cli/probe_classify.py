"""Do vectors tell classes apart? Classifiers on folds that keep groups (mice, speakers, recordings) whole.

VECTORS and LABELS are as in `earmark evaluate`. Each setting of a classifier has rows of its own, and each family also
rows of a setting that is chosen inside the training part of each fold (knn:best). Accuracy is the mean over folds; its
interval is about a classifier that learns from as many clips, on new clips (new groups, with --groups). Chance is the
share of the most frequent class. A group that is trained on and tested on is refused: its recordings would give the
answer away.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from earmark import vectors
from earmark.cli import flags, options
from earmark.errors import UsageError
from earmark.evaluation.options import GIVEN, Options
from earmark.places import locate
from earmark.probes._classifiers import FAMILIES, PRESETS
from earmark.probes.classify import Study, study_classes
from earmark.probes.folds import KINDS
from earmark.report import to_text
from earmark.tables import write_columns

EXAMPLES = """examples:
  earmark probe classify vectors.npz clips.csv --label-column strain --groups mouse
  earmark probe classify vectors.npy mice.txt --preset identity --per-point answers.csv --confusion confusion.csv
  earmark probe classify vectors.npz clips.csv --groups session --classifier knn:k=5,mlp:hidden=400,alpha=0.01
  earmark probe classify vectors.npz clips.csv --fold-column fold --classifier knn,forest --out scores.csv
  earmark probe classify --distances dtw.npy clips.csv --distance-name dtw --groups mouse
"""

_SHARED = ("min_class_size", "seed", "threads")
"""Options that `evaluate` has too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", nargs="?", help="file of vectors; none with --distances")
    parser.add_argument("labels", metavar="LABELS", nargs="?", help="file of labels")
    group = parser.add_argument_group("classifiers")
    group.add_argument("--preset", choices=[*PRESETS], help="grids and classifiers of that task in the papers (strain)")
    options.add(
        group,
        (
            "--classifier",
            "LIST",
            f"{', '.join(FAMILIES)}, each with its grid, or settings such as knn:k=5 and mlp:hidden=200x200,alpha=0.01 "
            "(default: those of the preset)",
        ),
        ("--no-selection", True, "leave out the rows whose setting is chosen inside each training part: much faster"),
    )
    group = parser.add_argument_group("folds, labels and groups")
    group.add_argument("--folds", type=int, default=5, metavar="N", help="how many folds (default: 5)")
    group.add_argument(
        "--kind", choices=KINDS,
        help="how clips are shared out (default: given with --fold-column, group-stratified with --groups, stratified)",
    )  # fmt: skip
    options.add(
        group,
        ("--fold-column", "COLUMN", "column whose values are the folds, or train, valid and test"),
        ("--allow-leaks", True, "measure although groups are trained on and tested on; the rows say so"),
    )
    texts = {
        "groups": "column that holds the mouse, speaker or recording: kept whole, and the unit of intervals; none "
        "leaves out those that the files hold",
        "min_class_size": "drop classes with fewer clips, or groups where these are kept whole (default: 2)",
        "seed": "seed of folds and classifiers (default: 0)",
    }
    flags.add_flags(group, flags.VectorFiles, ("label_column", "groups"), texts)
    flags.add_flags(group, Options, _SHARED[:2], texts)
    group = parser.add_argument_group("files, names and resources")
    flags.add_flags(group, flags.VectorFiles, ("key", "dimensions", "system", "subset", "suite"))
    flags.add_flags(group, Options, _SHARED[2:])
    options.add(
        group,
        ("--per-point", "FILE", "write every clip's fold and the class it was taken for: .csv or .parquet"),
        ("--confusion", "FILE", "write how many clips of each class were taken for which: .csv or .parquet"),
    )
    flags.add_distances(parser)
    parser.add_argument("--distance", help=argparse.SUPPRESS)  # else another spelling of --distances; refused
    parser.set_defaults(dimensions=[], system="", subset="", suite="")
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args, "per_point", "confusion")
    files = flags.settle_distances(args)
    joined = _read(args, files, args.groups)
    # The same rows, with the column of folds in the place of the groups
    given = _read(args, files, args.fold_column).groups if args.fold_column else None
    shared = {name: value for name, value in flags.given(args, Options).items() if name in _SHARED}
    points = joined.values if isinstance(joined, vectors.Joined) else joined.distances
    study = study_classes(
        points, joined.labels, groups=joined.groups, given=given, ids=joined.ids, kind=args.kind, folds=args.folds,
        classifiers=args.classifier or (), preset=args.preset, select=not args.no_selection,
        allow_leaks=args.allow_leaks, distance_name=args.distance_name or GIVEN,
        system=args.system or str(files[0] if files else args.vectors), subset=args.subset, suite=args.suite,
        progress=not args.quiet, **shared,
    )  # fmt: skip
    if args.per_point:
        write_columns(locate(args.per_point), _answers(study, joined), "answers")
    if args.confusion:
        names = ("protocol", "label", "answer", "clips")
        cells: Sequence[Any] = list(zip(*study.confusions(joined.labels), strict=True)) or [()] * 4
        write_columns(locate(args.confusion), dict(zip(names, map(list, cells), strict=True)), "confusions")
    options.tell_columns(args, joined)
    options.deliver(args, options.with_doubts(study.scores, joined), to_text)
    return 0 if any(row.status == "ok" for row in study.scores) else 1


def _read(args: argparse.Namespace, files: list[str], groups: str | None) -> vectors.Joined | vectors.LabelledDistances:
    """Vectors or distances with their labels, and one of their columns as groups."""
    if args.distance is not None:
        raise UsageError("Vectors are compared by Euclidean distance: for others give a file of them with --distances.")
    if args.vectors is None:
        raise UsageError("Distances have no labels: give a file of labels." if files else "Give a file of vectors.")
    if not files:
        return vectors.read_labelled(
            args.vectors, args.labels,
            key=args.key, label_column=args.label_column, groups=groups, dimensions=args.dimensions,
        )  # fmt: skip
    if len(files) > 1 or args.labels is not None:
        raise UsageError("--distances stands in for vectors: give one file of distances, and the labels alone.")
    return flags.read_distances_and_labels(
        argparse.Namespace(**vars(args) | {"groups": groups}), files[0], args.vectors
    )


def _answers(study: Study, joined: vectors.Joined | vectors.LabelledDistances) -> dict[str, list[Any]]:
    """Row, id, label, group and fold of each clip, and the class that each setting took it for."""
    columns: dict[str, list[Any]] = {"row": list(range(len(joined.labels)))}
    if joined.ids is not None:
        columns["id"] = list(joined.ids)
    columns["label"] = list(joined.labels)
    if joined.groups is not None:
        columns["group"] = list(joined.groups)
    return columns | {"fold": study.fold_of} | study.answers
