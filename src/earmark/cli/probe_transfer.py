"""How well does the training-free geometry predict what probes and listeners find, across systems?

SCORES: a run folder or score table with geometry (P@1, GSR, hubness ...) and, unless --outcomes names other tables,
rows of probes; or published:vocsim, the papers' printed tables, with their avian, mouse and HEAR results. Every
predictor is correlated by rank with every outcome over the systems that have both. Versions of one model are one unit
of the interval. What stands out counts only after a correction for the number of relations that were looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from earmark.analysis.sources import PREFIX, open_scores
from earmark.analysis.transfer import PREDICTORS, relation_rows, transfer, verdict
from earmark.cli import options
from earmark.cli.analyze import families_of
from earmark.report.figures import save
from earmark.report.probes import relation_table, transfer_figure
from earmark.scores import Scores

EXAMPLES = """examples:
  earmark probe transfer run --figure transfer.svg
  earmark probe transfer run --outcomes listeners.csv --predictors P@1,GSR
  earmark probe transfer published:vocsim
  earmark probe transfer published:vocsim --outcomes published:vocsim-avian --over public,domain:birdsong
"""

_PRINTED = ("vocsim-avian", "vocsim-mouse-strain", "vocsim-mouse-identity", "vocsim-hear")
_PRINTED_RULES = ("public", "domain:birdsong")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scores", metavar="SCORES", help="run folder, score table, or published:vocsim")
    what = parser.add_argument_group("what is compared")
    options.add(
        what,
        ("--outcomes", list, "tables with what is to be predicted (default: probes in SCORES, or the papers')"),
        ("--predictors", list, f"metrics, and 'METRIC lift' (default: {', '.join(PREDICTORS)})"),
        ("--over", list, "average predictors over subsets by these rules, such as public or domain:birdsong "
         "(default: the subset of the outcome)"),
        ("--families", "FILE", "which systems are versions of one model: CSV with columns model,family; auto or none"),
    )  # fmt: skip
    options.add_repeats(what)
    options.add(parser, ("--figure", "FILE", "draw the relations: .png, .svg or .pdf"))
    options.add_output(parser)
    parser.set_defaults(families="auto")


def run(args: argparse.Namespace) -> int:
    options.check_out(args, "figure")
    geometry = open_scores(args.scores, with_repeats=args.with_repeats)[0]
    names, rules = args.outcomes or [], args.over or []
    if args.scores.startswith(PREFIX) and not names:
        names, rules = [f"{PREFIX}{name}" for name in _PRINTED], rules or list(_PRINTED_RULES)
    outcomes = [open_scores(name, with_repeats=args.with_repeats)[0] for name in names]
    families = families_of(args.families)
    relations = transfer(
        geometry, Scores(tuple(row for table in outcomes for row in table)) if outcomes else None,
        predictors=args.predictors or PREDICTORS, over=rules,
        families={} if families is None else families if isinstance(families, dict) else None,
    )  # fmt: skip
    rows = relation_rows(relations)
    if args.out:
        rows.write(args.out)
    if args.json:
        print(json.dumps([{**asdict(item), "expected": item.expected} for item in relations], ensure_ascii=False))
    else:
        print(*verdict(relations), sep="\n")
        measured = [item for item in relations if item.rho is not None]
        if measured:
            print(f"\n{relation_table(measured).to_text()}", end="")
    if args.out and not args.quiet:
        print(f"relations written to {args.out}", file=sys.stderr)
    return 0 if options.write_files(args, {"figure": lambda path: save(transfer_figure(relations), path)}) else 1
