"""What a run does with clips that are one sound: `--copies drop`, `keep` or `refuse`.

    drop    the first clip of each set stays; of a sound under two labels none does, for at most one label is right
            and nothing here tells which
    keep    all are scored, and every affected row, the record and the report say so
    refuse  the run ends before anything is computed

docs/decisions/0011-copies.md says why the first is the default.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from earmark.corpora.copies import CopySet, find_copies
from earmark.corpora.subsets import LeftOut, PreparedSubset
from earmark.errors import InputError
from earmark.wording import counted

log = logging.getLogger("earmark.runs")

EXAMPLES = 5
"""Sets that are named in messages, record and report; clips.csv names them all."""


def settle_copies(subsets: Sequence[PreparedSubset], policy: str, *, threads: int = 1) -> list[PreparedSubset]:
    """The subsets as they are scored under a policy; InputError when copies are refused and there are some."""
    searched = [_with_copies(subset, threads) for subset in subsets]
    for subset in searched:
        for copies in subset.copies:
            log.info("copies in %s/%s: %s", subset.suite, subset.name, " = ".join(copies.ids))
    having = [subset for subset in searched if subset.copies]
    if policy == "refuse" and having:
        sets = [copies for subset in having for copies in subset.copies]
        more = f"; and {counted(len(sets) - 2 * EXAMPLES, 'more sound')}" if len(sets) > 2 * EXAMPLES else ""
        raise InputError(
            f"{'; '.join(map(_counts, having))}: "
            f"{'; '.join(copies.text for copies in sets[: 2 * EXAMPLES])}{more}: "
            "remove them from the corpus, or run with --copies drop or --copies keep."
        )
    return [_without_copies(subset) if policy == "drop" and subset.copies else subset for subset in searched]


def _with_copies(subset: PreparedSubset, threads: int) -> PreparedSubset:
    lengths = iter(subset.seconds)
    seconds = [0.0 if digest is None else next(lengths) for digest in subset.digests]
    return replace(subset, copies=tuple(find_copies(subset.clips, subset.digests, seconds, threads=threads)))


def _without_copies(subset: PreparedSubset) -> PreparedSubset:
    """Left are every clip that is nobody's copy, and of each set under one label the first clip that has the label."""
    reasons = {id: why for copies in subset.copies for id, why in _reasons(copies)}
    labels = {clip.id: clip.label for clip in subset.clips}
    firsts = {
        next((id for id in copies.ids if labels[id]), copies.ids[0])
        for copies in subset.copies
        if not copies.conflicting
    }
    left_out = [
        LeftOut(row, clip, digest, reasons[clip.id])
        for row, (clip, digest) in enumerate(zip(subset.clips, subset.digests, strict=True))
        if clip.id in reasons and clip.id not in firsts
    ]
    gone = {item.clip.id for item in left_out}
    kept = [pair for pair in zip(subset.clips, subset.digests, strict=True) if pair[0].id not in gone]
    lengths = zip(subset.readable, subset.seconds, strict=True)
    return replace(
        subset,
        clips=tuple(clip for clip, _ in kept),
        digests=tuple(digest for _, digest in kept),
        seconds=tuple(seconds for (clip, _), seconds in lengths if clip.id not in gone),
        left_out=tuple(left_out),
    )


def _reasons(copies: CopySet) -> list[tuple[str, str]]:
    """Why each clip of a set is left out, if it is."""
    first, second = copies.ids[:2]
    others = [(id, second if id == first else first) for id in copies.ids]
    if copies.conflicting:
        labels = " and ".join(copies.labels[:4])
        return [(id, f"left out: the same sound as {other}, under the labels {labels}") for id, other in others]
    return [(id, f"left out: a copy of {other}") for id, other in others]


# --- in words and in the record ------------------------------------------------------------------------------


def _counts(subset: PreparedSubset) -> str:
    """birds: 12 clips are copies of one another, 2 sounds under more than one label"""
    clips = sum(len(copies.ids) for copies in subset.copies)
    mixed = sum(copies.conflicting for copies in subset.copies)
    labels = f", {counted(mixed, 'sound')} under more than one label" if mixed else ""
    return f"{subset.name}: {counted(clips, 'clip')} are copies of one another{labels}"


def note_on_copies(subset: PreparedSubset) -> list[str]:
    """What a person should know after a run: how many copies there are, and what became of them."""
    if not subset.copies:
        return []
    outcome = remark_on_copies(subset) if subset.left_out else "all are kept, and find each other"
    return [f"{_counts(subset)}; {outcome} (first: {subset.copies[0].text})"]


def remark_on_copies(subset: PreparedSubset) -> str:
    """For the reason of each row: what copies did to the clips it rests on. Nothing where there are none."""
    if not subset.copies:
        return ""
    if not subset.left_out:
        clips = sum(len(copies.ids) for copies in subset.copies)
        return f"{counted(clips, 'clip')} kept that are copies of one another: they find each other"
    mixed = sum(len(copies.ids) for copies in subset.copies if copies.conflicting)
    copies = len(subset.left_out) - mixed
    parts = [f"{copies} {'copy' if copies == 1 else 'copies'} left out"] if copies else []
    parts += [f"{counted(mixed, 'clip')} left out whose sound has more than one label"] if mixed else []
    return ", ".join(parts)


def describe_copies(subset: PreparedSubset, policy: str) -> dict[str, Any]:
    """For the run's record."""
    return {
        "policy": policy,
        "sounds": len(subset.copies),
        "clips": sum(len(copies.ids) for copies in subset.copies),
        "left_out": len(subset.left_out),
        "under_several_labels": sum(copies.conflicting for copies in subset.copies),
        "examples": [
            {"ids": list(copies.ids[:10]), "labels": list(copies.labels)}
            for copies in sorted(subset.copies, key=lambda copies: not copies.conflicting)[:EXAMPLES]
        ],
    }
