"""Does the geometry predict anything? Check it against listeners, classifiers and linear probes.

`earmark probe ACTION --help` explains an action, with examples.
"""

from __future__ import annotations

import argparse

from earmark.cli import options

EXAMPLES = """examples:
  earmark probe classify vectors.npz clips.csv --label-column strain --groups mouse
"""

_ACTIONS: dict[str, tuple[str, str]] = {
    "classify": ("earmark.cli.probe_classify", "accuracy of classifiers on folds that keep groups whole"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_actions(parser, _ACTIONS)


def run(args: argparse.Namespace) -> int:
    return int(args.run(args) or 0)
