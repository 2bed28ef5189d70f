"""Some clips of some classes: `50x5` is 5 clips of each of the 50 most frequent classes.

    50x5          5 clips of each of the 50 most frequent classes
    50x5:random   of 50 classes drawn at random
    allx5         of every class that has as many
    50xall        all clips of the 50 most frequent classes

A class counts only with at least as many clips as are asked for; where fewer classes have them, those are taken. Of
classes of one size those first in the alphabet are taken, letter by letter as Unicode has them. Clips are drawn at
random, without regard to groups: each is ranked by a hash of the seed and its id. So a draw does not depend on the
order of the clips or on other classes, a larger one keeps the clips of a smaller one, and every model hears the same.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from earmark.errors import UsageError
from earmark.wording import counted, first_of, listed

MEANING = (
    "some clips of some classes: 50x5 is 5 clips of each of the 50 most frequent classes, 50x5:random of 50 classes at "
    "random; all stands for every one; drawn with --seed (default: everything)"
)
_SPELLED = re.compile(r"(\d+|all)\s*[x×*]\s*(\d+|all)(?::(frequent|random))?")


@dataclass(frozen=True)
class ClassSample:
    """How many classes, and how many clips of each; None is all of them."""

    classes: int | None
    clips: int | None
    random: bool = False

    def __str__(self) -> str:
        many, each = ("all" if count is None else str(count) for count in (self.classes, self.clips))
        return f"{many}x{each}{':random' * self.random}"

    def drawn_with(self, seed: int) -> str:
        """The sample as names of subsets have it: `50x5`, `50x5:seed3` where another seed than 0 chose the clips."""
        return f"{self}:seed{seed}" if seed and (self.random or self.clips is not None) else str(self)


@dataclass(frozen=True)
class Draw:
    """Rows that were drawn, in order, and what they were drawn from."""

    sample: ClassSample
    seed: int
    rows: tuple[int, ...]
    classes: int  # drawn
    fitting: int  # classes with as many clips as were asked for
    of_classes: int
    of_clips: int  # with a label, whatever their class
    largest: int  # clips of the largest class
    tied: tuple[int, int] = (0, 0)  # of the classes of one size that the cut divides: drawn, and how many there are

    @property
    def text(self) -> str:
        """`250 of 2000 clips, 5 of each of the 50 most frequent classes (sample 50x5, seed 0)`"""
        sample, asked = self.sample, self.sample.clips
        if not self.rows:
            return f"no class has {asked} clips, the largest has {self.largest} (sample {sample})"
        classes = counted(self.classes, "class")
        each = "all" if asked is None else str(asked) if self.of_classes == 1 else f"{asked} of each"
        if self.classes == self.of_classes:
            which = f"all {classes}" if self.classes > 1 else "the only class"
        elif sample.classes is None or self.classes < sample.classes:
            which = f"the {classes} that {'has' if self.classes == 1 else 'have'} as many"
        else:
            which = f"{classes} drawn at random" if sample.random else self._most_frequent
        drawn = "" if asked is None and not sample.random else f", seed {self.seed}"
        return f"{len(self.rows)} of {counted(self.of_clips, 'clip')}, {each} of {which} (sample {sample}{drawn})"

    @property
    def _most_frequent(self) -> str:
        """Which classes the most frequent are; where some of one size were left out, that the alphabet chose."""
        drawn, tied = self.tied
        if drawn == tied:
            return f"the {self.classes} most frequent classes"
        if drawn == self.classes:
            among = f"{tied} classes" if tied == self.of_classes else f"the {tied} most frequent classes, all"
            return f"the first {drawn} in the alphabet of {among} of one size"
        chosen = f"{drawn} of them the first in the alphabet of {tied} of one size"
        return f"the {self.classes} most frequent classes, {chosen}"


def parse_sample(text: str) -> ClassSample:
    """Read `50x5`, `50x5:random`, `allx5`, `50xall`; UsageError for anything else."""
    found = _SPELLED.fullmatch(text.strip().lower())
    if found is None:
        raise UsageError(
            f"{text!r} is no sample of classes and clips: write 50x5 for 5 clips of each of the 50 most frequent "
            "classes, or 50x5:random for 50 classes at random; all stands for every one."
        )
    classes, clips = (None if word == "all" else int(word) for word in found.group(1, 2))
    if classes is None and clips is None:
        raise UsageError("allxall is everything there is: leave the sample out.")
    if clips is not None and clips < 2:
        raise UsageError(
            f"{text!r} leaves {counted(clips, 'clip')} of each class, which has no other of its class to find: ask for "
            "at least 2."
        )
    if classes is not None and classes < 2:
        raise UsageError(f"{text!r} leaves {counted(classes, 'class')}: a comparison needs at least 2.")
    if classes is None and found[3] == "random":
        raise UsageError(f"{text!r} takes every class, so none are drawn at random: leave :random out.")
    return ClassSample(classes, clips, found[3] == "random")


def draw_sample(labels: Sequence[str | None], ids: Sequence[str] | None, sample: ClassSample, seed: int = 0) -> Draw:
    """The rows of a sample; those without a label belong to no class. Without ids, row numbers stand for them."""
    sizes = Counter(label for label in labels if label)
    least = sample.clips or 1
    fitting = [label for label, size in sizes.items() if size >= least]
    if sample.random:
        fitting.sort(key=lambda label: (_chance("class", seed, label), label))
    else:
        fitting.sort(key=lambda label: (-sizes[label], label))
    chosen = fitting[: sample.classes]
    by_class: dict[str, list[int]] = {label: [] for label in chosen}
    for row, label in enumerate(labels):
        if label in by_class:
            by_class[label].append(row)
    rows: list[int] = []
    for members in by_class.values():
        if sample.clips is not None:
            names = {row: str(row) if ids is None else ids[row] for row in members}
            members = sorted(members, key=lambda row: (_chance("clip", seed, names[row]), row))[: sample.clips]
        rows += members
    smallest = sizes[chosen[-1]] if chosen else 0
    tied = (0, 0) if sample.random else (_of_size(chosen, sizes, smallest), _of_size(fitting, sizes, smallest))
    return Draw(
        sample, seed, tuple(sorted(rows)), len(chosen), len(fitting), len(sizes), sizes.total(),
        max(sizes.values(), default=0), tied,
    )  # fmt: skip


def _of_size(classes: Sequence[str], sizes: Mapping[str, int], size: int) -> int:
    return sum(sizes[label] == size for label in classes)


def told(draws: Mapping[str, Draw]) -> list[str]:
    """A sentence for subsets of which the same was drawn, by their names; UsageError where nothing was of any."""
    if draws and not any(draw.rows for draw in draws.values()):
        largest = max(draw.largest for draw in draws.values())
        asked = next(iter(draws.values())).sample
        raise UsageError(
            f"No class of {first_of(list(draws), 3)} has the {asked.clips} clips that the sample {asked} asks for (the "
            f"largest has {largest}): ask for fewer."
        )
    alike: dict[str, list[str]] = {}
    for name, draw in draws.items():
        alike.setdefault(draw.text, []).append(name)
    return [f"{listed(names)}{' each' * (len(names) > 1)}: {text}" for text, names in alike.items()]


def _chance(kind: str, seed: int, name: str) -> bytes:
    """A number in place of a throw of dice, the same for the same seed and name."""
    return hashlib.sha256(f"{kind} {seed} {name}".encode("utf-8", "surrogatepass")).digest()
