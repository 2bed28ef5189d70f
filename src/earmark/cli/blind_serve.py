"""Host a leaderboard that takes packages for blind evaluation: `earmark serve` with a queue.

The board never opens a model and needs no recordings. Packages lie in a folder beside its database until their job has
ended. The recordings stay where the worker is (`earmark blind work`), on this machine or on another, which needs a
token of its own: `earmark board user NAME --worker`. Subsets become blind on a board when a worker announces them.
"""

from __future__ import annotations

import argparse

from earmark.cli import serve

EXAMPLES = """examples:
  earmark blind serve --data board --port 8080
  earmark blind serve --data board --registration open --url https://board.example.org --package-limit 4GB
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    serve.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    args.blind = True
    return serve.run(args)
