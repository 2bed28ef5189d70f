"""Run the pipeline: sounds -> vectors -> scores -> report, every finished step kept and found again.

CONFIG: a YAML file; flags take the place of what it says. Without a file, --corpus and --extractor are enough.
Results lie in the folder --into: scores.csv, report.html, clips.csv, failures.csv, config.yaml, run.json, run.log.
A killed run continues where it stopped when it is started again.

Past one machine: --scheduler gives the steps to the workers of a Dask cluster; --shard 3/40 does the third of forty
shares, at any time and in any order, and --merge the rest; --slurm prints a script that submits all of that to SLURM.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from earmark.cli import flags, options, spreading
from earmark.cli.columns import add_columns
from earmark.cli.tracked import add_track, tell, track_run
from earmark.errors import UsageError
from earmark.places import locate
from earmark.report import to_text
from earmark.report.points import point_columns
from earmark.report.probes import probe_table
from earmark.representations import load_points, load_vectors
from earmark.representations.config import RunConfig
from earmark.representations.runner import Run, plan
from earmark.representations.runner import run as run_representations
from earmark.representations.shards import run_shard
from earmark.runs import read_record
from earmark.runs.config import CorpusEntry, refuse_unshared
from earmark.scores import Scores
from earmark.tables import write_columns
from earmark.wording import counted, first_of

EXAMPLES = """examples:
  earmark run --corpus sounds/ --extractor logmel,mfcc --distance cosine,spearman --permutations --into run
  earmark run --corpus clips.csv --extractor mypackage.mymodule:MyModel --pool mean_time --pca none,100 --into run
  earmark run --corpus sounds/ --extractor logmel --distance cosine,euclidean --correct none,icdm --into run
  earmark run --suite lite --extractor mypackage.mymodule:MyModel --into lite
  earmark run --corpus sounds/ --extractor wavlm --layers all --into layers
  earmark run --corpus sounds/ --extractor wavlm --sample 50x5 --distance spearman --dtw all --into order
  earmark run --corpus clips.csv --extractor logmel,mfcc --probe "linear,classify?classifiers=knn" --into run
  earmark run config.yaml --track mlflow:my-project
  earmark run config.yaml --plan
  earmark run config.yaml --cache-dir s3://bucket/earmark --steps prepare,embed
  earmark run config.yaml --scheduler tcp://10.0.0.5:8786
  earmark run config.yaml --shard 3/40
  earmark run config.yaml --merge
  earmark run config.yaml --slurm earmark.slurm --shards 40 --sbatch partition=long,time=08:00:00
"""

WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", nargs="?", help="YAML file")
    group = parser.add_argument_group("what to measure")
    flags.add_flags(group, RunConfig, ("suite", "corpus"))
    flags.add_flags(group, CorpusEntry, ("subset",))
    add_columns(group)
    flags.add_flags(group, flags.VectorFiles, ("system",))
    flags.add_flags(group, RunConfig, ("sample", "speed", "extractor", "layers", "pool", "pca", "distance", "correct"))
    group = parser.add_argument_group("metrics and calibration")
    flags.add_flags(
        group, RunConfig,
        ("metrics", "k", "hub_k", "ties", "queries", "permutations", "shuffle", "intervals", "bootstrap",
         "across_groups", "min_class_size", "label_separator", "background", "copies",
         "label_noise", "dtw", "probe", "seed"),
    )  # fmt: skip
    column = CorpusEntry.model_fields["groups"].description
    group.add_argument("--groups", nargs="?", const=True, metavar="COLUMN", help=column)
    group = parser.add_argument_group("running")
    flags.add_flags(group, RunConfig, ("into", "steps"))
    group.add_argument("--plan", action="store_true", help="say what would run, what is cached and how long it takes")
    flags.add_cache(group)
    flags.add_flags(group, RunConfig, ("jobs", "batch", "memory", "device"))
    options.add(group, ("--per-point", "FILE", "write every clip's own values and nearest neighbour: .csv or .parquet"))
    spreading.add_executors(parser, RunConfig)
    hidden = dict.fromkeys(("workers", "threads"), argparse.SUPPRESS)
    flags.add_flags(group, RunConfig, hidden, hidden)
    options.add_output(parser)
    add_track(parser)


def config_of(args: argparse.Namespace) -> RunConfig:
    """The config that the file and the flags describe; a report alone needs neither sounds nor models."""
    if args.steps == ["report"] and not args.config:
        args.corpus, args.extractor = args.corpus or ["-"], args.extractor or ["-"]
    # In version 0.1.0 --groups and --dtw were switches: without a value, or before the config file, they still are.
    if args.groups is True or (not args.config and str(args.groups).endswith((".yaml", ".yml"))):
        args.config = args.config or (None if args.groups is True else args.groups)
        args.groups, args.across_groups = None, True
    if not args.config and str(args.dtw).endswith((".yaml", ".yml")):
        args.config, args.dtw = args.dtw, True
    config = flags.config_of(args, RunConfig, "run")
    if args.system is None:
        return config
    if len(config.extractors) > 1:
        raise UsageError(f"--system {args.system!r} names one model, and there are {len(config.extractors)}.")
    return config.model_copy(update={"extractors": [config.extractors[0].model_copy(update={"name": args.system})]})


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    config = config_of(args)
    if args.plan:
        lines, url = plan(config, progress=not args.quiet)
        return spreading.print_plan(args, lines, url)
    spreading.check(args)
    tracking_run = track_run(args, config)
    if args.slurm is not None:
        refuse_unshared(config.executor, config.cache, merge=True)
        arrays = {"embed": "--steps prepare,embed", "evaluate": "--steps prepare,evaluate,probe"}
        return spreading.write_script(args, config, "run", arrays)
    if args.shard is not None:
        return _run_share(args, config)
    with tracking_run as tracking:
        result = run_representations(config, progress=not args.quiet, merge=args.merge)
        if tracking is not None:
            tracking.log(result.scores)
    if result.scores.rows:
        options.deliver(args, result.scores, _table, chosen=bool(config.metrics), kept="scores.csv has them")
    for line in result.lost:  # also with --quiet: it is why the command fails
        print(f"earmark: {line}", file=sys.stderr)
    if not args.quiet:
        for line in remarks(result):
            print(line, file=sys.stderr)
        if config.suite == "lite":
            print(f"`earmark predict {result.folder / 'scores.csv'}` predicts the other subsets", file=sys.stderr)
    tell(args, tracking)
    written = options.write_files(args, {"per_point": lambda path: write_run_points(result.folder, path)})
    measured = not result.scores.rows or any(row.status == "ok" for row in result.scores.rows)
    return 0 if measured and written and not result.lost else 1


def _run_share(args: argparse.Namespace, config: RunConfig) -> int:
    done = run_shard(config, args.shard, progress=not args.quiet)
    counts = {step: done.counts.get(step, {}) for step in ("embed", "evaluate")}
    if args.json:
        print(json.dumps({"shard": str(done.share), "counts": counts, "left": done.left}))
    elif not args.quiet:
        heard, measured = (f"{counts[step].get('computed', 0):.0f}" for step in counts)
        print(f"shard {done.share}: {heard} clips embedded, {measured} measurements made", file=sys.stderr)
        if done.left:
            print(f"{counted(done.left, 'system')} waits for vectors of other shards", file=sys.stderr)
        print("when all shards are done: the same command with --merge", file=sys.stderr)
    return 0


def _table(scores: Scores) -> str:
    measured = Scores(tuple(row for row in scores if not row.probed))
    probed = [row for row in scores if row.probed and not row.statistic]
    parts = []
    if measured.rows:
        parts.append(to_text(measured))
    if probed:
        measured_probes = {(row.system, row.protocol) for row in probed if row.status == "ok"}
        lost: dict[str, list[str]] = {}
        for row in probed:
            if row.status != "ok" and (row.system, row.protocol) not in measured_probes:
                lost.setdefault(f"{row.protocol}: {row.reason}", []).append(row.system)
        parts.append(probe_table(probed).to_text())
        parts += [f"not measured, {what} ({first_of(systems, 3)})" for what, systems in lost.items()]
    return "\n".join(parts)


def answer(result: Run) -> list[str]:
    """What the scores say, as lines for a terminal."""
    return textwrap.wrap(" ".join(result.answer), WIDTH, break_long_words=False, break_on_hyphens=False)


def remarks(result: Run) -> list[str]:
    """What a person should know after a run, beside the table."""
    lines = [*answer(result), *(f"note: {note}" for note in result.notes)]
    for step in ("embed", "pca", "evaluate", "probe"):
        if step in result.counts:
            computed, cached = (result.counts[step].get(name, 0) for name in ("computed", "cached"))
            lines.append(f"{step}: {computed:.0f} computed, {cached:.0f} from the cache")
    failed = {(failure.suite, failure.subset, failure.id) for failure in result.failures}
    if failed:
        lines.append(f"{counted(len(failed), 'clip')} failed; {result.folder / 'failures.csv'} says why")
    lines.append(f"results in {result.folder}" + (f"; open {result.report}" if result.report else ""))
    return lines


def write_run_points(folder: Path, path: str) -> None:
    """Every clip's own values under every system, as `earmark evaluate --per-point` writes them for one."""
    record = read_record(folder)
    tables: list[dict[str, list[Any]]] = []
    for entry in record["vectors"]:
        key = {name: entry[name] for name in ("suite", "subset", "system")}
        clips = load_vectors(folder, entry["subset"], entry["system"], entry["suite"])
        points = {
            (job["distance"], job.get("correction", "none"), protocol, metric): values
            for job in record["evaluations"]
            if {name: job[name] for name in key} == key
            for (protocol, metric), values in load_points(
                folder, entry["subset"], entry["system"], job["distance"], entry["suite"], job.get("correction", "none")
            ).items()
        }
        if points:
            columns = point_columns(Scores(per_point=points, point_ids=tuple(clips.ids)), clips.labels, clips.groups)
            tables.append({name: [value] * len(clips.ids) for name, value in key.items()} | columns)
    titles = dict.fromkeys(title for table in tables for title in table)
    rows = [(table, len(table["suite"])) for table in tables]
    columns = {title: [cell for table, n in rows for cell in table.get(title, [None] * n)] for title in titles}
    write_columns(locate(path), columns, "per-point values")
