"""From recordings to sets that may be evaluated: check their sizes, fix the steps of their figures, write the policy.

SETS is a YAML file that names the board and each set with its recordings. A common model (log-mel) is measured on each
set; the uncertainty of its figures gives the steps to which all figures will be rounded. The policy is written into
SETS, where its other values (quota, entries, sign_off, owners, contact …) may be changed by hand before the first
submission. A secret is made beside SETS, readable by its owner alone. Sets whose steps are fixed are not measured
again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from earmark.tables import aligned
from earmark.wording import listed

if TYPE_CHECKING:
    from earmark.blind.preparation import Prepared

EXAMPLES = """examples:
  earmark blind prepare sets.yaml
  earmark blind prepare sets.yaml --words policy.md     the policy in plain words, for the owners and their lawyers
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", metavar="SETS", help="the host's file: board, sets and policy")
    parser.add_argument("--words", metavar="FILE", help="write the policy in plain words, as Markdown")
    parser.add_argument("--anew", action="store_true", help="measure sets again whose steps are fixed")
    parser.add_argument("--json", action="store_true", help="print the policy as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress bars and no remarks")


def run(args: argparse.Namespace) -> int:
    from earmark.atomic import write_whole
    from earmark.blind.preparation import prepare

    done = prepare(args.sets, anew=args.anew, progress=not args.quiet)
    if args.words:
        write_whole(Path(args.words), done.policy.text().encode())
    if args.json:
        print(json.dumps(done.policy.plain | {"digest": done.policy.digest}, ensure_ascii=False))
    else:
        print("\n".join(_table(done)))
    if not args.quiet:
        _explain(args, done)
    return 0


def _table(done: Prepared) -> list[str]:
    metrics = list(dict.fromkeys(metric for terms in done.policy.sets.values() for metric in terms.steps))
    lines = [["set", "clips", "classes", *(f"step of {metric}" for metric in metrics), "steps"]]
    for name, terms in done.policy.sets.items():
        steps = [format(terms.steps[metric], "f") if metric in terms.steps else "" for metric in metrics]
        how = "measured now" if name in done.measured else "fixed before"
        lines.append([name, str(terms.clips), str(terms.classes), *steps, how])
    return aligned(lines)


def _explain(args: argparse.Namespace, done: Prepared) -> None:
    policy = done.policy
    lines = [f"{args.sets} has the policy {policy.digest[:16]}; `sign_off` is {policy.sign_off}."]
    unnamed = [name for name in ("owners", "contact") if getattr(policy, name) in ("", type(policy)().owners)]
    if unnamed:
        lines.append(f"Write {listed(unnamed)} into the policy, and read it with --words FILE, before anybody submits.")
    if args.words:
        lines.append(f"{args.words} has it in plain words.")
    lines.append(f"Next: earmark blind work {args.sets} --to URL --token-file FILE")
    print("\n".join(lines), file=sys.stderr)
