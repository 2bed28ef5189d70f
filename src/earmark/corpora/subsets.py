"""The sounds of a run: corpora opened as a config names them, every clip known by the hash of its sound."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from earmark.corpora.clips import Clip, Corpus, CorpusCard, length_of
from earmark.corpora.copies import CopySet
from earmark.corpora.names import EXAMPLE, hint_of
from earmark.corpora.source import open_corpus
from earmark.errors import InputError, Unreachable, UsageError, absent
from earmark.places import locate
from earmark.runs.config import CorpusEntry
from earmark.runs.engine import Failure, Tick, reason_of
from earmark.vectors.class_samples import Draw
from earmark.wording import counted, listed
from earmark.workers import Workers

log = logging.getLogger("earmark.runs")


@dataclass(frozen=True)
class LeftOut:
    """A clip that is in the corpus and not in the run: its row among all clips of its subset, and why."""

    row: int
    clip: Clip
    digest: str | None
    reason: str


@dataclass(frozen=True)
class PreparedSubset:
    """The clips that are scored together. `digests` has None where a clip's sound cannot be read at all.

    `seconds` are the lengths of the readable clips as their headers say, 0 where they do not. `copies` are the sets of
    clips that are one sound, `left_out` those of them that are not scored. `draw` says what the clips were drawn from,
    where they are a sample.
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
    draw: Draw | None = None

    @property
    def listed(self) -> list[tuple[Clip, str | None]]:
        """Every clip of the subset with its digest, those left out in their places."""
        others = {item.row: (item.clip, item.digest) for item in self.left_out}
        used = zip(self.clips, self.digests, strict=True)
        return [others[row] if row in others else next(used) for row in range(len(self.clips) + len(others))]

    @property
    def readable(self) -> list[tuple[Clip, str]]:
        pairs = zip(self.clips, self.digests, strict=True)
        return [(clip, digest) for clip, digest in pairs if digest is not None]

    def failure(self, clip: Clip, step: str, extractor: str, error: BaseException) -> Failure:
        return _failure(self.suite, self.name, clip, step, extractor, error)

    def describe(self, records: Mapping[str, Mapping[str, Any]], min_class_size: int) -> dict[str, Any]:
        """For a run's record: counts, classes, groups, and durations of the clips whose `records` know them."""
        sizes = Counter(clip.label for clip in self.clips if clip.label)
        facts: dict[str, Any] = {
            "suite": self.suite,
            "subset": self.name,
            "title": self.card.title,
            "domain": self.card.domain,
            "drawn_from": self.card.drawn_from,
            "status": self.card.status,
            "clips": len(self.clips),
            "unreadable": len(self.failures),
            "unlabelled": sum(not clip.label for clip in self.clips),
            "classes": len(sizes),
            "clips_per_class": [min(sizes.values()), max(sizes.values())] if sizes else None,
            "small_classes": {label: count for label, count in sorted(sizes.items()) if count < min_class_size},
            "groups": len({clip.group for clip in self.clips if clip.group is not None}),
        }
        seconds = sorted(records[digest]["seconds"] for digest in self.digests if digest and digest in records)
        if seconds:
            total = sum(seconds)
            facts["seconds"] = {
                "min": seconds[0],
                "median": seconds[len(seconds) // 2],
                "mean": total / len(seconds),
                "max": seconds[-1],
                "total": total,
            }
        return facts


def _failure(suite: str, subset: str, clip: Clip, step: str, extractor: str, error: BaseException) -> Failure:
    path = str(locate(clip.path).absolute()) if clip.path else ""
    return Failure(suite, subset, clip.id, path, clip.label or "", step, extractor, reason_of(error))


# --- corpora as a config names them --------------------------------------------------------------------------


def open_corpora(entries: Iterable[CorpusEntry], label_separator: str = "") -> list[Corpus]:
    """The corpora of a config, each named as its entry says."""
    corpora = []
    for entry in entries:
        corpus = open_corpus(
            entry.spec, label_column=entry.label_column, group_column=entry.groups, path_column=entry.path_column,
            subset_column=entry.subset_column, labels_from=entry.labels_from, label_separator=label_separator,
        )  # fmt: skip
        card = corpus.card if entry.name is None else replace(corpus.card, name=entry.name)
        corpora.append(replace(corpus, card=card))
    return corpora


def refuse_unlabelled(corpora: Sequence[Corpus], wanted: Sequence[Sequence[str]]) -> None:
    """Refuse to measure sounds of which none has a label, before any of them is heard."""
    chosen = [
        [clip for clips in choose_subsets(corpus, names).values() for clip in clips]
        for corpus, names in zip(corpora, wanted, strict=True)
    ]
    if any(clip.label for clips in chosen for clip in clips) or not any(chosen):
        return
    hint = next(filter(None, map(hint_of, chosen)), "")
    remedy = (
        hint
        or "put them into folders named by label, give a manifest with a column of labels (--label-column NAME), or "
        f"a pattern of the names of files (--labels-from '{EXAMPLE}')"
    )
    count = counted(sum(map(len, chosen)), "clip")
    what = f"None of the {count} of {listed(corpus.name for corpus in corpora)} has a label, so nothing can be measured"
    raise InputError(f"{what}: {remedy}. `earmark corpus describe` shows what would be taken.")


def choose_subsets(corpus: Corpus, wanted: Sequence[str]) -> dict[str, list[Clip]]:
    """The subsets asked for, or all; clips without a subset form one that has the corpus's name."""
    subsets = {name or corpus.name: clips for name, clips in corpus.subsets().items()}
    for name in wanted:
        if name not in subsets:
            raise UsageError(absent(name, subsets, "subset", corpus.name))
    return {name: subsets[name] for name in wanted} if wanted else subsets


def clip_count(corpora: Sequence[Corpus], wanted: Sequence[Sequence[str]]) -> int:
    """How many clips the subsets asked for have."""
    return sum(
        sum(map(len, choose_subsets(corpus, names).values())) if names and len(corpus) else len(corpus)
        for corpus, names in zip(corpora, wanted, strict=True)
    )


# --- every clip known by its sound ---------------------------------------------------------------------------


def prepare(
    corpora: Sequence[Corpus], wanted: Sequence[Sequence[str]], *, workers: int, tick: Tick = lambda _: None
) -> list[PreparedSubset]:
    """Subsets in order, every clip hashed; a clip that cannot be read is a failure, not the end."""
    subsets: list[PreparedSubset] = []
    for corpus, names in zip(corpora, wanted, strict=True):
        if not len(corpus):
            raise InputError(f"The corpus {corpus.name} has no clips.")
        for name, clips in choose_subsets(corpus, names).items():
            if any((other.suite, other.name) == (corpus.name, name) for other in subsets):
                raise UsageError(f"Two corpora have a subset {corpus.name}/{name}: give one of them another name.")
            subsets.append(_hashed(corpus, name, clips, workers, tick))
    return subsets


def _hashed(corpus: Corpus, name: str, clips: list[Clip], workers: int, tick: Tick) -> PreparedSubset:
    digests: list[str | None] = []
    seconds: list[float] = []
    failures: list[Failure] = []
    with Workers(workers) as threads:
        for clip, known in zip(clips, threads.map(_examined, clips), strict=True):
            if isinstance(known, Exception):
                digests.append(None)
                failures.append(_failure(corpus.name, name, clip, "prepare", "", known))
                log.warning("%s/%s: %s", corpus.name, name, failures[-1].reason)
            else:
                digests.append(known[0])
                seconds.append(known[1])
            tick(1)
    twins = [id for id, count in Counter(clip.id for clip in clips).items() if count > 1]
    if twins:
        stand = "stands" if len(twins) == 1 else "stand"
        raise InputError(
            f"{counted(len(twins), 'id')} {stand} for several clips of {name} (first: {twins[0]!r}): make ids unique."
        )
    card = corpus.card_of(name)
    hashed = tuple(map(as_hashed, clips, digests))
    return PreparedSubset(corpus.name, name, card, hashed, tuple(digests), tuple(seconds), tuple(failures))


def as_hashed(clip: Clip, digest: str | None) -> Clip:
    """A clip that is read only as long as its file is the one with this hash."""
    return replace(clip, expected=digest) if digest is not None and clip.path is not None else clip


def _examined(clip: Clip) -> tuple[str, float] | Exception:
    try:
        return clip.digest(), length_of(clip)
    except Unreachable:
        raise
    except Exception as error:  # whatever a file or a stranger's generator does, the run goes on
        return error
