"""Flags of runs that go past one machine, the script for SLURM, and the plan: the same for every kind of run."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from earmark.cli import flags, options
from earmark.corpora.subsets import open_corpora
from earmark.errors import UsageError
from earmark.places import locate
from earmark.runs.config import RunSettings
from earmark.runs.folder import make_folder, write_text
from earmark.runs.identity import fingerprint
from earmark.runs.plan import PlannedStep, plan_text
from earmark.runs.shards import SHARDS
from earmark.runs.slurm import sbatch_options, slurm_script

SHARES = 10
"""Shares of a script for SLURM unless it is told otherwise."""


def add_executors(parser: argparse.ArgumentParser, model: type[RunSettings]) -> None:
    """Flags that say who does the steps of a run."""
    group = parser.add_argument_group("past one machine")
    flags.add_flags(group, model, ("executor", "scheduler"))
    options.add(
        group,
        ("--shard", "N/M", "do share N of M and keep it in the cache; any order, any time, any machine that sees it"),
    )
    group.add_argument("--merge", action="store_true", help="results from what shards did; says which are missing")
    group.add_argument(
        "--slurm",
        nargs="?",
        const="-",
        metavar="FILE",
        help="print a script for SLURM, or write it: bash FILE submits it",
    )
    group.add_argument("--shards", type=int, metavar="M", help="shares of --slurm (default: 10)")
    group.add_argument(
        "--sbatch", type=options.names, default=[], metavar="LIST",
        help="what its jobs ask for: partition=long,time=08:00:00,mem=16G,cpus-per-task=4,gres=gpu:1",
    )  # fmt: skip


def print_plan(args: argparse.Namespace, steps: Sequence[PlannedStep], url: str) -> int:
    """What a run would do."""
    print(json.dumps([asdict(step) for step in steps], indent=1) if args.json else plan_text(steps, url))
    return 0


def check(args: argparse.Namespace) -> None:
    """Refuse flags that contradict each other."""
    if args.shard is not None and args.merge:
        raise UsageError("--shard does a share and --merge what follows: give one of them.")
    if args.slurm is not None and (args.shard is not None or args.merge):
        raise UsageError("--slurm writes a script that does all shares and merges them: leave --shard and --merge out.")
    if args.slurm is None and (args.shards is not None or args.sbatch):
        raise UsageError(
            "--shards and --sbatch say what --slurm writes: give --slurm too, or --shard 1/10 for a share."
        )
    if args.shard is not None and getattr(args, "scheduler", None):
        raise UsageError("--shard does its share in this process: leave --scheduler out.")


def write_script(
    args: argparse.Namespace, config: RunSettings, command: str, arrays: Mapping[str, str], every: Sequence[str] = ()
) -> int:
    """The script for SLURM, and the config with everything resolved that it runs. `arrays`: their flags by name.

    What is asked for beside the config is told the merge: where its results are to go. `every`: what all jobs are told.
    """
    shards = SHARES if args.shards is None else args.shards
    if shards < 1:
        raise UsageError("--shards is a whole number of at least 1.")
    if getattr(config, "executor", "") == "dask":
        raise UsageError("--slurm gives the steps to jobs of SLURM and not to Dask: leave --scheduler and dask out.")
    asked = sbatch_options(args.sbatch)
    open_corpora(config.corpus)  # a wrong name is better known now than in forty jobs
    folder = make_folder(config.into)
    text = config.model_copy(update={"into": str(folder.absolute())}).portable().to_yaml()
    path = make_folder(folder / SHARDS) / f"config-{fingerprint(text)[:8]}.yaml"  # another script has another
    write_text(path, text)
    files = {"--out": args.out, "--per-point": getattr(args, "per_point", None)}
    last = [f"{flag}={file}" for flag, file in files.items() if file] + ["--json"] * args.json
    text = slurm_script(command, path, folder, shards, asked, arrays, every, last)
    if args.slurm == "-":
        sys.stdout.write(text)
        return 0
    write_text(locate(args.slurm), text)
    if not args.quiet:
        print(f"wrote {args.slurm}; `bash {shlex.quote(args.slurm)}` on a login node submits it", file=sys.stderr)
    return 0
