"""Which of these datasets are redundant, which should be run first, and what would the others say?

SCORES: a score table (.csv, .jsonl, .json, .parquet), a plain table with a line for each model and a column for each
dataset (.csv, .parquet; empty cells are missing), a long one with the columns model, dataset, metric and value, a file
or folder of mteb's results, or printed results that come with Earmark (published:vocsim, published:codec-superb). From
the numbers alone: how datasets relate (SimBA's stalk), a small subset that ranks the models as all datasets do (prowl),
and how well the rest is predicted from it (pounce).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from earmark.analysis.cautions import warnings
from earmark.analysis.novelty import novelty
from earmark.analysis.pounce import DEFAULT_REGRESSORS, REGRESSORS
from earmark.analysis.sources import open_matrix
from earmark.analysis.study import Study, analyze
from earmark.atomic import write_whole
from earmark.cli import options
from earmark.errors import InputError, UsageError
from earmark.places import locate
from earmark.progress import progress_bar
from earmark.report.analysis import (
    TABLES,
    analysis_text,
    check_formats,
    missing_tables,
    paper_tables,
    save_figures,
    tables_text,
    write_analysis,
)
from earmark.tables import read_csv, read_text, write_csv
from earmark.wording import counted

EXAMPLES = """examples:
  earmark analyze scores.csv --metric P@1 --into analysis
  earmark analyze leaderboard.csv --lower-is-better WER,EER --chance BoolQ=0.5 --without Average
  earmark analyze mteb/results                                     main scores; or --metric ndcg_at_10
  earmark analyze published:vocsim --metric P@1 --json
  earmark analyze benchmark-with-mine.csv --judge MyDataset
  earmark analyze leaderboard.csv --noise 0.05,0.1 --folds 5 --beam 1,5,10,20 --into analysis
  earmark analyze leaderboard.csv --paper --tables                 SimBA's Tables 1 to 6 for your matrix
  earmark analyze leaderboard.csv --paper --figures figures        and its figures
"""

STAGES = ("reading", "stalk", "prowl", "pounce", "intervals", "ranks", "agreement")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scores", metavar="SCORES", help="score table, plain table, or published:NAME")
    what = parser.add_argument_group("what the table holds")
    options.add(
        what,
        ("--metric", "NAME", "which metric of a score table, such as P@1"),
        ("--distance", "NAME", "only rows of this distance (default: each is a model)"),
        ("--lower-is-better", list, "columns of which less is better"),
        ("--without", list, "columns to leave out"),
        ("--families", "FILE",
         "which models are versions of each other: CSV with columns model,family; auto, models (stricter) or none"),
    )  # fmt: skip
    for flag, text in (
        ("--chance", "what a model that knows nothing reaches (default: looked up by name, else 0)"),
        ("--best", "the best possible value (default: 1 for fractions, 100 for percentages)"),
    ):
        what.add_argument(flag, type=_levels, default={}, metavar="NAME=VALUE,...", help=text)
    options.add_repeats(what)
    how = parser.add_argument_group("how it is analysed")
    how.add_argument("--split", choices=("grouped", "random"), help="how models are held out (default: by family)")
    options.add(
        how,
        ("--scheme", ("simba", "loglog"), "transforms that relations are sought in"),
        ("--regressors", list, f"of {', '.join(REGRESSORS)} (default: {','.join(DEFAULT_REGRESSORS)})"),
        ("--random-orders", 1000, "to compare with"),
        ("--seed", 0, "seed of orders, folds, noise and resamples"),
    )
    sure = parser.add_argument_group("does it hold?")
    sure.add_argument(
        "--noise", type=_numbers, metavar="LIST",
        help="predict also from training scores with noise of these variances, such as 0.05,0.1 (0 chance, 1 best)",
    )  # fmt: skip
    options.add(
        sure,
        ("--noise-unit", ("variance", "sigma"), "whether --noise gives variances or standard deviations"),
        ("--draws", 20, "of each noise, for networks at most 3"),
        ("--folds", int, "predict also in so many folds of models; their spread is shown and is no interval"),
    )
    sure.add_argument(
        "--beam", type=options.whole_numbers, metavar="LIST",
        help="subsets kept while one grows; several, such as 1,5,10,20, are compared (default: 1)",
    )  # fmt: skip
    options.add(
        sure,
        ("--paper", True,
         "SimBA's settings where nothing else is said: a random split, subsets found on the 80 %% of the models that "
         "train, ridge, knn and two networks, noise 0.05,0.1, 5 folds (10 from 40 models on), beams 1,5,10,20"),
    )  # fmt: skip
    out = parser.add_argument_group("output")
    out.add_argument(
        "--tables", nargs="?", const="text", choices=TABLES,
        help="print SimBA's Tables 1 to 6 for this matrix, as text, markdown, latex or csv (default: text); with "
        "--into also as files",
    )  # fmt: skip
    options.add(
        out,
        ("--figures", "DIR", "write each figure on its own; the folder is made if need be"),
        ("--format", list, "of the figures: png, svg, pdf (default: png)"),
        ("--judge", "DATASET", "only say whether this dataset differs from the others"),
        ("--html", "FILE", "write the page"),
        ("--into", "DIR", "write analysis.html and every table as CSV; it is made if need be"),
        ("--json", True, "print results and warnings on stdout as JSON"),
        ("--quiet", True, "no progress bars, warnings or remarks"),
    )
    parser.set_defaults(lower_is_better=[], without=[], families="auto", format=["png"])


def _numbers(text: str) -> list[float]:
    """`0.05,0.1` as numbers."""
    try:
        return [float(word) for word in options.names(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 0.05,0.1") from None


def _levels(text: str) -> dict[str, float]:
    """`BoolQ=0.5,MMLU=0.25` as a mapping."""
    found = {}
    for part in options.names(text):
        name, equals, value = part.rpartition("=")
        try:
            if not equals:
                raise ValueError
            found[name.strip()] = float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME=VALUE such as BoolQ=0.5") from None
    return found


def families_of(given: str) -> dict[str, str] | str | None:
    """The families a command line names: a word, or a CSV file with columns model and family."""
    if given in ("auto", "models"):
        return given
    if given == "none":
        return None
    path = locate(given)
    if not path.exists():
        raise InputError(f"{given} does not exist; give a CSV file with columns model,family, or auto, models or none.")
    rows = [line.cells for line in read_csv(read_text(path), path)]
    header = [name.strip().lower() for name in rows[0]] if rows else []
    key = next((name for name in ("model", "system") if name in header), None)
    if key is None or "family" not in header:
        raise InputError(f"{path} needs the columns model and family; it has {', '.join(header) or 'none'}.")
    places = header.index(key), header.index("family")
    return {row[places[0]].strip(): row[places[1]].strip() for row in rows[1:] if len(row) > max(places)}


def run(args: argparse.Namespace) -> int:
    options.check_out(args, "html")
    if args.judge:
        return _judge(args)
    for folder in filter(None, (args.into, args.figures)):
        if locate(folder).is_file():
            raise UsageError(f"{folder} is a file; give a folder for the analysis.")
        locate(folder).mkdir(parents=True, exist_ok=True)
    check_formats(args.format)
    extra = len(args.noise or ()) + (args.folds is not None) + (len(args.beam or ()) > 1) + 4 * args.paper
    with progress_bar(not args.quiet, len(STAGES) + extra, "analyse", "stage") as bar:
        study = analyze(
            args.scores, **_reading(args), split=args.split, scheme=args.scheme, regressors=args.regressors,
            random_orders=args.random_orders, beam=args.beam, noise=args.noise, noise_unit=args.noise_unit,
            draws=args.draws, folds=args.folds, paper=args.paper, seed=args.seed,
            tick=lambda stage, share: bar(share, note=stage),
        )  # fmt: skip
    _say(args, study.warnings, study.remarks)
    if args.into:
        written = write_study(study, locate(args.into), with_tables=bool(args.tables))
        if not args.quiet:
            print(f"analysis written to {written}", file=sys.stderr)
    if args.figures:
        drawn = save_figures(study, args.figures, args.format, progress=not args.quiet)
        if not args.quiet:
            print(f"{counted(len(drawn), 'figure')} written to {args.figures}", file=sys.stderr)
    sys.stdout.write(_stdout(args, study))
    return 0 if options.write_files(args, {"html": lambda path: write_analysis(study, locate(path))}) else 1


def _stdout(args: argparse.Namespace, study: Study) -> str:
    if args.json:
        return _json(study.as_dict())
    if not args.tables:
        return analysis_text(study)
    if not args.quiet:
        for name, reason in missing_tables(study).items():
            print(f"note: {name} is not there: {reason}", file=sys.stderr)
    return "\n".join(tables_text(study, args.tables))


def _judge(args: argparse.Namespace) -> int:
    """Only whether one dataset differs from the others."""
    source = open_matrix(args.scores, **_reading(args))
    found = warnings(source.matrix, directions=source.scores is None)
    _say(args, [*source.warnings, *found], source.remarks)
    (verdict,) = novelty(source.matrix, [args.judge])
    said = f"{verdict.dataset}: {verdict.verdict}. {verdict.sentence}\n"
    sys.stdout.write(_json(verdict._asdict()) if args.json else said)
    return 0


def _json(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _say(args: argparse.Namespace, warned: Iterable[str], remarks: Iterable[str]) -> None:
    if args.quiet:
        return
    for sentence in remarks:
        print(f"note: {sentence}", file=sys.stderr)
    for sentence in warned:
        print(f"warning: {sentence}", file=sys.stderr)


def _reading(args: argparse.Namespace) -> dict[str, Any]:
    """What says how the table is to be read."""
    names = ("metric", "distance", "lower_is_better", "chance", "best", "without", "with_repeats")
    return {"families": families_of(args.families), **{name: getattr(args, name) for name in names}}


def write_study(study: Study, folder: Path, *, with_tables: bool = False) -> Path:
    """Write the page and every table, the paper's in a folder of their own; the place of the page."""
    for name, table in study.tables().items():
        write_csv(folder / f"{name}.csv", table.header, table.rows)
    if with_tables:
        (folder / "paper").mkdir(exist_ok=True)
        for ending, form in (("csv", "csv"), ("md", "markdown"), ("tex", "latex")):
            for name, text in zip(paper_tables(study), tables_text(study, form), strict=True):
                write_whole(folder / "paper" / f"{name}.{ending}", text.encode())
    page = folder / "analysis.html"
    write_analysis(study, page)
    return page
