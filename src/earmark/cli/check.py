"""Run the public conformance suite on an extractor or a codec and print a table to paste in a pull request.

NAME is an import path such as mypackage.mymodule:MyModel (the current folder counts), a model in another format such as
onnx:model.onnx, a registered name, or a setting of a codec such as opus@12. What has `encode` and `decode` is a codec:
its two halves run in processes that share only the payload, and a call that takes too long fails its check. What has
`encode` alone is a tokenizer, of which rate and tokens are checked.
The exit code is 1 if a check fails; warnings do not count, and checks that an earlier failure leaves nothing to find
are skipped.
"""

from __future__ import annotations

import argparse
import json
import sys

from earmark.conformance import CheckResult, Status, check_table
from earmark.errors import UsageError
from earmark.extractors.catalogue import EXTRACTORS, open_extractor
from earmark.extractors.conformance import check_extractor
from earmark.registry import load_path
from earmark.specs import parse_spec

EXAMPLES = """examples:
  earmark check mypackage.mymodule:MyModel
  earmark check onnx:model.onnx --quiet
  earmark check logmel --json
  earmark check mypackage.mymodule:MyCodec
  earmark check opus@12
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("extractor", metavar="NAME", help="import path, format:file, registered name, or codec@kbps")
    parser.add_argument(
        "--clip-timeout", type=float, metavar="SECONDS",
        help="what each half of a codec may take for a clip (default: 20 times its length and 30 s)",
    )  # fmt: skip
    parser.add_argument("--readable", metavar="PATHS", help="files and folders that a codec may read beside its code")
    parser.add_argument("--json", action="store_true", help="print the findings on stdout as a JSON array")
    parser.add_argument("--quiet", action="store_true", help="print only warnings and failures")


def run(args: argparse.Namespace) -> int:
    results = _check(args)
    shown = [result for result in results if result.status in ("warn", "fail")] if args.quiet else results
    if args.json:
        sys.stdout.write(json.dumps([result._asdict() for result in shown], indent=1) + "\n")
    elif shown:
        sys.stdout.write(check_table(shown, f"earmark check {args.extractor}"))
    return int(any(result.status == "fail" for result in results))


def _check(args: argparse.Namespace) -> list[CheckResult]:
    spec = args.extractor
    if not _is_codec(spec):
        return check_extractor(open_extractor(spec))
    from earmark.codecs.cells import Confinement, isolated
    from earmark.codecs.conformance import check_codec
    from earmark.codecs.contract import CodecFailure

    readable = tuple(args.readable.split(",")) if args.readable else ()
    confinement = Confinement(readable=readable, clip_seconds=args.clip_timeout)
    try:
        codec = isolated(spec, confinement)
    except CodecFailure as error:
        return [CheckResult("opens", "fail", f"{str(error).rstrip('.')}: it must open in a process of its own.")]
    results = check_codec(codec, fresh=lambda: isolated(spec, confinement, again=True))
    offered = confinement.support()
    status: Status = "pass" if offered.level == "full" else "warn"
    said = "Encoder and decoder ran in processes that share only the payload."
    if codec.card.encode_only:
        said = "It ran in a process of its own."
    sentence = said if offered.level == "full" else f"Isolation was {offered.level}: {offered.reason}."
    return [*results, CheckResult("isolation", status, sentence)]


def _is_codec(spec: str) -> bool:
    """Whether a spelling is a codec's: one of the list, or an import path to something that encodes."""
    from earmark.codecs import catalogue

    parsed = parse_spec(spec)
    if "@" in spec and catalogue.parse_spec(spec).name in catalogue.FAMILIES:
        return True
    if parsed.name in EXTRACTORS or parsed.name in catalogue.FAMILIES:
        return parsed.name not in EXTRACTORS
    if parsed.argument is None:
        return False
    thing = load_path(parsed.path, "extractor or codec")
    encodes, decodes, extracts = (callable(getattr(thing, name, None)) for name in ("encode", "decode", "extract"))
    if decodes and not encodes and not extracts:
        raise UsageError(f"{spec} has no `encode`: a codec has `encode` and `decode`.")
    return encodes and (decodes or not extracts)
