"""Does the geometry predict anything? Vectors against listeners, classifiers and linear probes.

  earmark probe perception   choices and triplets of listeners against vectors or distances
  earmark probe classify     can classifiers learn the label on folds that keep individuals apart?
  earmark probe linear       how much of the labels a linear classifier reads from vectors, as HEAR measures it
  earmark probe transfer     how well P@1, GSR and hubness predict what probes say, across systems

`earmark probe ACTION --help` explains an action, with examples. `earmark run --probe` has probes as a step of a run.
"""

from __future__ import annotations

import argparse

from earmark.cli import options

EXAMPLES = """examples:
  earmark probe perception triplets.csv --vectors wavlm.npz --where Margin_Type=high --ceiling 0.8,0.9
  earmark probe classify vectors.npz clips.csv --label-column strain --groups mouse
  earmark probe linear vectors.npz clips.csv --fold-column fold
  earmark probe transfer published:vocsim
"""

_ACTIONS = {
    "perception": ("earmark.cli.probe_perception", "judgements of listeners against vectors or distances"),
    "classify": ("earmark.cli.probe_classify", "accuracy of classifiers on folds that keep groups whole"),
    "linear": ("earmark.cli.probe_linear", "a linear classifier, as the HEAR benchmark has it"),
    "transfer": ("earmark.cli.probe_transfer", "how well geometry predicts what probes say, across systems"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_actions(parser, _ACTIONS)


def run(args: argparse.Namespace) -> int:
    return int(args.run(args) or 0)
