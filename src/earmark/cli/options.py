"""Options that several verbs share, and the one way results leave a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from earmark.atomic import write_whole
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.places import is_remote, locate
from earmark.report import leading_metrics
from earmark.scores import Scores
from earmark.vectors import Distances, Joined, LabelledDistances, Vectors
from earmark.wording import counted, listed

ENDINGS = {
    "figure": (".png", ".svg", ".pdf"),
    "html": (".html", ".htm"),
    "out": (".csv", ".json"),
    "per_sample": (".csv", ".parquet"),
    "per_real": (".csv", ".parquet"),
    "per_point": (".csv", ".parquet"),
    "confusion": (".csv", ".parquet"),
    "table": (".md", ".tex", ".csv", ".txt"),
    "ranks": (".csv", ".json"),
    "correlations": (".csv", ".json"),
}
"""How names of files end, of those flags that leave a choice."""


def names(text: str) -> list[str]:
    """A comma-separated list of words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def short_names(sources: Sequence[str]) -> list[str]:
    """What files are called: by their names without folder and ending, or as they were given where these are equal."""
    stems = [PurePosixPath(source.replace("\\", "/")).stem or source for source in sources]
    return stems if len(set(stems)) == len(stems) else list(sources)


def system_names(sources: Sequence[str], given: str, what: str = "file") -> list[str]:
    """What --system calls each of several files, or what they are called by themselves; no name stands for two."""
    chosen = names(given) or short_names(sources)
    if len(chosen) != len(sources):
        numbers = f"{counted(len(chosen), 'name')} for {counted(len(sources), what)}"
        raise UsageError(f"--system gives {numbers}: name each one.")
    for name in chosen:
        if chosen.count(name) > 1:
            raise UsageError(f"{name} names more than one {what}: give each a name of its own with --system A,B,...")
    return chosen


def whole_numbers(text: str) -> list[int]:
    """A comma-separated list of whole numbers."""
    try:
        return [int(word) for word in names(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 1,5") from None


def add(parser: argparse._ActionsContainer, *flags: tuple[str, Any, str]) -> None:
    """Flags in short: (flag, kind, help). The kind is what a value is, or its default, which help then tells.

    True        a switch
    "FILE"      a text, called FILE in help
    int, 5      a number; a number whose default is 5
    list        words, separated by commas
    ("a", "b")  one of these; the first is the default
    """
    for flag, kind, text in flags:
        if kind is True:
            parser.add_argument(flag, action="store_true", help=text)
        elif kind is list:
            parser.add_argument(flag, type=names, metavar="LIST", help=text)
        elif isinstance(kind, str):
            parser.add_argument(flag, metavar=kind, help=text)
        elif isinstance(kind, tuple):
            parser.add_argument(flag, choices=kind, default=kind[0], help=f"{text} (default: {kind[0]})")
        elif isinstance(kind, type):
            parser.add_argument(flag, type=kind, metavar="N", help=text)
        else:
            parser.add_argument(flag, type=type(kind), default=kind, metavar="N", help=f"{text} (default: {kind:g})")


def add_actions(parser: argparse.ArgumentParser, actions: Mapping[str, tuple[str, str]]) -> None:
    """The actions of a verb that has several: by name, the module that adds flags and runs, and one line of help."""
    below = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (path, line) in actions.items():
        module: Any = import_module(path)
        action = below.add_parser(
            name,
            help=line,
            description=module.__doc__,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(action)
        action.set_defaults(run=module.run)


def add_output(parser: argparse.ArgumentParser) -> None:
    add(
        parser.add_argument_group("output"),
        ("--out", "FILE", "write the score table: .csv, .jsonl, .json or .parquet"),
        ("--json", True, "print the score rows on stdout as a JSON array"),
        ("--quiet", True, "no progress bars and no remarks"),
    )


def add_repeats(parser: argparse._ActionsContainer) -> None:
    text = "count printed values that repeat another system's as measurements (default: they count nowhere)"
    add(parser, ("--with-repeats", True, text))


def check_out(args: argparse.Namespace, *endings: str) -> None:
    """Refuse a file that cannot be written before the work, not after it: for its folder, or the ending of its name."""
    for name in ENDINGS:
        target = getattr(args, name, None)
        place = locate(target or ".")
        folder = place.resolve().parent
        if target and not is_remote(place) and not folder.is_dir():
            raise InputError(f"{target}: the folder {folder} does not exist; create it first.")
        if target and name in endings and place.suffix.lower() not in ENDINGS[name]:
            *most, last = ENDINGS[name]
            raise UsageError(f"{target}: choose a name that ends in {', '.join(most)} or {last}.")


def tell_columns(args: argparse.Namespace, *files: Joined | Vectors | LabelledDistances | Distances) -> None:
    """Say on stderr which columns were used as what, and what a reader should know of the files."""
    if args.quiet:
        return
    for file in files:
        if not isinstance(file, Distances) and (file.columns is not None or "; " in file.summary):
            print(file.summary, file=sys.stderr)
        for note in file.notes:
            print(f"note: {note}", file=sys.stderr)


def with_doubts(scores: Scores, *files: Joined | LabelledDistances) -> Scores:
    """The scores, with what is doubtful about the join of labels in the reason of each row, where no flag hides it."""
    doubts = list(dict.fromkeys(doubt.removesuffix(".") for file in files for doubt in file.doubts))
    if not doubts:
        return scores
    rows = tuple(replace(row, reason="; ".join([*filter(None, [row.reason]), *doubts])) for row in scores)
    return replace(scores, rows=rows)


def deliver(
    args: argparse.Namespace,
    scores: Scores,
    render: Callable[[Scores], str],
    *,
    chosen: bool = True,
    kept: str = "--out FILE keeps them",
) -> None:
    """Write --out, then print JSON or the table on stdout, and remarks on stderr.

    Where nobody has `chosen` metrics, the table shows those to read first; files and JSON hold all, and `kept` says
    where.
    """
    if args.out:
        scores.write(args.out)
    shown = scores if chosen else read_first(scores)
    sys.stdout.write(scores.to_json() if args.json else render(shown).rstrip() + "\n")
    if args.quiet:
        return
    if args.out:
        print(f"scores written to {args.out}", file=sys.stderr)
    known = {row.metric for row in shown}
    others = dict.fromkeys(row.metric.partition(":")[0] for row in scores if row.metric not in known)
    if others and not args.json:
        print(f"also measured: {listed(others)}; --metrics all prints them, {kept}", file=sys.stderr)


def read_first(scores: Scores) -> Scores:
    """The rows of the metrics to read first, in that order, and all of probes."""
    rows = [
        row
        for metric in leading_metrics(row for row in scores if not row.probed)
        for row in scores
        if row.metric == metric and not row.probed
    ]
    return replace(scores, rows=(*rows, *(row for row in scores if row.probed)))


def deliver_text(args: argparse.Namespace, as_json: str, as_csv: Callable[[], str], shown: str) -> None:
    """Of what is no score table: write --out as .json or .csv, then print JSON or the text on stdout."""
    if args.out:
        write_whole(locate(args.out), (as_json if args.out.endswith(".json") else as_csv()).encode())
    sys.stdout.write(as_json if args.json else shown)


def write_files(args: argparse.Namespace, writers: Mapping[str, Callable[[str], object]]) -> bool:
    """Write the files asked for beside the score table; one that cannot be written costs no other one."""
    written = True
    for name, write in writers.items():
        target = getattr(args, name)
        if not target:
            continue
        try:
            write(target)
        except EarmarkError as error:
            written = False
            print(f"not written: {target}: {error}", file=sys.stderr)
        else:
            if not args.quiet:
                print(f"written: {target}", file=sys.stderr)
    return written
