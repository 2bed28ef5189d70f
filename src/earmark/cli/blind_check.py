"""Would a host take this package? The same checks and the same sandbox as there, on synthetic sounds.

PACKAGE is a folder with a submission.yaml, or a .zip of one. First everything is read that can be refused without
running anything: names, kinds and sizes of files, pickles, what ONNX and safetensors files say of themselves, the keys
of submission.yaml. Then the model runs in a sealed cell on sounds of many lengths. Nothing is sent anywhere.
Parts of the sandbox that this machine lacks are told, and the check goes on without them: the host's has them.
The exit code is 1 if the package would be refused.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from earmark.cli.options import add
from earmark.conformance import CheckResult, check_table

EXAMPLES = """examples:
  earmark blind check my-package
  earmark blind check my-package.zip --memory 4GB --json
"""


USUAL_BYTES = 2_000_000_000
"""What a board takes unless its host says otherwise."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("package", metavar="PACKAGE", help="a folder with submission.yaml, or a .zip of one")
    add(
        parser,
        ("--memory", "SIZE", "memory that the model may use, such as 4GB: the board's page says what its host allows"),
        ("--clip-timeout", float, "seconds that a clip may take (default: 5 times its length and 20 s)"),
        ("--json", True, "print the findings on stdout as JSON"),
        ("--quiet", True, "print only warnings and failures, and no progress"),
    )


def run(args: argparse.Namespace) -> int:
    from earmark.blind.packages import PackageRefused, unpack

    with tempfile.TemporaryDirectory(prefix="earmark-blind-") as folder:
        try:
            package = unpack(args.package, Path(folder) / "package")
        except PackageRefused as refusal:
            refused = [CheckResult("package", "fail", problem) for problem in refusal.problems]
            return _told(args, None, refused, "")
        facts = {name: getattr(package, name) for name in _SHOWN}
        said = f"{package.entry}: {package.kind}, {len(package.files)} files, {package.size / 1e6:.1f} MB."
        findings = [CheckResult("package", "pass", said)]
        if package.size > USUAL_BYTES:
            large = (
                f"It has {package.size / 1e9:.1f} GB; most boards take {USUAL_BYTES / 1e9:g}: see the form."
            )
            findings.append(CheckResult("size", "warn", large))
        walls, missing = _walls()
        from earmark.blind.rehearsal import rehearse
        from earmark.evaluation.options import byte_count
        from earmark.isolation import Limits

        limits = Limits(memory=byte_count(args.memory)) if args.memory else Limits()
        found = rehearse(
            package, limits=limits, allowed=missing, seconds_per_clip=args.clip_timeout, progress=not args.quiet
        )
    return _told(args, facts, [*findings, *found.findings, *walls], found.log)


_SHOWN = (
    "kind", "model", "architecture", "entry", "pooling", "pca", "distance", "correction", "digest", "size",
)  # fmt: skip


def _walls() -> tuple[list[CheckResult], frozenset[str]]:
    """What this machine has of the sandbox, as findings, and the parts that it lacks."""
    from earmark.isolation import missing_parts

    missing = missing_parts()
    told = "the host's sandbox has it, so that a model may pass here and fail there"
    lacking = [
        CheckResult("sandbox", "warn", f"This machine lacks {part} ({why}): {told}.") for part, why in missing.items()
    ]
    complete = CheckResult("sandbox", "pass", "The model ran in a sealed cell, as on the host.")
    return lacking or [complete], frozenset(missing)


def _told(args: argparse.Namespace, facts: dict[str, object] | None, findings: list[CheckResult], log: str) -> int:
    refused = any(finding.status == "fail" for finding in findings)
    shown = [finding for finding in findings if not args.quiet or finding.status in ("warn", "fail")]
    if args.json:
        told = {"taken": not refused, "package": facts, "findings": [one._asdict() for one in shown], "log": log}
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
    else:
        if shown:
            sys.stdout.write(check_table(shown, f"earmark blind check {args.package}"))
        if refused and log:
            sys.stdout.write(f"\nwhat the model printed and raised:\n{log}\n")
        if not args.quiet:
            verdict = "would be refused" if refused else "would be taken, and heard on the blind sets"
            sys.stdout.write(f"\n{args.package} {verdict}.\n")
    return int(refused)
