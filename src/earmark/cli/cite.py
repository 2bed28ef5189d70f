"""How to cite Earmark, the papers behind its measures, and what a run rests on.

RUN: a folder of `earmark run`; its models, sounds and a paragraph on methods are printed beside the papers.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from earmark._version import __version__
from earmark.cli import options
from earmark.errors import UsageError
from earmark.places import locate
from earmark.published import PAPERS
from earmark.runs import read_record

EXAMPLES = """examples:
  earmark cite
  earmark cite run
  earmark cite run --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", help="run folder (default: Earmark and its papers alone)")
    options.add(parser, ("--json", True, "print everything on stdout as JSON"))


def run(args: argparse.Namespace) -> int:
    record = _record(args.run) if args.run else {}
    entries = [bibtex("earmark", "Earmark", f"Version {record.get('earmark', __version__)}, Apache-2.0")]
    entries += [bibtex(paper.key, paper.title, paper.citation) for paper in PAPERS.values()]
    cited = list(_cited(record))
    methods = record.get("methods", "")
    if args.json:
        print(json.dumps({"bibtex": entries, "cite": cited, "methods": methods}, ensure_ascii=False))
        return 0
    print("\n\n".join(entries))
    if cited:
        print("\nThis run also rests on\n" + "\n".join(f"  {line}" for line in cited))
    if methods:
        print(f"\nMethods\n  {methods}")
    return 0


def bibtex(key: str, title: str, note: str) -> str:
    """An entry: what is known of a work beyond its title stands in its note."""
    plain = re.sub(r"[^a-z0-9]+", "", key.lower())
    return f"@misc{{{plain},\n  title = {{{{{title}}}}},\n  note = {{{note}}}\n}}"


def _record(folder: str) -> Mapping[str, Any]:
    if not locate(folder).is_dir():
        raise UsageError(f"{folder} is no run folder: give the folder of `earmark run --into`.")
    return read_record(folder)


def _cited(record: Mapping[str, Any]) -> Iterable[str]:
    """What the cards of models and corpora ask to be cited by, each once."""
    cards = [system["card"] for system in record.get("systems", ())] + list(record.get("corpora", ()))
    lines = (f"{card['title'] or card['name']}: {card['citation']}" for card in cards if card.get("citation"))
    return dict.fromkeys(lines)
