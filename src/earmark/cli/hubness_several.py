"""`earmark hubness` of several sets of vectors: one table before and after corrections, or the best K of a grid."""

from __future__ import annotations

import argparse
import json

from earmark import vectors
from earmark.cli import flags, options
from earmark.errors import UsageError
from earmark.evaluation import study_hubness
from earmark.evaluation.hub_grid import HubGrid, hubness_grid, published_grid
from earmark.evaluation.options import Options
from earmark.geometry.correction_names import CORRECTIONS, parse_all
from earmark.progress import progress_bar
from earmark.report.hub_tables import GRID_COLUMNS, grid_records, grid_text, sets_text
from earmark.scores import Row, Scores
from earmark.tables import csv_text

PUBLISHED = ("published:gicdm", "published:gicdm-hubness")


def is_printed(source: str) -> bool:
    return source.startswith("published:")


def run_several(args: argparse.Namespace) -> int:
    """All sets in one table; `published:gicdm` stands for the printed tables alone."""
    for name in ("figure", "html", "label_column"):
        if getattr(args, name):
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is for one file of vectors without a grid: give them one by one for that.")
    if not args.vectors:
        raise UsageError("Give files of vectors, or published:gicdm.")
    printed = [source for source in args.vectors if is_printed(source)]
    if printed:
        if len(args.vectors) > 1 or printed[0] not in PUBLISHED:
            raise UsageError(f"{printed[0]}: give {PUBLISHED[0]} alone, the tables of the GICDM paper.")
        return _deliver_grid(args, published_grid(), printed=True)
    names = options.system_names(args.vectors, args.system)
    sets = {}
    for name, source in zip(names, args.vectors, strict=True):
        found = vectors.read_vectors(source, key=args.key, dimensions=args.dimensions)
        options.tell_columns(args, found)
        sets[name] = found.values
    given = {name: value for name, value in flags.given(args, Options).items() if name != "correct"}
    if args.grid:
        chosen = [str(one) for one in parse_all(args.correct)]
        grid = hubness_grid(sets, grid=args.grid, correct=chosen, suite=args.suite, progress=not args.quiet, **given)
        return _deliver_grid(args, grid)
    rows: list[Row] = []
    with progress_bar(not args.quiet, len(sets), "hubness", "set") as tick:
        for name, values in sets.items():
            study = study_hubness(
                values, correct=args.correct, system=name, subset=args.subset, suite=args.suite, **given
            )
            rows += study.scores.rows
            tick(1)
    scores = Scores(rows=tuple(rows))
    options.deliver(args, scores, sets_text)
    return 0 if any(row.status == "ok" for row in scores) else 1


def _deliver_grid(args: argparse.Namespace, grid: HubGrid, *, printed: bool = False) -> int:
    records = grid_records(grid)
    as_json = json.dumps(records, indent=1, ensure_ascii=False) + "\n"
    options.deliver_text(args, as_json, lambda: csv_text(GRID_COLUMNS, records), grid_text(grid, printed=printed))
    return 0 if any(line.hub_ratio is not None for line in grid.best) else 1


def add_grid(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grid", type=options.whole_numbers, metavar="LIST",
        help="neighbourhoods K to try, as in 5,10,20,50: for each set and correction the K with the lowest hub ratio, "
        f"and mean ranks of the corrections over the sets ({', '.join(CORRECTIONS)})",
    )  # fmt: skip
