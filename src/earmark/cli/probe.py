"""Does the geometry predict anything? Check it against listeners, classifiers and linear probes.

`earmark probe ACTION --help` explains an action, with examples.
"""

from __future__ import annotations

import argparse

from earmark.cli import options

EXAMPLES = """examples:
  earmark probe linear vectors.npz clips.csv --fold-column fold
"""

_ACTIONS: dict[str, tuple[str, str]] = {
    "linear": ("earmark.cli.probe_linear", "a linear classifier, as the HEAR benchmark has it"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_actions(parser, _ACTIONS)


def run(args: argparse.Namespace) -> int:
    return int(args.run(args) or 0)
