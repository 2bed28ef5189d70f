"""What the code behind stages and subjects is now, as `scripts/confirm_stages` writes it down."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import earmark
from earmark.codecs.runs import _aggregate as aggregate
from earmark.codecs.runs import _calibrate as calibrate
from earmark.codecs.runs import _listen as listen
from earmark.codecs.runs import _systems as codecs
from earmark.representations import _evaluate as evaluate
from earmark.representations import _probe as probe
from earmark.representations import _sequences as sequences
from earmark.representations import _systems as extractors
from earmark.runs.identity import Stage, code_fingerprint

PACKAGE = Path(earmark.__file__).parent
KEPT = Path(__file__).with_name("fingerprints.json")
STAGES: tuple[Stage, ...] = (
    extractors.EMBED,
    evaluate.PCA,
    evaluate.EVALUATE,
    sequences.DTW,
    probe.PROBE,
    codecs.CODE,
    codecs.MEASURE,
    calibrate.CALIBRATE,
    listen.LISTEN,
    aggregate.AGGREGATE,
)
SUBJECTS = ("extractors", "networks", "codecs/classical", "codecs/neural")


code_fingerprint_once = cache(code_fingerprint)  # a module belongs to several stages


def fingerprint_of(paths: Iterable[Path]) -> str:
    texts = [code_fingerprint_once(path.read_text("utf-8")) for path in sorted(paths)]
    return hashlib.sha256("".join(sorted(texts)).encode()).hexdigest()[:16]


def fingerprints(package: Path = PACKAGE) -> dict[str, dict[str, Any]]:
    """Version and fingerprint of every stage and of every module of a subject."""
    now: dict[str, dict[str, Any]] = {}
    for stage in STAGES:
        paths = {path for pattern in stage.modules for path in package.glob(pattern)}
        now[stage.name] = {"version": stage.version, "fingerprint": fingerprint_of(paths)}
    for room in SUBJECTS:
        for path in sorted((package / room).glob("**/*.py")):
            stated = re.search(r"^VERSION = (\d+)", path.read_text("utf-8"), re.MULTILINE)
            version = int(stated[1]) if stated else 1
            now[path.relative_to(package).as_posix()] = {"version": version, "fingerprint": fingerprint_of([path])}
    return now


def write_fingerprints() -> None:
    KEPT.write_text(json.dumps(fingerprints(), indent=1, sort_keys=True) + "\n")


def changed(kept: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]]) -> list[str]:
    """A sentence for each stage and module that is not as it was written down."""
    sentences = []
    for name, facts in now.items():
        before = kept.get(name)
        if before == facts:
            continue
        if before is not None and before["version"] == facts["version"]:
            sentences.append(
                f"{name} changed: raise its version, or confirm that no number moves (scripts/confirm_stages)"
            )
        else:
            sentences.append(f"{name} is new or has another version: write it down (scripts/confirm_stages --raised)")
    return sentences
