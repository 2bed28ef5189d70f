"""A script for SLURM: an array of shards, an array of measurements when they are done, and the merge at the end.

    bash earmark.slurm           on a login node: submits the three jobs, each waiting for the one before

The script is one file that submits itself; its `#SBATCH` lines are there to be edited. Without SLURM each part can be
run by hand: `SLURM_ARRAY_TASK_ID=3 bash earmark.slurm embed`.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from earmark.errors import UsageError
from earmark.places import is_remote
from earmark.runs.folder import make_folder
from earmark.runs.shards import SHARDS

DEFAULTS = {"time": "04:00:00", "mem": "8G", "cpus-per-task": "4"}
"""What a job asks for unless it is told otherwise."""
OWN = ("array", "dependency", "output", "job-name", "parsable")
KEPT = (
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "EARMARK_CACHE",
    "EARMARK_DEVICE",
    "EARMARK_LYRA",
    "EARMARK_PATIENCE",
    "EARMARK_RECORDINGS",
    "EARMARK_VOCSIM",
    "EARMARK_WEIGHTS",
)
"""Variables that a job must find as they are where the script is made: places and times, nothing that is secret."""


def sbatch_options(given: list[str]) -> dict[str, str]:
    """Options of sbatch from `partition=long` or `--partition=long`."""
    options = dict(DEFAULTS)
    for text in given:
        name, mark, value = text.strip().removeprefix("--").partition("=")
        if not mark or not re.fullmatch(r"[A-Za-z][\w-]*", name):
            raise UsageError(
                f"{text!r} is no option of sbatch: write partition=long, time=08:00:00, mem=16G, gres=gpu:1."
            )
        if '"' in value or "\\" in value:
            raise UsageError(f"{text!r} cannot stand in a line of sbatch: leave quotation marks and backslashes out.")
        if name in OWN:
            raise UsageError(f"{text!r}: the script says itself what {name} its jobs have; leave it out.")
        if name in ("mem-per-cpu", "mem-per-gpu"):
            options.pop("mem", None)  # sbatch takes one of them
        options[name] = value
    return options


def slurm_script(
    command: str,
    config: Path,
    run: Path,
    shards: int,
    options: Mapping[str, str],
    parts: Mapping[str, str],
    every: Sequence[str] = (),
    last: Sequence[str] = (),
) -> str:
    """The script. `command` is `run` or the like, `parts` the flags of its arrays by name: embed, evaluate; `every` are
    flags of all jobs that the config does not hold, `last` those of the merge."""
    if "\\" in str(run.absolute()):
        raise UsageError(f"sbatch can keep no log in {run}: choose a folder without a backslash with --into.")
    # SLURM writes logs into folders alone: a run that lies elsewhere has them beside the script's folder.
    logs = make_folder(Path.cwd() / "earmark-logs" if is_remote(run) else run / SHARDS).absolute()
    gpus = {name: options[name] for name in ("gres", "gpus", "gpus-per-task") if name in options}
    asked = "\n".join(_asked(name, value) for name, value in options.items() if name not in gpus)
    kept = [name for name in KEPT if name in os.environ]
    exported = "\n".join(f"export {name}={_word(os.environ[name])}" for name in kept)
    words = [sys.executable, "-m", "earmark", *command.split(), str(config.absolute())]
    names = list(parts)
    share = '--shard "${SLURM_ARRAY_TASK_ID:?is the number of a shard}/$shards"'
    cases = "\n".join(
        f'    {name}) "${{earmark[@]}}" {share} {flags} "${{common[@]}}" ;;' for name, flags in parts.items()
    )
    submitted, after = [], ""
    for place, name in enumerate(names):
        wait = f" --dependency=afterany:${after}" if after else ""
        extra = ' "${first[@]}"' if not place else ""
        submitted.append(f"        {name}=$(submit {name} %A-%a --array=1-$shards{wait}{extra})")
        after = name
    return f"""#!/bin/bash
{asked}
# Edit the lines above as your cluster asks for: --partition, --account, --qos, --time, --mem.
#
#   bash THIS-FILE     on a login node: submits {shards} jobs to {" and ".join(names)} each, then one that merges
#
# A job that fails costs its share: the merge says which, and computes what is missing.
# Results: {_word(run.absolute())}
set -eo pipefail

shards={shards}
first=({_words(f"--{name}={value}" for name, value in gpus.items())})   # what the first array alone asks for
earmark=({_words(words)})
common=(--jobs "${{SLURM_CPUS_PER_TASK:-1}}"{"".join(f" {_word(word)}" for word in every)})
merged=({_words(last)})   # what the merge alone is told
logs={_word(logs)}
script=$(realpath "${{BASH_SOURCE[0]}}")
{exported}
cd {_word(Path.cwd())}

submit() {{  # a part, the name of its log, options
    sbatch --parsable --job-name="earmark-$1" --output="${{logs//%/%%}}/$1-$2.log" "${{@:3}}" "$script" "$1"
}}

case "${{1:-submit}}" in
    submit)
{chr(10).join(submitted)}
        merge=$(submit merge %j --dependency=afterany:${after})
        echo "submitted: {", ".join(f"{name} ${name}" for name in names)}, merge $merge; see squeue, and logs in $logs"
        ;;
{cases}
    merge) "${{earmark[@]}}" --merge "${{common[@]}}" "${{merged[@]}}" ;;
    *) echo "use: bash $0 [submit|{"|".join(names)}|merge]" >&2; exit 2 ;;
esac
"""


def _words(values: Iterable[object]) -> str:
    """Values as words of bash."""
    return " ".join(map(_word, values))


def _word(value: object) -> str:
    """A value as one word of bash."""
    return shlex.quote(_line(str(value)))


def _line(text: str) -> str:
    """Text without line breaks: what follows one would be a line of the script, whatever it holds."""
    if any(unicodedata.category(mark) in ("Cc", "Cs") for mark in text):
        raise UsageError(
            f"{text!r} cannot stand in a script for SLURM: it holds a line break or another character that no line has."
        )
    return text


def _asked(name: str, value: str) -> str:
    """An option on a line of its own, as sbatch reads it."""
    return _line(f'#SBATCH --{name}="{value}"' if re.search(r"[^\w.:,=/+%@-]", value) else f"#SBATCH --{name}={value}")
