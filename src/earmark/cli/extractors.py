"""List the extractors, with what their cards say. Nothing is loaded.

A model that is not listed runs by its import path: --extractor mypackage.mymodule:MyModel.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from earmark.extractors.catalogue import cards
from earmark.extractors.contract import ExtractorCard

EXAMPLES = """examples:
  earmark extractors
  earmark extractors --json
"""

_HEADINGS = ("name", "code", "rate", "D", "frames/s", "hears", "pooling", "needs", "licence", "what it is")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the whole cards on stdout as a JSON array")
    parser.add_argument("--quiet", action="store_true", help="print names only")


def run(args: argparse.Namespace) -> int:
    found = cards()
    if args.json:
        sys.stdout.write(json.dumps([asdict(card) for card in found], indent=1) + "\n")
    elif args.quiet:
        sys.stdout.write("".join(f"{card.name}\n" for card in found))
    else:
        sys.stdout.write(_columns([_HEADINGS, *map(_line, found)]))
    return 0


def _line(card: ExtractorCard) -> tuple[str, ...]:
    return (
        card.name,
        card.short_name,
        f"{card.rate} Hz",
        str(card.dimension or ""),
        "clip" if card.frame_rate is None else f"{card.frame_rate:.3g}",
        "all" if card.context_seconds is None else f"{card.context_seconds:g} s",
        card.pooling,
        f"earmark[{card.extra}]" if card.extra else "",
        card.licence,
        card.title,
    )


def _columns(lines: Sequence[Sequence[str]]) -> str:
    """Lines of words in columns two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ("  ".join(f"{word:{width}}" for word, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(rows) + "\n"
