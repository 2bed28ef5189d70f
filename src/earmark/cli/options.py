"""Options that several verbs share, and the one way results leave a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from earmark.errors import InputError
from earmark.scores import Scores
from earmark.vectors import Joined, Vectors


def names(text: str) -> list[str]:
    """A comma-separated list of words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def whole_numbers(text: str) -> list[int]:
    """A comma-separated list of whole numbers."""
    try:
        return [int(word) for word in names(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 1,5") from None


def add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="FILE", help="write the score table: .csv, .jsonl, .json or .parquet")
    group.add_argument("--json", action="store_true", help="print the score rows on stdout as a JSON array")
    group.add_argument("--quiet", action="store_true", help="no progress bars and no remarks")


def add_repeats(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--with-repeats",
        action="store_true",
        help="count printed values that repeat another system's as measurements (default: they count nowhere)",
    )


CORRECT = (
    "hubness correction: none, sphere, ls, nicdm, icdm, csls, mp, dsl; several with commas, "
    "parameters as in icdm:k=20,iterations=5"
)


def add_vectors(parser: argparse.ArgumentParser, correct: str = "none", *, compared: bool = False) -> None:
    """Flags of distances and of names. Compared systems have names already, and one correction at a time."""
    group = parser.add_argument_group("distances and resources")
    group.add_argument(
        "--distance", type=names, default=["cosine"], metavar="LIST",
        help="cosine, euclidean, spearman; several separated by commas (default: cosine)",
    )  # fmt: skip
    group.add_argument(
        "--ties", choices=("average", "ordinal"), default="average",
        help="ranks of equal values under spearman (default: average; ordinal reproduces published numbers)",
    )  # fmt: skip
    group.add_argument(
        "--correct",
        default=correct,
        metavar="LIST",
        help=f"{CORRECT.replace('several with commas', 'one at a time') if compared else CORRECT} (default: {correct})",
    )
    group.add_argument(
        "--device",
        default="auto",
        help="auto, cpu, cuda or cuda:1: where a correction searches its neighbours (auto: a GPU if there is one and "
        "it pays); all other work runs on the CPU",
    )
    group.add_argument(
        "--memory",
        default="2GB",
        help="budget for tiles and batches, beside the vectors (default: 2GB)",
    )
    group.add_argument("--threads", type=int, metavar="N", help="worker threads (default: every core)")
    group.add_argument("--key", metavar="NAME", help="the array to take from .npz, .parquet or .pt files")
    add_dimensions(group)
    named = argparse.SUPPRESS if compared else "name of the model, for the system column"
    group.add_argument("--system", default="", metavar="NAME", help=named)
    group.add_argument("--subset", default="", metavar="NAME", help="name of the data, for the subset column")
    group.add_argument("--suite", default="", metavar="NAME", help="name of the suite, for the suite column")


def add_dimensions(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--dimensions", type=names, default=[], metavar="LIST",
        help="columns of .csv and .parquet files to use, by name or pattern as in 'f*,energy' (default: all but "
        "labels, groups, ids, an index, and names such as class, speaker_id or fold)",
    )  # fmt: skip


def add_labels(parser: argparse.ArgumentParser, *, draws: bool = True) -> None:
    """Flags of labels and groups. Where nothing is drawn, the seed is taken and does nothing."""
    group = parser.add_argument_group("labels and groups")
    group.add_argument("--label-column", metavar="NAME", help="column that holds the label (default: label)")
    group.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column that holds the speaker, bird or recording: the unit of intervals and tests",
    )
    group.add_argument(
        "--across-groups", action="store_true",
        help="also leave out all pairs of one group, as protocol across_groups",
    )  # fmt: skip
    group.add_argument(
        "--min-class-size",
        type=int,
        default=2,
        metavar="N",
        help="drop classes with fewer clips (default: 2)",
    )
    group.add_argument("--k", type=whole_numbers, default=[1, 5], metavar="LIST", help="k of P@k (default: 1,5)")
    seeds = "seed of shuffles, resamples and k-means (default: 0)" if draws else argparse.SUPPRESS
    group.add_argument("--seed", type=int, default=0, help=seeds)


def check_out(args: argparse.Namespace) -> None:
    """Refuse an impossible --out, --per-point, --figure or --html before the work, not after it."""
    for name in ("out", "per_point", "figure", "html"):
        target = getattr(args, name, None)
        folder = Path(target or ".").resolve().parent
        if target and not folder.is_dir():
            raise InputError(f"{target}: the folder {folder} does not exist; create it first.")


def tell_columns(args: argparse.Namespace, *read: Joined | Vectors) -> None:
    """Say on stderr which columns were used as what, and what a reader should know of the files."""
    if args.quiet:
        return
    for one in read:
        if one.columns is not None or "; " in one.summary:
            print(one.summary, file=sys.stderr)
        for note in one.notes:
            print(f"note: {note}", file=sys.stderr)


def deliver(args: argparse.Namespace, scores: Scores, render: Callable[[Scores], str]) -> None:
    """Write --out, then print JSON or the table on stdout, and remarks on stderr."""
    if args.out:
        scores.write(args.out)
    sys.stdout.write(scores.to_json() if args.json else render(scores).rstrip() + "\n")
    if args.out and not args.quiet:
        print(f"scores written to {args.out}", file=sys.stderr)
