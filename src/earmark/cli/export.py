"""Results for other places: a model repository on the Hugging Face Hub, mteb, Every Eval Ever; a corpus as Croissant;
the worst clips for Raven and Audacity.

SOURCE: a score table, a run folder, a plain table of models and datasets, results of mteb, or published:NAME; for
croissant a corpus, as `earmark corpus describe` takes it. Only what was measured is exported. Nothing is sent anywhere.

  hf         .eval_results/*.yaml in the folder PLACE, and with --card the key model-index of a model card
  mteb       PLACE/MODEL/REVISION/TASK.json, as mteb saves and loads results
  eee        PLACE/SUITE/DEVELOPER/MODEL/UUID.json, records of Every Eval Ever, with intervals
  croissant  PLACE/croissant.json, where PLACE is the folder that holds the recordings
  raven      selection tables of the worst clips of a run (--worst 50): one for each recording, and one of all
  audacity   tracks of labels of the same clips, one for each recording
  scores     PLACE as a score table (.csv, .json, .jsonl, .parquet), for `earmark submit` and all other commands

With --track in place of --as and --into, the scores go to an experiment tracker, as `earmark run --track` does it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from earmark.cli import options
from earmark.cli.tracked import add_track, source_parameters, tell
from earmark.errors import UsageError
from earmark.exchange import (
    Measured,
    Tracking,
    open_measured,
    write_croissant,
    write_every_eval_ever,
    write_hub,
    write_mteb,
)
from earmark.exchange.every_eval_ever import RELATIONSHIPS
from earmark.exchange.mteb_results import NO_LANGUAGE
from earmark.exchange.selection_tables import PROGRAMS
from earmark.places import locate
from earmark.runs.folder import measured_settings
from earmark.scores import LEADING, METRICS, Scores
from earmark.scores.rows import distinct

KINDS = ("hf", "mteb", "eee", "croissant", *PROGRAMS, "scores")
EXAMPLES = """examples:
  earmark export run --as hf --systems "wavlm mean" --dataset me/my-sounds --into my-model
  earmark export run --as hf --systems "wavlm mean" --rename "wavlm mean=wavlm-base" --into . --card README.md
  earmark export scores.csv --as mteb --metrics P@1,GSR --distance cosine --into results
  earmark export run --as eee --organisation "Lab for Birdsong" --relationship third_party --into data
  earmark export run --as raven --worst 50 --systems "perch mean" --into look
  earmark export run --track mlflow:my-project
  earmark export recordings/ --as croissant --into recordings
  earmark export mteb/results --as scores --metrics accuracy --into scores.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="score table, run folder, results of others, or a corpus")
    parser.add_argument("--as", dest="kind", choices=KINDS, help="for whom")
    parser.add_argument("--into", metavar="PLACE", help="folder to write into; for scores, a file")
    add_track(parser)
    what = parser.add_argument_group("what is exported")
    options.add(
        what,
        ("--metrics", list, "these alone; the first is the main score (default: all, P@1 first)"),
        ("--systems", list, "these alone"),
        ("--distance", "NAME", "rows of this distance alone"),
        ("--correction", "NAME", "rows of this hubness correction alone, or none"),
        ("--protocol", "NAME", "rows of this protocol alone, such as across_groups"),
        ("--subset", "NAME", "raven, audacity: the subset, where there are several"),
        ("--worst", 50, "raven, audacity: how many clips, those first whose nearest neighbour is of another class"),
    )
    what.add_argument(
        "--rename", action="append", metavar="OLD=NEW", help="a system's name there, such as ORGANISATION/MODEL"
    )
    about = parser.add_argument_group("what the receiver asks for")
    options.add(
        about,
        ("--dataset", "ID", "hf, eee: the sounds as a dataset on the Hugging Face Hub, ORGANISATION/NAME"),
        ("--card", "FILE", "hf: model card whose header gets the results; the rest of it stays as it is"),
        ("--languages", list, f"mteb: such as eng-Latn (default: {NO_LANGUAGE}, no language)"),
        ("--organisation", "NAME", "eee: who measured"),
        ("--relationship", RELATIONSHIPS, "eee: of who measured to the model"),
    )
    options.add(
        parser.add_argument_group("output"),
        ("--json", True, "print the names of the files and the remarks on stdout as JSON"),
        ("--quiet", True, "no remarks"),
    )


def run(args: argparse.Namespace) -> int:
    if args.track:
        return _track(args)
    if not args.kind or not args.into:
        raise UsageError("Say for whom and where to: --as hf --into my-model, or --track mlflow.")
    place = locate(args.into)
    if args.kind != "scores" and place.exists() and not place.is_dir():
        raise UsageError(f"{args.into} is a file; give a folder to write into.")
    if args.kind == "croissant":
        written, remarks = _corpus(args, place)
    elif args.kind in PROGRAMS:
        written, remarks = _worst(args, place)
    else:
        written, remarks = _results(args, place)
    if args.json:
        print(json.dumps({"files": [str(path) for path in written], "remarks": remarks}, ensure_ascii=False))
        return 0
    for path in written:
        print(path)
    for remark in () if args.quiet else remarks:
        print(f"note: {remark}", file=sys.stderr)
    return 0


def _corpus(args: argparse.Namespace, place: Path) -> tuple[list[Path], list[str]]:
    from earmark.corpora import open_corpus

    if not place.is_dir():
        raise UsageError(f"{args.into} is no folder; give the one that holds the recordings.")
    return write_croissant(open_corpus(args.source), place)


def _worst(args: argparse.Namespace, place: Path) -> tuple[list[Path], list[str]]:
    from earmark.representations.worst import write_worst

    if len(args.systems or ()) > 1:
        raise UsageError("Selections are of one system: name one with --systems.")
    return write_worst(
        args.source, place, args.kind, worst=args.worst, system=(args.systems or [None])[0], subset=args.subset,
        distance=args.distance, correction=args.correction, protocol=args.protocol,
    )  # fmt: skip


def _results(args: argparse.Namespace, place: Path) -> tuple[list[Path], list[str]]:
    measured = open_measured(
        args.source, metrics=args.metrics or (), systems=args.systems or (), rename=_renaming(args.rename),
        distance=args.distance, correction=args.correction, protocol=args.protocol,
    )  # fmt: skip
    written, remarks = _WRITERS[args.kind](args, measured, place)
    return written, [*measured.remarks, *remarks]


def _track(args: argparse.Namespace) -> int:
    """Scores that are there already, to a tracker: those of a run folder to the tracked run of that folder."""
    if args.kind or args.into:
        raise UsageError("--track goes without --as and --into: a tracker has places of its own.")
    measured = open_measured(
        args.source, metrics=args.metrics or (), systems=args.systems or (), rename=_renaming(args.rename),
        distance=args.distance, correction=args.correction, protocol=args.protocol, everything=True,
    )  # fmt: skip
    folder = locate(args.source) if (locate(args.source) / "config.yaml").is_file() else None
    config = None if folder is None else measured_settings((folder / "config.yaml").read_text("utf-8"))
    with Tracking(
        args.track, name=locate(args.source).name, folder=folder, measured=config,
        parameters=source_parameters(args.source, folder),
    ) as tracking:  # fmt: skip
        tracking.log(Scores(measured.rows))
    if args.json:
        print(json.dumps({"tracker": args.track, "run": tracking.identity}))
    tell(args, tracking)
    return 0 if tracking.working else 1


def _scores(args: argparse.Namespace, measured: Measured, place: Path) -> tuple[list[Path], list[str]]:
    Scores(measured.rows).write(place)
    return [place], []


_WRITERS = {
    "hf": lambda args, measured, place: write_hub(
        measured, place, metric=_main(args, measured), dataset=args.dataset or "",
        card=locate(args.card) if args.card else None,
    ),
    "mteb": lambda args, measured, place: write_mteb(
        measured, place, metric=_main(args, measured), languages=args.languages or (NO_LANGUAGE,)
    ),
    "eee": lambda args, measured, place: write_every_eval_ever(
        measured, place, organisation=args.organisation or "", relationship=args.relationship,
        dataset=args.dataset or "",
    ),
    "scores": _scores,
}  # fmt: skip


def _main(args: argparse.Namespace, measured: Measured) -> str:
    """The first metric asked for, or else the one that tables show first."""
    present = distinct(measured.rows, "metric")
    order: list[str] = [*(args.metrics or ()), *LEADING, *METRICS, *present]
    return next(name for name in order if name in present)


def _renaming(pairs: list[str] | None) -> Mapping[str, str]:
    names = {}
    for pair in pairs or ():
        old, equals, new = pair.partition("=")
        if not (equals and old and new):
            raise UsageError(f"--rename {pair} is not OLD=NEW.")
        names[old] = new
    return names
