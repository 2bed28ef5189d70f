"""Does the geometry predict anything? Check it against listeners, classifiers and linear probes.

`earmark probe ACTION --help` explains an action, with examples.
"""

from __future__ import annotations

import argparse

from earmark.cli import options

EXAMPLES = """examples:
"""

_ACTIONS: dict[str, tuple[str, str]] = {}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_actions(parser, _ACTIONS)


def run(args: argparse.Namespace) -> int:
    return int(args.run(args) or 0)
