"""Do the intervals of probe accuracies hold? Data sets of known design, classified on folds, over and over.

    python benchmarks/fold_intervals.py            400 data sets for each design: some minutes
    python benchmarks/fold_intervals.py --sets 50

The truth of a design is the mean accuracy over its data sets: what a classifier that learns from so many clips reaches
on new clips (new groups). Coverage is the share of data sets whose 95 % interval holds it. Classifiers are three
nearest neighbours and ridge regression on the labels, which vary most and least with what they learn from.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.probes._accuracy import Estimate, estimate
from earmark.probes.folds import make_folds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DIMENSIONS = 8
UNEQUAL = (
    ((100, 100, 2, 2, 2, 2, 2, 2), 2),
    ((200, 100, 50, 25, 12, 6, 3, 2), 2),
    ((150, 5, 5, 5, 5, 5, 5, 5, 5, 5), 5),
    ((60, 60, 60, 60, 3, 3, 3, 3, 3, 3, 3, 3), 3),
    ((100,) * 4 + (2,) * 16, 2),
)


class Design(NamedTuple):
    """`clips` of each unit and class; units are groups, or single clips where `groups` is 0."""

    name: str
    groups: int
    clips: int
    classes: int
    one_label: bool
    separation: float
    shift: float  # deviation of what the clips of a group have in common
    folds: int
    sizes: tuple[int, ...] = ()  # clips of each group, where they are far from equal


def designs() -> list[Design]:
    found = []
    for clips, folds in ((10, 5), (30, 5), (30, 10), (100, 5)):
        for separation in (1.0, 2.5, 4.5):
            found.append(Design(f"{2 * clips} clips", 0, clips, 2, False, separation, 0.0, folds))
    for groups, folds in ((6, 3), (6, 5), (10, 5), (16, 8), (30, 5), (30, 10)):
        for separation, shift in ((1.5, 0.7), (2.0, 1.5), (5.0, 0.5)):
            found.append(Design(f"{groups} groups of one label", groups, 10, 2, True, separation, shift, folds))
    for groups, folds in ((6, 5), (10, 5), (30, 5)):
        for separation in (1.5, 3.5, 6.0):
            found.append(Design(f"{groups} groups of all labels", groups, 3, 4, False, separation, 0.7, folds))
    for sizes, folds in UNEQUAL:
        for separation, shift in ((1.5, 0.7), (2.0, 1.5), (5.0, 0.5)):
            name = f"{len(sizes)} unequal groups"
            found.append(Design(name, len(sizes), 0, 2, True, separation, shift, folds, sizes))
    return found


def draw(design: Design, rng: np.random.Generator) -> tuple[Floats, Ints, Ints | None]:
    if not design.groups:
        labels = np.repeat(np.arange(design.classes), design.clips)
        groups, common = None, np.zeros((len(labels), DIMENSIONS))
    else:
        each = 1 if design.one_label else design.classes
        drawn = rng.integers(2, 2 * design.clips, design.groups) if design.one_label and not design.sizes else None
        sizes = design.sizes or (design.clips * each if drawn is None else drawn)
        groups = np.repeat(np.arange(design.groups), sizes)
        labels = groups % design.classes if design.one_label else np.arange(len(groups)) % design.classes
        if design.sizes:  # any of the large groups may be of any class
            labels = rng.permutation(np.arange(design.groups) % design.classes)[groups]
        common = design.shift * rng.standard_normal((design.groups, DIMENSIONS))[groups]
        common += design.shift * rng.standard_normal((design.groups, design.classes, DIMENSIONS))[groups, labels]
    vectors = rng.standard_normal((len(labels), DIMENSIONS)) + common
    vectors[np.arange(len(labels)), labels] += design.separation
    return vectors, labels, groups


def neighbours(train: Floats, labels: Ints, test: Floats, classes: int) -> Ints:
    distances = (train**2).sum(axis=1) - 2.0 * test @ train.T
    votes = labels[np.argpartition(distances, 2, axis=1)[:, :3]]
    return np.stack([(votes == code).sum(axis=1) for code in range(classes)], axis=1).argmax(axis=1)


def ridge(train: Floats, labels: Ints, test: Floats, classes: int) -> Ints:
    learnt, asked = (np.c_[part, np.ones(len(part))] for part in (train, test))
    targets = np.eye(classes)[labels] - 1.0 / classes
    weights = np.linalg.solve(learnt.T @ learnt + np.eye(learnt.shape[1]), learnt.T @ targets)
    return np.asarray((asked @ weights).argmax(axis=1))


def measure(design: Design, answer: Callable[[Floats, Ints, Floats, int], Ints], repeat: int) -> Estimate:
    vectors, labels, groups = draw(design, np.random.default_rng([17, repeat]))
    kind = "stratified" if groups is None else "group-stratified"
    folds = make_folds(labels, kind=kind, count=design.folds, groups=groups, seed=repeat)
    right = np.zeros(len(labels))
    for fold in folds:
        answers = answer(vectors[fold.train], labels[fold.train], vectors[fold.test], design.classes)
        right[fold.test] = answers == labels[fold.test]
    return estimate(right, folds, groups)


def has_two_classes(design: Design, repeat: int) -> bool:
    """Whether every fold of a data set learns from two classes, as the probes demand."""
    _, labels, groups = draw(design, np.random.default_rng([17, repeat]))
    kind = "stratified" if groups is None else "group-stratified"
    folds = make_folds(labels, kind=kind, count=design.folds, groups=groups, seed=repeat)
    return all(len(np.unique(labels[fold.train])) > 1 for fold in folds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--only", default="", help="designs whose name holds this text")
    args = parser.parse_args()
    sets = args.sets
    print(f"{'design':28} folds classifier accuracy coverage width")
    for design in [design for design in designs() if args.only in design.name]:
        for answer in (neighbours, ridge):
            found = [measure(design, answer, repeat) for repeat in range(sets) if has_two_classes(design, repeat)]
            low, high = (np.array([getattr(item, end) for item in found], float) for end in ("low", "high"))
            truth = float(np.mean([item.value for item in found]))
            covered = float(np.mean((low <= truth) & (truth <= high)))
            print(
                f"{design.name:28} {design.folds:5d} {answer.__name__:10} {truth:8.3f} {covered:8.3f} "
                f"{np.mean(high - low):5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
