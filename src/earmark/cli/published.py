"""The papers' printed results that come with Earmark: list them, recompute what follows from them, judge the texts.

`list` names the sets that are score tables and every printed table. `items` has a line for every table and figure of
the papers: the command that makes it, and how it stands. `claims` holds what the texts say in numbers against the
tables. `check` recomputes each printed average, says how many are reproduced, and finds the values that repeat other
systems'. `overlap` puts Earmark's verdicts on what models may have heard beside VocSim's Table 5. `show` prints a set
of scores, or a table as it was printed; --out writes it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

from earmark import published
from earmark.atomic import write_whole
from earmark.cli import options
from earmark.errors import UsageError, absent, did_you_mean
from earmark.places import locate
from earmark.report import by_subset
from earmark.scores import Scores
from earmark.scores.rows import distinct
from earmark.tables import aligned, write_csv

EXAMPLES = """examples:
  earmark published list
  earmark published items --paper vocsim
  earmark published claims --paper codec-superb --verdict differs
  earmark published claims --out claims.md
  earmark published check
  earmark published overlap
  earmark published show vocsim --metric P@1
  earmark published show codec-superb --out codecs.csv
  earmark published show simba_table3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="sets and tables, with their papers")
    lines = actions.add_parser("items", help="every table and figure, with the command that makes it")
    said = actions.add_parser("claims", help="what the texts say in numbers, held against the tables")
    said.add_argument("--verdict", choices=published.VERDICTS, help="only these")
    for action in (lines, said):
        action.add_argument(
            "--paper", metavar="NAME", help=f"only this one: {', '.join(map(str.lower, published.PAPERS))}"
        )
        action.add_argument("--out", metavar="FILE", help="write it: .md or .csv")
    heard = actions.add_parser(
        "overlap", help="what models may have heard: Earmark's verdicts beside Table 5 of VocSim"
    )
    checked = actions.add_parser("check", help="recompute every printed average")
    shown = actions.add_parser("show", help="print or write one of them")
    shown.add_argument("name", metavar="NAME", help="a set such as vocsim, or a table such as simba_table3")
    shown.add_argument("--metric", metavar="NAME", help="only this metric (sets)")
    options.add_repeats(shown)
    shown.add_argument(
        "--out", metavar="FILE", help="write it: a set as .csv, .jsonl, .json or .parquet, a table as .csv"
    )
    for action in (listed, lines, said, heard, checked, shown):
        action.add_argument("--json", action="store_true", help="print the result on stdout as JSON")
        action.add_argument("--quiet", action="store_true", help="no remarks")


def run(args: argparse.Namespace) -> int:
    return _ACTIONS[args.action](args)


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


def _items(args: argparse.Namespace) -> int:
    paper = published.paper_named(args.paper) if args.paper else ""
    found = [item for item in published.items() if item.paper.startswith(paper)]
    _write(args, [asdict(item) | {"tables": " ".join(item.tables)} for item in found], published.items_page(found))
    if args.json:
        print(json.dumps([asdict(item) for item in found], ensure_ascii=False, indent=1))
        return 0
    for version in dict.fromkeys(item.paper for item in found):
        print(version)
        for item in (item for item in found if item.paper == version):
            print(
                f"  {item.item:10} {item.shows}", *(" " * 13 + line for line in (item.command, item.stands)), sep="\n"
            )
    counts = Counter(item.standing for item in found)
    print(", ".join(f"{counts[standing]} {standing}" for standing in published.STANDINGS if counts[standing]))
    return 0


def _claims(args: argparse.Namespace) -> int:
    paper = published.paper_named(args.paper) if args.paper else ""
    found = [
        claim for claim in published.claims() if claim.paper.startswith(paper) and args.verdict in (None, claim.verdict)
    ]
    _write(args, [asdict(claim) for claim in found], published.claims_page(found))
    if args.json:
        print(json.dumps([asdict(claim) for claim in found], ensure_ascii=False, indent=1))
        return 0
    for claim in found:
        quoted = f" ({claim.quoted})" if claim.quoted else ""
        print(f"{claim.verdict}: {claim.paper}, {claim.where}: {claim.says}{quoted}.")
        print(f"    tables: {claim.computed}")
        if claim.reading and not args.quiet:
            print(f"    read:   {claim.reading}")
        print(f"    see:    {claim.command}")
    counts = Counter(claim.verdict for claim in found)
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in published.VERDICTS if counts[verdict]))
    return 0


def _write(args: argparse.Namespace, rows: list[dict[str, Any]], page: str) -> None:
    """--out as a table of all columns, or as the Markdown of the pages."""
    if not args.out:
        return
    options.check_out(args)
    place = locate(args.out)
    if place.suffix.lower() == ".md":
        write_whole(place, page.encode())
    elif place.suffix.lower() == ".csv":
        write_csv(place, list(rows[0]), rows)
    else:
        raise UsageError(f"{args.out}: choose a name that ends in .md or .csv.")


def _overlap(args: argparse.Namespace) -> int:
    from earmark.extractors import CARDS
    from earmark.extractors.overlap import PRINTED_COLUMNS, compared, differences

    models = {name: CARDS[name] for name in PRINTED_COLUMNS}
    found = differences(models)
    if args.json:
        print(json.dumps([one._asdict() for one in found], ensure_ascii=False, indent=1))
        return 0
    rows = [[one.model, one.subset, one.verdict, one.printed, one.why] for one in found]
    print(*aligned([["model", "subset", "here", "printed", "why"], *rows]), sep="\n")
    if not args.quiet:
        total = compared(models)
        print(f"{total - len(found)} of {total} verdicts are the printed ones.", file=sys.stderr)
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
                raise UsageError(absent(args.metric, present, "metric", args.name))
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


_ACTIONS = {
    "list": _list,
    "items": _items,
    "claims": _claims,
    "overlap": _overlap,
    "check": _check,
    "show": _show,
}
