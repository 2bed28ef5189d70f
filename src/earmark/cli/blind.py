"""Blind evaluation: models of strangers, measured by a host on recordings that nobody else may have.

For participants:
  earmark blind new       an example package to begin with
  earmark blind check     would my package be taken? the same sandbox and the same checks, on synthetic sounds
  earmark blind submit    send a package to a board
  earmark blind status    what became of it, and where it stands in the queue
  earmark blind withdraw  take a package back that has not been released

For hosts:
  earmark blind prepare   from a folder of recordings to sets with a policy
  earmark blind serve     a leaderboard that takes packages
  earmark blind work      take jobs beside the recordings, and send what the policy lets out
  earmark blind audit     what was released when and why, for the owners of the recordings
  earmark blind sign      the owners' word on a release
  earmark blind object    the owners take a release back

`earmark blind ACTION --help` explains an action, with examples.
"""

from __future__ import annotations

import argparse

from earmark.cli import options

EXAMPLES = """examples:
  earmark blind new my-package --kind onnx
  earmark blind check my-package
  earmark blind submit my-package --to https://board.example.org --board vocsim
  earmark blind work sets.yaml --to https://board.example.org --token-file worker.token
"""

_ACTIONS = {
    "new": ("earmark.cli.blind_new", "write an example package to begin with"),
    "check": ("earmark.cli.blind_check", "rehearse a package on this machine: what would be refused, and why"),
    "submit": ("earmark.cli.blind_submit", "send a package to a board"),
    "status": ("earmark.cli.blind_status", "what became of packages, and where they stand in the queue"),
    "withdraw": ("earmark.cli.blind_withdraw", "take a package back that has not been released"),
    "prepare": ("earmark.cli.blind_prepare", "check blind sets, fix the steps of their figures, write the policy"),
    "serve": ("earmark.cli.blind_serve", "host a leaderboard that takes packages for blind evaluation"),
    "work": ("earmark.cli.blind_work", "take jobs from a board and measure them beside the recordings"),
    "audit": ("earmark.cli.blind_audit", "read and verify what was released"),
    "sign": ("earmark.cli.blind_sign", "the owners of the recordings agree to a release"),
    "object": ("earmark.cli.blind_object", "the owners of the recordings take a release back"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_actions(parser, _ACTIONS)


def run(args: argparse.Namespace) -> int:
    return int(args.run(args) or 0)
