"""The first step: open the corpora, know every clip by the hash of its sound, and count what is there."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.copies import CopySet
from earmark.embed.hearing import length_of
from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean
from earmark.pipeline.config import CorpusEntry
from earmark.wording import counted

log = logging.getLogger("earmark.pipeline")

WINDOW = 4096


@dataclass(frozen=True)
class Failure:
    """A clip that could not be used: at which step, for which extractor (empty: for all), and why."""

    suite: str
    subset: str
    id: str
    path: str
    label: str
    step: str
    extractor: str
    reason: str


@dataclass(frozen=True)
class LeftOut:
    """A clip that is in the corpus and not in the run: its place among all clips of its subset, and why."""

    place: int
    clip: Clip
    digest: str | None
    reason: str


@dataclass(frozen=True)
class Subset:
    """The clips that are scored together. `digests` has None where a clip's sound cannot be read at all.

    `seconds` are the lengths of the readable clips as their headers say, 0 where they do not. `copies` are the sets of
    clips that are one sound, `left_out` those of them that are not scored.
    """

    suite: str
    name: str
    card: CorpusCard
    clips: tuple[Clip, ...]
    digests: tuple[str | None, ...]
    seconds: tuple[float, ...]
    failures: tuple[Failure, ...]
    copies: tuple[CopySet, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def listed(self) -> list[tuple[Clip, str | None]]:
        """Every clip of the corpus with its digest, those left out in their places."""
        others = {item.place: (item.clip, item.digest) for item in self.left_out}
        used = zip(self.clips, self.digests, strict=True)
        return [others[place] if place in others else next(used) for place in range(len(self.clips) + len(others))]

    @property
    def readable(self) -> list[tuple[Clip, str]]:
        pairs = zip(self.clips, self.digests, strict=True)
        return [(clip, digest) for clip, digest in pairs if digest is not None]

    def failure(self, clip: Clip, step: str, extractor: str, error: BaseException) -> Failure:
        return failure_of(self.suite, self.name, clip, step, extractor, error)


def failure_of(suite: str, subset: str, clip: Clip, step: str, extractor: str, error: BaseException) -> Failure:
    reason = str(error) if isinstance(error, EarmarkError) else f"{type(error).__name__}: {error}"
    path = str(Path(clip.path).absolute()) if clip.path else ""
    return Failure(suite, subset, clip.id, path, clip.label or "", step, extractor, " ".join(reason.split()))


def open_corpora(entries: Iterable[CorpusEntry]) -> list[Corpus]:
    """The corpora of a config, each named as its entry says."""
    return [entry.open() for entry in entries]


def choose_subsets(corpus: Corpus, wanted: Sequence[str]) -> dict[str, list[Clip]]:
    """The subsets asked for, or all; clips without a subset form one that has the corpus's name."""
    found = {name or corpus.name: clips for name, clips in corpus.subsets().items()}
    for name in wanted:
        if name not in found:
            raise UsageError(
                f"{corpus.name} has no subset {name!r}; it has {', '.join(found)}.{did_you_mean(name, found)}"
            )
    return {name: found[name] for name in wanted} if wanted else found


def clip_count(corpora: Sequence[Corpus], wanted: Sequence[Sequence[str]]) -> int:
    """How many clips the subsets asked for have."""
    return sum(
        sum(map(len, choose_subsets(corpus, names).values())) if names and len(corpus) else len(corpus)
        for corpus, names in zip(corpora, wanted, strict=True)
    )


def prepare(
    corpora: Sequence[Corpus],
    wanted: Sequence[Sequence[str]],
    *,
    workers: int,
    tick: Callable[[int], object] = lambda _: None,
) -> list[Subset]:
    """Subsets in order, every clip hashed; a clip that cannot be read is a failure, not the end."""
    subsets: list[Subset] = []
    for corpus, names in zip(corpora, wanted, strict=True):
        if not len(corpus):
            raise InputError(f"The corpus {corpus.name} has no clips.")
        for name, clips in choose_subsets(corpus, names).items():
            if any((known.suite, known.name) == (corpus.name, name) for known in subsets):
                raise UsageError(f"Two corpora have a subset {corpus.name}/{name}: give one of them another name.")
            subsets.append(_hashed(corpus, name, clips, workers, tick))
    return subsets


def _hashed(corpus: Corpus, name: str, clips: list[Clip], workers: int, tick: Callable[[int], object]) -> Subset:
    digests: list[str | None] = []
    seconds: list[float] = []
    failures: list[Failure] = []
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, len(clips), WINDOW):  # a bounded number of clips wait for a thread
            window = clips[start : start + WINDOW]
            for clip, found in zip(window, pool.map(_known, window), strict=True):
                digests.append(None if isinstance(found, Exception) else found[0])
                if isinstance(found, tuple):
                    seconds.append(found[1])
                else:
                    failures.append(failure_of(corpus.name, name, clip, "prepare", "", found))
                    log.warning("%s/%s: %s", corpus.name, name, failures[-1].reason)
                tick(1)
    _refuse_twins(name, clips)
    return Subset(
        corpus.name, name, corpus.card_of(name), tuple(clips), tuple(digests), tuple(seconds), tuple(failures)
    )


def _known(clip: Clip) -> tuple[str, float] | Exception:
    try:
        return clip.digest(), length_of(clip)
    except Exception as error:  # whatever a file or a stranger's generator does, the run goes on
        return error


def _refuse_twins(name: str, clips: Sequence[Clip]) -> None:
    twins = [id for id, count in Counter(clip.id for clip in clips).items() if count > 1]
    if twins:
        stand = "stands" if len(twins) == 1 else "stand"
        raise InputError(
            f"{counted(len(twins), 'id')} {stand} for several clips of {name} (first: {twins[0]!r}): make ids unique."
        )


def describe(subset: Subset, facts: Mapping[str, Any], min_class_size: int) -> dict[str, Any]:
    """What is known of a subset, for the run's record: counts, classes, groups, durations where decoded."""
    sizes = Counter(clip.label for clip in subset.clips if clip.label)
    known = sorted(facts[digest].seconds for digest in subset.digests if digest and digest in facts)
    found: dict[str, Any] = {
        "suite": subset.suite,
        "subset": subset.name,
        "title": subset.card.title,
        "domain": subset.card.domain,
        "drawn_from": subset.card.drawn_from,
        "status": subset.card.status,
        "clips": len(subset.clips),
        "unreadable": len(subset.failures),
        "unlabelled": sum(not clip.label for clip in subset.clips),
        "classes": len(sizes),
        "clips_per_class": [min(sizes.values()), max(sizes.values())] if sizes else None,
        "small_classes": {label: count for label, count in sorted(sizes.items()) if count < min_class_size},
        "groups": len({clip.group for clip in subset.clips if clip.group is not None}),
    }
    if known:
        found["seconds"] = {
            "min": known[0],
            "median": known[len(known) // 2],
            "mean": sum(known) / len(known),
            "max": known[-1],
            "total": sum(known),
        }
    return found
