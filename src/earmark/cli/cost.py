"""Measure what extractors cost: parameters, multiplications, peak memory and time, on this machine.

Clips of noise go through each model. A model with a fixed context (Whisper: 30 s) does the same work for a short
clip, so give the length of your own clips with --seconds. Memory is the growth of a fresh process (CPU) or what
torch allocated (GPU).
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from earmark.cli.options import names
from earmark.errors import EarmarkError, InputError
from earmark.tables import aligned

EXAMPLES = """examples:
  earmark cost logmel,mfcc
  earmark cost whisper:openai/whisper-large-v3 --device cuda --dtype bfloat16 --seconds 5 --batch 16
  earmark cost mypackage.mymodule:MyModel --json
"""

_HEADINGS = ("extractor", "device", "parameters", "GMACs / s", "peak memory", "real-time factor", "times real time")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("extractors", type=names, metavar="EXTRACTOR[,EXTRACTOR...]", help="names or import paths")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a clip (default: 1, as in the papers)")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="clips at once (default: 1)")
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="timed runs, of which the middle counts (default: 5)"
    )
    parser.add_argument(
        "--device", default="auto", metavar="NAME",
        help="where models run that take one: auto (a GPU if there is one), cpu, cuda, cuda:1, mps",
    )  # fmt: skip
    parser.add_argument("--dtype", help="float32, bfloat16 or float16, for models that take one")
    parser.add_argument("--json", action="store_true", help="print the figures on stdout as a JSON array")
    parser.add_argument("--quiet", action="store_true", help="no remarks")


def run(args: argparse.Namespace) -> int:
    parameters = {} if args.dtype is None else {"dtype": args.dtype}
    costs, failed = [], False
    for spec in args.extractors:
        try:
            costs.append(_in_a_fresh_process(spec, parameters, args))
        except EarmarkError as error:
            if len(args.extractors) == 1:
                raise
            failed = True
            print(f"earmark: {spec}: {error}", file=sys.stderr)
    if args.json:
        sys.stdout.write(json.dumps(costs, indent=1) + "\n")
    elif costs:
        print(*aligned([_HEADINGS, *map(_line, costs)]), sep="\n")
    if not args.quiet:
        for cost in costs:
            for note in cost["notes"]:
                print(f"{cost['name']}: {note}", file=sys.stderr)
    return int(failed)


def _in_a_fresh_process(spec: str, parameters: dict[str, str], args: argparse.Namespace) -> dict[str, Any]:
    """One model, one process: memory and warm libraries of the model before must not count."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        work = pool.submit(_measure, spec, parameters, args.device, args.seconds, args.batch, args.repeats)
        try:
            return work.result()
        except BrokenProcessPool:
            raise InputError(f"{spec} ended its process, probably for lack of memory: try a smaller --batch.") from None


def _measure(
    spec: str, parameters: dict[str, str], device: str, seconds: float, batch: int, repeats: int
) -> dict[str, Any]:
    from earmark.extractors.catalogue import open_on
    from earmark.extractors.cost import measure_cost

    cost = measure_cost(lambda: open_on(device, spec, **parameters), seconds=seconds, batch=batch, repeats=repeats)
    return {**asdict(cost), "name": spec}


def _line(cost: dict[str, Any]) -> tuple[str, ...]:
    macs, memory, parameters = cost["macs_per_second"], cost["peak_memory"], cost["parameters"]
    return (
        cost["name"],
        cost["device"],
        "?" if parameters is None else f"{parameters / 1e6:.2f} M",
        "?" if macs is None else f"{macs / 1e9:.2f}",
        "?" if memory is None else f"{memory / 1e9:.2f} GB",
        f"{cost['real_time_factor']:.2g}",
        f"{1 / cost['real_time_factor']:.3g}",
    )
