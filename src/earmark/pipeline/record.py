"""What a run says of itself afterwards: run.json, what happened to each clip, and the report."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from earmark._version import __version__
from earmark.corpora.clips import Corpus, groups_of
from earmark.errors import EarmarkError
from earmark.pipeline import folder, models, steps
from earmark.pipeline.cache import Cache
from earmark.pipeline.config import RunConfig
from earmark.pipeline.copies import describe_copies
from earmark.pipeline.models import Model, System
from earmark.pipeline.packs import Facts, Index
from earmark.pipeline.prepare import Failure, Subset, describe
from earmark.scores.spelling import without_noise
from earmark.workers import thread_count

Where = tuple[str, str, str]
"""Of an index: model identity, suite, subset. Of a clip: suite, subset, id."""


@dataclass
class Work:
    """What the steps of one run share, and what they have come to so far."""

    config: RunConfig
    cache: Cache
    corpora: list[Corpus]
    progress: bool
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    subsets: list[Subset] = field(default_factory=list)
    systems: list[System] = field(default_factory=list)
    indexes: dict[Where, Index] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    counts: dict[str, dict[str, float]] = field(default_factory=dict)
    vectors: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)  # evaluations on the clips that systems share
    figures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def workers(self) -> int:
        return thread_count(self.config.workers)

    def index(self, model: Model, subset: Subset) -> Index:
        return self.indexes[model.identity, subset.suite, subset.name]

    def count(self, step: str, **amounts: float) -> None:
        counted = self.counts.setdefault(step, {})
        for name, amount in amounts.items():
            counted[name] = round(counted.get(name, 0) + amount, 3)

    def facts(self) -> dict[str, Facts]:
        """What is known of each clip that was decoded, by the hash of its sound."""
        return {clip: facts for index in self.indexes.values() for clip, facts in index.facts.items()}


def outcomes(
    subsets: Sequence[Subset],
    failures: Sequence[Failure],
    min_class_size: int,
    contexts: Mapping[str, float],
    facts: Mapping[str, Facts],
    across_groups: bool = False,
) -> dict[Where, str]:
    """What happened to each clip that was not simply used, in words. `contexts`: what each model hears at most."""
    found: dict[Where, list[str]] = {}
    for failure in failures:
        said = f"failed for {failure.extractor}" if failure.extractor else "failed"
        found.setdefault((failure.suite, failure.subset, failure.id), []).append(f"{said}: {failure.reason}")
    for subset in subsets:
        for item in subset.left_out:
            found[subset.suite, subset.name, item.clip.id] = [item.reason]
        where = [(subset.suite, subset.name, clip.id) for clip in subset.clips]
        # Across groups, a clip of no known group is left out of the whole measurement (see `evaluation.data`).
        needed = across_groups and groups_of(subset.clips) is not None
        usable = [clip for clip, at in zip(subset.clips, where, strict=True) if at not in found]
        sizes = Counter(clip.label for clip in usable if clip.group is not None or not needed)
        for clip, digest, at in zip(subset.clips, subset.digests, where, strict=True):
            if at in found:
                continue
            said = _left_out(clip.label, sizes[clip.label], min_class_size)
            if needed and clip.label and clip.group is None:
                said = "not scored: no group, so that across groups cannot be known"
            cut = [
                f"truncated to {limit:g} s by {model}"
                for model, limit in contexts.items()
                if facts.get(digest or "", Facts(0.0)).seconds > limit + 0.001
            ]
            if said or cut:
                found[at] = [*filter(None, [said]), *cut]
    return {at: "; ".join(said) for at, said in found.items()}


def _left_out(label: str | None, size: int, least: int) -> str:
    if not label:
        return "not scored: no label"
    if size < least:
        return f"not scored: {size} usable clip{'s' * (size != 1)} in its class, fewer than {least}"
    return ""


def write_tables(work: Work, place: Path) -> None:
    """clips.csv and failures.csv."""
    cards = {system.model.name: system.model.card.context_seconds for system in work.systems}
    contexts = {name: limit for name, limit in cards.items() if limit is not None}
    facts = work.facts()
    found = outcomes(
        work.subsets, work.failures, work.config.min_class_size, contexts, facts, work.config.across_groups
    )
    folder.write_failures(place, work.failures)
    folder.write_clips(place, work.subsets, facts, found)


def keep_finished(work: Work, before: folder.Finished) -> None:
    """What an earlier run measured stays known, of every subset whose clips are still the same in the same cache."""
    if work.config.cache.policy == "off" or before.record.get("cache") != work.cache.url:
        return
    now = {
        (subset.suite, subset.name): [
            (clip.id, clip.label or "", clip.group or "", digest or "") for clip, digest in subset.listed
        ]
        for subset in work.subsets
    }

    def same(one: Mapping[str, Any]) -> bool:
        where = one["suite"], without_noise(one["subset"])
        return where in now and now[where] == before.clips.get(where)

    work.vectors = [one for one in before.record["vectors"] if same(one)]
    work.evaluations = [one for one in before.record["evaluations"] if same(one)]
    work.comparisons = [one for one in before.record.get("comparisons", []) if same(one)]
    if work.vectors:
        work.counts.update({step: counts for step, counts in before.record["steps"].items() if step not in work.counts})


def placed(work: Work, vectors: steps.Vectors) -> dict[str, Any]:
    """Where vectors lie, for the record."""
    subset, system, index = vectors.subset, vectors.system, work.index(vectors.system.model, vectors.subset)
    used = set(vectors.rows)
    width = sum(max(index.length(part, digest) for digest in vectors.digests) for part in system.parts)
    reduced = work.cache.peek(steps.PCA_KIND, vectors.pca_key) if vectors.pca_key else None
    return {
        "suite": subset.suite,
        "subset": subset.name,
        "system": system.name,
        "extractor_key": system.model.key(subset),
        "parts": list(system.parts),
        "pca_key": vectors.pca_key,
        "clips": len(vectors.rows),
        "dimension": reduced.arrays["values"]["shape"][1] if reduced else width,
        "truncated": steps.truncated(vectors.digests, index, system.model),
        "left_out": [clip.id for row, clip in enumerate(subset.clips) if row not in used]
        + [item.clip.id for item in subset.left_out],
    }


def write_record(work: Work, place: Path) -> None:
    """run.json."""
    folder.write_record(place, record_of(work))


def record_of(work: Work) -> dict[str, Any]:
    """What run.json says."""
    facts = work.facts()
    libraries = {name: sys.modules[name].__version__ for name in ("numpy", "scipy", "numba") if name in sys.modules}
    return {
        "format": folder.FORMAT,
        "earmark": __version__,
        "started": work.started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **libraries},
        "platform": platform.platform(),
        "cache": work.cache.url if work.config.cache.policy != "off" else None,
        "steps": work.counts,
        "corpora": [
            {**asdict(corpus.card), "clips": len(corpus), "remarks": list(corpus.notes)} for corpus in work.corpora
        ],
        "subsets": [
            {
                **describe(subset, facts, work.config.min_class_size),
                "copies": describe_copies(subset, work.config.copies),
            }
            for subset in work.subsets
        ],
        "systems": [models.card_of(system) for system in work.systems],
        "vectors": work.vectors,
        "evaluations": work.evaluations,
        "comparisons": work.comparisons,
        "figures": work.figures,
        "failures": len(work.failures),
    }


def write_report(place: Path) -> tuple[Path | None, str]:
    """RUN/report.html, or None and the reason: a report that cannot be written costs no scores."""
    try:
        written: Path = import_module("earmark.pipeline.reporting").report_run(place)
    except EarmarkError as error:
        return None, f"The report was not written: {error}"
    return written, ""
