"""Compare systems on the same clips: the differences, with intervals and p-values.

Give files of vectors and a file of labels, or one run folder, or several. Prints one system minus another for every
pair. Interval and two-sided p-value come from leaving out each clip (each group, where there are groups) of both
systems, as query and as candidate, so the interval excludes 0 exactly when p < 0.05. With several pairs both are
corrected for their number (column comparisons). Of run folders every pair of systems, distances and corrections that
were measured is compared, on the clips that all systems have and with the settings of the runs, as in the report.
Distances computed elsewhere take part with --distances FILE,FILE; the last INPUT is then the file of labels.

With --vary the variants of each model of a run folder are compared as papers print ablations: before, after and the
difference, for dtw, pooling, pca, layer, noise (label noise) or correct (hubness corrections), and means over subsets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from earmark import vectors
from earmark.atomic import write_whole
from earmark.cli import flags, options
from earmark.cli.tracked import add_track, tell, track_command
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.evaluation import compare
from earmark.evaluation.options import GIVEN, Options, byte_count
from earmark.metrics.catalogue import COMPARED
from earmark.places import locate
from earmark.report import long_text, to_text
from earmark.report.answer import SURE
from earmark.report.score_index import PROTOCOLS
from earmark.report.variants import Variants
from earmark.representations.ablations import CHOICES, compare_variants
from earmark.representations.comparisons import compare_runs
from earmark.scores import Scores
from earmark.wording import counted

EXAMPLES = """examples:
  earmark compare wavlm.npy logmel.npy labels.csv
  earmark compare a.npz b.npz c.npz clips.csv --groups speaker --across-groups --out differences.csv
  earmark compare my-run --metrics P@1,GSR
  earmark compare --distances dtw.npy,edit.npy labels.csv
  earmark compare --distances dtw.npy wavlm.npy labels.csv --distance euclidean
  earmark compare last-week this-week --systems last-week/wavlm,this-week/wavlm
  earmark compare my-run --vary dtw --table dtw.tex
  earmark compare my-run --vary pooling --reference mean_time --metrics P@1,P@5,GSR
"""

DISTANCES = "distances computed elsewhere, as systems beside or in place of files of vectors; several with commas"
MOST_BLOCKS = 6
_File = vectors.Joined | vectors.LabelledDistances
CORRECT = (Options.model_fields["correct"].description or "").replace("several with commas", "one at a time")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", metavar="INPUT", nargs="+",
        help="run folders; or two or more files of vectors of the same clips, then the file of labels (files that "
        "hold labels themselves need none)",
    )  # fmt: skip
    group = parser.add_argument_group("what is compared")
    group.add_argument(
        "--metrics", type=options.names, metavar="LIST",
        help=f"metrics, or all (default: {', '.join(COMPARED)}, of which three are printed)",
    )  # fmt: skip
    group.add_argument(
        "--systems", type=options.names, default=[], metavar="LIST", help="of run folders: these systems alone"
    )
    group.add_argument(
        "--reference", metavar="NAME",
        help="compare every other system with this one, not all pairs; with --vary, the variant that comes before",
    )  # fmt: skip
    group.add_argument(
        "--vary",
        choices=[*CHOICES],
        help="of a run folder: variants that differ in this alone, as ablations are printed",
    )
    group.add_argument("--table", metavar="FILE", help="with --vary, write the table: .md, .tex, .csv or .txt")
    flags.add_flags(group, Options, ("queries",))
    # Version 0.1.0 resampled queries; that is over, and old command lines still work.
    for flag in ("--permutations", "--bootstrap"):
        group.add_argument(flag, type=int, dest="unused", help=argparse.SUPPRESS)
    flags.add_labels(parser, seed="seed of the draw of --queries")
    flags.add_vectors(parser, correct=CORRECT, system=argparse.SUPPRESS)
    flags.add_distances(parser, distances=DISTANCES)
    options.add_output(parser)
    add_track(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    given = flags.settle_distances(args, beside_vectors=True)
    if args.vary is None and args.table:
        raise UsageError("--table is for --vary; --out writes the differences as a score table.")
    folders = [locate(path).is_dir() for path in args.inputs]
    if any(folders) and (given or not all(folders)):
        raise UsageError("Give run folders alone, or files of vectors and labels: both were given.")
    tracking_run = track_command(args, "comparison")
    if args.vary is not None:
        if args.track:
            raise UsageError("--track is for differences between systems: leave it out with --vary.")
        return _vary(args, all(folders))
    scores = _compare_folders(args) if any(folders) else _compare_files(args, given)
    options.deliver(args, scores, _pairs_text, chosen=bool(args.metrics))
    if not args.quiet:
        for note in scores.notes:
            print(f"note: {note}", file=sys.stderr)
    with tracking_run as tracking:
        if tracking is not None:
            tracking.log(scores)
    tell(args, tracking)
    return 0 if any(row.status == "ok" for row in scores) else 1


def _pairs_text(scores: Scores) -> str:
    """Few pairs one by one, with every number; many as a table, and how many of them differ."""
    pairs = len(dict.fromkeys(row.key[:-1] for row in scores))
    if pairs <= MOST_BLOCKS:
        return long_text(scores)
    verdicts = []
    for metric, protocol in dict.fromkeys((row.metric, row.protocol) for row in scores):
        rows = scores.select(metric=metric, protocol=protocol)
        tested = [row for row in rows if row.p_value is not None]
        if tested:
            sure = sum(row.p_value is not None and row.p_value < SURE for row in tested)
            several = len({row.protocol for row in scores}) > 1
            where = f", {PROTOCOLS.get(protocol, protocol)}" if several else ""
            verdicts.append(f"{metric.partition(':')[0]}{where}: {sure} of {counted(len(tested), 'pair')} differ")
    family = sorted({row.comparisons for row in scores if row.comparisons})
    corrected = f"Intervals and verdicts are corrected for {' or '.join(map(str, family))} pairs." if family else ""
    lines = [*verdicts, *filter(None, [corrected])]
    return "\n".join([to_text(scores).rstrip(), "", *lines]) + "\n"


def _vary(args: argparse.Namespace, folder: bool) -> int:
    """Variants of the models of one run, as ablations are printed."""
    if not locate(args.inputs[0]).exists():
        raise InputError(f"{args.inputs[0]} does not exist; check the path.")
    if not folder or len(args.inputs) > 1:
        raise UsageError("--vary compares variants of one run: give one run folder.")
    chosen = ("metrics", "across_groups")
    for name in flags.given(args, Options):
        if name not in chosen:
            raise UsageError(f"--{name.replace('_', '-')} says how to measure, and --vary takes what was measured.")
    options.check_out(args, "table")
    found = compare_variants(
        args.inputs[0], args.vary, reference=args.reference, subset=args.subset or None, systems=args.systems,
        **{name: value for name, value in flags.given(args, Options).items() if name in chosen},
    )  # fmt: skip
    table = found.table()
    options.deliver(args, found.scores, lambda _: table.to_text())
    if args.table:
        write_whole(locate(args.table), _written(found, locate(args.table).suffix.lower()).encode())
        if not args.quiet:
            print(f"table written to {args.table}", file=sys.stderr)
    if not args.quiet:
        for note in found.notes:
            print(f"note: {note}", file=sys.stderr)
    return 0 if any(row.status == "ok" for row in found.scores) else 1


def _written(found: Variants, ending: str) -> str:
    table = found.table(intervals=ending != ".tex")  # a page of a paper is narrow
    if ending == ".tex":
        return table.to_latex()
    return {".md": table.to_markdown, ".csv": table.to_csv}.get(ending, table.to_text)()


def _compare_folders(args: argparse.Namespace) -> Scores:
    for name in ("label_column", "groups", "dimensions", "key"):
        if getattr(args, name):
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is for files: a run folder knows its labels and groups.")
    return compare_runs(
        args.inputs, subset=args.subset or None, systems=args.systems, reference=args.reference,
        progress=not args.quiet, **flags.given(args, Options),
    )  # fmt: skip


def _compare_files(args: argparse.Namespace, given: list[str]) -> Scores:
    if args.systems:
        raise UsageError("--systems is for run folders: give the files to be compared.")
    for path in (*given, *args.inputs):
        if not locate(path).exists():
            raise InputError(f"{path} does not exist; check the path.")
    paths, labels = _split(args, given)
    if len(set(paths)) < len(paths):
        raise UsageError("The same file was given twice: it does not differ from itself.")
    joined = {path: _read(args, path, labels, path in given) for path in paths}
    first = joined[paths[0]]
    orders = {path: _order(first, of, paths[0], path) for path, of in joined.items()}
    values = {path: _points(of, orders[path], args) for path, of in joined.items()}
    for path, of in joined.items():
        if [of.labels[row] for row in orders[path]] != first.labels:
            raise InputError(
                f"{paths[0]} and {path} give their rows different labels: compare embeddings of the same clips, in "
                "the same order or with an `id` each."
            )
    groups = _groups({path: of for path, of in joined.items() if of.groups is not None}, orders)
    scores = compare(
        values, first.labels, groups=groups, reference=args.reference, subset=args.subset, suite=args.suite,
        progress=not args.quiet, distance_name=args.distance_name or GIVEN, **flags.given(args, Options),
    )  # fmt: skip
    options.tell_columns(args, *joined.values())
    told = {note for of in joined.values() for note in of.notes}
    scores = replace(scores, notes=tuple(note for note in scores.notes if note not in told))
    return options.with_doubts(scores, *joined.values())


def _split(args: argparse.Namespace, given: list[str]) -> tuple[list[str], str | None]:
    """The files to be compared, and the one of labels, where they need one."""
    if given:
        paths, labels = [*given, *args.inputs[:-1]], args.inputs[-1]
        if len(paths) < 2:
            raise UsageError(f"{given[0]} is one file of distances: give at least two systems, then the labels.")
        return paths, labels
    if len(args.inputs) < 2:
        raise UsageError(f"{args.inputs[0]} is one file: give at least two files of vectors, then the labels.")
    paths, labels = (args.inputs[:-1], args.inputs[-1]) if len(args.inputs) > 2 else (args.inputs, None)
    # The last file may be one of the embeddings once more, for its labels; else it is one of those to be compared.
    if labels is not None and labels not in paths and all(_holds_labelled_vectors(args, path) for path in args.inputs):
        return args.inputs, None
    return paths, labels


def _points(of: _File, order: list[int], args: argparse.Namespace) -> Any:
    """The vectors or the distances of a file, in the order of the first one's clips."""
    if isinstance(of, vectors.Joined):
        return of.values[order]
    if order == list(range(of.distances.n)):
        return of.distances
    memory = byte_count(args.memory) if args.memory else Options().memory
    return of.distances.in_order(np.array(order), memory)


def _read(args: argparse.Namespace, path: str, labels: str | None, distances: bool = False) -> _File:
    if distances:
        assert labels is not None
        return flags.read_distances_and_labels(args, path, labels)
    return vectors.read_labelled(
        path, labels, key=args.key, label_column=args.label_column, groups=args.groups, dimensions=args.dimensions
    )


def _holds_labelled_vectors(args: argparse.Namespace, path: str) -> bool:
    """Whether a file needs no other one for its labels; one column of numbers beside labels is no embedding."""
    try:
        joined = _read(args, path, None)
        return isinstance(joined, vectors.Joined) and int(joined.values.shape[1]) > 1
    except EarmarkError:
        return False


def _order(first: _File, of: _File, first_path: str, path: str) -> list[int]:
    """The rows of a file in the order of the first one's clips."""
    if len(of.labels) != len(first.labels):
        raise InputError(
            f"{first_path} has {len(first.labels)} vectors and {path} has {len(of.labels)}: compare embeddings of the "
            "same clips."
        )
    if first.ids is None or of.ids is None or first.ids == of.ids:
        return list(range(len(of.labels)))
    if set(first.ids) != set(of.ids):
        raise InputError(f"{first_path} and {path} hold different ids: compare embeddings of the same clips.")
    rows = {name: row for row, name in enumerate(of.ids)}
    if len(rows) < len(of.ids):
        raise InputError(f"{path} has the same id more than once: ids must be unique to bring files into one order.")
    return [rows[name] for name in first.ids]


def _groups(having: Mapping[str, _File], orders: Mapping[str, list[int]]) -> list[str | None] | None:
    """The groups of the clips, from whichever file tells them; files that tell different ones are refused."""
    by_path = {path: [(of.groups or [])[row] for row in orders[path]] for path, of in having.items()}
    for path, groups in by_path.items():
        first = next(iter(by_path))
        if groups != by_path[first]:
            raise InputError(f"{first} and {path} put the clips into different groups: correct one of them.")
    return next(iter(by_path.values()), None)
