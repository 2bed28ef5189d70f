"""Run the embedded example end to end: synthetic sounds -> vectors -> calibrated scores -> a report to open.

Nothing is downloaded. The sounds are synthetic (bird-like syllables and calls, environmental events, speech-like
phones, words and utterances); they show how Earmark works, not how good a model is. Log-mel spectrograms and MFCCs are
joined by a network with real weights, Google's speech embedding, where earmark[speech] is installed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from earmark.cli.run import answer
from earmark.extractors.catalogue import CARDS, is_ready
from earmark.metrics.catalogue import STANDARD
from earmark.report import by_subset
from earmark.representations import run as run_representations
from earmark.representations.config import RunConfig

EXAMPLES = """examples:
  earmark demo
  earmark demo --size tiny --into /tmp/demo
"""

PRETRAINED = ("speech_embedding",)
"""Encoders with real weights that need no torch and are fast enough for a demo."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", default="earmark-demo", metavar="DIR", help="folder (default: earmark-demo)")
    parser.add_argument("--size", default="small", metavar="SIZE", help="tiny, small, medium or clips per subset")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")


def demo_config(size: str, into: str) -> dict[str, Any]:
    """What the demo measures, as any user would write it."""
    return {
        "corpus": f"synth:{size}",
        "extractors": [
            {"name": "logmel", "pooling": ["mean_time", "mean_time+max_time"]},
            {"name": "mfcc"},
            *({"name": name} for name in PRETRAINED if is_ready(CARDS[name])),
        ],
        "distances": ["cosine", "euclidean", "spearman"],
        "metrics": ["P@k", *(name for name in STANDARD if "@" not in name), "hub_ratio", "antihub_rate"],
        "across_groups": True,
        "permutations": 1000,
        "into": into,
        "cache": {"url": str(Path(into) / "cache")},
    }


def run(args: argparse.Namespace) -> int:
    result = run_representations(RunConfig.make(demo_config(args.size, args.into)), progress=not args.quiet)
    sys.stdout.write(by_subset(result.scores, "P@1"))
    print("", *answer(result), sep="\n")
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    report = result.report or result.folder
    print(f"""
In brackets: points above chance (1000 shuffles of the labels). These sounds are synthetic. `all` lets a clip find
neighbours of its own recording or speaker; `across_groups` does not.

Scores:  {result.folder / "scores.csv"}
Report:  {report}   <- open it in a browser
Try next, with a folder of folders of your own sounds:
  {_command()} run --corpus path/to/sounds --extractor logmel,mfcc --permutations --into my-run""")
    return 0


def _command() -> str:
    """How this program is called from here: by its name, or by its path when that is not on PATH."""
    if shutil.which("earmark"):
        return "earmark"
    program, here = Path(sys.argv[0]).absolute(), Path.cwd()
    return str(program.relative_to(here) if program.is_relative_to(here) else program)
