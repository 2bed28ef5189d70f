"""Corpora: list the registered ones, fetch recordings, describe a corpus, prepare it as VocSim was, export it.

SPEC is a folder of folders, a manifest (.csv, .tsv, .parquet), one audio file, hub:owner/name, a registered name
such as synth, asterisk:en or vocsim:BS1, or an import path.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earmark.atomic import write_whole
from earmark.cli import options
from earmark.cli.columns import add_columns, columns_of
from earmark.corpora.clips import Corpus
from earmark.corpora.source import CORPORA, open_corpus
from earmark.errors import InputError, UsageError
from earmark.places import locate
from earmark.tables import MISSING, aligned, write_csv
from earmark.vectors.class_samples import MEANING
from earmark.wording import counted

if TYPE_CHECKING:
    from earmark.corpora.recordings.catalogue import Part

EXAMPLES = """examples:
  earmark corpus list
  earmark corpus fetch asterisk:en asterisk:it,it-menardi
  earmark corpus describe recordings/ --figure recordings.png
  earmark corpus describe clips.csv --label-column species --group-column bird
  earmark corpus describe digits/ --labels-from "{label}_{group}_{take}.wav" --no-dri
  earmark corpus prepare raw/manifest.csv --subset-rule BS5 --into canary/
  earmark corpus export vocsim:BS1 --into bs1/
  earmark corpus export synth:tiny --subset SYN-BC --into calls/
  earmark corpus export recordings/ --sample 50x5 --into small/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name: str, line: str, *, opens: bool = True, writes: bool = False) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if opens:
            action.add_argument(
                "spec", metavar="SPEC", help="the corpus: folder, manifest, file, hub:ID, name or import path"
            )
            action.add_argument(
                "--threads", type=int, metavar="N", help="worker threads (default: every core, at most 8)"
            )
            action.add_argument("--subset", type=options.names, metavar="NAMES", help="only these subsets")
            add_columns(action)
            action.add_argument(
                "--label-separator", metavar="SIGN",
                help="what stands between the labels of a clip that has several, as in wren;owl",
            )  # fmt: skip
        if writes:
            action.add_argument("--into", metavar="DIR", required=True, help="folder to write; it is made if need be")
        return action

    lists = add("list", "registered corpora with domain, status and licence", opens=False)
    lists.add_argument("name", metavar="NAME", nargs="?", help="only this suite, such as vocsim")
    fetches = add("fetch", "get recordings that packages of Debian hold, with apt; nothing is installed", opens=False)
    fetches.description = _FETCH
    fetches.add_argument("specs", nargs="+", metavar="SPEC", help="recordings, as `earmark corpus list` names them")
    fetches.add_argument(
        "--from", dest="source", metavar="PATH", help="a .deb file, or a folder of them, that you have"
    )
    describes = add("describe", "clips, classes, durations and copies in each subset, and what a run could measure")
    describes.add_argument(
        "--no-dri", action="store_true", help="without the dynamic range: faster, since hardly a clip is decoded"
    )
    describes.add_argument("--figure", metavar="FILE", help="draw class sizes and durations: .png, .svg or .pdf")
    describes.add_argument("--out", metavar="FILE", help="write the table: .csv or .json")
    prepares = add(
        "prepare", "VocSim's Algorithm 1: leave out outliers and small classes, write a manifest and a log", writes=True
    )
    prepares.add_argument(
        "--subset-rule", default="auto", metavar="NAME",
        help="filters of a source: a VocSim subset or default (default: auto, by each subset's name)",
    )  # fmt: skip
    prepares.add_argument(
        "--cap", action="store_true", help="over 17,000 clips, keep classes that make 10,000 to 17,000"
    )
    prepares.add_argument(
        "--no-audio", action="store_true", help="point at the original files instead of writing 16 kHz FLACs"
    )
    exports = add("export", "write a manifest and 16-bit FLAC files", writes=True)
    exports.add_argument("--rate", type=int, metavar="HZ", help="resample (default: each clip keeps its rate)")
    for action in (describes, exports):
        options.add(action, ("--sample", "CxN", f"take {MEANING}"), ("--seed", 0, "seed of --sample"))
    for action in (lists, fetches, describes, prepares, exports):
        action.add_argument("--json", action="store_true", help="print the result on stdout as JSON")
        action.add_argument("--quiet", action="store_true", help="no progress bars and no remarks")


_FETCH = (
    "Get recordings into EARMARK_RECORDINGS (else ~/.cache/earmark/recordings): apt-get downloads packages of Debian, "
    "with your mirror and settings, each is checked against the SHA-256 of apt's lists, and dpkg-deb unpacks it. "
    "Nothing is installed, and no administrator is needed. Packages that are installed are used where they are."
)


def run(args: argparse.Namespace) -> int:
    return {"list": _list, "fetch": _fetch, "describe": _describe, "prepare": _prepare, "export": _export}[args.action](
        args
    )


# --- list ---------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    rows = [row for row in _registered() if args.name in (None, row["name"], row["name"].partition(":")[0])]
    if not rows:
        raise UsageError(f"No registered corpus is called {args.name!r}; there are {', '.join(CORPORA.names())}.")
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    columns = ("name", "status", "domain", "clips", "classes", "groups", "rate", "where", "licence", "title")
    lines = [[str(row.get(column) or MISSING) for column in columns] for row in rows]
    print("\n".join(aligned([columns, *lines])))
    return 0


def _registered() -> list[dict[str, Any]]:
    """A row for every subset of the suites that have cards, and one for each other name, opened by none."""
    from earmark.corpora import codec_superb, vocsim
    from earmark.corpora.recordings.catalogue import FAMILIES, parts_of

    rows: list[dict[str, Any]] = []
    for name in CORPORA:
        if name == "vocsim":
            for subset, card in vocsim.CARDS.items():
                published = vocsim.PUBLISHED[subset]
                rows.append({**vars(card), "clips": published.clips, "classes": published.classes})
        elif name == "codec_superb":
            rows += [{**vars(card), "clips": None, "classes": None} for card in codec_superb.cards()]
        elif name in FAMILIES:
            rows += [_recorded(part) for part in parts_of(name)]
        else:
            rows.append(_other(name))
    return rows


def _recorded(part: Part) -> dict[str, Any]:
    names = ("name", "title", "licence", "domain", "clips", "classes", "groups", "rate", "language", "history")
    return {
        **{name: getattr(part, name) for name in names},
        "status": "public",
        "packages": [package.name for package in part.packages],
        "megabytes": round(part.megabytes, 1),
        "where": f"fetch, {part.missing:.3g} MB" if part.missing else "here",
    }


def _other(name: str) -> dict[str, Any]:
    titles = {
        "synth": "embedded default, computed from a seed",
        "spoken": "read sentences by many voices of a formant synthesiser",
        "voices": "spoken words in many languages by a formant synthesiser",
    }
    blank = dict.fromkeys(("title", "source", "revision", "licence", "citation", "domain", "status", "notes"), "")
    known = {"status": "synthetic", "title": titles[name]} if name in titles else {}
    return {"name": name, **blank, **known, "clips": None, "classes": None}


# --- fetch --------------------------------------------------------------------------------------------------


def _fetch(args: argparse.Namespace) -> int:
    from earmark.corpora.recordings.catalogue import packages_of
    from earmark.corpora.recordings.packages import fetch, locate, stated_licences

    source = Path(args.source).expanduser() if args.source else None
    facts = []
    for package in dict.fromkeys(package for spec in args.specs for package in packages_of(spec)):
        copy = locate(package)
        there = copy is not None
        copy = copy or fetch(package, source=source, progress=not args.quiet)
        licences = stated_licences(copy)
        facts.append({"package": package.name, "version": copy.version, "folder": str(copy.root), "new": not there,
                      "licences": licences, "licence_file": str(copy.licence_file)})  # fmt: skip
        if not args.json:
            terms = f"{', '.join(licences)}: {copy.licence_file}" if licences else f"licence: {copy.licence_file}"
            print(f"{copy.revision}: {copy.root} ({terms}){'; it was here already' if there else ''}")
    if args.json:
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    return 0


# --- describe -----------------------------------------------------------------------------------------------


def _describe(args: argparse.Namespace) -> int:
    from earmark.corpora.describe import copies_text, describe, draw, lengths_text, table, unreadable_text
    from earmark.corpora.outlook import outlook_text, outlooks

    options.check_out(args)
    if args.out and locate(args.out).suffix.lower() not in (".csv", ".json"):
        raise UsageError(f"{args.out} cannot be written: give a name that ends in .csv or .json.")
    corpus = _opened(args)
    found = describe(corpus, dri=not args.no_dri, threads=args.threads, progress=not args.quiet)
    rows = found.as_dicts()
    outlook = outlooks(corpus, args.label_separator or "", {name for name, _ in found.unreadable})
    if args.out and locate(args.out).suffix.lower() == ".csv":
        write_csv(locate(args.out), list(rows[0]) if rows else [], rows)
    elif args.out:
        write_whole(locate(args.out), json.dumps(rows, ensure_ascii=False, indent=2).encode())
    if args.figure:
        draw(found, args.figure, title=corpus.card.title or corpus.name)
    if args.json:
        print(json.dumps({"card": vars(corpus.card), "subsets": rows, "notes": list(corpus.notes),
                          "outlook": [one.as_dict() for one in outlook],
                          "unreadable": [{"id": name, "reason": why} for name, why in found.unreadable],
                          "copies": [{"subset": name, "ids": one.ids, "labels": one.labels}
                                     for name, sets in found.copies.items() for one in sets]},
                         ensure_ascii=False, indent=2))  # fmt: skip
    else:
        remarks = unreadable_text(found) + copies_text(found) + lengths_text(found)
        sys.stdout.write(table(found.rows) + remarks + outlook_text(outlook))
    if not args.quiet:
        _list_failures(found.unreadable, "could not be read")
        for written in (args.out, args.figure):
            if written:
                print(f"written to {written}", file=sys.stderr)
    return 0


# --- prepare and export -------------------------------------------------------------------------------------


def _prepare(args: argparse.Namespace) -> int:
    from earmark.corpora.prepare import find_rule, prepare

    find_rule(args.subset_rule, "")
    corpus = _opened(args)
    made = prepare(
        corpus,
        _folder(args.into),
        subset_rule=args.subset_rule,
        cap=args.cap,
        audio=not args.no_audio,
        threads=args.threads,
        progress=not args.quiet,
    )
    lost = Counter(one.step for one in made.dropped)
    if args.json:
        print(json.dumps({"manifest": str(made.manifest), "kept": len(made.clips), "dropped": dict(lost)}, indent=2))
        return 0
    print(f"{len(made.clips):,} of {len(corpus):,} clips kept: {made.manifest}")
    for step, count in lost.items():
        print(f"  {count:,} dropped at {step}")
    if lost:
        print(f"Why, clip by clip: {made.manifest.parent / 'dropped.csv'}")
    return 0


def _export(args: argparse.Namespace) -> int:
    from earmark.corpora.export import export

    if args.rate is not None and args.rate <= 0:
        raise UsageError(f"--rate {args.rate} is not possible: give a positive number of Hz.")
    corpus = _opened(args)
    made = export(corpus, _folder(args.into), rate=args.rate, threads=args.threads, progress=not args.quiet)
    if args.json:
        counts = {"written": made.written, "reused": made.reused, "scaled": made.scaled, "failed": len(made.failed)}
        print(json.dumps({"manifest": str(made.manifest), "clips": len(made.clips), **counts}, indent=2))
    else:
        print(f"{len(made.clips):,} clips: {made.manifest} ({made.written:,} written, {made.reused:,} already there)")
    if not args.quiet:
        if made.scaled:
            print(f"note: {made.scaled:,} clips passed full scale and were made quieter.", file=sys.stderr)
        _list_failures(made.failed, f"could not be read; see {made.manifest.parent / 'failed.csv'}")
    return 0


def _folder(into: str) -> Path:
    target = Path(into)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file: give a folder to write into.")
    return target


def _opened(args: argparse.Namespace) -> Corpus:
    from earmark.corpora.subsets import choose_subsets

    corpus = open_corpus(
        args.spec, **columns_of(args), label_separator=args.label_separator, needs_labels=args.action == "prepare"
    )
    if args.subset:
        chosen = choose_subsets(corpus, args.subset)
        corpus = replace(corpus, clips=[clip for clips in chosen.values() for clip in clips])
    if getattr(args, "sample", None):
        corpus = corpus.sampled(args.sample, args.seed or 0)
    if not args.quiet:
        for note in corpus.notes:
            print(f"note: {note}", file=sys.stderr)
    return corpus


def _list_failures(failed: list[tuple[str, str]], what: str, most: int = 5) -> None:
    if failed:
        print(f"note: {counted(len(failed), 'clip')} {what}:", file=sys.stderr)
        for _, reason in failed[:most]:
            print(f"  {reason}", file=sys.stderr)
        if len(failed) > most:
            print(f"  and {len(failed) - most:,} more", file=sys.stderr)
