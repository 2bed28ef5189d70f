"""Flags of runs that go past one machine, and the script for SLURM: the same for every kind of run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from earmark.cli import flags, options
from earmark.corpora.subsets import open_corpora
from earmark.errors import UsageError
from earmark.places import locate
from earmark.runs.config import RunSettings
from earmark.runs.folder import make_folder, write_text
from earmark.runs.slurm import sbatch_options, slurm_script


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
    group.add_argument("--shards", type=int, default=10, metavar="M", help="shares of --slurm (default: 10)")
    group.add_argument(
        "--sbatch", type=options.names, default=[], metavar="LIST",
        help="what its jobs ask for: partition=long,time=08:00:00,mem=16G,cpus-per-task=4,gres=gpu:1",
    )  # fmt: skip


def check(args: argparse.Namespace) -> None:
    """Refuse flags that contradict each other."""
    if args.shard is not None and args.merge:
        raise UsageError("--shard does a share and --merge what follows: give one of them.")


def write_script(args: argparse.Namespace, config: RunSettings, command: str, arrays: Mapping[str, str]) -> int:
    """The script for SLURM, and the config with everything resolved that it runs. `arrays`: their flags by name."""
    if args.shards < 1:
        raise UsageError("--shards is a whole number of at least 1.")
    asked = sbatch_options(args.sbatch)
    open_corpora(config.corpus)  # a wrong name is better known now than in forty jobs
    folder = make_folder(config.into)
    path = folder / "config.yaml"
    write_text(path, config.model_copy(update={"into": str(folder.absolute())}).portable().to_yaml())
    text = slurm_script(command, path, folder, args.shards, asked, arrays)
    if args.slurm == "-":
        sys.stdout.write(text)
        return 0
    write_text(locate(args.slurm), text)
    if not args.quiet:
        print(f"wrote {args.slurm}; `bash {args.slurm}` on a login node submits it", file=sys.stderr)
    return 0
