"""Tables for a paper, from any scores: text, Markdown, LaTeX that fits a page, CSV.

SOURCE: a score table, a run folder (of `earmark run` or `earmark codec run`), published:vocsim or
published:codec-superb. Which subsets are public or blind is known of VocSim's, or from the corpus cards of a run; --set
says it otherwise. What is missing, failed or repeats another system's is a mark with a footnote and never a number.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable

from earmark.analysis.sources import PREFIX
from earmark.atomic import write_whole
from earmark.cli import flags, options
from earmark.errors import InputError, UsageError
from earmark.places import locate
from earmark.report.tabulation import KINDS, Choice, Tabulation, tabulate
from earmark.tables import Page
from earmark.wording import counted

_KINDS = "".join(f"  {name:9} {words}\n" for name, words in KINDS.items())
EXAMPLES = f"""kinds of tables:
{_KINDS}
examples:
  earmark tables run
  earmark tables run --metrics P@1,GSR --distances cosine --top 10 --second --out main.tex
  earmark tables run --kind full --metrics P@1 --subsets SYN-BS,SYN-HW --interval ends
  earmark tables run --metrics P@1,P@5,GSR --set words=SYN-HW --set calls=SYN-BC --out two.tex
  earmark tables run --kind chance,subsets --out tables.md
  earmark tables scores.csv --set blind=HU3,HU4 --set "public=*" --one-per-system
  earmark tables run --rename "mfcc=MFCC" --rename "logmel flatten=Log-Mel" --format latex --label tab:main
  earmark tables published:vocsim --with-repeats
  earmark tables published:vocsim --kind full --metrics CSR --missing skip --with-repeats --out csr.csv
  earmark tables published:codec-superb --kind codecs,full --format markdown
"""

FORMATS: dict[str, Callable[[Tabulation], str]] = {
    "text": Tabulation.to_text,
    "markdown": Tabulation.to_markdown,
    "latex": Tabulation.to_latex,
    "csv": Tabulation.to_csv,
}
_ENDINGS = {".txt": "text", ".md": "markdown", ".tex": "latex", ".csv": "csv"}
LARGE = 10_000_000  # bytes
_REPEATED = {"sets": "NAME=SUBSET,...", "rename": "OLD=NEW"}
_ROWS = ("systems", "distances", "corrections", "protocols", "sort", "top", "one_per_system", "rename")
_COLUMNS = (
    "metrics",
    "subsets",
    "sets",
    "averages",
    "missing",
    "interval",
    "digits",
    "best",
    "second",
    "lift",
    "p_below",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="score table, run folder, or published:NAME")
    parser.add_argument(
        "--kind", type=options.names, metavar="LIST", help=f"of {', '.join(KINDS)} (default: main; codecs for codecs)"
    )
    for title, wanted in (("rows", _ROWS), ("columns and values", _COLUMNS)):
        group = parser.add_argument_group(title)
        for name in wanted:
            if name in _REPEATED:
                text = Choice.model_fields[name].description
                names = ("--set", "--sets") if name == "sets" else (f"--{name}",)
                group.add_argument(*names, dest=name, action="append", metavar=_REPEATED[name], help=text)
            else:
                flags.add_flags(group, Choice, (name,))
        if title == "rows":
            options.add_repeats(group)
        else:
            text = "what is known of subsets, for --kind subsets: a file of `earmark corpus describe --out`"
            options.add(group, ("--facts", "FILE", text))
    options.add(
        parser.add_argument_group("output"),
        ("--format", tuple(FORMATS), "what is printed"),
        ("--out", "FILE", "write the tables: .txt, .md, .tex, .csv, .parquet or .json"),
        ("--label", "NAME", "LaTeX label; of several tables with a number behind it"),
        ("--page", "WIDTHxHEIGHT", "text block in points that LaTeX tables have to fit (default: 345x550)"),
        ("--json", True, "print the tables on stdout as JSON, numbers with every digit"),
        ("--quiet", True, "no remarks"),
    )


def run(args: argparse.Namespace) -> int:
    page = _page(args.page)
    if args.out:
        options.check_out(args)
        if locate(args.out).suffix.lower() not in (*_ENDINGS, ".parquet", ".json"):
            raise UsageError(f"{args.out}: choose a name that ends in {', '.join(_ENDINGS)}, .parquet or .json.")
    if not args.quiet and _is_large(args.source):
        print(f"reading {args.source} ...", file=sys.stderr)
    chosen = {name: value for name in Choice.model_fields if (value := getattr(args, name, None)) is not None}
    made = tabulate(args.source, args.kind, with_repeats=args.with_repeats, facts=args.facts, **chosen)
    if args.out:
        _write(args, made, page)
    text = _json(made) if args.json else _text(args.format, made, args.label, page)
    sys.stdout.write(text.rstrip() + "\n")
    if not args.quiet:
        for remark in made.remarks:
            print(f"note: {remark}", file=sys.stderr)
        if args.out:
            print(f"{counted(len(made), 'table')} written to {args.out}", file=sys.stderr)
    return 0


def _is_large(source: str) -> bool:
    """Whether reading takes longer than a moment."""
    if source.startswith(PREFIX):
        return False
    path = locate(source)
    file = path / "scores.csv" if path.is_dir() else path
    return file.is_file() and file.stat().st_size > LARGE


def _page(given: str | None) -> Page:
    if given is None:
        return Page()
    found = re.fullmatch(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)", given)
    if not found or not 100 <= float(found[1]) <= 5000 or not 100 <= float(found[2]) <= 5000:
        raise UsageError(f"--page {given!r} is not WIDTHxHEIGHT in points, such as 345x550 or 487x650.")
    return Page(float(found[1]), float(found[2]))


def _text(name: str, made: Tabulation, label: str | None, page: Page) -> str:
    return made.to_latex(label=label, page=page) if name == "latex" else FORMATS[name](made)


def _json(made: Tabulation) -> str:
    return json.dumps({"tables": made.as_dicts(), "remarks": made.remarks}, ensure_ascii=False, indent=1)


def _write(args: argparse.Namespace, made: Tabulation, page: Page) -> None:
    path = locate(args.out)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        data = made.to_parquet()
    else:
        data = (_json(made) if suffix == ".json" else _text(_ENDINGS[suffix], made, args.label, page)).encode()
    try:
        write_whole(path, data)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); choose another place.") from error
