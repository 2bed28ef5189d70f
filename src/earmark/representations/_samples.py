"""What a run does under `--sample 50x5`: 5 clips of each of the 50 most frequent classes of every subset.

Clips are drawn before anything is embedded, from those that could be scored: with a label, readable, no copy that is
left out, and with a group where the run measures across groups. From there on the run is one of a smaller subset with
a name of its own, `ES1~50x5`, in the scores, in clips.csv and in the record. `earmark.vectors.class_samples` draws.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from earmark.corpora.clips import groups_of
from earmark.corpora.copies import CopySet
from earmark.corpora.subsets import PreparedSubset
from earmark.representations.config import RunConfig
from earmark.scores.spelling import with_sample
from earmark.vectors.class_samples import draw_sample, parse_sample, told

log = logging.getLogger("earmark.runs")


def draw_samples(subsets: Sequence[PreparedSubset], config: RunConfig) -> list[PreparedSubset]:
    """The subsets with the clips of a sample alone; UsageError where no class of any of them has enough clips."""
    if not config.sample:
        return list(subsets)
    drawn = [_drawn(subset, config) for subset in subsets]
    for note in notes_on_samples(drawn):
        log.info("sample of %s", note)
    return drawn


def _drawn(subset: PreparedSubset, config: RunConfig) -> PreparedSubset:
    grouped = config.across_groups and groups_of(subset.clips) is not None
    pairs = zip(subset.clips, subset.digests, strict=True)
    labels = [clip.label if digest and (clip.group is not None or not grouped) else None for clip, digest in pairs]
    sample = parse_sample(config.sample)
    draw = draw_sample(labels, [clip.id for clip in subset.clips], sample, config.seed)
    taken = {subset.clips[row].id for row in draw.rows}
    name = with_sample(subset.name, sample.drawn_with(config.seed))
    lengths = zip(subset.readable, subset.seconds, strict=True)
    aside = {item.clip.id for item in subset.left_out}
    places = {id: place for place, id in enumerate(clip.id for clip, _ in subset.listed if clip.id in taken | aside)}
    return replace(
        subset,
        name=name,
        clips=tuple(subset.clips[row] for row in draw.rows),
        digests=tuple(subset.digests[row] for row in draw.rows),
        seconds=tuple(seconds for (clip, _), seconds in lengths if clip.id in taken),
        failures=tuple(replace(failure, subset=name) for failure in subset.failures),
        copies=subset.copies if subset.left_out else _still_together(subset, taken),
        left_out=tuple(replace(item, row=places[item.clip.id]) for item in subset.left_out),
        draw=draw,
    )


def _still_together(subset: PreparedSubset, taken: set[str]) -> tuple[CopySet, ...]:
    """The copies that are kept, as far as more than one of a sound was drawn."""
    labels = {clip.id: clip.label for clip in subset.clips}
    kept = [tuple(id for id in copies.ids if id in taken) for copies in subset.copies]
    return tuple(
        CopySet(ids, tuple(dict.fromkeys(label for id in ids if (label := labels[id])))) for ids in kept if len(ids) > 1
    )


# --- in words and in the record ------------------------------------------------------------------------------


def notes_on_samples(subsets: Sequence[PreparedSubset]) -> list[str]:
    """What a person should know after a run: which clips each subset holds."""
    several = len({subset.suite for subset in subsets}) > 1
    names = [f"{subset.suite}/{subset.name}" if several else subset.name for subset in subsets]
    return told({name: subset.draw for name, subset in zip(names, subsets, strict=True) if subset.draw is not None})


def remark_on_sample(subset: PreparedSubset) -> str:
    """For the reason of each row: which clips it rests on. Nothing where it rests on the whole subset."""
    return "" if subset.draw is None else subset.draw.text


def describe_sample(subset: PreparedSubset) -> dict[str, Any] | None:
    """For the run's record."""
    draw = subset.draw
    if draw is None:
        return None
    return {
        "sample": str(draw.sample),
        "seed": draw.seed,
        "clips": len(draw.rows),
        "of_clips": draw.of_clips,
        "classes": draw.classes,
        "of_classes": draw.of_classes,
        "classes_with_enough": draw.fitting,
        "text": draw.text,
    }
