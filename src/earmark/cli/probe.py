"""Does the geometry predict anything? Check it against listeners, classifiers and linear probes.

  earmark probe perception   choices and triplets of listeners against vectors or distances

`earmark probe ACTION --help` explains an action, with examples.
"""

from __future__ import annotations

import argparse

from earmark.cli import options

EXAMPLES = """examples:
  earmark probe perception triplets.csv --vectors wavlm.npz --where Margin_Type=high --ceiling 0.8,0.9
"""

_ACTIONS: dict[str, tuple[str, str]] = {
    "perception": ("earmark.cli.probe_perception", "judgements of listeners against vectors or distances"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_actions(parser, _ACTIONS)


def run(args: argparse.Namespace) -> int:
    return int(args.run(args) or 0)
