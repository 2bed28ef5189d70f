"""Measure codecs: clips are coded, decoded, aligned by one delay for each codec, and measured; bits are counted.

CONFIG: a YAML file; flags take the place of what it says. Without a file, --codecs, --corpus and --category do.
Results lie in the folder --into: scores.csv, clips.csv, report.html, submission.json, config.yaml, run.json, run.log.
A killed run continues where it stopped when it is started again; a codec or a metric that is added costs what is new.
The exit status is 1 when a codec has no result at all; what the others have is written all the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from earmark.cli import flags, options, spreading
from earmark.cli.columns import add_columns
from earmark.cli.tracked import add_track, tell, track_run
from earmark.codecs.runs.config import CodecConfig
from earmark.evaluation.options import Options
from earmark.geometry import devices
from earmark.runs.config import CorpusEntry, refuse_unshared
from earmark.wording import counted

EXAMPLES = """examples:
  earmark codec run --codecs pcm,opus@12,mp3@32,lyra@3.2 --corpus sounds/ --category speech --into run
  earmark codec run --codecs classical --corpus esc50/ --category audio --limit 200 --into run
  earmark codec run --codecs opus,codec2 --corpus voices.csv --category speech --tasks asr,asv --into run
  earmark codec run --codecs opus@12,opus@24 --corpus sounds/ --category music --tandem 5 --loss 5,10 --into run
  earmark codec run --codecs mypackage.mymodule:MyCodec,opus@12 --corpus sounds/ --category speech --into run
  earmark codec run run/config.yaml --plan
  earmark codec run run/config.yaml --scheduler tcp://head:8786 --cache-dir /shared/earmark
  earmark codec run run/config.yaml --shard 3/40 --cache-dir s3://lab/earmark

Name anchors too: pcm loses nothing of 16-bit sound and shows the ceiling of every metric, flac what coding without loss
costs; quiet 24-bit or float material is rounded to 16 bits, and the ceiling shows it.
`opus` is every rate of the family, `classical` every classical setting, `all` every setting that can run here.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", nargs="?", help="YAML file")
    group = parser.add_argument_group("what to measure")
    flags.add_flags(group, CodecConfig, ("codecs", "corpus"))
    flags.add_flags(group, CorpusEntry, ("subset",))
    add_columns(group)
    signal = ("category", "limit", "metrics", "extras", "definitions", "gain_match", "unaligned")
    flags.add_flags(group, CodecConfig, signal)
    group = parser.add_argument_group("beyond the signal")
    flags.add_flags(group, CodecConfig, ("tasks", "retention", "tandem", "loss"))
    group = parser.add_argument_group("running")
    flags.add_flags(group, CodecConfig, ("into", "suite", "bootstrap", "seed", "jobs", "report"))
    flags.add_flags(group, CodecConfig, ("isolation", "readable", "clip_timeout", "check"))
    group.add_argument(
        "--plan", action="store_true", help="say what would run, what is cached and roughly how long it takes"
    )
    flags.add_flags(group, Options, ("device",))
    flags.add_cache(group)
    spreading.add_executors(parser, CodecConfig)
    options.add_output(parser)
    add_track(parser)


def run(args: argparse.Namespace) -> int:
    from earmark.codecs.runs.runner import plan_codecs, run_codecs

    options.check_out(args)
    config = flags.config_of(args, CodecConfig, "codec run")
    if args.plan:
        lines, url = plan_codecs(config)
        return spreading.print_plan(args, lines, url)
    spreading.check(args)
    tracking_run = track_run(args, config)
    if args.slurm is not None:
        refuse_unshared(config.executor, config.cache, merge=True)
        device = [] if args.device is None else [f"--device={args.device}"]
        return spreading.write_script(args, config, "codec run", {"code": ""}, device)
    with devices.preferring(args.device):  # no score depends on it, so no config says it
        if args.shard is not None:
            return _run_share(args, config)
        with tracking_run as tracking:
            result = run_codecs(config, progress=not args.quiet, merge=args.merge)
            if tracking is not None:
                tracking.log(result.scores)
    options.deliver(args, result.scores, lambda scores: _table(scores, result.folder))
    if not args.quiet:
        for line in _remarks(result):
            print(line, file=sys.stderr)
    tell(args, tracking)
    measured = {row.system for row in result.scores if row.metric == "kbps" and row.value is not None}
    return 0 if all(row.system in measured for row in result.scores) else 1


def _run_share(args: argparse.Namespace, config: CodecConfig) -> int:
    from earmark.codecs.runs.shards import run_codec_shard

    done = run_codec_shard(config, args.shard, progress=not args.quiet)
    if args.json:
        print(json.dumps({"shard": str(done.share), "counts": done.counts}))
    elif not args.quiet:
        coded, measured = (f"{done.counts.get(step, {}).get('computed', 0):.0f}" for step in ("code", "measure"))
        print(f"shard {done.share}: {coded} clips coded, {measured} measured", file=sys.stderr)
        print("when all shards are done: the same command with --merge", file=sys.stderr)
    return 0


def _table(scores: Any, place: Any) -> str:
    from earmark.report.codecs.finished import open_runs
    from earmark.report.codecs.text import run_text

    runs = open_runs([place], scores)
    return run_text(
        scores, runs.cards, runs.protocol, runs.datasets, runs.failed, metrics=runs.metrics, standings=runs.standings
    )


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
