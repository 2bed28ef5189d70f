"""Run the pipeline: sounds -> vectors -> scores -> report, every finished step kept and found again.

CONFIG: a YAML file; flags take the place of what it says. Without a file, --corpus and --extractor are enough.
Results lie in the folder --into: scores.csv, report.html, clips.csv, failures.csv, config.yaml, run.json, run.log.
A killed run continues where it stopped when it is started again.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from dataclasses import asdict
from typing import Any

from earmark.cli import options
from earmark.errors import UsageError
from earmark.evaluation.options import INTERVALS
from earmark.metrics.catalogue import STANDARD
from earmark.pipeline.config import COPIES, EXECUTORS, POLICIES, STEPS, RunConfig, load_config, make_config
from earmark.pipeline.plan import plan_text
from earmark.pipeline.runs import Run, plan
from earmark.pipeline.runs import run as run_pipeline
from earmark.report.tables import to_text
from earmark.scores import Scores
from earmark.wording import counted

EXAMPLES = """examples:
  earmark run --corpus sounds/ --extractor logmel,mfcc --distance cosine,spearman --permutations --into run
  earmark run --corpus clips.csv --extractor mypackage.mymodule:MyModel --pool mean_time --pca none,100 --into run
  earmark run --corpus sounds/ --extractor logmel --distance cosine,euclidean --correct none,icdm --into run
  earmark run --suite lite --extractor mypackage.mymodule:MyModel --into lite
  earmark run --corpus sounds/ --extractor wavlm --layers all --into layers
  earmark run config.yaml --plan
  earmark run config.yaml --cache-dir s3://bucket/earmark --steps prepare,embed
"""

SHOWN = (*STANDARD, "NMI")
"""Metrics of the table on stdout, where they were measured; scores.csv holds them all."""


WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", nargs="?", help="YAML file")
    _add_content(parser)
    _add_measures(parser)
    _add_running(parser)
    options.add_output(parser)


def _add_content(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to measure")
    group.add_argument("--corpus", action="append", metavar="C", help="folder, manifest or name; may be repeated")
    group.add_argument("--subset", type=options.names, metavar="LIST", help="subsets of the corpus (default: all)")
    group.add_argument("--suite", choices=("full", "lite"), help="lite: VocSim's representative subsets alone")
    group.add_argument("--extractor", type=options.names, metavar="LIST", help="names or import paths")
    group.add_argument("--layers", metavar="LIST", help="hidden layers from one pass: all, or 0,6,12 (-1 is the last)")
    group.add_argument("--pool", type=options.names, metavar="LIST", help="poolings (default: the extractor's own)")
    group.add_argument("--pca", type=options.names, metavar="LIST", help="none, 30, 100 ... (default: none)")
    group.add_argument("--distance", type=options.names, metavar="LIST", help="cosine, euclidean, spearman")
    group.add_argument("--correct", metavar="LIST", help=f"{options.CORRECT} (default: none)")


def _add_measures(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("metrics and calibration")
    group.add_argument("--metrics", type=options.names, metavar="LIST", help="or `all` (default: all but clustering)")
    group.add_argument("--k", type=options.whole_numbers, metavar="LIST", help="k of P@k (default: 1,5)")
    group.add_argument("--ties", choices=("average", "ordinal"), help="ranks of equal values under spearman")
    group.add_argument(
        "--permutations", type=int, nargs="?", const=1000, metavar="N", help="label shuffles, as groups allow (1000)"
    )
    group.add_argument(
        "--intervals", choices=INTERVALS,
        help="jackknife: leave out each clip, or group, as query and as candidate (default); bootstrap: draw queries "
        "and hold the candidates fixed, which is too narrow; none",
    )  # fmt: skip
    group.add_argument(
        "--bootstrap", type=int, nargs="?", const=300, metavar="N",
        help="the same as --intervals bootstrap, with N resamples (300)",
    )  # fmt: skip
    group.add_argument(
        "--across-groups", "--groups", action="store_true", default=None,
        help="also leave out all pairs of one group (speaker, bird, recording), as protocol across_groups; the report "
        "then answers for it",
    )  # fmt: skip
    group.add_argument("--min-class-size", type=int, metavar="N", help="drop classes with fewer clips (default: 2)")
    group.add_argument(
        "--copies", choices=COPIES,
        help="clips that are one sound: drop all but the first, and all of them where their labels differ (default); "
        "keep them; or refuse to run",
    )  # fmt: skip
    group.add_argument("--label-noise", type=options.names, metavar="LIST", help="ablation: shares of labels to flip")
    group.add_argument("--dtw", action="store_true", default=None, help="ablation: re-rank neighbours frame by frame")
    group.add_argument("--seed", type=int, help="seed of shuffles, resamples and flips (default: 0)")


def _add_running(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running")
    group.add_argument("--into", metavar="RUN", help="folder for the results (default: run)")
    group.add_argument("--steps", type=options.names, metavar="LIST", help=f"of {','.join(STEPS)} (default: all)")
    group.add_argument("--plan", action="store_true", help="say what would run, what is cached and how long it takes")
    group.add_argument("--cache", choices=POLICIES, help="finished steps: use, redo or keep none (default: use)")
    group.add_argument("--cache-dir", metavar="URL", help="their place (default: EARMARK_CACHE or ~/.cache/earmark)")
    group.add_argument("--executor", choices=EXECUTORS, help="where steps run (this version: local)")
    group.add_argument("--workers", type=int, metavar="N", help="threads that decode (default: every core)")
    group.add_argument("--threads", type=int, metavar="N", help="threads that compare (default: every core)")
    group.add_argument("--batch", type=int, metavar="N", help="clips given to an extractor at once (default: 16)")
    group.add_argument("--memory", metavar="SIZE", help="budget for tiles and batches (default: 2GB)")


def config_of(args: argparse.Namespace) -> RunConfig:
    """The one config object, from the file and the flags."""
    flags = {
        "suite": args.suite,
        "extractors": args.extractor, "pooling": args.pool, "pca": args.pca, "distances": args.distance,
        "correct": args.correct, "layers": args.layers,
        "metrics": args.metrics, "k": args.k, "ties": args.ties, "permutations": args.permutations,
        "intervals": args.intervals, "bootstrap": args.bootstrap, "across_groups": args.across_groups,
        "min_class_size": args.min_class_size,
        "copies": args.copies,
        "label_noise": args.label_noise, "dtw": args.dtw, "seed": args.seed, "into": args.into, "steps": args.steps,
        "executor": args.executor, "workers": args.workers, "threads": args.threads, "batch": args.batch,
        "memory": args.memory,
    }  # fmt: skip
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    if args.suite == "lite" and not args.corpus and not args.config:
        given["corpus"] = "vocsim"
    if args.corpus:
        given["corpus"] = [{"spec": spec, "subsets": args.subset or []} for spec in args.corpus]
    config = load_config(args.config, given) if args.config else _from_flags(given)
    if not args.corpus and args.subset:
        entries = [entry.model_copy(update={"subsets": args.subset}) for entry in config.corpus]
        config = config.model_copy(update={"corpus": entries})
    if args.cache or args.cache_dir:
        changed = {"policy": args.cache, "url": args.cache_dir}
        cache = config.cache.model_copy(update={name: value for name, value in changed.items() if value})
        config = config.model_copy(update={"cache": cache})
    return config


def _from_flags(given: dict[str, Any]) -> RunConfig:
    if given.get("steps") == ["report"]:
        given = {"corpus": "-", "extractors": "-", **given}  # a report needs neither
    for name, flag in (("corpus", "--corpus"), ("extractors", "--extractor")):
        if name not in given:
            raise UsageError(f"Nothing says what to measure: give a config file, or {flag} (see `earmark run --help`).")
    return make_config(given, "The command line")


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    config = config_of(args)
    if args.plan:
        lines, url = plan(config, progress=not args.quiet)
        text = plan_text(lines, url)
        sys.stdout.write((json.dumps([asdict(line) for line in lines], indent=1) if args.json else text) + "\n")
        return 0
    result = run_pipeline(config, progress=not args.quiet)
    if result.scores.rows:
        options.deliver(args, result.scores, _table)
    for line in result.lost:  # also with --quiet: it is why the command fails
        print(f"earmark: {line}", file=sys.stderr)
    if not args.quiet:
        for line in remarks(result):
            print(line, file=sys.stderr)
        if config.suite == "lite":
            print(f"`earmark predict {result.folder / 'scores.csv'}` predicts the other subsets", file=sys.stderr)
    measured = not result.scores.rows or any(row.status == "ok" for row in result.scores.rows)
    return 0 if measured and not result.lost else 1


def _table(scores: Scores) -> str:
    present = {row.metric for row in scores.rows}
    shown = [metric for metric in SHOWN if metric in present]
    return to_text(scores, metrics=shown or None)


def answer(result: Run) -> list[str]:
    """What the scores say, as lines for a terminal."""
    return textwrap.wrap(" ".join(result.answer), WIDTH, break_long_words=False, break_on_hyphens=False)


def remarks(result: Run) -> list[str]:
    """What a person should know after a run, beside the table."""
    lines = [*answer(result), *(f"note: {note}" for note in result.notes)]
    for step in ("embed", "pca", "evaluate"):
        if step in result.counts:
            computed, cached = (result.counts[step].get(name, 0) for name in ("computed", "cached"))
            lines.append(f"{step}: {computed:.0f} computed, {cached:.0f} from the cache")
    failed = {(failure.suite, failure.subset, failure.id) for failure in result.failures}
    if failed:
        lines.append(f"{counted(len(failed), 'clip')} failed; {result.folder / 'failures.csv'} says why")
    lines.append(f"results in {result.folder}" + (f"; open {result.report}" if result.report else ""))
    return lines
