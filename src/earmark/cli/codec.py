"""Codecs: list those that run here, measure what they keep and at what rate, compare families.

  earmark codec list      every setting with its card, and whether it can run here
  earmark codec run       clips through codecs -> scores, report, submission file; resumable
  earmark codec compare   finished runs -> rate against quality, BD-rate, the front, differences

`earmark codec ACTION --help` explains an action, with examples.
"""

from __future__ import annotations

import argparse

from earmark.cli import options

EXAMPLES = """examples:
  earmark codec list
  earmark codec run --codecs pcm,opus,mp3@32,codec2@1.2 --corpus sounds/ --category speech --into run
  earmark codec run --codecs mypackage.mymodule:MyCodec,opus@12 --corpus clips.csv --category music --into run
  earmark codec compare run --metrics overall,pesq --anchor opus
"""

_ACTIONS = {
    "list": ("earmark.cli.codecs", "every setting with its card, and whether it can run here"),
    "run": ("earmark.cli.codec_run", "clips through codecs -> scores, report and submission file"),
    "compare": ("earmark.cli.codec_compare", "rate against quality, BD-rate, the front, paired differences"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_actions(parser, _ACTIONS)


def run(args: argparse.Namespace) -> int:
    return int(args.run(args) or 0)
