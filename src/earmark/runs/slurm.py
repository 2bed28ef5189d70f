"""A script for SLURM: an array of shards, an array of measurements when they are done, and the merge at the end.

    bash earmark.slurm           on a login node: submits the three jobs, each waiting for the one before

The script is one file that submits itself; its `#SBATCH` lines are there to be edited. Without SLURM each part can be
run by hand: `SLURM_ARRAY_TASK_ID=3 bash earmark.slurm embed`.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from earmark.errors import UsageError
from earmark.runs.folder import make_folder
from earmark.runs.shards import SHARDS

DEFAULTS = {"time": "04:00:00", "mem": "8G", "cpus-per-task": "4"}
"""What a job asks for unless it is told otherwise."""
_KEPT = ("PYTHONPATH", "VIRTUAL_ENV", "XDG_CACHE_HOME", "HF_HOME", "LD_LIBRARY_PATH")
"""Variables beside EARMARK_* that a job must find as they are where the script is made."""


def sbatch_options(given: list[str]) -> dict[str, str]:
    """Options of sbatch from `partition=long` or `--partition=long`."""
    options = dict(DEFAULTS)
    for text in given:
        name, mark, value = text.strip().removeprefix("--").partition("=")
        if not mark or not name or "\n" in text:
            raise UsageError(
                f"{text!r} is no option of sbatch: write partition=long, time=08:00:00, mem=16G, gres=gpu:1."
            )
        options[name] = value
    return options


def slurm_script(
    command: str,
    config: Path,
    run: Path,
    shards: int,
    options: Mapping[str, str],
    parts: Mapping[str, str],
) -> str:
    """The script. `command` is `run` or the like, `parts` the flags of its two arrays by name: embed, evaluate."""
    logs = make_folder(run / SHARDS).absolute()
    gpus = {name: options[name] for name in ("gres", "gpus", "gpus-per-task") if name in options}
    asked = "\n".join(f"#SBATCH --{name}={value}" for name, value in options.items() if name not in gpus)
    first = " ".join(shlex.quote(f"--{name}={value}") for name, value in gpus.items())
    kept = sorted(name for name in os.environ if name in _KEPT or name.startswith("EARMARK_"))
    exported = "\n".join(f"export {name}={shlex.quote(os.environ[name])}" for name in kept)
    earmark = f"{shlex.quote(sys.executable)} -m earmark {command} {shlex.quote(str(config.absolute()))}"
    threads = "--jobs ${SLURM_CPUS_PER_TASK:-1}"
    names = list(parts)
    cases = "\n".join(
        f'    {name}) $earmark --shard "$SLURM_ARRAY_TASK_ID/$shards" {flags} $common ;;'
        for name, flags in parts.items()
    )
    submitted, after = [], ""
    for place, name in enumerate(names):
        wait = f" --dependency=afterany:${after}" if after else ""
        extra = " $first" if not place else ""
        submitted.append(f"        {name}=$(submit {name} %A-%a --array=1-$shards{wait}{extra})")
        after = name
    return f"""#!/bin/bash
{asked}
# Edit the lines above as your cluster asks for: --partition, --account, --qos, --time, --mem.
#
#   bash THIS-FILE     on a login node: submits {shards} jobs to {" and ".join(names)} each, then one that merges
#
# A job that fails costs its share: the merge says which, and computes what is missing.
# Results: {run.absolute()}
set -euo pipefail

shards={shards}
first="{first}"   # what only the first array asks for, such as --gres=gpu:1
earmark={shlex.quote(earmark)}
common="{threads}"
logs={shlex.quote(str(logs))}
script=$(realpath "${{BASH_SOURCE[0]}}")
{exported}
cd {shlex.quote(str(Path.cwd()))}

submit() {{  # a part, the name of its log, options
    sbatch --parsable --job-name="earmark-$1" --output="$logs/$1-$2.log" "${{@:3}}" "$script" "$1"
}}

case "${{1:-submit}}" in
    submit)
{chr(10).join(submitted)}
        merge=$(submit merge %j --dependency=afterany:${after})
        echo "submitted: {", ".join(f"{name} ${name}" for name in names)}, merge $merge; see squeue, and logs in $logs"
        ;;
{cases}
    merge) $earmark --merge $common ;;
    *) echo "use: bash $0 [submit|{"|".join(names)}|merge]" >&2; exit 2 ;;
esac
"""
