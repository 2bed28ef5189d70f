"""A run in progress, and what it says of itself afterwards: run.json and what happened to each clip."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from earmark._version import __version__
from earmark.corpora.clips import Corpus, groups_of
from earmark.corpora.subsets import PreparedSubset
from earmark.report.methods import LIBRARIES, MODULES
from earmark.representations import _evaluate as evaluate
from earmark.representations import _systems as systems
from earmark.representations._copies import describe_copies
from earmark.representations._embed import Refusal
from earmark.representations._folder import Finished, Key, write_clips
from earmark.representations._samples import describe_sample
from earmark.representations._systems import Model, System
from earmark.representations.config import RunConfig
from earmark.runs import folder
from earmark.runs.engine import Failure, Ledger
from earmark.runs.identity import fingerprint, versions
from earmark.runs.packs import Records
from earmark.runs.store import Cache
from earmark.scores import Scores
from earmark.scores.spelling import without_noise
from earmark.vectors.several_labels import split_labels
from earmark.workers import thread_count


@dataclass(kw_only=True)
class Work(Ledger):
    """What the stages of one run share, and what they have come to so far."""

    config: RunConfig
    cache: Cache
    corpora: list[Corpus]
    subsets: list[PreparedSubset] = field(default_factory=list)
    systems: list[System] = field(default_factory=list)
    records: dict[Key, Records] = field(default_factory=dict)  # by model identity, suite and subset
    vectors: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)  # evaluations on the clips that systems share
    figures: dict[str, str] = field(default_factory=dict)
    drawn: str = ""  # what the report was drawn from
    shared: bool = True  # whether other processes find the sounds, too
    # what other processes did for this run
    refused: dict[Key, dict[str, Refusal]] = field(default_factory=dict)  # sounds that failed, by model and subset
    embedded: Counter[Key] = field(default_factory=Counter)  # clips, by model and subset
    elsewhere: set[str] = field(default_factory=set)  # keys of measurements

    @property
    def workers(self) -> int:
        return thread_count(self.config.workers)

    def records_of(self, model: Model, subset: PreparedSubset) -> Records:
        return self.records[model.identity, subset.suite, subset.name]

    def clip_records(self) -> dict[str, dict[str, Any]]:
        """Seconds, rate and channels of each clip that was decoded, by the hash of its sound."""
        return {digest: record for records in self.records.values() for digest, record in records.records.items()}


def write_tables(work: Work, path: Path) -> None:
    """clips.csv and failures.csv."""
    limits = {system.model.name: system.model.card.context_seconds for system in work.systems}
    contexts = {name: limit for name, limit in limits.items() if limit is not None}
    records, config = work.clip_records(), work.config
    outcomes = outcomes_of(
        work.subsets, work.failures, config.min_class_size, contexts, records, config.across_groups,
        config.label_separator, config.background,
    )  # fmt: skip
    folder.write_failures(path, work.failures)
    write_clips(path, work.subsets, records, outcomes)


def outcomes_of(
    subsets: Sequence[PreparedSubset],
    failures: Sequence[Failure],
    min_class_size: int,
    contexts: Mapping[str, float],
    records: Mapping[str, Mapping[str, Any]],
    across_groups: bool = False,
    label_separator: str = "",
    background: str = "",
) -> dict[Key, str]:
    """What happened to each clip that was not simply used, in words. `contexts`: what each model hears at most."""
    outcomes: dict[Key, list[str]] = {}
    for failure in failures:
        whose = f"failed for {failure.extractor}" if failure.extractor else "failed"
        outcomes.setdefault((failure.suite, failure.subset, failure.id), []).append(f"{whose}: {failure.reason}")
    for subset in subsets:
        for item in subset.left_out:
            outcomes[subset.suite, subset.name, item.clip.id] = [item.reason]
        keys = [(subset.suite, subset.name, clip.id) for clip in subset.clips]
        # Across groups, a clip of no known group is left out of the whole measurement (see `evaluation.data`).
        needed = across_groups and groups_of(subset.clips) is not None
        usable = [clip for clip, key in zip(subset.clips, keys, strict=True) if key not in outcomes]
        known = [clip.label for clip in usable if clip.label and (clip.group is not None or not needed)]
        sizes = Counter(label for text in known for label in split_labels(text, label_separator))
        for clip, digest, key in zip(subset.clips, subset.digests, keys, strict=True):
            if key in outcomes:
                continue
            reasons: list[str] = []
            if not clip.label:
                reasons = ["not scored: no label"]
            elif needed and clip.group is None:
                reasons = ["not scored: no group, so that across groups cannot be known"]
            elif clip.label == background:
                reasons = ["background: a candidate, never a query"]
            elif (size := max(sizes[label] for label in split_labels(clip.label, label_separator))) < min_class_size:
                few = f"{size} usable clip{'s' * (size != 1)} in its class, fewer than {min_class_size}"
                reasons = [f"not scored: {few}"]
            seconds = records.get(digest or "", {}).get("seconds", 0.0)
            reasons += [
                f"truncated to {limit:g} s by {name}" for name, limit in contexts.items() if seconds > limit + 0.001
            ]
            if reasons:
                outcomes[key] = reasons
    return {key: "; ".join(reasons) for key, reasons in outcomes.items()}


def keep_finished(work: Work, before: Finished) -> None:
    """What an earlier run measured stays known, of every subset whose clips are still the same in the same cache."""
    if work.config.cache.policy == "off" or before.record.get("cache") != work.cache.url:
        return
    now = {
        (subset.suite, subset.name): [
            (clip.id, clip.label or "", clip.group or "", digest or "") for clip, digest in subset.listed
        ]
        for subset in work.subsets
    }

    def kept(name: str) -> list[dict[str, Any]]:
        keys = [((item["suite"], without_noise(item["subset"])), item) for item in before.record.get(name, [])]
        return [item for key, item in keys if key in now and now[key] == before.clips.get(key)]

    work.vectors, work.evaluations, work.comparisons = kept("vectors"), kept("evaluations"), kept("comparisons")
    if work.vectors:
        work.counts.update({step: counts for step, counts in before.record["steps"].items() if step not in work.counts})


def describe_vectors(work: Work, vectors: evaluate.Vectors) -> dict[str, Any]:
    """Where vectors lie, for the record."""
    subset, system = vectors.subset, vectors.system
    records = work.records_of(system.model, subset)
    used = set(vectors.rows)
    reduced = work.cache.peek(evaluate.PCA_KIND, vectors.pca_key) if vectors.pca_key else None
    width = sum(records.longest(part, vectors.digests) for part in system.parts)
    return {
        "suite": subset.suite,
        "subset": subset.name,
        "system": system.name,
        "extractor_key": system.model.key(subset),
        "parts": list(system.parts),
        "pca_key": vectors.pca_key,
        "clips": len(vectors.rows),
        "dimension": reduced.arrays["values"]["shape"][1] if reduced else width,
        "truncated": evaluate.truncated(vectors.digests, records, system.model),
        "left_out": [clip.id for row, clip in enumerate(subset.clips) if row not in used]
        + [item.clip.id for item in subset.left_out],
    }


def record_of(work: Work) -> dict[str, Any]:
    """What run.json says."""
    records, config = work.clip_records(), work.config
    loaded = [name for name in LIBRARIES if MODULES.get(name, name) in sys.modules]
    return {
        "format": folder.FORMAT,
        "earmark": __version__,
        "started": work.started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **versions(*loaded)},
        "command": folder.command_line(),
        "platform": platform.platform(),
        "cache": work.cache.url if config.cache.policy != "off" else None,
        "steps": work.counts,
        "corpora": [
            {**asdict(corpus.card), "clips": len(corpus), "remarks": list(corpus.notes)} for corpus in work.corpora
        ],
        "subsets": [
            {
                **subset.describe(records, config.min_class_size),
                "copies": describe_copies(subset, config.copies),
                "sample": describe_sample(subset),
            }
            for subset in work.subsets
        ],
        "systems": [systems.card_of(system) for system in work.systems],
        "vectors": work.vectors,
        "evaluations": work.evaluations,
        "comparisons": work.comparisons,
        "figures": work.figures,
        "drawn": work.drawn,
        "failures": len(work.failures),
    }


_PASSING = (
    "started", "finished", "steps", "drawn", "command", "versions", "methods", "figures", "evaluations", "comparisons",
    "cache",
)  # fmt: skip
"""What run.json says of one call and not of what was measured."""


def report_inputs(path: Path, scores: Scores, compared: Scores) -> str:
    """A hash of all that a report shows but times: the same inputs need no new drawing."""
    record = {name: value for name, value in folder.read_record(path).items() if name not in _PASSING}
    rows = [[replace(row, seconds=None) for row in table] for table in (scores, compared)]
    files = [(path / name).read_text("utf-8") for name in ("clips.csv", "failures.csv") if (path / name).is_file()]
    return fingerprint(record, [[asdict(row) for row in table] for table in rows], files)
