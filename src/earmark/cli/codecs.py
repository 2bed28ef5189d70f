"""List the settings of codecs, with what their cards say and whether they can run here. Nothing is loaded.

A codec that is not listed runs by its import path: --codecs mypackage.mymodule:MyCodec.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from earmark.codecs.catalogue import availability, settings
from earmark.codecs.contract import CodecCard
from earmark.errors import UsageError, did_you_mean
from earmark.tables import aligned

EXAMPLES = """examples:
  earmark codecs
  earmark codecs opus codec2
  earmark codecs --here
  earmark codecs --json

columns:
  kbps    nominal; a run counts what is sent
  delay   ms, as declared; ? is calibrated in each run; pcm and flac are the anchors: they lose nothing of 16 bits
  here    yes: it can run on this machine; else what it needs, in the lines below the table
"""

_HEADINGS = ("name", "kbps", "rate", "frames/s", "codebooks", "delay", "causal", "here", "licence", "what it is")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("family", metavar="FAMILY", nargs="*", help="only these families")
    parser.add_argument("--here", action="store_true", help="only settings that can run on this machine")
    parser.add_argument("--json", action="store_true", help="print the whole cards on stdout as a JSON array")
    parser.add_argument("--quiet", action="store_true", help="print names only")


def run(args: argparse.Namespace) -> int:
    cards = _chosen(args)
    if args.json:
        facts = [{**asdict(card), "needs": availability(card)} for card in cards]
        sys.stdout.write(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    elif args.quiet:
        sys.stdout.write("".join(f"{card.name}\n" for card in cards))
    else:
        print(*aligned([_HEADINGS, *map(_line, cards)]), sep="\n")
        sys.stdout.write(_needs(cards))
    return 0


def _chosen(args: argparse.Namespace) -> list[CodecCard]:
    known = {card.family for card in settings()}
    for family in args.family:
        if family not in known:
            raise UsageError(
                f"There is no family {family!r}.{did_you_mean(family, known)} Known: {', '.join(sorted(known))}."
            )
    cards = [card for card in settings() if not args.family or card.family in args.family]
    return [card for card in cards if not args.here or not availability(card)]


def _line(card: CodecCard) -> tuple[str, ...]:
    delay = "?" if card.delay is None else f"{1000 * card.delay / card.rate:.1f}"
    return (
        card.name,
        "" if card.kbps is None else f"{card.kbps:g}",
        "the clip's" if card.lossless else f"{card.rate} Hz",
        "" if card.frame_rate is None else f"{card.frame_rate:.4g}",
        "" if card.codebooks is None else str(card.codebooks),
        delay,
        {True: "yes", False: "no", None: ""}[card.causal],
        "yes" if not availability(card) else "no",
        card.licence,
        card.title,
    )


def _needs(cards: Sequence[CodecCard]) -> str:
    """What is missing, once for each family and sentence."""
    lines = [f"{card.family}: {lacking}\n" for card in cards if (lacking := availability(card))]
    return "".join(dict.fromkeys(lines))
