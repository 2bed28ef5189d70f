"""Preparation after VocSim's Algorithm 1, as a recipe: named steps, each a pure function over clip records.

    unreadable clips → longest 2 % → classes under 6 clips → the source's own filters → labels per individual → cap

Resampling to 16 kHz mono, the algorithm's first step, changes no duration and so no decision: it is done last, when
the clips that stay are written. Order matters and is the paper's: a class that falls under six clips because of a
later step stays, as it does in the published subsets.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from earmark.atomic import write_whole
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.export import export
from earmark.corpora.manifest import write_card, write_manifest
from earmark.corpora.passes import each
from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean

__all__ = [
    "RULES",
    "Dropped",
    "Outcome",
    "Prepared",
    "Record",
    "SubsetRule",
    "cap_classes",
    "drop_labels",
    "drop_longest",
    "drop_most_frequent",
    "drop_names",
    "drop_small_classes",
    "label_per_individual",
    "prepare",
    "recipe",
    "run_recipe",
]

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


class Outcome(NamedTuple):
    """What a step keeps, in order, and what it drops."""

    kept: list[Record]
    dropped: list[Dropped]


Step = Callable[[Sequence[Record]], Outcome]


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


RULES: dict[str, SubsetRule] = {
    rule.name: rule
    for rule in (
        SubsetRule("default"),
        SubsetRule("BC", names=("10.wav", "16.wav")),
        SubsetRule("BS1", per_individual=True),
        SubsetRule("BS2", per_individual=True),
        SubsetRule("BS3", per_individual=True),
        SubsetRule("BS4", per_individual=True),
        SubsetRule("BS5", labels=("TRASH", "SIL", "call"), per_individual=True),
        SubsetRule("ES1"),
        SubsetRule("HP"),
        SubsetRule("HS1", labels=("laugh", "other", "cough")),
        SubsetRule("HS2"),
        SubsetRule("HU1", most_frequent=12),
        SubsetRule("HU2", most_frequent=35),
        SubsetRule("HU3"),
        SubsetRule("HU4"),
        SubsetRule("HW1", most_frequent=50),
        SubsetRule("HW2", most_frequent=25),
        SubsetRule("HW3"),
        SubsetRule("HW4"),
        SubsetRule("OC1"),
    )
}


# --- the steps ----------------------------------------------------------------------------------------------


def _split(records: Sequence[Record], step: str, why: Callable[[Record], str]) -> Outcome:
    """Drop the records for which `why` gives a reason."""
    kept: list[Record] = []
    dropped: list[Dropped] = []
    for record in records:
        reason = why(record)
        if reason:
            dropped.append(Dropped(record.clip.id, record.clip.subset, record.label, step, reason))
        else:
            kept.append(record)
    return Outcome(kept, dropped)


def _sizes(records: Sequence[Record]) -> Counter[str]:
    return Counter(record.label for record in records)


def _ranking(sizes: Counter[str]) -> list[str]:
    """Labels by falling size; equal sizes by name, so that the choice is the same everywhere."""
    return sorted(sizes, key=lambda label: (-sizes[label], label))


def drop_longest(records: Sequence[Record], percentile: float = 98.0) -> Outcome:
    """Drop clips longer than the given percentile of durations (interpolated linearly); ties with it stay."""
    if not records:
        return Outcome([], [])
    limit = float(np.percentile([record.seconds for record in records], percentile))

    def why(record: Record) -> str:
        long = record.seconds > limit
        return f"{record.seconds:.3f} s is over the {percentile:g}th percentile, {limit:.3f} s" if long else ""

    return _split(records, "drop_longest", why)


def drop_small_classes(records: Sequence[Record], minimum: int = 6) -> Outcome:
    """Drop classes with fewer than `minimum` clips."""
    sizes = _sizes(records)

    def why(record: Record) -> str:
        return f"class of {sizes[record.label]}, under {minimum} clips" if sizes[record.label] < minimum else ""

    return _split(records, "drop_small_classes", why)


def drop_names(records: Sequence[Record], names: Sequence[str]) -> Outcome:
    """Drop clips whose file name, or whose label, is one of `names`."""
    unwanted = set(names)

    def why(record: Record) -> str:
        own = {record.label, record.clip.id.rsplit("/", 1)[-1], Path(record.clip.path or "").name}
        return "the source's list of clips to leave out" if own & unwanted else ""

    return _split(records, "drop_names", why)


def drop_labels(records: Sequence[Record], labels: Sequence[str]) -> Outcome:
    """Drop classes by name."""
    unwanted = set(labels)
    return _split(
        records, "drop_labels", lambda one: "the source's list of classes to leave out" if one.label in unwanted else ""
    )


def drop_most_frequent(records: Sequence[Record], count: int) -> Outcome:
    """Drop the `count` largest classes; among equal sizes, the first by name."""
    ranks = {label: rank for rank, label in enumerate(_ranking(_sizes(records))[:count], start=1)}

    def why(record: Record) -> str:
        rank = ranks.get(record.label)
        return f"class number {rank} of the {count} most frequent" if rank else ""

    return _split(records, "drop_most_frequent", why)


def label_per_individual(records: Sequence[Record]) -> Outcome:
    """Put the individual before the label (`bird1_A`): the same letter means another sound in another bird."""
    for record in records:
        if record.clip.group is None:
            raise InputError(
                f"{record.clip.id}: labels of this subset are unique per individual, and the clip has no group; "
                "give the bird in the group column."
            )
    return Outcome([record._replace(label=f"{record.clip.group}_{record.label}") for record in records], [])


def cap_classes(records: Sequence[Record], above: int = 17_000, low: int = 10_000, high: int = 17_000) -> Outcome:
    """When there are more than `above` clips, keep whole classes spread evenly over the size ranking.

    As many classes as bring the total between `low` and `high`; where the sizes allow none, those that come nearest
    from below. The paper prescribes the range and the evenness; which classes is settled here, without chance.
    """
    if len(records) <= above:
        return Outcome(list(records), [])
    sizes = _sizes(records)
    ranking = _ranking(sizes)
    counts = np.array([sizes[label] for label in ranking])
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


def recipe(rule: SubsetRule, *, cap: bool = False) -> list[tuple[str, Step]]:
    """The steps of Algorithm 1 for one source, in order, each with its name."""
    steps: list[tuple[str, Step]] = [
        ("drop_longest", lambda records: drop_longest(records, rule.percentile)),
        ("drop_small_classes", lambda records: drop_small_classes(records, rule.min_class_size)),
    ]
    if rule.names:
        steps.append(("drop_names", lambda records: drop_names(records, rule.names)))
    if rule.labels:
        steps.append(("drop_labels", lambda records: drop_labels(records, rule.labels)))
    if rule.most_frequent:
        steps.append(("drop_most_frequent", lambda records: drop_most_frequent(records, rule.most_frequent)))
    if rule.per_individual:
        steps.append(("label_per_individual", label_per_individual))
    if cap:
        steps.append(("cap_classes", cap_classes))
    return steps


def run_recipe(records: Sequence[Record], steps: Sequence[tuple[str, Step]]) -> Outcome:
    """Run the steps one after the other; dropped clips are listed in the order in which they fell."""
    kept, dropped = list(records), list[Dropped]()
    for _, step in steps:
        outcome = step(kept)
        kept = outcome.kept
        dropped += outcome.dropped
    return Outcome(kept, dropped)


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
    corpus.refuse_into(Path(into))
    rules = {name: find_rule(subset_rule, name) for name in corpus.subsets()}
    records, dropped = _measured(corpus, threads, progress)
    kept: list[Record] = []
    for name, rule in rules.items():
        outcome = run_recipe([one for one in records if one.clip.subset == name], recipe(rule, cap=cap))
        kept += outcome.kept
        dropped += outcome.dropped
    if not kept:
        why = Counter(one.step for one in dropped).most_common(1)
        raise InputError(f"{corpus.name}: no clip is left after preparation (most were lost at {why[0][0]}).")
    root = Path(into)
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
    _write_log(root, rules, cap, dropped)
    return Prepared(root / "manifest.csv", clips, dropped)


def _measured(corpus: Corpus, threads: int | None, progress: bool) -> tuple[list[Record], list[Dropped]]:
    records: list[Record] = []
    dropped: list[Dropped] = []
    bar = "measure" if progress else ""
    for clip, result in each(corpus.clips, lambda one: one.seconds(), threads=threads, progress=bar):
        if isinstance(result, EarmarkError):
            dropped.append(_dropped(clip, "read", str(result)))
        elif clip.label is None:
            dropped.append(_dropped(clip, "label", "the clip has no label"))
        else:
            records.append(Record(clip, clip.label, result))
    return records, dropped


def _dropped(clip: Clip, step: str, reason: str) -> Dropped:
    return Dropped(clip.id, clip.subset, clip.label or "", step, reason)


def _write_log(root: Path, rules: dict[str, SubsetRule], cap: bool, dropped: Sequence[Dropped]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Dropped._fields)
    writer.writerows(dropped)
    write_whole(root / "dropped.csv", text.getvalue().encode("utf-8", "replace"))
    used = {
        name: {
            "rule": dataclasses.asdict(rule),
            "steps": ["read", "label", *(step for step, _ in recipe(rule, cap=cap))],
        }
        for name, rule in rules.items()
    }
    write_whole(root / "recipe.json", (json.dumps(used, ensure_ascii=False, indent=2) + "\n").encode())
