"""Before the first submission: are the sets large enough, and how large is a step?

A reference model that everybody knows (log-mel) is measured on every set. The margin of each of its figures gives the
step of that metric on that set, once and for all: a step that came from submissions would tell something about them.
The policy is written into the host's file; everything else in the file stays as it is.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from earmark.atomic import replacing
from earmark.blind.policy import METRICS, Policy, SetTerms, read_policy
from earmark.blind.sets import BlindSet, Host, read_sets
from earmark.blind.steps import step_for
from earmark.errors import InputError, UsageError, quoted
from earmark.plain_yaml import load_yaml
from earmark.progress import Progress
from earmark.wording import counted

__all__ = ["Prepared", "prepare"]

REFERENCE = "logmel"
_KEY = re.compile(r"policy\s*:")
_OTHER_KEY = re.compile(r"[^\s#}\]]")


@dataclass(frozen=True)
class Prepared:
    """What was written: the policy, the sets that were measured now, and those whose steps were fixed before."""

    host: Host
    policy: Policy
    measured: tuple[str, ...]
    kept: tuple[str, ...]


def prepare(path: str | os.PathLike[str], *, anew: bool = False, progress: Progress = False) -> Prepared:
    """Fix the steps of every set of a host's file that has none yet, and write the policy into the file.

    Args:
        path: The host's file.
        anew: Whether to measure sets again whose steps are fixed. Earlier figures stay on their own steps.
        progress: Whether a bar shows how far the reference model is.
    """
    file = Path(path)
    host = read_sets(file, prepared=False)
    terms: dict[str, SetTerms] = {}
    measured, kept = [], []
    for name, blind in host.sets.items():
        facts = blind.public_facts()
        sizes = (facts["clips"], facts["classes"])
        host.policy.refuse_small(name, *sizes)
        earlier = host.policy.sets.get(name)
        if earlier is not None and not anew:
            if (earlier.clips, earlier.classes) != sizes:
                raise UsageError(
                    f"The blind set {quoted(name)} has {counted(sizes[0], 'clip')} of {counted(sizes[1], 'class')} and "
                    f"had {earlier.clips} of {earlier.classes} when its steps were fixed: give it another name, or "
                    "measure it again with --anew."
                )
            terms[name] = earlier
            kept.append(name)
            continue
        terms[name] = _measured(blind, *sizes, host.policy, progress)
        measured.append(name)
    policy = replace(host.policy, sets=terms)
    _write(file, policy)
    return Prepared(host, policy, tuple(measured), tuple(kept))


def _measured(blind: BlindSet, clips: int, classes: int, policy: Policy, progress: Progress) -> SetTerms:
    """The terms of a set, from the margins of the reference model on it."""
    from earmark.embedding import embed_audio
    from earmark.evaluation import evaluate

    embedding = embed_audio(blind.clips, REFERENCE, progress=progress)
    if embedding.failures:
        first = embedding.failures[0]
        raise InputError(
            f"The blind set {quoted(blind.name)}: {counted(len(embedding.failures), 'clip')} cannot be heard, first "
            f"{first.id} ({first.reason}); mend or remove them before the set is used."
        )
    scores = evaluate(
        embedding.vectors, embedding.labels, groups=embedding.groups, metrics=("P@k", "GSR"), k=(1, 5),
        subset=blind.name,
    )  # fmt: skip
    steps = {}
    for metric in METRICS:
        row = scores.row(metric)
        if row.value is None or row.low is None or row.high is None:
            why = row.reason or "no interval"
            raise InputError(f"The blind set {quoted(blind.name)} gives no step for {metric} ({why}); leave it out.")
        steps[metric] = step_for(max(row.value - row.low, row.high - row.value), clips, policy.clips_per_step)
    return SetTerms(blind.name, clips, classes, steps)


def _write(file: Path, policy: Policy) -> None:
    """Put the policy in the place of the one in the file, or at its end. Nothing else may change."""
    text = file.read_text("utf-8")
    new = _with_policy(text, policy)
    before, after = _values(text, file), _values(new, file)
    written = after.pop("policy", None)
    before.pop("policy", None)
    if before != after or read_policy(written or {}).digest != policy.digest:
        raise UsageError(
            f"{file}: the policy in it cannot be replaced without changing other lines; give the key `policy:` a line "
            "of its own, with its values indented below it."
        )
    with replacing(file) as part:
        part.write_text(new, "utf-8")
        part.chmod(file.stat().st_mode & 0o777)


def _with_policy(text: str, policy: Policy) -> str:
    lines = text.splitlines()
    start = next((place for place, line in enumerate(lines) if _KEY.match(line)), len(lines))
    end = start + 1
    while end < len(lines) and not _OTHER_KEY.match(lines[end]):
        end += 1
    while start + 1 < end <= len(lines) and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1  # blank lines and remarks above the next key belong to that
    remark = "# Written by `earmark blind prepare`. The steps are fixed: they may not follow from submissions."
    block = ["policy:", f"  {remark}", textwrap.indent(policy.to_yaml().rstrip(), "  ")]
    gap = [""] if start == len(lines) and lines and lines[-1].strip() else []
    return "\n".join([*lines[:start], *gap, *block, *lines[end:]]) + "\n"


def _values(text: str, file: Path) -> dict[str, Any]:
    try:
        values = load_yaml(text, file.name)
    except yaml.YAMLError:
        return {}
    return dict(values) if isinstance(values, Mapping) else {}
