"""Measure codecs: clips are coded, decoded, aligned by one delay for each codec, and measured; bits are counted.

CONFIG: a YAML file; flags take the place of what it says. Without a file, --codecs, --corpus and --category do.
Results lie in the folder --into: scores.csv, clips.csv, report.html, submission.json, config.yaml, run.json, run.log.
A killed run continues where it stopped when it is started again; a codec or a metric that is added costs what is new.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from earmark.cli import options
from earmark.codecs.contract import CATEGORIES
from earmark.codecs.signal import CORE, EXTRA
from earmark.errors import UsageError
from earmark.pipeline.codec_config import CodecConfig, load_codec_config, make_codec_config
from earmark.pipeline.config import POLICIES
from earmark.wording import counted

EXAMPLES = """examples:
  earmark codec run --codecs pcm,opus@12,mp3@32,lyra@3.2 --corpus sounds/ --category speech --into run
  earmark codec run --codecs classical --corpus esc50/ --category audio --limit 200 --into run
  earmark codec run --codecs opus,codec2 --corpus voices.csv --category speech --tasks asr,asv --into run
  earmark codec run --codecs opus@12,opus@24 --corpus sounds/ --category music --tandem 5 --loss 5,10 --into run
  earmark codec run --codecs mypackage.mymodule:MyCodec,opus@12 --corpus sounds/ --category speech --into run
  earmark codec run run/config.yaml --plan

Name anchors too: pcm loses nothing of 16-bit sound and shows the ceiling of every metric, flac what coding without loss
costs; quiet 24-bit or float material is rounded to 16 bits, and the ceiling shows it.
`opus` is every rate of the family, `classical` every classical setting, `all` every setting that can run here.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", nargs="?", help="YAML file")
    group = parser.add_argument_group("what to measure")
    group.add_argument("--codecs", type=options.names, metavar="LIST", help="settings, families or import paths")
    group.add_argument("--corpus", action="append", metavar="C", help="folder, manifest or name; may be repeated")
    group.add_argument("--category", choices=CATEGORIES, help="what the sounds are: decides the overall score")
    group.add_argument("--limit", type=int, metavar="N", help="clips of each subset, spread evenly over it")
    group.add_argument("--metrics", type=options.names, metavar="LIST", help=f"default: {','.join(CORE)}")
    group.add_argument("--extras", type=options.names, metavar="LIST", help=f"beside them: {','.join(EXTRA)}")
    group.add_argument(
        "--definitions", choices=("mended", "reference"),
        help="reference: word for word as the published code, which takes no delay out (default: mended)",
    )  # fmt: skip
    group.add_argument("--gain-match", action="store_true", default=None, help="scale coded clips to the reference")
    group.add_argument(
        "--no-unaligned", dest="unaligned", action="store_false", default=None,
        help="do not also measure codecs with a delay without taking it out",
    )  # fmt: skip
    beyond = parser.add_argument_group("beyond the signal")
    beyond.add_argument(
        "--tasks",
        type=options.names,
        metavar="LIST",
        help="asr, asv, events, emotion, content, fidelity; a model as asr:MODEL",
    )
    beyond.add_argument("--retention", metavar="EXTRACTOR", help="content identity and fidelity of coded clips")
    beyond.add_argument("--tandem", type=int, metavar="N", help="passes through the same codec, up to N")
    beyond.add_argument("--loss", type=options.names, metavar="LIST", help="percent of packets lost, such as 5,10")
    _add_running(parser)
    options.add_output(parser)


def _add_running(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running")
    group.add_argument("--into", metavar="RUN", help="folder for the results (default: codec-run)")
    group.add_argument("--suite", metavar="NAME", help="name of the suite, for the suite column (default: codec)")
    group.add_argument(
        "--bootstrap", type=int, metavar="N", help="resamples of clips: intervals of means (default: 1000)"
    )
    group.add_argument("--seed", type=int, help="seed of resamples and lost packets (default: 0)")
    group.add_argument("--jobs", type=int, metavar="N", help="worker processes (default: every core; 0: none)")
    group.add_argument(
        "--plan", action="store_true", help="say what would run, what is cached and roughly how long it takes"
    )
    group.add_argument("--no-report", dest="report", action="store_false", default=None, help="write no report.html")
    group.add_argument("--cache", choices=POLICIES, help="finished steps: use, redo or keep none (default: use)")
    group.add_argument("--cache-dir", metavar="URL", help="their place (default: EARMARK_CACHE or ~/.cache/earmark)")


_FLAGS = (
    "codecs", "corpus", "category", "limit", "metrics", "extras", "definitions", "gain_match", "unaligned", "tasks",
    "retention", "tandem", "loss", "into", "suite", "bootstrap", "seed", "jobs", "report",
)  # fmt: skip


def config_of(args: argparse.Namespace) -> CodecConfig:
    """The config that the flags, or a file with flags in place of its values, describe."""
    given: dict[str, Any] = {name: getattr(args, name) for name in _FLAGS if getattr(args, name) is not None}
    cache = {key: value for key, value in (("policy", args.cache), ("url", args.cache_dir)) if value is not None}
    if cache:
        given["cache"] = cache
    if args.config:
        return load_codec_config(args.config, given)
    for name in ("codecs", "corpus"):
        if name not in given:
            raise UsageError(
                f"Nothing says what to measure: give a config file, or --{name} (see `earmark codec run --help`)."
            )
    return make_codec_config(given, "The command line")


def run(args: argparse.Namespace) -> int:
    from earmark.pipeline.codec_runs import plan_codecs, run_codecs
    from earmark.pipeline.plan import plan_text

    options.check_out(args)
    config = config_of(args)
    if args.plan:
        lines, url = plan_codecs(config)
        text = plan_text(lines, url)
        sys.stdout.write((json.dumps([asdict(line) for line in lines], indent=1) if args.json else text) + "\n")
        return 0
    result = run_codecs(config, progress=not args.quiet)
    options.deliver(args, result.scores, lambda scores: _table(scores, result.folder))
    if not args.quiet:
        for line in _remarks(result):
            print(line, file=sys.stderr)
    return 0 if any(row.status == "ok" and row.metric not in ("delay_ms",) for row in result.scores) else 1


def _table(scores: Any, place: Any) -> str:
    from earmark.pipeline.codec_folder import read_cards, read_codec_record
    from earmark.report.codecs.text import run_text
    from earmark.submissions import Dataset

    record = read_codec_record(place)
    datasets = [Dataset(**given) for given in record["datasets"]]
    return run_text(scores, read_cards(record), record["protocol"], datasets, record["failed"])


def _remarks(result: Any) -> list[str]:
    """What a person should know after a run, beside the table."""
    lines = [f"note: {note}" for note in result.notes]
    counts = result.counts
    coded = counts.get("code", {}).get("computed", 0)
    measured, cached = (counts.get("measure", {}).get(name, 0) for name in ("computed", "cached"))
    lines.append(f"{counted(int(coded), 'clip')} coded; {measured:.0f} measured, {cached:.0f} from the cache")
    failed = int(counts.get("measure", {}).get("failed", 0))
    if failed:
        lines.append(f"{counted(failed, 'clip')} could not be coded; {result.folder / 'clips.csv'} says why")
    lines.append(f"results in {result.folder}" + (f"; open {result.report}" if result.report else ""))
    return lines
