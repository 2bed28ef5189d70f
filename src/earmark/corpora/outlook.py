"""A look before the work: what a run would take for labels and groups, what it could measure, and what to change.

Nothing is decoded: labels, groups and paths say it all, and the caller which clips cannot be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.names import EXAMPLE, hint_of
from earmark.vectors.doubtful_labels import alike_names, several_in_one, words_for_nothing
from earmark.vectors.several_labels import split_labels
from earmark.wording import counted, first_of

LEAST = 2  # clips of a class, as min_class_size has it
_SHOWN = 6


class Measurable(NamedTuple):
    """Whether a protocol can be measured, and what speaks for or against it."""

    possible: bool
    reason: str


class Outlook(NamedTuple):
    """What a run would take of one subset; labels and groups with their numbers of clips, the most frequent first."""

    subset: str
    clips: int
    unlabelled: int
    labels: dict[str, int]
    groups: dict[str, int]
    small_classes: dict[str, int]
    all: Measurable
    across_groups: Measurable
    hints: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        protocols = {name: getattr(self, name)._asdict() for name in ("all", "across_groups")}
        return {**self._asdict(), **protocols, "hints": list(self.hints)}

    def lines(self) -> Iterator[str]:
        """The outlook as lines of text."""
        labels = [f"{label}: {count}" for label, count in self.labels.items()]
        without = f"; {counted(self.unlabelled, 'clip')} without one" if self.unlabelled else ""
        yield f"labels: {len(labels)}{f' ({first_of(labels, _SHOWN)})' if labels else ''}{without}"
        groups = [f"{group}: {count}" for group, count in self.groups.items()]
        yield f"groups: {len(groups)}{f' ({first_of(groups, _SHOWN)})' if groups else ''}"
        for name, protocol in (("among all clips", self.all), ("across groups", self.across_groups)):
            yield f"measured {name}: {'yes' if protocol.possible else 'no'}, {protocol.reason}"
        yield from (f"hint: {hint}" for hint in self.hints)


def outlooks(corpus: Corpus, label_separator: str = "", unreadable: Collection[str] = ()) -> list[Outlook]:
    """The outlook of every subset; with a separator, of clips that may have several labels.

    Clips whose id is among `unreadable` count nowhere: a run would leave them out.
    """
    broken = frozenset(unreadable)
    return [
        _outlook(name, [clip for clip in clips if clip.id not in broken], label_separator)
        for name, clips in corpus.subsets().items()
    ]


def outlook_text(found: Sequence[Outlook]) -> str:
    """A paragraph for each subset."""
    blocks = [[f"{one.subset or '(all)'}:", *(f"  {line}" for line in one.lines())] for one in found]
    return "".join(f"{line}\n" for block in blocks for line in block)


def _outlook(name: str, clips: Sequence[Clip], separator: str) -> Outlook:
    labels = Counter(label for clip in clips if clip.label for label in split_labels(clip.label, separator))
    groups = Counter(clip.group for clip in clips if clip.group)
    small = {label: count for label, count in sorted(labels.items()) if count < LEAST}
    among_all = _among_all(labels)
    across_groups = _across_groups(clips, groups, separator) if among_all.possible else among_all
    confined = _confined(clips, labels, separator) if among_all.possible and len(groups) > 1 else []
    return Outlook(
        subset=name,
        clips=len(clips),
        unlabelled=sum(not clip.label for clip in clips),
        labels=dict(labels.most_common()),
        groups=dict(groups.most_common()),
        small_classes=small,
        all=among_all,
        across_groups=across_groups,
        hints=tuple(_hints(clips, labels, groups, small, confined)),
    )


def _among_all(labels: Counter[str]) -> Measurable:
    if not labels:
        return Measurable(False, "no clip has a label")
    if len(labels) == 1:
        return Measurable(False, f"all clips have the label {next(iter(labels))}, and a comparison needs two")
    large = sum(count >= LEAST for count in labels.values())
    if large < 2:
        return Measurable(False, f"{counted(large, 'class')} of {len(labels)} has {LEAST} clips or more, and two must")
    return Measurable(True, f"{large} of {counted(len(labels), 'class')} have {LEAST} clips or more")


def _across_groups(clips: Sequence[Clip], groups: Counter[str], separator: str) -> Measurable:
    """A clip must find one of its class in another group."""
    if len(groups) < 2:
        held = "no clip has a group" if not groups else f"all clips are of the group {next(iter(groups))}"
        return Measurable(False, held)
    met = _groups_by_label(clips, separator)
    several = sum(len(held) > 1 for held in met.values())
    classes = counted(len(met), "class")
    return Measurable(several > 0, f"{several} of {classes} {'is' if several == 1 else 'are'} in two groups or more")


def _groups_by_label(clips: Sequence[Clip], separator: str) -> dict[str, set[str]]:
    met: dict[str, set[str]] = {}
    for clip in clips:
        if clip.label and clip.group:
            for label in split_labels(clip.label, separator):
                met.setdefault(label, set()).add(clip.group)
    return met


def _confined(clips: Sequence[Clip], labels: Counter[str], separator: str) -> list[str]:
    """Labels of two clips or more that are all of one group: of these, label and group cannot be told apart."""
    return sorted(
        label
        for label, groups in _groups_by_label([clip for clip in clips if clip.group], separator).items()
        if len(groups) == 1 and labels[label] >= LEAST
    )


def _hints(
    clips: Sequence[Clip], labels: Counter[str], groups: Counter[str], small: dict[str, int], confined: list[str]
) -> Iterator[str]:
    if not labels:
        yield hint_of(clips) or (
            "give labels: folders named by label, --label-column NAME of a manifest, or a pattern of names of files, "
            f"--labels-from '{EXAMPLE}'"
        )
    if labels and len(labels) == labels.total() > 1:
        yield "every clip has a label of its own: name another column with --label-column"
    elif small:
        yield f"{counted(len(small), 'class')} of fewer than {LEAST} clips would be left out ({first_of([*small], 4)})"
    yield from several_in_one(labels)
    yield from alike_names(labels, "label")
    yield from alike_names(groups, "group")
    yield from words_for_nothing(labels.elements())
    files = Counter(clip.path for clip in clips if clip.path)
    shared = sum(count for count in files.values() if count > 1)
    if shared and not groups:
        yield (
            f"{counted(shared, 'clip')} are spans that share a recording with others, and have no group: give the "
            "recording in a column group, since spans of one recording are alike for other reasons than their label"
        )
    if labels and not groups and not shared:
        yield (
            "no groups: a column of a manifest (--group-column NAME) or the names of files (--labels-from "
            "'{label}/{group}_{take}.wav') can say which clips share a speaker, bird or recording; a run then also "
            "measures across them"
        )
    if confined:
        yield (
            f"all clips of {counted(len(confined), 'class')} are of one group ({first_of(confined, 4)}): among all "
            "clips, a model that hears the group (speaker, bird, recording) can score as high as one that hears the "
            "label"
        )
    if groups and len(groups) == groups.total() > 1:
        yield "every clip has a group of its own, which says nothing: name another column with --group-column"
