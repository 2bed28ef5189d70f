"""Inputs for the tests: small, seeded, each awkward in its own way. Every case has vectors, labels and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DISTANCES = ("cosine", "euclidean", "spearman")
# Spearman of few dimensions takes few values, so chance alone makes ties: cases that are not about ties are wide.
WIDE = 160


class Case(NamedTuple):
    vectors: np.ndarray
    labels: np.ndarray
    groups: np.ndarray


def names(numbers: np.ndarray) -> np.ndarray:
    """Numbers as labels whose text sorts like the numbers."""
    return np.array([f"class {number:03d}" for number in numbers])


def random(seed: int = 0, n: int = 61, dims: int = WIDE, classes: int = 4, groups: int = 9) -> Case:
    """Loose clusters; classes and groups of uneven size."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n)
    codes[: 2 * classes] = np.arange(2 * classes) % classes  # each class twice at least
    centres = rng.normal(size=(classes, dims))
    vectors = 0.5 * centres[codes] + rng.normal(size=(n, dims))
    return Case(vectors, names(codes), rng.integers(0, groups, n))


def float32() -> Case:
    case = random(1)
    return case._replace(vectors=case.vectors.astype(np.float32))


def integers() -> Case:
    case = random(2)
    return case._replace(vectors=np.round(10_000 * case.vectors).astype(np.int32))


def duplicates() -> Case:
    """Rows repeated inside classes and across them."""
    case = random(3, n=60)
    vectors = case.vectors.copy()
    vectors[20:40] = vectors[:20]
    vectors[50] = vectors[51] = vectors[52] = vectors[0]
    return case._replace(vectors=vectors)


def collapsed_class() -> Case:
    """All members of one class coincide."""
    case = random(4)
    vectors = case.vectors.copy()
    vectors[case.labels == case.labels[0]] = vectors[0]
    return case._replace(vectors=vectors)


def two_places() -> Case:
    """Every point lies in one of two places, in both classes and all groups."""
    rng = np.random.default_rng(5)
    places = rng.normal(size=(2, WIDE))
    codes = rng.integers(0, 2, 50)
    return Case(places[rng.integers(0, 2, 50)], names(codes), np.arange(50) % 7)


def one_hot() -> Case:
    """Every pair is either equal or as far as any other: ties wherever one looks."""
    rng = np.random.default_rng(6)
    return Case(np.eye(5)[rng.integers(0, 5, 70)], names(rng.integers(0, 3, 70)), rng.integers(0, 12, 70))


def two_classes() -> Case:
    return random(7, classes=2)


def classes_of_two() -> Case:
    case = random(8, n=48, groups=12)
    return case._replace(labels=names(np.random.default_rng(8).permutation(48) // 2))


def imbalance() -> Case:
    """One class holds 95 % of the points."""
    case = random(9, n=120, groups=25)
    codes = np.zeros(120, int)
    codes[[3, 40, 41, 77, 110, 119]] = [1, 1, 2, 2, 3, 3]
    return case._replace(labels=names(codes))


def offset_1000() -> Case:
    """The mean is a thousand times the spread."""
    case = random(10)
    return case._replace(vectors=case.vectors + 1000.0)


def offset_1000_float32() -> Case:
    case = offset_1000()
    return case._replace(vectors=case.vectors.astype(np.float32))


def zero_vectors() -> Case:
    """Some vectors have no direction: zero (cosine) and constant (spearman)."""
    case = random(11)
    vectors = case.vectors.copy()
    vectors[::6] = 0.0
    vectors[3] = 2.5
    return case._replace(vectors=vectors)


def outlier() -> Case:
    """One point is a million times farther out than the rest."""
    case = random(12)
    vectors = case.vectors.copy()
    vectors[17] *= 1e6
    return case._replace(vectors=vectors)


def tight_classes() -> Case:
    """Classes a thousand times tighter than their distances: sums lose digits to cancellation."""
    rng = np.random.default_rng(13)
    codes = rng.permutation(np.arange(60) % 5)
    vectors = rng.normal(size=(5, WIDE))[codes] + 1e-3 * rng.normal(size=(60, WIDE))
    return Case(vectors, names(codes), rng.integers(0, 9, 60))


def unicode_labels() -> Case:
    case = random(14)
    words = {"class 000": "čáp", "class 001": "鶴", "class 002": "grue — 🐦", "class 003": "žába\tB"}
    return case._replace(labels=np.array([words[label] for label in case.labels]))


def groups_are_classes() -> Case:
    """Across groups nothing of the own class remains."""
    case = random(15)
    return case._replace(groups=case.labels)


def one_big_group() -> Case:
    """Nearly all points share a group: across groups some queries have fewer than five candidates."""
    case = random(16)
    return case._replace(groups=np.where(np.arange(len(case.labels)) < 58, 0, np.arange(len(case.labels))))


def groups_of_one() -> Case:
    """Every point is its own group: both protocols are the same."""
    case = random(17)
    return case._replace(groups=np.arange(len(case.labels)))


CASES: dict[str, Callable[[], Case]] = {
    make.__name__: make
    for make in (
        random, float32, integers, duplicates, collapsed_class, two_places, one_hot, two_classes, classes_of_two,
        imbalance, offset_1000, offset_1000_float32, zero_vectors, outlier, tight_classes, unicode_labels,
        groups_are_classes, one_big_group, groups_of_one,
    )
}  # fmt: skip
