"""Vectors, labels and distances from files, and the join of vectors and labels.

Vectors: .npy, .npz, .csv, .parquet, .pt. Labels: .csv, .txt, .npy, .npz, .parquet. A file that holds both may
be given twice. Names with a meaning, in any case, singular or plural: `id`, `label`, `group`. Columns that say what a
row is never become dimensions: `Vectors.summary` says what was used as what.

Every failure is an InputError that names the file and the remedy. Whether the numbers are finite is not
looked at here: the evaluation does, and can then say which clips are affected.
"""

from __future__ import annotations

from earmark.vectors._labelled_distances import LabelledDistances, read_labelled_distances
from earmark.vectors._reading import join, read_labelled, read_labels, read_vectors
from earmark.vectors._values import Joined, Labels, Matrix, Vectors
from earmark.vectors.distances import Distances, given_distances, read_distances

__all__ = [
    "Distances",
    "Joined",
    "LabelledDistances",
    "Labels",
    "Matrix",
    "Vectors",
    "given_distances",
    "join",
    "read_distances",
    "read_labelled",
    "read_labelled_distances",
    "read_labels",
    "read_vectors",
]
