"""Draw the papers' figures from any score table: trends, label noise, layers, pooling, PCA, hubs, maps, rates.

SOURCE: a score table (.csv, .jsonl, .json, .parquet), the folder of `earmark run` or `earmark codec run`, or printed
results that come with Earmark (published:vocsim, published:codec-superb and others, see `earmark published list`).
Without --into or --out, or with --list, it says which figures the source can give, and why others not. Each figure has
a caption that says what it shows, how it was made and what it does not show; --into also writes the numbers behind it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from earmark.cli import options
from earmark.errors import UsageError
from earmark.report.drawing import FORMATS, draw_figures, open_material
from earmark.report.gallery import ELSEWHERE, TOPS, Material, Offer, Wishes, entry, offers
from earmark.tables import aligned

EXAMPLES = """examples:
  earmark figures published:vocsim --list
  earmark figures published:vocsim --figure trends --top 5 --out trends.pdf
  earmark figures run --into figures --format png,svg,pdf
  earmark figures run --figure maps --subset SYN-HW --system "logmel mean_time" --into figures
  earmark figures published:codec-superb --figure rate --into figures
"""

_LISTS = ("figure", "metric", "subset", "system", "distance", "format")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="score table, run folder, or published:NAME")
    options.add(
        parser.add_argument_group("what is drawn"),
        ("--figure", list, "which figures (default: all that the source can give)"),
        ("--list", True, "say which figures the source can give, and why others not"),
        ("--metric", list, "metrics (default: P@1, P@5 and GSR, or what the figure is usually drawn of)"),
        ("--subset", list, "only these subsets"),
        ("--system", list, "only these systems"),
        ("--distance", list, "only rows of these distances"),
        ("--top", list, f"trends: the best share of configurations in percent (default: {_tops()})"),
        ("--facts", "FILE", "clips, classes, seconds and DRI of subsets: what `earmark corpus describe --out` writes"),
        ("--seed", 0, "seed of maps and samples"),
    )
    options.add_repeats(parser)
    options.add(
        parser.add_argument_group("output"),
        ("--into", "DIR", "write every figure, its numbers (.csv) and captions.md there; it is made if need be"),
        ("--out", "FILE", "write a single figure: .png, .svg or .pdf"),
        ("--format", list, f"of figures in --into: {', '.join(FORMATS)} (default: png)"),
        ("--json", True, "print names, captions and numbers on stdout as JSON"),
        ("--quiet", True, "no progress bars and no remarks"),
    )


def _tops() -> str:
    return ",".join(f"{top:g}" for top in TOPS)


def run(args: argparse.Namespace) -> int:
    wished: dict[str, Any] = {name: tuple(getattr(args, name) or ()) for name in _LISTS}
    wished["format"] = wished["format"] or ("png",)
    tops = _numbers(args.top)
    for name in wished["figure"]:
        entry(name)
    if args.list or not (args.into or args.out):
        wishes = Wishes(
            metrics=wished["metric"], top=tops, subsets=wished["subset"], systems=wished["system"],
            distances=wished["distance"], seed=args.seed,
        )  # fmt: skip
        material = open_material(args.source, facts=args.facts, with_repeats=args.with_repeats, wishes=wishes)
        return _list(args, material, wished["figure"])
    if args.into and args.out:
        raise UsageError("--into and --out: choose one, a folder for several figures or a file for one.")
    if args.out:
        if Path(args.out).suffix.lower().removeprefix(".") not in FORMATS:
            raise UsageError(f"{args.out}: choose a name that ends in .png, .svg or .pdf.")
        options.check_out(argparse.Namespace(out=args.out))
    drawings = draw_figures(
        args.source, **wished, into=args.into, out=args.out, top=tops, facts=args.facts,
        with_repeats=args.with_repeats, seed=args.seed, progress=not args.quiet,
    )  # fmt: skip
    if args.json:
        said = [{"name": one.name, "caption": one.caption, "rows": one.rows} for one in drawings]
        print(json.dumps(said, ensure_ascii=False, indent=1))
    else:
        print("\n\n".join(f"{one.name}: {one.caption}" for one in drawings))
    if not args.quiet:
        print(f"{len(drawings)} written: {args.into or args.out}", file=sys.stderr)
    return 0


def _numbers(words: list[str] | None) -> tuple[float, ...]:
    try:
        return tuple(float(word.removesuffix("%")) for word in words) if words else TOPS
    except ValueError:
        raise UsageError(f"--top {','.join(words or [])} is not a list of percentages such as 5,50,100.") from None


def _list(args: argparse.Namespace, material: Material, names: tuple[str, ...]) -> int:
    found = [offer for offer in offers(material) if not names or offer.entry.name in names]
    if args.json:
        print(json.dumps([_plain(offer) for offer in found], ensure_ascii=False, indent=1))
        return 0
    given = [offer for offer in found if offer.exhibits]
    if given:
        lines = [[offer.entry.name, str(len(offer.exhibits)), offer.entry.title, offer.entry.papers] for offer in given]
        print(*aligned([["figure", "files", "what it shows", "as printed in"], *lines]), sep="\n")
    missing = [[offer.entry.name, offer.reason] for offer in found if not offer.exhibits]
    if missing:
        print(*([""] if given else []), *aligned([["not from here", "why"], *missing]), sep="\n")
    if not names:
        others = [[name, command] for name, command in ELSEWHERE.items()]
        print("", *aligned([["other commands draw", "command"], *others]), sep="\n")
    if not args.quiet and given:
        print("--into DIR writes them all, --figure NAME,... some, --out FILE one.", file=sys.stderr)
    return 0


def _plain(offer: Offer) -> dict[str, Any]:
    return {
        "figure": offer.entry.name, "title": offer.entry.title, "papers": offer.entry.papers,
        "files": [exhibit.name for exhibit in offer.exhibits], "reason": offer.reason,
    }  # fmt: skip
