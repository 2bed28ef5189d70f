"""The command line: one file per verb, loaded only when that verb is called."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from earmark._version import __version__
from earmark.errors import EarmarkError, did_you_mean, results_alone
from earmark.places import showing_transfers, without_keys

__all__ = ["main"]

# verb: (module with add_arguments(parser) and run(args), one line for the overview)
VERBS = {
    "demo": ("earmark.cli.demo", "run the embedded synthetic example end to end and write a report"),
    "run": ("earmark.cli.run", "sounds -> vectors -> scores -> report, resumable, from flags or a YAML file"),
    "corpus": ("earmark.cli.corpus", "list, describe, prepare and export collections of labelled clips"),
    "extractors": ("earmark.cli.extractors", "the models that turn sounds into vectors, with licence and size"),
    "embed": ("earmark.cli.embed", "sounds -> a file of vectors"),
    "check": ("earmark.cli.check", "does your own extractor keep its promises? a table to paste"),
    "cost": ("earmark.cli.cost", "what a model costs: parameters, multiplications, memory, time on this machine"),
    "evaluate": ("earmark.cli.evaluate", "vectors + labels -> every training-free metric, calibrated"),
    "compare": ("earmark.cli.compare", "systems on the same clips -> differences with intervals and p-values"),
    "calibrate": (
        "earmark.cli.calibrate",
        "can intervals and p-values be trusted? coverage, error rate and power by simulation",
    ),
    "hubness": ("earmark.cli.hubness", "how unevenly vectors appear in each other's neighbour lists"),
    "probe": (
        "earmark.cli.probe",
        "vectors against listeners, classifiers and linear probes; what geometry predicts of it",
    ),
    "fidelity": ("earmark.cli.fidelity", "real + generated vectors or sounds -> fidelity and coverage; sanity checks"),
    "codec": ("earmark.cli.codec", "what codecs keep of a sound, and at what rate: list, run, compare"),
    "codecs": ("earmark.cli.codecs", "the codecs, with rate, delay, licence and what they need"),
    "report": ("earmark.cli.report", "rebuild the tables, figures and HTML page of a run"),
    "map": ("earmark.cli.maps", "a map to listen through: click a clip, hear it, see its true neighbours"),
    "tables": ("earmark.cli.tables", "scores or a run -> tables for a paper, as text, Markdown, LaTeX or CSV"),
    "figures": ("earmark.cli.figures", "the papers' figures, from any score table, run or printed results"),
    "analyze": ("earmark.cli.analyze", "a table of scores -> which datasets are redundant, which to run first"),
    "predict": ("earmark.cli.predict", "scores on a few subsets -> what the others will probably say, with intervals"),
    "export": (
        "earmark.cli.export",
        "results for other places: Hugging Face, mteb, Every Eval Ever, Raven, Croissant, trackers",
    ),
    "cite": (
        "earmark.cli.cite",
        "BibTeX of Earmark and its papers; what a run rests on, with its methods",
    ),
    "cache": ("earmark.cli.cache", "finished steps of runs: how much they take up, prune, verify"),
    "submit": ("earmark.cli.submit", "scores -> a leaderboard: checked, shown, sent, with a permalink"),
    "serve": ("earmark.cli.serve", "host a leaderboard: pages, submissions, API; needs no setup"),
    "board": ("earmark.cli.board", "look after a leaderboard: users, decisions, printed results, backup, export"),
    "blind": ("earmark.cli.blind", "blind evaluation: strangers' models on recordings they may not have"),
    "published": ("earmark.cli.published", "the papers' tables and figures: list, show, recompute, judge"),
}

# A verb below another that has positional words of its own. A file called sanity is given as ./sanity.
BELOW = {"fidelity recipes": "earmark.cli.fidelity_recipes", "fidelity sanity": "earmark.cli.fidelity_sanity"}

SYNONYMS = (
    ("--jobs", "--threads"),
    ("--metrics", "--metric"),
    ("--html", "--report"),
    ("--distance", "--distances"),
    ("--extractor", "--extractors"),
    ("--pool", "--pooling"),
)
"""Spellings of one flag: help shows the first, and a command that takes one of them takes all."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; exit code 0 ok, 1 the work failed, 2 wrong usage. Results on stdout, the rest on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        if len(words) > 1 and words[1] in VERBS:
            words = [words[1], "--help"]
        else:
            print(_overview())
            return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"earmark {__version__}")
        return 0
    verb = " ".join(words[:2]) if " ".join(words[:2]) in BELOW else words[0]
    if words[0] not in VERBS:
        print(f"earmark: there is no command {words[0]!r}.{did_you_mean(words[0], VERBS)} "
              "`earmark --help` lists them.", file=sys.stderr)  # fmt: skip
        return 2
    results_alone()
    parser, run = parser_of(verb)
    try:
        args = parser.parse_args(words[len(verb.split()) :])
    except SystemExit as stop:
        return int(stop.code or 0)
    return _guarded(run, args)


def parser_of(verb: str) -> tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int]]:
    """What reads the words after a verb, and what does the work."""
    module: Any = import_module(BELOW.get(verb) or VERBS[verb][0])
    parser = argparse.ArgumentParser(
        prog=f"earmark {verb}",
        description=module.__doc__,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    _merge_spellings(parser)
    return parser, module.run


def _merge_spellings(parser: argparse.ArgumentParser) -> None:
    """Let every spelling of a flag work, and help show the first of them."""
    flags = parser._option_string_actions
    for spellings in SYNONYMS:
        owners = {id(flags[flag]): flags[flag] for flag in spellings if flag in flags}
        if len(owners) == 1:
            (action,) = owners.values()
            action.option_strings = [spellings[0]]
            flags |= dict.fromkeys(spellings, action)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _merge_spellings(below)


def _guarded(run: Any, args: argparse.Namespace) -> int:
    """Every foreseeable failure is one sentence and an exit code; a traceback means a defect."""
    try:
        for name, value in vars(args).items():
            if name not in ("database", "url"):  # of a board, which writes them nowhere
                setattr(args, name, without_keys(value))
        with showing_transfers(not getattr(args, "quiet", False)):
            return int(run(args) or 0)
    except EarmarkError as error:
        print(f"earmark: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): leave quietly, without a second error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        print(f"earmark: {file}{error.strerror or error}.", file=sys.stderr)
        return 1
    except MemoryError:
        print("earmark: out of memory; give a smaller --memory budget or fewer vectors.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("earmark: interrupted; a run continues where it stopped when it is given again.", file=sys.stderr)
        return 130


def _overview() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:{width}}  {line}" for verb, (_, line) in VERBS.items())
    return (
        "usage: earmark COMMAND ...\n\n"
        "Measure what frozen audio models hear, without training anything.\n\n"
        f"commands:\n{verbs}\n\n"
        "`earmark COMMAND --help` explains a command, with an example."
    )
