"""The papers' printed results that come with Earmark: list them, recompute what follows from them, write them out.

`list` names the sets that are score tables and every printed table. `check` recomputes each printed average, says how
many are reproduced, and finds the values that repeat other systems'. `show` prints a set of scores, or a table as it
was printed; --out writes it.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from earmark import published
from earmark.cli import options
from earmark.errors import UsageError, did_you_mean
from earmark.places import locate
from earmark.report import by_subset
from earmark.scores import Scores
from earmark.scores.rows import distinct
from earmark.tables import aligned, write_csv

EXAMPLES = """examples:
  earmark published list
  earmark published check
  earmark published show vocsim --metric P@1
  earmark published show codec-superb --out codecs.csv
  earmark published show simba_table3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="sets and tables, with their papers")
    checked = actions.add_parser("check", help="recompute every printed average")
    shown = actions.add_parser("show", help="print or write one of them")
    shown.add_argument("name", metavar="NAME", help="a set such as vocsim, or a table such as simba_table3")
    shown.add_argument("--metric", metavar="NAME", help="only this metric (sets)")
    options.add_repeats(shown)
    shown.add_argument(
        "--out", metavar="FILE", help="write it: a set as .csv, .jsonl, .json or .parquet, a table as .csv"
    )
    for action in (listed, checked, shown):
        action.add_argument("--json", action="store_true", help="print the result on stdout as JSON")
        action.add_argument("--quiet", action="store_true", help="no remarks")


def run(args: argparse.Namespace) -> int:
    return {"list": _list, "check": _check, "show": _show}[args.action](args)


def _list(args: argparse.Namespace) -> int:
    sets = [{"name": name, "holds": holds} for name, (holds, _) in published.SETS.items()]
    if args.json:
        found = {"sets": sets, "tables": [asdict(card) for card in published.tables()]}
        print(json.dumps(found, ensure_ascii=False, indent=1))
        return 0
    print(*aligned([["set of scores", "what it holds"], *([one["name"], one["holds"]] for one in sets)]), sep="\n")
    rows = [[card.name, str(card.lines), f"{card.paper}, {card.printed}"] for card in published.tables()]
    print("", *aligned([["table as printed", "rows", "where"], *rows]), sep="\n")
    return 0


def _check(args: argparse.Namespace) -> int:
    findings = published.check()
    changed = [found for found in findings if not found.as_known]
    if args.json:
        print(json.dumps([asdict(found) for found in findings], ensure_ascii=False, indent=1))
    else:
        rows = [[f"{found.reproduced} of {found.total}", f"{found.paper}, {found.name}"] for found in findings]
        print(*aligned([["count", "what"], *rows]), sep="\n")
    if not args.quiet:
        for found in findings:
            if found.remark:
                print(f"note: {found.paper}, {found.name}: {found.remark}.", file=sys.stderr)
        for found in changed:
            print(f"changed: {found.name} should give {found.expected}, not {found.reproduced}.", file=sys.stderr)
    return 1 if changed else 0


def _show(args: argparse.Namespace) -> int:
    if args.out:
        options.check_out(args)
    if args.name in published.SETS:
        scores = published.load(args.name, with_repeats=args.with_repeats)
        if args.metric:
            present = distinct(scores.rows, "metric")
            if args.metric not in present:
                raise UsageError(
                    f"{args.name} has no metric {args.metric!r}; it has {', '.join(present)}."
                    f"{did_you_mean(args.metric, present)}"
                )
            scores = scores.select(metric=args.metric)
        options.deliver(args, scores, _by_subset)
        return 0
    names = [*published.SETS, *(card.name for card in published.tables())]
    if args.name not in names:
        raise UsageError(
            f"Nothing published is called {args.name!r}; `earmark published list` names everything."
            f"{did_you_mean(args.name, names)}"
        )
    if args.metric:
        raise UsageError(f"{args.name} is a table as printed and has no metrics to choose from: leave out --metric.")
    return _table(args, published.read(args.name))


def _by_subset(scores: Scores) -> str:
    return "\n".join(by_subset(scores, metric) for metric in distinct(scores.rows, "metric"))


def _table(args: argparse.Namespace, rows: list[dict[str, str]]) -> int:
    if args.out:
        if locate(args.out).suffix.lower() != ".csv":
            raise UsageError(f"{args.out}: a table as printed is written as .csv; give a name that ends so.")
        write_csv(locate(args.out), list(rows[0]), rows)
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        print(*aligned([list(rows[0]), *(list(row.values()) for row in rows)]), sep="\n")
    card = published.table(args.name)
    if not args.quiet:
        print(f"{card.paper}, {card.printed}. {card.known}".rstrip(), file=sys.stderr)
    return 0
