"""Measure hubness: how unevenly vectors appear in each other's neighbour lists, before and after every correction.

VECTORS: .npy, .npz, .parquet, .csv or .pt, one row per clip; labels are not needed. Prints hub_ratio, antihub_rate,
hub_skew and robin_hood for each correction, how many points are in how many lists, and the busiest points by name.
Several VECTORS give one table of all; with --grid the neighbourhood that serves each correction best, and mean ranks
over the files. `published:gicdm` in their place prints those of the GICDM paper. With --distances FILE there are no
VECTORS: the distances were computed elsewhere.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from earmark import vectors
from earmark._version import __version__
from earmark.cli import flags, hubness_several, options
from earmark.errors import UsageError
from earmark.evaluation import study_hubness
from earmark.evaluation.options import GIVEN, Options
from earmark.geometry.corrections import CORRECTIONS
from earmark.report import to_text
from earmark.report.figures.style import library
from earmark.report.hubs import HubView, distribution_text, hubs_text

EXAMPLES = """examples:
  earmark hubness vectors.npy
  earmark hubness vectors.npz --distance cosine,euclidean --k 10 --correct none,icdm --out hubness.csv
  earmark hubness vectors.npz --correct none,icdm:k=20,mp --html hubs.html --figure hubs.png
  earmark hubness --distances dtw.npy --ids names.txt
  earmark hubness birdnet.npz logmel.npz mfcc.npz --distance cosine,euclidean,spearman --correct none,icdm
  earmark hubness birdnet.npz logmel.npz mfcc.npz --distance euclidean --grid 5,10,20,50
  earmark hubness published:gicdm
"""

LABELS = "column of VECTORS that holds the label, named beside hubs (default: label)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", nargs="*", help="files of vectors; none with --distances")
    options.add(
        parser,
        ("--k", 5, "length of the neighbour lists"),
        ("--top", 5, "how many hubs to name"),
        ("--figure", "FILE", "draw lists and a hub's neighbourhood: .png, .svg or .pdf"),
        ("--html", "FILE", "write the same as a page, with all hubs and antihubs by name"),
    )
    hubness_several.add_grid(parser)
    flags.add_flags(parser, flags.VectorFiles, ("label_column",), {"label_column": LABELS})
    flags.add_vectors(parser, correct=f"{Options.model_fields['correct'].description} (default: each of them)")
    flags.add_distances(parser)
    parser.set_defaults(correct=list(CORRECTIONS))
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from earmark.report.figures.hubness import hub_figure
    from earmark.report.html.hubness import write_hubness

    options.check_out(args, "figure")
    if args.k < 1:
        raise UsageError(f"--k must be at least 1, not {args.k}.")
    if args.figure or args.html:
        library()  # a missing one is told before the work, not after it
    files = flags.settle_distances(args)
    if not files and (args.grid or len(args.vectors) > 1 or any(map(hubness_several.is_printed, args.vectors))):
        return hubness_several.run_several(args)
    if files and args.grid:
        raise UsageError("--grid is for vectors: leave --distances out.")
    title = args.system or str(files[0] if files else (args.vectors or [""])[0])
    loaded = _read(args, files)
    study = study_hubness(
        loaded.values if isinstance(loaded, vectors.Vectors) else loaded, ids=loaded.ids, system=title,
        subset=args.subset, suite=args.suite, progress=not args.quiet, distance_name=args.distance_name or GIVEN,
        **flags.given(args, Options),
    )  # fmt: skip
    options.tell_columns(args, loaded)
    options.deliver(args, study.scores, to_text)
    view = HubView(title=title, scores=study.scores, lists=study.lists, k=args.k, ids=loaded.ids)
    if isinstance(loaded, vectors.Vectors):
        view = replace(view, labels=loaded.labels, vectors=loaded.values)
    if not args.json:
        for distance in view.distances:
            sys.stdout.write("\n" + distribution_text(view, distance) + "\n")
            if args.top > 0:
                sys.stdout.write("\n" + hubs_text(view, distance, args.top) + "\n")
    if not study.lists:
        reason = next((row.reason for row in study.scores if row.reason), "nothing was measured")
        for path in filter(None, (args.figure, args.html)):
            print(f"not written: {path}: there are no neighbour lists to draw, since {reason}", file=sys.stderr)
        return 1
    writers = {
        "figure": lambda path: hub_figure(view, path),
        "html": lambda path: write_hubness(view, path, __version__),
    }
    written = options.write_files(args, writers)
    return 0 if written and any(row.status == "ok" for row in study.scores) else 1


def _read(args: argparse.Namespace, files: list[str]) -> vectors.Vectors | vectors.Distances:
    if not files:
        if not args.vectors:
            raise UsageError("Give a file of vectors, or distances with --distances FILE.")
        return vectors.read_vectors(
            args.vectors[0], key=args.key, label_column=args.label_column, dimensions=args.dimensions
        )
    if len(files) > 1 or args.vectors:
        more = [*files, *args.vectors]
        raise UsageError(f"{', '.join(more)}: one file of distances is measured at a time, without vectors.")
    if args.label_column:
        raise UsageError("--label-column is a column of vectors, and --distances FILE has none: leave it out.")
    return flags.read_given(args, files[0])
