"""Preparation after VocSim's Algorithm 1, as a recipe: named steps, each a pure function over clip records.

    unreadable clips → longest 2 % → classes under 6 clips → the source's own filters → labels per individual → cap

Resampling to 16 kHz mono, the algorithm's first step, changes no duration and so no decision: it is done last, when
the clips that stay are written. Order matters and is the paper's: a class that falls under six clips because of a
later step stays, as it does in the published subsets.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from earmark.atomic import write_whole
from earmark.corpora._passes import each
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.export import export
from earmark.corpora.manifest import write_card, write_manifest
from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean
from earmark.places import locate
from earmark.scores import VOCSIM_SUBSETS
from earmark.tables import write_csv

RATE = 16_000


class Record(NamedTuple):
    """A labelled clip and how long it lasts."""

    clip: Clip
    label: str
    seconds: float


class Dropped(NamedTuple):
    """A clip that was left out, at which step, and why."""

    id: str
    subset: str
    label: str
    step: str
    reason: str


class StepResult(NamedTuple):
    """What a step keeps, in order, and what it drops."""

    kept: list[Record]
    dropped: list[Dropped]


Step = Callable[[Sequence[Record]], StepResult]


@dataclass(frozen=True)
class SubsetRule:
    """What is special about one source, as data."""

    name: str
    names: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    most_frequent: int = 0
    per_individual: bool = False
    percentile: float = 98.0
    min_class_size: int = 6


_OWN_RULES = {
    "BC": SubsetRule("BC", names=("10.wav", "16.wav")),
    "BS5": SubsetRule("BS5", labels=("TRASH", "SIL", "call"), per_individual=True),
    "HS1": SubsetRule("HS1", labels=("laugh", "other", "cough")),
    **{name: SubsetRule(name, per_individual=True) for name in ("BS1", "BS2", "BS3", "BS4")},
    **{
        name: SubsetRule(name, most_frequent=count)
        for name, count in {"HU1": 12, "HU2": 35, "HW1": 50, "HW2": 25}.items()
    },
}
RULES: dict[str, SubsetRule] = {
    name: _OWN_RULES.get(name, SubsetRule(name))
    for name in ("default", *(subset.name for subset in VOCSIM_SUBSETS))
}  # fmt: skip
"""By subset of VocSim; `default` for any other source."""


# --- the steps ----------------------------------------------------------------------------------------------


def _split(records: Sequence[Record], step: str, why: Callable[[Record], str]) -> StepResult:
    """Drop the records for which `why` gives a reason."""
    kept: list[Record] = []
    dropped: list[Dropped] = []
    for record in records:
        reason = why(record)
        if reason:
            dropped.append(Dropped(record.clip.id, record.clip.subset, record.label, step, reason))
        else:
            kept.append(record)
    return StepResult(kept, dropped)


def _ranking(records: Sequence[Record]) -> dict[str, int]:
    """Class sizes by falling size; equal sizes by name, so that the choice is the same everywhere."""
    return dict(sorted(Counter(record.label for record in records).items(), key=lambda item: (-item[1], item[0])))


def drop_longest(records: Sequence[Record], percentile: float = 98.0) -> StepResult:
    """Drop clips longer than the given percentile of durations (interpolated linearly); ties with it stay."""
    if not records:
        return StepResult([], [])
    limit = float(np.percentile([record.seconds for record in records], percentile))

    def why(record: Record) -> str:
        long = record.seconds > limit
        return f"{record.seconds:.3f} s is over the {percentile:g}th percentile, {limit:.3f} s" if long else ""

    return _split(records, "drop_longest", why)


def drop_small_classes(records: Sequence[Record], minimum: int = 6) -> StepResult:
    """Drop classes with fewer than `minimum` clips."""
    sizes = _ranking(records)

    def why(record: Record) -> str:
        return f"class of {sizes[record.label]}, under {minimum} clips" if sizes[record.label] < minimum else ""

    return _split(records, "drop_small_classes", why)


def drop_names(records: Sequence[Record], names: Sequence[str]) -> StepResult:
    """Drop clips whose file name, or whose label, is one of `names`."""

    def why(record: Record) -> str:
        own = {record.label, record.clip.id.rsplit("/", 1)[-1], Path(record.clip.path or "").name}
        return "the source's list of clips to leave out" if own & set(names) else ""

    return _split(records, "drop_names", why)


def drop_labels(records: Sequence[Record], labels: Sequence[str]) -> StepResult:
    """Drop classes by name."""
    reason = "the source's list of classes to leave out"
    return _split(records, "drop_labels", lambda record: reason if record.label in labels else "")


def drop_most_frequent(records: Sequence[Record], count: int) -> StepResult:
    """Drop the `count` largest classes; among equal sizes, the first by name."""
    ranks = {label: rank for rank, label in enumerate(list(_ranking(records))[:count], start=1)}

    def why(record: Record) -> str:
        rank = ranks.get(record.label)
        return f"class number {rank} of the {count} most frequent" if rank else ""

    return _split(records, "drop_most_frequent", why)


def label_per_individual(records: Sequence[Record]) -> StepResult:
    """Put the individual before the label (`bird1_A`): the same letter means another sound in another bird."""
    for record in records:
        if record.clip.group is None:
            raise InputError(
                f"{record.clip.id}: labels of this subset are unique per individual, and the clip has no group; "
                "give the bird in the group column."
            )
    return StepResult([record._replace(label=f"{record.clip.group}_{record.label}") for record in records], [])


def cap_classes(records: Sequence[Record], above: int = 17_000, low: int = 10_000, high: int = 17_000) -> StepResult:
    """When there are more than `above` clips, keep whole classes spread evenly over the size ranking.

    As many classes as bring the total between `low` and `high`; where the sizes allow none, those that come nearest
    from below. The paper prescribes the range and the evenness; which classes is settled here, without chance.
    """
    if len(records) <= above:
        return StepResult(list(records), [])
    sizes = _ranking(records)
    ranking, counts = list(sizes), np.array(list(sizes.values()))
    best, most = {ranking[-1]}, 0
    for number in range(len(ranking) - 1, 0, -1):
        chosen = np.linspace(0, len(ranking) - 1, number).round().astype(int)
        total = int(counts[chosen].sum())
        if most < total <= high:
            best, most = {ranking[place] for place in chosen}, total
        if most >= low:
            break

    def why(record: Record) -> str:
        return "" if record.label in best else f"class not among the {len(best)} kept to stay within {high:,} clips"

    return _split(records, "cap_classes", why)


# --- the recipe ---------------------------------------------------------------------------------------------


def recipe(rule: SubsetRule, *, cap: bool = False) -> dict[str, Step]:
    """The steps of Algorithm 1 for one source, in order, by name."""
    steps: dict[str, tuple[bool, Step]] = {
        "drop_longest": (True, partial(drop_longest, percentile=rule.percentile)),
        "drop_small_classes": (True, partial(drop_small_classes, minimum=rule.min_class_size)),
        "drop_names": (bool(rule.names), partial(drop_names, names=rule.names)),
        "drop_labels": (bool(rule.labels), partial(drop_labels, labels=rule.labels)),
        "drop_most_frequent": (rule.most_frequent > 0, partial(drop_most_frequent, count=rule.most_frequent)),
        "label_per_individual": (rule.per_individual, label_per_individual),
        "cap_classes": (cap, cap_classes),
    }
    return {name: step for name, (wanted, step) in steps.items() if wanted}


def run_recipe(records: Sequence[Record], steps: Mapping[str, Step]) -> StepResult:
    """Run the steps one after the other; dropped clips are listed in the order in which they fell."""
    kept, dropped = list(records), list[Dropped]()
    for step in steps.values():
        result = step(kept)
        kept = result.kept
        dropped += result.dropped
    return StepResult(kept, dropped)


def find_rule(name: str, subset: str) -> SubsetRule:
    """The rule called `name`; `auto` takes the one named like the subset, or the default."""
    if name == "auto":
        return RULES.get(subset, RULES["default"])
    if name not in RULES:
        raise UsageError(
            f"There is no subset rule {name!r}.{did_you_mean(name, RULES)} Known: auto, {', '.join(RULES)}."
        )
    return RULES[name]


# --- a corpus, prepared and written -------------------------------------------------------------------------


class Prepared(NamedTuple):
    """What a preparation left and where it was written."""

    manifest: Path
    clips: list[Clip]
    dropped: list[Dropped]


def prepare(
    corpus: Corpus,
    into: str | os.PathLike[str],
    *,
    subset_rule: str = "auto",
    cap: bool = False,
    audio: bool = True,
    threads: int | None = None,
    progress: bool = False,
) -> Prepared:
    """Run Algorithm 1 on every subset; write manifest.csv, dropped.csv, recipe.json and, with `audio`, 16 kHz FLACs.

    Without `audio` the manifest points at the original files, which are resampled when they are read.
    """
    root = locate(into)
    corpus.refuse_into(root)
    rules = {name: find_rule(subset_rule, name) for name in corpus.subsets()}
    records: list[Record] = []
    dropped: list[Dropped] = []
    bar = "measure" if progress else ""
    for clip, seconds in each(corpus.clips, lambda clip: clip.seconds(), threads=threads, progress=bar):
        if isinstance(seconds, EarmarkError):
            dropped.append(_dropped(clip, "read", str(seconds)))
        elif clip.label is None:
            dropped.append(_dropped(clip, "label", "the clip has no label"))
        else:
            records.append(Record(clip, clip.label, seconds))
    kept: list[Record] = []
    for name, rule in rules.items():
        result = run_recipe([record for record in records if record.clip.subset == name], recipe(rule, cap=cap))
        kept += result.kept
        dropped += result.dropped
    if not kept:
        why = Counter(loss.step for loss in dropped).most_common(1)
        raise InputError(f"{corpus.name}: no clip is left after preparation (most were lost at {why[0][0]}).")
    root.mkdir(parents=True, exist_ok=True)
    clips = [replace(record.clip, label=record.label) for record in kept]
    if audio:
        exported = export(Corpus(corpus.card, clips), root, rate=RATE, threads=threads, progress=progress)
        by_id = {clip.id: clip for clip in clips}
        dropped += [_dropped(by_id[identity], "read", reason) for identity, reason in exported.failed]
        clips = exported.clips
        (root / "failed.csv").unlink(missing_ok=True)
    else:
        write_card(root, corpus.card)
        write_manifest(root / "manifest.csv", clips)
    write_csv(root / "dropped.csv", Dropped._fields, dropped, errors="replace")
    used = {
        name: {"rule": dataclasses.asdict(rule), "steps": ["read", "label", *recipe(rule, cap=cap)]}
        for name, rule in rules.items()
    }
    write_whole(root / "recipe.json", (json.dumps(used, ensure_ascii=False, indent=2) + "\n").encode())
    return Prepared(root / "manifest.csv", clips, dropped)


def _dropped(clip: Clip, step: str, reason: str) -> Dropped:
    return Dropped(clip.id, clip.subset, clip.label or "", step, reason)
