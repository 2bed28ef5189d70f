"""Run the public conformance suite on an extractor or a codec and print a table to paste in a pull request.

NAME is an import path such as mypackage.mymodule:MyModel (the current folder counts), a model in another format such as
onnx:model.onnx, a registered name, or a setting of a codec such as opus@12. What has `encode` and `decode` is a codec.
The exit code is 1 if a check fails; warnings do not count, and checks that an earlier failure leaves nothing to find
are skipped.
"""

from __future__ import annotations

import argparse
import json
import sys

from earmark.errors import UsageError
from earmark.extractors.catalogue import EXTRACTORS, open_extractor, parse_spec
from earmark.extractors.conformance import Finding, check_extractor, table

EXAMPLES = """examples:
  earmark check mypackage.mymodule:MyModel
  earmark check onnx:model.onnx --quiet
  earmark check logmel --json
  earmark check mypackage.mymodule:MyCodec
  earmark check opus@12
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("extractor", metavar="NAME", help="import path, format:file, registered name, or codec@kbps")
    parser.add_argument("--json", action="store_true", help="print the findings on stdout as a JSON array")
    parser.add_argument("--quiet", action="store_true", help="print only warnings and failures")


def run(args: argparse.Namespace) -> int:
    findings = _findings(args.extractor)
    shown = [finding for finding in findings if finding.status in ("warn", "fail")] if args.quiet else findings
    if args.json:
        sys.stdout.write(json.dumps([finding._asdict() for finding in shown], indent=1) + "\n")
    elif shown:
        sys.stdout.write(table(shown, f"earmark check {args.extractor}"))
    return int(any(finding.status == "fail" for finding in findings))


def _findings(spec: str) -> list[Finding]:
    if _names_codec(spec):
        from earmark.codecs.catalogue import parse_spec as parse_codec
        from earmark.runs.pool import Died, Processes

        if not parse_codec(spec).is_path:
            return _codec_findings(spec)
        try:
            with Processes(_codec_findings, 1) as elsewhere:  # a stranger's code may end the process that it is in
                findings: list[Finding] = elsewhere.call(spec)
        except Died as error:
            return [Finding("returns", "fail", f"While it was checked, {error}: encode and decode must return.")]
        return findings
    return check_extractor(open_extractor(spec))


def _codec_findings(spec: str) -> list[Finding]:
    from earmark.codecs.catalogue import open_codec
    from earmark.codecs.conformance import check_codec

    return check_codec(open_codec(spec), fresh=lambda: open_codec(spec))


def _names_codec(spec: str) -> bool:
    """Whether a spelling is a codec's: one of the list, or an import path to something that encodes and decodes."""
    from earmark.codecs.catalogue import FAMILIES
    from earmark.codecs.catalogue import parse_spec as parse_codec
    from earmark.registry import load_path

    head = parse_spec(spec).name
    if "@" in spec and parse_codec(spec).family in FAMILIES:
        return True
    if head in EXTRACTORS:
        return False
    if head in FAMILIES:
        return True
    path = parse_spec(spec).path
    if ":" not in path:
        return False
    thing = load_path(path, "extractor or codec")
    lacking = [name for name in ("encode", "decode") if not callable(getattr(thing, name, None))]
    if len(lacking) == 1 and not hasattr(thing, "extract"):
        raise UsageError(f"{spec} has no `{lacking[0]}`: a codec has `encode` and `decode`.")
    return not lacking
